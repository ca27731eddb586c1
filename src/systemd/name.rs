//! Names of units: their parts, templates, and the specifiers that follow from a name alone.

use std::fmt;

/// Suffixes of the unit types, `UnitType` in systemd.
const TYPES: [&str; 11] =
    ["service", "socket", "target", "device", "mount", "automount", "swap", "timer", "path", "slice", "scope"];

/// A valid unit name: `prefix[@[instance]].type`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnitName(String);

impl UnitName {
    /// Checks a name as `unit_name_is_valid` does: known suffix, allowed characters, at most 255 bytes.
    pub fn parse(name: &str) -> Option<UnitName> {
        let (stem, kind) = name.rsplit_once('.')?;
        let allowed = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
        let valid = name.len() <= 255 && TYPES.contains(&kind) && stem.chars().all(allowed);
        (valid && !stem.is_empty() && !stem.starts_with('@')).then(|| UnitName(name.to_owned()))
    }

    /// The whole name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
    /// `service`, `target`, …
    pub fn kind(&self) -> &str {
        self.0.rsplit_once('.').map_or("", |(_, kind)| kind)
    }
    /// Without the type: `%N`.
    pub fn stem(&self) -> &str {
        self.0.rsplit_once('.').map_or("", |(stem, _)| stem)
    }
    /// Before `@`, or the stem: `%p`.
    pub fn prefix(&self) -> &str {
        self.stem().split_once('@').map_or(self.stem(), |(prefix, _)| prefix)
    }
    /// After `@`: `%i`. `None` for templates and for names without `@`.
    pub fn instance(&self) -> Option<&str> {
        self.stem().split_once('@').map(|(_, instance)| instance).filter(|i| !i.is_empty())
    }
    /// True for `foo@.service`.
    pub fn is_template(&self) -> bool {
        self.stem().split_once('@').is_some_and(|(_, instance)| instance.is_empty())
    }
    /// The template of an instance.
    pub fn template(&self) -> Option<UnitName> {
        self.instance().map(|_| UnitName(format!("{}@.{}", self.prefix(), self.kind())))
    }
    /// The instance of a template; `None` when this is none or the result is no valid name.
    pub fn instantiate(&self, instance: &str) -> Option<UnitName> {
        if !self.is_template() || instance.is_empty() {
            return None;
        }
        UnitName::parse(&format!("{}@{instance}.{}", self.prefix(), self.kind()))
    }
    /// The unit with the same stem and another type.
    pub fn with_kind(&self, kind: &str) -> Option<UnitName> {
        UnitName::parse(&format!("{}.{kind}", self.stem()))
    }
    /// The names under which directories beside unit files apply to this unit (`NAME.d`, `NAME.wants`, …), the most
    /// specific first: itself, its template, and prefixes that end in a dash. The type's own (`service.d`) is not
    /// among them. Order and contents as `unit_file_find_dirs` has them (systemd: `shared/dropin.c`).
    pub fn directory_names(&self) -> Vec<String> {
        let mut all = Vec::new();
        self.add_directory_names(&mut all);
        all
    }

    fn add_directory_names(&self, all: &mut Vec<String>) {
        if all.contains(&self.0) {
            return;
        }
        all.push(self.0.clone());
        if let Some(template) = self.template() {
            template.add_directory_names(all);
        }
        // `foo-bar` is followed by `foo-`; a dash at the end is passed over once, one at the start names nothing.
        let prefix = self.prefix();
        let search = prefix.strip_suffix('-').unwrap_or(prefix);
        let Some(dash) = search.rfind('-').filter(|dash| *dash > 0) else { return };
        let instance = self.instance().map(|i| format!("@{i}")).unwrap_or_default();
        if let Some(shorter) = UnitName::parse(&format!("{}{instance}.{}", &prefix[..=dash], self.kind())) {
            shorter.add_directory_names(all);
        }
    }

    /// Expands the specifiers of a dependency's name that follow from this unit's name: `%n %N %p %P %i %I %j %J %%`
    /// (systemd.unit(5), SPECIFIERS).
    ///
    /// # Errors
    /// The specifier that needs the running system, for instance `%H`.
    pub fn expand(&self, text: &str) -> Result<String, char> {
        let mut out = String::with_capacity(text.len());
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            if c != '%' {
                out.push(c);
                continue;
            }
            let last = self.prefix().rsplit('-').next().unwrap_or("");
            match chars.next() {
                Some('n') => out.push_str(&self.0),
                Some('N') => out.push_str(self.stem()),
                Some('p') => out.push_str(self.prefix()),
                Some('P') => out.push_str(&unescape(self.prefix())),
                Some('i') => out.push_str(self.instance().unwrap_or("")),
                Some('I') => out.push_str(&unescape(self.instance().unwrap_or(""))),
                Some('j') => out.push_str(last),
                Some('J') => out.push_str(&unescape(last)),
                Some('%') => out.push('%'),
                Some(other) => return Err(other),
                None => out.push('%'),
            }
        }
        Ok(out)
    }
}

/// Undoes `systemd-escape`: `-` is `/`, `\xNN` is the byte. Bytes that are not UTF-8 become the replacement character.
pub fn unescape(escaped: &str) -> String {
    let mut bytes = Vec::with_capacity(escaped.len());
    let mut rest = escaped.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let hex = tail.strip_prefix(b"x").and_then(|t| t.get(..2)).and_then(|t| std::str::from_utf8(t).ok());
        match (first, hex.and_then(|h| u8::from_str_radix(h, 16).ok())) {
            (b'-', _) => bytes.push(b'/'),
            (b'\\', Some(byte)) => {
                bytes.push(byte);
                rest = &tail[3..];
                continue;
            }
            (other, _) => bytes.push(*other),
        }
        rest = tail;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// `systemd-escape --path`: `/var/lib/etcd` is `var-lib-etcd`, the root is `-`.
pub fn escape_path(path: &str) -> String {
    let elements: Vec<&str> = path.split('/').filter(|e| !e.is_empty()).collect();
    if elements.is_empty() {
        return "-".to_owned();
    }
    let mut out = String::new();
    for (index, byte) in elements.join("/").bytes().enumerate() {
        match byte {
            b'/' => out.push('-'),
            b'.' if index == 0 => out.push_str("\\x2e"),
            b if b.is_ascii_alphanumeric() || b":_.".contains(&b) => out.push(b as char),
            b => out.push_str(&format!("\\x{b:02x}")),
        }
    }
    out
}

impl fmt::Display for UnitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for UnitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> UnitName {
        UnitName::parse(text).unwrap()
    }

    #[test]
    fn names_and_their_parts() {
        for bad in ["", "x", ".service", "@x.service", "a b.service", "a/b.service", "x.conf", "x.service.d"] {
            assert_eq!(UnitName::parse(bad), None, "{bad}");
        }
        //           name               stem         prefix  instance    template
        let cases = [
            ("a.service", "a", "a", None, None),
            ("a@b.service", "a@b", "a", Some("b"), Some("a@.service")),
            ("a@b@c.timer", "a@b@c", "a", Some("b@c"), Some("a@.timer")),
            ("a@.service", "a@", "a", None, None),
            ("a.b.target", "a.b", "a.b", None, None),
        ];
        for (text, stem, prefix, instance, template) in cases {
            let unit = name(text);
            assert_eq!((unit.stem(), unit.prefix(), unit.instance()), (stem, prefix, instance), "{text}");
            assert_eq!(unit.template().map(|t| t.to_string()), template.map(str::to_owned), "{text}");
        }
        assert_eq!(name("a@.service").instantiate("x"), Some(name("a@x.service")));
        assert_eq!(name("a.service").instantiate("x"), None);
    }

    #[test]
    fn directories_that_apply_to_a_unit() {
        let cases: &[(&str, &[&str])] = &[
            ("etcd.service", &["etcd.service"]),
            ("mesh-preflight.service", &["mesh-preflight.service", "mesh-.service"]),
            ("a-b-c.service", &["a-b-c.service", "a-b-.service", "a-.service"]),
            ("-.slice", &["-.slice"]),
            ("a-b@x-y.service", &["a-b@x-y.service", "a-b@.service", "a-.service", "a-@x-y.service", "a-@.service"]),
        ];
        for (text, want) in cases {
            assert_eq!(name(text).directory_names(), *want, "{text}");
        }
    }

    #[test]
    fn specifiers_follow_from_the_name() {
        let unit = name("foo-bar@a-b\\x2dc.service");
        let cases = [
            ("x@%i.service", Ok(r"x@a-b\x2dc.service")),
            ("%I", Ok("a/b-c")),
            ("%p %P %j", Ok("foo-bar foo/bar bar")),
            ("%n %N", Ok(r"foo-bar@a-b\x2dc.service foo-bar@a-b\x2dc")),
            ("100%%", Ok("100%")),
            ("x-%H.service", Err('H')),
        ];
        for (text, want) in cases {
            assert_eq!(unit.expand(text), want.map(str::to_owned), "{text}");
        }
    }

    #[test]
    fn paths_escape() {
        for (path, want) in
            [("/", "-"), ("/var/lib/etcd", "var-lib-etcd"), ("/a-b/.c", r"a\x2db-.c"), ("/.a", r"\x2ea")]
        {
            assert_eq!(escape_path(path), want, "{path}");
        }
    }
}

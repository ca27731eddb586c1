//! What the values of a declaration mean: durations, sizes, modes, names, addresses.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use toml::de::DeValue;

use super::model::Value;
use super::suggest;
use super::table::{Refusal, type_with_article};
use crate::finding::{Rule, Severity};

/// A value that cannot be what its key wants.
pub static INVALID_VALUE: Rule = Rule {
    code: "invalid-value",
    family: "declaration",
    severity: Severity::Error,
    summary: "a value that cannot be what its key wants",
    explanation: "The value has the right type but not the right form: a duration without unit, a size in other units \
        than KiB, MiB, GiB or TiB, an address that is none, a word that is not among those allowed.",
};

/// A file mode is a number instead of an octal text.
pub static MODE_AS_NUMBER: Rule = Rule {
    code: "mode-as-number",
    family: "declaration",
    severity: Severity::Error,
    summary: "a file mode is a number instead of an octal text",
    explanation: "Modes are octal, TOML's plain numbers are decimal: `mode = 644` is 0o1204, that is `-w----r-T`, and \
        not `rw-r--r--`. So a mode is a text of octal digits: `mode = \"0644\"`.",
};

/// A name is not an RFC 1123 label.
pub static INVALID_NAME: Rule = Rule {
    code: "invalid-name",
    family: "declaration",
    severity: Severity::Error,
    summary: "a name is not an RFC 1123 label",
    explanation: "Names of meshes, sites, nodes, services and data sets become host names, DNS names in certificates, \
        keys of the registry and file names. RFC 1123 section 2.1 and RFC 1035 section 2.3.1 allow in a label the \
        letters a to z, digits and inner hyphens, at most 63. Upper case is refused, since DNS would take both as \
        one name.",
};

/// A key or value whose feature this version does not have.
pub static NOT_THERE_YET: Rule = Rule {
    code: "not-there-yet",
    family: "declaration",
    severity: Severity::Error,
    summary: "a key or value whose feature this version does not have",
    explanation: "The key or value belongs to the declaration, but this version of fitout does not act on it yet. It is \
        refused and not ignored, so that nobody relies on what does not happen. Remove it for now.",
};

/// Rules of this file.
pub(super) const RULES: &[&Rule] = &[&INVALID_VALUE, &MODE_AS_NUMBER, &INVALID_NAME, &NOT_THERE_YET];

/// The refusal of a feature that is not built yet; `what` completes "… is not there yet".
pub(super) fn not_there_yet(what: &str) -> Refusal {
    Refusal::new(&NOT_THERE_YET, format!("{what} is not there yet"))
        .label("this version does not act on it")
        .help("remove it; what is declared and not done would deceive")
}

fn invalid(message: impl Into<String>) -> Refusal {
    Refusal::new(&INVALID_VALUE, message)
}

/// Any text.
pub(super) fn text(value: &DeValue<'_>) -> Result<String, Refusal> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        other => Err(Refusal::wrong_type(other, "a text").help("put it in double quotes")),
    }
}

/// A text of one line that is not empty.
pub(super) fn line(value: &DeValue<'_>) -> Result<String, Refusal> {
    let text = text(value)?;
    if text.trim().is_empty() {
        return Err(invalid("must not be empty"));
    }
    if text.chars().any(char::is_control) {
        return Err(invalid("must be one line without control characters"));
    }
    Ok(text)
}

/// `true` or `false`.
pub(super) fn boolean(value: &DeValue<'_>) -> Result<bool, Refusal> {
    value.as_bool().ok_or_else(|| Refusal::wrong_type(value, "`true` or `false`"))
}

/// A whole number between two bounds.
pub(super) fn integer_in(value: &DeValue<'_>, low: i64, high: i64) -> Result<i64, Refusal> {
    let number = integer(value)?;
    if number < low || number > high {
        return Err(invalid(format!("must be between {low} and {high}, not {number}")));
    }
    Ok(number)
}

/// A whole number.
pub(super) fn integer(value: &DeValue<'_>) -> Result<i64, Refusal> {
    let DeValue::Integer(number) = value else {
        return Err(Refusal::wrong_type(value, "a whole number"));
    };
    i64::from_str_radix(number.as_str(), number.radix()).map_err(|_| invalid("is too large a number"))
}

/// A generation or count: 1 to 2³²−1.
pub(super) fn generation(value: &DeValue<'_>) -> Result<u32, Refusal> {
    integer_in(value, 1, i64::from(u32::MAX)).map(|n| u32::try_from(n).unwrap_or(u32::MAX))
}

/// How many nodes a group has.
pub(super) fn count(value: &DeValue<'_>) -> Result<u32, Refusal> {
    integer_in(value, 1, 100_000).map(|n| u32::try_from(n).unwrap_or(u32::MAX))
}

/// A TCP port.
pub(super) fn port(value: &DeValue<'_>) -> Result<u16, Refusal> {
    integer_in(value, 1, 65_535).map(|n| u16::try_from(n).unwrap_or(u16::MAX))
}

/// `30ms`, `10s`, `5m`, `4h`, `7d`: a positive whole number and one unit.
pub(super) fn duration(value: &DeValue<'_>) -> Result<Duration, Refusal> {
    if let DeValue::Integer(number) = value {
        return Err(Refusal::wrong_type(value, "a text with a number and a unit")
            .help(format!("say which unit: \"{number}ms\", \"{number}s\", \"{number}m\" or \"{number}h\"")));
    }
    let text = text(value)?;
    parse_duration(&text).ok_or_else(|| {
        let whole = text.find(|c: char| !c.is_ascii_digit()).filter(|end| *end > 0);
        match whole.map(|end| (text[..end].trim_matches('0').is_empty(), text[end..].trim_start())) {
            Some((true, _)) => invalid(format!("`{text}` is no time at all")).help("give a positive whole number"),
            Some((false, "ms" | "s" | "m" | "h" | "d")) => {
                invalid(format!("`{text}` is too long")).help("a thousand years is the most: \"365250d\"")
            }
            _ => invalid(format!("`{text}` is not a duration"))
                .help("give a positive whole number and one unit of ms, s, m, h, d: \"30ms\", \"4h\""),
        }
    })
}

/// Reads a duration as [`duration`] describes; `None` when it is none.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let (number, unit) = split_number(text)?;
    let milliseconds = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    let total = number.checked_mul(milliseconds)?;
    // A thousand years: far beyond any use, and safe to add to a date.
    (total > 0 && total <= 31_557_600_000_000).then(|| Duration::from_millis(total))
}

/// A duration in the largest unit that fits without a rest: `4h`, `30ms`.
pub fn show_duration(duration: Duration) -> String {
    let ms = duration.as_millis();
    for (unit, size) in [("h", 3_600_000), ("m", 60_000), ("s", 1_000)] {
        if ms >= size && ms.is_multiple_of(size) {
            return format!("{}{unit}", ms / size);
        }
    }
    format!("{ms}ms")
}

/// `2GiB`: a positive whole number and one unit of KiB, MiB, GiB, TiB; in bytes.
pub(super) fn size(value: &DeValue<'_>) -> Result<u64, Refusal> {
    if let DeValue::Integer(_) = value {
        return Err(Refusal::wrong_type(value, "a text with a number and a unit").help("for instance \"2GiB\""));
    }
    let text = text(value)?;
    let help = "give a positive whole number and one unit of KiB, MiB, GiB, TiB: \"2GiB\"";
    let refused = || invalid(format!("`{text}` is not a size")).help(help);
    let too_large = || invalid(format!("`{text}` is too large")).help("less than 8388608TiB is the most");
    let (number, unit) = split_number(&text).ok_or_else(refused)?;
    let shift = match unit {
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        "TiB" => 40,
        _ => return Err(refused()),
    };
    // etcd keeps the quota in a signed 64-bit number.
    match number.checked_mul(1 << shift) {
        Some(0) => Err(refused()),
        Some(bytes) if bytes <= i64::MAX as u64 => Ok(bytes),
        _ => Err(too_large()),
    }
}

fn split_number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let (digits, unit) = text.split_at(end);
    Some((digits.parse().ok()?, unit.trim_start()))
}

/// A 12-bit mode as octal text: `0644`, `755`, `4755`.
pub(super) fn mode(value: &DeValue<'_>) -> Result<u16, Refusal> {
    let wanted = "a text of octal digits, for instance \"0644\"";
    if let DeValue::Integer(number) = value {
        let mut refusal = Refusal::new(&MODE_AS_NUMBER, format!("a mode must be {wanted}, not a number"))
            .label("a plain number is decimal");
        let meant = number.to_string();
        let digits = meant.trim_start_matches("0o");
        if let (Ok(read), true) = (integer(value), digits.bytes().all(|b| (b'0'..b'8').contains(&b))) {
            if number.radix() == 10 {
                refusal =
                    refusal.note(format!("{meant} decimal is {read:#06o}, not 0{digits} octal").replace("0o", "0"));
            }
            refusal = refusal.help(format!("write `\"{digits:0>4}\"`"));
        }
        return Err(refusal);
    }
    let DeValue::String(text) = value else {
        return Err(Refusal::wrong_type(value, wanted));
    };
    let octal = (3..=5).contains(&text.len()) && text.bytes().all(|b| (b'0'..b'8').contains(&b));
    match u16::from_str_radix(text, 8) {
        Ok(mode) if octal && mode <= 0o7777 => Ok(mode),
        _ => Err(invalid(format!("`{text}` is not a mode")).help(format!("give {wanted}"))),
    }
}

/// Why a text is no RFC 1123 label; `None` when it is one.
pub(super) fn label_fault(text: &str) -> Option<String> {
    let fault = match text {
        "" => "is empty".to_owned(),
        _ if text.len() > 63 => format!("has {} characters, more than 63", text.chars().count()),
        _ if text.chars().any(|c| c.is_ascii_uppercase()) => "has upper-case letters".to_owned(),
        _ if text.starts_with('-') || text.ends_with('-') => "begins or ends with a hyphen".to_owned(),
        _ => {
            let bad = text.chars().find(|c| !(c.is_ascii_lowercase() || c.is_ascii_digit() || *c == '-'))?;
            format!("holds `{}`", bad.escape_debug())
        }
    };
    Some(fault)
}

/// The refusal of a name.
pub(super) fn bad_name(text: &str, fault: &str) -> Refusal {
    Refusal::new(&INVALID_NAME, format!("the name `{}` {fault}", text.escape_debug()))
        .help("use lower-case letters, digits and inner hyphens, at most 63 (an RFC 1123 label)")
}

/// An RFC 1123 label.
pub(super) fn label(value: &DeValue<'_>) -> Result<String, Refusal> {
    let text = text(value)?;
    match label_fault(&text) {
        None => Ok(text),
        Some(fault) => Err(bad_name(&text, &fault)),
    }
}

/// Labels joined by dots.
pub(super) fn domain(value: &DeValue<'_>) -> Result<String, Refusal> {
    let text = text(value)?;
    for part in text.split('.') {
        if let Some(fault) = label_fault(part) {
            return Err(bad_name(part, &fault).note(format!("it is a part of the domain `{}`", text.escape_debug())));
        }
    }
    // RFC 1035 section 2.3.4: 255 octets on the wire are 253 characters; a node's label and its dot come in front.
    if text.len() > 253 - 64 {
        return Err(invalid("is too long: with a node's name in front it must not exceed 253 characters"));
    }
    Ok(text)
}

/// An IPv4 or IPv6 address.
pub(super) fn address(value: &DeValue<'_>) -> Result<IpAddr, Refusal> {
    let text = text(value)?;
    text.parse().map_err(|_| {
        invalid(format!("`{}` is not an IP address", text.escape_debug()))
            .help("names are not accepted: certificates and peer URLs carry the address itself")
    })
}

/// A network in prefix notation, without host bits.
pub(super) fn network(value: &DeValue<'_>) -> Result<IpNet, Refusal> {
    let text = text(value)?;
    let net: IpNet = text.parse().map_err(|_| {
        invalid(format!("`{}` is not a network", text.escape_debug())).help("for instance \"10.77.0.0/24\"")
    })?;
    if net.addr() != net.network() {
        return Err(
            invalid(format!("`{text}` has bits set beyond its prefix")).help(format!("write `\"{}\"`", net.trunc()))
        );
    }
    Ok(net)
}

/// `first-last`: two addresses of one family, both included.
pub(super) fn address_range(value: &DeValue<'_>) -> Result<(IpAddr, IpAddr), Refusal> {
    let text = text(value)?;
    let help = "give first and last address: \"10.77.1.1-10.77.1.250\"";
    let parsed = text.split_once('-').and_then(|(a, b)| Some((a.trim().parse().ok()?, b.trim().parse().ok()?)));
    match parsed {
        Some((a, b)) if IpAddr::is_ipv4(&a) != IpAddr::is_ipv4(&b) => Err(invalid("mixes IPv4 and IPv6").help(help)),
        Some((a, b)) if a > b => Err(invalid("ends before it begins").help(help)),
        Some(range) => Ok(range),
        None => Err(invalid(format!("`{}` is not a range of addresses", text.escape_debug())).help(help)),
    }
}

/// SHA-256 in hex, made lower-case.
pub(super) fn sha256(value: &DeValue<'_>) -> Result<String, Refusal> {
    let text = text(value)?;
    if text.len() != 64 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(invalid("is not a SHA-256: 64 hex digits").help("`sha256sum FILE` prints it"));
    }
    Ok(text.to_ascii_lowercase())
}

/// `sha256:` and 64 hex digits, as registries and `skopeo inspect` print it.
pub(super) fn digest(value: &DeValue<'_>) -> Result<String, Refusal> {
    let text = text(value)?;
    match text.strip_prefix("sha256:") {
        Some(hex) if hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit()) => Ok(text.to_ascii_lowercase()),
        _ => Err(invalid("is not a digest").help("write `sha256:` and 64 hex digits, as `skopeo inspect` prints them")),
    }
}

/// An architecture as OCI images name it: Go's name, and a variant after a `/`.
pub(super) fn architecture(value: &DeValue<'_>) -> Result<String, Refusal> {
    let text = text(value)?;
    let word = |w: &str| !w.is_empty() && w.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let good = match text.split_once('/') {
        Some((name, variant)) => word(name) && word(variant),
        None => word(&text),
    };
    let debian = [("x86_64", "amd64"), ("aarch64", "arm64"), ("armhf", "arm/v7"), ("armel", "arm/v5"), ("i386", "386")];
    match debian.iter().find(|(other, _)| *other == text) {
        Some((_, name)) => {
            Err(invalid(format!("`{text}` is not how OCI images name it")).help(format!("write \"{name}\"")))
        }
        None if good => Ok(text),
        None => Err(invalid("is not an architecture of an OCI image").help("for instance \"amd64\" or \"arm/v7\"")),
    }
}

/// A path on the build host.
pub(super) fn host_path(value: &DeValue<'_>) -> Result<PathBuf, Refusal> {
    line(value).map(PathBuf::from)
}

/// An absolute path inside an image, without `..`; a final `/` is dropped.
pub(super) fn image_path(value: &DeValue<'_>) -> Result<String, Refusal> {
    let text = line(value)?;
    match image_path_fault(&text) {
        None => Ok(text),
        Some(fault) => Err(invalid(format!("the path `{text}` {fault}"))),
    }
}

/// Why a text is no path inside an image.
pub(super) fn image_path_fault(text: &str) -> Option<&'static str> {
    match text {
        _ if !text.starts_with('/') => Some("is not absolute"),
        "/" => Some("is the root itself"),
        _ if text.ends_with('/') => Some("ends with `/`"),
        _ if text[1..].split('/').any(|e| e.is_empty() || e == "." || e == "..") => {
            Some("has an empty, `.` or `..` element")
        }
        _ => None,
    }
}

/// A parameter's value.
pub(super) fn parameter(value: &DeValue<'_>) -> Result<Value, Refusal> {
    match value {
        DeValue::Boolean(b) => Ok(Value::Boolean(*b)),
        DeValue::Integer(_) => integer(value).map(Value::Integer),
        DeValue::String(text) => Ok(Value::String(text.to_string())),
        DeValue::Array(elements) => {
            let texts: Result<Vec<_>, _> = elements.iter().map(|e| text(e.get_ref())).collect();
            texts.map(Value::Strings)
        }
        other => Err(Refusal::new(
            &super::table::WRONG_TYPE,
            format!(
                "a parameter is a boolean, a whole number, a text or a list of texts, not {}",
                type_with_article(other)
            ),
        )),
    }
}

/// One of some words.
pub(super) fn word<T: Copy>(value: &DeValue<'_>, words: &[(&str, T)]) -> Result<T, Refusal> {
    let text = text(value)?;
    if let Some((_, meaning)) = words.iter().find(|(word, _)| *word == text) {
        return Ok(*meaning);
    }
    let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    let mut refusal = invalid(format!("`{}` is not one of the words allowed here", text.escape_debug()));
    refusal.help = suggest::help(&text, "word", &known);
    Err(refusal)
}

/// A systemd unit name with its type (`systemd.unit(5)`).
pub(super) fn unit_name_fault(text: &str) -> Option<&'static str> {
    const TYPES: [&str; 10] =
        ["service", "socket", "target", "timer", "path", "mount", "automount", "swap", "slice", "scope"];
    let Some((stem, kind)) = text.rsplit_once('.') else {
        return Some("has no type such as `.service`");
    };
    if !TYPES.contains(&kind) {
        return Some("has no known unit type at its end");
    }
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b":-_.\\@".contains(&b);
    (stem.is_empty() || text.len() > 255 || !stem.bytes().all(allowed)).then_some("is not a valid unit name")
}

/// A systemd unit name, as a value.
pub(super) fn unit_name(value: &DeValue<'_>) -> Result<String, Refusal> {
    let text = text(value)?;
    match unit_name_fault(&text) {
        None => Ok(text),
        Some(fault) => Err(invalid(format!("the unit `{}` {fault}", text.escape_debug()))
            .help("for instance \"postgresql@17-main.service\"")),
    }
}

/// A Debian package name (Debian Policy 5.6.1).
pub(super) fn package(value: &DeValue<'_>) -> Result<String, Refusal> {
    let text = text(value)?;
    let first = text.bytes().next().is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let rest = text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"+-.".contains(&b));
    if text.len() < 2 || !first || !rest {
        return Err(invalid(format!("`{}` is not a Debian package name", text.escape_debug()))
            .help("lower-case letters, digits, `+`, `-` and `.` (Debian Policy 5.6.1)"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, want) in [
            ("30ms", Some(30)),
            ("10s", Some(10_000)),
            ("5 m", Some(300_000)),
            ("43800h", Some(157_680_000_000)),
            ("7d", Some(604_800_000)),
            ("0s", None),
            ("-1s", None),
            ("1.5h", None),
            ("30", None),
            ("h", None),
            ("1h30m", None),
            ("99999999999999999999h", None),
            ("9999999999999d", None),
        ] {
            assert_eq!(parse_duration(text).map(|d| d.as_millis()), want, "{text}");
        }
        for text in ["30ms", "4h", "90m", "15s"] {
            assert_eq!(parse_duration(text).map(show_duration).as_deref(), Some(text));
        }
    }

    #[test]
    fn what_is_wrong_with_a_duration_or_size_is_said() {
        let said = |read: fn(&DeValue<'_>) -> Result<u64, Refusal>, text: &str| {
            read(DeValue::parse(&format!("'{text}'")).unwrap().get_ref()).map_or_else(|r| r.message, |n| n.to_string())
        };
        for (text, want) in [
            ("2s", "2"),
            ("0s", "`0s` is no time at all"),
            ("1h30m", "`1h30m` is not a duration"),
            ("9999999999999d", "`9999999999999d` is too long"),
            ("99999999999999999999h", "`99999999999999999999h` is too long"),
        ] {
            assert_eq!(said(|v| duration(v).map(|d| d.as_secs()), text), want);
        }
        for (text, want) in [
            ("2KiB", "2048"),
            ("0KiB", "`0KiB` is not a size"),
            ("2KB", "`2KB` is not a size"),
            ("8388608TiB", "`8388608TiB` is too large"),
            ("99999999999TiB", "`99999999999TiB` is too large"),
        ] {
            assert_eq!(said(size, text), want);
        }
    }

    #[test]
    fn labels() {
        for good in ["a", "lis1", "a-b", "0a", &"x".repeat(63)] {
            assert_eq!(label_fault(good), None, "{good}");
        }
        for bad in ["", "A", "a_b", "-a", "a-", "a.b", "ä", &"x".repeat(64), "a b"] {
            assert!(label_fault(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn modes() {
        let read =
            |toml: &str| mode(DeValue::parse(toml).unwrap().get_ref()).map_err(|r| (r.rule.code, r.note, r.help));
        assert_eq!(read("'0644'"), Ok(0o644));
        assert_eq!(read("'755'"), Ok(0o755));
        assert_eq!(read("'4755'"), Ok(0o4755));
        let (code, note, help) = read("644").unwrap_err();
        assert_eq!(code, "mode-as-number");
        assert_eq!(note.as_deref(), Some("644 decimal is 01204, not 0644 octal"));
        assert_eq!(help.as_deref(), Some("write `\"0644\"`"));
        assert_eq!(read("0o644").unwrap_err().2.as_deref(), Some("write `\"0644\"`"));
        for bad in ["'0888'", "'rw'", "'17777'", "''", "'+644'", "true"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn units_and_paths() {
        for (name, good) in
            [("etcd.service", true), ("a@b.timer", true), ("etcd", false), ("a/b.service", false), (".service", false)]
        {
            assert_eq!(unit_name_fault(name).is_none(), good, "{name}");
        }
        for (path, good) in [("/etc/x", true), ("etc/x", false), ("/etc/../x", false), ("/etc//x", false), ("/", false)]
        {
            assert_eq!(image_path_fault(path).is_none(), good, "{path}");
        }
    }
}

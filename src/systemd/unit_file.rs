//! The syntax of unit files and drop-ins (systemd.syntax(7)), with line numbers.
//!
//! Values are kept as they are written: quotes, escapes and specifiers are left in. What a reset by an empty
//! assignment means depends on the key, so [`UnitFile::values`] applies it and [`UnitFile::all`] does not
//! (dependencies such as `Wants=` cannot be reset: systemd.unit(5)).

/// A parsed unit file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnitFile {
    /// Section headers, in order of appearance; one may be repeated.
    pub sections: Vec<Section>,
    /// Assignments, in order of appearance.
    pub assignments: Vec<Assignment>,
    /// Lines that systemd ignores with a warning.
    pub defects: Vec<Defect>,
    /// A section header is broken: reading ends there, and a unit file (not a drop-in) is then not loaded at all.
    pub broken: bool,
}

/// `[Name]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Without the brackets.
    pub name: String,
    /// From 1.
    pub line: usize,
}

/// `Key=value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// Section it stands in.
    pub section: String,
    /// Left of `=`, without blanks.
    pub key: String,
    /// Right of `=`, without blanks around; continued lines joined by a blank.
    pub value: String,
    /// Of its first line, from 1.
    pub line: usize,
}

/// A line that systemd ignores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Defect {
    /// From 1.
    pub line: usize,
    /// What is wrong with it.
    pub kind: DefectKind,
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DefectKind {
    /// `[Unit` without the closing bracket. Nothing behind it is read (`config_parse`).
    #[error("section header `{0}` has no closing `]`, and nothing behind it counts")]
    Header(String),
    /// An assignment before the first header.
    #[error("`{0}` stands before the first section")]
    OutsideSection(String),
    /// Neither header nor assignment.
    #[error("`{0}` has no `=`")]
    NoEquals(String),
    /// `=value`.
    #[error("there is no key before `=`")]
    NoKey,
    /// Bytes that are not UTF-8.
    #[error("the line is not UTF-8")]
    NotUtf8,
    /// The file ends in a continued line.
    #[error("the file ends after a `\\`")]
    OpenContinuation,
}

impl UnitFile {
    /// Parses the bytes of a unit file. Never fails: what systemd would ignore is in [`UnitFile::defects`].
    pub fn parse(bytes: &[u8]) -> UnitFile {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let mut file = UnitFile::default();
        // Bytes and first line of an assignment that goes on.
        let mut open: Option<(Vec<u8>, usize)> = None;
        for (number, raw) in lines(bytes) {
            let line = trim_start(raw);
            // Comments are skipped even between continued lines, whatever their bytes.
            if line.starts_with(b"#") || line.starts_with(b";") {
                continue;
            }
            let (mut text, first) = match open.take() {
                Some((mut before, first)) => {
                    before.extend_from_slice(line);
                    (before, first)
                }
                None => (line.to_vec(), number),
            };
            if ends_in_escape(&text) {
                text.pop();
                text.push(b' ');
                open = Some((text, first));
                continue;
            }
            file.line(&text, first);
            if file.broken {
                return file;
            }
        }
        if let Some((text, first)) = open {
            if !trim_start(&text).is_empty() {
                file.line(&text, first);
            }
            file.defects.push(Defect { line: first, kind: DefectKind::OpenContinuation });
        }
        file
    }

    fn line(&mut self, bytes: &[u8], line: usize) {
        // A line is judged when it is whole: one byte that is not UTF-8 spoils all that was continued with it.
        let Ok(text) = std::str::from_utf8(bytes) else {
            self.defects.push(Defect { line, kind: DefectKind::NotUtf8 });
            return;
        };
        let text = text.trim_matches(BLANKS);
        if text.is_empty() {
            return;
        }
        if let Some(header) = text.strip_prefix('[') {
            match header.strip_suffix(']') {
                Some(name) => self.sections.push(Section { name: name.to_owned(), line }),
                None => {
                    self.broken = true;
                    self.defects.push(Defect { line, kind: DefectKind::Header(text.to_owned()) });
                }
            }
            return;
        }
        let Some((key, value)) = text.split_once('=') else {
            self.defects.push(Defect { line, kind: DefectKind::NoEquals(text.to_owned()) });
            return;
        };
        let (key, value) = (key.trim_matches(BLANKS), value.trim_matches(BLANKS));
        let kind = match self.sections.last() {
            None => DefectKind::OutsideSection(key.to_owned()),
            Some(_) if key.is_empty() => DefectKind::NoKey,
            Some(section) => {
                let section = section.name.clone();
                self.assignments.push(Assignment { section, key: key.to_owned(), value: value.to_owned(), line });
                return;
            }
        };
        self.defects.push(Defect { line, kind });
    }

    /// Every assignment of a key, resets (empty values) too.
    pub fn all<'a>(&'a self, section: &'a str, key: &'a str) -> impl Iterator<Item = &'a Assignment> {
        self.assignments.iter().filter(move |a| a.section == section && a.key == key)
    }

    /// The assignments of a list key that stand after its last reset.
    pub fn values<'a>(&'a self, section: &'a str, key: &'a str) -> Vec<&'a Assignment> {
        let mut kept = Vec::new();
        for assignment in self.all(section, key) {
            match assignment.value.as_str() {
                "" => kept.clear(),
                _ => kept.push(assignment),
            }
        }
        kept
    }

    /// The last assignment of a key that holds one value; `None` when absent or empty.
    pub fn last<'a>(&'a self, section: &'a str, key: &'a str) -> Option<&'a Assignment> {
        self.all(section, key).last().filter(|a| !a.value.is_empty())
    }

    /// True when the file has this section.
    pub fn has_section(&self, name: &str) -> bool {
        self.sections.iter().any(|s| s.name == name)
    }
}

/// True when the text ends in a backslash that is not itself escaped.
fn ends_in_escape(text: &[u8]) -> bool {
    text.iter().rev().take_while(|b| **b == b'\\').count() % 2 == 1
}

/// What systemd takes for blank (`WHITESPACE`); other white space is part of a key.
const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];

fn trim_start(line: &[u8]) -> &[u8] {
    let blank = line.iter().take_while(|b| BLANKS.contains(&char::from(**b))).count();
    &line[blank..]
}

/// Lines with their numbers from 1, ended as systemd's `read_line` has it: by a line feed, a carriage return, a NUL, or
/// some of these together, each at most once.
pub fn lines(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    const ENDS: &[u8] = b"\n\r\0";
    let mut rest = Some(bytes).filter(|bytes| !bytes.is_empty());
    let mut number = 0;
    std::iter::from_fn(move || {
        let bytes = rest?;
        number += 1;
        let end = bytes.iter().position(|b| ENDS.contains(b)).unwrap_or(bytes.len());
        let after = &bytes[end..];
        let distinct = |at: usize| ENDS.contains(&after[at]) && !after[..at].contains(&after[at]);
        let ending = (0..after.len()).take_while(|at| distinct(*at)).count();
        rest = Some(&after[ending..]).filter(|bytes| !bytes.is_empty());
        Some((number, &bytes[..end]))
    })
}

/// Splits a value into words as `extract_first_word` does: blanks separate, quotes group, and quotes are removed.
/// Escapes are kept as they are (`\x2d` in unit names means itself).
pub fn words(value: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (_, '\\') => {
                let word = word.get_or_insert_default();
                word.push('\\');
                word.extend(chars.next());
            }
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_ascii_whitespace() => all.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    all.extend(word);
    all
}

/// A boolean as systemd reads it (`parse_boolean`); `None` when it is none.
pub fn boolean(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "1" | "yes" | "y" | "true" | "t" | "on" => Some(true),
        "0" | "no" | "n" | "false" | "f" | "off" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(text: &[u8]) -> Vec<String> {
        let file = UnitFile::parse(text);
        let assignments = file.assignments.iter().map(|a| format!("{} {}.{}={}", a.line, a.section, a.key, a.value));
        assignments.chain(file.defects.iter().map(|d| format!("{} ! {}", d.line, d.kind))).collect()
    }

    #[test]
    fn syntax() {
        let cases: &[(&str, &[u8], &[&str])] = &[
            ("plain", b"[Unit]\nWants=a b\n", &["2 Unit.Wants=a b"]),
            ("blanks", b"  [Unit]  \n  Wants =  a  \r\n", &["2 Unit.Wants=a"]),
            ("byte order mark", b"\xef\xbb\xbf[Unit]\nA=1", &["2 Unit.A=1"]),
            ("comments", b"# x\n[Unit]\n; y\n  # z\nA=1 # not a comment\n", &["5 Unit.A=1 # not a comment"]),
            ("continued", b"[Unit]\nA=1 \\\n   2\nB=3", &["2 Unit.A=1  2", "4 Unit.B=3"]),
            ("comment inside", b"[Unit]\nA=1 \\\n# B=2 \\\n;\n 3\nC=4", &["2 Unit.A=1  3", "6 Unit.C=4"]),
            ("empty line ends it", b"[Unit]\nA=1 \\\n\nB=2", &["2 Unit.A=1", "4 Unit.B=2"]),
            ("escaped backslash", b"[Unit]\nA=1\\\\\nB=2", &["2 Unit.A=1\\\\", "3 Unit.B=2"]),
            ("repeated key", b"[Unit]\nA=1\nA=\nA=2", &["2 Unit.A=1", "3 Unit.A=", "4 Unit.A=2"]),
            (
                "two sections",
                b"[Unit]\nA=1\n[Service]\nA=2\n[Unit]\nA=3",
                &["2 Unit.A=1", "4 Service.A=2", "6 Unit.A=3"],
            ),
            ("value holds =", b"[Service]\nEnvironment=A=b", &["2 Service.Environment=A=b"]),
            ("outside", b"A=1\n[Unit]", &["1 ! `A` stands before the first section"]),
            ("no equals", b"[Unit]\nWants a", &["2 ! `Wants a` has no `=`"]),
            ("no key", b"[Unit]\n=a", &["2 ! there is no key before `=`"]),
            (
                "open header",
                b"[Unit\nA=1",
                &["1 ! section header `[Unit` has no closing `]`, and nothing behind it counts"],
            ),
            ("not UTF-8", b"[Unit]\nA=\xff\nB=1", &["3 Unit.B=1", "2 ! the line is not UTF-8"]),
            ("not UTF-8 in a comment", b"[Unit]\n# \xff\nB=1", &["3 Unit.B=1"]),
            ("not UTF-8 and continued", b"[Unit]\nA=\xff \\\nB=1\nC=1", &["4 Unit.C=1", "2 ! the line is not UTF-8"]),
            (
                "other ends of line",
                b"[Unit]\rA=1\0B=1\r\nC=1\n\rD=1\r\rE=1",
                &["2 Unit.A=1", "3 Unit.B=1", "4 Unit.C=1", "5 Unit.D=1", "7 Unit.E=1"],
            ),
            ("other blanks belong to a key", "[Unit]\nA\u{a0}=1".as_bytes(), &["2 Unit.A\u{a0}=1"]),
            ("open end", b"[Unit]\nA=1 \\", &["2 Unit.A=1", "2 ! the file ends after a `\\`"]),
        ];
        for (name, text, want) in cases {
            assert_eq!(render(text), *want, "{name}");
        }
    }

    #[test]
    fn an_empty_assignment_resets_a_list() {
        let file = UnitFile::parse(b"[Service]\nExecStart=/a\nExecStart=\nExecStart=/b\nExecStart=/c\nType=x\nType=\n");
        let values: Vec<&str> = file.values("Service", "ExecStart").iter().map(|a| a.value.as_str()).collect();
        assert_eq!(values, ["/b", "/c"]);
        assert_eq!(file.all("Service", "ExecStart").count(), 4);
        assert_eq!(file.last("Service", "Type"), None);
        assert_eq!(file.last("Service", "ExecStart").map(|a| a.line), Some(5));
    }

    #[test]
    fn values_split_into_words() {
        let cases: &[(&str, &[&str])] = &[
            ("a  b\tc", &["a", "b", "c"]),
            ("\"a b\" 'c d'", &["a b", "c d"]),
            (r"dev-disk-by\x2dlabel.mount x", &[r"dev-disk-by\x2dlabel.mount", "x"]),
            ("\"\"", &[""]),
            ("", &[]),
        ];
        for (value, want) in cases {
            assert_eq!(words(value), *want, "{value}");
        }
    }
}

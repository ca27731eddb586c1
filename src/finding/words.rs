//! Messages of parsers without the names of types in the program.

/// The message of a parser with `expected u64` and the like in words.
pub fn plain(message: &str) -> String {
    const NUMBERS: [&str; 10] = ["u8", "u16", "u32", "u64", "usize", "i8", "i16", "i32", "i64", "isize"];
    let mut parts = message.split("expected ");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str("expected ");
        let end = part.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(part.len());
        let (word, rest) = part.split_at(end);
        match word {
            word if NUMBERS.contains(&word) => text.push_str("a whole number"),
            "f32" | "f64" => text.push_str("a number"),
            // `expected struct Manifest`, `expected internally tagged enum Part`: the name says nothing to a user.
            "struct" => {
                let name = rest.trim_start();
                let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(name.len());
                text.push_str("an object");
                text.push_str(&name[end..]);
                continue;
            }
            word => text.push_str(word),
        }
        text.push_str(rest);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_said_in_words() {
        let cases = [
            (
                "invalid type: string \"1\", expected u64 at line 1",
                "invalid type: string \"1\", expected a whole number at line 1",
            ),
            ("invalid type: map, expected f64", "invalid type: map, expected a number"),
            (
                "invalid type: null, expected struct Manifest at line 2",
                "invalid type: null, expected an object at line 2",
            ),
            ("expected `,` or `}` at line 3", "expected `,` or `}` at line 3"),
            ("invalid type: integer `1`, expected a string", "invalid type: integer `1`, expected a string"),
            ("missing field `node`", "missing field `node`"),
        ];
        for (message, want) in cases {
            assert_eq!(plain(message), want);
        }
        let error = serde_json::from_str::<u64>("\"x\"").unwrap_err().to_string();
        assert!(plain(&error).contains("expected a whole number"), "{error}");
    }
}

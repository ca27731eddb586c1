//! Keys and values of the registry in words, each on one line. They come from a registry and go to a terminal: nothing in
//! them is taken as it is.

use serde_json::Value as Json;

/// Most characters of something that is no value of ours.
const SHOWN: usize = 80;

/// Bytes as text, control characters escaped.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).escape_debug().to_string()
}

/// The same, cut when it is long.
pub fn short(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let cut: String = text.chars().take(SHOWN).collect();
    let more = if cut.len() < text.len() { "…" } else { "" };
    format!("{}{more}", cut.escape_debug())
}

/// The fields of a value on one line, without `v`.
pub fn fields(value: &str) -> String {
    let Ok(Json::Object(object)) = serde_json::from_str(value) else { return short(value.as_bytes()) };
    let shown = object.iter().filter(|(name, _)| *name != "v");
    shown.map(|(name, value)| format!("{} {}", name.escape_debug(), plain(value))).collect::<Vec<_>>().join(", ")
}

/// The fields that differ, new and old.
pub fn difference(old: &str, new: &str) -> String {
    let (Ok(Json::Object(before)), Ok(Json::Object(after))) = (serde_json::from_str(old), serde_json::from_str(new))
    else {
        return format!("{} (it was `{}`)", fields(new), short(old.as_bytes()));
    };
    let names = after.keys().chain(before.keys().filter(|name| !after.contains_key(*name)));
    let shown = names.filter(|name| before.get(*name) != after.get(*name)).map(|name| {
        let one = |value: Option<&Json>| value.map_or("nothing".to_owned(), plain);
        format!("{} {} instead of {}", name.escape_debug(), one(after.get(name)), one(before.get(name)))
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// A value without the quotes of JSON.
fn plain(value: &Json) -> String {
    match value {
        Json::String(text) => text.escape_debug().to_string(),
        Json::Array(list) if list.is_empty() => "none".to_owned(),
        Json::Array(list) => list.iter().map(plain).collect::<Vec<_>>().join("+"),
        Json::Object(object) if object.is_empty() => "none".to_owned(),
        Json::Object(object) => {
            let pair = |(name, value): (&String, &Json)| format!("{} {}", name.escape_debug(), plain(value));
            format!("({})", object.iter().map(pair).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// A table whose columns are as wide as what stands in them; nothing when there is no row.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let head: Vec<String> = head.iter().map(|&cell| cell.to_owned()).collect();
    let mut widths = vec![0; head.len()];
    for row in std::iter::once(&head).chain(rows) {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |row: &Vec<String>| {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    std::iter::once(&head).chain(rows).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_one_harmless_line() {
        let cases = [
            (r#"{"v":1,"a":"x","b":[],"c":{"d":[1,"y"]},"e":{}}"#, "a x, b none, c (d 1+y), e none"),
            (r#"{"v":1,"a":"\u001b[31m"}"#, "a \\u{1b}[31m"),
            ("junk \u{1b}", "junk \\u{1b}"),
        ];
        for (value, shown) in cases {
            assert_eq!(fields(value), shown);
        }
        assert_eq!(fields(&"x".repeat(1 << 20)).chars().count(), SHOWN + 1);
        assert_eq!(
            difference(r#"{"a":1,"b":2}"#, r#"{"a":1,"c":3}"#),
            "c 3 instead of nothing, b nothing instead of 2"
        );
        assert_eq!(difference("\u{1b}", r#"{"a":1}"#), "a 1 (it was `\\u{1b}`)");
    }

    #[test]
    fn tables_line_up() {
        let rows = [vec!["a".to_owned(), "long".to_owned()], vec!["abc".to_owned(), String::new()]];
        assert_eq!(table(&["X", "Y"], &rows), "X    Y\na    long\nabc\n");
        assert_eq!(table(&["X"], &[]), "");
    }
}

//! "Did you mean": the closest known word.

/// The known word closest to `word`, when it is close enough to be what was meant.
pub fn closest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = word.to_lowercase().replace('_', "-");
    known
        .into_iter()
        .map(|k| (strsim::damerau_levenshtein(&folded, &k.to_lowercase()), k))
        .filter(|(distance, k)| *distance <= 1 + k.chars().count().min(word.chars().count()) / 4)
        .min()
        .map(|(_, k)| k)
}

/// Help for an unknown word: the closest, else all of them when they are few.
pub fn help(word: &str, what: &str, known: &[&str]) -> Option<String> {
    if let Some(meant) = closest(word, known.iter().copied()) {
        return Some(format!("did you mean `{meant}`?"));
    }
    match known {
        [] => Some(format!("none is declared: no {what} would do")),
        _ if known.len() <= 24 => {
            let all: Vec<String> = known.iter().map(|k| format!("`{k}`")).collect();
            Some(format!("known here: {}", all.join(", ")))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_near_word_is_meant() {
        let known = ["address", "site", "profile", "round-trip"];
        for (word, want) in [
            ("adress", Some("address")),
            ("addresses", Some("address")),
            ("Site", Some("site")),
            ("round_trip", Some("round-trip")),
            ("prolife", Some("profile")),
            ("color", None),
            ("x", None),
        ] {
            assert_eq!(closest(word, known), want, "{word}");
        }
    }
}

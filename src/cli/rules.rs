//! All rules of all families, for `--list` and `explain`.

use crate::finding::Rule;
use crate::{declaration, image, live, overlay, pki};

/// The families, in the order in which data flows.
pub fn all() -> Vec<&'static Rule> {
    let families: [&[&Rule]; 7] = [
        declaration::RULES,
        pki::RULES,
        overlay::RULES,
        image::base::RULES,
        image::lock::RULES,
        image::rules::RULES,
        &live::RULES,
    ];
    let usage: [&Rule; 3] = [&super::explain::UNKNOWN_CODE, &super::why::PATH_UNKNOWN, &super::init::MESH_EXISTS];
    [families.concat(), crate::verify::rules(), usage.to_vec()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_kebab_case_and_explained() {
        let rules = all();
        let mut codes: Vec<_> = rules.iter().map(|r| r.code).collect();
        codes.sort_unstable();
        let count = codes.len();
        codes.dedup();
        assert_eq!(codes.len(), count, "a code is used twice");
        for rule in rules {
            assert!(
                rule.code.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'),
                "{}",
                rule.code
            );
            assert!(!rule.summary.is_empty() && !rule.summary.ends_with('.'), "{}: {}", rule.code, rule.summary);
            assert!(rule.explanation.len() > rule.summary.len(), "{} is not explained", rule.code);
        }
    }
}

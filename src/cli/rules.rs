//! All rules of all families, for `--list`, `explain`, `[allow]` and `docs/findings.md`.

use time::OffsetDateTime;

use super::usage;
use crate::declaration::Rulebook;
use crate::finding::{Rule, Severity};
use crate::process::analyze;
use crate::{declaration, image, live, overlay, pki, verify};

/// The families, in the order in which data flows.
pub fn all() -> Vec<&'static Rule> {
    let live = [live::RULES.to_vec(), live::bootstrap::RULES.to_vec(), live::claims::RULES.to_vec()].concat();
    [of_declaration(), pki::RULES.to_vec(), of_image(true, true), live, usage::RULES.to_vec()].concat()
}

/// What is applied to a declaration until it is a plan.
pub fn of_declaration() -> Vec<&'static Rule> {
    let families: [&[&Rule]; 5] =
        [declaration::RULES, overlay::RULES, image::base::RULES, image::lock::RULES, image::rules::RULES];
    families.concat()
}

/// What `fitout pki status` applies to the certificate store.
pub fn of_status() -> Vec<&'static Rule> {
    let applied = [
        "store-missing",
        "store-damaged",
        "store-foreign",
        "store-not-yet-valid",
        "certificate-expired",
        "certificate-due",
    ];
    pki::RULES.iter().copied().filter(|rule| applied.contains(&rule.code)).collect()
}

/// What `fitout verify` applies to an image, alone or beside others, by itself or with the declaration.
pub fn of_image(with_others: bool, declared: bool) -> Vec<&'static Rule> {
    let skipped = |rule: &&Rule| match rule.family {
        "declared" => !declared,
        "mesh" => !with_others,
        _ => false,
    };
    verify::rules().into_iter().chain(analyze::RULES.iter().copied()).filter(|rule| !skipped(rule)).collect()
}

/// What the declaration needs to judge `[allow]`, today.
pub fn rulebook() -> Rulebook {
    let rules = all().into_iter().map(|rule| (rule, never_allowed(rule))).collect();
    Rulebook { today: OffsetDateTime::now_utc().date(), rules }
}

/// Why findings of a rule may not be allowed; `None` when they may.
fn never_allowed(rule: &Rule) -> Option<&'static str> {
    match rule.code {
        "allow-expired" => return Some("an entry that is over is not kept alive by another"),
        "container-truncated" | "container-damaged" => {
            return Some("of an archive that cannot be read to its end nothing is proven");
        }
        "container-duplicate"
        | "container-escape"
        | "container-below"
        | "container-misread"
        | "container-malformed" => {
            return Some("another reader may unpack something else than what was proven");
        }
        "container-manifest" | "container-manifest-unreadable" | "container-manifest-newer" => {
            return Some("without its manifest nothing is known of what the image should be");
        }
        "declared-other-mesh" => return Some("the image is not of this mesh, so this file has no say in it"),
        "tls-authority-key" => return Some("who has an authority's key can issue any certificate: no date mends that"),
        "private-key-other-node" => {
            return Some("who has this image can act as the other node: no date mends that");
        }
        "live-members-unknown" => return Some("without a list of members nothing about them is proven"),
        "certificate-expired" => return None,
        _ => {}
    }
    let made_from = ["declaration", "overlay", "base", "lock", "image", "usage", "pki", "registry"];
    let stops = made_from.contains(&rule.family) && rule.severity == Severity::Error;
    stops.then_some("nothing is made, or said, while it is there")
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

    #[test]
    fn what_is_said_to_be_applied_exists() {
        assert_eq!(of_status().len(), 6);
        assert!(of_image(false, true).len() > of_image(false, false).len());
    }

    /// The codes of [`never_allowed`] are codes of rules, so that none is lost by a new name.
    #[test]
    fn what_may_never_be_allowed() {
        let refused: Vec<&str> =
            rulebook().rules.iter().filter(|(_, why)| why.is_some()).map(|(r, _)| r.code).collect();
        for code in [
            "allow-expired",
            "container-truncated",
            "container-damaged",
            "container-duplicate",
            "container-escape",
            "container-below",
            "container-misread",
            "container-malformed",
            "container-manifest",
            "container-manifest-unreadable",
            "container-manifest-newer",
            "declared-other-mesh",
            "tls-authority-key",
            "private-key-other-node",
            "live-members-unknown",
            "toml-syntax",
            "store-missing",
            "overlay-conflict",
        ] {
            assert!(refused.contains(&code), "{code}");
        }
        for code in
            ["unused", "many-voters", "etcd-version-known", "certificate-expired", "live-alarm-nospace", "ledger-mode"]
        {
            assert!(all().iter().any(|rule| rule.code == code) && !refused.contains(&code), "{code}");
        }
    }
}

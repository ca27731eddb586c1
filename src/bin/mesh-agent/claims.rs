//! The claim of a service with a data set: the one replica of the set in this site (design: no two replicas share a site).
//!
//! A claim has no lease and is not given back at the end: it stays until an operator releases or transfers it.

use fitout::layout::values::{self, Claim};
use fitout::layout::{Label, Time};

/// How this node stands to a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// This node holds it.
    Held,
    /// It does not, and why, in words.
    Refused(String),
}

/// What is to be done about a claim that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// There is none: create it, if it is still absent then.
    Create,
    /// Nothing: this is how it stands.
    Stands(Standing),
}

/// Judges a claim as it was read.
pub fn judge(read: Option<&[u8]>, node: &Label, set: &Label, site: &Label) -> Next {
    let Some(value) = read else { return Next::Create };
    let standing = match values::decode::<Claim>(value) {
        Ok(claim) if claim.node == *node => Standing::Held,
        Ok(claim) => Standing::Refused(format!(
            "data set `{set}` in site `{site}` is claimed by node `{}` since {}: an operator transfers it with `fitout \
             registry claim transfer`",
            claim.node, claim.since
        )),
        Err(error) => {
            Standing::Refused(format!("the claim of data set `{set}` in site `{site}` cannot be read: {error}"))
        }
    };
    Next::Stands(standing)
}

/// The registry does not let this node claim.
pub fn denied(set: &Label, site: &Label, why: &str) -> Standing {
    Standing::Refused(format!("the registry does not let this node claim data set `{set}` in site `{site}`: {why}"))
}

/// The claim of this node.
///
/// # Errors
/// When it cannot be written as a value.
pub fn of(node: &Label, since: Time, generation: std::num::NonZeroU32) -> Result<String, String> {
    let claim = Claim { node: node.clone(), since, generation, extra: Default::default() };
    values::encode(&claim).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_node_a_site() {
        let label = |text: &str| text.parse::<Label>().unwrap();
        let (node, set, site) = (label("lis1"), label("orders"), label("lisbon"));
        let claim = |node: &str| {
            let since = "2026-11-30T10:53:00Z".parse().unwrap();
            of(&label(node), since, std::num::NonZeroU32::MIN).unwrap()
        };
        let said = |read: Option<&str>| judge(read.map(str::as_bytes), &node, &set, &site);
        assert_eq!(said(None), Next::Create);
        assert_eq!(said(Some(&claim("lis1"))), Next::Stands(Standing::Held));
        for (value, part) in [
            (claim("lis2"), "is claimed by node `lis2` since 2026-11-30T10:53:00Z"),
            (claim("lis10"), "is claimed by node `lis10`"),
            ("{}".to_owned(), "cannot be read: `v` is missing"),
            (String::new(), "cannot be read"),
        ] {
            match said(Some(&value)) {
                Next::Stands(Standing::Refused(why)) => assert!(why.contains(part), "{why}"),
                other => panic!("{value}: {other:?}"),
            }
        }
    }
}

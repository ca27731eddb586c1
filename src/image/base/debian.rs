//! A base made from a Debian suite.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;

use super::{Base, FORMAT, Reuse, Source, Work};
use crate::finding::{Failure, Problem, Spanned};
use crate::tree::Digest;

/// What a Debian root file system is made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DebianRequest {
    /// Suite or code name: `trixie`.
    pub suite: String,
    /// Packages beyond the essential ones, sorted.
    pub packages: Vec<String>,
    /// Mirror; the tool's default when absent.
    pub mirror: Option<String>,
    /// `SOURCE_DATE_EPOCH` of the caller: no file is newer. Without it a base that is made again differs in its times.
    pub source_date_epoch: Option<i64>,
}

impl DebianRequest {
    /// The key under which the result is kept. Debian's archive moves on beneath it: a base stays as it was made
    /// until it is no longer in the cache, and the lock file tells when another one takes its place.
    fn key(&self) -> Digest {
        let text = serde_json::json!({ "format": FORMAT, "architecture": std::env::consts::ARCH, "debian": self });
        Digest::of(text.to_string().as_bytes())
    }
}

pub(super) fn prepare(
    work: &Work,
    suite: &Spanned<String>,
    mirror: Option<&Spanned<String>>,
    packages: &BTreeSet<String>,
    make: &dyn Fn(&DebianRequest, &Path) -> Result<(), Failure>,
) -> Result<Base, Problem> {
    let own = work.base.packages.iter().map(|p| p.value.clone());
    let all: BTreeSet<String> = packages.iter().cloned().chain(own).collect();
    let request = DebianRequest {
        suite: suite.value.clone(),
        packages: all.into_iter().collect(),
        mirror: mirror.map(|m| m.value.clone()),
        source_date_epoch: source_date_epoch(std::env::var("SOURCE_DATE_EPOCH").ok().as_deref())?,
    };
    let source =
        Source { key: request.key(), span: &suite.span, name: format!("debian {}", suite.value), made_here: true };
    work.obtain(&source, |unfinished| {
        let count = request.packages.len();
        let what = format!("making the base debian {} with {count} packages by mmdebstrap", request.suite);
        let _step = work.progress.start(&what, None);
        make(&request, unfinished.path())?;
        Ok(Reuse::Yes)
    })
}

fn source_date_epoch(value: Option<&str>) -> Result<Option<i64>, Failure> {
    let Some(value) = value.filter(|v| !v.is_empty()) else { return Ok(None) };
    value.parse().map(Some).map_err(|_| {
        Failure::new(format!("`SOURCE_DATE_EPOCH` is `{value}`, not a number of seconds"))
            .help("set it to whole seconds since 1970, or unset it")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_follows_from_the_whole_request() {
        let request = DebianRequest {
            suite: "trixie".into(),
            packages: vec!["dbus".into(), "etcd-server".into()],
            mirror: None,
            source_date_epoch: None,
        };
        assert_eq!(request.key(), request.clone().key());
        let others = [
            DebianRequest { suite: "sid".into(), ..request.clone() },
            DebianRequest { packages: vec!["dbus".into()], ..request.clone() },
            DebianRequest { mirror: Some("http://mirror.example/archive".into()), ..request.clone() },
            DebianRequest { source_date_epoch: Some(0), ..request.clone() },
        ];
        for other in others {
            assert_ne!(request.key(), other.key(), "{other:?}");
        }
    }

    #[test]
    fn source_date() {
        assert_eq!(source_date_epoch(None), Ok(None));
        assert_eq!(source_date_epoch(Some("")), Ok(None));
        assert_eq!(source_date_epoch(Some("1700000000")), Ok(Some(1_700_000_000)));
        assert!(source_date_epoch(Some("yesterday")).is_err());
    }
}

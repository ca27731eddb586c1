//! `fitout check`: images against the living registry, with the image's own client certificate or an operator's.

use std::path::Path;
use std::time::Duration;

use super::credentials::given::Given;
use super::credentials::{AUTHORITY, CERTIFICATE, Credentials, KEY};
use super::endpoint::Endpoint;
use super::etcdctl::Etcdctl;
use super::judge::{self, Declared};
use super::observe::{Earlier, Observed, observe};
use crate::finding::{Failure, Finding};
use crate::image::manifest::{MANIFEST_PATH, Manifest};
use crate::image::peek::peek;
use crate::verify::image::Image;
use crate::verify::scan::from_tree;

pub use super::judge::RULES;

/// How to ask.
#[derive(Debug)]
pub struct Options {
    /// Endpoints; empty: one per first member of the birth record.
    pub endpoints: Vec<Endpoint>,
    /// How long each endpoint may take; all are asked at once, so the check takes no longer in all.
    pub timeout: Duration,
    /// An operator's certificate to show instead of the image's own.
    pub given: Option<Given>,
    /// For the commands that findings print.
    pub etcdctl: Etcdctl,
}

impl Default for Options {
    fn default() -> Options {
        let timeout = Duration::from_secs(5);
        Options { endpoints: Vec::new(), timeout, given: None, etcdctl: Etcdctl::default() }
    }
}

/// Checks of several images in one run: what one has seen of the registry is not asked again for the next.
#[derive(Debug, Default)]
pub struct Session {
    options: Options,
    earlier: Earlier,
}

impl Session {
    /// A session.
    pub fn new(options: Options) -> Session {
        Session { options, earlier: Earlier::default() }
    }

    /// Compares an image with the living registry. It only reads.
    ///
    /// # Errors
    /// When the image has no manifest or no usable client certificate, or when no endpoint answers at all.
    pub fn check(&mut self, image: &Image) -> Result<Vec<Finding>, Failure> {
        let options = &self.options;
        let manifest = manifest(image)?;
        let credentials = match &options.given {
            Some(given) => given.for_image(image)?,
            None => Credentials::of_image(image)?,
        };
        let endpoints = endpoints(manifest, options)?;
        let observed = observe(&endpoints, &credentials, options.timeout, &mut self.earlier);
        anybody(&observed, options.timeout)?;
        let etcdctl = options.etcdctl.for_image(&image.name, &credentials);
        Ok(judge::judge(&Declared::of(manifest, etcdctl), &observed))
    }
}

/// Compares one image with the living registry.
///
/// # Errors
/// As [`Session::check`].
pub fn check(image: &Image, options: Options) -> Result<Vec<Finding>, Failure> {
    Session::new(options).check(image)
}

/// Reads of an image what [`Session::check`] needs, and no more.
///
/// # Errors
/// When the file cannot be read or is no tar.
pub fn open(path: &Path) -> Result<Image, Failure> {
    let tree = peek(path, &[MANIFEST_PATH, AUTHORITY, CERTIFICATE, KEY])?;
    Ok(from_tree(path.display().to_string(), tree))
}

/// The embedded manifest.
///
/// # Errors
/// When there is none.
pub fn manifest(image: &Image) -> Result<&Manifest, Failure> {
    image.manifest.as_ref().ok_or_else(|| {
        Failure::new(format!("{}: no readable /usr/lib/fitout/image.json in it", image.name))
            .help("only images made by `fitout build` can be checked")
    })
}

/// The endpoints to ask.
///
/// # Errors
/// When the birth record has a peer URL that is none, or none at all.
pub fn endpoints(manifest: &Manifest, options: &Options) -> Result<Vec<Endpoint>, Failure> {
    if !options.endpoints.is_empty() {
        return Ok(options.endpoints.clone());
    }
    let endpoints: Result<Vec<Endpoint>, _> = manifest.birth.peers.values().map(|u| Endpoint::of_peer_url(u)).collect();
    let endpoints = endpoints.map_err(|e| Failure::new(format!("the image's birth record: {e}")))?;
    if endpoints.is_empty() {
        return Err(Failure::new("the image's birth record names no member").help("give `--endpoint URL`"));
    }
    Ok(endpoints)
}

/// Nothing can be said when nothing was heard.
fn anybody(observed: &Observed, timeout: Duration) -> Result<(), Failure> {
    let silent: Vec<String> = observed
        .views
        .iter()
        .filter_map(|view| match &view.answer {
            Err(trouble) if trouble.kind.is_silence() => Some(format!("\n  {}: {}", view.endpoint, trouble.reason)),
            _ => None,
        })
        .collect();
    if silent.len() < observed.views.len() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "no endpoint of the registry answers within {} s:{}",
        timeout.as_secs_f32(),
        silent.concat()
    ))
    .help(
        "is this host in the mesh's network? A registry that was never started is started by \
             `systemctl enable --now mesh-registry.target` on its voters",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::credentials::Shown;
    use crate::live::handshake::{Kind, Trouble};
    use crate::live::observe::View;

    fn seen(kinds: &[Kind]) -> Observed {
        let view = |(n, kind): (usize, &Kind)| View {
            endpoint: format!("10.0.0.{n}").parse().unwrap(),
            answer: Err(Trouble::new(*kind, "why")),
            greeting: None,
            stranger_let_in: None,
        };
        let client = Shown {
            whose: "x".into(),
            given: false,
            user: None,
            issuer: String::new(),
            validity: (0, 1),
            of_the_mesh: true,
            for_clients: true,
        };
        Observed { views: kinds.iter().enumerate().map(view).collect(), client, at: 0 }
    }

    #[test]
    fn nothing_heard_is_a_failure_and_says_of_whom() {
        let cases: &[(&[Kind], bool)] = &[
            (&[Kind::Unreachable, Kind::Silent], true),
            (&[Kind::Unreachable, Kind::ServerExpired], false),
            (&[Kind::ClientRefused], false),
        ];
        for (kinds, fails) in cases {
            let result = anybody(&seen(kinds), Duration::from_secs(5));
            assert_eq!(result.is_err(), *fails, "{kinds:?}");
            if let Err(failure) = result {
                assert!(failure.message.contains("\n  https://10.0.0.1:2379: why"), "{failure}");
            }
        }
    }
}

//! `fitout check`: images against the living registry, with the image's own client certificate or an operator's.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::credentials::given::Given;
use super::credentials::{AUTHORITY, CERTIFICATE, Credentials, KEY};
use super::endpoint::Endpoint;
use super::etcdctl::Etcdctl;
use super::handshake::Kind;
use super::judge::keys::Mine;
use super::judge::{self, Declared};
use super::look;
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
    /// Endpoints; empty: one per declared voter, as the image has them.
    pub endpoints: Vec<Endpoint>,
    /// How long each endpoint may take; all are asked at once, so the check takes no longer in all.
    pub timeout: Duration,
    /// An operator's certificate to show instead of the image's own.
    pub given: Option<Given>,
    /// For the commands that findings print.
    pub etcdctl: Etcdctl,
    /// Print the steps that replace the image's node, also while it runs.
    pub replace: bool,
    /// Count the registry's writes for so long; zero: not at all.
    pub write_rate: Duration,
}

impl Default for Options {
    fn default() -> Options {
        let timeout = Duration::from_secs(5);
        let (given, etcdctl) = (None, Etcdctl::default());
        Options { endpoints: Vec::new(), timeout, given, etcdctl, replace: false, write_rate: Duration::ZERO }
    }
}

/// Checks of several images in one run: what one has seen of the registry is not asked again for the next.
#[derive(Debug, Default)]
pub struct Session {
    options: Options,
    earlier: Earlier,
    keys: look::Earlier,
}

impl Session {
    /// A session.
    pub fn new(options: Options) -> Session {
        Session { options, earlier: Earlier::default(), keys: look::Earlier::default() }
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
        anybody(&observed, options.timeout, &manifest.birth.peers)?;
        let etcdctl = options.etcdctl.for_image(&image.name, &credentials);
        let declared = Declared { replace: options.replace, ..Declared::of(manifest, etcdctl) };
        let mut findings = judge::judge(&declared, &observed);
        if let Some((endpoint, cluster)) = judge::reader(&declared, &observed) {
            let own = options.given.is_some().then(|| Credentials::of_image(image).ok()).flatten();
            let looked = self.keys.look(&endpoint, &credentials, own.as_ref(), &self.options);
            findings.extend(judge::keys::judge(
                &Mine::of(manifest),
                &looked.seen(cluster, &credentials.shown.whose, observed.at),
            ));
        }
        Ok(findings)
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
/// When the image has a peer URL that is none, or none at all.
pub fn endpoints(manifest: &Manifest, options: &Options) -> Result<Vec<Endpoint>, Failure> {
    if !options.endpoints.is_empty() {
        return Ok(options.endpoints.clone());
    }
    // Voters come and go after the birth: those that are declared now are asked, where the image says who they are.
    let declared = manifest.registry.as_ref().filter(|registry| !registry.members.is_empty());
    let peers: Vec<&String> = match declared {
        Some(registry) => registry.members.values().map(|member| &member.peer_url).collect(),
        None => manifest.birth.peers.values().collect(),
    };
    let endpoints: Result<Vec<Endpoint>, _> = peers.into_iter().map(|url| Endpoint::of_peer_url(url)).collect();
    let endpoints = endpoints.map_err(|e| Failure::new(format!("the image's record of the registry: {e}")))?;
    if endpoints.is_empty() {
        return Err(Failure::new("the image names no member of the registry").help("give `--endpoint URL`"));
    }
    Ok(endpoints)
}

/// Nothing can be said when nothing was heard. `peers` are the peer URLs of the first members by node.
fn anybody(observed: &Observed, timeout: Duration, peers: &BTreeMap<String, String>) -> Result<(), Failure> {
    let troubles = || observed.views.iter().filter_map(|view| Some((&view.endpoint, view.answer.as_ref().err()?)));
    let silent: Vec<String> = troubles()
        .filter(|(_, trouble)| trouble.kind.is_silence())
        .map(|(endpoint, trouble)| format!("\n  {endpoint}: {}", trouble.reason))
        .collect();
    if silent.len() < observed.views.len() {
        return Ok(());
    }
    let of_kind = |kind: Kind| -> Vec<String> {
        troubles().filter(|(_, trouble)| trouble.kind == kind).map(|(endpoint, _)| node_at(peers, endpoint)).collect()
    };
    let message = format!("no endpoint of the registry answers within {} s:{}", timeout.as_secs_f32(), silent.concat());
    Err(Failure::new(message).help(advice(&of_kind(Kind::Silent), &of_kind(Kind::Unreachable))))
}

/// The node at an endpoint; the endpoint itself when it is none of the first members'.
fn node_at(peers: &BTreeMap<String, String>, endpoint: &Endpoint) -> String {
    let here = |url: &str| Endpoint::of_peer_url(url).is_ok_and(|e| e.host == endpoint.host);
    let node = peers.iter().find(|(_, url)| here(url)).map(|(node, _)| node.clone());
    node.unwrap_or_else(|| endpoint.to_string())
}

/// What to do when nobody answers: `waiting` took the connection and said nothing, as etcd does from the opening of its
/// client port until it has joined a quorum (etcd `embed/etcd.go` serves only after ReadyNotify).
fn advice(waiting: &[String], away: &[String]) -> String {
    let start = "`systemctl enable --now mesh-registry.target`";
    match (waiting, away) {
        ([], _) => format!(
            "is this host in the mesh's network? A registry that was never started is started by {start} on its voters"
        ),
        (waiting, []) => format!(
            "{} listen and say nothing, as voters do until they have a quorum: they do not reach each other. Look at port \
             2380 between them, and on each at `journalctl -u etcd -e`",
            waiting.join(", ")
        ),
        (waiting, away) => format!(
            "a voter listens and says nothing until it has a quorum, and {} does so: start the others with {start} on {}",
            waiting.join(", "),
            away.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::credentials::Shown;
    use crate::live::handshake::Trouble;
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
            let result = anybody(&seen(kinds), Duration::from_secs(5), &BTreeMap::new());
            assert_eq!(result.is_err(), *fails, "{kinds:?}");
            if let Err(failure) = result {
                assert!(failure.message.contains("\n  https://10.0.0.1:2379: why"), "{failure}");
            }
        }
    }

    #[test]
    fn a_voter_that_waits_for_the_others_is_told_from_one_that_is_away() {
        let peers = BTreeMap::from([0, 1].map(|n| (format!("node{n}"), format!("https://10.0.0.{n}:2380"))));
        //   seen                                                    said
        let cases: &[(&[Kind], &str)] = &[
            (&[Kind::Unreachable, Kind::Unreachable], "is this host in the mesh's network?"),
            (
                &[Kind::Silent, Kind::Unreachable, Kind::Unreachable],
                "until it has a quorum, and node0 does so: start the others with `systemctl enable --now \
                 mesh-registry.target` on node1, https://10.0.0.2:2379",
            ),
            (
                &[Kind::Silent, Kind::Silent],
                "node0, node1 listen and say nothing, as voters do until they have a quorum",
            ),
        ];
        for (kinds, said) in cases {
            let failure = anybody(&seen(kinds), Duration::from_secs(5), &peers).unwrap_err();
            let help = failure.help.unwrap();
            assert!(help.contains(said), "{kinds:?}: {help}");
        }
    }
}

//! The commands that findings print, so that they work when pasted into a shell of this host.
//!
//! Texts that come from the registry (names, URLs) are not put into a command unless they are harmless there: a member
//! may call itself anything.

use std::path::{Path, PathBuf};

use super::credentials::given::{files, pairs};
use super::credentials::{AUTHORITY, Credentials, Files};
use super::endpoint::Endpoint;
use crate::finding::Finding;
use crate::pki::inspect::Certificate;
use crate::pki::key;
use crate::process::command::quote;

/// The operator whose certificate is proposed where there is none yet.
const NEW_OPERATOR: &str = "admin";

/// How an operator's `etcdctl` on this host gets at the registry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Etcdctl {
    /// Certificate, key and authority; `None` when this host has none.
    files: Option<Files>,
    /// What makes the files, when they are not there yet.
    issue: Option<String>,
    /// The image, from which the authority can be taken.
    image: String,
}

/// One step of a sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    text: String,
}

impl Step {
    /// A command on this host.
    pub fn here(command: impl AsRef<str>) -> Step {
        Step { text: format!("`{}`", command.as_ref()) }
    }
    /// A command on a node.
    pub fn on(node: &str, when: &str, command: impl AsRef<str>) -> Step {
        let when = if when.is_empty() { String::new() } else { format!(", {when}") };
        Step { text: format!("on {node}{when}: `{}`", command.as_ref()) }
    }
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl Etcdctl {
    /// With these files.
    pub fn with(files: Files) -> Etcdctl {
        Etcdctl { files: Some(files), ..Etcdctl::default() }
    }

    /// With what the certificate store of this host has: the first operator, else one that is yet to be issued by
    /// `fitout OPTIONS pki issue`.
    pub fn of_store(store: &Path, options: &[String]) -> Etcdctl {
        let Ok(store) = store.canonicalize() else { return Etcdctl::default() };
        if !store.join("store.toml").exists() {
            return Etcdctl::default();
        }
        let operators = store.join("operators");
        let first = pairs(&operators).into_iter().find_map(|name| files(&operators.join(name)).ok());
        if let Some(files) = first {
            return Etcdctl::with(files);
        }
        let authority = store.join("authority");
        // An authority's key that is not on this host leaves the question open: then the key is looked at when it is used.
        let encrypted = std::fs::read(authority.join("client.key")).is_ok_and(|pem| key::is_encrypted(&pem));
        let mut words = vec!["fitout".to_owned()];
        words.extend(options.iter().map(|word| quote(word)));
        words.extend(["pki", "issue", "--operator", NEW_OPERATOR].map(str::to_owned));
        let path = |ending: &str| operators.join(format!("{NEW_OPERATOR}.{ending}"));
        let files = Files {
            certificate: path("crt"),
            key: path("key"),
            encrypted,
            authority: Some(authority.join("client.crt")),
        };
        Etcdctl { files: Some(files), issue: Some(words.join(" ")), ..Etcdctl::default() }
    }

    /// For one image: an authority beside the certificate counts only when it is the image's.
    pub fn for_image(&self, image: &str, credentials: &Credentials) -> Etcdctl {
        let mut own = Etcdctl { image: image.to_owned(), ..self.clone() };
        if let Some(files) = &mut own.files {
            let same = |path: &PathBuf| {
                let bundle = std::fs::read(path).ok().and_then(|pem| Certificate::bundle(pem).ok());
                bundle.is_some_and(|all| all.iter().map(Certificate::to_rustls).eq(credentials.authorities.clone()))
            };
            files.authority = files.authority.take().filter(same);
        }
        own
    }

    /// Adds steps to a finding as numbered notes, with what they need first: every finding can be pasted alone.
    pub fn steps(&self, finding: Finding, endpoints: &[String], steps: Vec<Step>) -> Finding {
        let first = self.environment(endpoints);
        let all = first.into_iter().chain(steps).enumerate();
        all.fold(finding, |finding, (n, step)| finding.note(format!("{}. {}", n + 1, step.text)))
    }

    fn environment(&self, endpoints: &[String]) -> Vec<Step> {
        let Some(files) = &self.files else {
            let text = "where the certificate store is: `fitout pki issue --operator admin`; then check again with \
                 `--credentials` and what it wrote: `etcdctl` needs it, and this line will set it";
            return vec![Step { text: text.to_owned() }];
        };
        let mut steps: Vec<Step> = self.issue.iter().map(Step::here).collect();
        let shell = |path: &Path| quote(&path.to_string_lossy());
        let authority = match &files.authority {
            Some(path) => shell(path),
            None => {
                steps.push(Step::here(format!("tar -xOf {} ./{AUTHORITY} > client-ca.crt", quote(&self.image))));
                "client-ca.crt".to_owned()
            }
        };
        let key = if files.encrypted {
            let plain = "operator.key";
            steps.push(Step::here(format!("(umask 077; openssl pkey -in {} -out {plain})", shell(&files.key))));
            plain.to_owned()
        } else {
            shell(&files.key)
        };
        steps.push(Step::here(format!(
            "export ETCDCTL_API=3 ETCDCTL_ENDPOINTS={} ETCDCTL_CACERT={authority} ETCDCTL_CERT={} ETCDCTL_KEY={key}",
            quote(&endpoints.join(",")),
            shell(&files.certificate),
        )));
        steps
    }
}

/// A URL for a command; `None` when it is not simply scheme, host and port.
pub fn url(text: &str) -> Option<String> {
    text.parse::<Endpoint>().ok().map(|endpoint| endpoint.to_string())
}

/// A member's name for a command; `None` when it is none that `fitout` gives.
pub fn name(text: &str) -> Option<&str> {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.' || c == '_';
    (!text.is_empty() && !text.starts_with('-') && text.chars().all(legal)).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{Rule, Severity};

    static RULE: Rule = Rule { code: "x", family: "x", severity: Severity::Notice, summary: "", explanation: "" };

    fn notes(etcdctl: &Etcdctl) -> Vec<String> {
        let endpoints = ["https://10.0.0.1:2379".to_owned(), "https://10.0.0.2:2379".to_owned()];
        etcdctl.steps(RULE.finding("", ""), &endpoints, vec![Step::here("etcdctl x"), Step::on("lis1", "", "y")]).notes
    }

    fn with(authority: bool, encrypted: bool) -> Etcdctl {
        let files = Files {
            certificate: "/p k/anna.crt".into(),
            key: "/pki/anna.key".into(),
            encrypted,
            authority: authority.then(|| "/pki/ca.crt".into()),
        };
        Etcdctl { image: "it's.tar.gz".into(), ..Etcdctl::with(files) }
    }

    #[test]
    fn what_the_commands_need_comes_first() {
        let env = "export ETCDCTL_API=3 ETCDCTL_ENDPOINTS=https://10.0.0.1:2379,https://10.0.0.2:2379";
        assert_eq!(
            notes(&with(true, false)),
            [
                &format!(
                    "1. `{env} ETCDCTL_CACERT=/pki/ca.crt ETCDCTL_CERT='/p k/anna.crt' ETCDCTL_KEY=/pki/anna.key`"
                ),
                "2. `etcdctl x`",
                "3. on lis1: `y`"
            ]
        );
        assert_eq!(
            notes(&with(false, true))[..3],
            [
                r"1. `tar -xOf 'it'\''s.tar.gz' ./etc/mesh/pki/client-ca.crt > client-ca.crt`",
                "2. `(umask 077; openssl pkey -in /pki/anna.key -out operator.key)`",
                &format!(
                    "3. `{env} ETCDCTL_CACERT=client-ca.crt ETCDCTL_CERT='/p k/anna.crt' ETCDCTL_KEY=operator.key`"
                ),
            ]
        );
        assert!(notes(&Etcdctl::default())[0].contains("--credentials"), "no store, no certificate");
    }

    #[test]
    fn a_store_without_operators_proposes_one() {
        let directory = tempfile::tempdir().unwrap();
        let options = ["-C".to_owned(), "a b".to_owned()];
        assert_eq!(Etcdctl::of_store(directory.path(), &options), Etcdctl::default(), "no store");
        assert_eq!(Etcdctl::of_store(&directory.path().join("nowhere"), &options), Etcdctl::default());
        std::fs::write(directory.path().join("store.toml"), "").unwrap();
        let proposed = Etcdctl::of_store(directory.path(), &options);
        assert_eq!(notes(&proposed)[0], "1. `fitout -C 'a b' pki issue --operator admin`");
        let operators = directory.path().join("operators");
        std::fs::create_dir(&operators).unwrap();
        for name in ["anna.crt", "anna.key", "lone.crt"] {
            std::fs::write(operators.join(name), "").unwrap();
        }
        let there = Etcdctl::of_store(directory.path(), &options);
        assert!(notes(&there)[1].contains("/operators/anna.crt"), "{there:?}");
    }

    #[test]
    fn nothing_from_the_registry_becomes_a_command() {
        for bad in ["", "-rf", "a b", "x'; reboot; '", "$(reboot)", "a`b`"] {
            assert_eq!(name(bad), None, "{bad}");
        }
        for bad in ["https://:2380", "https://a b:2380", "https://x';reboot:2380", "https://$(reboot):2380", "a`b`"] {
            assert_eq!(url(bad), None, "{bad}");
        }
        assert_eq!(name("lis1"), Some("lis1"));
        assert_eq!(url("https://10.0.0.1:2380").as_deref(), Some("https://10.0.0.1:2380"));
    }
}

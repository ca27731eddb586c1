//! Files of the store: names, modes, reading, and writing pairs whole.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::finding::words;
use crate::finding::{Failure, Problem};
use crate::pki::inspect::Certificate;
use crate::pki::key::{self, KeyError};
use crate::pki::passphrase::Passphrase;
use crate::pki::profiles::AuthorityName;
use crate::pki::{Leaf, NodePki, Use, rules};
use crate::tree::Digest;

/// Version of the layout.
pub(super) const SCHEMA: u32 = 1;

/// Start of the names of files that are being written.
const SCRATCH: &str = ".fitout-";
/// A pair is complete when its certificate has reached this name.
const NEXT: &str = "next";

/// `store.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Meta {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Name of the mesh that it was made for.
    pub mesh: String,
    /// Whether new keys are encrypted.
    pub encrypted: bool,
}

impl Meta {
    /// A store serves the mesh that it was made for.
    pub(super) fn check_mesh(&self, files: &Files, mesh: &str) -> Result<(), Problem> {
        if self.mesh == mesh {
            return Ok(());
        }
        let text = format!("it was made for mesh `{}`, and the declaration is of mesh `{mesh}`", self.mesh);
        Err(rules::FOREIGN
            .finding(files.directory.display().to_string(), text)
            .help("name this mesh's own store with `--pki DIR`, or make one with `fitout pki init`")
            .into())
    }
}

/// The paths of a store.
#[derive(Debug, Clone)]
pub(super) struct Files {
    directory: PathBuf,
}

/// `<stem>.crt`.
pub(super) fn certificate_path(stem: &Path) -> PathBuf {
    with(stem, "crt")
}

/// `<stem>.key`.
pub(super) fn key_path(stem: &Path) -> PathBuf {
    with(stem, "key")
}

/// Appends an ending; a node's name may hold no dot, but an ending is never replaced.
fn with(stem: &Path, ending: &str) -> PathBuf {
    let mut name = stem.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}

impl Files {
    pub(super) fn new(directory: &Path) -> Files {
        Files { directory: directory.to_owned() }
    }
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }
    pub(super) fn meta_path(&self) -> PathBuf {
        self.directory.join("store.toml")
    }
    pub(super) fn lock_path(&self) -> PathBuf {
        self.directory.join("lock")
    }
    /// Stem of an authority's files.
    pub(super) fn authority(&self, name: AuthorityName) -> PathBuf {
        self.directory.join("authority").join(name.as_str())
    }
    pub(super) fn authority_key(&self, name: AuthorityName) -> PathBuf {
        key_path(&self.authority(name))
    }
    pub(super) fn nodes(&self) -> PathBuf {
        self.directory.join("nodes")
    }
    pub(super) fn operators(&self) -> PathBuf {
        self.directory.join("operators")
    }
    /// Directory of a node's files.
    pub(super) fn node(&self, name: &str) -> PathBuf {
        self.nodes().join(name)
    }
    /// Stem of an operator's files.
    pub(super) fn operator(&self, name: &str) -> PathBuf {
        self.operators().join(name)
    }

    /// Reads `store.toml`.
    pub(super) fn meta(&self) -> Result<Meta, Problem> {
        let path = self.meta_path();
        let subject = path.display().to_string();
        let text = match crate::regular::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(rules::MISSING
                    .finding(self.directory.display().to_string(), "there is no certificate store here")
                    .help("make one with `fitout pki init`, or name it with `--pki DIR`")
                    .into());
            }
            Err(error) => return Err(Failure::io("read", &path, &error).into()),
        };
        let damaged = |message: String| Problem::from(rules::DAMAGED.finding(&subject, message));
        // The schema first, so that a newer store is not called damaged for a key that is new.
        let any: toml::Table = text.parse().map_err(|e: toml::de::Error| damaged(words::plain(e.message())))?;
        match any.get("schema").and_then(toml::Value::as_integer) {
            Some(schema) if schema == i64::from(SCHEMA) => {}
            Some(schema) => {
                return Err(damaged(format!("its schema is {schema}; this version of fitout knows {SCHEMA}")));
            }
            None => return Err(damaged("it names no schema".into())),
        }
        toml::from_str(&text).map_err(|e| damaged(words::plain(e.message())))
    }

    pub(super) fn write_meta(&self, meta: &Meta) -> Result<(), Failure> {
        let text = toml::to_string(meta).map_err(|e| Failure::new(format!("cannot write store.toml: {e}")))?;
        self.write(&self.meta_path(), text.as_bytes(), 0o644)
    }

    /// A certificate with its PEM; `None` when there is no such file.
    pub(super) fn certificate(&self, stem: &Path) -> Result<Option<(String, Certificate)>, Problem> {
        let path = certificate_path(stem);
        let Some(pem) = read_if_there(&path)? else { return Ok(None) };
        match Certificate::from_pem(&pem) {
            Ok(certificate) => Ok(Some((String::from_utf8_lossy(&pem).into_owned(), certificate))),
            Err(error) => Err(rules::DAMAGED
                .finding(path.display().to_string(), format!("the file {error}"))
                .help("restore it from a copy, or remove it and its key and issue again")
                .into()),
        }
    }

    /// An authority's PEM bundle, with the certificate that signs.
    pub(super) fn bundle(&self, name: AuthorityName) -> Result<(String, Certificate), Problem> {
        let path = certificate_path(&self.authority(name));
        let damaged = |message: String| {
            let help = "restore it from a copy; without it nothing new can be trusted by what is in the field";
            Problem::from(rules::DAMAGED.finding(path.display().to_string(), message).help(help))
        };
        let pem = read_if_there(&path)?.ok_or_else(|| damaged("the authority's certificate is not there".into()))?;
        let mut all = Certificate::bundle(&pem).map_err(|error| damaged(format!("the file {error}")))?;
        let certificate = all.swap_remove(0);
        if !certificate.is_ca {
            return Err(damaged("the first certificate is no authority".into()));
        }
        // Two authorities that change places would sign everything anew, and nothing in the field would trust it.
        let title = certificate.common_name.as_deref().unwrap_or("");
        if !title.ends_with(&format!(" {name} authority")) {
            return Err(damaged(format!("it is the certificate of `{title}`, not of the {name} authority")));
        }
        Ok((String::from_utf8_lossy(&pem).into_owned(), certificate))
    }

    /// A private key (PKCS#8, DER), proven to be the certificate's.
    pub(super) fn key(
        &self,
        stem: &Path,
        passphrase: Option<&Passphrase>,
        certificate: &Certificate,
    ) -> Result<Zeroizing<Vec<u8>>, Problem> {
        let (path, certificate_path) = (key_path(stem), certificate_path(stem));
        let subject = path.display().to_string();
        let pem = read_if_there(&path)?.map(Zeroizing::new).ok_or_else(|| {
            rules::DAMAGED
                .finding(&subject, format!("there is a certificate ({}) and no key", certificate_path.display()))
                .help("restore the key from a copy, or remove the certificate and issue again")
        })?;
        let encrypted = key::is_encrypted(&pem);
        if !encrypted {
            check_mode(&path)?;
        }
        let wrong = || {
            rules::PASSPHRASE
                .finding(&subject, "the passphrase does not open this key")
                .note(format!("the key of {} is wanted", certificate_path.display()))
        };
        let der = key::from_pem(&pem, passphrase).map_err(|error| match error {
            KeyError::Passphrase => wrong(),
            KeyError::Encrypted => {
                rules::PASSPHRASE.finding(&subject, "the key is encrypted and there is no passphrase")
            }
            error => rules::DAMAGED.finding(&subject, format!("the file {error}")),
        })?;
        let kind = rustls::pki_types::PrivateKeyDer::try_from(der.as_slice()).ok();
        let public = kind.as_ref().and_then(|kind| key::public_key(kind).ok()).map(|spki| Digest::of(&spki));
        match public {
            Some(public) if public == certificate.public_key => Ok(der),
            // Decrypted to something that is no key: the padding was right by chance.
            None if encrypted => Err(wrong().into()),
            None => Err(rules::DAMAGED.finding(&subject, "the file holds a private key that cannot be used").into()),
            Some(_) => Err(rules::KEY_MISMATCH
                .finding(&subject, format!("the key does not belong to the certificate {}", certificate_path.display()))
                .help("restore both files from one copy, or remove both and issue again")
                .into()),
        }
    }

    /// Writes a pair so that it appears whole, also after a crash at any moment; see [`Files::recover`].
    pub(super) fn write_pair(&self, stem: &Path, certificate_pem: &str, key_pem: &str) -> Result<(), Failure> {
        let (key, certificate) = (key_path(stem), certificate_path(stem));
        self.write(&with(&key, NEXT), key_pem.as_bytes(), 0o600)?;
        self.write(&with(&certificate, NEXT), certificate_pem.as_bytes(), 0o644)?;
        finish(&key)?;
        finish(&certificate)
    }

    /// Finishes pairs that a crash left complete but not renamed, and drops what is incomplete. The lock is held.
    pub(super) fn recover(&self) -> Result<(), Failure> {
        let mut directories = vec![self.directory.clone(), self.directory.join("authority"), self.operators()];
        directories.extend(list(&self.nodes())?.into_iter().filter(|p| p.is_dir()));
        for directory in directories {
            let entries = list(&directory)?;
            for entry in &entries {
                let name = entry.file_name().unwrap_or_default().to_string_lossy();
                if let Some(certificate) = name.strip_suffix(".crt.next") {
                    let stem = directory.join(certificate);
                    if entries.contains(&with(&key_path(&stem), NEXT)) {
                        finish(&key_path(&stem))?;
                    }
                    finish(&certificate_path(&stem))?;
                }
            }
            for entry in list(&directory)? {
                let name = entry.file_name().unwrap_or_default().to_string_lossy();
                if name.ends_with(".key.next") || name.starts_with(SCRATCH) {
                    std::fs::remove_file(&entry).map_err(|e| Failure::io("remove", &entry, &e))?;
                }
            }
        }
        Ok(())
    }

    /// An empty directory beside the store, to make a new one in.
    pub(super) fn scratch_beside(&self) -> Result<tempfile::TempDir, Failure> {
        let parent = match self.directory.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        std::fs::create_dir_all(parent).map_err(|e| Failure::io("make", parent, &e))?;
        tempfile::Builder::new()
            .prefix(SCRATCH)
            .permissions(std::fs::Permissions::from_mode(0o700))
            .tempdir_in(parent)
            .map_err(|e| Failure::io("write into", parent, &e))
    }

    /// Gives a finished store its name. Only an empty directory may be there already.
    pub(super) fn move_to(&self, scratch: tempfile::TempDir, directory: &Path) -> Result<(), Failure> {
        std::fs::rename(scratch.path(), directory).map_err(|error| {
            let failure = Failure::io("make", directory, &error);
            match error.kind() {
                std::io::ErrorKind::DirectoryNotEmpty | std::io::ErrorKind::NotADirectory => {
                    failure.help("something else is there; name another place with `--pki DIR`")
                }
                _ => failure,
            }
        })?;
        // It has been moved: there is nothing left to clean up.
        let _ = scratch.keep();
        sync_parent(directory)
    }

    fn write(&self, path: &Path, bytes: &[u8], mode: u32) -> Result<(), Failure> {
        let parent = path.parent().unwrap_or(&self.directory);
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(parent)
            .map_err(|e| Failure::io("make", parent, &e))?;
        let io = |e: std::io::Error| Failure::io("write", path, &e);
        let mut file = tempfile::Builder::new().prefix(SCRATCH).tempfile_in(parent).map_err(io)?;
        file.write_all(bytes).map_err(io)?;
        file.as_file().set_permissions(std::fs::Permissions::from_mode(mode)).map_err(io)?;
        file.as_file().sync_all().map_err(io)?;
        file.persist(path).map_err(|e| io(e.error))?;
        sync_parent(path)
    }
}

/// `x.next` becomes `x`.
fn finish(path: &Path) -> Result<(), Failure> {
    let next = with(path, NEXT);
    std::fs::rename(&next, path).map_err(|e| Failure::io("rename", &next, &e))?;
    sync_parent(path)
}

fn sync_parent(path: &Path) -> Result<(), Failure> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    std::fs::File::open(parent).and_then(|d| d.sync_all()).map_err(|e| Failure::io("sync", parent, &e))
}

/// The entries of a directory, sorted; none when it is not there.
pub(super) fn list(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let io = |e: &std::io::Error| Failure::io("read", directory, e);
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io(&error)),
    };
    let mut all = Vec::new();
    for entry in entries {
        all.push(entry.map_err(|e| io(&e))?.path());
    }
    all.sort();
    Ok(all)
}

fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, Failure> {
    match crate::regular::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::io("read", path, &error)),
    }
}

fn check_mode(path: &Path) -> Result<(), Problem> {
    let mode = std::fs::metadata(path).map_err(|e| Failure::io("read", path, &e))?.permissions().mode() & 0o7777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    Err(rules::KEY_MODE
        .finding(
            path.display().to_string(),
            format!("the private key has mode {mode:04o}; others than its owner get at it"),
        )
        .help(format!("chmod 600 {}", path.display()))
        .into())
}

/// Puts a node's leaves together.
pub(super) fn node_pki(peer: &str, client: &str, leaves: Vec<Leaf>, node: &str) -> Result<NodePki, Problem> {
    let mut found: std::collections::BTreeMap<Use, Leaf> =
        leaves.into_iter().map(|leaf| (leaf.purpose, leaf)).collect();
    Ok(NodePki {
        peer_authority_pem: peer.to_owned(),
        client_authority_pem: client.to_owned(),
        server: found.remove(&Use::Server),
        peer: found.remove(&Use::Peer),
        client: found
            .remove(&Use::Client)
            .ok_or_else(|| Failure::new(format!("no client certificate was made for node {node}")))?,
    })
}

//! An operator's certificate from a directory, as `fitout pki issue --operator NAME` writes it into the store:
//! `NAME.crt` and `NAME.key`.

use std::path::{Path, PathBuf};

use rustls::pki_types::PrivateKeyDer;
use zeroize::Zeroizing;

use super::{AUTHORITY, Credentials, Files, Shown, of_image};
use crate::finding::{Failure, Problem};
use crate::pki::inspect::Certificate;
use crate::pki::key::{self, KeyError};
use crate::pki::passphrase::Source;
use crate::verify::image::Image;

/// Where an authority's certificate may lie beside a pair: of a directory made by hand, of a node's `/etc/mesh/pki`,
/// and of a store, seen from `operators/`.
const AUTHORITIES: &[&str] = &["client-ca.crt", "ca.crt", "../authority/client.crt"];

/// Where `fitout` writes them.
const HOW: &str =
    "`fitout pki issue --operator NAME` writes NAME.crt and NAME.key to operators/ in the certificate store";

/// An operator's certificate with its key.
#[derive(Debug)]
pub struct Given {
    /// The files.
    pub files: Files,
    certificate_pem: Vec<u8>,
    chain: Vec<Certificate>,
    key: Zeroizing<Vec<u8>>,
    key_pem: Zeroizing<Vec<u8>>,
}

impl Given {
    /// Reads a pair. `place` is a directory that holds one, `DIRECTORY/NAME`, or the certificate itself.
    ///
    /// # Errors
    /// When there is none or more than one, a file cannot be read, the key is encrypted and there is no passphrase or a
    /// wrong one, or key and certificate are not of one pair.
    pub fn open(place: &Path, passphrase: &Source<'_>) -> Result<Given, Problem> {
        let stem = stem(place)?;
        let files = files(&stem)?;
        let (certificate, key_path) = (files.certificate.display(), files.key.display());
        let certificate_pem = read(&files.certificate)?;
        let chain =
            Certificate::bundle(&certificate_pem).map_err(|e| Failure::new(format!("{certificate} {e}")).help(HOW))?;
        let key_pem = Zeroizing::new(read(&files.key)?);
        let passphrase = if files.encrypted { Some(passphrase.existing()?) } else { None };
        let key = key::from_pem(&key_pem, passphrase.as_ref()).map_err(|error| {
            let failure = Failure::new(format!("{key_path} {error}"));
            if error == KeyError::Passphrase { failure.help("it is the store's passphrase") } else { failure.help(HOW) }
        })?;
        let parsed = PrivateKeyDer::try_from(key.as_slice())
            .map_err(|e| Failure::new(format!("{key_path} holds a key that cannot be used: {e}")))?;
        // An encrypted key that a wrong passphrase "opens" shows here too: CBC has no check value.
        let public = key::public_key(&parsed).map_err(|error| Failure::new(format!("{key_path} {error}")))?;
        if public != chain[0].spki {
            return Err(Failure::new(format!("{key_path} is not the key of {certificate}"))
                .help("both must be of one issue: copy them again together")
                .into());
        }
        let key_pem = if files.encrypted {
            let plain = key::to_pem(&key, None).map_err(|error| Failure::new(format!("{key_path} {error}")))?;
            Zeroizing::new(plain.as_bytes().to_vec())
        } else {
            key_pem
        };
        Ok(Given { files, certificate_pem, chain, key, key_pem })
    }

    /// The files of a pair without reading its key: `place` as for [`Given::open`].
    ///
    /// # Errors
    /// When there is none or more than one.
    pub fn files(place: &Path) -> Result<Files, Failure> {
        files(&stem(place)?)
    }

    /// The credentials for an image: this certificate, and the authority that the image trusts.
    ///
    /// # Errors
    /// When the image's authority is missing or cannot be read.
    pub fn for_image(&self, image: &Image) -> Result<Credentials, Failure> {
        let authority_pem = of_image(image, AUTHORITY)?;
        self.with_authority(&format!("{}: /{AUTHORITY}", image.name), authority_pem)
            .map_err(|failure| failure.help("`fitout verify` looks closer"))
    }

    /// The credentials with an authority for the servers; `name` is what it is called in messages.
    ///
    /// # Errors
    /// When the authority is no PEM bundle of certificates.
    pub fn with_authority(&self, name: &str, authority_pem: Vec<u8>) -> Result<Credentials, Failure> {
        let authorities =
            Certificate::bundle(&authority_pem).map_err(|error| Failure::new(format!("{name} {error}")))?;
        let key = PrivateKeyDer::try_from(self.key.to_vec()).map_err(Failure::new)?;
        let whose = format!("the certificate {}", self.files.certificate.display());
        Ok(Credentials {
            authority_pem,
            certificate_pem: self.certificate_pem.clone(),
            key_pem: self.key_pem.clone(),
            authorities: authorities.iter().map(Certificate::to_rustls).collect(),
            chain: self.chain.iter().map(Certificate::to_rustls).collect(),
            key,
            shown: Shown::of(&self.chain, &authorities, whose, true),
        })
    }
}

/// The files of a pair, whole paths where they exist.
///
/// # Errors
/// When one of the two is missing.
pub fn files(stem: &Path) -> Result<Files, Failure> {
    let with = |ending: &str| {
        let mut path = stem.as_os_str().to_owned();
        path.push(ending);
        PathBuf::from(path)
    };
    let (certificate, key) = (with(".crt"), with(".key"));
    for (path, other) in [(&certificate, &key), (&key, &certificate)] {
        if !path.exists() {
            let text = format!("{} is missing beside {}", path.display(), other.display());
            return Err(Failure::new(text).help("certificate and key belong together: copy both"));
        }
    }
    let whole = |path: &Path| path.canonicalize().map_err(|e| Failure::io("open", path, &e));
    let directory = stem.parent().unwrap_or(Path::new("."));
    let authority = AUTHORITIES.iter().map(|name| directory.join(name)).find(|path| path.exists());
    let encrypted = key::is_encrypted(&read(&key)?);
    Ok(Files {
        certificate: whole(&certificate)?,
        key: whole(&key)?,
        encrypted,
        authority: authority.map(|path| whole(&path)).transpose()?,
    })
}

/// Names of all pairs in a directory, sorted.
pub fn pairs(directory: &Path) -> Vec<String> {
    let names = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let mut stems: Vec<String> = names
        .filter_map(|name| Some(name.strip_suffix(".crt")?.to_owned()))
        .filter(|stem| directory.join(format!("{stem}.key")).exists())
        .collect();
    stems.sort();
    stems
}

/// From what was named to the path without ending.
fn stem(place: &Path) -> Result<PathBuf, Failure> {
    let shown = place.display();
    if place.is_dir() {
        let pairs = pairs(place);
        return match pairs.as_slice() {
            [one] => Ok(place.join(one)),
            // A node's own: client, peer and server lie together.
            many if many.iter().any(|name| name == "client") => Ok(place.join("client")),
            [] => {
                let lone = std::fs::read_dir(place).map_err(|e| Failure::io("read", place, &e))?;
                let lone = lone.flatten().map(|e| e.path());
                // One half of a pair is a better hint than none.
                match lone.into_iter().find(|p| p.extension().is_some_and(|e| e == "key" || e == "crt")) {
                    Some(half) => files(&half.with_extension("")).map(|_| half.with_extension("")),
                    None => Err(Failure::new(format!("{shown} holds no certificate with its key")).help(HOW)),
                }
            }
            many => {
                let all: Vec<String> = many.iter().map(|name| place.join(name).display().to_string()).collect();
                Err(Failure::new(format!("{shown} holds {} certificates with keys", many.len()))
                    .help(format!("name one: `--credentials {}`", all.join("`, `--credentials "))))
            }
        };
    }
    if place.extension().is_some_and(|e| e == "crt" || e == "key") {
        return Ok(place.with_extension(""));
    }
    let mut certificate = place.as_os_str().to_owned();
    certificate.push(".crt");
    if Path::new(&certificate).exists() {
        return Ok(place.to_owned());
    }
    Err(Failure::new(format!("there is no directory {shown}, and no certificate {shown}.crt")).help(HOW))
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|e| Failure::io("read", path, &e))
}

#[cfg(test)]
mod tests;

//! How every registry verb gets at the registry: the declaration, an operator's certificate, and the first member that
//! answers and knows a leader.

use std::path::PathBuf;
use std::time::Duration;

use crate::cli::pki::Unlock;
use crate::cli::{Global, Ui, project};
use crate::declaration::{self, Mesh};
use crate::finding::record::DECLARATION;
use crate::finding::{Failure, Problem};
use crate::live::credentials::Files;
use crate::live::credentials::given::{Given, pairs};
use crate::live::endpoint::Endpoint;
use crate::live::reach::{Reached, reach};
use crate::process::command::quote;

/// Options of every verb that speaks to the registry.
#[derive(Debug, Clone, clap::Args)]
pub struct Access {
    /// Client URL of a member; may be given several times [default: every declared voter, or the control plane]
    #[arg(long = "endpoint", value_name = "URL")]
    pub endpoints: Vec<Endpoint>,
    /// Operator's certificate: a directory with NAME.crt and NAME.key, or DIR/NAME [default: the first of operators/ in
    /// the certificate store]
    #[arg(long, value_name = "DIR")]
    pub credentials: Option<PathBuf>,
    /// How the key is opened when it is encrypted.
    #[command(flatten)]
    pub unlock: Unlock,
    /// How long to wait for an answer, in seconds; all endpoints are asked at once
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub timeout: Duration,
}

/// Where the registry should be, and by what certificate; nothing was asked yet.
#[derive(Debug)]
pub struct Place {
    /// The declaration.
    pub mesh: Mesh,
    /// The endpoints to try.
    pub endpoints: Vec<Endpoint>,
    /// Files of the operator's pair.
    pub files: Files,
    /// PEM bundle of the mesh's `client` authority.
    pub authority: PathBuf,
}

/// The files that etcdctl is given.
#[derive(Debug)]
pub struct EtcdctlFiles {
    /// Authority of the servers.
    pub authority: PathBuf,
    /// The operator's certificate.
    pub certificate: PathBuf,
    /// Its key, not encrypted.
    pub key: PathBuf,
}

/// An open door.
#[derive(Debug)]
pub struct Registry {
    /// The declaration.
    pub mesh: Mesh,
    /// The member that answered, its client, and the credentials that were shown.
    pub reached: Reached,
    /// Every endpoint that was tried.
    pub endpoints: Vec<Endpoint>,
    /// How long each call may take.
    pub timeout: Duration,
}

/// A number of seconds on the command line.
///
/// # Errors
/// When it is none, or not between 0.1 and 3600.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    if (0.1..=3600.0).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err("must be between 0.1 and 3600 seconds".to_owned())
    }
}

impl Access {
    /// Reads the declaration and finds the certificate's files.
    ///
    /// # Errors
    /// When the declaration is wrong or there is no operator's certificate.
    pub fn place(&self, global: &Global, ui: &Ui) -> Result<Place, Problem> {
        let loaded = project::declared(global, ui)?;
        ui.applied(DECLARATION, declaration::RULES);
        ui.findings(&loaded.warnings);
        let mesh = loaded.mesh;
        let store = global.pki_directory();
        let given = self.credentials_in(&store)?;
        let files = Given::files(&given)?;
        let of_store = store.join("authority/client.crt");
        let authority = if of_store.exists() {
            of_store.canonicalize().map_err(|e| Failure::io("open", &of_store, &e))?
        } else {
            files.authority.clone().ok_or_else(|| {
                Failure::new(format!("there is no certificate of the mesh's client authority: {} is not there", of_store.display()))
                    .help("name the certificate store with `--pki DIR`, or put the authority beside the operator's certificate as client-ca.crt")
            })?
        };
        let declared = || mesh.registry_nodes().map(|node| Endpoint::of_address(node.address.value)).collect();
        let endpoints = if self.endpoints.is_empty() { declared() } else { self.endpoints.clone() };
        Ok(Place { mesh, endpoints, files, authority })
    }

    /// The pair that is meant: the one named, else the store's first operator.
    fn credentials_in(&self, store: &std::path::Path) -> Result<PathBuf, Failure> {
        if let Some(place) = &self.credentials {
            return Ok(place.clone());
        }
        let operators = store.join("operators");
        match pairs(&operators).into_iter().next() {
            Some(name) => Ok(operators.join(name)),
            None => Err(Failure::new(format!("there is no operator's certificate in {}", operators.display()))
                .help("issue one with `fitout pki issue --operator NAME`, or name one with `--credentials DIR`")),
        }
    }

    /// Opens the operator's key and shakes hands with every endpoint; the first that answers and knows a leader is taken.
    ///
    /// # Errors
    /// As [`Access::place`]; when the key cannot be opened or no endpoint can be used, with the reason of each.
    pub fn open(&self, global: &Global, ui: &Ui) -> Result<Registry, Problem> {
        let place = self.place(global, ui)?;
        let given = Given::open(&place.files.certificate, &self.unlock.source())?;
        let authority = std::fs::read(&place.authority).map_err(|e| Failure::io("read", &place.authority, &e))?;
        let credentials = given.with_authority(&place.authority.display().to_string(), authority)?;
        let reached = reach(&place.endpoints, credentials, self.timeout)?;
        Ok(Registry { mesh: place.mesh, reached, endpoints: place.endpoints, timeout: self.timeout })
    }
}

impl Place {
    /// The files as etcdctl can read them.
    ///
    /// # Errors
    /// When the key is encrypted.
    pub fn files_for_etcdctl(self) -> Result<EtcdctlFiles, Failure> {
        let Place { files, authority, .. } = self;
        if files.encrypted {
            let (key, certificate) = (files.key.to_string_lossy(), files.certificate.to_string_lossy());
            return Err(Failure::new(format!("{key} is encrypted, and etcdctl cannot read it")).help(format!(
                "make a plain copy in a safe place and name it: `(umask 077; mkdir plain; openssl pkey -in {} -out \
                 plain/operator.key; cp {} plain/operator.crt)`, then `fitout registry env --credentials plain`",
                quote(&key),
                quote(&certificate)
            )));
        }
        Ok(EtcdctlFiles { authority, certificate: files.certificate, key: files.key })
    }
}

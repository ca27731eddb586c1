//! What the gate proves, one step a file: a name, what must be true, and how it is found out.

mod announces;
mod checked;
mod handle;
mod identity;
mod quorum;
mod stopped;
mod writes;

use std::time::{Duration, Instant};

use super::machine::Machine;
use super::wait::Late;
use crate::declaration::Topology;
use crate::finding::{Failure, Finding};
use crate::image::manifest::Manifest;
use crate::live::check::manifest;
use crate::live::client::Client;
use crate::live::credentials::Credentials;
use crate::live::endpoint::Endpoint;
use crate::verify::image::Image;

/// The unit with which an administrator starts a node's part of the registry.
const HANDLE: &str = "mesh-registry.target";
/// The announcer's unit.
const ANNOUNCER: &str = "mesh-agent.service";
/// How long a machine may take to boot; it takes one or two seconds on an idle host.
const BOOT: Duration = Duration::from_secs(90);
/// "Returns at once": the handle starts nothing that it waits for, so seconds are for a busy host.
const AT_ONCE: Duration = Duration::from_secs(10);
/// How long the registry may take to come together.
const TOGETHER: Duration = Duration::from_secs(60);

/// One step.
#[derive(Clone, Copy)]
pub struct Step {
    /// Name.
    pub name: &'static str,
    /// What must be true.
    pub claim: &'static str,
    /// Finds out; adds measured facts to the list.
    pub run: fn(&mut Stage<'_>, &mut Vec<String>) -> Result<(), Stop>,
}

/// Why a step ends early.
#[derive(Debug)]
pub enum Stop {
    /// Its claim does not hold: the cause.
    Broken(String),
    /// It could not be found out.
    Failure(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop::Failure(failure)
    }
}

impl From<Late> for Stop {
    fn from(late: Late) -> Stop {
        Stop::Broken(late.to_string())
    }
}

/// The steps of a topology, in order.
pub fn of(topology: Topology) -> Vec<Step> {
    match topology {
        Topology::Quorum => {
            vec![
                stopped::STEP,
                handle::ALONE,
                quorum::VOTERS,
                identity::STEP,
                checked::STEP,
                announces::STEP,
                writes::ONE_VOTER_AWAY,
            ]
        }
        Topology::Single => {
            vec![
                stopped::STEP,
                quorum::CONTROL_PLANE,
                identity::STEP,
                checked::STEP,
                announces::STEP,
                writes::CONTROL_PLANE,
            ]
        }
    }
}

/// The booted machines with their images.
pub struct Stage<'a> {
    /// One per image, in the same order.
    pub machines: Vec<Machine>,
    /// The images.
    pub images: &'a [Image],
    /// Takes findings as they count for this mesh.
    pub judge: &'a dyn Fn(Vec<Finding>) -> Vec<Finding>,
}

impl Stage<'_> {
    /// What all images agree on.
    ///
    /// # Errors
    /// When there is no image.
    pub fn manifest(&self) -> Result<&Manifest, Failure> {
        self.images.first().ok_or_else(|| Failure::new("no image is given")).and_then(manifest)
    }

    /// The machines on which etcd runs.
    fn registry(&self) -> impl Iterator<Item = &Machine> {
        self.machines.iter().filter(|m| m.part.runs_registry())
    }

    /// A client of one machine's etcd, with the certificate of that node's own image.
    fn client(&self, node: &str, deadline: Instant) -> Result<Client, Stop> {
        let found = self.machines.iter().zip(self.images).find(|(m, _)| m.node == node);
        let (machine, image) = found.ok_or_else(|| Failure::new(format!("no machine of {node}")))?;
        let url = crate::etcd::urls::client_url(machine.address);
        let endpoint: Endpoint = url.parse().map_err(|e| Failure::new(format!("{node}: {e}")))?;
        let credentials = Credentials::of_image(image)?;
        Client::new(&endpoint, &credentials, deadline).map_err(|t| Stop::Broken(format!("{endpoint}: {}", t.reason)))
    }
}

/// True when the machine's image has the announcer; profiles of users may lack it.
fn announces(machine: &Machine) -> Result<bool, Failure> {
    Ok(machine.systemctl(&["show", "--property=LoadState", "--value", ANNOUNCER])? == "loaded")
}

/// `lis1, por1`.
fn names<'a>(machines: impl IntoIterator<Item = &'a Machine>) -> String {
    machines.into_iter().map(|m| m.node.as_str()).collect::<Vec<_>>().join(", ")
}

/// `3.51 s`.
fn seconds(duration: Duration) -> String {
    format!("{:.2} s", duration.as_secs_f64())
}

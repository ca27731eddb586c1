//! Looks at everything that tells how this node is.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};

use fitout::layout::Label;

use crate::clock::{self, Clock};
use crate::facts::{Facts, handed_over};
use crate::health::Observed;
use crate::{certificates, etcd_health, ports, units};

/// How long systemd or etcd may take to say how they are.
const PATIENCE: Duration = Duration::from_secs(3);

/// What is kept from look to look.
#[derive(Debug, Default)]
pub struct Sources {
    clock: Clock,
}

impl Sources {
    /// Looks. The last backup is the registry's to tell.
    pub async fn look(&mut self, facts: &Facts) -> Observed {
        let synchronized = !facts.own_clock || clock::is_synchronized();
        let given = std::env::var_os("CREDENTIALS_DIRECTORY").map(std::path::PathBuf::from);
        let certificates = facts.certificates.iter();
        Observed {
            services: services(facts).await,
            etcd: match &facts.etcd {
                Some(address) => Some(etcd_health::ask(address, PATIENCE).await),
                None => None,
            },
            certificates: certificates
                .map(|(purpose, path)| certificates::read(purpose.clone(), &handed_over(path, given.as_deref())))
                .collect(),
            backup: None,
            clock: self.clock.look(SystemTime::now(), Instant::now(), synchronized),
        }
    }
}

/// A service is up when its unit is active, and when something listens on its port.
async fn services(facts: &Facts) -> BTreeMap<Label, Option<String>> {
    if facts.services.is_empty() {
        return BTreeMap::new();
    }
    let with_unit: Vec<&str> = facts.services.values().filter_map(|service| service.unit.as_deref()).collect();
    let states = match with_unit.is_empty() {
        true => Ok(Vec::new()),
        false => units::ask(&with_unit, PATIENCE).await,
    };
    let listening = ports::listening();
    let wrong = |service: &crate::facts::Service| {
        if let Some(unit) = &service.unit {
            let index = with_unit.iter().position(|asked| asked == unit);
            match (&states, index) {
                (Err(why), _) => return Some(format!("the state of `{unit}` is not known: {why}")),
                (Ok(states), index) => {
                    if let Some(why) = index.and_then(|index| states.get(index)).cloned().flatten() {
                        return Some(format!("unit `{unit}` {why}"));
                    }
                }
            }
        }
        let port = service.port.get();
        match &listening {
            Err(why) => Some(why.clone()),
            Ok(sockets) if ports::serves(sockets, facts.address, port) => None,
            Ok(_) => Some(format!("nothing listens on port {port}")),
        }
    };
    facts.services.iter().map(|(name, service)| (name.clone(), wrong(service))).collect()
}

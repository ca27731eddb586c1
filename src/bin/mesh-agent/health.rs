//! From what was seen to what is reported: each check by itself, the worst of them, and which services are ready.

use std::collections::BTreeMap;

use fitout::layout::values::{Check, Health, State};
use fitout::layout::{Label, Time, values};

use crate::certificates::Seen;
use crate::claims::Standing;
use crate::facts::Facts;

/// What was seen of this node.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// Per service what is wrong with it.
    pub services: BTreeMap<Label, Option<String>>,
    /// Of this node's etcd, where it has one.
    pub etcd: Option<Result<(), String>>,
    /// Certificates that were read, and what could not be.
    pub certificates: Vec<Result<Seen, String>>,
    /// The node's last backup.
    pub backup: Option<Time>,
    /// What is wrong with the clock.
    pub clock: Option<String>,
}

/// What is told of this node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The checks by name, and what is said of each.
    pub checks: BTreeMap<Label, (State, Option<String>)>,
    /// The services that are announced, and whether they may be used now.
    pub services: BTreeMap<Label, bool>,
}

impl Report {
    /// The worst of the checks.
    pub fn state(&self) -> State {
        self.checks.values().map(|(state, _)| *state).max().unwrap_or(State::Ok)
    }

    /// As the registry is told it. What does not fit is left out, the least important first.
    ///
    /// # Errors
    /// When not even the state fits.
    pub fn encode(&self, at: Time) -> Result<String, String> {
        let all = |_: &State| true;
        let wrong = |state: &State| *state != State::Ok;
        let none = |_: &State| false;
        type Attempt = (fn(&State) -> bool, bool);
        let attempts: [Attempt; 4] = [(all, true), (all, false), (wrong, false), (none, false)];
        let mut error = String::new();
        for (kept, with_text) in attempts {
            let checks = self.checks.iter().filter(|(_, (state, _))| kept(state)).map(|(name, (state, text))| {
                let text = text.clone().filter(|_| with_text);
                (name.clone(), Check { state: *state, text, extra: Default::default() })
            });
            let health = Health { state: self.state(), checks: checks.collect(), at, extra: Default::default() };
            match values::encode(&health) {
                Ok(text) => return Ok(text),
                Err(why) => error = why.to_string(),
            }
        }
        Err(error)
    }
}

/// Judges what was seen. `claims` has the standing of each service with a data set.
pub fn judge(facts: &Facts, observed: &Observed, claims: &BTreeMap<Label, Standing>, now: Time) -> Report {
    let mut report = Report::default();
    let mut check = |name: &str, state: State, text: Option<String>| {
        if let Ok(name) = name.parse::<Label>() {
            report.checks.insert(name, (state, text));
        }
    };
    for (name, wrong) in &observed.services {
        let check_name = check_name(name);
        match claims.get(name) {
            Some(Standing::Refused(why)) => {
                check(&check_name, State::Bad, Some(format!("is not announced: {why}")));
                continue;
            }
            // Not known yet whether it may be announced.
            None if facts.services.get(name).is_some_and(|service| service.data_set.is_some()) => continue,
            Some(Standing::Held) | None => {}
        }
        report.services.insert(name.clone(), wrong.is_none());
        let state = if wrong.is_some() { State::Bad } else { State::Ok };
        check(&check_name, state, wrong.clone());
    }
    if let Some(etcd) = &observed.etcd {
        match etcd {
            Ok(()) => check("etcd", State::Ok, None),
            Err(why) => check("etcd", State::Bad, Some(why.clone())),
        }
    }
    for seen in &observed.certificates {
        match seen {
            Ok(seen) => {
                let (state, text) = life(seen, facts.renew_before.as_secs(), now);
                check(&format!("cert-{}", seen.purpose), state, Some(text));
            }
            Err(why) => check("cert", State::Bad, Some(why.clone())),
        }
    }
    if let Some(backup) = observed.backup {
        check("backup", State::Ok, Some(format!("the last one is of {backup}")));
    }
    match &observed.clock {
        Some(why) => check("clock", State::Warn, Some(why.clone())),
        None => check("clock", State::Ok, None),
    }
    report
}

/// `service-web`; the name alone where that is no label.
fn check_name(service: &Label) -> String {
    let long = format!("service-{service}");
    if long.parse::<Label>().is_ok() { long } else { service.to_string() }
}

/// What is left of a certificate. The text has no counting days in it: it would be written each day.
fn life(seen: &Seen, renew_before: u64, now: Time) -> (State, String) {
    let end = seen.certificate.not_after;
    let left = end.since(now);
    if now < seen.not_before {
        (State::Bad, format!("begins {}: the clock or the certificate is wrong", seen.not_before))
    } else if left <= 0 {
        (State::Bad, format!("ended {end}"))
    } else if left < i64::try_from(renew_before).unwrap_or(i64::MAX) {
        (State::Warn, format!("ends {end}: renew it"))
    } else {
        (State::Ok, format!("ends {end}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts;
    use fitout::layout::CertificateUse;
    use fitout::layout::values::Certificate;

    fn label(text: &str) -> Label {
        text.parse().unwrap()
    }

    fn time(text: &str) -> Time {
        text.parse().unwrap()
    }

    fn seen(not_before: &str, not_after: &str) -> Result<Seen, String> {
        let certificate = Certificate {
            serial: "01".parse().unwrap(),
            not_after: time(not_after),
            fingerprint_sha256: "0".repeat(64).parse().unwrap(),
            subject: None,
            extra: Default::default(),
        };
        Ok(Seen { purpose: CertificateUse::Client, not_before: time(not_before), certificate })
    }

    const NOW: &str = "2026-11-30T12:00:00Z";

    #[test]
    fn each_source_has_its_check() {
        let facts = facts::parse(facts::tests::TEXT).unwrap();
        let up = |wrong: [Option<&str>; 2]| {
            let names = [label("postgres"), label("web")];
            names.into_iter().zip(wrong.map(|why| why.map(str::to_owned))).collect::<BTreeMap<_, _>>()
        };
        let held = BTreeMap::from([(label("postgres"), Standing::Held)]);
        let refused = BTreeMap::from([(label("postgres"), Standing::Refused("`lis2` has it".into()))]);
        let good = || Observed {
            services: up([None, None]),
            etcd: Some(Ok(())),
            certificates: vec![seen("2026-01-01T00:00:00Z", "2031-01-01T00:00:00Z")],
            ..Observed::default()
        };
        type Case<'a> =
            (Observed, &'a BTreeMap<Label, Standing>, State, &'a [(&'a str, &'a str)], &'a [(&'a str, bool)]);
        let both: &[(&str, bool)] = &[("postgres", true), ("web", true)];
        let cases: &[Case<'_>] = &[
            (good(), &held, State::Ok, &[], both),
            (
                Observed { services: up([Some("is failed"), None]), ..good() },
                &held,
                State::Bad,
                &[("service-postgres", "is failed")],
                &[("postgres", false), ("web", true)],
            ),
            (
                good(),
                &refused,
                State::Bad,
                &[("service-postgres", "is not announced: `lis2` has it")],
                &[("web", true)],
            ),
            (good(), &BTreeMap::new(), State::Ok, &[], &[("web", true)]),
            (
                Observed { etcd: Some(Err("it has no quorum".into())), ..good() },
                &held,
                State::Bad,
                &[("etcd", "it has no quorum")],
                both,
            ),
            (
                Observed { certificates: vec![seen("2026-01-01T00:00:00Z", "2026-12-20T00:00:00Z")], ..good() },
                &held,
                State::Warn,
                &[("cert-client", "ends 2026-12-20T00:00:00Z: renew it")],
                both,
            ),
            (
                Observed { certificates: vec![seen("2026-01-01T00:00:00Z", "2026-11-29T00:00:00Z")], ..good() },
                &held,
                State::Bad,
                &[("cert-client", "ended 2026-11-29T00:00:00Z")],
                both,
            ),
            (
                Observed { certificates: vec![seen("2027-01-01T00:00:00Z", "2031-01-01T00:00:00Z")], ..good() },
                &held,
                State::Bad,
                &[("cert-client", "begins 2027-01-01T00:00:00Z: the clock or the certificate is wrong")],
                both,
            ),
            (
                Observed { certificates: vec![Err("cannot read /x".into())], ..good() },
                &held,
                State::Bad,
                &[("cert", "cannot read /x")],
                both,
            ),
            (Observed { clock: Some("was set".into()), ..good() }, &held, State::Warn, &[("clock", "was set")], both),
        ];
        for (observed, claims, state, wrong, services) in cases {
            let report = judge(&facts, observed, claims, time(NOW));
            let told: Vec<(&str, &str)> = report
                .checks
                .iter()
                .filter(|(_, (state, _))| *state != State::Ok)
                .map(|(name, (_, text))| (name.as_str(), text.as_deref().unwrap_or_default()))
                .collect();
            let ready: Vec<(&str, bool)> =
                report.services.iter().map(|(name, ready)| (name.as_str(), *ready)).collect();
            assert_eq!(
                (report.state(), told.as_slice(), ready.as_slice()),
                (*state, *wrong, *services),
                "{observed:?}"
            );
        }
    }

    #[test]
    fn it_always_fits() {
        let mut report = Report::default();
        for n in 0..2000 {
            let state = if n % 500 == 0 { State::Bad } else { State::Ok };
            report.checks.insert(label(&format!("service-{n}")), (state, Some("x".repeat(40))));
        }
        let text = report.encode(time(NOW)).unwrap();
        assert!(text.contains("service-1500") && text.contains("\"bad\"") && !text.contains("service-1501"), "{text}");
        for n in 0..2000 {
            report.checks.insert(label(&format!("service-{n}")), (State::Bad, None));
        }
        assert_eq!(
            report.encode(time(NOW)).unwrap(),
            format!("{{\"v\":1,\"state\":\"bad\",\"checks\":{{}},\"at\":\"{NOW}\"}}")
        );
    }
}

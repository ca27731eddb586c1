//! Rules about the clock of certificates: the one that is shown, and those of the endpoints.

use super::{Declared, Limits, rule};
use crate::finding::{Finding, Rule, Severity};
use crate::live::credentials::{Shown, date};
use crate::live::observe::Observed;

/// Ours has expired.
pub static EXPIRED: Rule = rule(
    "live-client-expired",
    Severity::Error,
    "the client certificate has expired",
    "Every member refuses it, so the node that has it can neither read nor announce. An image's certificate is issued \
     anew by `fitout build`, an operator's by `fitout pki issue --operator NAME`. Tested by its dates and this \
     host's clock.",
);
/// Ours is of the future.
pub static NOT_YET: Rule = rule(
    "live-client-not-yet-valid",
    Severity::Error,
    "the client certificate is not valid yet",
    "Its validity begins in the future: the clock of this host is behind, or the clock was ahead where it was issued. \
     Certificates of `fitout` are back-dated by five minutes.",
);
/// Ours is of somebody else.
pub static AUTHORITY: Rule = rule(
    "live-client-authority",
    Severity::Error,
    "the client certificate is not of the mesh's `client` authority",
    "Members trust the `client` authority alone. This certificate is of another mesh's store, of the `peer` authority, \
     or of an authority that was made anew. Tested against the authority in the image, by signature: the \
     names of two authorities may be the same.",
);
/// Ours is for something else.
pub static USAGE: Rule = rule(
    "live-client-usage",
    Severity::Error,
    "the client certificate is not for client authentication",
    "Its extended key usage lacks client authentication: it is a server's. Members refuse it (Go's crypto/tls: \
     `certificate specifies an incompatible key usage`).",
);
/// Ours ends soon.
pub static ENDS_SOON: Rule = rule(
    "live-client-ends-soon",
    Severity::Warning,
    "the client certificate ends soon",
    "Less than `[pki] renew-before` is left: `fitout build` would issue a new one. An error when less than `[mesh] \
     time-to-rebuild` is left, since then a new image comes too late. Tested by its end and this host's clock.",
);
/// A server's ends soon.
pub static SERVER_ENDS_SOON: Rule = rule(
    "live-server-ends-soon",
    Severity::Warning,
    "a server certificate of the registry ends soon",
    "Less than `[pki] renew-before` is left. When it has ended, every client refuses the member, and etcd itself says \
     nothing. etcd reads certificate and key again at each handshake, so new files work without a restart. An error when \
     less than `[mesh] time-to-rebuild` is left. Tested by a handshake.",
);

/// The rules of this file.
pub static RULES: &[&Rule] = &[&EXPIRED, &NOT_YET, &AUTHORITY, &USAGE, &ENDS_SOON, &SERVER_ENDS_SOON];

/// Judges the client certificate, and the dates of every server's.
pub fn judge(declared: &Declared, observed: &Observed, out: &mut Vec<Finding>) {
    own(&declared.limits, &observed.client, observed.at, out);
    for view in &observed.views {
        let Some(greeting) = &view.greeting else { continue };
        let (_, until) = greeting.validity;
        if let Some(finding) = soon(&SERVER_ENDS_SOON, &declared.limits, until, observed.at) {
            let subject = view.endpoint.to_string();
            let help = "build the node's image again and ship it, or its new certificate and key: no restart is needed";
            out.push(Finding { subject, ..finding }.help(help));
        }
    }
}

fn own(limits: &Limits, shown: &Shown, at: i64, out: &mut Vec<Finding>) {
    let (from, until) = shown.validity;
    let issue = if shown.given {
        "`fitout pki issue --operator NAME` issues a new one"
    } else {
        "`fitout build` issues a new one"
    };
    if at > until {
        out.push(EXPIRED.finding(&shown.whose, format!("has expired: it was valid until {}", date(until))).help(issue));
    } else if at < from {
        out.push(
            NOT_YET
                .finding(&shown.whose, format!("is not valid yet: it is valid from {} on", date(from)))
                .note(format!("this host's clock says {}", date(at)))
                .help("compare the clocks of this host and of the issuing one"),
        );
    } else if let Some(finding) = soon(&ENDS_SOON, limits, until, at) {
        out.push(Finding { subject: shown.whose.clone(), ..finding }.help(issue));
    }
    if !shown.of_the_mesh {
        let help = if shown.given {
            "issue it from the store that the image was built from"
        } else {
            "build the image again; `fitout verify` looks closer"
        };
        out.push(
            AUTHORITY
                .finding(&shown.whose, "is not signed by the `client` authority that the image carries")
                .note(format!("its issuer is `{}`", shown.issuer))
                .help(help),
        );
    }
    if !shown.for_clients {
        let help = "use the certificate of an operator or of a node's client";
        out.push(USAGE.finding(&shown.whose, "is not for client authentication").help(help));
    }
}

/// A finding without subject when less is left than the declaration wants.
fn soon(rule: &Rule, limits: &Limits, until: i64, at: i64) -> Option<Finding> {
    let left = u64::try_from(until - at).ok()?;
    if left >= limits.renew_before.as_secs() {
        return None;
    }
    let mut finding = rule.finding("", format!("ends in {}, on {}", span(left), date(until)));
    finding = finding.note(format!("`renew-before` is {}", span(limits.renew_before.as_secs())));
    if left < limits.time_to_rebuild.as_secs() {
        finding.severity = Severity::Error;
        finding =
            finding.note(format!("a rebuild may take {} (`time-to-rebuild`)", span(limits.time_to_rebuild.as_secs())));
    }
    Some(finding)
}

/// `12 days`, `5 hours`, `3 minutes`.
fn span(seconds: u64) -> String {
    let (count, unit) = match seconds {
        172_800.. => (seconds / 86_400, "days"),
        7_200.. => (seconds / 3600, "hours"),
        120.. => (seconds / 60, "minutes"),
        _ => (seconds, "seconds"),
    };
    format!("{count} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_readable() {
        for (seconds, text) in [(90, "90 seconds"), (600, "10 minutes"), (14_400, "4 hours"), (2_592_000, "30 days")] {
            assert_eq!(span(seconds), text);
        }
    }
}

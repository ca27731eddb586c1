//! Rules about single endpoints: reachable, TLS in order, answering.

use super::rule;
use crate::etcd::logs;
use crate::finding::{Finding, Rule, Severity};
use crate::live::credentials::{Shown, date};
use crate::live::handshake::{Kind, Trouble};
use crate::live::observe::Observed;

/// Nothing was heard of an endpoint.
pub static UNREACHABLE: Rule = rule(
    "live-unreachable",
    Severity::Error,
    "an endpoint of the registry cannot be reached",
    "No connection could be made to the client port of a declared member, or nothing came back over it before the \
     deadline. Its node may be down, its registry not started, or the network between it and this host cut. Two of \
     three voters still make a quorum, but one more loss stops all writes. Tested by connecting to each endpoint.",
);
/// A URL without TLS.
pub static PLAIN: Rule = rule(
    "live-plain-http",
    Severity::Error,
    "an endpoint is plain HTTP",
    "The registry's client port takes mutual TLS only; anything sent in the clear can be read and changed on the way. \
     `fitout` does not talk to a `http://` endpoint, and says so when what answers at a `https://` one does not \
     speak TLS. Look at `listen-client-urls` of that node, and at what else listens on that port.",
);
/// Expired.
pub static SERVER_EXPIRED: Rule = rule(
    "live-server-expired",
    Severity::Error,
    "a server certificate of the registry has expired",
    "Every client refuses it, so the member serves nobody, while etcd itself starts and runs without a word: it never \
     looks at the dates of its own certificate. etcd reads certificate and key again at each handshake, so renewed \
     files work without a restart. Tested by a handshake at the present time.",
);
/// Not yet valid.
pub static SERVER_NOT_YET: Rule = rule(
    "live-server-not-yet-valid",
    Severity::Error,
    "a server certificate of the registry is not valid yet",
    "Its validity begins in the future: the clock of this host is behind, or the clock was ahead where it was issued. \
     Certificates of `fitout` are back-dated by five minutes. Tested by a handshake at the present time.",
);
/// Wrong names.
pub static SERVER_NAME: Rule = rule(
    "live-server-name",
    Severity::Error,
    "a server certificate does not name the endpoint",
    "The subject alternative names must hold the address or name that the endpoint's URL has; the common name does \
     not count. Either the wrong node's certificate is there, or the node's address changed after it was issued: issue \
     it again with `fitout pki issue` and build the image again. Tested by a handshake.",
);
/// Foreign authority.
pub static SERVER_AUTHORITY: Rule = rule(
    "live-server-authority",
    Severity::Error,
    "a server certificate is not of the mesh's authority",
    "The chain does not end at the `client` authority that the image carries: another mesh answers at this address, a \
     peer certificate stands in for the server's, or the authority was made anew after that node was built. \
     All images of a mesh must be built from one store. Tested by a handshake.",
);
/// Wrong usage.
pub static SERVER_USAGE: Rule = rule(
    "live-server-usage",
    Severity::Error,
    "a server certificate is not for server authentication",
    "Its extended key usage lacks server authentication, so no client may accept it. Probably the client's \
     certificate was put in its place. Tested by a handshake.",
);
/// Other TLS errors.
pub static TLS: Rule = rule(
    "live-tls",
    Severity::Error,
    "the TLS handshake with an endpoint fails",
    "The reason is TLS's own and none of those that have a code of their own: no common version or cipher suite, a \
     certificate that does not parse, an unexpected alert. Tested by a handshake.",
);
/// Our certificate refused.
pub static CLIENT_REFUSED: Rule = rule(
    "live-client-refused",
    Severity::Error,
    "the registry refuses the client certificate",
    "The server's certificate is fine, and the server refuses the one that is shown: it is of another authority than the \
     server's `trusted-ca-file`, it has expired, or it lacks client authentication. etcd reads that file only at its \
     start (etcd#11555), so a changed authority needs a restart of each member. In TLS 1.3 the refusal arrives after \
     the handshake; the check waits for it.",
);
/// Nobody should get in without a certificate.
pub static STRANGER: Rule = rule(
    "live-stranger-let-in",
    Severity::Error,
    "a client without certificate is let in",
    "The client listener must ask for a certificate (`client-cert-auth` with `trusted-ca-file`); here a second \
     connection that showed none was served. With the flag's name in the file etcd is silently open: the \
     key is `client-transport-security.client-cert-auth`. Tested by a handshake without certificate.",
);
/// TLS fine, no answer.
pub static NO_ANSWER: Rule = rule(
    "live-no-answer",
    Severity::Error,
    "an endpoint does not answer a status request",
    "TLS is in order on both sides, and etcd's status request, which a member answers without any other, fails. \
     The member may be starting, stopping, or stuck on its disk; or something else than etcd answers.",
);

/// The rules of this file.
pub static RULES: &[&Rule] = &[
    &UNREACHABLE,
    &PLAIN,
    &SERVER_EXPIRED,
    &SERVER_NOT_YET,
    &SERVER_NAME,
    &SERVER_AUTHORITY,
    &SERVER_USAGE,
    &TLS,
    &CLIENT_REFUSED,
    &STRANGER,
    &NO_ANSWER,
];

/// One finding per endpoint that is in trouble, and per endpoint that lets strangers in.
pub fn judge(observed: &Observed, out: &mut Vec<Finding>) {
    for view in &observed.views {
        let endpoint = view.endpoint.to_string();
        if let Err(trouble) = &view.answer {
            out.push(of_trouble(&endpoint, trouble, observed));
        }
        if view.stranger_let_in == Some(true) {
            let help = "set `client-cert-auth: true` and `trusted-ca-file` under `client-transport-security` there";
            out.push(STRANGER.finding(endpoint, "a client without certificate is let in").help(help));
        }
    }
}

fn of_trouble(endpoint: &str, trouble: &Trouble, observed: &Observed) -> Finding {
    let reason = &trouble.reason;
    let store = "build the node's image again from the mesh's store, and ship it or its new certificate";
    match trouble.kind {
        Kind::Silent => UNREACHABLE
            .finding(endpoint, format!("cannot be reached: {reason}"))
            .note("a voter that starts listens at once, and answers when it has a quorum; so does one that is stuck")
            .help("when no other voter runs, start them; else on that node: `journalctl -u etcd -e`"),
        Kind::Unreachable => UNREACHABLE
            .finding(endpoint, format!("cannot be reached: {reason}"))
            .help("on that node: `systemctl status mesh-registry.target etcd`"),
        Kind::PlainUrl | Kind::NotTls => PLAIN
            .finding(endpoint, format!("is not TLS: {reason}"))
            .help("give `https://` endpoints; look at `listen-client-urls` in that node's /etc/etcd/etcd.yaml"),
        Kind::ServerExpired => {
            SERVER_EXPIRED.finding(endpoint, format!("its server certificate has expired: {reason}")).help(store)
        }
        Kind::ServerNotYetValid => SERVER_NOT_YET
            .finding(endpoint, format!("its server certificate is not valid yet: {reason}"))
            .help("compare the clocks of that node, of this host, and of where the certificate was issued"),
        Kind::ServerName => {
            SERVER_NAME.finding(endpoint, format!("its server certificate has other names: {reason}")).help(store)
        }
        Kind::ServerAuthority => SERVER_AUTHORITY
            .finding(endpoint, format!("its server certificate is of another authority: {reason}"))
            .help(store),
        Kind::ServerUsage => {
            SERVER_USAGE.finding(endpoint, format!("its server certificate has the wrong usage: {reason}")).help(store)
        }
        Kind::Tls => TLS.finding(endpoint, format!("the TLS handshake fails: {reason}")),
        Kind::ClientRefused => client_refused(endpoint, reason, &observed.client),
        Kind::Denied | Kind::Request => {
            let finding = NO_ANSWER.finding(endpoint, format!("does not answer: {reason}"));
            match logs::cause(reason) {
                Some(known) => finding.note(known.cause).help(known.help),
                None => finding.help("on that node: `journalctl -u etcd -e`"),
            }
        }
    }
}

fn client_refused(endpoint: &str, reason: &str, client: &Shown) -> Finding {
    let (from, until) = client.validity;
    CLIENT_REFUSED
        .finding(endpoint, format!("refuses {}: {reason}", client.whose))
        .note(format!("it is valid from {} until {}, issued by `{}`", date(from), date(until), client.issuer))
        .help(
            "were this image and that node built from the same store, and was that node's etcd started again since the \
             authority was changed? `fitout pki status` shows the store's",
        )
}

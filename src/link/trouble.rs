//! Why a call did not succeed.

use std::fmt;

/// Why a call did not succeed, in etcd's words with the causes behind them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    reason: String,
    denied: bool,
}

impl Trouble {
    /// In words.
    pub fn new(reason: impl Into<String>) -> Trouble {
        Trouble { reason: reason.into(), denied: false }
    }

    /// True when the registry knows the certificate and does not allow the call, or does not know the certificate's user:
    /// asking another member, or again, gives the same answer until somebody grants it.
    pub fn is_denied(&self) -> bool {
        self.denied
    }

    /// True when the lease of the call does not exist (`rpctypes.ErrGRPCLeaseNotFound`, or a renewal with TTL 0, for which
    /// etcd-client has no other sign than this text).
    pub fn lease_is_gone(&self) -> bool {
        self.reason.contains("requested lease not found") || self.reason.contains("lease not found")
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl From<etcd_client::Error> for Trouble {
    fn from(error: etcd_client::Error) -> Trouble {
        match &error {
            etcd_client::Error::GRpcStatus(status) => {
                Trouble::answered(with_causes(status.message().to_owned(), status))
            }
            _ => Trouble::new(with_causes(error.to_string(), &error)),
        }
    }
}

impl Trouble {
    /// Of an answer of etcd's.
    fn answered(reason: String) -> Trouble {
        // `rpctypes.ErrGRPCPermissionDenied`, `ErrGRPCUserNotFound`, `ErrGRPCUserEmpty`: their codes differ from version to
        // version, their words do not.
        let denied = ["permission denied", "user name not found", "user name is empty"];
        Trouble { denied: denied.iter().any(|text| reason.contains(text)), reason }
    }
}

/// gRPC keeps the cause (a refused connection, a certificate that is not accepted) behind a general message.
fn with_causes(mut text: String, error: &dyn std::error::Error) -> String {
    let mut cause = error.source();
    while let Some(error) = cause {
        let message = error.to_string();
        if !text.contains(&message) {
            text = if text.is_empty() { message } else { format!("{text}: {message}") };
        }
        cause = error.source();
    }
    if text.is_empty() { "no answer".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn etcds_words_say_what_can_be_done() {
        for (words, denied, gone) in [
            ("etcdserver: permission denied", true, false),
            ("etcdserver: user name is empty", true, false),
            ("etcdserver: requested lease not found", false, true),
            ("etcdserver: leader changed", false, false),
            ("etcdserver: request timed out", false, false),
        ] {
            let trouble = Trouble::answered(words.to_owned());
            assert_eq!((trouble.is_denied(), trouble.lease_is_gone()), (denied, gone), "{words}");
        }
        let renewal = etcd_client::Error::LeaseKeepAliveError("lease not found".to_owned());
        assert!(Trouble::from(renewal).lease_is_gone());
    }
}

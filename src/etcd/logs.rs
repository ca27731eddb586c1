//! Lines that etcd logs, and what causes them.

/// A cause of a logged line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cause {
    /// Text by which the line is known.
    pub text: &'static str,
    /// What causes it.
    pub cause: &'static str,
    /// What to do.
    pub help: &'static str,
}

/// Known lines. The first whose text is in a line counts, so the special ones stand before the general.
pub const KNOWN: &[Cause] = &[
    Cause {
        text: "request cluster ID mismatch",
        cause: "the two members belong to different clusters: other token, other first members, or one of them was once started alone",
        help: "compare the images' birth records; empty the data directory of the one that is wrong before it is started again",
    },
    Cause {
        text: "cluster ID mismatch",
        cause: "the two members belong to different clusters: other token, other first members, or one of them was once started alone",
        help: "compare the images' birth records; empty the data directory of the one that is wrong before it is started again",
    },
    Cause {
        text: "couldn't find local name",
        cause: "`name` is not among the names of `initial-cluster`",
        help: "build the image again; `fitout verify` names the line",
    },
    Cause {
        text: "member count is unequal",
        cause: "a member that joins must have the living member list and itself in `initial-cluster`, and nothing else",
        help: "add the member first (`member add --learner`), then build the image with `--join`",
    },
    Cause {
        text: "has already been bootstrapped",
        cause: "the living cluster knows this member, and its data directory is empty",
        help: "remove the member and add it again; then build its image with `--join`",
    },
    Cause {
        text: "the member has been permanently removed from the cluster",
        cause: "this member was removed while it was away",
        help: "empty its data directory, add it again, and build its image with `--join`",
    },
    Cause {
        text: "certificate specifies an incompatible key usage",
        cause: "a certificate without client authentication is shown to a peer or by the gRPC gateway",
        help: "peer certificates need both usages; set `enable-grpc-gateway: false`",
    },
    Cause {
        text: "certificate has expired or is not yet valid",
        cause: "a certificate is out of its time, or this machine's clock is",
        help: "compare `timedatectl` with the certificate's dates; then issue and build again",
    },
    Cause {
        text: "certificate signed by unknown authority",
        cause: "the other side's certificate is not of the authority that this listener trusts",
        help: "peers must have certificates of the `peer` authority, clients of the `client` authority",
    },
    Cause {
        text: "does not match any of DNSNames",
        cause: "the peer's certificate does not name the address that its connection comes from",
        help: "the address of the route must be the node's declared `address`; look for address translation and second interfaces",
    },
    Cause {
        text: "x509: certificate is valid for",
        cause: "the certificate does not name the address that was dialled or that the connection comes from",
        help: "the address of the route must be the node's declared `address`; look for address translation and second interfaces",
    },
    Cause {
        text: "remote error: tls: bad certificate",
        cause: "the other side refused this node's certificate; only its log says why",
        help: "read the log of the other side; `fitout check` shows the reason from here",
    },
    Cause {
        text: "tls: private key does not match public key",
        cause: "key and certificate are not of one pair",
        help: "issue both again",
    },
    Cause {
        text: "tls: client didn't provide a certificate",
        cause: "something connects without a certificate: a browser, a health check, a client without its options",
        help: "use the metrics listener for health checks",
    },
    Cause {
        text: "expected IP in URL for binding",
        cause: "a `listen-…-urls` has a name where an address must stand",
        help: "build the image again; `fitout verify` names the line",
    },
    Cause {
        text: "bind: cannot assign requested address",
        cause: "the node's address is not on any interface",
        help: "bring up the mesh's network first: the parameter `after` of the overlay `etcd` names the unit that does",
    },
    Cause {
        text: "bind: address already in use",
        cause: "something else listens there, perhaps a second etcd",
        help: "look with `ss -tlnp`",
    },
    Cause {
        text: "mvcc: database space exceeded",
        cause: "the quota is used up, and the cluster refuses writes until the alarm is disarmed",
        help: "compact, defragment one member after another, then disarm the alarm",
    },
    Cause {
        text: "waiting for ReadIndex response took too long",
        cause: "the leader does not answer: no quorum, or a slow disk or network",
        help: "look at the other voters and at the disks' fsync times",
    },
    Cause {
        text: "no leader",
        cause: "fewer than a quorum of the voters reach each other",
        help: "start the others, and look at the routes between the sites",
    },
    Cause {
        text: "permission denied",
        cause: "a file that etcd needs is not readable by the user etcd, or a directory above it is closed",
        help: "look at owner and mode of each element of the path; `fitout verify` does",
    },
];

/// The cause of a logged line, if it is known.
pub fn cause(line: &str) -> Option<&'static Cause> {
    KNOWN.iter().find(|known| line.contains(known.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_causes() {
        let cases = [
            (
                "rejected stream from remote peer; error: request cluster ID mismatch",
                Some("request cluster ID mismatch"),
            ),
            (
                r#"{"level":"warn","msg":"rejected connection","error":"tls: \"127.0.0.1\" does not match any of DNSNames [\"a\"]"}"#,
                Some("does not match any of DNSNames"),
            ),
            (r#"{"error":"remote error: tls: bad certificate"}"#, Some("remote error: tls: bad certificate")),
            ("published local member to cluster through raft", None),
        ];
        for (line, want) in cases {
            assert_eq!(cause(line).map(|c| c.text), want, "{line}");
        }
    }

    #[test]
    fn no_text_hides_a_later_one() {
        for (index, known) in KNOWN.iter().enumerate() {
            assert_eq!(cause(known.text).map(|c| c.text), Some(known.text), "entry {index} is never reached");
        }
    }
}

//! Modes, owners, ancestors, certificates and etcd's configuration: the truth is what the kernel lets etcd's user read,
//! and what becomes of two real etcds and a client that talk to each other by TLS.

use super::{On, Registry, Row, Truth};

const WORKS: Registry =
    Registry { unreadable: "", open: "", listens: true, quorum: true, refused: false, client: true };
/// It does not start.
const ENDS: Registry = Registry { listens: false, quorum: false, client: false, ..WORKS };
/// One of the two may dial the other, and not the other way round.
const HALF: Registry = Registry { refused: true, ..WORKS };
/// It starts, and there is no quorum; without one, clients are not asked.
const ALONE: Registry = Registry { quorum: false, client: false, ..WORKS };
/// The voters accept each other, and no client accepts it or is accepted.
const NO_CLIENT: Registry = Registry { client: false, ..WORKS };

const fn unreadable(files: &'static str) -> Registry {
    Registry { unreadable: files, ..ENDS }
}

const fn row(name: &'static str, change: &'static str, truth: Registry, codes: &'static [&'static str]) -> Row {
    Row { name, change, on: On::Both, truth: Truth::Registry(truth), codes, says: "" }
}

const NOTHING: &[&str] = &[];
/// A file that an overlay put there is another one: true of every change of it, harmless or not.
const CHANGED: &[&str] = &["ledger-content"];
const ALL: &str = "etcd.yaml client-ca.crt peer-ca.crt peer.crt peer.key server.crt server.key";
const ALL_OF_PKI: &str = "client-ca.crt peer-ca.crt peer.crt peer.key server.crt server.key";

/// The rows.
pub const ROWS: &[Row] = &[
    row("registry: the image as it is built", "", WORKS, NOTHING),
    // Who reads what.
    row(
        "access: key of root",
        "chown root $PKI/peer.key",
        unreadable("peer.key"),
        &["ledger-owner", "tls-key-unreadable"],
    ),
    row(
        "access: key of root, open to etcd's group",
        "chown root $PKI/peer.key; chmod 640 $PKI/peer.key",
        WORKS,
        &["ledger-mode", "ledger-owner"],
    ),
    row(
        "access: key that its owner may not read",
        "chmod 040 $PKI/peer.key",
        unreadable("peer.key"),
        &["ledger-mode", "tls-key-unreadable"],
    ),
    row(
        "access: key that everybody reads",
        "chmod 644 $PKI/peer.key; chmod 755 $PKI",
        Registry { open: "peer.key", ..WORKS },
        &["ledger-mode", "tls-key-open"],
    ),
    row(
        "access: key of another group that etcd is in",
        "echo keys:x:4242:etcd >>etc/group; chown 0:4242 $PKI/peer.key; chmod 640 $PKI/peer.key",
        WORKS,
        &["ledger-content", "ledger-mode", "ledger-owner", "tls-key-open"],
    ),
    row(
        "access: directory of keys is root's",
        "chmod 700 $PKI",
        unreadable(ALL_OF_PKI),
        &["ledger-mode", "tls-key-unreadable"],
    ),
    row(
        "access: directory of keys that is passed through",
        "chgrp root $PKI; chmod 711 $PKI",
        WORKS,
        &["ledger-mode", "ledger-owner"],
    ),
    row("access: /etc/etcd is closed", "chmod 700 etc/etcd", unreadable(ALL), &["ledger-mode", "tls-key-unreadable"]),
    row("access: /etc is closed", "chmod 700 etc", unreadable(ALL), &["tls-key-unreadable"]),
    row(
        "access: configuration of root alone",
        "chmod 600 $YAML",
        unreadable("etcd.yaml"),
        &["ledger-mode", "tls-file-unreadable"],
    ),
    row(
        "access: certificate of root alone",
        "chmod 600 $PKI/peer.crt",
        unreadable("peer.crt"),
        &["ledger-mode", "tls-file-unreadable"],
    ),
    row(
        "access: authority of root alone",
        "chmod 600 $PKI/client-ca.crt",
        unreadable("client-ca.crt"),
        &["ledger-mode", "tls-file-unreadable"],
    ),
    row(
        "access: key by a link",
        "mkdir opt/keys; mv $PKI/peer.key opt/keys/peer.key; link $PKI/peer.key /opt/keys/peer.key",
        WORKS,
        &["ledger-kind", "private-key-copy"],
    ),
    row(
        "access: key by a link through a closed directory",
        "mkdir -m 700 opt/keys; mv $PKI/peer.key opt/keys/peer.key; link $PKI/peer.key /opt/keys/peer.key",
        unreadable("peer.key"),
        &["ledger-kind", "private-key-copy", "tls-key-unreadable"],
    ),
    row(
        "access: key by a link to nothing",
        "rm $PKI/peer.key; link $PKI/peer.key /opt/peer.key",
        unreadable("peer.key"),
        &["etcd-file-missing", "ledger-kind", "tls-file"],
    ),
    row(
        "access: key is gone",
        "rm $PKI/server.key",
        unreadable("server.key"),
        &["etcd-file-missing", "ledger-missing", "tls-file"],
    ),
    row(
        "access: etcd's account has another id",
        "sed -i -E 's/^etcd:x:[0-9]+:[0-9]+:/etcd:x:5555:5555:/' etc/passwd",
        unreadable(ALL_OF_PKI),
        &["etcd-data-directory", "ledger-content", "tls-key-open", "tls-key-unreadable"],
    ),
    row(
        "access: etcd's account is gone",
        "sed -i '/^etcd:/d' etc/passwd",
        unreadable(ALL),
        &["etcd-data-directory", "ledger-content", "tls-key-unreadable"],
    ),
    // Certificates.
    row(
        "tls: peer certificate and key of the other voter",
        "for f in peer.crt peer.key; do peer_file $PKI/$f >x; cat x >$PKI/$f; done; rm x",
        ALONE,
        &["ledger-content", "ledger-key", "private-key-foreign", "tls-foreign", "tls-matrix-peer", "tls-names"],
    ),
    row(
        "tls: peer certificate of the other voter",
        "peer_file $PKI/peer.crt >$PKI/peer.crt",
        ENDS,
        &["ledger-content", "tls-foreign", "tls-key", "tls-matrix-peer", "tls-names"],
    ),
    row(
        "tls: peer key of the other voter",
        "peer_file $PKI/peer.key >$PKI/peer.key",
        ENDS,
        &["ledger-key", "private-key-foreign", "tls-key", "tls-matrix-peer"],
    ),
    row(
        "tls: server certificate and key of the other voter",
        "for f in server.crt server.key; do peer_file $PKI/$f >x; cat x >$PKI/$f; done; rm x",
        NO_CLIENT,
        &["ledger-content", "ledger-key", "private-key-foreign", "tls-foreign", "tls-matrix-client", "tls-names"],
    ),
    row(
        "tls: the two authorities are swapped",
        "mv $PKI/peer-ca.crt x; mv $PKI/client-ca.crt $PKI/peer-ca.crt; mv x $PKI/client-ca.crt",
        ALONE,
        &["ledger-content", "tls-chain", "tls-matrix-client", "tls-matrix-peer", "tls-one-authority"],
    ),
    row(
        "tls: the peer authority is trusted on the client port",
        "cat $PKI/peer-ca.crt >$PKI/client-ca.crt",
        NO_CLIENT,
        &["ledger-content", "tls-chain", "tls-matrix-client", "tls-one-authority"],
    ),
    row(
        "tls: both authorities are trusted on the peer port",
        "cat $PKI/client-ca.crt >>$PKI/peer-ca.crt",
        WORKS,
        &["ledger-content", "tls-one-authority"],
    ),
    row(
        "tls: authority file is empty",
        ": >$PKI/peer-ca.crt",
        ALONE,
        &["etcd-file-missing", "ledger-content", "tls-file"],
    ),
    row("tls: issued again, the same", "issue peer peer /CN=lis1 \"$PEER\"", WORKS, CHANGED),
    row(
        "tls: expired",
        "issue peer peer /CN=lis1 \"$PEER\" 20200101000000Z 20210101000000Z",
        ALONE,
        &["ledger-content", "tls-expired", "tls-matrix-peer"],
    ),
    row(
        "tls: not yet valid",
        "issue peer peer /CN=lis1 \"$PEER\" 20400101000000Z 20410101000000Z",
        ALONE,
        &["ledger-content", "tls-matrix-peer", "tls-not-yet-valid"],
    ),
    row(
        "tls: ends in a week",
        "issue peer peer /CN=lis1 \"$PEER\" 20200101000000Z \"$(date -u -d '7 days' +%Y%m%d%H%M%SZ)\"",
        WORKS,
        &["ledger-content", "tls-ends-soon"],
    ),
    row(
        "tls: peer certificate for servers only",
        "issue peer peer /CN=lis1 \"${PEER/,clientAuth/}\"",
        HALF,
        &["ledger-content", "tls-matrix-peer", "tls-usage"],
    ),
    row(
        "tls: peer certificate for clients only",
        "issue peer peer /CN=lis1 \"${PEER/serverAuth,/}\"",
        HALF,
        &["ledger-content", "tls-matrix-peer", "tls-usage"],
    ),
    row(
        "tls: peer certificate without usages",
        "issue peer peer /CN=lis1 \"${PEER/extendedKeyUsage=*Auth/}\"",
        WORKS,
        &["ledger-content", "tls-usage"],
    ),
    row(
        "tls: peer certificate of another address",
        "issue peer peer /CN=lis1 \"${PEER/10.77.0.11/10.77.0.99}\"",
        HALF,
        &["ledger-content", "tls-matrix-peer", "tls-names"],
    ),
    row(
        "tls: peer certificate of names only",
        "issue peer peer /CN=lis1 \"${PEER/,IP:10.77.0.11/}\"",
        HALF,
        &["ledger-content", "tls-matrix-peer", "tls-names"],
    ),
    row(
        "tls: peer certificate whose address is a name",
        "issue peer peer /CN=lis1 \"${PEER/IP:/DNS:}\"",
        HALF,
        &["ledger-content", "tls-malformed", "tls-matrix-peer", "tls-names"],
    ),
    row(
        "tls: peer certificate with one address more",
        "issue peer peer /CN=lis1 \"${PEER/IP:/IP:192.0.2.1,IP:}\"",
        WORKS,
        &["ledger-content"],
    ),
    row(
        "tls: server certificate without names",
        "issue client server /CN=10.77.0.11 'extendedKeyUsage=serverAuth'",
        NO_CLIENT,
        &["ledger-content", "tls-foreign", "tls-matrix-client", "tls-names", "tls-usage"],
    ),
    row(
        "tls: server certificate for clients",
        "issue client server /CN=lis1 \"${SERVER/serverAuth/clientAuth}\"",
        NO_CLIENT,
        &["ledger-content", "tls-matrix-client", "tls-usage"],
    ),
    row(
        "tls: foreign authority of the same name",
        "foreign_authority /CN=x; issue $PWD/x peer /CN=lis1 \"$PEER\"; rm x.crt x.key",
        ALONE,
        &["ledger-content", "tls-chain", "tls-matrix-peer"],
    ),
    row(
        "tls: signed with SHA-1",
        "DIGEST=sha1 issue peer peer /CN=lis1 \"$PEER\"",
        ALONE,
        &["ledger-content", "tls-chain", "tls-malformed", "tls-matrix-peer"],
    ),
    row(
        "tls: an unknown critical extension",
        "issue peer peer /CN=lis1 \"$PEER\"$'\\n1.2.3.4=critical,DER:0500'",
        ALONE,
        &["ledger-content", "tls-malformed", "tls-matrix-peer"],
    ),
    row(
        "tls: no basic constraints",
        "issue peer peer /CN=lis1 \"${PEER/basicConstraints=critical,CA:false/}\"",
        WORKS,
        &["ledger-content"],
    ),
    row(
        "tls: leaf that is an authority",
        "issue peer peer /CN=lis1 \"${PEER/CA:false/CA:true}\"",
        WORKS,
        &["ledger-content", "tls-malformed", "tls-matrix-peer", "tls-usage"],
    ),
    row(
        "tls: text before the certificate",
        "openssl x509 -in $PKI/peer.crt -text >x; cat x >$PKI/peer.crt; rm x",
        WORKS,
        CHANGED,
    ),
    row(
        "tls: the authority behind the certificate",
        "cat $PKI/peer-ca.crt >>$PKI/peer.crt",
        WORKS,
        &["ledger-content", "tls-file"],
    ),
    row(
        "tls: the authority before the certificate",
        "cat $PKI/peer-ca.crt $PKI/peer.crt >x; cat x >$PKI/peer.crt; rm x",
        ENDS,
        &["ledger-content", "tls-file"],
    ),
    row(
        "tls: certificate in DER",
        "openssl x509 -in $PKI/peer.crt -outform DER >x; cat x >$PKI/peer.crt; rm x",
        ENDS,
        &["ledger-content", "tls-file"],
    ),
    row("tls: ends of line of another system", "sed -i 's/$/\\r/' $PKI/peer.crt $PKI/peer-ca.crt", WORKS, CHANGED),
    row("tls: byte order mark", "sed -i '1s/^/\\xef\\xbb\\xbf/' $PKI/peer.crt", ENDS, &["ledger-content", "tls-file"]),
    row("tls: blank before the certificate", "sed -i '1s/^/ /' $PKI/peer.crt", ENDS, &["ledger-content", "tls-file"]),
    row("tls: a certificate that is cut", "sed -i '$d' $PKI/peer.crt", ENDS, &["ledger-content", "tls-file"]),
    row(
        "tls: key in the older form",
        "openssl pkey -in $PKI/peer.key -traditional >x; cat x >$PKI/peer.key; rm x",
        WORKS,
        &[],
    ),
    row(
        "tls: key with a passphrase",
        "openssl pkey -in $PKI/peer.key -aes256 -passout pass:x >x; cat x >$PKI/peer.key; rm x",
        ENDS,
        &["ledger-key", "private-key-foreign", "tls-file"],
    ),
    row(
        "tls: new key for the certificate",
        "openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 2>/dev/null >x; cat x >$PKI/peer.key; rm x",
        ENDS,
        &["ledger-key", "private-key-foreign", "tls-key", "tls-matrix-peer"],
    ),
    row(
        "tls: new key, and a certificate for it",
        "openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 2>/dev/null >x; cat x >$PKI/peer.key; rm x; issue peer peer /CN=lis1 \"$PEER\"",
        WORKS,
        &["ledger-content", "ledger-key", "private-key-foreign"],
    ),
    row(
        "tls: RSA key, and a certificate for it",
        "openssl genpkey -algorithm RSA 2>/dev/null >x; cat x >$PKI/peer.key; rm x; issue peer peer /CN=lis1 \"$PEER\"",
        WORKS,
        &["ledger-content", "ledger-key", "private-key-foreign"],
    ),
    // Configuration.
    row("yaml: quotes are dropped", "yaml 's/^name: \"lis1\"/name: lis1/'", WORKS, CHANGED),
    row(
        "yaml: another name",
        "yaml 's/^name: .*/name: lis9/'",
        ENDS,
        &["etcd-name", "etcd-refuses-start", "ledger-content"],
    ),
    row(
        "yaml: the name of the other voter",
        "yaml 's/^name: .*/name: por1/'",
        ENDS,
        &["etcd-name", "etcd-refuses-start", "ledger-content"],
    ),
    row(
        "yaml: another token",
        "yaml 's/harbour-g1/harbour-g2/'",
        ALONE,
        &["etcd-cluster", "etcd-ids", "ledger-content"],
    ),
    row(
        "yaml: it joins what is there",
        "yaml 's/^initial-cluster-state: .*/initial-cluster-state: existing/'",
        ENDS,
        &["etcd-cluster", "ledger-content"],
    ),
    row(
        "yaml: the third voter is missing",
        "yaml 's/mad1=[^,]*,//'",
        ALONE,
        &["etcd-cluster", "etcd-ids", "ledger-content"],
    ),
    row(
        "yaml: a key that is ignored",
        "echo 'peer-client-cert-auth: true' >>$YAML",
        WORKS,
        &["etcd-key-unknown", "ledger-content"],
    ),
    row(
        "yaml: a key twice",
        "echo 'log-level: info' >>$YAML",
        WORKS,
        &["etcd-config-syntax", "ledger-content", "tls-file"],
    ),
    row("yaml: no YAML", "echo '\tx: [' >>$YAML", ENDS, &["etcd-config-syntax", "ledger-content", "tls-file"]),
    row(
        "yaml: election timeout too short",
        "yaml 's/^election-timeout: .*/election-timeout: 400/'",
        ENDS,
        &["etcd-timing", "ledger-content"],
    ),
    row(
        "yaml: timings of its own",
        "yaml 's/^election-timeout: .*/election-timeout: 3000/; s/^heartbeat-interval: .*/heartbeat-interval: 300/'",
        WORKS,
        &["ledger-content"],
    ),
    row(
        "yaml: a number in quotes",
        "yaml 's/^heartbeat-interval: .*/heartbeat-interval: \"100\"/'",
        ENDS,
        &["etcd-refuses-start", "ledger-content"],
    ),
    row(
        "yaml: a size with a unit",
        "yaml 's/^quota-backend-bytes: .*/quota-backend-bytes: 2GiB/'",
        ENDS,
        &["etcd-quota", "etcd-refuses-start", "ledger-content"],
    ),
    row(
        "yaml: peers without TLS",
        "yaml 's#^listen-peer-urls: .*#listen-peer-urls: http://10.77.0.11:2380#'",
        WORKS,
        &["etcd-address", "etcd-tls-off", "ledger-content"],
    ),
    row(
        "yaml: it listens on every address",
        "yaml 's#^listen-peer-urls: .*#listen-peer-urls: https://0.0.0.0:2380#'",
        WORKS,
        &["etcd-address", "ledger-content"],
    ),
    row(
        "yaml: it advertises what it does not listen on",
        "yaml 's#^listen-peer-urls: .*#listen-peer-urls: https://127.0.0.1:2380#'",
        WORKS,
        &["etcd-address", "ledger-content", "tls-names"],
    ),
    row(
        "yaml: an address that it does not have",
        "yaml 's#^listen-peer-urls: .*#listen-peer-urls: https://10.77.0.99:2380#'",
        ENDS,
        &["etcd-address", "ledger-content", "tls-names"],
    ),
    row(
        "yaml: a host name to listen on",
        "yaml 's#^listen-peer-urls: .*#listen-peer-urls: https://lis1:2380#'",
        ENDS,
        &["etcd-address", "etcd-refuses-start", "ledger-content"],
    ),
    row(
        "yaml: peers need no certificate",
        "yaml '/^peer-transport/,$ s/client-cert-auth: true/client-cert-auth: false/'",
        WORKS,
        &["etcd-client-auth", "ledger-content"],
    ),
    row(
        "yaml: clients need no certificate",
        "yaml '/^client-transport/,/^peer/ s/client-cert-auth: true/client-cert-auth: false/'",
        WORKS,
        &["etcd-client-auth", "ledger-content"],
    ),
    row(
        "yaml: no section for peers",
        "yaml '/^peer-transport/,/auto-tls/ d'",
        ENDS,
        &["etcd-client-auth", "etcd-refuses-start", "ledger-content", "tls-file"],
    ),
    row(
        "yaml: an unknown log level",
        "yaml 's/^log-level: .*/log-level: loud/'",
        ENDS,
        &["etcd-refuses-start", "ledger-content"],
    ),
    row("yaml: empty", ": >$YAML", ENDS, &["etcd-config-syntax", "ledger-content", "tls-file"]),
];

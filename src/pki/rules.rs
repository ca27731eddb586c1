//! The rules of the store: what can be wrong with it, and what `--locked` refuses.

use crate::finding::{Rule, Severity};

macro_rules! rule {
    ($name:ident, $code:literal, $severity:ident, $summary:literal, $explanation:literal) => {
        #[doc = $summary]
        pub static $name: Rule = Rule {
            code: $code,
            family: "pki",
            severity: Severity::$severity,
            summary: $summary,
            explanation: $explanation,
        };
    };
}

rule!(
    MISSING,
    "store-missing",
    Error,
    "there is no certificate store",
    "Every image carries certificates, and they come from the store of this mesh (`pki/` beside `mesh.toml`, or `--pki \
     DIR`). A build never invents an authority: images of two inventions would not talk to each other. Make the store \
     once with `fitout pki init`, keep it safe, and point every build at it."
);
rule!(
    EXISTS,
    "store-exists",
    Error,
    "there is a certificate store already",
    "`fitout pki init` makes new authorities. Over an existing store that would cut every appliance in the field off \
     from every new image, so it is refused. To start over on purpose, move the old store away first."
);
rule!(
    DAMAGED,
    "store-damaged",
    Error,
    "a file of the certificate store is missing or cannot be understood",
    "The store's description (`store.toml`), an authority's certificate or a leaf is missing, is no PEM or X.509, or is \
     of a schema that this version does not know. Restore the file from a copy. A node's files may also be removed \
     together: the next `fitout pki issue` makes new ones."
);
rule!(
    FOREIGN,
    "store-foreign",
    Error,
    "the certificate store belongs to another mesh",
    "Two meshes with one authority would accept each other's nodes as their own. `store.toml` records the mesh for \
     which the store was made; its name must be the declared one."
);
rule!(
    KEY_MISMATCH,
    "store-key-mismatch",
    Error,
    "a private key does not belong to its certificate",
    "The public key in the certificate is not the one of the private key beside it: the pair was mixed up by hand or by \
     a partial copy. etcd exits 1 with `tls: private key does not match public key`. Restore both files from one copy, \
     or remove both and issue again."
);
rule!(
    KEY_MODE,
    "store-key-mode",
    Error,
    "a private key of the store is open to others",
    "A plain private key must be readable by its owner alone (`0600`). Encrypted keys may be open: that is what lets a \
     store be committed. A version control system does not keep `0600`, so a plain store does not belong in one."
);
rule!(
    PASSPHRASE,
    "store-passphrase",
    Error,
    "the passphrase is missing or wrong",
    "The private keys are encrypted (PKCS#8, PBES2 with scrypt and AES-256). The passphrase is looked for in \
     `--passphrase-file`, the systemd credential `fitout-passphrase`, the variable `FITOUT_PASSPHRASE`, and asked for \
     on a terminal, in this order. The encryption carries no check value, so it is proven by comparing the public key \
     with the one in the certificate."
);
rule!(
    AUTHORITY_KEY,
    "store-authority-key",
    Error,
    "a certificate must be signed and the authority's key is not in the store",
    "An authority's key may be kept elsewhere while nothing has to be issued. Put it back to issue."
);
rule!(
    AUTHORITY_DATES,
    "store-authority-dates",
    Error,
    "the authority is expired or not yet valid",
    "Nothing that it signs would be accepted: Go checks the dates of the root too. When the authority is not yet valid \
     the clock of this machine is wrong. When it is expired, every appliance needs new certificates."
);
rule!(
    NOT_YET_VALID,
    "store-not-yet-valid",
    Error,
    "a certificate of the store is not yet valid",
    "It was issued later than this machine believes it to be: the clock of this machine, or of the one that issued it, \
     is wrong. Nothing is issued while the clock is in doubt."
);
rule!(
    NAME,
    "certificate-name",
    Error,
    "a name cannot stand in a certificate",
    "Names are checked by the strictest rule of all that read them: host names of RFC 1123 without a final dot (Go since \
     1.24.8 and 1.25.2 refuses to parse others), and common names of at most 64 characters (RFC 5280, ub-common-name). \
     etcd takes the common name of a client certificate as the user: `node:<name>` or `operator:<name>`."
);
rule!(
    ISSUE_REFUSED,
    "issue-refused",
    Error,
    "a certificate would be issued, and that is not allowed here",
    "With `--locked` nothing is issued, so that a build gives the same bytes as the last one; `verify -C` never issues. \
     Run `fitout pki issue` first, and commit or keep what it wrote."
);
rule!(
    EXPIRED,
    "certificate-expired",
    Error,
    "a certificate of the store is expired",
    "Whoever carries it is refused with `x509: certificate has expired or is not yet valid`. Issue again, build, ship. \
     An expired authority takes all that it signed with it."
);
rule!(
    DUE,
    "certificate-due",
    Warning,
    "a certificate of the store is due for renewal",
    "Less than `[pki] renew-before` is left. `fitout pki issue`, and every build that may issue, makes a new one; it \
     counts only when the new image is on the appliance."
);

/// All rules of this family.
pub static RULES: &[&Rule] = &[
    &MISSING,
    &EXISTS,
    &DAMAGED,
    &FOREIGN,
    &KEY_MISMATCH,
    &KEY_MODE,
    &PASSPHRASE,
    &AUTHORITY_KEY,
    &AUTHORITY_DATES,
    &NOT_YET_VALID,
    &NAME,
    &ISSUE_REFUSED,
    &EXPIRED,
    &DUE,
];

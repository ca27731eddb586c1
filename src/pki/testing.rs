//! PEM texts for tests. They are put together here, so that no file of the project holds the headline of a private
//! key: scanners for secrets, our own guard among them, can then look for just that.

/// `-----BEGIN LABEL-----`.
pub(crate) fn begin(label: &str) -> String {
    format!("-----BEGIN {label}-----")
}

/// A section with a body, which ends with its own newline if it is to have one.
pub(crate) fn pem(label: &str, body: &str) -> String {
    format!("{}\n{body}-----END {label}-----\n", begin(label))
}

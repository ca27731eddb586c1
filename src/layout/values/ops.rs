//! What the nodes report about themselves.

use std::num::NonZeroU32;

use crate::layout::field::object;
use crate::layout::text::{Serial, Sha256, Time};

object! {
    /// A certificate that a node uses.
    pub struct Certificate {
        /// Its serial number.
        pub serial: Serial,
        /// When it ends.
        pub not_after: Time,
        /// SHA-256 of its DER form.
        pub fingerprint_sha256: Sha256,
        /// Its subject or first name, for people.
        pub subject: Option<String>,
    }
}

object! {
    /// A backup that a node made.
    pub struct Backup {
        /// SHA-256 of the snapshot file.
        pub sha256: Sha256,
        /// Size of the snapshot file, bytes.
        pub size_bytes: u64,
        /// Revision of the registry that it holds; the key says the same.
        pub revision: u64,
        /// Generation of the registry in which it was made.
        pub generation: NonZeroU32,
        /// When a restore of it was last rehearsed; absent when never.
        pub rehearsed_at: Option<Time>,
    }
}

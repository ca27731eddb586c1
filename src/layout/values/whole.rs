//! What there is once: the registry's identity and its schema.

use std::num::NonZeroU32;

use crate::layout::field::object;
use crate::layout::text::{HexId, Label, Sha256, Time, Uuid};

object! {
    /// Which registry this is. Written once, when absent; only a restore writes it again, with a higher generation.
    /// Every write below /mesh/ compares the mod_revision of this key with the one from which the generation was read.
    pub struct Identity {
        /// Name of the mesh.
        pub mesh: Label,
        /// Made at random when the registry was bootstrapped; kept by a restore.
        pub uuid: Uuid,
        /// 1 at birth; each restore raises it.
        pub generation: NonZeroU32,
        /// etcd's initial-cluster-token: the mesh's name, -g and the generation.
        pub token: String,
        /// Id of the etcd cluster, which follows from the birth record.
        pub cluster_id: HexId,
        /// When this generation began.
        pub born: Time,
        /// The backup that this generation was restored from; absent in the first.
        pub restored_from: Option<RestoredFrom>,
    }
}

object! {
    /// A backup that a generation began with.
    pub struct RestoredFrom {
        /// SHA-256 of the snapshot file.
        pub sha256: Sha256,
        /// Revision of the registry that it held.
        pub revision: u64,
        /// Generation that it was made in.
        pub generation: NonZeroU32,
        /// When it was made.
        pub time: Option<Time>,
    }
}

object! {
    /// Which layout the registry has, and which programs may use it.
    pub struct Schema {
        /// The schema: 1.
        pub schema: NonZeroU32,
        /// Oldest schema whose programs may read this registry.
        pub least_reader: NonZeroU32,
        /// Oldest schema whose programs may write it.
        pub least_writer: NonZeroU32,
        /// Name and version of the program that wrote this, for people.
        pub written_by: String,
    }
}

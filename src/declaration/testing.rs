//! A good mesh for tests.

use super::{Files, MESH_FILE, Mesh, parse};

/// Three voters in three sites, and a group of clients.
pub(crate) const QUORUM: &str = r#"
[mesh]
name = "harbour"
topology = "quorum"
network = "10.77.0.0/16"

[image]
version = "1"

[base.common]
debian = "trixie"

[registry]
round-trip = "30ms"

[pki]
renew-before = "720h"

[site.lisbon]
[site.porto]
[site.madrid]

[node.lis1]
site = "lisbon"
address = "10.77.0.11"
profile = "voter"
service.postgres = { port = 5432, data-set = "orders" }

[node.por1]
site = "porto"
address = "10.77.0.12"
profile = "voter"
service.postgres = { port = 5432, data-set = "orders" }

[node.mad1]
site = "madrid"
address = "10.77.0.13"
profile = "arbiter"

[nodes.edge]
count = 3
site = "porto"
addresses = "10.77.1.1-10.77.1.9"
profile = "client"
"#;

/// One control plane and a client.
pub(crate) const SINGLE: &str = r#"
[mesh]
name = "harbour"
topology = "single"
network = "10.77.0.0/24"

[image]
version = "1"

[base.common]
debian = "trixie"

[site.lisbon]

[node.plane]
site = "lisbon"
address = "10.77.0.11"
profile = "control-plane"

[node.shop]
site = "lisbon"
address = "10.77.0.12"
profile = "client"
"#;

/// The built-in library with a `mesh.toml`.
pub(crate) fn files(mesh: &str) -> Files {
    Files::builtin().with(MESH_FILE, mesh)
}

/// [`QUORUM`] as a mesh.
pub(crate) fn mesh() -> Mesh {
    parse(&files(QUORUM)).unwrap().mesh
}

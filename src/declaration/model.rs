//! The typed model of a mesh. Only data; no rule lives here.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;

use crate::finding::{Allowance, Spanned};

/// The whole declared system.
#[derive(Debug, Clone)]
pub struct Mesh {
    /// Directory that holds `mesh.toml`; relative paths of the declaration start here.
    pub directory: PathBuf,
    /// `[mesh] name`, an RFC 1123 label.
    pub name: Spanned<String>,
    /// `[mesh] topology`.
    pub topology: Spanned<Topology>,
    /// `[mesh] domain`; a node's FQDN is `<node>.<domain>`.
    pub domain: Spanned<String>,
    /// `[mesh] network`: every node's address lies in it.
    pub network: Spanned<IpNet>,
    /// `[mesh] time-to-rebuild`: promise to build, ship and start an image.
    pub time_to_rebuild: Spanned<Duration>,
    /// `[mesh] corosync-sites`: sites across which Corosync is allowed; empty means never across sites.
    pub corosync_sites: Vec<Spanned<String>>,
    /// `[image]`.
    pub image: Image,
    /// The base that `[image] base` names.
    pub base: Base,
    /// `[registry]`.
    pub registry: Registry,
    /// `[pki]`.
    pub pki: Pki,
    /// `[clock]`.
    pub clock: Clock,
    /// `[agent]`.
    pub agent: Agent,
    /// `[site.*]` by name.
    pub sites: BTreeMap<String, Site>,
    /// All nodes by name, with `[nodes.*]` groups expanded.
    pub nodes: BTreeMap<String, Node>,
    /// `[allow.*]`, in the order of the file; those that are over, too.
    pub allow: Vec<Allowance>,
    /// Every profile that a node uses, by name.
    pub profiles: BTreeMap<String, Profile>,
    /// Every overlay that a used profile names or requires, by name.
    pub overlays: BTreeMap<String, Overlay>,
    /// Files of `templates/` (built-in, overridden by the user's) that overlay templates may include,
    /// by name relative to `templates/`.
    pub templates: BTreeMap<String, LibraryFile>,
}

/// How the registry votes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Topology {
    /// An odd number of voters in at least three sites.
    Quorum,
    /// One declared control plane; nothing takes over when it is down.
    Single,
}

/// `[image]`.
#[derive(Debug, Clone)]
pub struct Image {
    /// `version`, goes to `IMAGE_VERSION=`.
    pub version: Spanned<String>,
    /// `formats`; today only [`Format::TarGz`] is made.
    pub formats: Vec<Spanned<Format>>,
    /// `target`.
    pub target: Target,
    /// `ssh-authorized-keys`: lines for root's `authorized_keys`; empty leaves root locked.
    pub ssh_authorized_keys: Vec<Spanned<String>>,
}

/// Output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Format {
    /// One gzip member holding a tar.
    #[serde(rename = "tar.gz")]
    TarGz,
}

/// What the images run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// A virtual or real machine, or a container with a machine's rights (nspawn): time sync runs inside.
    Machine,
    /// A container of the host's: the host keeps the time.
    Container,
    /// The same without privileges: no device nodes.
    UnprivilegedContainer,
}

/// `[base.NAME]`: where the common image comes from.
#[derive(Debug, Clone)]
pub struct Base {
    /// The name after `base.`.
    pub name: Spanned<String>,
    /// What it is made of.
    pub source: BaseSource,
    /// Packages beyond what the overlays ask for (debian bases).
    pub packages: Vec<Spanned<String>>,
}

/// One of the ways to a base.
#[derive(Debug, Clone)]
pub enum BaseSource {
    /// `debian = "trixie"`, made by mmdebstrap.
    Debian {
        /// Suite.
        suite: Spanned<String>,
        /// `mirror = "…"`: mmdebstrap's default when absent.
        mirror: Option<Spanned<String>>,
    },
    /// `tar = path` with `sha256`.
    Tar {
        /// Path relative to the mesh's directory.
        path: Spanned<PathBuf>,
        /// Lower-case hex of the file's SHA-256.
        sha256: Spanned<String>,
    },
    /// `dir = path`.
    Dir {
        /// Path relative to the mesh's directory.
        path: Spanned<PathBuf>,
    },
    /// `oci = path`, an OCI image layout on disk.
    Oci {
        /// Path relative to the mesh's directory.
        path: Spanned<PathBuf>,
        /// Which of its images.
        choice: OciChoice,
    },
}

/// Which image of an OCI layout.
#[derive(Debug, Clone, Default)]
pub struct OciChoice {
    /// `ref`: its name in the layout (`org.opencontainers.image.ref.name`).
    pub reference: Option<Spanned<String>>,
    /// `digest`: `sha256:` and 64 hex digits of its manifest, or of an index that leads to it.
    pub digest: Option<Spanned<String>>,
    /// `architecture`: as Go names it, with `/` and the variant where there is one; the build host's when absent.
    pub architecture: Option<Spanned<String>>,
}

/// `[registry]`.
#[derive(Debug, Clone)]
pub struct Registry {
    /// Part of the token; only a restore raises it. At least 1.
    pub generation: Spanned<u32>,
    /// etcd's backend quota in bytes.
    pub quota: Spanned<u64>,
    /// Worst round trip between two sites.
    pub round_trip: Spanned<Duration>,
    /// `[round-trip]` table: per pair of sites, names sorted.
    pub round_trips: BTreeMap<(String, String), Spanned<Duration>>,
    /// `heartbeat`: override of the derived one.
    pub heartbeat: Option<Spanned<Duration>>,
    /// `election`: override of the derived one.
    pub election: Option<Spanned<Duration>>,
}

/// `[pki]`.
#[derive(Debug, Clone)]
pub struct Pki {
    /// Life of an authority.
    pub authority_lifetime: Spanned<Duration>,
    /// Life of server certificates.
    pub server_lifetime: Spanned<Duration>,
    /// Life of client certificates.
    pub client_lifetime: Spanned<Duration>,
    /// Life of peer certificates.
    pub peer_lifetime: Spanned<Duration>,
    /// Certificates are reissued when less than this is left.
    pub renew_before: Spanned<Duration>,
}

/// `[clock]`.
#[derive(Debug, Clone, Default)]
pub struct Clock {
    /// Globs of the public certificates on the nodes that count too.
    pub certificates: Vec<Spanned<String>>,
}

/// `[agent]`: the on-node announcer.
#[derive(Debug, Clone, Default)]
pub struct Agent {
    /// `binary.<architecture>`: the program to put into images of that architecture, relative to the mesh's directory. The
    /// one beside `fitout` where none is named.
    pub binaries: BTreeMap<String, Spanned<PathBuf>>,
}

/// Architectures for which a program can be named, as Go and OCI images name them.
pub const ARCHITECTURES: [&str; 9] =
    ["386", "amd64", "arm", "arm64", "loong64", "mips64le", "ppc64le", "riscv64", "s390x"];

/// `[site.NAME]`.
#[derive(Debug, Clone)]
pub struct Site {
    /// The name, with the place of its header.
    pub name: Spanned<String>,
}

/// One appliance.
#[derive(Debug, Clone)]
pub struct Node {
    /// The name, with the place of its header.
    pub name: Spanned<String>,
    /// Its site.
    pub site: Spanned<String>,
    /// Its address in the mesh's network.
    pub address: Spanned<IpAddr>,
    /// Its profile.
    pub profile: Spanned<String>,
    /// Its services.
    pub services: BTreeMap<String, Service>,
    /// Values for parameters of its profile's overlays (`parameters.NAME = …`).
    pub parameters: BTreeMap<String, Spanned<Value>>,
}

/// A service of a node.
#[derive(Debug, Clone)]
pub struct Service {
    /// The name, with its place.
    pub name: Spanned<String>,
    /// TCP port.
    pub port: Spanned<u16>,
    /// The data set that this is a replica of.
    pub data_set: Option<Spanned<String>>,
    /// `unit`: the systemd unit that must be active for the service to be ready; none: something listens on the port.
    pub unit: Option<Spanned<String>>,
}

/// A node's part in the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// Votes and may hold data.
    Voter,
    /// Votes; offers no service and holds no data set.
    Arbiter,
    /// Uses the registry.
    Client,
    /// The one control plane of topology `single`.
    ControlPlane,
}

impl Part {
    /// True when etcd runs there.
    pub fn runs_registry(self) -> bool {
        !matches!(self, Part::Client)
    }
    /// The word of the declaration.
    pub fn as_str(self) -> &'static str {
        match self {
            Part::Voter => "voter",
            Part::Arbiter => "arbiter",
            Part::Client => "client",
            Part::ControlPlane => "control-plane",
        }
    }
}

/// What kind of appliance a node is (`profiles/NAME.toml`).
#[derive(Debug, Clone)]
pub struct Profile {
    /// File name without `.toml`.
    pub name: Spanned<String>,
    /// One line for people.
    pub description: String,
    /// `part`.
    pub part: Spanned<Part>,
    /// `overlays`, in order; `mesh` is always the first.
    pub overlays: Vec<Spanned<String>>,
    /// `[parameters]`.
    pub parameters: BTreeMap<String, Spanned<Value>>,
    /// `[units]`: state per unit, over what the overlays say.
    pub units: BTreeMap<String, Spanned<UnitState>>,
}

/// What a unit's enablement shall be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnitState {
    /// Nothing starts it at boot and no preset enables it.
    Stopped,
    /// Its `[Install]` links are there and the preset enables it.
    Enabled,
    /// A link to `/dev/null`.
    Masked,
}

/// A parameter's value.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub enum Value {
    /// `true` or `false`.
    Boolean(bool),
    /// Whole number.
    Integer(i64),
    /// Text.
    String(String),
    /// List of texts.
    Strings(Vec<String>),
}

/// A directory tree plus a manifest (`overlays/NAME/`).
#[derive(Debug, Clone)]
pub struct Overlay {
    /// Directory name.
    pub name: String,
    /// `overlay.toml`.
    pub manifest: Manifest,
    /// What lies below `root/`, by path relative to it, `.tera` still on, sorted.
    pub files: BTreeMap<String, LibraryFile>,
}

/// A file of the library: embedded, or beside the user's `mesh.toml`.
#[derive(Debug, Clone)]
pub struct LibraryFile {
    /// Name for messages: `overlays/etcd/root/etc/…`, with `<built-in>/` in front when embedded.
    pub name: String,
    /// What it is.
    pub content: LibraryContent,
}

/// What a library file is. Modes are never taken from it.
#[derive(Debug, Clone)]
pub enum LibraryContent {
    /// A regular file.
    File(std::sync::Arc<[u8]>),
    /// A symbolic link with its target.
    Link(String),
    /// An empty directory (others follow from their files).
    Directory,
}

/// `overlay.toml`.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// The file itself, for messages about what it lacks.
    pub source: std::sync::Arc<crate::finding::Source>,
    /// One line for people.
    pub description: String,
    /// Registry parts that may carry it; empty: all.
    pub parts: Vec<Spanned<Part>>,
    /// Overlays that must come earlier in the same profile.
    pub requires: Vec<Spanned<String>>,
    /// Overlays that may not be in the same profile.
    pub conflicts: Vec<Spanned<String>>,
    /// `provides`: Debian packages that the base need not have, since this overlay brings what is needed of them.
    pub provides: Vec<Spanned<String>>,
    /// Debian packages that the base must have.
    pub packages: Vec<Spanned<String>>,
    /// Absolute paths that the base must have.
    pub base_paths: Vec<Spanned<String>>,
    /// `[parameter.NAME]`.
    pub parameters: BTreeMap<String, Parameter>,
    /// `[path."/etc/x"]`: owner, mode, replace.
    pub paths: BTreeMap<String, PathRule>,
    /// `remove`: absolute globs; with a leading `?` those that a base may lack.
    pub removals: Vec<Spanned<String>>,
    /// `[unit."x.service"] state = …`.
    pub units: BTreeMap<String, Spanned<UnitState>>,
    /// `edits`: the built-in edits, each with the place that asks for it.
    pub edits: Vec<Spanned<Edit>>,
    /// `[user.NAME]`: system users (and a group of the same name) that the overlay needs.
    pub users: BTreeMap<String, User>,
}

/// `[parameter.NAME]`.
#[derive(Debug, Clone)]
pub struct Parameter {
    /// Name, with its place.
    pub name: Spanned<String>,
    /// Type of the value.
    pub kind: ParameterKind,
    /// Default; a parameter without one must be given.
    pub default: Option<Value>,
    /// One line for people.
    pub description: String,
}

/// Type of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterKind {
    /// `boolean`.
    Boolean,
    /// `integer`.
    Integer,
    /// `string`.
    String,
    /// `strings`.
    Strings,
}

/// `[path."…"]`: what an overlay says of one path.
#[derive(Debug, Clone)]
pub struct PathRule {
    /// The absolute path, with its place.
    pub path: Spanned<String>,
    /// 12-bit mode; default `0644`, `0755` for directories.
    pub mode: Option<Spanned<u16>>,
    /// User name or number; default `root`.
    pub user: Option<Spanned<String>>,
    /// Group name or number; default `root`.
    pub group: Option<Spanned<String>>,
    /// May replace an entry of another type, or another overlay's.
    pub replace: Option<Spanned<bool>>,
    /// Directory to make though no file lies in it.
    pub directory: bool,
    /// `link = "TARGET"`: make this symbolic link though the overlay holds none there.
    pub link: Option<Spanned<String>>,
    /// `program = "mesh-agent"`: put the announcer here, from `[agent]` or from beside `fitout`.
    pub program: Option<Spanned<Program>>,
}

/// A program of fitout's own that an overlay can put into an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Program {
    /// `mesh-agent`, the on-node announcer.
    MeshAgent,
}

/// A change of a file that is the base's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edit {
    /// `IMAGE_ID=` and `IMAGE_VERSION=` in `/usr/lib/os-release`.
    OsRelease,
    /// passwd, group, shadow, gshadow: the system users of the overlay.
    Users,
    /// A marked block in `/etc/hosts`.
    Hosts,
}

/// `[user.NAME]`.
#[derive(Debug, Clone)]
pub struct User {
    /// Name, with its place.
    pub name: Spanned<String>,
    /// Home directory; default `/nonexistent`.
    pub home: String,
    /// Comment field.
    pub description: String,
}

impl Mesh {
    /// The profile of a node.
    ///
    /// # Panics
    /// Never for nodes of this mesh: the declaration's rules refuse a reference that does not resolve.
    pub fn profile_of(&self, node: &Node) -> &Profile {
        &self.profiles[&node.profile.value]
    }
    /// A node's part in the registry.
    pub fn part_of(&self, node: &Node) -> Part {
        self.profile_of(node).part.value
    }
    /// The nodes on which etcd runs, by name: voters and arbiter, or the control plane.
    pub fn registry_nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.values().filter(|n| self.part_of(n).runs_registry())
    }
    /// `<node>.<domain>`.
    pub fn fqdn(&self, node: &Node) -> String {
        format!("{}.{}", node.name.value, self.domain.value)
    }
    /// etcd's cluster token: `<mesh>-g<generation>`.
    pub fn token(&self) -> String {
        format!("{}-g{}", self.name.value, self.registry.generation.value)
    }
}

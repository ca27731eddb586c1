//! `mesh.toml`.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use toml::de::DeValue;

use super::model::{
    ARCHITECTURES, Agent, Base, BaseSource, Clock, Format, Image, Mesh, OciChoice, Pki, Registry, Site, Target,
    Topology,
};
use super::nodes;
use super::section::Section;
use super::suggest;
use super::table::{Refusal, Table};
use super::values::{self, INVALID_VALUE, not_there_yet};
use crate::finding::{Rule, Severity, Span, Spanned};

/// A name refers to nothing that is declared.
pub static UNKNOWN_REFERENCE: Rule = Rule {
    code: "unknown-reference",
    family: "declaration",
    severity: Severity::Error,
    summary: "a name refers to nothing that is declared",
    explanation: "Sites are declared by `[site.NAME]`, bases by `[base.NAME]`, profiles are files `profiles/NAME.toml` and \
        overlays directories `overlays/NAME`, built in or beside mesh.toml.",
};

/// A base does not say what it is made of, or says it twice.
pub static BASE_SOURCE: Rule = Rule {
    code: "base-source",
    family: "declaration",
    severity: Severity::Error,
    summary: "a base does not say what it is made of, or says it twice",
    explanation: "A base is exactly one of `debian = SUITE` (made by mmdebstrap), `tar = PATH` with `sha256`, or \
        `dir = PATH` (an unpacked root file system), or `oci = PATH` (an OCI image layout on disk). `packages` and `mirror` \
        belong to `debian`; `sha256` belongs to `tar`; `ref`, `digest` and `architecture` belong to `oci`.",
};

/// Something is declared that nothing uses.
pub static UNUSED: Rule = Rule {
    code: "unused",
    family: "declaration",
    severity: Severity::Warning,
    summary: "something is declared that nothing uses",
    explanation: "A site without nodes, a base that `[image] base` does not name, or a profile or overlay of your own that \
        no node uses. It is harmless, and often a sign of a misspelt name.",
};

/// Rules of this file.
pub(super) const RULES: &[&Rule] = &[&UNKNOWN_REFERENCE, &BASE_SOURCE, &UNUSED];

const HOUR: Duration = Duration::from_secs(3600);

/// Reads `mesh.toml`; profiles, overlays and templates are put in by the caller.
pub(super) fn decode(mut file: Table<'_>, directory: &Path) -> Mesh {
    let file_span = file.span();
    let head = section(&mut file, "mesh", Section::Mesh, Some("name, topology and network of the mesh"));
    let (name, topology, domain, network, time_to_rebuild, corosync_sites) = mesh_section(head, &file_span);
    let image_table = section(&mut file, "image", Section::Image, Some("version of the images"));
    let (image, base_name) = image_section(image_table, &file_span);
    let base = bases(&mut file, &base_name);
    let mut registry = registry_section(file.table("registry", Section::Registry), &file_span);
    registry.round_trips = round_trips(&mut file);
    let pki = pki_section(file.table("pki", Section::Pki), &file_span);
    file.later("clock", "the report on certificates and how long the control plane is away");
    let agent = agent_section(file.table("agent", Section::Image));
    let mut sites = BTreeMap::new();
    for (name, table) in file.tables("site", Section::Sites) {
        nodes::check_name(file.reports, "site", &name);
        table.finish();
        sites.insert(name.value.clone(), Site { name });
    }
    let nodes = nodes::nodes(&mut file);
    let allow = super::allow::decode(&mut file);
    file.finish();
    Mesh {
        directory: directory.to_owned(),
        name,
        topology,
        domain,
        network,
        time_to_rebuild,
        corosync_sites,
        image,
        base,
        registry,
        pki,
        clock: Clock::default(),
        agent,
        sites,
        nodes,
        allow,
        profiles: BTreeMap::new(),
        overlays: BTreeMap::new(),
        templates: BTreeMap::new(),
    }
}

/// A top-level table; when it `must` be there and is not, that is reported.
fn section<'a>(file: &mut Table<'a>, key: &'static str, section: Section, must: Option<&str>) -> Option<Table<'a>> {
    if let (None, Some(what)) = (file.key_span(key), must) {
        file.section = section;
        file.missing(key, &format!("add a table `[{key}]` with {what}; `fitout init DIR` writes a commented one"));
    }
    file.table(key, section)
}

fn topology(value: &DeValue<'_>) -> Result<Topology, Refusal> {
    values::word(value, &[("quorum", Topology::Quorum), ("single", Topology::Single)])
}

type MeshSection = (
    Spanned<String>,
    Spanned<Topology>,
    Spanned<String>,
    Spanned<ipnet::IpNet>,
    Spanned<Duration>,
    Vec<Spanned<String>>,
);

fn mesh_section(table: Option<Table<'_>>, file: &Span) -> MeshSection {
    let stand_in = |span: &Span| Spanned::new("mesh".to_owned(), span.clone());
    let any = ipnet::IpNet::V4(ipnet::Ipv4Net::default());
    let Some(mut table) = table else {
        let domain = Spanned::new("mesh".to_owned(), file.clone());
        return (
            stand_in(file),
            Spanned::new(Topology::Quorum, file.clone()),
            domain,
            Spanned::new(any, file.clone()),
            Spanned::new(4 * HOUR, file.clone()),
            Vec::new(),
        );
    };
    let span = table.span();
    let name = table.need("name", values::label, "\"harbour\"").unwrap_or_else(|| stand_in(&span));
    let topology =
        table.need("topology", topology, "\"quorum\"").unwrap_or_else(|| Spanned::new(Topology::Quorum, span.clone()));
    let default_domain = format!("{}.mesh", name.value);
    let domain = table.get_or("domain", values::domain, default_domain);
    let network =
        table.need("network", values::network, "\"10.77.0.0/24\"").unwrap_or_else(|| Spanned::new(any, span.clone()));
    let rebuild = table.get_or("time-to-rebuild", values::duration, 4 * HOUR);
    let corosync = table.list("corosync-sites", values::text);
    table.finish();
    (name, topology, domain, network, rebuild, corosync)
}

/// `IMAGE_VERSION=` of os-release(5): lower-case letters, digits, `.`, `_`, `-`.
fn image_version(value: &DeValue<'_>) -> Result<String, Refusal> {
    let text = values::line(value)?;
    let good = text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b));
    if !good {
        return Err(Refusal::new(&INVALID_VALUE, format!("`{}` is not an image version", text.escape_debug()))
            .help("os-release(5) allows lower-case letters, digits, `.`, `_` and `-` in IMAGE_VERSION="));
    }
    Ok(text)
}

fn format(value: &DeValue<'_>) -> Result<Format, Refusal> {
    if let DeValue::String(text) = value
        && ["tar.zst", "oci", "erofs"].contains(&text.as_ref())
    {
        return Err(not_there_yet(&format!("the format `{text}`")));
    }
    values::word(value, &[("tar.gz", Format::TarGz)])
}

fn target(value: &DeValue<'_>) -> Result<Target, Refusal> {
    values::word(
        value,
        &[
            ("machine", Target::Machine),
            ("container", Target::Container),
            ("unprivileged-container", Target::UnprivilegedContainer),
        ],
    )
}

fn keys(value: &DeValue<'_>) -> Result<(), Refusal> {
    match value.as_str() {
        Some("credentials") => Err(not_there_yet("delivering keys as systemd credentials")),
        _ => values::word(value, &[("embed", ())]),
    }
}

fn network_config(value: &DeValue<'_>) -> Result<(), Refusal> {
    match value.as_str() {
        Some("networkd") => Err(not_there_yet("rendering the network's configuration into the image")),
        _ => values::word(value, &[("none", ())]),
    }
}

/// A line of `authorized_keys`. Only what nobody can mean is refused: a private key, several lines.
fn authorized_key(value: &DeValue<'_>) -> Result<String, Refusal> {
    let text = values::text(value)?;
    if text.contains("PRIVATE KEY") {
        return Err(Refusal::new(&INVALID_VALUE, "this is a private key").help("give the line of the `.pub` file"));
    }
    let line = values::line(value)?;
    let kinds = ["ssh-", "ecdsa-", "sk-ssh-", "sk-ecdsa-"];
    if !line.split_whitespace().any(|word| kinds.iter().any(|k| word.starts_with(k))) {
        return Err(Refusal::new(&INVALID_VALUE, "is not a public key of SSH")
            .help("give the line of the `.pub` file: \"ssh-ed25519 AAAA… name\""));
    }
    Ok(line)
}

fn image_section(table: Option<Table<'_>>, file: &Span) -> (Image, Spanned<String>) {
    let Some(mut table) = table else {
        let image = Image {
            version: Spanned::new("0".to_owned(), file.clone()),
            formats: vec![Spanned::new(Format::TarGz, file.clone())],
            target: Target::Machine,
            ssh_authorized_keys: Vec::new(),
        };
        return (image, Spanned::new("common".to_owned(), file.clone()));
    };
    let base = table.get_or("base", values::text, "common".to_owned());
    let version = table
        .need("version", image_version, "\"2026.11.0\"")
        .unwrap_or_else(|| Spanned::new("0".to_owned(), table.span()));
    let given = table.key_span("formats");
    let mut formats = table.list("formats", format);
    match given {
        None => formats.push(table.implied(Format::TarGz)),
        Some(span) if formats.is_empty() => {
            let refusal = Refusal::new(&INVALID_VALUE, "an image needs a format").help("write `[\"tar.gz\"]`");
            if table.reports.sound(&[Section::Image]) {
                table.refuse("formats", &span, refusal);
            }
        }
        Some(_) => {}
    }
    let target = table.get_or("target", target, Target::Machine).value;
    table.get("keys", keys);
    table.get("network-config", network_config);
    let ssh_authorized_keys = table.list("ssh-authorized-keys", authorized_key);
    table.finish();
    (Image { version, formats, target, ssh_authorized_keys }, base)
}

fn suite(value: &DeValue<'_>) -> Result<String, Refusal> {
    let text = values::line(value)?;
    let good = text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.".contains(&b));
    if !good || text.starts_with('-') {
        return Err(
            Refusal::new(&INVALID_VALUE, format!("`{text}` is not a suite of Debian")).help("for instance \"trixie\"")
        );
    }
    Ok(text)
}

fn bases(file: &mut Table<'_>, wanted: &Spanned<String>) -> Base {
    let reports = file.reports;
    let stand_in = Base {
        name: wanted.clone(),
        source: BaseSource::Debian { suite: wanted.clone(), mirror: None },
        packages: Vec::new(),
    };
    let mut found = None;
    let mut names = Vec::new();
    for (name, table) in file.tables("base", Section::Base) {
        nodes::check_name(reports, "base", &name);
        names.push(name.value.clone());
        let is_wanted = name.value == wanted.value;
        if !is_wanted {
            let subject = format!("base.{}", name.value);
            reports.add(UNUSED.finding(subject, "no image is made from this base").at(&name.span));
        }
        let base = base(name, table);
        if is_wanted {
            found = Some(base.unwrap_or_else(|| stand_in.clone()));
        }
    }
    found.unwrap_or_else(|| {
        let known: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut finding = UNKNOWN_REFERENCE
            .finding("image.base", format!("there is no base `{}`", wanted.value.escape_debug()))
            .at(&wanted.span);
        finding.help = if known.is_empty() {
            Some(format!("add `[base.{}]` with `debian = \"trixie\"`", wanted.value))
        } else {
            suggest::help(&wanted.value, "base", &known)
        };
        reports.broken(Section::Base, finding);
        stand_in
    })
}

fn base(name: Spanned<String>, mut table: Table<'_>) -> Option<Base> {
    let debian = table.get("debian", suite);
    let mirror = table.get("mirror", values::line);
    let tar = table.get("tar", values::host_path);
    let sha256 = table.get("sha256", values::sha256);
    let dir = table.get("dir", values::host_path);
    let oci = table.get("oci", values::host_path);
    let choice = OciChoice {
        reference: table.get("ref", values::line),
        digest: table.get("digest", values::digest),
        architecture: table.get("architecture", values::architecture),
    };
    let packages = table.list("packages", values::package);
    let given: Vec<&str> =
        ["debian", "tar", "dir", "oci"].into_iter().filter(|k| table.key_span(k).is_some()).collect();
    let misplaced = |key: &str, belongs: &str| {
        if let (Some(span), false) = (table.key_span(key), given.contains(&belongs)) {
            let refusal = Refusal::new(&BASE_SOURCE, format!("`{key}` belongs to a base with `{belongs} = …`"));
            table.refuse(key, &span, refusal);
        }
    };
    if !given.is_empty() {
        misplaced("packages", "debian");
        misplaced("mirror", "debian");
        misplaced("sha256", "tar");
        ["ref", "digest", "architecture"].into_iter().for_each(|key| misplaced(key, "oci"));
    }
    if given.len() != 1 {
        let said = if given.is_empty() { "nothing".to_owned() } else { given.join(", ") };
        let refusal = Refusal::new(&BASE_SOURCE, format!("a base is made of exactly one thing, this one of: {said}"))
            .help(
                "give one of `debian = \"trixie\"`, `tar = \"PATH\"` with `sha256`, `dir = \"PATH\"`, `oci = \"PATH\"`",
            );
        let subject = format!("base.{}", name.value);
        table.reports.broken(Section::Base, refusal.finding(&subject, &name.span));
    }
    if given.contains(&"tar") && table.key_span("sha256").is_none() {
        table.missing("sha256", "add `sha256 = \"…\"`, as `sha256sum` prints it for the tar");
    }
    table.finish();
    let source = match (debian, tar, dir, oci) {
        (Some(suite), None, None, None) => BaseSource::Debian { suite, mirror },
        (None, Some(path), None, None) => BaseSource::Tar { path, sha256: sha256? },
        (None, None, Some(path), None) => BaseSource::Dir { path },
        (None, None, None, Some(path)) => BaseSource::Oci { path, choice },
        _ => return None,
    };
    Some(Base { name, source, packages })
}

fn registry_section(table: Option<Table<'_>>, file: &Span) -> Registry {
    let round_trip = Duration::from_millis(30);
    let quota = 2 << 30;
    let Some(mut table) = table else {
        return Registry {
            generation: Spanned::new(1, file.clone()),
            quota: Spanned::new(quota, file.clone()),
            round_trip: Spanned::new(round_trip, file.clone()),
            round_trips: BTreeMap::new(),
            heartbeat: None,
            election: None,
        };
    };
    let registry = Registry {
        generation: table.get_or("generation", values::generation, 1),
        quota: table.get_or("quota", values::size, quota),
        round_trip: table.get_or("round-trip", values::duration, round_trip),
        round_trips: BTreeMap::new(),
        heartbeat: table.get("heartbeat", values::duration),
        election: table.get("election", values::duration),
    };
    table.later("snapshot", "taking snapshots by itself");
    table.finish();
    registry
}

/// `[agent] binary.arm64 = "PATH"`.
fn agent_section(table: Option<Table<'_>>) -> Agent {
    let Some(mut table) = table else { return Agent::default() };
    let mut binaries = BTreeMap::new();
    if let Some(inner) = table.table("binary", Section::Image) {
        let reports = inner.reports;
        for (architecture, path) in inner.all_values(values::host_path) {
            if ARCHITECTURES.contains(&architecture.value.as_str()) {
                binaries.insert(architecture.value, path);
                continue;
            }
            let message = format!("`{}` is not an architecture of images", architecture.value.escape_debug());
            let subject = format!("agent.binary.{}", architecture.value.escape_debug());
            let help = format!("one of: {}", ARCHITECTURES.join(", "));
            let refusal = Refusal::new(&INVALID_VALUE, message).help(help);
            reports.broken(Section::Image, refusal.finding(&subject, &architecture.span));
        }
    }
    table.finish();
    Agent { binaries }
}

/// `[round-trip] lisbon.porto = "12ms"`.
fn round_trips(file: &mut Table<'_>) -> BTreeMap<(String, String), Spanned<Duration>> {
    let mut all: BTreeMap<(String, String), Spanned<Duration>> = BTreeMap::new();
    for (from, table) in file.tables("round-trip", Section::Registry) {
        let reports = table.reports;
        for (to, value) in table.all_values(values::duration) {
            let mut pair = [from.value.clone(), to.value.clone()];
            pair.sort();
            let [a, b] = pair;
            let subject = format!("round-trip.{}.{}", from.value, to.value);
            if a == b {
                let refusal = Refusal::new(&INVALID_VALUE, "a site has no round trip to itself");
                reports.broken(Section::Registry, refusal.finding(&subject, &to.span));
            } else if let Some(first) = all.get(&(a.clone(), b.clone())) {
                let refusal = Refusal::new(&INVALID_VALUE, "the round trip of this pair is given twice");
                let finding = refusal.help("a pair is given once, in either order").finding(&subject, &value.span);
                reports.broken(Section::Registry, finding.related(&first.span, "given here first"));
            } else {
                all.insert((a, b), value);
            }
        }
    }
    all
}

/// `server = { lifetime = "43800h" }`.
fn leaf(table: &mut Table<'_>, key: &'static str) -> Spanned<Duration> {
    let default = 43_800 * HOUR;
    let outer = table.implied(default);
    let Some(mut inner) = table.table(key, Section::Pki) else { return outer };
    let lifetime = inner.get_or("lifetime", values::duration, default);
    inner.finish();
    lifetime
}

fn pki_section(table: Option<Table<'_>>, file: &Span) -> Pki {
    let Some(mut table) = table else {
        let leaf = Spanned::new(43_800 * HOUR, file.clone());
        return Pki {
            authority_lifetime: Spanned::new(87_600 * HOUR, file.clone()),
            server_lifetime: leaf.clone(),
            client_lifetime: leaf.clone(),
            peer_lifetime: leaf,
            renew_before: Spanned::new(720 * HOUR, file.clone()),
        };
    };
    let pki = Pki {
        authority_lifetime: table.get_or("authority-lifetime", values::duration, 87_600 * HOUR),
        server_lifetime: leaf(&mut table, "server"),
        client_lifetime: leaf(&mut table, "client"),
        peer_lifetime: leaf(&mut table, "peer"),
        renew_before: table.get_or("renew-before", values::duration, 720 * HOUR),
    };
    table.finish();
    pki
}

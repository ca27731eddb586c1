//! Which image of an OCI layout is meant (image-spec: `image-layout.md`, `image-index.md`, `manifest.md`).

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::blobs::Blobs;
use crate::declaration::OciChoice;
use crate::finding::{Finding, Problem, Span};
use crate::image::base::rules;

/// Key of the annotation that names an image in a layout.
const REF_NAME: &str = "org.opencontainers.image.ref.name";

/// Key of the annotation of what BuildKit puts beside images (provenance, bills of material).
const ATTESTATION: &str = "vnd.docker.reference.type";

/// Indexes within indexes that are followed.
const DEPTH: usize = 4;

/// A reference to a blob.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Descriptor {
    #[serde(default)]
    pub media_type: String,
    pub digest: String,
    pub size: u64,
    #[serde(default)]
    annotations: Option<BTreeMap<String, String>>,
    #[serde(default)]
    platform: Option<Platform>,
}

/// For which machines an image is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Platform {
    #[serde(default)]
    os: String,
    architecture: String,
    #[serde(default)]
    variant: Option<String>,
}

impl Platform {
    fn text(&self) -> String {
        let variant = self.variant.as_deref().map(|v| format!("/{v}")).unwrap_or_default();
        format!("{}/{}{variant}", self.os, self.architecture)
    }

    /// `wanted` is an architecture, with or without a variant.
    fn is(&self, wanted: &str) -> bool {
        let (architecture, variant) = wanted.split_once('/').map_or((wanted, None), |(a, v)| (a, Some(v)));
        let linux = self.os.is_empty() || self.os == "linux";
        linux && self.architecture == architecture && variant.is_none_or(|v| self.variant.as_deref() == Some(v))
    }
}

#[derive(Debug, Deserialize)]
struct Index {
    #[serde(default)]
    manifests: Vec<Descriptor>,
}

/// An image's manifest.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Manifest {
    pub config: Descriptor,
    pub layers: Vec<Descriptor>,
}

/// What of an image's configuration matters for its root file system.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Config {
    #[serde(flatten)]
    platform: Platform,
    pub rootfs: RootFs,
}

/// The layers by what they are uncompressed.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct RootFs {
    pub diff_ids: Vec<String>,
}

/// The chosen image.
#[derive(Debug)]
pub(super) struct Image {
    /// Digest of its manifest.
    pub digest: String,
    pub manifest: Manifest,
    pub config: Config,
}

/// A manifest somewhere in the layout.
#[derive(Debug, Clone)]
struct Leaf {
    descriptor: Descriptor,
    /// Name of it, or of the index that leads to it.
    reference: Option<String>,
    /// Digests on the way, its own last.
    way: Vec<String>,
    platform: Option<Platform>,
}

impl Leaf {
    fn text(&self) -> String {
        let platform = self.platform.as_ref().map_or_else(|| "unknown platform".to_owned(), Platform::text);
        let reference = self.reference.as_ref().map(|r| format!(", ref `{r}`")).unwrap_or_default();
        format!("{} ({platform}{reference})", self.descriptor.digest)
    }
}

/// Finds the image that is meant.
///
/// # Errors
/// Findings when the layout is none, when nothing or more than one image fits, and when its manifest or configuration is
/// missing, damaged or no image's.
pub(super) fn choose(blobs: &Blobs, choice: &OciChoice, span: &Span) -> Result<Image, Problem> {
    let index: Index = blobs.layout()?;
    let mut all = Vec::new();
    for descriptor in index.manifests {
        let reference = descriptor.annotations.as_ref().and_then(|a| a.get(REF_NAME)).cloned();
        expand(blobs, descriptor, reference, Vec::new(), &mut all)?;
    }
    let mut named = all.clone();
    if let Some(wanted) = &choice.reference {
        named.retain(|leaf| leaf.reference.as_ref() == Some(&wanted.value));
        if named.is_empty() {
            return Err(none(format!("the layout has no image with the ref `{}`", wanted.value), &wanted.span, &all));
        }
    }
    if let Some(wanted) = &choice.digest {
        named.retain(|leaf| leaf.way.contains(&wanted.value));
        if named.is_empty() {
            return Err(none(format!("the layout has no manifest or index {}", wanted.value), &wanted.span, &all));
        }
    }
    let host = host_architecture();
    let wanted = choice.architecture.as_ref().map_or(host, |a| a.value.as_str());
    let (mut images, mut others) = (Vec::new(), Vec::new());
    let mut seen = BTreeSet::new();
    for mut leaf in named {
        if !seen.insert(leaf.descriptor.digest.clone()) {
            continue;
        }
        // A layout may name manifests of other platforms whose blobs it does not have.
        if leaf.platform.as_ref().is_some_and(|platform| !platform.is(wanted)) {
            others.push(leaf);
            continue;
        }
        let image = image(blobs, &leaf)?;
        leaf.platform = Some(image.config.platform.clone());
        let fits = image.config.platform.is(wanted);
        if fits { images.push((leaf, image)) } else { others.push(leaf) }
    }
    match images.len() {
        1 => images.pop().map(|(_, image)| image).ok_or_else(|| none("no image".into(), span, &all)),
        0 => {
            let (whose, at) = match &choice.architecture {
                Some(declared) => (String::new(), &declared.span),
                None => (", the build host's architecture".to_owned(), span),
            };
            let mut problem = choice_finding(format!("the layout has no image for linux/{wanted}{whose}"), at, &others);
            if let (None, [only]) = (&choice.architecture, others.as_slice())
                && let Some(platform) = only.platform.as_ref().filter(|p| p.os == "linux")
            {
                problem = problem.help(format!(
                    "if the nodes are of that kind, declare `architecture = \"{}\"`",
                    platform.text().trim_start_matches("linux/")
                ));
            }
            Err(problem.into())
        }
        n => {
            let leaves: Vec<Leaf> = images.into_iter().map(|(leaf, _)| leaf).collect();
            let message = format!("{n} images of the layout are for linux/{wanted}");
            Err(choice_finding(message, span, &leaves)
                .help("say which: `ref = \"NAME\"` or `digest = \"sha256:…\"`")
                .into())
        }
    }
}

/// Follows indexes down to manifests.
fn expand(
    blobs: &Blobs,
    descriptor: Descriptor,
    reference: Option<String>,
    mut way: Vec<String>,
    out: &mut Vec<Leaf>,
) -> Result<(), Problem> {
    if descriptor.annotations.as_ref().is_some_and(|a| a.contains_key(ATTESTATION)) {
        return Ok(());
    }
    way.push(descriptor.digest.clone());
    match descriptor.media_type.as_str() {
        "application/vnd.oci.image.index.v1+json" | "application/vnd.docker.distribution.manifest.list.v2+json" => {
            if way.len() > DEPTH {
                return Err(blobs.wrong(format!("has indexes within indexes more than {DEPTH} deep")));
            }
            let index: Index = blobs.json(&descriptor)?;
            for below in index.manifests {
                expand(blobs, below, reference.clone(), way.clone(), out)?;
            }
            Ok(())
        }
        "application/vnd.oci.image.manifest.v1+json" | "application/vnd.docker.distribution.manifest.v2+json" => {
            // BuildKit gives attestations this platform where it leaves the annotation out.
            let platform = descriptor.platform.clone().filter(|p| p.architecture != "unknown");
            if descriptor.platform.is_some() && platform.is_none() {
                return Ok(());
            }
            out.push(Leaf { descriptor, reference, way, platform });
            Ok(())
        }
        // Other artefacts may lie beside images.
        _ => Ok(()),
    }
}

fn image(blobs: &Blobs, leaf: &Leaf) -> Result<Image, Problem> {
    let digest = leaf.descriptor.digest.clone();
    let manifest: Manifest = blobs.json(&leaf.descriptor)?;
    let kind = manifest.config.media_type.as_str();
    if !matches!(kind, "application/vnd.oci.image.config.v1+json" | "application/vnd.docker.container.image.v1+json") {
        return Err(blobs.wrong(format!("has at {digest} no image but something of the type `{kind}`")));
    }
    let config: Config = blobs.json(&manifest.config)?;
    if config.rootfs.diff_ids.len() != manifest.layers.len() {
        let (layers, ids) = (manifest.layers.len(), config.rootfs.diff_ids.len());
        return Err(blobs.wrong(format!("has an image {digest} with {layers} layers whose configuration lists {ids}")));
    }
    Ok(Image { digest, manifest, config })
}

fn choice_finding(message: String, span: &Span, leaves: &[Leaf]) -> Finding {
    let mut finding = rules::OCI_CHOICE.finding("base", message).at(span);
    finding.notes = leaves.iter().map(|leaf| format!("there is {}", leaf.text())).collect();
    finding
}

fn none(message: String, span: &Span, leaves: &[Leaf]) -> Problem {
    choice_finding(message, span, leaves).help("name one that is there").into()
}

/// The build host's architecture as Go and OCI images name it.
fn host_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        "powerpc64" => "ppc64le",
        "loongarch64" => "loong64",
        other => other,
    }
}

//! `dist/index.json`: what lies in the output directory. A hint for readers, never proof: `verify` reads the images.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::output::{self, Access};
use super::parts::{Facts, PartKind};
use crate::finding::Failure;
use crate::tree::Digest;

/// Version of this format.
pub const SCHEMA: u32 = 1;

/// File name in the output directory.
pub const FILE_NAME: &str = "index.json";

/// The index. Unknown fields are ignored on reading; `schema` says whether it can be understood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Index {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `fitout`'s version that wrote it.
    pub tool: String,
    /// Name of the mesh.
    pub mesh: String,
    /// The images by node name.
    pub images: BTreeMap<String, IndexEntry>,
}

/// One image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct IndexEntry {
    /// File name, in the directory of the index.
    pub file: String,
    /// Bytes.
    pub size: u64,
    /// SHA-256 of the file.
    pub sha256: Digest,
    /// Digest of the canonical listing of its tree, see [`crate::tree::digest`].
    pub identity: Digest,
    /// Identity of the base it was made from.
    pub base: Digest,
    /// Its parts, in the order in which they lie in the file.
    pub parts: Vec<PartEntry>,
}

/// One part of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PartEntry {
    /// Which part.
    pub kind: PartKind,
    /// Byte in the file where its deflate data begin.
    pub offset: u64,
    /// Length, CRC-32 and digest.
    #[serde(flatten)]
    pub facts: Facts,
}

impl Index {
    /// An index of a mesh without images.
    pub fn new(mesh: &str) -> Index {
        Index { schema: SCHEMA, tool: env!("CARGO_PKG_VERSION").into(), mesh: mesh.into(), images: BTreeMap::new() }
    }

    /// Reads the index of a directory; `None` when it has none.
    ///
    /// # Errors
    /// When there is one that cannot be read or understood.
    pub fn load(directory: &Path) -> Result<Option<Index>, Failure> {
        let path = directory.join(FILE_NAME);
        let bytes = match crate::regular::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Failure::io("read", &path, &e)),
        };
        let unusable = |why: String| {
            Failure::new(format!("{} cannot be used: {why}", path.display()))
                .help("remove it and build all nodes, or choose another directory with `--out`")
        };
        #[derive(Deserialize)]
        struct Version {
            schema: u32,
        }
        let version: Version =
            serde_json::from_slice(&bytes).map_err(|e| unusable(crate::finding::words::plain(&e.to_string())))?;
        if version.schema != SCHEMA {
            return Err(unusable(format!("it has schema {}, this version knows schema {SCHEMA}", version.schema)));
        }
        serde_json::from_slice(&bytes).map(Some).map_err(|e| unusable(crate::finding::words::plain(&e.to_string())))
    }

    /// The index that a build into a directory goes on from: what it has already, or one without images.
    ///
    /// # Errors
    /// As [`Index::load`], and when it is another mesh's: two meshes in one directory would overwrite each other's
    /// images. So ask before any image is made.
    pub fn begin(directory: &Path, mesh: &str) -> Result<Index, Failure> {
        match Index::load(directory)? {
            None => Ok(Index::new(mesh)),
            Some(earlier) if earlier.mesh == mesh => Ok(Index { images: earlier.images, ..Index::new(mesh) }),
            Some(earlier) => Err(Failure::new(format!(
                "{} holds images of mesh `{}`, not of `{mesh}`",
                directory.display(),
                earlier.mesh
            ))
            .help("choose another directory with `--out`")),
        }
    }

    /// Puts new images over earlier ones, of which those stay whose node is still declared.
    pub fn update(&mut self, made: impl IntoIterator<Item = (String, IndexEntry)>, declared: &dyn Fn(&str) -> bool) {
        self.images.retain(|node, _| declared(node));
        self.images.extend(made);
    }

    /// The text of the file: the same for the same images.
    ///
    /// # Errors
    /// Never for an index of this program.
    pub fn to_json(&self) -> Result<String, Failure> {
        let json = serde_json::to_string_pretty(self).map_err(|e| Failure::new(format!("cannot write JSON: {e}")))?;
        Ok(json + "\n")
    }

    /// Writes it to its directory, whole or not at all.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn save(&self, directory: &Path) -> Result<(), Failure> {
        output::write(&directory.join(FILE_NAME), Access::Everyone, self.to_json()?.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(file: &str) -> IndexEntry {
        let facts = Facts { length: 5, raw_length: 1024, crc32: 0xab, sha256: Digest([1; 32]) };
        IndexEntry {
            file: file.into(),
            size: 23,
            sha256: Digest([2; 32]),
            identity: Digest([3; 32]),
            base: Digest([4; 32]),
            parts: vec![PartEntry { kind: PartKind::Shared, offset: 10, facts }],
        }
    }

    fn index(mesh: &str, nodes: &[&str]) -> Index {
        let mut index = Index::new(mesh);
        index.images = nodes.iter().map(|n| (n.to_string(), entry(&format!("{n}.tar.gz")))).collect();
        index
    }

    #[test]
    fn the_file_reads_like_this_and_comes_back() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(Index::load(directory.path()), Ok(None));
        let index = index("harbour", &["lis1"]);
        index.save(directory.path()).unwrap();
        let [one, two, three, four] = [1, 2, 3, 4].map(|n| Digest([n; 32]).hex());
        let want = format!(
            r#"{{
  "schema": 1,
  "tool": "{}",
  "mesh": "harbour",
  "images": {{
    "lis1": {{
      "file": "lis1.tar.gz",
      "size": 23,
      "sha256": "{two}",
      "identity": "{three}",
      "base": "{four}",
      "parts": [
        {{
          "kind": "shared",
          "offset": 10,
          "length": 5,
          "raw-length": 1024,
          "crc32": "000000ab",
          "sha256": "{one}"
        }}
      ]
    }}
  }}
}}
"#,
            env!("CARGO_PKG_VERSION")
        );
        assert_eq!(std::fs::read_to_string(directory.path().join(FILE_NAME)).unwrap(), want);
        assert_eq!(Index::load(directory.path()), Ok(Some(index)));
    }

    #[test]
    fn building_some_nodes_keeps_the_others_and_forgets_those_no_longer_declared() {
        let directory = tempfile::tempdir().unwrap();
        index("harbour", &["gone", "lis1", "por1"]).save(directory.path()).unwrap();
        let mut next = Index::begin(directory.path(), "harbour").unwrap();
        next.update([("lis1".into(), IndexEntry { size: 99, ..entry("lis1.tar.gz") })], &|node| node != "gone");
        let sizes: Vec<_> = next.images.iter().map(|(node, entry)| (node.as_str(), entry.size)).collect();
        assert_eq!(sizes, [("lis1", 99), ("por1", 23)]);
    }

    #[test]
    fn another_meshs_directory_is_refused_before_anything_is_made() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(Index::begin(directory.path(), "harbour"), Ok(Index::new("harbour")));
        index("other", &["a"]).save(directory.path()).unwrap();
        let failure = Index::begin(directory.path(), "harbour").unwrap_err();
        assert!(failure.message.ends_with("holds images of mesh `other`, not of `harbour`"), "{failure}");
    }

    #[test]
    fn an_index_that_is_no_use_is_refused_with_help() {
        let directory = tempfile::tempdir().unwrap();
        for (text, why) in [
            ("{", "cannot be used: EOF while parsing"),
            (r#"{"schema": 9}"#, "cannot be used: it has schema 9, this version knows schema 1"),
            (r#"{"schema": 1}"#, "cannot be used: missing field `tool`"),
        ] {
            std::fs::write(directory.path().join(FILE_NAME), text).unwrap();
            let failure = Index::load(directory.path()).unwrap_err();
            assert!(failure.message.contains(why) && failure.help.is_some(), "{failure}");
        }
    }
}

//! Which Debian packages a base has.

use std::collections::BTreeMap;

use crate::finding::Failure;
use crate::tree::{Kind, Tree, TreePath};

/// Where dpkg keeps its status (dpkg(1)).
const STATUS: &str = "/var/lib/dpkg/status";

/// Installed packages with their versions; none when the base has no dpkg.
///
/// # Errors
/// When the status cannot be read.
pub fn installed(tree: &Tree) -> Result<BTreeMap<String, String>, Failure> {
    let Some(path) = TreePath::parse(STATUS).ok().and_then(|p| tree.resolve_fully(&p).ok()) else {
        return Ok(BTreeMap::new());
    };
    match tree.get(&path).map(|e| &e.kind) {
        Some(Kind::File(_)) => Ok(parse(&String::from_utf8_lossy(&tree.content(&path)?))),
        _ => Ok(BTreeMap::new()),
    }
}

/// Reads dpkg's status: paragraphs of `Field: value`. Of a package that is installed for several architectures, the
/// second and later are named `package:architecture`.
fn parse(status: &str) -> BTreeMap<String, String> {
    let mut packages = BTreeMap::new();
    for paragraph in status.split("\n\n") {
        let field = |name: &str| {
            paragraph.lines().find_map(|line| {
                let (key, value) = line.split_once(':')?;
                key.eq_ignore_ascii_case(name).then(|| value.trim())
            })
        };
        let installed = field("Status").is_some_and(|status| status.split(' ').nth(2) == Some("installed"));
        let (Some(package), Some(version), true) = (field("Package"), field("Version"), installed) else { continue };
        let name = match (packages.contains_key(package), field("Architecture")) {
            (true, Some(architecture)) => format!("{package}:{architecture}"),
            _ => package.to_owned(),
        };
        packages.insert(name, version.to_owned());
    }
    packages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_installed_counts() {
        let status = "\
Package: etcd-server
Status: install ok installed
Architecture: amd64
Version: 3.5.16-4
Description: key-value store
 Version: 9 of nothing

Package: gone
Status: deinstall ok config-files
Version: 1

Package: libc6
Status: install ok installed
Architecture: amd64
Version: 2.41

Package: libc6
Status: hold ok installed
Architecture: i386
Version: 2.41

Package: half
Status: install ok half-configured
Version: 1
";
        let packages = parse(status);
        let all: Vec<String> = packages.iter().map(|(name, version)| format!("{name} {version}")).collect();
        assert_eq!(all, ["etcd-server 3.5.16-4", "libc6 2.41", "libc6:i386 2.41"]);
        assert!(parse("").is_empty());
    }
}

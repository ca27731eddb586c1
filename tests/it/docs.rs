//! Examples of declarations in README, docs and `examples/` are read by the same decoder as the user's.

use fitout::declaration::{Files, parse};

use crate::common::project;

/// The fenced TOML blocks of a Markdown text.
fn toml_blocks(text: &str) -> Vec<&str> {
    text.split("```toml\n").skip(1).filter_map(|rest| rest.split("\n```").next()).collect()
}

const MESH: &str = r#"
[mesh]
name = "docs"
topology = "single"
domain = "docs.mesh"
network = "10.1.0.0/24"
time-to-rebuild = "4h"
[image]
base = "common"
version = "1"
[base.common]
debian = "trixie"
[site.one]
[node.hub]
site = "one"
address = "10.1.0.1"
profile = "control-plane"
"#;

#[test]
fn declarations_in_the_documents_are_right() {
    let mut meshes = 0;
    let mut files = Files::builtin();
    let mut mesh = MESH.to_owned();
    for document in ["README.md", "docs/overlays.md", "docs/architecture.md"] {
        let text = std::fs::read_to_string(project().join(document)).expect(document);
        for block in toml_blocks(&text) {
            if block.starts_with("# overlay") {
                files = files.with("overlays/motd/overlay.toml", block);
            } else if block.starts_with("# profile") {
                files = files.with("profiles/greeter.toml", block);
                mesh += "[node.leaf]\nsite = \"one\"\naddress = \"10.1.0.2\"\nprofile = \"greeter\"\n";
            } else {
                let loaded = parse(&Files::builtin().with("mesh.toml", block));
                assert!(loaded.is_ok(), "{document}:\n{block}\n{loaded:#?}");
                meshes += 1;
            }
        }
    }
    assert!(meshes > 0, "no declaration was found in the documents");
    let files = files
        .with("overlays/motd/root/etc/motd.tera", "{{ parameters.greeting }} from {{ node.fqdn }} in {{ node.site }}\n")
        .with("mesh.toml", &mesh);
    let loaded = parse(&files);
    assert!(loaded.is_ok_and(|l| l.mesh.overlays.contains_key("motd")), "{:#?}", parse(&files).err());
}

#[test]
fn bases_in_the_documents_are_right() {
    let text = std::fs::read_to_string(project().join("docs/bases.md")).expect("docs/bases.md");
    let blocks = toml_blocks(&text);
    assert_eq!(blocks.len(), 4, "one for each kind of base");
    for block in blocks {
        let mesh =
            MESH.replace("[base.common]\ndebian = \"trixie\"\n", &format!("{}\n", block.replace('…', &"0".repeat(64))));
        let loaded = parse(&Files::builtin().with("mesh.toml", mesh));
        assert!(loaded.is_ok(), "{block}\n{loaded:#?}");
    }
}

#[test]
fn examples_are_right() {
    for name in ["three-site", "two-site-arbiter", "single"] {
        let loaded = fitout::declaration::load(&project().join("examples").join(name));
        assert!(loaded.as_ref().is_ok_and(|l| l.warnings.is_empty()), "{name}: {loaded:#?}");
    }
}

//! Rebuilds when a file of the embedded library is added or removed (changed ones Cargo sees by itself).

fn main() {
    for directory in ["overlays", "profiles", "templates", "build.rs"] {
        println!("cargo::rerun-if-changed={directory}");
    }
}

//! Rebuilds when a file of the embedded library is added or removed (changed ones Cargo sees by itself).

fn main() {
    for directory in ["overlays", "profiles", "templates", "build.rs"] {
        println!("cargo::rerun-if-changed={directory}");
    }
    // It lies in every image, and nobody looks at a backtrace there: unoptimized, symbols are three quarters of it.
    println!("cargo::rustc-link-arg-bin=mesh-agent=-Wl,--strip-all");
}

//! The `fitout` program; everything is in the library.

fn main() {
    std::process::exit(fitout::cli::main());
}

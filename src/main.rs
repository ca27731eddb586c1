//! fitout
fn main() {}

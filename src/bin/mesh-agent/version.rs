//! The version, as `fitout build` looks for it in the program.

/// `fitout::overlay::program::VERSION_MARK`, the version, and the end.
#[used]
static MARK: &str = concat!("fitout mesh-agent version ", env!("CARGO_PKG_VERSION"), ";");

/// `0.1.0`.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// `mesh-agent 0.1.0`, for people and for `live/<node>/here`.
pub fn name() -> String {
    format!("mesh-agent {VERSION}")
}

#[cfg(test)]
mod tests {
    #[test]
    fn fitout_finds_the_version() {
        let mark = fitout::overlay::program::VERSION_MARK;
        assert_eq!(super::MARK, format!("{mark}{};", fitout::overlay::program::VERSION));
    }
}

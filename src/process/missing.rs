//! Which Debian package has a program, and where the program is.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::finding::Failure;

/// Programs that `fitout` runs, with the package of Debian that has them (`dpkg -S`, bookworm and trixie).
const PACKAGES: &[(&str, &str)] = &[
    ("bash", "bash"),
    ("etcdctl", "etcd-client"),
    ("ip", "iproute2"),
    ("mmdebstrap", "mmdebstrap"),
    ("mount", "mount"),
    ("nsenter", "util-linux"),
    ("setpriv", "util-linux"),
    ("systemd-analyze", "systemd"),
    ("systemd-nspawn", "systemd-container"),
    ("tar", "tar"),
    ("umount", "mount"),
    ("unshare", "util-linux"),
];

/// Where Debian keeps administrators' programs; a plain user's `PATH` lacks them.
const ALSO: &[&str] = &["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"];

/// The Debian package that has `program`, when it is one of those that `fitout` runs.
pub fn package_of(program: &str) -> Option<&'static str> {
    PACKAGES.iter().find(|(name, _)| *name == program).map(|(_, package)| *package)
}

/// The path of a program: as given when it holds a `/`, else from `PATH`, else from the system's directories.
///
/// # Errors
/// When it is nowhere: the failure names the package.
pub fn find(program: &str) -> Result<PathBuf, Failure> {
    find_in(program, std::env::var_os("PATH").as_deref())
}

fn find_in(program: &str, path: Option<&OsStr>) -> Result<PathBuf, Failure> {
    if program.contains('/') {
        let file = PathBuf::from(program);
        return if is_executable(&file) {
            Ok(file)
        } else {
            Err(Failure::new(format!("`{program}` is no program that can be run")))
        };
    }
    let from_path = path.map(std::env::split_paths).into_iter().flatten().filter(|d| d.is_absolute());
    from_path
        .chain(ALSO.iter().map(PathBuf::from))
        .map(|directory| directory.join(program))
        .find(|file| is_executable(file))
        .ok_or_else(|| missing(program))
}

/// The failure for a program that is not installed.
pub fn missing(program: &str) -> Failure {
    let failure = Failure::new(format!("`{program}` is not installed"));
    match package_of(program) {
        Some(package) => failure.help(format!("install Debian's package `{package}`: `apt-get install {package}`")),
        None => failure.help(format!("install the package that has `{program}`")),
    }
}

/// All of `programs` that are not installed, in one failure.
///
/// # Errors
/// When any is missing.
pub fn require(programs: &[&str]) -> Result<(), Failure> {
    let gone: Vec<&str> = programs.iter().copied().filter(|p| find(p).is_err()).collect();
    let [first, rest @ ..] = gone.as_slice() else { return Ok(()) };
    if rest.is_empty() {
        return Err(missing(first));
    }
    let names: Vec<String> = gone.iter().map(|p| format!("`{p}`")).collect();
    let mut packages: Vec<&str> = gone.iter().filter_map(|p| package_of(p)).collect();
    packages.sort_unstable();
    packages.dedup();
    Err(Failure::new(format!("{} are not installed", names.join(", ")))
        .help(format!("install Debian's packages: `apt-get install {}`", packages.join(" "))))
}

fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(file).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_names_its_package() {
        let cases = [
            ("mmdebstrap", "mmdebstrap"),
            ("systemd-nspawn", "systemd-container"),
            ("unshare", "util-linux"),
            ("nsenter", "util-linux"),
            ("setpriv", "util-linux"),
            ("ip", "iproute2"),
            ("tar", "tar"),
            ("etcdctl", "etcd-client"),
        ];
        for (program, package) in cases {
            let failure = missing(program);
            assert_eq!(failure.message, format!("`{program}` is not installed"));
            let help = failure.help.unwrap_or_default();
            assert!(help.contains(&format!("apt-get install {package}`")), "{help}");
        }
    }

    #[test]
    fn programs_are_found_in_path_and_beside_it() {
        assert!(find("sh").is_ok());
        assert!(find("/bin/sh").is_ok());
        assert!(find_in("sh", None).is_ok(), "the system's directories are looked at without PATH");
        assert!(find_in("no-such-program", Some(OsStr::new("/usr/bin:relative"))).is_err());
        assert!(find("/etc/passwd").is_err(), "a file that is not executable is no program");
    }

    #[test]
    fn all_missing_programs_are_named_at_once() {
        let failure = require(&["sh", "no-such-a", "no-such-b"]).map_err(|f| f.message);
        assert_eq!(failure, Err("`no-such-a`, `no-such-b` are not installed".to_owned()));
        assert_eq!(require(&["sh"]), Ok(()));
    }
}

//! What the tests share: running the program, a mesh directory of its own, a built mesh.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The project's directory.
pub fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The cache of bases and compressed parts that all tests share.
pub fn cache() -> PathBuf {
    std::env::var_os("FITOUT_CACHE").map_or_else(|| project().join("target/fitout-cache"), PathBuf::from)
}

/// The program, with the shared cache, without colour, without the caller's environment getting in the way.
pub fn fitout(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fitout"));
    command.current_dir(directory).env("FITOUT_CACHE", cache()).env("NO_COLOR", "1").stdin(Stdio::null());
    for variable in ["FITOUT_PKI", "FITOUT_PASSPHRASE", "SOURCE_DATE_EPOCH", "CREDENTIALS_DIRECTORY"] {
        command.env_remove(variable);
    }
    command
}

/// What a run of the program said.
#[derive(Debug)]
pub struct Said {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Said {
    /// Both streams, for messages of failing tests.
    pub fn all(&self) -> String {
        format!("exit {:?}\n--- stdout\n{}\n--- stderr\n{}", self.code, self.stdout, self.stderr)
    }

    /// Fails unless the exit status is this one.
    #[track_caller]
    pub fn exits(self, code: i32) -> Said {
        assert_eq!(self.code, Some(code), "{}", self.all());
        self
    }

    /// Fails unless either stream contains the text.
    #[track_caller]
    pub fn says(self, text: &str) -> Said {
        assert!(self.stdout.contains(text) || self.stderr.contains(text), "`{text}` is not said\n{}", self.all());
        self
    }

    /// Fails when either stream contains the text.
    #[track_caller]
    pub fn does_not_say(self, text: &str) -> Said {
        assert!(!self.stdout.contains(text) && !self.stderr.contains(text), "`{text}` is said\n{}", self.all());
        self
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Said {
        Said {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Runs the program in a directory.
#[track_caller]
pub fn run(directory: &Path, arguments: &[&str]) -> Said {
    fitout(directory).args(arguments).output().expect("the program starts").into()
}

/// Runs any other program and returns its stdout; fails when it is missing or exits with an error.
#[track_caller]
pub fn tool(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|e| panic!("cannot start {program}: {e}"));
    assert!(output.status.success(), "{program} {arguments:?}: {}", Said::from(output).all());
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A copy of `examples/NAME` in a temporary directory.
pub fn example(name: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    copy(&project().join("examples").join(name), directory.path());
    directory
}

/// Copies a directory's files and directories.
pub fn copy(from: &Path, to: &Path) {
    for entry in walkdir::WalkDir::new(from) {
        let entry = entry.expect("readable");
        let target = to.join(entry.path().strip_prefix(from).expect("below"));
        if entry.file_type().is_dir() {
            std::fs::create_dir_all(&target).expect("directory");
        } else {
            std::fs::copy(entry.path(), &target).expect("copy");
        }
    }
}

/// A fresh copy of `examples/NAME` for all tests of a run, below `target/` until the next one: what a static holds is
/// never dropped, so a temporary directory would be left.
pub fn kept_example(name: &str, directory: &str) -> PathBuf {
    let mesh = Path::new(env!("CARGO_TARGET_TMPDIR")).join(directory);
    if mesh.exists() {
        std::fs::remove_dir_all(&mesh).expect("the mesh of an earlier run is removed");
    }
    copy(&project().join("examples").join(name), &mesh);
    mesh
}

/// `examples/three-site`, with authorities, built once for all tests. Do not change it: copy what you change.
pub fn built() -> &'static Path {
    built_on(Debian::Trixie)
}

/// The versions of Debian that images are built on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Debian {
    /// systemd 257, etcd 3.5.16.
    Trixie,
    /// systemd 252, etcd 3.4.23.
    Bookworm,
}

impl Debian {
    /// Its name.
    pub fn suite(self) -> &'static str {
        match self {
            Debian::Trixie => "trixie",
            Debian::Bookworm => "bookworm",
        }
    }
}

/// [`built`], on one or the other Debian.
pub fn built_on(debian: Debian) -> &'static Path {
    static BUILT: [OnceLock<PathBuf>; 2] = [OnceLock::new(), OnceLock::new()];
    let (cell, directory) = match debian {
        Debian::Trixie => (&BUILT[0], "built"),
        Debian::Bookworm => (&BUILT[1], "built-bookworm"),
    };
    cell.get_or_init(|| {
        let mesh = kept_example("three-site", directory);
        let file = mesh.join("mesh.toml");
        let text = std::fs::read_to_string(&file).expect("mesh.toml");
        let suite = format!("debian = \"{}\"", debian.suite());
        std::fs::write(&file, text.replace("debian = \"trixie\"", &suite)).expect("mesh.toml");
        run(&mesh, &["pki", "init"]).exits(0);
        run(&mesh, &["build"]).exits(0);
        mesh
    })
}

/// The image of a node of [`built_on`].
pub fn image_of(debian: Debian, node: &str) -> PathBuf {
    built_on(debian).join("dist").join(format!("{node}.tar.gz"))
}

/// A private copy of [`built`], images included.
pub fn built_copy() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    copy(built(), directory.path());
    directory
}

/// The plain tar of the base that a built mesh pins, in the cache.
pub fn base_tar(mesh: &Path) -> PathBuf {
    let lock = std::fs::read_to_string(mesh.join("fitout.lock")).expect("lock");
    let wanted =
        lock.lines().find_map(|line| line.strip_prefix("tar-sha256 = ")).expect("a base").trim_matches('"').to_owned();
    let records = walkdir::WalkDir::new(cache().join("base")).into_iter().filter_map(Result::ok);
    let mut records = records.filter(|entry| entry.file_name() == "base.json");
    let record = records.find(|e| std::fs::read_to_string(e.path()).is_ok_and(|text| text.contains(&wanted)));
    record.expect("the cache has the base").path().with_file_name("base.tar")
}

/// Waits for a condition; the last reason why it does not hold is said after a minute and a half.
#[track_caller]
pub fn until<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let start = Instant::now();
    loop {
        match look() {
            Ok(value) => return value,
            Err(reason) => assert!(start.elapsed() < Duration::from_secs(90), "{what}: {reason}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// `PATH` with the program before all else, for commands that are pasted.
pub fn path_with_fitout() -> String {
    let directory = Path::new(env!("CARGO_BIN_EXE_fitout")).parent().expect("a directory").display().to_string();
    format!("{directory}:{}", std::env::var("PATH").unwrap_or_default())
}

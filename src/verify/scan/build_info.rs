//! The version of an etcd by its own program.
//!
//! Go writes the modules of a build into the program (`go version -m`, package debug/buildinfo). Since 3.5 etcd's server
//! is a module that requires `go.etcd.io/etcd/api/v3` of its own version, and a release's build says so. Debian builds
//! without modules, and 3.4 is one module without a version: those say nothing here.

use memchr::memmem;

use crate::etcd::versions::Version;

/// What stands before the version in the line of the module.
const MARKER: &[u8] = b"\tgo.etcd.io/etcd/api/v3\tv";

/// No version is longer.
const LONGEST: usize = 24;

/// Searches one file, chunk by chunk.
#[derive(Debug, Default)]
pub struct Search {
    /// The end of what came before: less than a marker with its version.
    carried: Vec<u8>,
    found: Option<Version>,
}

impl Search {
    /// The next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.found.is_some() {
            return;
        }
        let seam = MARKER.len() + LONGEST;
        self.carried.extend_from_slice(&bytes[..bytes.len().min(seam)]);
        self.found = version_in(&self.carried).or_else(|| version_in(bytes));
        if bytes.len() > seam {
            self.carried.clear();
            self.carried.extend_from_slice(&bytes[bytes.len() - seam..]);
        } else {
            let surplus = self.carried.len().saturating_sub(seam);
            self.carried.drain(..surplus);
        }
    }

    /// The version of the file that has come to its end.
    pub fn finish(&mut self) -> Option<Version> {
        self.carried.clear();
        self.found.take()
    }
}

fn version_in(bytes: &[u8]) -> Option<Version> {
    let text = &bytes[memmem::find(bytes, MARKER)? + MARKER.len()..];
    // Cut short by the end of a chunk it is found again with the next one.
    let end = text.iter().position(|b| !(b.is_ascii_digit() || *b == b'.'))?;
    Version::parse(std::str::from_utf8(&text[..end]).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_found_wherever_chunks_are_cut() {
        let line =
            b"\nmod\tgo.etcd.io/etcd/server/v3\t(devel)\t\ndep\tgo.etcd.io/etcd/api/v3\tv3.5.1\n=>\t../api\t(devel)\n";
        let program = [&[0x7f; 100][..], line, &[0; 100]].concat();
        for size in 1..program.len() {
            let mut search = Search::default();
            program.chunks(size).for_each(|chunk| search.feed(chunk));
            assert_eq!(search.finish(), Some(Version::new(3, 5, 1)), "chunks of {size}");
            search.feed(b"\x7fELF and nothing else");
            assert_eq!(search.finish(), None, "nothing is left of the file before");
        }
    }

    #[test]
    fn what_says_nothing_gives_nothing() {
        for bytes in [
            &b""[..],
            b"\tgo.etcd.io/etcd/api/v3\tv",
            b"\tgo.etcd.io/etcd/api/v3\tvx\n",
            b"\tgo.etcd.io/etcd/api/v3\tv3",
        ] {
            let mut search = Search::default();
            search.feed(bytes);
            assert_eq!(search.finish(), None, "{bytes:?}");
        }
    }
}

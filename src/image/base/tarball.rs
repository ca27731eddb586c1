//! A base given as a tar, plain or compressed.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::PathBuf;

use sha2::{Digest as _, Sha256};

use super::{Base, Counted, FORMAT, Reuse, Source, Work, rules};
use crate::finding::{Failure, Problem, Spanned};
use crate::tree::Digest;
use crate::tree::read::{ReadAhead, decompress, stream_defect};

pub(super) fn prepare(work: &Work, path: &Spanned<PathBuf>, sha256: &Spanned<String>) -> Result<Base, Problem> {
    let name = path.value.display().to_string();
    let file_path = work.resolve(&path.value);
    let open = || -> io::Result<File> {
        let file = crate::regular::open(&file_path)?;
        if file.metadata()?.is_dir() { Err(io::ErrorKind::IsADirectory.into()) } else { Ok(file) }
    };
    let mut file = open().map_err(|e| rules::unopened(&e, &file_path, &name, &path.span))?;

    // On every build: the cache must not hide that the file is another one.
    let total = file.metadata().map_err(|e| Failure::io("read", &file_path, &e))?.len();
    let step = work.progress.start(&format!("checking {name}"), Some(total));
    let found = hash(Counted { inner: &mut file, step }).map_err(|e| Failure::io("read", &file_path, &e))?;
    if sha256.value.to_ascii_lowercase() != found.hex() {
        let finding = rules::DIGEST
            .finding(&name, format!("it has the SHA-256 {found}, declared is {}", sha256.value))
            .at(&sha256.span)
            .help(format!("if this is the file you mean, declare `sha256 = \"{found}\"`"));
        return Err(finding.into());
    }
    file.rewind().map_err(|e| Failure::io("read", &file_path, &e))?;

    let key = Digest::of(format!("tar {FORMAT} {found}").as_bytes());
    let source = Source { key, span: &path.span, name: name.clone(), made_here: false };
    work.obtain(&source, |unfinished| {
        let failed = |e: io::Error| Failure::io("read", &file_path, &e);
        let step = work.progress.start(&format!("unpacking {name}"), Some(total));
        let input = Counted { inner: file.try_clone().map_err(failed)?, step };
        let (_, plain) = decompress(input).map_err(|e| rules::unreadable(e, &file_path, &name, &path.span))?;
        let mut plain = ReadAhead::new(plain).map_err(failed)?;
        copy(&mut plain, unfinished.file()).map_err(|error| match error {
            Copy::Read(e) => match stream_defect(&e) {
                Some(defect) => rules::UNSOUND.finding(&name, defect.to_string()).at(&path.span).into(),
                None => Problem::from(failed(e)),
            },
            Copy::Write(e) => Failure::io("write", unfinished.path(), &e).into(),
        })?;
        Ok(Reuse::Yes)
    })
}

fn hash(mut input: impl Read) -> io::Result<Digest> {
    let mut sha = Sha256::new();
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match input.read(&mut buffer)? {
            0 => return Ok(Digest(sha.finalize().into())),
            n => sha.update(&buffer[..n]),
        }
    }
}

/// Which side of a copy failed.
enum Copy {
    Read(io::Error),
    Write(io::Error),
}

fn copy(from: &mut impl Read, to: &mut File) -> Result<(), Copy> {
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match from.read(&mut buffer).map_err(Copy::Read)? {
            0 => return Ok(()),
            n => to.write_all(&buffer[..n]).map_err(Copy::Write)?,
        }
    }
}

//! The members of an archive, one after the other.

use std::io::Read;

use sha2::{Digest as _, Sha256};

use super::defect::{Defect, DefectKind, printable};
use super::header::{self, Block};
use super::input::{Input, Stop};
use super::pax::{self, Records};
use super::{Contents, ReadError, Scanned, codec, place};
use crate::tree::{Data, Digest, Entry, Kind, LinkGroup, TreePath};

/// Largest extension header in bytes. Linux allows 64 KiB of attributes per name and 4 KiB of path.
const EXTENSION_MAX: u64 = 1 << 20;

/// Largest size that fits the header's 11 octal digits; a PAX `size` is for what is larger.
const HEADER_SIZE_MAX: u64 = 0o77_777_777_777;

/// What extension headers say of the next member.
#[derive(Default)]
struct Extensions {
    pax: Option<Records>,
    name: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    gnu_after_pax: bool,
    /// What is wrong with them; told when the member's name is known.
    wrong: Vec<DefectKind>,
}

impl Extensions {
    fn is_empty(&self) -> bool {
        self.pax.is_none() && self.name.is_none() && self.link.is_none() && self.wrong.is_empty()
    }

    /// True when PAX and GNU headers name the same thing, or stand in an order that readers take differently. A GNU
    /// long name and then PAX records about other things is read alike by GNU tar, bsdtar, busybox and Python.
    fn mixed(&self) -> bool {
        let in_pax = |key: &str| self.pax.as_ref().is_some_and(|records| records.contains_key(key.as_bytes()));
        self.gnu_after_pax || (self.name.is_some() && in_pax("path")) || (self.link.is_some() && in_pax("linkpath"))
    }
}

/// The fields of one member with its extensions applied.
struct Member<'a> {
    block: &'a Block,
    name: Vec<u8>,
    target: Vec<u8>,
    size: u64,
    records: Records,
}

/// Reads an archive.
pub struct Reader<'c, R, C> {
    input: Input<R>,
    contents: &'c mut C,
    scanned: Scanned,
    global: Records,
    groups: u32,
    /// Of the header in hand.
    offset: u64,
    name: String,
}

impl<'c, R: Read, C: Contents> Reader<'c, R, C> {
    pub fn new(input: R, contents: &'c mut C) -> Self {
        let mut scanned = Scanned::default();
        scanned.tree.insert(TreePath::root(), Entry::directory(0o755));
        scanned.implied.insert(TreePath::root());
        let name = String::new();
        Reader { input: Input::new(input), contents, scanned, global: Records::new(), groups: 0, offset: 0, name }
    }

    pub fn run(mut self) -> Result<Scanned, ReadError> {
        match self.archive() {
            Ok(()) => {}
            Err(Stop::Defect(kind)) => self.defect(kind),
            Err(Stop::Error(error)) => return Err(error),
        }
        self.scanned.len = self.input.position;
        Ok(self.scanned)
    }

    fn defect(&mut self, kind: DefectKind) {
        let name = if about_archive(&kind) { String::new() } else { self.name.clone() };
        self.scanned.defects.push(Defect { offset: self.offset, name, kind });
    }

    fn archive(&mut self) -> Result<(), Stop> {
        let mut extensions = Extensions::default();
        let mut first = true;
        loop {
            self.offset = self.input.position;
            let Some(block) = self.input.block()? else {
                if first {
                    codec::check_first_block(&[]).map_err(Stop::Error)?;
                }
                self.dangling(&extensions);
                self.defect(DefectKind::NotClosed);
                return Ok(());
            };
            if first {
                codec::check_first_block(&block).map_err(Stop::Error)?;
                first = false;
            }
            if block.iter().all(|b| *b == 0) {
                self.dangling(&extensions);
                return self.end();
            }
            if !header::checksum_is_right(&block) {
                return Err(Stop::Defect(DefectKind::Header));
            }
            match header::type_flag(&block) {
                flag @ (b'x' | b'g' | b'L' | b'K') => self.extension(flag, &block, &mut extensions)?,
                _ => self.member(&block, std::mem::take(&mut extensions))?,
            }
        }
    }

    fn dangling(&mut self, extensions: &Extensions) {
        if !extensions.is_empty() {
            self.defect(DefectKind::Dangling);
        }
    }

    /// After the first zero block.
    fn end(&mut self) -> Result<(), Stop> {
        match self.input.block()? {
            None => self.defect(DefectKind::NotClosed),
            Some(block) => {
                let marker = block.iter().all(|b| *b == 0);
                let zero = self.input.drain()?;
                match (marker, zero) {
                    (false, _) => self.defect(DefectKind::LoneZeroBlock),
                    (true, false) => self.defect(DefectKind::TrailingData),
                    (true, true) => {}
                }
            }
        }
        Ok(())
    }

    fn extension(&mut self, flag: u8, block: &Block, extensions: &mut Extensions) -> Result<(), Stop> {
        self.name = printable(&header::view(block).path_bytes());
        let size = header::size(block).ok_or(Stop::Defect(DefectKind::Number("size")))?;
        if size > EXTENSION_MAX {
            return Err(Stop::Defect(DefectKind::LargeExtension(size)));
        }
        let mut body = Vec::new();
        self.input.content(size, |chunk| body.extend_from_slice(chunk))?;
        // Some readers take a PAX header to be about the very next header, even when that is a GNU one.
        extensions.gnu_after_pax |= matches!(flag, b'L' | b'K') && extensions.pax.is_some();
        let twice = match flag {
            b'x' => match pax::parse(&body) {
                Ok(records) => extensions.pax.replace(records).is_some(),
                Err(text) => {
                    extensions.wrong.push(DefectKind::Pax(text));
                    false
                }
            },
            b'g' => {
                self.global(&body);
                false
            }
            b'L' => extensions.name.replace(long_name(body)).is_some(),
            _ => extensions.link.replace(long_name(body)).is_some(),
        };
        if twice {
            extensions.wrong.push(DefectKind::TwoExtensions(char::from(flag)));
        }
        Ok(())
    }

    fn global(&mut self, body: &[u8]) {
        let records = match pax::parse(body) {
            Ok(records) => records,
            Err(text) => return self.defect(DefectKind::Pax(text)),
        };
        for key in records.keys() {
            let text = printable(key);
            match key.as_slice() {
                b"path" | b"linkpath" | b"size" => self.defect(DefectKind::Global(text)),
                b"uid" | b"gid" | b"mtime" => self.defect(DefectKind::GlobalAttribute(text)),
                key if key.starts_with(b"SCHILY.xattr.") => self.defect(DefectKind::GlobalAttribute(text)),
                _ => {}
            }
        }
        self.global = pax::merge(&self.global, records);
    }

    fn member(&mut self, block: &Block, extensions: Extensions) -> Result<(), Stop> {
        self.scanned.members += 1;
        let view = header::view(block);
        let mixed = extensions.mixed();
        let records = pax::merge(&self.global, extensions.pax.unwrap_or_default());
        let field = |key: &str, long: Option<Vec<u8>>| records.get(key.as_bytes()).cloned().or(long);
        let name = field("path", extensions.name).unwrap_or_else(|| view.path_bytes().into_owned());
        let target = field("linkpath", extensions.link)
            .unwrap_or_else(|| view.link_name_bytes().map(|b| b.into_owned()).unwrap_or_default());
        self.name = printable(&name);
        if mixed {
            self.defect(DefectKind::MixedNames);
        }
        for kind in extensions.wrong {
            self.defect(kind);
        }
        for key in pax::lost(&records).collect::<Vec<_>>() {
            self.defect(DefectKind::Lost(key));
        }
        let size = self.size(block, &records)?;
        let member = Member { block, name, target, size, records };
        match header::type_flag(block) {
            b'S' => self.old_sparse(&member),
            _ if pax::sparse(&member.records).is_some() => {
                self.defect(DefectKind::Sparse(pax::sparse(&member.records).unwrap_or_default()));
                self.skip(size)
            }
            b'0' | 0 | b'7' => self.file(&member),
            b'1' => self.hard_link(&member),
            b'2' if member.target.is_empty() => {
                self.defect(DefectKind::NoTarget);
                self.skip(size)
            }
            b'2' => self.other(&member, Kind::Symlink(member.target.clone())),
            flag @ (b'3' | b'4') => match header::device(block) {
                Some((major, minor)) if flag == b'3' => self.other(&member, Kind::Character { major, minor }),
                Some((major, minor)) => self.other(&member, Kind::Block { major, minor }),
                None => {
                    self.defect(DefectKind::Number("device number"));
                    self.skip(size)
                }
            },
            b'5' => self.other(&member, Kind::Directory),
            b'6' => self.other(&member, Kind::Fifo),
            flag => {
                self.defect(DefectKind::UnknownType(format!("`{}`", printable(&[flag]))));
                self.skip(size)
            }
        }
    }

    /// The size that counts, which is PAX's when there is one.
    fn size(&mut self, block: &Block, records: &Records) -> Result<u64, Stop> {
        let header = header::size(block).ok_or(Stop::Defect(DefectKind::Number("size")))?;
        let Some(record) = records.get(&b"size"[..]) else { return Ok(header) };
        let pax = pax::whole(record).filter(|s| *s < 1 << 62).ok_or(Stop::Defect(DefectKind::Number("PAX size")))?;
        // Writers leave the header at 0 where the size does not fit; otherwise both are the same.
        if pax != header && !(header == 0 && pax > HEADER_SIZE_MAX) {
            self.defect(DefectKind::PaxSize { header, pax });
        }
        Ok(pax)
    }

    fn skip(&mut self, size: u64) -> Result<(), Stop> {
        self.input.content(size, |_| {})
    }

    /// The path, or `None` after telling what is wrong with it.
    fn path(&mut self, member: &Member) -> Option<TreePath> {
        match place::path(&member.name) {
            Ok(path) => Some(path),
            Err(kind) => {
                self.defect(kind);
                None
            }
        }
    }

    fn put(&mut self, path: &TreePath, entry: Entry) {
        if let Err(kind) = place::put(&mut self.scanned, path, entry) {
            self.defect(kind);
        }
    }

    /// Owner, mode, time and attributes of an entry.
    fn entry(&mut self, member: &Member, kind: Kind) -> Entry {
        let block = member.block;
        let record = |key: &str| member.records.get(key.as_bytes());
        let id = |key: &str, header: Option<u32>| match record(key) {
            Some(value) => pax::whole(value).and_then(|id| u32::try_from(id).ok()),
            None => header,
        };
        let mtime = match record("mtime") {
            Some(value) => pax::time(value),
            None => header::mtime(block),
        };
        let (uid, gid, mode) = (id("uid", header::uid(block)), id("gid", header::gid(block)), header::mode(block));
        for (field, bad) in
            [("owner", uid.is_none()), ("group", gid.is_none()), ("time", mtime.is_none()), ("mode", mode.is_none())]
        {
            if bad {
                self.defect(DefectKind::Number(field));
            }
        }
        let mode = if matches!(kind, Kind::Symlink(_)) { 0o777 } else { mode.unwrap_or(0) };
        let mut entry = Entry::new(kind, mode).owned(uid.unwrap_or(0), gid.unwrap_or(0)).dated(mtime.unwrap_or(0));
        entry.xattrs = pax::xattrs(&member.records);
        entry
    }

    fn file(&mut self, member: &Member) -> Result<(), Stop> {
        if member.name.ends_with(b"/") {
            self.defect(DefectKind::SlashedFile);
            return self.skip(member.size);
        }
        let Some(path) = self.path(member) else { return self.skip(member.size) };
        let offset = self.input.position;
        let (contents, mut sha) = (&mut *self.contents, Sha256::new());
        contents.begin(&path, member.size);
        self.input.content(member.size, |chunk| {
            sha.update(chunk);
            contents.chunk(chunk);
        })?;
        let place = contents.end(offset);
        let data = Data { len: member.size, sha256: Digest(sha.finalize().into()), place };
        let entry = self.entry(member, Kind::File(data));
        self.put(&path, entry);
        Ok(())
    }

    /// Everything without content.
    fn other(&mut self, member: &Member, kind: Kind) -> Result<(), Stop> {
        let entry = self.entry(member, kind);
        if member.size > 0 {
            self.defect(DefectKind::SizeOfKind(entry.kind_name(), member.size));
        }
        if let Some(path) = self.path(member) {
            self.put(&path, entry);
        }
        self.skip(member.size)
    }

    fn hard_link(&mut self, member: &Member) -> Result<(), Stop> {
        // GNU tar takes no content whatever the size says; so does this, after telling.
        if member.size > 0 {
            self.defect(DefectKind::SizeOfKind("hard link", member.size));
        }
        let Some(path) = self.path(member) else { return Ok(()) };
        let written = printable(&member.target);
        let wrong = match place::path(&member.target) {
            Ok(target) if target == path => DefectKind::HardlinkTarget(written, "is itself"),
            Ok(target) => match self.scanned.tree.entries.get_mut(&target) {
                None => {
                    let missing = DefectKind::HardlinkMissing(written);
                    if self.scanned.tree.get(&path).is_none() {
                        let defect = Defect { offset: self.offset, name: self.name.clone(), kind: missing.clone() };
                        self.scanned.outward.insert(path, (target, defect));
                    }
                    missing
                }
                Some(entry) if entry.is_directory() => DefectKind::HardlinkTarget(written, "is a directory"),
                Some(entry) => {
                    let groups = &mut self.groups;
                    entry.links.get_or_insert_with(|| {
                        *groups += 1;
                        LinkGroup(*groups)
                    });
                    let entry = entry.clone();
                    self.put(&path, entry);
                    return Ok(());
                }
            },
            Err(DefectKind::Absolute) => DefectKind::HardlinkEscapes(written, "is an absolute name"),
            Err(DefectKind::Parent) => DefectKind::HardlinkEscapes(written, "has a `..` element"),
            Err(_) => DefectKind::HardlinkTarget(written, "is not a usable name"),
        };
        self.defect(wrong);
        Ok(())
    }

    /// GNU's old sparse header is followed by more maps while a flag is set.
    fn old_sparse(&mut self, member: &Member) -> Result<(), Stop> {
        self.defect(DefectKind::Sparse("old GNU format"));
        let mut more = member.block[482] != 0;
        while more {
            let Some(block) = self.input.block()? else { return Err(Stop::Defect(DefectKind::Truncated)) };
            more = block[504] != 0;
        }
        self.skip(member.size)
    }
}

/// GNU long names end with a NUL.
fn long_name(mut body: Vec<u8>) -> Vec<u8> {
    if let Some(end) = body.iter().position(|b| *b == 0) {
        body.truncate(end);
    }
    body
}

/// Defects of the whole, for which the last member's name would mislead.
fn about_archive(kind: &DefectKind) -> bool {
    matches!(
        kind,
        DefectKind::Dangling
            | DefectKind::Header
            | DefectKind::Truncated
            | DefectKind::NotClosed
            | DefectKind::LoneZeroBlock
            | DefectKind::TrailingData
            | DefectKind::TruncatedStream
            | DefectKind::Damaged(_)
            | DefectKind::Stream(_)
    )
}

//! What an ELF file says of itself: machine, interpreter, libraries and their versions (elf(5), and the System V ABI's
//! "GNU symbol versioning" for the last).

/// What a program asks of the system that runs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elf {
    /// As Go and OCI images name it; the number of `e_machine` for one that is not in the table.
    pub architecture: Result<&'static str, u16>,
    /// `PT_INTERP`: the loader of a dynamically linked program.
    pub interpreter: Option<String>,
    /// `DT_NEEDED`: libraries.
    pub libraries: Vec<String>,
    /// Library and version of its symbols, as `GLIBC_2.34`.
    pub versions: Vec<(String, String)>,
}

const PT_LOAD: u64 = 1;
const PT_DYNAMIC: u64 = 2;
const PT_INTERP: u64 = 3;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
const DT_VERNEED: u64 = 0x6fff_fffe;
const DT_VERNEEDNUM: u64 = 0x6fff_ffff;

/// So many entries of any table are read: a file that says more is no program.
const MOST: u64 = 4096;

/// Reads the headers; `None` when it is no whole ELF file.
pub fn parse(bytes: &[u8]) -> Option<Elf> {
    let wide = match (bytes.get(..4)?, bytes.get(4)?) {
        (b"\x7fELF", 1) => false,
        (b"\x7fELF", 2) => true,
        _ => return None,
    };
    let file = File { bytes, wide, big: *bytes.get(5)? == 2 };
    let machine = u16::try_from(file.number(0x12, 2)?).ok()?;
    let segments = file.segments()?;
    let interpreter = segments.iter().find(|s| s.kind == PT_INTERP).and_then(|s| file.text(s.offset));
    let mut elf =
        Elf { architecture: architecture(machine, &file), interpreter, libraries: Vec::new(), versions: Vec::new() };
    if let Some(dynamic) = segments.iter().find(|s| s.kind == PT_DYNAMIC) {
        file.dynamic(dynamic, &segments, &mut elf)?;
    }
    Some(elf)
}

/// Machines for which Debian and Go have a name (elf.h, `EM_…`).
fn architecture(machine: u16, file: &File<'_>) -> Result<&'static str, u16> {
    match (machine, file.wide, file.big) {
        (3, false, false) => Ok("386"),
        (8, true, false) => Ok("mips64le"),
        (21, true, false) => Ok("ppc64le"),
        (22, true, true) => Ok("s390x"),
        (40, false, false) => Ok("arm"),
        (62, true, false) => Ok("amd64"),
        (183, true, false) => Ok("arm64"),
        (243, true, false) => Ok("riscv64"),
        (258, true, false) => Ok("loong64"),
        _ => Err(machine),
    }
}

struct File<'a> {
    bytes: &'a [u8],
    /// 64 bits.
    wide: bool,
    /// Most significant byte first.
    big: bool,
}

#[derive(Debug, Clone, Copy)]
struct Segment {
    kind: u64,
    offset: u64,
    address: u64,
    size: u64,
}

impl File<'_> {
    fn number(&self, at: u64, length: usize) -> Option<u64> {
        let at = usize::try_from(at).ok()?;
        let bytes = self.bytes.get(at..at.checked_add(length)?)?;
        let fold = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        Some(if self.big { bytes.iter().fold(0, fold) } else { bytes.iter().rev().fold(0, fold) })
    }

    /// An address or an offset.
    fn word(&self, at: u64) -> Option<u64> {
        self.number(at, if self.wide { 8 } else { 4 })
    }

    fn text(&self, at: u64) -> Option<String> {
        let rest = self.bytes.get(usize::try_from(at).ok()?..)?;
        let end = rest.iter().take(1024).position(|byte| *byte == 0)?;
        std::str::from_utf8(&rest[..end]).ok().map(str::to_owned)
    }

    fn segments(&self) -> Option<Vec<Segment>> {
        let (table, size, count) = match self.wide {
            true => (self.word(0x20)?, self.number(0x36, 2)?, self.number(0x38, 2)?),
            false => (self.word(0x1c)?, self.number(0x2a, 2)?, self.number(0x2c, 2)?),
        };
        let one = |i: u64| {
            let at = table.checked_add(i.checked_mul(size)?)?;
            let (offset, address, length) = if self.wide { (8, 16, 32) } else { (4, 8, 16) };
            Some(Segment {
                kind: self.number(at, 4)?,
                offset: self.word(at.checked_add(offset)?)?,
                address: self.word(at.checked_add(address)?)?,
                size: self.word(at.checked_add(length)?)?,
            })
        };
        (0..count).map(one).collect()
    }

    fn dynamic(&self, dynamic: &Segment, segments: &[Segment], elf: &mut Elf) -> Option<()> {
        let step = if self.wide { 16 } else { 8 };
        let entries: Vec<(u64, u64)> = (0..(dynamic.size / step).min(MOST))
            .map(|i| {
                let at = dynamic.offset.checked_add(i * step)?;
                Some((self.word(at)?, self.word(at.checked_add(step / 2)?)?))
            })
            .collect::<Option<_>>()?;
        let value = |tag: u64| entries.iter().find(|(t, _)| *t == tag).map(|(_, value)| *value);
        let in_file = |address: u64| {
            let within = |s: &&Segment| s.kind == PT_LOAD && address >= s.address && address - s.address < s.size;
            segments.iter().find(within).and_then(|s| s.offset.checked_add(address - s.address))
        };
        let Some(strings) = value(DT_STRTAB).and_then(in_file) else { return Some(()) };
        let name = |offset: u64| self.text(strings.checked_add(offset)?);
        for (_, offset) in entries.iter().take_while(|(tag, _)| *tag != 0).filter(|(tag, _)| *tag == DT_NEEDED) {
            elf.libraries.push(name(*offset)?);
        }
        let Some(mut need) = value(DT_VERNEED).and_then(in_file) else { return Some(()) };
        for _ in 0..value(DT_VERNEEDNUM).unwrap_or(0).min(MOST) {
            let library = name(self.number(need + 4, 4)?)?;
            let mut version = need.checked_add(self.number(need + 8, 4)?)?;
            for _ in 0..self.number(need + 2, 2)? {
                elf.versions.push((library.clone(), name(self.number(version + 8, 4)?)?));
                version = version.checked_add(self.number(version + 12, 4)?)?;
            }
            need = need.checked_add(self.number(need + 12, 4)?)?;
        }
        Some(())
    }
}

/// A file that is nothing but the header of a program for a machine, 64 bits, least significant byte first.
#[cfg(test)]
pub(super) fn header(machine: u16) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
    bytes[0x12..0x14].copy_from_slice(&machine.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_have_names() {
        let of = |machine| parse(&header(machine)).unwrap().architecture;
        assert_eq!([of(62), of(183), of(243), of(9)], [Ok("amd64"), Ok("arm64"), Ok("riscv64"), Err(9)]);
        let mut small = header(40);
        small[4] = 1;
        assert_eq!(parse(&small).unwrap().architecture, Ok("arm"));
        // 32 bits of a machine that has 64.
        small[0x12] = 62;
        assert_eq!(parse(&small).unwrap().architecture, Err(62));
    }

    #[test]
    fn what_is_no_program_is_none() {
        for bytes in
            [&b""[..], b"#!/bin/sh\n", b"\x7fELF", b"\x7fELF\x02\x01", b"\x7fELF\x09\x01aaaaaaaaaaaaaaaaaaaaaa"]
        {
            assert_eq!(parse(bytes), None, "{bytes:?}");
        }
        let mut broken = header(62);
        broken[0x38] = 200;
        broken[0x36] = 56;
        assert_eq!(parse(&broken), None, "its table of segments ends before it says");
    }

    #[test]
    fn a_real_program_says_what_it_needs() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let elf = parse(&own).unwrap();
        assert!(elf.architecture.is_ok());
        if elf.interpreter.is_some() {
            assert!(elf.libraries.iter().any(|name| name == "libc.so.6"), "{elf:?}");
            assert!(elf.versions.iter().any(|(_, version)| version.starts_with("GLIBC_2.")), "{elf:?}");
        }
        // However it is cut or changed, it is read or refused, and nothing else happens.
        for at in (0..own.len().min(4096)).step_by(7) {
            let mut changed = own[..own.len().min(1 << 16)].to_vec();
            changed[at] ^= 0xff;
            parse(&changed);
            parse(&own[..at]);
        }
    }
}

//! Writes tars byte by byte for tests, the wrong ones too. Knows nothing of the writer.

/// An archive under construction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Raw(pub Vec<u8>);

/// The header's fields; the rest has the usual values.
#[derive(Debug, Clone)]
pub(crate) struct Fields<'a> {
    pub name: &'a [u8],
    pub flag: u8,
    pub mode: u32,
    pub uid: u64,
    pub gid: u64,
    pub size: u64,
    pub mtime: u64,
    pub link: &'a [u8],
    pub device: (u32, u32),
}

impl Default for Fields<'_> {
    fn default() -> Self {
        Fields { name: b"", flag: b'0', mode: 0o644, uid: 0, gid: 0, size: 0, mtime: 7, link: b"", device: (0, 0) }
    }
}

impl Raw {
    pub fn new() -> Raw {
        Raw::default()
    }
    /// A header with its checksum.
    pub fn header(self, fields: &Fields) -> Raw {
        self.patched(fields, |_| {})
    }
    /// A header that is changed before its checksum is made.
    pub fn patched(mut self, f: &Fields, patch: impl FnOnce(&mut [u8; 512])) -> Raw {
        let mut block = [0u8; 512];
        let mut set = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
        set(0, f.name);
        set(100, format!("{:07o}\0", f.mode).as_bytes());
        set(108, format!("{:07o}\0", f.uid).as_bytes());
        set(116, format!("{:07o}\0", f.gid).as_bytes());
        set(124, format!("{:011o}\0", f.size).as_bytes());
        set(136, format!("{:011o}\0", f.mtime).as_bytes());
        set(156, &[f.flag]);
        set(157, f.link);
        set(257, b"ustar\x0000");
        set(329, format!("{:07o}\0{:07o}\0", f.device.0, f.device.1).as_bytes());
        patch(&mut block);
        block[148..156].copy_from_slice(b"        ");
        let sum: u32 = block.iter().map(|b| u32::from(*b)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.0.extend_from_slice(&block);
        self
    }
    /// Content with padding.
    pub fn data(mut self, bytes: &[u8]) -> Raw {
        self.0.extend_from_slice(bytes);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }
    pub fn file(self, name: &str, content: &[u8]) -> Raw {
        let size = content.len() as u64;
        self.header(&Fields { name: name.as_bytes(), size, ..Fields::default() }).data(content)
    }
    pub fn directory(self, name: &str) -> Raw {
        self.header(&Fields { name: name.as_bytes(), flag: b'5', mode: 0o755, ..Fields::default() })
    }
    pub fn symlink(self, name: &str, target: &str) -> Raw {
        self.link(b'2', name, target)
    }
    pub fn hard_link(self, name: &str, target: &str) -> Raw {
        self.link(b'1', name, target)
    }
    fn link(self, flag: u8, name: &str, target: &str) -> Raw {
        self.header(&Fields { name: name.as_bytes(), flag, link: target.as_bytes(), ..Fields::default() })
    }
    pub fn device(self, name: &str, flag: u8, device: (u32, u32)) -> Raw {
        self.header(&Fields { name: name.as_bytes(), flag, device, ..Fields::default() })
    }
    /// A PAX header of type `x` or `g`.
    pub fn pax(self, flag: u8, records: &[(&str, &[u8])]) -> Raw {
        let body: Vec<u8> = records.iter().flat_map(|(key, value)| record(key, value)).collect();
        self.extension(flag, &body)
    }
    /// An extension header with any body.
    pub fn extension(self, flag: u8, body: &[u8]) -> Raw {
        let size = body.len() as u64;
        self.header(&Fields { name: b"././@Extension", flag, size, ..Fields::default() }).data(body)
    }
    /// The end marker.
    pub fn end(mut self) -> Vec<u8> {
        self.0.extend_from_slice(&[0; 1024]);
        self.0
    }
}

/// `LENGTH KEY=VALUE\n`, the length counting itself.
fn record(key: &str, value: &[u8]) -> Vec<u8> {
    let rest = key.len() + value.len() + 3;
    let mut len = rest + 1;
    while rest + len.to_string().len() != len {
        len += 1;
    }
    [format!("{len} {key}=").as_bytes(), value, b"\n"].concat()
}

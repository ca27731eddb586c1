//! Finds PEM private keys in a stream (RFC 7468, and the older forms of OpenSSL and OpenSSH).

use memchr::memmem::{self, Finder};

const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"-----END ";
const DASHES: &[u8] = b"-----";
const END_OF_HEADER: &[u8] = b"PRIVATE KEY-----";

/// Longest label before `PRIVATE KEY`: `ENCRYPTED `, `OPENSSH `, `RSA `.
const LABEL: usize = 24;

/// Characters of base64 that must follow. Programs hold the header as a text without a key after it.
const BODY: usize = 32;

/// Bytes within which a key is known, from `-----BEGIN` on.
const WINDOW: usize = BEGIN.len() + LABEL + END_OF_HEADER.len() + 64 + BODY;

/// Longest section that is kept, in bytes: an RSA key of 16384 bits takes 13 KiB.
const LONGEST: usize = 32 << 10;

/// Most sections of one file that are kept.
const SECTIONS: usize = 64;

/// The sections of bytes in memory that look like private keys.
pub fn sections(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut search = Search::default();
    search.feed(bytes);
    search.finish()
}

/// Searches chunk by chunk, and keeps each section that looks like a private key.
#[derive(Debug)]
pub struct Search {
    begin: Finder<'static>,
    end: Finder<'static>,
    found: Vec<Vec<u8>>,
    /// The section that is being read.
    section: Option<Vec<u8>>,
    /// The last bytes of what was fed: a key may lie across chunks.
    tail: Vec<u8>,
}

impl Default for Search {
    fn default() -> Self {
        Search {
            begin: Finder::new(BEGIN),
            end: Finder::new(END),
            found: Vec::new(),
            section: None,
            tail: Vec::with_capacity(2 * WINDOW),
        }
    }
}

impl Search {
    /// The next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        if self.section.is_none()
            && !self.tail.is_empty()
            && let Some(begun) = self.across(bytes)
        {
            self.section = Some(begun);
            self.tail.clear();
        }
        loop {
            if self.section.is_some() {
                let Some(after) = self.read(rest) else { return };
                rest = after;
                self.tail.clear();
            }
            match self.search(rest) {
                Some(at) => {
                    self.section = Some(Vec::new());
                    rest = &rest[at..];
                }
                None => break,
            }
        }
        self.remember(rest);
    }

    /// Ends the file: the sections that were found, in order. What follows is another file.
    pub fn finish(&mut self) -> Vec<Vec<u8>> {
        self.tail.clear();
        // Without an end it is cut, or no key; who reads it will say.
        self.found.extend(self.section.take());
        std::mem::take(&mut self.found)
    }

    /// The beginning of a section that begins before these bytes.
    fn across(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let seam = [&self.tail[..], &bytes[..bytes.len().min(WINDOW)]].concat();
        let at = self.search(&seam).filter(|at| *at < self.tail.len())?;
        Some(self.tail[at..].to_vec())
    }

    /// Reads on in a section; gives what follows it, or `None` when all bytes belong to it.
    fn read<'a>(&mut self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let section = self.section.as_mut()?;
        let before = section.len();
        section.extend_from_slice(&bytes[..bytes.len().min(LONGEST.saturating_sub(before))]);
        // An end mark is looked for past the beginning's own dashes.
        let end = self.end.find(section).and_then(|at| {
            let mark = at + END.len();
            memmem::find(&section[mark..], DASHES).map(|dashes| mark + dashes + DASHES.len())
        });
        if end.is_none() && section.len() < LONGEST {
            return None;
        }
        let length = end.unwrap_or(section.len());
        section.truncate(length);
        let section = self.section.take().unwrap_or_default();
        if self.found.len() < SECTIONS {
            self.found.push(section);
        }
        Some(&bytes[length.saturating_sub(before).min(bytes.len())..])
    }

    fn remember(&mut self, bytes: &[u8]) {
        if bytes.len() >= WINDOW {
            self.tail.clear();
            self.tail.extend_from_slice(&bytes[bytes.len() - WINDOW..]);
        } else {
            self.tail.extend_from_slice(bytes);
            let surplus = self.tail.len().saturating_sub(WINDOW);
            self.tail.drain(..surplus);
        }
    }

    fn search(&self, bytes: &[u8]) -> Option<usize> {
        self.begin.find_iter(bytes).find(|at| is_key(&bytes[at + BEGIN.len()..]))
    }
}

/// What follows `-----BEGIN `.
fn is_key(rest: &[u8]) -> bool {
    let head = &rest[..rest.len().min(LABEL + END_OF_HEADER.len())];
    let Some(at) = memmem::find(head, END_OF_HEADER) else { return false };
    if !rest[..at].iter().all(|b| b.is_ascii_uppercase() || *b == b' ') {
        return false;
    }
    let mut body = &rest[at + END_OF_HEADER.len()..];
    // Line ends, indentation (YAML), and line ends as they are written in JSON and shell.
    loop {
        body = body.trim_ascii_start();
        match body {
            [b'\\', b'n' | b'r', rest @ ..] => body = rest,
            _ => break,
        }
    }
    let base64 = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=');
    body.starts_with(b"Proc-Type:") || (body.len() >= BODY && body[..BODY].iter().all(base64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pki::testing::{begin, pem as section};

    const BASE64: &str = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgevZzL1gdAFr88hb2";

    fn pem(label: &str, gap: &str) -> String {
        format!("{}{gap}{BASE64}\n-----END {label}-----\n", begin(label))
    }

    #[test]
    fn keys_of_all_forms_are_found_and_texts_about_them_are_not() {
        let yes = [
            pem("PRIVATE KEY", "\n"),
            pem("EC PRIVATE KEY", "\r\n"),
            pem("RSA PRIVATE KEY", "\n"),
            pem("ENCRYPTED PRIVATE KEY", "\n"),
            pem("OPENSSH PRIVATE KEY", "\n"),
            pem("PRIVATE KEY", "\n    "),
            pem("PRIVATE KEY", "\\n"),
            begin("RSA PRIVATE KEY") + "\nProc-Type: 4,ENCRYPTED\n",
            format!("certificate\n{}{}", pem("CERTIFICATE", "\n"), pem("PRIVATE KEY", "\n")),
        ];
        let no = [
            pem("CERTIFICATE", "\n"),
            pem("PUBLIC KEY", "\n"),
            pem("PGP PRIVATE KEY BLOCK", "\n"),
            begin("OPENSSH PRIVATE KEY") + "\n\0",
            section("PRIVATE KEY", ""),
            "a file that begins with ".to_owned() + &begin("PRIVATE KEY"),
        ];
        for text in &yes {
            assert_eq!(sections(text.as_bytes()).len(), 1, "{text}");
        }
        for text in &no {
            assert!(sections(text.as_bytes()).is_empty(), "{text}");
        }
    }

    #[test]
    fn keys_are_found_wherever_chunks_are_cut() {
        let (first, second) = (pem("ENCRYPTED PRIVATE KEY", "\r\n"), pem("PRIVATE KEY", "\n"));
        let text = format!("{}{first}{}{second}{}", "x".repeat(300), "y".repeat(20), "z".repeat(300));
        for size in [1, 2, 7, 50, WINDOW - 1, WINDOW, WINDOW + 1, 1000] {
            for skip in 0..size.min(60) {
                let mut search = Search::default();
                search.feed(&text.as_bytes()[..skip]);
                text.as_bytes()[skip..].chunks(size).for_each(|chunk| search.feed(chunk));
                let found = search.finish();
                let found: Vec<&str> = found.iter().map(|f| std::str::from_utf8(f).unwrap()).collect();
                assert_eq!(found, [first.trim_end(), second.trim_end()], "chunks of {size} after {skip}");
                search.feed(b"nothing");
                assert!(search.finish().is_empty());
            }
        }
    }

    #[test]
    fn a_section_without_end_is_bounded() {
        let text = format!("{}\n{}", begin("PRIVATE KEY"), "A".repeat(3 * LONGEST));
        let found = sections(text.as_bytes());
        assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [LONGEST]);
        let cut = begin("PRIVATE KEY") + "\n" + BASE64;
        assert_eq!(sections(cut.as_bytes()), [cut.as_bytes()]);
    }
}

//! Finds PEM private keys in a stream (RFC 7468, and the older forms of OpenSSL and OpenSSH).

use memchr::memmem::{self, Finder};

const BEGIN: &[u8] = b"-----BEGIN ";
const END_OF_HEADER: &[u8] = b"PRIVATE KEY-----";

/// Longest label before `PRIVATE KEY`: `ENCRYPTED `, `OPENSSH `, `RSA `.
const LABEL: usize = 24;

/// Characters of base64 that must follow. Programs hold the header as a text without a key after it.
const BODY: usize = 32;

/// Bytes within which a key is known, from `-----BEGIN` on.
const WINDOW: usize = BEGIN.len() + LABEL + END_OF_HEADER.len() + 64 + BODY;

/// True when bytes in memory hold a private key.
pub fn holds_private_key(bytes: &[u8]) -> bool {
    let mut search = Search::default();
    search.feed(bytes);
    search.found()
}

/// Searches chunk by chunk.
#[derive(Debug)]
pub struct Search {
    begin: Finder<'static>,
    found: bool,
    /// The last bytes of what was fed: a key may lie across chunks.
    tail: Vec<u8>,
}

impl Default for Search {
    fn default() -> Self {
        Search { begin: Finder::new(BEGIN), found: false, tail: Vec::with_capacity(2 * WINDOW) }
    }
}

impl Search {
    /// Begins with another file.
    pub fn restart(&mut self) {
        self.found = false;
        self.tail.clear();
    }

    /// The next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.found {
            return;
        }
        if self.tail.is_empty() {
            self.found = self.search(bytes);
        } else {
            let mut seam = std::mem::take(&mut self.tail);
            seam.extend_from_slice(&bytes[..bytes.len().min(WINDOW)]);
            self.found = self.search(&seam) || self.search(bytes);
            self.tail = seam;
        }
        // Of a short chunk the seam holds all, with what was before it.
        if bytes.len() >= WINDOW {
            self.tail.clear();
            self.tail.extend_from_slice(&bytes[bytes.len() - WINDOW..]);
        } else if self.tail.is_empty() {
            self.tail.extend_from_slice(bytes);
        } else {
            let surplus = self.tail.len().saturating_sub(WINDOW);
            self.tail.drain(..surplus);
        }
    }

    /// True when a key was found.
    pub fn found(&self) -> bool {
        self.found
    }

    fn search(&self, bytes: &[u8]) -> bool {
        self.begin.find_iter(bytes).any(|at| is_key(&bytes[at + BEGIN.len()..]))
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

    const BASE64: &str = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgevZzL1gdAFr88hb2";

    fn pem(label: &str, gap: &str) -> String {
        format!("-----BEGIN {label}-----{gap}{BASE64}\n-----END {label}-----\n")
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
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n".into(),
            format!("certificate\n{}{}", pem("CERTIFICATE", "\n"), pem("PRIVATE KEY", "\n")),
        ];
        let no = [
            pem("CERTIFICATE", "\n"),
            pem("PUBLIC KEY", "\n"),
            pem("PGP PRIVATE KEY BLOCK", "\n"),
            "-----BEGIN OPENSSH PRIVATE KEY-----\n\0".into(),
            "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n".into(),
            "a file that begins with -----BEGIN PRIVATE KEY-----".into(),
        ];
        for text in &yes {
            assert!(holds_private_key(text.as_bytes()), "{text}");
        }
        for text in &no {
            assert!(!holds_private_key(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn a_key_is_found_wherever_chunks_are_cut() {
        let text = format!("{}{}{}", "x".repeat(300), pem("ENCRYPTED PRIVATE KEY", "\r\n"), "y".repeat(300));
        for size in [1, 2, 7, 50, WINDOW - 1, WINDOW, WINDOW + 1, 1000] {
            for skip in 0..size.min(60) {
                let mut search = Search::default();
                search.feed(&text.as_bytes()[..skip]);
                text.as_bytes()[skip..].chunks(size).for_each(|chunk| search.feed(chunk));
                assert!(search.found(), "chunks of {size} after {skip}");
                search.restart();
                search.feed(b"nothing");
                assert!(!search.found());
            }
        }
    }
}

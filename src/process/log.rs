//! The bounded log of a program: its last bytes are kept, since the cause of a failure stands at the end.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

/// The end of a stream, at most `limit` bytes of it.
#[derive(Debug, Clone)]
pub struct Tail {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug)]
struct Inner {
    bytes: VecDeque<u8>,
    limit: usize,
    lost: u64,
}

impl Tail {
    /// An empty tail that keeps at most `limit` bytes.
    pub fn new(limit: usize) -> Tail {
        Tail { inner: Arc::new(Mutex::new(Inner { bytes: VecDeque::new(), limit, lost: 0 })) }
    }

    /// Appends, and forgets what is over the limit from the front.
    pub fn push(&self, bytes: &[u8]) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.bytes.extend(bytes);
        let over = inner.bytes.len().saturating_sub(inner.limit);
        inner.bytes.drain(..over);
        inner.lost += over as u64;
    }

    /// What is kept.
    pub fn bytes(&self) -> Vec<u8> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.bytes.iter().copied().collect()
    }

    /// How many bytes were forgotten.
    pub fn lost(&self) -> u64 {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).lost
    }

    /// What is kept as text, without control characters other than line feed and tab, so that a program's
    /// log cannot play with the terminal.
    pub fn text(&self) -> String {
        printable(&self.bytes())
    }

    /// Reads a stream to its end into this tail. A read error ends it like the end of the stream: what was
    /// read is kept, and the program's exit status tells whether it failed.
    pub fn drain(&self, mut stream: impl Read) {
        let mut buffer = [0; 16 * 1024];
        loop {
            match stream.read(&mut buffer) {
                Ok(0) => return,
                Ok(n) => self.push(&buffer[..n]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }
}

/// Text without escape sequences and other control characters (carriage returns are dropped).
pub fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().filter(|c| matches!(c, '\n' | '\t') || !c.is_control()).collect()
}

/// The last `count` lines that are not blank.
pub fn last_lines(text: &str, count: usize) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(count)..].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept() {
        let tail = Tail::new(4);
        tail.push(b"abc");
        tail.push(b"defg");
        assert_eq!((tail.bytes(), tail.lost()), (b"defg".to_vec(), 3));
        tail.drain(&b"a long stream"[..]);
        assert_eq!(tail.text(), "ream");
    }

    #[test]
    fn a_log_cannot_play_with_the_terminal() {
        assert_eq!(printable(b"\x1b[31mred\r\nnext\ttab\x07"), "[31mred\nnext\ttab");
        assert_eq!(last_lines("a\n\nb\nc\n", 2), ["b", "c"]);
    }
}

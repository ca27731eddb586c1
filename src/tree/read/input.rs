//! The byte stream: whole blocks, contents in chunks, and the reasons to stop.

use std::io::{BufRead, BufReader, Read};

use super::header::{BLOCK, Block};
use super::{DefectKind, ReadError, stream_defect};

/// Bytes read at once.
const BUFFER: usize = 256 * 1024;

/// Why reading ends early.
#[derive(Debug)]
pub enum Stop {
    /// Damage: what was read so far stands, with this defect.
    Defect(DefectKind),
    /// The operating system's error.
    Error(ReadError),
}

/// The input with its position.
pub struct Input<R> {
    reader: BufReader<R>,
    /// Bytes consumed.
    pub position: u64,
}

impl<R: Read> Input<R> {
    pub fn new(reader: R) -> Input<R> {
        Input { reader: BufReader::with_capacity(BUFFER, reader), position: 0 }
    }

    fn fill(&mut self) -> Result<&[u8], Stop> {
        // A second look-up of the buffer satisfies the borrow checker; it costs nothing once it is filled.
        loop {
            match self.reader.fill_buf() {
                Ok(_) => break,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(stop(e)),
            }
        }
        Ok(self.reader.buffer())
    }

    fn consume(&mut self, n: usize) {
        self.reader.consume(n);
        self.position += n as u64;
    }

    /// The next block; `None` at the end of the input.
    pub fn block(&mut self) -> Result<Option<Block>, Stop> {
        let mut block = [0; BLOCK as usize];
        let mut have = 0;
        while have < block.len() {
            let buffer = self.fill()?;
            if buffer.is_empty() {
                return if have == 0 { Ok(None) } else { Err(Stop::Defect(DefectKind::Truncated)) };
            }
            let n = buffer.len().min(block.len() - have);
            block[have..have + n].copy_from_slice(&buffer[..n]);
            self.consume(n);
            have += n;
        }
        Ok(Some(block))
    }

    /// Gives a member's content in chunks and skips its padding.
    pub fn content(&mut self, len: u64, mut chunk: impl FnMut(&[u8])) -> Result<(), Stop> {
        self.take(len, &mut chunk)?;
        self.take((BLOCK - len % BLOCK) % BLOCK, &mut |_| {})
    }

    fn take(&mut self, len: u64, chunk: &mut dyn FnMut(&[u8])) -> Result<(), Stop> {
        let mut left = len;
        while left > 0 {
            let buffer = self.fill()?;
            if buffer.is_empty() {
                return Err(Stop::Defect(DefectKind::TruncatedMember));
            }
            let n = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            chunk(&buffer[..n]);
            self.consume(n);
            left -= n as u64;
        }
        Ok(())
    }

    /// Reads to the end of the input, so that a compressed stream's checksum is proven. True when all is zero.
    pub fn drain(&mut self) -> Result<bool, Stop> {
        let mut zero = true;
        loop {
            let buffer = self.fill()?;
            if buffer.is_empty() {
                return Ok(zero);
            }
            zero &= buffer.iter().all(|b| *b == 0);
            let n = buffer.len();
            self.consume(n);
        }
    }
}

/// Decompressors make their own errors; the operating system's carry its number.
fn stop(error: std::io::Error) -> Stop {
    match stream_defect(&error) {
        Some(defect) => Stop::Defect(defect),
        None => Stop::Error(ReadError::Io(error)),
    }
}

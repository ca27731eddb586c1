//! A raw deflate encoder that works on blocks in parallel, and the frame that makes gzip of it.
//!
//! The input is cut into blocks of [`BLOCK`] bytes. Each is compressed on its own with the 32 KiB before it as
//! dictionary (as pigz does) and ends with a sync flush, so that it ends at a byte and the next one can follow.
//! The bytes depend on the input alone: not on the number of threads, nor on how the input was handed over.
//! A few blocks per thread are in memory, never the whole input.
//!
//! A gzip member (RFC 1952) is [`HEADER`], deflate data, and [`trailer`]. Because every part but the last ends with a
//! sync flush and no part looks back beyond its own beginning, parts that were compressed apart make one member
//! when they are joined ([`super::splice`]).

use std::collections::VecDeque;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use flate2::{Compress, Compression, FlushCompress, Status};

/// How the bytes were made. Part of every cache key: raise it when a new codec or setting gives other bytes, which
/// the test `the_bytes_of_the_codec_are_known` tells.
pub const CODEC: &str = "deflate zlib-rs-0.6 level-6 block-1048576";

/// The header of every gzip member of ours: no name, no time, operating system unknown.
pub const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

/// Input bytes of one block.
const BLOCK: usize = 1 << 20;
/// How far deflate looks back (RFC 1951).
const WINDOW: usize = 32 << 10;
/// The level of `gzip -6`, its default.
const LEVEL: u32 = 6;
/// Blocks in memory per thread: one that is worked on, one that waits.
const BLOCKS_PER_THREAD: usize = 2;

/// How a part ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Another part follows: byte aligned, the last block is not marked as final.
    Open,
    /// This is the end of the deflate data.
    Final,
}

/// What went through an encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// Bytes in.
    pub raw_len: u64,
    /// CRC-32 of the bytes in.
    pub crc32: u32,
}

/// The eight bytes after the deflate data: CRC-32 and length modulo 2³² of all input.
pub fn trailer(crc32: u32, raw_len: u64) -> [u8; 8] {
    let mut trailer = [0; 8];
    trailer[..4].copy_from_slice(&crc32.to_le_bytes());
    trailer[4..].copy_from_slice(&(raw_len as u32).to_le_bytes());
    trailer
}

/// CRC-32 and length of data in pieces.
pub fn combine(pieces: impl IntoIterator<Item = Summary>) -> Summary {
    let mut all = crc32fast::Hasher::new();
    let mut raw_len = 0;
    for piece in pieces {
        all.combine(&crc32fast::Hasher::new_with_initial_len(piece.crc32, piece.raw_len));
        raw_len += piece.raw_len;
    }
    Summary { raw_len, crc32: all.finalize() }
}

/// Compresses what is written to it. Call [`Encoder::finish`]; threads start only when there is more than one block.
///
/// The threads are the encoder's own, not those of a pool: whoever waits for a block can so never hold the thread
/// that would have to make it.
#[derive(Debug)]
pub struct Encoder<W> {
    out: W,
    threads: NonZeroUsize,
    block: Vec<u8>,
    window: Vec<u8>,
    workers: Option<Workers>,
    pending: VecDeque<Receiver<io::Result<Vec<u8>>>>,
    raw_len: u64,
    crc: crc32fast::Hasher,
}

/// A block to compress.
#[derive(Debug)]
struct Job {
    block: Vec<u8>,
    window: Vec<u8>,
    end: End,
    reply: SyncSender<io::Result<Vec<u8>>>,
}

impl<W: Write> Encoder<W> {
    /// An encoder with up to `threads` threads of its own.
    pub fn new(out: W, threads: NonZeroUsize) -> Encoder<W> {
        Encoder {
            out,
            threads,
            block: Vec::new(),
            window: Vec::new(),
            workers: None,
            pending: VecDeque::new(),
            raw_len: 0,
            crc: crc32fast::Hasher::new(),
        }
    }

    /// Compresses the rest and gives the output back. An open part without input is empty.
    ///
    /// # Errors
    /// Those of the output.
    pub fn finish(mut self, end: End) -> io::Result<(W, Summary)> {
        let last = (std::mem::take(&mut self.block), std::mem::take(&mut self.window));
        if !last.0.is_empty() || end == End::Final {
            if self.workers.is_some() {
                self.submit(last.0, last.1, end)?;
            } else {
                let bytes = deflate(&last.0, &last.1, end)?;
                self.out.write_all(&bytes)?;
            }
        }
        while !self.pending.is_empty() {
            self.write_oldest()?;
        }
        self.out.flush()?;
        Ok((self.out, Summary { raw_len: self.raw_len, crc32: self.crc.finalize() }))
    }

    fn submit(&mut self, block: Vec<u8>, window: Vec<u8>, end: End) -> io::Result<()> {
        if self.pending.len() >= self.threads.get() * BLOCKS_PER_THREAD {
            self.write_oldest()?;
        }
        let (reply, receiver) = sync_channel(1);
        let job = Job { block, window, end, reply };
        if self.workers.is_none() {
            self.workers = Some(Workers::start(self.threads)?);
        }
        if let Some(workers) = &self.workers {
            workers.send(job)?;
        }
        self.pending.push_back(receiver);
        Ok(())
    }

    fn write_oldest(&mut self) -> io::Result<()> {
        if let Some(oldest) = self.pending.pop_front() {
            let bytes = oldest.recv().map_err(|_| gone())??;
            self.out.write_all(&bytes)?;
        }
        Ok(())
    }
}

impl<W: Write> Write for Encoder<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A full block waits until more comes, because only then is it known not to be the last.
        if self.block.len() == BLOCK && !bytes.is_empty() {
            let next_window = self.block[BLOCK - WINDOW..].to_vec();
            let block = std::mem::take(&mut self.block);
            let window = std::mem::replace(&mut self.window, next_window);
            self.submit(block, window, End::Open)?;
        }
        if self.block.capacity() == 0 && self.workers.is_some() {
            self.block.reserve_exact(BLOCK);
        }
        let taken = &bytes[..bytes.len().min(BLOCK - self.block.len())];
        self.block.extend_from_slice(taken);
        self.crc.update(taken);
        self.raw_len += taken.len() as u64;
        Ok(taken.len())
    }

    /// Does nothing: a flush of its own would change the bytes.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The threads of an encoder. Dropping it lets them end after the work they have, and waits for them.
#[derive(Debug)]
struct Workers {
    jobs: Option<SyncSender<Job>>,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    fn start(count: NonZeroUsize) -> io::Result<Workers> {
        // The encoder bounds what is under way, so sending never blocks.
        let (sender, receiver) = sync_channel::<Job>(count.get() * BLOCKS_PER_THREAD);
        let receiver = Arc::new(Mutex::new(receiver));
        let mut workers = Workers { jobs: Some(sender), threads: Vec::new() };
        for _ in 0..count.get() {
            let receiver = receiver.clone();
            let thread = std::thread::Builder::new().name("deflate".into()).spawn(move || work(&receiver))?;
            workers.threads.push(thread);
        }
        Ok(workers)
    }

    fn send(&self, job: Job) -> io::Result<()> {
        self.jobs.as_ref().ok_or_else(gone)?.send(job).map_err(|_| gone())
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            // A panic there was already seen as a reply that never came.
            let _ = thread.join();
        }
    }
}

fn work(jobs: &Mutex<Receiver<Job>>) {
    loop {
        // The lock is held while waiting: the next job goes to whoever holds it.
        let Ok(Ok(job)) = jobs.lock().map(|jobs| jobs.recv()) else { return };
        // When nobody waits for the answer any more, the encoder was given up.
        let _ = job.reply.send(deflate(&job.block, &job.window, job.end));
    }
}

fn gone() -> io::Error {
    io::Error::other("a thread of the compressor ended early")
}

/// One block as raw deflate data, with what came before it as dictionary.
fn deflate(block: &[u8], window: &[u8], end: End) -> io::Result<Vec<u8>> {
    let mut codec = Compress::new(Compression::new(LEVEL), false);
    if !window.is_empty() {
        codec.set_dictionary(window).map_err(io::Error::other)?;
    }
    let flush = match end {
        End::Open => FlushCompress::Sync,
        End::Final => FlushCompress::Finish,
    };
    // Enough for data that does not compress; when it is not, it grows.
    let mut out = Vec::with_capacity(block.len() + block.len() / 256 + 1024);
    loop {
        let done = codec.total_in() as usize;
        let status = codec.compress_vec(&block[done..], &mut out, flush).map_err(io::Error::other)?;
        // A flush is complete when the output was not filled (zlib.h, deflate).
        let flushed = codec.total_in() as usize == block.len() && out.len() < out.capacity();
        if status == Status::StreamEnd || (end == End::Open && flushed) {
            out.shrink_to_fit();
            return Ok(out);
        }
        out.reserve(WINDOW);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::tree::Digest;
    use proptest::prelude::*;
    use std::io::Read;

    pub(crate) fn threads(count: usize) -> NonZeroUsize {
        NonZeroUsize::new(count).unwrap()
    }

    /// Bytes that compress somewhat, the same in every run.
    pub(crate) fn sample(len: usize) -> Vec<u8> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut bytes = Vec::with_capacity(len + 64);
        while bytes.len() < len {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            match state >> 61 {
                0 => bytes.extend_from_slice(b"the quick brown fox jumps over the lazy dog\n"),
                1..4 => bytes.extend_from_slice(format!("value-{} ", state >> 50).as_bytes()),
                _ => bytes.extend_from_slice(&state.to_le_bytes()),
            }
        }
        bytes.truncate(len);
        bytes
    }

    fn encode(input: &[u8], step: usize, count: usize, end: End) -> (Vec<u8>, Summary) {
        let mut encoder = Encoder::new(Vec::new(), threads(count));
        for piece in input.chunks(step) {
            encoder.write_all(piece).unwrap();
        }
        encoder.finish(end).unwrap()
    }

    fn gzip(parts: &[(Vec<u8>, Summary)]) -> Vec<u8> {
        let all = combine(parts.iter().map(|p| p.1));
        let mut out = HEADER.to_vec();
        parts.iter().for_each(|p| out.extend_from_slice(&p.0));
        out.extend_from_slice(&trailer(all.crc32, all.raw_len));
        out
    }

    fn gunzip(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        // One member only: a second one would not be read.
        let mut decoder = flate2::bufread::GzDecoder::new(bytes);
        decoder.read_to_end(&mut out).unwrap();
        assert!(decoder.into_inner().is_empty());
        out
    }

    #[test]
    fn the_number_of_threads_and_the_size_of_writes_do_not_show() {
        let input = sample(3 * BLOCK + 12_345);
        let one = encode(&input, 4096, 1, End::Final);
        for (step, count) in [(4096, 2), (10_000, 4), (usize::MAX, 3), (BLOCK, 2), (7 * 512, 8)] {
            assert!(encode(&input, step, count, End::Final) == one, "{count} threads, {step} bytes a write");
        }
        assert!(gunzip(&gzip(&[one])) == input);
    }

    #[test]
    fn every_length_around_a_block_comes_back() {
        for len in [0, 1, WINDOW, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 2 * BLOCK + 1] {
            let input = sample(len);
            for end in [End::Open, End::Final] {
                let part = encode(&input, 65_536, 2, end);
                assert_eq!(part.1.raw_len, len as u64);
                assert_eq!(part.1.crc32, crc32fast::hash(&input), "{len}");
                let parts = match end {
                    End::Final => vec![part],
                    End::Open => vec![part, encode(b"", 1, 1, End::Final)],
                };
                assert!(gunzip(&gzip(&parts)) == input, "{len} {end:?}");
            }
        }
        assert_eq!(encode(b"", 1, 1, End::Open).0, b"", "an open part without input is empty");
    }

    #[test]
    fn input_that_does_not_compress_comes_back() {
        let mut state = 1_u64;
        let input: Vec<u8> = (0..BLOCK + 9)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state as u8
            })
            .collect();
        let part = encode(&input, 8192, 2, End::Final);
        assert!(part.0.len() < input.len() + input.len() / 500);
        assert!(gunzip(&gzip(&[part])) == input);
    }

    #[test]
    fn gzip_itself_accepts_a_member_of_many_parts() {
        let input = sample(2 * BLOCK + 77);
        let (a, rest) = input.split_at(BLOCK + 5);
        let (b, c) = rest.split_at(100);
        let parts = [
            encode(a, 4096, 2, End::Open),
            encode(b"", 1, 1, End::Open),
            encode(b, 4096, 1, End::Open),
            encode(c, 4096, 2, End::Final),
        ];
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&gzip(&parts)).unwrap();
        let output = std::process::Command::new("gzip").arg("-dc").stdin(file.reopen().unwrap()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stdout == input);
    }

    /// When this fails, the codec gives other bytes than before: raise [`CODEC`] together with this digest.
    #[test]
    fn the_bytes_of_the_codec_are_known() {
        let (bytes, _) = encode(&sample(BLOCK + BLOCK / 2), 4096, 2, End::Final);
        assert_eq!(
            Digest::of(&bytes).hex(),
            "c767927f8af735e8e9cbe4417c567952bc3d7af9b286608b043c6a025ec5a1ec",
            "{} bytes",
            bytes.len()
        );
    }

    #[test]
    fn a_full_output_is_an_error_and_leaves_no_thread_waiting() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::Error::from(io::ErrorKind::StorageFull))
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut encoder = Encoder::new(Full, threads(2));
        let error = encoder.write_all(&sample(16 * BLOCK)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn a_few_blocks_per_thread_are_under_way() {
        let mut encoder = Encoder::new(io::sink(), threads(2));
        for block in sample(20 * BLOCK).chunks(BLOCK) {
            encoder.write_all(block).unwrap();
            assert!(encoder.pending.len() <= 2 * BLOCKS_PER_THREAD);
        }
        encoder.finish(End::Final).unwrap();
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn parts_joined_are_the_input(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..3000), 1..6)) {
            let last = pieces.len() - 1;
            let parts: Vec<_> = pieces
                .iter()
                .enumerate()
                .map(|(i, p)| encode(p, 512, 1, if i == last { End::Final } else { End::Open }))
                .collect();
            prop_assert_eq!(gunzip(&gzip(&parts)), pieces.concat());
        }
    }
}

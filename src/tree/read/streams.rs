//! Compressed streams that follow each other in one file, and what may stand behind the last of them.
//!
//! The libraries' own readers of several streams take whatever follows one for a damaged or truncated further one. Here
//! each stream is read by itself and what follows is looked at, so that it is told as what it is.

use std::io::{self, BufRead, Read};

use super::DefectKind;
use super::codec::Codec;

/// Bytes read at once.
const BUFFER: usize = 128 * 1024;

/// Most memory that decompressing may take, in bytes: xz's own presets need at most 65 MiB, and a header may claim 4 GiB.
const MEMORY: u64 = 256 << 20;

/// Why a compressed stream cannot be read on though it is not damaged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// Something follows that is no further stream.
    #[error("has something after its {0} stream, from byte {1} of the file on, that is no further {0} stream")]
    Trailing(&'static str, u64),
    /// It was compressed with a larger window than is allowed.
    #[error("needs more than {limit} MiB of memory to decompress; compress it again, for instance with `xz -6`", limit = MEMORY >> 20)]
    Memory,
}

/// The defect that a reader's error stands for; `None` when it is the operating system's (those carry its number).
pub fn stream_defect(error: &io::Error) -> Option<DefectKind> {
    if error.raw_os_error().is_some() {
        return None;
    }
    if let Some(stream) = error.get_ref().and_then(|e| e.downcast_ref::<StreamError>()) {
        return Some(DefectKind::Stream(stream.clone()));
    }
    Some(match error.kind() {
        io::ErrorKind::UnexpectedEof => DefectKind::TruncatedStream,
        _ => DefectKind::Damaged(error.to_string()),
    })
}

/// A buffered reader that can look ahead over the end of its buffer.
pub struct Buffered<R> {
    inner: R,
    buffer: Vec<u8>,
    at: usize,
    /// Bytes consumed.
    position: u64,
}

impl<R: Read> Buffered<R> {
    /// Nothing read yet.
    pub fn new(inner: R) -> Buffered<R> {
        Buffered { inner, buffer: Vec::new(), at: 0, position: 0 }
    }

    /// The next bytes, at least `n` of them unless the input ends before. At most [`BUFFER`].
    pub fn peek(&mut self, n: usize) -> io::Result<&[u8]> {
        if self.buffer.len() - self.at < n {
            self.buffer.drain(..self.at);
            self.at = 0;
            while self.buffer.len() < n {
                let more = BUFFER - self.buffer.len();
                if read_some(&mut self.inner, &mut self.buffer, more)? == 0 {
                    break;
                }
            }
        }
        Ok(&self.buffer[self.at..])
    }
}

/// One read of at most `more` bytes that appends.
fn read_some(input: &mut impl Read, buffer: &mut Vec<u8>, more: usize) -> io::Result<usize> {
    let have = buffer.len();
    buffer.resize(have + more, 0);
    let result = loop {
        match input.read(&mut buffer[have..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => break result,
        }
    };
    buffer.truncate(have + *result.as_ref().unwrap_or(&0));
    result
}

impl<R: Read> BufRead for Buffered<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.peek(1)
    }
    fn consume(&mut self, n: usize) {
        self.at += n;
        self.position += n as u64;
    }
}

impl<R: Read> Read for Buffered<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let bytes = self.fill_buf()?;
        let n = bytes.len().min(out.len());
        out[..n].copy_from_slice(&bytes[..n]);
        self.consume(n);
        Ok(n)
    }
}

/// One stream in the reading.
enum One<R: BufRead> {
    Gzip(flate2::bufread::GzDecoder<R>),
    Zstd(zstd::stream::read::Decoder<'static, R>),
    Xz(liblzma::bufread::XzDecoder<R>),
}

impl<R: BufRead> One<R> {
    fn begin(codec: Codec, input: R) -> io::Result<One<R>> {
        Ok(match codec {
            Codec::Zstd => One::Zstd(zstd::stream::read::Decoder::with_buffer(input)?.single_frame()),
            Codec::Xz => {
                let stream = liblzma::stream::Stream::new_stream_decoder(MEMORY, 0)?;
                One::Xz(liblzma::bufread::XzDecoder::new_stream(input, stream))
            }
            Codec::Gzip | Codec::Plain => One::Gzip(flate2::bufread::GzDecoder::new(input)),
        })
    }

    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            One::Gzip(decoder) => decoder.read(out),
            One::Zstd(decoder) => decoder.read(out),
            One::Xz(decoder) => decoder.read(out).map_err(|error| {
                match error.get_ref().and_then(|e| e.downcast_ref::<liblzma::stream::Error>()) {
                    Some(liblzma::stream::Error::MemLimit) => io::Error::other(StreamError::Memory),
                    _ => error,
                }
            }),
        }
    }

    fn end(self) -> R {
        match self {
            One::Gzip(decoder) => decoder.into_inner(),
            One::Zstd(decoder) => decoder.finish(),
            One::Xz(decoder) => decoder.into_inner(),
        }
    }
}

/// All streams of a file, one after the other.
pub struct Streams<R: Read> {
    codec: Codec,
    /// What is between two streams.
    rest: Option<Buffered<R>>,
    one: Option<One<Buffered<R>>>,
}

impl<R: Read> Streams<R> {
    /// `input` begins with a stream of `codec`.
    pub fn new(codec: Codec, input: Buffered<R>) -> Streams<R> {
        Streams { codec, rest: Some(input), one: None }
    }

    /// Begins the next stream. False at the end of the file.
    fn next(&mut self) -> io::Result<bool> {
        let Some(mut input) = self.rest.take() else { return Ok(false) };
        if self.codec == Codec::Xz && input.position > 0 {
            skip_padding(&mut input)?;
        }
        let head = input.peek(Codec::MAGIC)?;
        if head.is_empty() {
            return Ok(false);
        }
        if Codec::of(head) != self.codec {
            return Err(io::Error::other(StreamError::Trailing(self.codec.name(), input.position)));
        }
        self.one = Some(One::begin(self.codec, input)?);
        Ok(true)
    }
}

/// Stream padding of xz: zero bytes, a multiple of four of them (.xz file format 1.2, section 2.2).
fn skip_padding<R: Read>(input: &mut Buffered<R>) -> io::Result<()> {
    while input.peek(4)?.starts_with(&[0; 4]) {
        input.consume(4);
    }
    Ok(())
}

impl<R: Read> Read for Streams<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            if let Some(one) = &mut self.one {
                let n = one.read(out)?;
                if n > 0 {
                    return Ok(n);
                }
                self.rest = self.one.take().map(One::end);
            }
            if !self.next()? {
                return Ok(0);
            }
        }
    }
}

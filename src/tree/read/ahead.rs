//! Reads ahead in a thread of its own, so that decompressing and hashing use two cores.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// Bytes of one buffer.
const CHUNK: usize = 256 * 1024;

/// Filled buffers that may wait.
const WAITING: usize = 4;

/// A reader whose source is read by another thread, at most some buffers ahead.
#[derive(Debug)]
pub struct ReadAhead {
    filled: Option<Receiver<io::Result<Vec<u8>>>>,
    empty: SyncSender<Vec<u8>>,
    current: Vec<u8>,
    at: usize,
    worker: Option<JoinHandle<()>>,
}

impl ReadAhead {
    /// Starts to read.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn new(source: impl Read + Send + 'static) -> io::Result<ReadAhead> {
        let (fill, filled) = sync_channel(WAITING);
        let (empty, refill) = sync_channel::<Vec<u8>>(WAITING + 2);
        let worker =
            std::thread::Builder::new().name("read-ahead".into()).spawn(move || pump(source, &fill, &refill))?;
        Ok(ReadAhead { filled: Some(filled), empty, current: Vec::new(), at: 0, worker: Some(worker) })
    }
}

fn pump(mut source: impl Read, fill: &SyncSender<io::Result<Vec<u8>>>, refill: &Receiver<Vec<u8>>) {
    loop {
        let mut buffer = refill.try_recv().unwrap_or_default();
        buffer.clear();
        let result = (&mut source).take(CHUNK as u64).read_to_end(&mut buffer);
        let end = !matches!(result, Ok(n) if n > 0);
        // What came before an error is good.
        if !buffer.is_empty() && fill.send(Ok(buffer)).is_err() {
            return;
        }
        if let Err(error) = result {
            // A reader that is gone needs no error.
            let _ = fill.send(Err(error));
        }
        if end {
            return;
        }
    }
}

impl Read for ReadAhead {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at == self.current.len() {
            let next = match self.filled.as_ref().map(Receiver::recv) {
                Some(Ok(next)) => next?,
                // The worker is through: the end. (That it did not fail on the way is checked when it is joined.)
                _ => return self.finish(),
            };
            let old = std::mem::replace(&mut self.current, next);
            // Full or closed: the buffer is simply freed.
            let _ = self.empty.try_send(old);
            self.at = 0;
        }
        let n = out.len().min(self.current.len() - self.at);
        out[..n].copy_from_slice(&self.current[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

impl ReadAhead {
    fn finish(&mut self) -> io::Result<usize> {
        match self.worker.take().map(JoinHandle::join) {
            Some(Err(_)) => Err(io::Error::other("the reading thread failed")),
            _ => Ok(0),
        }
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        // Closing the channel ends the worker at its next buffer.
        self.filled = None;
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}

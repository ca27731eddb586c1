//! Long work reports its progress through this trait; how it looks is the command line's business.

/// Receives progress. Implementations draw a bar, print lines, or do nothing.
pub trait Progress: Sync {
    /// A step begins. `total` is its size in bytes or items, when known.
    fn start(&self, what: &str, total: Option<u64>) -> Box<dyn Step>;
}

/// A step under way; it ends when it is dropped.
pub trait Step: Send + Sync {
    /// This much more is done.
    fn advance(&self, by: u64);
}

/// No progress at all.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn start(&self, _what: &str, _total: Option<u64>) -> Box<dyn Step> {
        Box::new(Silent)
    }
}

impl Step for Silent {
    fn advance(&self, _by: u64) {}
}

//! How long to wait before the next try: longer each time, bounded, and never all nodes at once.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// The first wait is at most this.
pub const FIRST: Duration = Duration::from_secs(1);

/// No wait is longer.
pub const LONGEST: Duration = Duration::from_secs(30);

/// Counts the tries that failed.
#[derive(Debug, Default)]
pub struct Backoff {
    failed: u32,
}

impl Backoff {
    /// The wait after one more failed try: between half and all of `FIRST · 2^n`, at most [`LONGEST`]. `random` is any
    /// number.
    pub fn next(&mut self, random: u64) -> Duration {
        let most = FIRST.saturating_mul(1_u32.checked_shl(self.failed).unwrap_or(u32::MAX)).min(LONGEST);
        self.failed = self.failed.saturating_add(1).min(16);
        let half = most / 2;
        let share = u32::try_from(random % 1024).unwrap_or(0);
        half + half * share / 1023
    }

    /// A try succeeded.
    pub fn reset(&mut self) {
        self.failed = 0;
    }
}

/// A number that differs from node to node and from call to call; nothing secret hangs on it.
pub fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_are_bounded_and_differ() {
        let seconds = |random: u64| {
            let mut backoff = Backoff::default();
            (0..8).map(|_| backoff.next(random).as_secs_f32()).collect::<Vec<_>>()
        };
        assert_eq!(seconds(1023), [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]);
        assert_eq!(seconds(0), [0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0, 15.0]);
        let mut backoff = Backoff::default();
        for _ in 0..100 {
            assert!(backoff.next(random()) <= LONGEST);
        }
        backoff.reset();
        assert!(backoff.next(1023) <= FIRST);
        assert_ne!((random(), random()), (random(), random()));
    }
}

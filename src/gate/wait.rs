//! Waiting by condition, with a deadline and the last reason why it was not there yet.

use std::fmt;
use std::time::{Duration, Instant};

/// A condition that did not come true in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Late {
    /// What was waited for.
    pub what: String,
    /// How long.
    pub waited: Duration,
    /// What stood in the way at the last look.
    pub reason: String,
}

impl fmt::Display for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: not within {} s: {}", self.what, self.waited.as_secs_f32(), self.reason)
    }
}

/// Looks until there is a value, first often, then ten times a second. The condition is looked at once more after the
/// deadline, so that a slow look cannot make it miss.
///
/// # Errors
/// [`Late`] with the reason of the last look.
pub fn until<T>(deadline: Duration, what: &str, mut look: impl FnMut() -> Result<T, String>) -> Result<T, Late> {
    let start = Instant::now();
    let mut pause = Duration::from_millis(5);
    loop {
        let over = start.elapsed() >= deadline;
        match look() {
            Ok(value) => return Ok(value),
            Err(reason) if over => return Err(Late { what: what.to_owned(), waited: deadline, reason }),
            Err(_) => std::thread::sleep(pause.min(deadline.saturating_sub(start.elapsed()))),
        }
        pause = (pause * 2).min(Duration::from_millis(100));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_with_the_value_or_the_last_reason() {
        let mut looks = 0;
        let value = until(Duration::from_secs(10), "three looks", || {
            looks += 1;
            if looks == 3 { Ok(looks) } else { Err("not yet".into()) }
        });
        assert_eq!(value, Ok(3));
        let late = until::<()>(Duration::from_millis(20), "never", || Err("still not".into())).unwrap_err();
        assert_eq!(late.to_string(), "never: not within 0.02 s: still not");
    }
}

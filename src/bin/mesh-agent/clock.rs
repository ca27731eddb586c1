//! Whether this node's clock can be believed.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use fitout::layout::Time;

/// A step of the clock of at least this is told.
const STEP: Duration = Duration::from_secs(2);

/// For so long.
const TOLD_FOR: Duration = Duration::from_secs(600);

/// systemd-timesyncd touches it when it has set the clock (systemd-timesyncd.service(8)).
const SYNCHRONIZED: &str = "/run/systemd/timesync/synchronized";

/// There in a container, whose clock is the host's (systemd's container interface).
const CONTAINER: &str = "/run/systemd/container";

/// Compares the clock with the time that passes.
#[derive(Debug, Default)]
pub struct Clock {
    last: Option<(SystemTime, Instant)>,
    step: Option<(Instant, i64, Time)>,
}

impl Clock {
    /// Looks at both; says what is wrong now.
    pub fn look(&mut self, wall: SystemTime, steady: Instant, synchronized: bool) -> Option<String> {
        if let Some((last_wall, last_steady)) = self.last {
            let expected = last_wall + steady.saturating_duration_since(last_steady);
            let (ahead, step) = match wall.duration_since(expected) {
                Ok(step) => (true, step),
                Err(behind) => (false, behind.duration()),
            };
            if step >= STEP {
                let seconds = i64::try_from(step.as_secs()).unwrap_or(i64::MAX);
                self.step = Some((steady, if ahead { seconds } else { -seconds }, Time::of(wall.into())));
            }
        }
        self.last = Some((wall, steady));
        self.step = self.step.filter(|(at, ..)| steady.saturating_duration_since(*at) < TOLD_FOR);
        match self.step {
            Some((_, seconds, at)) => Some(format!("the clock was set by {seconds:+} s at {at}")),
            None if !synchronized => Some("the clock was not set by time synchronization since the boot".to_owned()),
            None => None,
        }
    }
}

/// True when the clock was set since the boot, or is the host's.
pub fn is_synchronized() -> bool {
    Path::new(SYNCHRONIZED).exists() || Path::new(CONTAINER).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_told_for_a_while() {
        let (wall, steady) = (SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000), Instant::now());
        let mut clock = Clock::default();
        let mut at = |passed: u64, step: i64, synchronized| {
            let wall = wall + Duration::from_secs(passed.saturating_add_signed(step));
            clock.look(wall, steady + Duration::from_secs(passed), synchronized)
        };
        assert_eq!(at(0, 0, true), None);
        assert_eq!(at(10, 1, true), None, "a second is slewing");
        let said = at(20, 601, true).unwrap();
        assert!(said.starts_with("the clock was set by +600 s at 2027-01-15T"), "{said}");
        assert!(at(610, 601, true).is_some());
        assert_eq!(at(630, 601, true), None);
        assert!(at(640, 0, true).unwrap().contains("-601 s"));
        assert!(at(9_000, 0, false).unwrap().contains("was not set"));
    }
}

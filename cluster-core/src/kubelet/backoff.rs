//! Waiting longer each time something fails.
//! <https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#restart-policy>

use std::time::Duration;

use crate::clock::Time;

const FIRST: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(300);

/// 10 s, doubling up to 300 s; 10 s again after twice the longest wait without a failure.
#[derive(Clone, Copy, Debug, Default)]
pub struct Backoff {
    delay: Duration,
    updated_at: Time,
}

impl Backoff {
    /// How long after `failed_at` the next try is due; zero if it may begin at once.
    pub fn wait(&self, failed_at: Time) -> Duration {
        if self.is_over(failed_at) { Duration::ZERO } else { self.delay }
    }

    /// The try begins that makes up for a failure: the next one will have to wait longer.
    pub fn advance(&mut self, failed_at: Time, now: Time) {
        self.delay = if self.is_over(failed_at) { FIRST } else { (self.delay * 2).min(LONGEST) };
        self.updated_at = now;
    }

    fn is_over(&self, failed_at: Time) -> bool {
        self.delay.is_zero() || failed_at.since(self.updated_at) > LONGEST * 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_and_are_forgotten_after_ten_minutes() {
        let mut backoff = Backoff::default();
        let mut now = Time::from_secs(1);
        let mut waits = Vec::new();
        for _ in 0..8 {
            let wait = backoff.wait(now);
            waits.push(wait.as_secs());
            now += wait;
            backoff.advance(now, now);
        }
        assert_eq!(waits, [0, 10, 20, 40, 80, 160, 300, 300]);
        let later = now + Duration::from_secs(601);
        assert!(backoff.wait(later).is_zero());
    }
}

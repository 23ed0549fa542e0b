//! Virtual time: how far the cluster has come since it was made. Nothing here looks at a real clock.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;

/// The calendar date of virtual time zero: 2026-01-01T00:00:00Z.
const EPOCH_SECONDS: i64 = 1_767_225_600;

/// A moment of virtual time, in microseconds since the cluster began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    pub const ZERO: Time = Time(0);
    pub const MAX: Time = Time(u64::MAX / 2);

    pub const fn from_micros(micros: u64) -> Time {
        Time(micros)
    }

    pub const fn from_secs(seconds: u64) -> Time {
        Time(seconds * 1_000_000)
    }

    pub const fn as_micros(self) -> u64 {
        self.0
    }

    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The time that has passed since `earlier`; zero if that lies ahead.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }

    pub fn timestamp(self) -> Timestamp {
        Timestamp::from_microsecond(EPOCH_SECONDS * 1_000_000 + self.0 as i64).unwrap_or(Timestamp::MAX)
    }

    /// As API objects carry it: whole seconds.
    pub fn to_meta(self) -> meta::Time {
        let whole = Timestamp::from_second(EPOCH_SECONDS + (self.0 / 1_000_000) as i64);
        meta::Time(whole.unwrap_or(Timestamp::MAX))
    }

    pub fn to_micro_time(self) -> meta::MicroTime {
        meta::MicroTime(self.timestamp())
    }

    /// The virtual moment of an API timestamp; moments before the cluster began count as zero.
    pub fn from_timestamp(timestamp: Timestamp) -> Time {
        let micros = timestamp.as_microsecond() - EPOCH_SECONDS * 1_000_000;
        Time(micros.max(0) as u64)
    }
}

impl From<&meta::Time> for Time {
    fn from(time: &meta::Time) -> Time {
        Time::from_timestamp(time.0)
    }
}

impl From<&meta::MicroTime> for Time {
    fn from(time: &meta::MicroTime) -> Time {
        Time::from_timestamp(time.0)
    }
}

impl Add<Duration> for Time {
    type Output = Time;

    fn add(self, duration: Duration) -> Time {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(Time::MAX.0);
        Time(self.0.saturating_add(micros).min(Time::MAX.0))
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl Sub<Duration> for Time {
    type Output = Time;

    fn sub(self, duration: Duration) -> Time {
        Time(self.0.saturating_sub(duration.as_micros() as u64))
    }
}

/// Seconds with three decimals: `12.345s`.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}s", self.0 / 1_000_000, self.0 / 1000 % 1000)
    }
}

/// What is to happen, by time, then by the order in which it was asked for.
///
/// Entries are of two classes: work that somebody waits for, and background (heartbeats, resyncs, deadlines), which
/// goes on for ever and does not keep a cluster from being settled.
#[derive(Clone, Debug)]
pub struct Timeline<E: Clone> {
    entries: imbl::OrdMap<(Time, u64), (Class, E)>,
    work: imbl::OrdSet<(Time, u64)>,
    next: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Work,
    Background,
}

impl<E: Clone> Default for Timeline<E> {
    fn default() -> Self {
        Timeline { entries: imbl::OrdMap::new(), work: imbl::OrdSet::new(), next: 0 }
    }
}

impl<E: Clone> Timeline<E> {
    pub fn push(&mut self, at: Time, class: Class, event: E) {
        let key = (at, self.next);
        self.next += 1;
        if class == Class::Work {
            self.work.insert(key);
        }
        self.entries.insert(key, (class, event));
    }

    /// When the next entry of any class is due.
    pub fn next_at(&self) -> Option<Time> {
        self.entries.get_min().map(|((at, _), _)| *at)
    }

    /// When the next piece of work is due.
    pub fn next_work_at(&self) -> Option<Time> {
        self.work.get_min().map(|(at, _)| *at)
    }

    pub fn pop(&mut self) -> Option<(Time, E)> {
        let (key, _) = self.entries.get_min()?;
        let key = *key;
        let (class, event) = self.entries.remove(&key)?;
        if class == Class::Work {
            self.work.remove(&key);
        }
        Some((key.0, event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_by_time_then_by_order() {
        let mut timeline = Timeline::default();
        timeline.push(Time::from_secs(2), Class::Work, "b");
        timeline.push(Time::from_secs(1), Class::Background, "tick");
        timeline.push(Time::from_secs(2), Class::Work, "c");
        assert_eq!(timeline.next_at(), Some(Time::from_secs(1)));
        assert_eq!(timeline.next_work_at(), Some(Time::from_secs(2)));
        let order: Vec<_> = std::iter::from_fn(|| timeline.pop()).map(|(_, e)| e).collect();
        assert_eq!(order, ["tick", "b", "c"]);
    }

    #[test]
    fn api_timestamps_are_whole_seconds() {
        let time = Time::from_micros(1_900_000);
        assert_eq!(time.to_meta().0.to_string(), "2026-01-01T00:00:01Z");
        assert_eq!(Time::from(&time.to_meta()), Time::from_secs(1));
        assert_eq!(time.to_string(), "1.900s");
    }
}

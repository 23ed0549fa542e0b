use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

/// A moment of the cluster's own, virtual time, in milliseconds since 1970 (UTC). A controller has no other clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub i64);

const DAY_MS: i64 = 86_400_000;

impl Time {
    /// Reads a timestamp as Kubernetes writes it: `2026-04-01T09:30:00Z`, with or without a fraction of a second.
    pub fn parse(text: &str) -> Option<Time> {
        let (date, clock) = text.strip_suffix('Z')?.split_once('T')?;
        let [year, month, day] = numbers(date, '-')?;
        let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
        let [hour, minute, second] = numbers(clock, ':')?;
        if !(0..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=days_in(year, month)).contains(&day) {
            return None;
        }
        if hour > 23 || minute > 59 || second > 59 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let ms: i64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
        let seconds = (hour * 60 + minute) * 60 + second;
        Some(Time(days_before(year, month, day) * DAY_MS + seconds * 1000 + ms))
    }
}

/// As Kubernetes writes a timestamp: to the second.
impl fmt::Display for Time {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, second) = (self.0.div_euclid(DAY_MS), self.0.rem_euclid(DAY_MS) / 1000);
        let mut year = 1970 + days.div_euclid(366);
        while days_before(year + 1, 1, 1) <= days {
            year += 1;
        }
        let mut month = 1;
        while month < 12 && days_before(year, month + 1, 1) <= days {
            month += 1;
        }
        let day = days - days_before(year, month, 1) + 1;
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(out, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

impl Add<Duration> for Time {
    type Output = Time;

    fn add(self, duration: Duration) -> Time {
        Time(self.0.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }
}

impl Sub<Duration> for Time {
    type Output = Time;

    fn sub(self, duration: Duration) -> Time {
        Time(self.0.saturating_sub(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }
}

/// How long from the earlier to the later moment; zero if they come the other way round.
impl Sub for Time {
    type Output = Duration;

    fn sub(self, earlier: Time) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0).try_into().unwrap_or(0))
    }
}

fn numbers(text: &str, separator: char) -> Option<[i64; 3]> {
    let parts: Vec<i64> =
        text.split(separator).map(|part| part.parse::<u16>().ok().map(i64::from)).collect::<Option<_>>()?;
    parts.try_into().ok()
}

fn leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to the date.
fn days_before(year: i64, month: i64, day: i64) -> i64 {
    let past = year - 1;
    let years = past * 365 + past.div_euclid(4) - past.div_euclid(100) + past.div_euclid(400) - 719_162;
    years + (1..month).map(|month| days_in(year, month)).sum::<i64>() + day - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_read_back_as_written() {
        for text in ["1970-01-01T00:00:00Z", "2000-02-29T23:59:59Z", "2026-04-01T09:30:00Z", "2100-12-31T00:00:01Z"] {
            assert_eq!(Time::parse(text).expect(text).to_string(), text);
        }
        assert_eq!(Time::parse("2026-01-01T00:00:00Z"), Some(Time(1_767_225_600_000)));
        assert_eq!(Time::parse("1970-01-01T00:00:01.250000Z"), Some(Time(1250)));
    }

    #[test]
    fn what_is_no_timestamp_is_refused() {
        for text in ["", "2026-02-29T00:00:00Z", "2026-04-01", "2026-04-01T25:00:00Z", "2026-04-01T09:30:00+09:00"] {
            assert_eq!(Time::parse(text), None, "{text}");
        }
    }

    #[test]
    fn moments_and_durations_add_up() {
        let start = Time::default();
        let end = start + Duration::from_secs(90);
        assert_eq!(end - start, Duration::from_secs(90));
        assert_eq!(start - end, Duration::ZERO);
        assert_eq!(end - Duration::from_secs(90), start);
    }
}

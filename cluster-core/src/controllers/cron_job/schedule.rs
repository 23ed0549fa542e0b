//! Which times of a schedule have passed without a Job, and when the next one is.
//! <https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/#starting-deadline>

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::apiserver::validation::cron::Schedule;

/// A Job is started a little after its time, so that it has certainly come.
const NEXT_SCHEDULE_DELTA: Duration = Duration::from_millis(100);
/// From more than so many missed times on a CronJob is warned about.
const MISSED_MAX: i64 = 100;

/// Since when a CronJob waits for its schedule.
#[derive(Clone, Copy)]
pub struct Since {
    pub created: Timestamp,
    pub last_scheduled: Option<Timestamp>,
}

#[derive(Debug, PartialEq)]
pub struct Missed {
    /// From where the times were counted.
    pub since: Timestamp,
    /// The last of them.
    pub last: Option<Timestamp>,
    pub any: bool,
    pub many: bool,
}

/// The times that have passed since the last Job. With a deadline, only those count that are not past it. Fails if the
/// schedule names no times.
pub fn missed(
    since: Since,
    schedule: &Schedule,
    now: Timestamp,
    deadline_seconds: Option<i64>,
) -> Result<Missed, String> {
    let earliest = deadline_seconds.and_then(|seconds| now.checked_sub(SignedDuration::from_secs(seconds)).ok());
    let since =
        [Some(since.last_scheduled.unwrap_or(since.created)), earliest].into_iter().flatten().max().unwrap_or(now);
    let none = Missed { since, last: None, any: false, many: false };
    let never = || "time difference between two schedules is less than 1 second".to_owned();
    let first = schedule.next(since).ok_or_else(never)?;
    if now < first {
        return Ok(none);
    }
    let second = schedule.next(first).ok_or_else(never)?;
    if now < second {
        return Ok(Missed { last: Some(first), ..none });
    }
    // A guess from the distance of the first two leads close to the last one: years may have passed.
    let step = second.as_second() - first.as_second();
    let number = (now.as_second() - first.as_second()) / step + 1;
    let near = Timestamp::from_second(first.as_second() + (number - 2) * step).unwrap_or(first);
    let times = std::iter::successors(schedule.next(near), |time| schedule.next(*time));
    let last = times.take_while(|time| *time <= now).last();
    Ok(Missed { last, any: true, many: number > MISSED_MAX, ..none })
}

/// How long until the first time of the schedule that is still to come.
pub fn until_next(since: Since, schedule: &Schedule, now: Timestamp) -> Option<Duration> {
    let from = match missed(since, schedule, now, None) {
        Ok(Missed { last: Some(last), .. }) => last,
        Ok(Missed { since, any: false, .. }) => since,
        _ => now,
    };
    let wait = schedule.next(from)?.duration_since(now);
    Some(Duration::try_from(wait).unwrap_or_default() + NEXT_SCHEDULE_DELTA)
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;

    fn at(time: &str) -> Timestamp {
        format!("2026-01-{time}Z").parse().unwrap()
    }

    fn since(
        schedule: &str,
        since: &str,
        now: &str,
        deadline_seconds: Option<i64>,
    ) -> (Option<Timestamp>, bool, Duration) {
        let schedule = Schedule::parse(schedule, TimeZone::UTC).unwrap();
        let since = Since { created: at("01T00:00:00"), last_scheduled: Some(at(since)) };
        let missed = missed(since, &schedule, at(now), deadline_seconds).unwrap();
        (missed.last, missed.many, until_next(since, &schedule, at(now)).unwrap())
    }

    #[test]
    fn the_last_time_that_has_passed() {
        let minutes = |minutes: u64| Duration::from_secs(minutes * 60) + NEXT_SCHEDULE_DELTA;
        assert_eq!(since("0 * * * *", "05T03:00:00", "05T03:50:00", None), (None, false, minutes(10)));
        assert_eq!(
            since("0 * * * *", "05T03:00:00", "05T04:00:00", None),
            (Some(at("05T04:00:00")), false, minutes(60))
        );
        assert_eq!(
            since("0 * * * *", "05T03:00:00", "05T09:30:00", None),
            (Some(at("05T09:00:00")), false, minutes(30))
        );
        assert_eq!(
            since("*/5 * * * *", "05T00:00:00", "06T09:31:00", None),
            (Some(at("06T09:30:00")), true, minutes(4))
        );
        assert_eq!(since("0 * * * *", "05T03:00:00", "05T09:30:00", Some(60)), (None, false, minutes(30)));
        assert_eq!(
            since("@every 10m", "05T03:05:00", "05T03:31:00", None),
            (Some(at("05T03:25:00")), false, minutes(4))
        );
    }
}

//! Schedules of CronJobs, in the dialect of robfig/cron, and time zones.
//! <https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/#schedule-syntax>
//! <https://pkg.go.dev/github.com/robfig/cron/v3#hdr-CRON_Expression_Format>

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan, Zoned};

use crate::apiserver::cel::library::time::parse_duration;

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
/// Schedules that have names.
const DESCRIPTORS: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];
/// A schedule that names no moment within so many years names none at all.
const YEARS_MAX: i16 = 5;

/// What one field of a schedule can hold.
struct Field {
    min: u32,
    max: u32,
    /// Names of its numbers, from `min` on.
    names: &'static [&'static str],
}

const FIELDS: [Field; 5] = [
    Field { min: 0, max: 59, names: &[] },
    Field { min: 0, max: 23, names: &[] },
    Field { min: 1, max: 31, names: &[] },
    Field { min: 1, max: 12, names: &MONTHS },
    Field { min: 0, max: 6, names: &DAYS },
];

/// A schedule as it was read: the moments that it names go on without end.
#[derive(Clone, Debug)]
pub enum Schedule {
    /// `@every 1h30m`: so long after the last time.
    Every(SignedDuration),
    /// Five fields, in a time zone.
    Calendar(Box<Calendar>),
}

#[derive(Clone, Debug)]
pub struct Calendar {
    minutes: Numbers,
    hours: Numbers,
    days_of_month: Numbers,
    months: Numbers,
    days_of_week: Numbers,
    zone: TimeZone,
}

/// The numbers of a field, one bit each.
#[derive(Clone, Copy, Debug, Default)]
struct Numbers {
    bits: u64,
    /// All of them, by a star: such a day does not count if the other kind of day is given.
    star: bool,
}

impl Numbers {
    fn has(self, number: i8) -> bool {
        u32::try_from(number).is_ok_and(|number| self.bits & (1 << number) != 0)
    }
}

impl Schedule {
    /// Reads a schedule that is meant in `zone`, unless it begins with a zone of its own (`TZ=`). Fails with what is
    /// wrong, in robfig/cron's words.
    pub fn parse(schedule: &str, zone: TimeZone) -> Result<Schedule, String> {
        let Some(own) = ["TZ=", "CRON_TZ="].iter().find_map(|prefix| schedule.strip_prefix(prefix)) else {
            return parse_in(schedule, zone);
        };
        let (name, spec) = own.split_once(' ').ok_or("invalid schedule format: no schedule behind the time zone")?;
        let zone = time_zone(name).map_err(|problem| format!("provided bad location {name}: {problem}"))?;
        parse_in(spec.trim(), zone)
    }

    /// The first moment after this one, in whole seconds; `None` if there is none within five years.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let second = Timestamp::from_second(after.as_second()).ok()?;
        match self {
            Schedule::Every(delay) => second.checked_add(*delay).ok(),
            Schedule::Calendar(calendar) => calendar.next(second.checked_add(1.second()).ok()?),
        }
    }
}

impl Calendar {
    /// Goes on by the largest unit that does not match yet, on the clock of the zone: an hour that is left out in
    /// spring is skipped, one that comes twice in autumn counts twice.
    fn next(&self, from: Timestamp) -> Option<Timestamp> {
        let mut at = from.to_zoned(self.zone.clone());
        let last_year = at.year() + YEARS_MAX;
        while at.year() <= last_year {
            let (minute, second) = (i64::from(at.minute()), i64::from(at.second()));
            at = if !self.months.has(at.month()) {
                at.first_of_month().ok()?.checked_add(1.month()).ok()?.start_of_day().ok()?
            } else if !self.matches_day(&at) {
                at.tomorrow().ok()?.start_of_day().ok()?
            } else if !self.hours.has(at.hour()) {
                at.checked_add(SignedDuration::from_secs(3600 - minute * 60 - second)).ok()?
            } else if !self.minutes.has(at.minute()) || second != 0 {
                at.checked_add(SignedDuration::from_secs(60 - second)).ok()?
            } else {
                return Some(at.timestamp());
            };
        }
        None
    }

    /// If both kinds of day are given, either will do.
    fn matches_day(&self, at: &Zoned) -> bool {
        let in_month = self.days_of_month.has(at.day());
        let in_week = self.days_of_week.has(at.weekday().to_sunday_zero_offset());
        if self.days_of_month.star || self.days_of_week.star { in_month && in_week } else { in_month || in_week }
    }
}

/// What is wrong with a schedule.
pub fn check(schedule: &str) -> Result<(), String> {
    Schedule::parse(schedule, TimeZone::UTC).map(drop)
}

fn parse_in(text: &str, zone: TimeZone) -> Result<Schedule, String> {
    if let Some(duration) = text.strip_prefix("@every ") {
        let delay = parse_duration(duration)
            .ok_or_else(|| format!("failed to parse duration {text}: time: invalid duration {duration:?}"))?;
        return Ok(Schedule::Every(SignedDuration::from_secs(delay.as_secs().max(1))));
    }
    let named = || DESCRIPTORS.iter().find(|(name, _)| *name == text).map(|(_, fields)| *fields);
    let text =
        if text.starts_with('@') { named().ok_or_else(|| format!("unrecognized descriptor: {text}"))? } else { text };
    let fields: Vec<&str> = text.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
    }
    let mut numbers = [Numbers::default(); 5];
    for ((text, field), numbers) in fields.iter().zip(&FIELDS).zip(&mut numbers) {
        for range in text.split(',').filter(|range| !range.is_empty()) {
            add_range(range, field, numbers)?;
        }
    }
    let [minutes, hours, days_of_month, months, days_of_week] = numbers;
    Ok(Schedule::Calendar(Box::new(Calendar { minutes, hours, days_of_month, months, days_of_week, zone })))
}

/// Adds what one range of a field names: `*`, `5`, `1-5`, `*/15`, `10-50/20`, `3/5`.
fn add_range(text: &str, field: &Field, numbers: &mut Numbers) -> Result<(), String> {
    let (range, step) = match text.split('/').collect::<Vec<_>>()[..] {
        [range] => (range, None),
        [range, step] => (range, Some(step)),
        _ => return Err(format!("too many slashes: {text}")),
    };
    let ends: Vec<&str> = range.split('-').collect();
    let (start, mut end) = match ends[..] {
        ["*" | "?", ..] => (field.min, field.max),
        [one] => (number(one, field)?, number(one, field)?),
        [start, end] => (number(start, field)?, number(end, field)?),
        _ => return Err(format!("too many hyphens: {text}")),
    };
    let mut by = 1;
    if let Some(step) = step {
        by = integer(step)?;
        if ends.len() == 1 {
            end = field.max;
        }
    }
    let (min, max) = (field.min, field.max);
    if start < min {
        return Err(format!("beginning of range ({start}) below minimum ({min}): {text}"));
    }
    if end > max {
        return Err(format!("end of range ({end}) above maximum ({max}): {text}"));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {text}"));
    }
    if by == 0 {
        return Err(format!("step of range should be a positive number: {text}"));
    }
    numbers.star |= by == 1 && matches!(ends[0], "*" | "?");
    for number in (start..=end).step_by(by as usize) {
        numbers.bits |= 1 << number;
    }
    Ok(())
}

fn number(text: &str, field: &Field) -> Result<u32, String> {
    let named = field.names.iter().position(|name| text.eq_ignore_ascii_case(name));
    named.map_or_else(|| integer(text), |index| Ok(field.min + index as u32))
}

fn integer(text: &str) -> Result<u32, String> {
    let number: i64 = text
        .parse()
        .map_err(|_| format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax"))?;
    u32::try_from(number).map_err(|_| format!("negative number ({number}) not allowed: {text}"))
}

/// The time zone of this name. Fails with what is wrong with the name.
pub fn time_zone(name: &str) -> Result<TimeZone, String> {
    let letters = |byte: u8| byte.is_ascii_alphanumeric() || b".-_+".contains(&byte);
    let part = |part: &str| {
        !matches!(part, "." | "..")
            && !part.starts_with('-')
            && (1..=14).contains(&part.len())
            && part.bytes().all(letters)
    };
    let unknown = || format!("unknown time zone {name}");
    if !name.split('/').all(part) {
        return Err(unknown());
    }
    match name {
        "UTC" | "Local" => Ok(TimeZone::UTC),
        _ => TimeZone::get(name).map_err(|_| unknown()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_five_fields_or_a_descriptor() {
        for good in ["*/5 * * * *", "0 9-17 * jan,mar mon-fri", "@daily", "@every 1h30m", "TZ=UTC 0 * * * *"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for (bad, problem) in [
            ("every day", "expected exactly 5 fields, found 2: [every day]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("a * * * *", "failed to parse int from a: strconv.Atoi: parsing \"a\": invalid syntax"),
            ("@often", "unrecognized descriptor: @often"),
            ("@every soon", "failed to parse duration @every soon: time: invalid duration \"soon\""),
        ] {
            assert_eq!(check(bad), Err(problem.into()), "{bad}");
        }
        assert!(time_zone("Europe/Berlin").is_ok());
        assert_eq!(time_zone("Nowhere/City"), Err("unknown time zone Nowhere/City".into()));
    }

    /// The first moments after the start of 2026, a Thursday.
    fn times(schedule: &str, zone: &str) -> Vec<String> {
        let schedule = Schedule::parse(schedule, time_zone(zone).unwrap()).unwrap();
        let start: Timestamp = "2026-01-01T00:00:00.5Z".parse().unwrap();
        let times = std::iter::successors(schedule.next(start), |at| schedule.next(*at));
        times.take(2).map(|at| at.to_string()).collect()
    }

    #[test]
    fn the_next_moments_by_the_calendar() {
        for (schedule, first, second) in [
            ("* * * * *", "2026-01-01T00:01:00Z", "2026-01-01T00:02:00Z"),
            ("*/20 3 * * *", "2026-01-01T03:00:00Z", "2026-01-01T03:20:00Z"),
            ("5/30 * ? * *", "2026-01-01T00:05:00Z", "2026-01-01T00:35:00Z"),
            ("0 9 * * mon-fri", "2026-01-01T09:00:00Z", "2026-01-02T09:00:00Z"),
            ("0 0 13 * fri", "2026-01-02T00:00:00Z", "2026-01-09T00:00:00Z"),
            ("0 0 */10 * fri", "2026-01-02T00:00:00Z", "2026-01-09T00:00:00Z"),
            ("0 0 29 feb *", "2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"),
            ("@weekly", "2026-01-04T00:00:00Z", "2026-01-11T00:00:00Z"),
            ("@every 90s", "2026-01-01T00:01:30Z", "2026-01-01T00:03:00Z"),
        ] {
            assert_eq!(times(schedule, "UTC"), [first, second], "{schedule}");
        }
        assert_eq!(times("59 23 31 2 *", "UTC"), [""; 0]);
    }

    #[test]
    fn the_clock_of_the_zone_counts() {
        assert_eq!(times("0 1 * * *", "Asia/Tokyo"), ["2026-01-01T16:00:00Z", "2026-01-02T16:00:00Z"]);
        // Clocks in Berlin go from two to three on 29 March, and from three to two on 25 October.
        assert_eq!(times("30 2 29 3 *", "Europe/Berlin")[0], "2027-03-29T00:30:00Z");
        assert_eq!(times("30 2 25 10 *", "Europe/Berlin"), ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"]);
    }
}

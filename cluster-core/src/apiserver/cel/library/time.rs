//! Timestamps and durations: their parts, and their texts as Go writes them.
//! <https://github.com/google/cel-spec/blob/master/doc/langdef.md#timezones>

use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Zoned};

use super::Function;
use crate::apiserver::cel::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    ("timestamp.getFullYear() -> int", |args| part(args, |time| time.year().into())),
    ("timestamp.getFullYear(string) -> int", |args| part(args, |time| time.year().into())),
    ("timestamp.getMonth() -> int", |args| part(args, |time| i64::from(time.month()) - 1)),
    ("timestamp.getMonth(string) -> int", |args| part(args, |time| i64::from(time.month()) - 1)),
    ("timestamp.getDate() -> int", |args| part(args, |time| time.day().into())),
    ("timestamp.getDate(string) -> int", |args| part(args, |time| time.day().into())),
    ("timestamp.getDayOfMonth() -> int", |args| part(args, |time| i64::from(time.day()) - 1)),
    ("timestamp.getDayOfMonth(string) -> int", |args| part(args, |time| i64::from(time.day()) - 1)),
    ("timestamp.getDayOfWeek() -> int", |args| part(args, |time| time.weekday().to_sunday_zero_offset().into())),
    ("timestamp.getDayOfWeek(string) -> int", |args| part(args, |time| time.weekday().to_sunday_zero_offset().into())),
    ("timestamp.getDayOfYear() -> int", |args| part(args, |time| i64::from(time.day_of_year()) - 1)),
    ("timestamp.getDayOfYear(string) -> int", |args| part(args, |time| i64::from(time.day_of_year()) - 1)),
    ("timestamp.getHours() -> int", |args| part(args, |time| time.hour().into())),
    ("timestamp.getHours(string) -> int", |args| part(args, |time| time.hour().into())),
    ("timestamp.getMinutes() -> int", |args| part(args, |time| time.minute().into())),
    ("timestamp.getMinutes(string) -> int", |args| part(args, |time| time.minute().into())),
    ("timestamp.getSeconds() -> int", |args| part(args, |time| time.second().into())),
    ("timestamp.getSeconds(string) -> int", |args| part(args, |time| time.second().into())),
    ("timestamp.getMilliseconds() -> int", |args| part(args, |time| time.millisecond().into())),
    ("timestamp.getMilliseconds(string) -> int", |args| part(args, |time| time.millisecond().into())),
    ("duration.getHours() -> int", |args| whole(args, |duration| duration.as_hours())),
    ("duration.getMinutes() -> int", |args| whole(args, |duration| duration.as_mins())),
    ("duration.getSeconds() -> int", |args| whole(args, |duration| duration.as_secs())),
    ("duration.getMilliseconds() -> int", |args| whole(args, |duration| duration.as_millis() as i64)),
];

fn part(args: &[Value], of: fn(&Zoned) -> i64) -> Result<Value, String> {
    let Value::Timestamp(time) = &args[0] else { return Err("no such overload".to_owned()) };
    let zone = match args.get(1) {
        Some(Value::String(name)) => zone(name).ok_or_else(|| format!("unknown time zone {name}"))?,
        _ => TimeZone::UTC,
    };
    Ok(Value::Int(of(&time.to_zoned(zone))))
}

/// `Europe/Berlin`, `UTC`, `-08:00`.
fn zone(name: &str) -> Option<TimeZone> {
    if let Some((hours, minutes)) = name.split_once(':') {
        let sign = if hours.starts_with('-') { -1 } else { 1 };
        let hours: i32 = hours.trim_start_matches(['+', '-']).parse().ok()?;
        let minutes: i32 = minutes.parse().ok()?;
        let seconds = sign * hours.checked_mul(60)?.checked_add(minutes)?.checked_mul(60)?;
        return Offset::from_seconds(seconds).ok().map(Offset::to_time_zone);
    }
    if matches!(name, "" | "UTC") { Some(TimeZone::UTC) } else { TimeZone::get(name).ok() }
}

fn whole(args: &[Value], of: fn(&SignedDuration) -> i64) -> Result<Value, String> {
    match &args[0] {
        Value::Duration(duration) => Ok(Value::Int(of(duration))),
        _ => Err("no such overload".to_owned()),
    }
}

/// Reads a duration as Go writes it: `1h30m`, `-1.5s`, `100ms`.
pub fn parse_duration(text: &str) -> Option<SignedDuration> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(SignedDuration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut nanoseconds: i128 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let (number, tail) = rest.split_at(digits);
        let unit_end = tail.find(|letter: char| letter.is_ascii_digit() || letter == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let unit: i128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() || fraction.len() > 18 {
            return None;
        }
        let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        let part: i128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
        let scale = 10_i128.pow(fraction.len() as u32);
        nanoseconds = nanoseconds.checked_add(whole.checked_mul(unit)?)?.checked_add(part * unit / scale)?;
        rest = tail;
    }
    let nanoseconds = i64::try_from(if negative { -nanoseconds } else { nanoseconds }).ok()?;
    Some(SignedDuration::from_nanos(nanoseconds))
}

/// In seconds, as protobuf writes durations: `90s`, `0.5s`.
pub fn duration_text(duration: SignedDuration) -> String {
    let (seconds, nanoseconds) = (duration.as_secs(), duration.subsec_nanos().unsigned_abs());
    let sign = if duration.is_negative() && seconds == 0 { "-" } else { "" };
    let fraction = format!("{nanoseconds:09}");
    match fraction.trim_end_matches('0') {
        "" => format!("{sign}{seconds}s"),
        fraction => format!("{sign}{seconds}.{fraction}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_as_go_writes_them() {
        for (text, seconds) in
            [("1h30m", "5400s"), ("-1.5s", "-1.5s"), ("100ms", "0.1s"), ("0", "0s"), ("-0.5s", "-0.5s")]
        {
            assert_eq!(parse_duration(text).map(duration_text).as_deref(), Some(seconds), "{text}");
        }
        for text in ["", "5", "h", "1x", "1h2", "99999999999999h"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }
}

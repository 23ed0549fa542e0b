//! Schedules of CronJobs, and time zones.
//! <https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/#schedule-syntax>

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const DESCRIPTORS: [&str; 7] = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

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

/// What is wrong with a schedule.
pub fn check(schedule: &str) -> Result<(), String> {
    let mut rest = schedule;
    if let Some(zone) = ["TZ=", "CRON_TZ="].iter().find_map(|prefix| schedule.strip_prefix(prefix)) {
        let (zone, spec) = zone.split_once(' ').ok_or("invalid schedule format: no schedule behind the time zone")?;
        check_time_zone(zone).map_err(|problem| format!("provided bad location {zone}: {problem}"))?;
        rest = spec.trim();
    }
    if rest.starts_with('@') {
        return descriptor(rest);
    }
    let fields: Vec<&str> = rest.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
    }
    for (text, field) in fields.iter().zip(&FIELDS) {
        for range in text.split(',').filter(|range| !range.is_empty()) {
            check_range(range, field)?;
        }
    }
    Ok(())
}

fn descriptor(text: &str) -> Result<(), String> {
    if let Some(duration) = text.strip_prefix("@every ") {
        let (digits, unit) = duration.split_at(duration.bytes().take_while(u8::is_ascii_digit).count());
        let good = !digits.is_empty() && ["h", "m", "s", "ms"].iter().any(|known| unit.starts_with(known));
        return if good {
            Ok(())
        } else {
            Err(format!("failed to parse duration {text}: time: invalid duration {duration:?}"))
        };
    }
    if DESCRIPTORS.contains(&text) { Ok(()) } else { Err(format!("unrecognized descriptor: {text}")) }
}

fn check_range(text: &str, field: &Field) -> Result<(), String> {
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

/// What is wrong with the name of a time zone.
pub fn check_time_zone(name: &str) -> Result<(), String> {
    let letters = |byte: u8| byte.is_ascii_alphanumeric() || b".-_+".contains(&byte);
    let part = |part: &str| {
        !matches!(part, "." | "..")
            && !part.starts_with('-')
            && (1..=14).contains(&part.len())
            && part.bytes().all(letters)
    };
    let known = || name == "UTC" || name == "Local" || jiff::tz::TimeZone::get(name).is_ok();
    if name.split('/').all(part) && known() { Ok(()) } else { Err(format!("unknown time zone {name}")) }
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
        ] {
            assert_eq!(check(bad), Err(problem.into()), "{bad}");
        }
        assert_eq!(check_time_zone("Europe/Berlin"), Ok(()));
        assert_eq!(check_time_zone("Nowhere/City"), Err("unknown time zone Nowhere/City".into()));
    }
}

//! How long ago, in a few letters.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;

use crate::api::object::Object;
use crate::clock::Time;

/// `5s`, `2m30s`, `3h`, `4d12h`: the fewer digits, the longer it is. apimachinery's `duration.HumanDuration`.
pub fn human_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let days = hours / 24;
    let two = |large: u64, unit: char, small: u64, part: char| match small {
        0 => format!("{large}{unit}"),
        _ => format!("{large}{unit}{small}{part}"),
    };
    match () {
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => two(minutes, 'm', seconds % 60, 's'),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => two(hours, 'h', minutes % 60, 'm'),
        () if hours < 48 => format!("{hours}h"),
        () if days < 8 => two(days, 'd', hours % 24, 'h'),
        () if days < 365 * 2 => format!("{days}d"),
        () if days < 365 * 8 => two(days / 365, 'y', days % 365, 'd'),
        () => format!("{}y", days / 365),
    }
}

/// The time since a moment; `<invalid>` if it lies ahead.
pub(super) fn since(moment: Time, now: Time) -> String {
    if moment > now + Duration::from_secs(1) { "<invalid>".into() } else { human_duration(now.since(moment)) }
}

/// The time since a timestamp, `<unknown>` without one.
pub(super) fn since_time(time: Option<&meta::Time>, now: Time) -> String {
    time.map_or_else(|| "<unknown>".into(), |time| since(Time::from(time), now))
}

/// The age of an object.
pub(super) fn age(object: &Object, now: Time) -> String {
    since_time(object.metadata().creation_timestamp.as_ref(), now)
}

/// When an object was made, as tables of old kinds say it.
pub(super) fn created_at(object: &Object) -> String {
    object.metadata().creation_timestamp.as_ref().map(|time| time.0.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_units_only_while_they_are_small() {
        for (seconds, text) in [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (150, "2m30s"),
            (600, "10m"),
            (3 * 3600, "3h"),
            (3 * 3600 + 60, "3h1m"),
            (9 * 3600, "9h"),
            (50 * 3600, "2d2h"),
            (10 * 86_400, "10d"),
            (800 * 86_400, "2y70d"),
            (4000 * 86_400, "10y"),
        ] {
            assert_eq!(human_duration(Duration::from_secs(seconds)), text);
        }
    }
}

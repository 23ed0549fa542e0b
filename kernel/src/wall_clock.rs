//! The moment outside, as virtual time has it.

use std::time::{SystemTime, UNIX_EPOCH};

use cluster_core::clock::Time;

pub fn now() -> Time {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let micros = i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_microsecond(micros).map_or(Time::ZERO, Time::from_timestamp)
}

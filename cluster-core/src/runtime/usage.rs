//! The CPU time that programs take: what they need to wait, what requests cost them, what a fault makes them burn.

use super::Runtime;
use super::container::{Container, Handle};
use crate::clock::Time;

/// A whole core, in the unit of rates: nanoseconds of CPU time a second.
pub const CORE_NANOS: u64 = 1_000_000_000;

/// Counts the CPU time of a container's processes.
#[derive(Clone, Debug, Default)]
pub(super) struct Meter {
    spent_nanos: u64,
    /// From this moment on they take so much a second.
    since: Time,
    rate_nanos: u64,
}

impl Meter {
    fn read(&self, now: Time) -> u64 {
        let nanos = now.since(self.since).as_nanos() * u128::from(self.rate_nanos) / u128::from(CORE_NANOS);
        self.spent_nanos.saturating_add(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    fn set_rate(&mut self, rate_nanos: u64, now: Time) {
        if self.rate_nanos != rate_nanos {
            *self = Meter { spent_nanos: self.read(now), since: now, rate_nanos };
        }
    }
}

/// What makes a container's program work.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Work {
    /// What a fault makes it burn, and the requests that come to it, as CPU time a second.
    pub filled_nanos: u64,
    pub requests_nanos: u64,
}

impl Container {
    /// The CPU time that its processes have taken until now, in nanoseconds.
    pub fn cpu_nanos(&self, now: Time) -> u64 {
        self.meter.read(now)
    }

    /// The CPU time of one request to it, in nanoseconds.
    pub fn request_nanos(&self) -> u64 {
        self.process.cost().1 * 1000
    }

    /// What its processes would like to take a second, but for their limit.
    fn rate_nanos(&self) -> u64 {
        if !self.is_running() {
            return 0;
        }
        let idle = self.process.cost().0 * (CORE_NANOS / 1000);
        let asked = self.process.cores.saturating_mul(CORE_NANOS);
        let wanted =
            [asked, self.work.filled_nanos, self.work.requests_nanos].iter().fold(idle, |a, b| a.saturating_add(*b));
        wanted.min(self.cpu_nanos_max.unwrap_or(u64::MAX))
    }

    /// Something has changed what its processes take.
    pub(super) fn meter(&mut self, now: Time) {
        let rate_nanos = self.rate_nanos();
        self.meter.set_rate(rate_nanos, now);
    }

    /// A request has been answered.
    pub(super) fn charge_request(&mut self) {
        self.meter.spent_nanos = self.meter.spent_nanos.saturating_add(self.request_nanos());
    }
}

impl Runtime {
    /// Makes a container's program burn so many nanoseconds of CPU time a second. False if it does not run.
    pub fn fill_cpu(&mut self, handle: Handle, nanos: u64, now: Time) -> bool {
        let runs = self.container(handle).is_some_and(Container::is_running);
        self.work(handle, now, |work| work.filled_nanos = nanos);
        runs
    }

    /// So much CPU time a second goes into requests that come to a container all the time.
    pub fn load_requests(&mut self, handle: Handle, nanos: u64, now: Time) {
        self.work(handle, now, |work| work.requests_nanos = nanos);
    }

    /// A request has been answered by a container.
    pub fn charge_request(&mut self, handle: Handle) {
        if let Some(container) = self.container_mut(handle) {
            container.charge_request();
        }
    }

    /// Sets the share of the machine's CPUs that a container's processes may take.
    pub fn limit_cpu(&mut self, handle: Handle, nanos_max: Option<u64>, now: Time) {
        if self.container(handle).is_some_and(|container| container.cpu_nanos_max != nanos_max)
            && let Some(container) = self.container_mut(handle)
        {
            container.cpu_nanos_max = nanos_max;
            container.meter(now);
        }
    }

    fn work(&mut self, handle: Handle, now: Time, change: impl FnOnce(&mut Work)) {
        let Some(container) = self.container(handle) else { return };
        let mut work = container.work;
        change(&mut work);
        if work != container.work
            && let Some(container) = self.container_mut(handle)
        {
            container.work = work;
            container.meter(now);
        }
    }
}

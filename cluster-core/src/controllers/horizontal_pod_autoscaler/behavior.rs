//! From what the metrics ask for to what is done: not back and forth, not too fast, within the limits. For that a loop
//! remembers what it has recommended and done; as in the real controller a restart forgets it.
//! <https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/#configurable-scaling-behavior>

use std::time::Duration;

use k8s_openapi::api::autoscaling::v2::{HPAScalingRules, HorizontalPodAutoscalerBehavior};

use crate::clock::Time;

/// `--horizontal-pod-autoscaler-downscale-stabilization`
const DOWNSCALE_STABILIZATION_SECONDS: i32 = 300;
/// Without rules a workload grows at most to twice its size, or to four.
const SCALE_UP_FACTOR: i32 = 2;
const SCALE_UP_MINIMUM: i32 = 4;

const DOWN_STABILIZED: (&str, &str) = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
);
const UP_STABILIZED: (&str, &str) = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
);
const READY: (&str, &str) = ("ReadyForNewScale", "recommended size matches current size");
const TOO_FAST_UP: (&str, &str) =
    ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate");
const TOO_FAST_DOWN: (&str, &str) =
    ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate");
const TOO_MANY: (&str, &str) = ("TooManyReplicas", "the desired replica count is more than the maximum replica count");
const TOO_FEW: (&str, &str) = ("TooFewReplicas", "the desired replica count is less than the minimum replica count");
const WITHIN: (&str, &str) = ("DesiredWithinRange", "the desired count is within the acceptable range");

/// What a loop remembers of one autoscaler.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    recommendations: Vec<(Time, i32)>,
    /// How many pods were added and taken away, and when.
    ups: Vec<(Time, i32)>,
    downs: Vec<(Time, i32)>,
}

/// What is to be kept within bounds.
#[derive(Clone, Copy)]
pub struct Wish {
    pub current: i32,
    /// As the metrics ask for.
    pub desired: i32,
    pub least: i32,
    pub most: i32,
}

/// What is done, with reason and message of the conditions AbleToScale and ScalingLimited.
pub struct Verdict {
    pub replicas: i32,
    pub able: (&'static str, &'static str),
    pub is_limited: bool,
    pub limited: (&'static str, &'static str),
}

impl Memory {
    /// Of an autoscaler that was not seen before.
    pub fn of_size(current: i32, now: Time) -> Memory {
        Memory { recommendations: vec![(now, current)], ..Memory::default() }
    }

    pub fn judge(&mut self, wish: Wish, behavior: Option<&HorizontalPodAutoscalerBehavior>, now: Time) -> Verdict {
        let rules = behavior.and_then(|behavior| Some((behavior.scale_up.as_ref()?, behavior.scale_down.as_ref()?)));
        let (stabilized, why) = match rules {
            None => (self.stabilize(wish, now), DOWN_STABILIZED),
            Some((up, down)) => self.stabilize_by_rules(wish, up, down, now),
        };
        let able = if stabilized == wish.desired { READY } else { why };
        let wish = Wish { desired: stabilized, ..wish };
        let (replicas, limited) = match rules {
            None => limit(wish),
            Some((up, down)) => self.limit_by_rules(wish, up, down, now),
        };
        Verdict { replicas, able, is_limited: replicas != stabilized, limited }
    }

    /// The size was changed: policies count by when.
    pub fn scaled(&mut self, from: i32, to: i32, behavior: Option<&HorizontalPodAutoscalerBehavior>, now: Time) {
        let Some(behavior) = behavior else { return };
        let (events, rules) =
            if to > from { (&mut self.ups, &behavior.scale_up) } else { (&mut self.downs, &behavior.scale_down) };
        let policies = rules.iter().flat_map(|rules| rules.policies.iter().flatten());
        let longest = policies.map(|policy| policy.period_seconds).max().unwrap_or(0);
        events.retain(|(at, _)| now.since(*at) <= seconds(longest));
        events.push((now, (to - from).abs()));
    }

    /// The highest recommendation of the last five minutes.
    fn stabilize(&mut self, wish: Wish, now: Time) -> i32 {
        self.recommendations.retain(|(at, _)| now.since(*at) <= seconds(DOWNSCALE_STABILIZATION_SECONDS));
        let highest = self.recommendations.iter().map(|(_, replicas)| *replicas).max();
        self.recommendations.push((now, wish.desired));
        highest.map_or(wish.desired, |highest| highest.max(wish.desired))
    }

    fn stabilize_by_rules(
        &mut self,
        wish: Wish,
        up: &HPAScalingRules,
        down: &HPAScalingRules,
        now: Time,
    ) -> (i32, (&'static str, &'static str)) {
        let window = |rules: &HPAScalingRules, usual| seconds(rules.stabilization_window_seconds.unwrap_or(usual));
        let (up, down) = (window(up, 0), window(down, DOWNSCALE_STABILIZATION_SECONDS));
        let within = |window: Duration| {
            let known = self.recommendations.iter().filter(move |(at, _)| now.since(*at) < window);
            known.map(|(_, replicas)| *replicas)
        };
        let lowest = within(up).min().unwrap_or(wish.desired).min(wish.desired);
        let highest = within(down).max().unwrap_or(wish.desired).max(wish.desired);
        self.recommendations.retain(|(at, _)| now.since(*at) <= up.max(down));
        self.recommendations.push((now, wish.desired));
        let why = if wish.desired >= wish.current { UP_STABILIZED } else { DOWN_STABILIZED };
        (wish.current.max(lowest).min(highest), why)
    }

    fn limit_by_rules(
        &self,
        wish: Wish,
        up: &HPAScalingRules,
        down: &HPAScalingRules,
        now: Time,
    ) -> (i32, (&'static str, &'static str)) {
        let Wish { current, desired, least, most } = wish;
        if desired > current {
            let fastest = self.bound(current, up, true, now).max(current);
            let (allowed, why) = if most > fastest { (fastest, TOO_FAST_UP) } else { (most, TOO_MANY) };
            if desired > allowed {
                return (allowed, why);
            }
        } else if desired < current {
            let fastest = self.bound(current, down, false, now).min(current);
            let (allowed, why) = if least < fastest { (fastest, TOO_FAST_DOWN) } else { (least, TOO_FEW) };
            if desired < allowed {
                return (allowed, why);
            }
        }
        (desired, WITHIN)
    }

    /// How far the policies let the size go now, from what it was when the period of each began.
    fn bound(&self, current: i32, rules: &HPAScalingRules, grows: bool, now: Time) -> i32 {
        let select = rules.select_policy.as_deref().unwrap_or("Max");
        if select == "Disabled" {
            return current;
        }
        let within = |events: &[(Time, i32)], period| {
            let recent = events.iter().filter(|(at, _)| now.since(*at) < seconds(period));
            recent.map(|(_, change)| *change).sum::<i32>()
        };
        let bounds = rules.policies.iter().flatten().map(|policy| {
            let period = policy.period_seconds;
            let before = f64::from(current - within(&self.ups, period) + within(&self.downs, period));
            let change = match policy.type_.as_str() {
                "Percent" => before * f64::from(policy.value) / 100.0,
                _ => f64::from(policy.value),
            };
            // Rounded so that a small share of a small size still moves it.
            if grows { (before + change).ceil() as i32 } else { (before - change) as i32 }
        });
        let farthest = if grows == (select != "Min") { bounds.max() } else { bounds.min() };
        farthest.unwrap_or(current)
    }
}

fn limit(wish: Wish) -> (i32, (&'static str, &'static str)) {
    let fastest = wish.current.saturating_mul(SCALE_UP_FACTOR).max(SCALE_UP_MINIMUM);
    let (allowed, why) = if wish.most > fastest { (fastest, TOO_FAST_UP) } else { (wish.most, TOO_MANY) };
    match wish.desired {
        desired if desired < wish.least => (wish.least, TOO_FEW),
        desired if desired > allowed => (allowed, why),
        desired => (desired, WITHIN),
    }
}

fn seconds(seconds: i32) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn judge(
        memory: &mut Memory,
        current: i32,
        desired: i32,
        behavior: Option<&HorizontalPodAutoscalerBehavior>,
        at: u64,
    ) -> (i32, &'static str, &'static str) {
        let wish = Wish { current, desired, least: 1, most: 20 };
        let verdict = memory.judge(wish, behavior, Time::from_secs(at));
        (verdict.replicas, verdict.able.0, verdict.limited.0)
    }

    #[test]
    fn without_rules_it_grows_fast_and_shrinks_late() {
        let mut memory = Memory::of_size(2, Time::ZERO);
        assert_eq!(judge(&mut memory, 2, 9, None, 15), (4, "ReadyForNewScale", "ScaleUpLimit"));
        assert_eq!(judge(&mut memory, 4, 9, None, 30), (8, "ReadyForNewScale", "ScaleUpLimit"));
        assert_eq!(judge(&mut memory, 8, 2, None, 45), (9, "ScaleDownStabilized", "DesiredWithinRange"));
        assert_eq!(judge(&mut memory, 9, 2, None, 330), (9, "ScaleDownStabilized", "DesiredWithinRange"));
        assert_eq!(judge(&mut memory, 9, 0, None, 346), (2, "ScaleDownStabilized", "DesiredWithinRange"));
        assert_eq!(judge(&mut memory, 2, 30, None, 360).2, "ScaleUpLimit");
        assert_eq!(judge(&mut memory, 15, 30, None, 375), (20, "ReadyForNewScale", "TooManyReplicas"));
    }

    #[test]
    fn rules_say_how_fast() {
        let behavior: HorizontalPodAutoscalerBehavior = serde_json::from_value(json!({
            "scaleUp": {"selectPolicy": "Max", "stabilizationWindowSeconds": 0, "policies": [
                {"type": "Pods", "value": 1, "periodSeconds": 60}, {"type": "Percent", "value": 50, "periodSeconds": 60}]},
            "scaleDown": {"selectPolicy": "Min", "stabilizationWindowSeconds": 30, "policies": [
                {"type": "Pods", "value": 2, "periodSeconds": 60}, {"type": "Percent", "value": 50, "periodSeconds": 60}]},
        }))
        .unwrap();
        let rules = Some(&behavior);
        let mut memory = Memory::of_size(2, Time::ZERO);
        assert_eq!(judge(&mut memory, 2, 10, rules, 15), (3, "ReadyForNewScale", "ScaleUpLimit"));
        memory.scaled(2, 3, rules, Time::from_secs(15));
        assert_eq!(judge(&mut memory, 3, 10, rules, 30), (3, "ReadyForNewScale", "ScaleUpLimit"));
        assert_eq!(judge(&mut memory, 3, 10, rules, 76), (5, "ReadyForNewScale", "ScaleUpLimit"));
        memory.scaled(3, 5, rules, Time::from_secs(76));
        assert_eq!(judge(&mut memory, 8, 1, rules, 91), (8, "ScaleDownStabilized", "DesiredWithinRange"));
        assert_eq!(judge(&mut memory, 8, 1, rules, 140), (6, "ReadyForNewScale", "ScaleDownLimit"));
        let off: HorizontalPodAutoscalerBehavior = serde_json::from_value(json!({
            "scaleUp": {"stabilizationWindowSeconds": 0}, "scaleDown": {"selectPolicy": "Disabled", "stabilizationWindowSeconds": 0}
        }))
        .unwrap();
        assert_eq!(judge(&mut memory, 8, 1, Some(&off), 200), (8, "ReadyForNewScale", "ScaleDownLimit"));
    }
}

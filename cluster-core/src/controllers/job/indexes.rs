//! Completion indexes: how a status writes them down, and the pods that have one.
//! <https://kubernetes.io/docs/concepts/workloads/controllers/job/#completion-mode>

use std::fmt;

use k8s_openapi::api::core::v1::{Container, EnvVar, EnvVarSource, ObjectFieldSelector, Pod};

use crate::api::object::Object;

pub const INDEX: &str = "batch.kubernetes.io/job-completion-index";
const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
const IGNORED_FAILURES: &str = "batch.kubernetes.io/job-index-ignored-failure-count";
const ENVIRONMENT: &str = "JOB_COMPLETION_INDEX";
/// The name of a pod ends in five letters of the server's, and has at most 63.
const PREFIX_LENGTH_MAX: usize = 58;

/// A set of indexes, as intervals with both ends, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Indexes(Vec<(i32, i32)>);

impl Indexes {
    /// Reads `1,3-5`. What is no number is left out, and so is what lies beyond the number of completions.
    pub fn parse(text: &str, completions: i32) -> Indexes {
        let interval = |text: &str| {
            let (first, last) = text.split_once('-').unwrap_or((text, text));
            Some((first.parse().ok()?, last.parse::<i32>().ok()?.min(completions - 1)))
        };
        let intervals = text.split(',').filter_map(interval).filter(|(first, _)| *first < completions);
        Indexes::default().merge(&Indexes(intervals.collect()))
    }

    pub fn merge(&self, other: &Indexes) -> Indexes {
        let mut all: Vec<_> = self.0.iter().chain(&other.0).copied().collect();
        all.sort_unstable();
        let mut merged: Vec<(i32, i32)> = Vec::new();
        for (first, last) in all {
            match merged.last_mut() {
                Some(before) if first <= before.1 + 1 => before.1 = before.1.max(last),
                _ => merged.push((first, last)),
            }
        }
        Indexes(merged)
    }

    pub fn with(&self, indexes: impl Iterator<Item = i32>) -> Indexes {
        self.merge(&Indexes(indexes.map(|index| (index, index)).collect()))
    }

    pub fn has(&self, index: i32) -> bool {
        let after = self.0.partition_point(|(first, _)| *first <= index);
        after > 0 && index <= self.0[after - 1].1
    }

    pub fn total(&self) -> i32 {
        self.0.iter().map(|(first, last)| last - first + 1).sum()
    }

    /// How many are in both.
    pub fn common(&self, other: &Indexes) -> i32 {
        let shared = |a: &(i32, i32), b: &(i32, i32)| (a.1.min(b.1) - a.0.max(b.0) + 1).max(0);
        self.0.iter().flat_map(|a| other.0.iter().map(move |b| shared(a, b))).sum()
    }

    /// Those below `completions` that are not in it, in order.
    pub fn missing(&self, completions: i32) -> impl Iterator<Item = i32> {
        let starts = [0].into_iter().chain(self.0.iter().map(|(_, last)| last + 1));
        let ends = self.0.iter().map(|(first, _)| *first).chain([completions]);
        starts.zip(ends).flat_map(move |(start, end)| start..end.min(completions))
    }
}

/// `0,1,4-7`: three in a row are written as an interval.
impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, (first, last)) in self.0.iter().enumerate() {
            let comma = if position > 0 { "," } else { "" };
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                1 => write!(f, "{comma}{first},{last}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

/// The index that a pod works on.
pub fn index_of(pod: &Object) -> Option<i32> {
    pod.annotation(INDEX)?.parse().ok().filter(|index| *index >= 0)
}

/// How many pods of its index have failed before this one: those that count, and those that a policy ignores.
pub fn earlier_failures(pod: &Object) -> (i32, i32) {
    let number = |name| pod.annotation(name).and_then(|text| text.parse().ok()).filter(|count: &i32| *count >= 0);
    (number(FAILURES).unwrap_or(0), number(IGNORED_FAILURES).unwrap_or(0))
}

/// Makes of a Job's pod the one of an index: name, hostname, environment, annotation, label.
pub fn assign(pod: &mut Object, job: &str, index: i32) {
    let end = format!("-{index}-");
    let start = &job[..job.len().min(PREFIX_LENGTH_MAX.saturating_sub(end.len()))];
    let metadata = pod.metadata_mut();
    metadata.generate_name = Some(format!("{start}{end}"));
    metadata.annotations.get_or_insert_default().insert(INDEX.into(), index.to_string());
    metadata.labels.get_or_insert_default().insert(INDEX.into(), index.to_string());
    let spec = pod.spec_mut::<Pod>();
    spec.hostname = Some(format!("{job}-{index}"));
    spec.init_containers.iter_mut().flatten().for_each(tell_index);
    spec.containers.iter_mut().for_each(tell_index);
}

fn tell_index(container: &mut Container) {
    let environment = container.env.get_or_insert_default();
    if environment.iter().all(|variable| variable.name != ENVIRONMENT) {
        let field = ObjectFieldSelector { field_path: format!("metadata.labels['{INDEX}']"), ..Default::default() };
        let source = EnvVarSource { field_ref: Some(field), ..EnvVarSource::default() };
        environment.push(EnvVar { name: ENVIRONMENT.into(), value_from: Some(source), ..EnvVar::default() });
    }
}

/// Writes down how many pods of its index have failed before.
pub fn tell_failures(pod: &mut Object, (counted, ignored): (i32, i32)) {
    let annotations = pod.metadata_mut().annotations.get_or_insert_default();
    annotations.insert(FAILURES.into(), counted.to_string());
    if ignored > 0 {
        annotations.insert(IGNORED_FAILURES.into(), ignored.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_in_a_row_are_an_interval() {
        let indexes = Indexes::default().with([5, 0, 1, 3, 4, 9].into_iter());
        assert_eq!(indexes.to_string(), "0,1,3-5,9");
        assert_eq!(Indexes::parse("0,1,3-5,9", 10), indexes);
        assert_eq!(Indexes::parse("0,1,x,3-5,9", 4).to_string(), "0,1,3");
        assert_eq!(indexes.total(), 6);
        assert_eq!([1, 2, 5, 6, 9].map(|index| indexes.has(index)), [true, false, true, false, true]);
        assert_eq!(indexes.missing(12).collect::<Vec<_>>(), [2, 6, 7, 8, 10, 11]);
        assert_eq!(indexes.missing(3).collect::<Vec<_>>(), [2]);
        assert_eq!(indexes.common(&Indexes::parse("1-4", 10)), 3);
    }
}

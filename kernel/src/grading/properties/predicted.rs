//! `predicted: {boxes: [a, b], words: [back, gone]}`: each box has a prediction, one of these words, that was locked in before
//! anything of that name was made. `predicted-right: {a: back, b: gone}`: the first one each is right.

use std::collections::BTreeMap;

use cluster_core::Cluster;
use cluster_core::trace::{Entry, RequestEntry, Sequence, What};
use serde::Deserialize;

use super::Property;
use crate::grading::words::Words;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Predicted {
    boxes: Vec<String>,
    words: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct PredictedRight {
    boxes: BTreeMap<String, String>,
}

impl Property for Predicted {
    fn look(&self, cluster: &mut Cluster, start: &Cluster) -> Result<(), Words> {
        let begun = start.trace().next_sequence();
        let all = predictions(cluster);
        for name in &self.boxes {
            let told = |ja: &str, en: &str| Words::new(format!("{name}: {ja}"), format!("{name}: {en}"));
            let Some((when, word)) = all.get(name.as_str()).and_then(|of_box| of_box.first()) else {
                return Err(told("予想がない", "no prediction"));
            };
            if !self.words.contains(word) {
                return Err(Words::same(format!("{name}: {word}")));
            }
            let is_made = |(entry, write): &(&Entry, &RequestEntry)| {
                entry.sequence >= begun && write.before.is_none() && *write.key.name == **name
            };
            if cluster.trace().writes().find(is_made).is_some_and(|(made, _)| made.sequence < *when) {
                return Err(told("予想が実験より後", "predicted after the experiment"));
            }
        }
        Ok(())
    }
}

impl Property for PredictedRight {
    fn look(&self, cluster: &mut Cluster, _start: &Cluster) -> Result<(), Words> {
        let all = predictions(cluster);
        for (name, right) in &self.boxes {
            let of_box = all.get(name.as_str()).map(Vec::as_slice).unwrap_or_default();
            // Whoever predicts something else later on has the first one noted again by the kernel, also on a cluster that
            // knows nothing of it any more: so the last one is the first.
            let first = of_box.last().map_or("?", |(_, word)| word.as_str());
            if first != right {
                return Err(Words::new(
                    format!("{name} の最初の予想は {first}"),
                    format!("the first prediction of {name} is {first}"),
                ));
            }
        }
        Ok(())
    }
}

/// What each question was predicted to come to, and where in the record, oldest first.
fn predictions(cluster: &Cluster) -> BTreeMap<&str, Vec<(Sequence, String)>> {
    let mut all: BTreeMap<&str, Vec<(Sequence, String)>> = BTreeMap::new();
    for entry in cluster.trace().iter() {
        let What::Cell(text) = &entry.what else { continue };
        let lines = text.lines().filter_map(|line| line.trim().strip_prefix("%predict ")?.split_once(':'));
        for (question, word) in lines {
            all.entry(question.trim()).or_default().push((entry.sequence, word.trim().to_lowercase()));
        }
    }
    all
}

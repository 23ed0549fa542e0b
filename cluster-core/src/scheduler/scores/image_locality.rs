//! Images that a node has already need not be pulled there. An image counts by its size, and the less the fewer nodes
//! have it, so that pods do not all go to the first node that got it.

use super::pod_topology_spread::Wishes;
use super::{Candidate, POINTS_MAX, Score};
use crate::scheduler::cycle::Cycle;

pub struct ImageLocality;

/// Below this sum an image is pulled in no time; above the other, times the number of images, nothing is gained.
const BYTES_MIN: i64 = 23 << 20;
const BYTES_MAX: i64 = 1000 << 20;

impl Score for ImageLocality {
    fn name(&self) -> &'static str {
        "ImageLocality"
    }

    fn weight(&self) -> i64 {
        1
    }

    fn finish(&self, cycle: &Cycle<'_>, _: &Wishes, candidates: &[Candidate<'_>], values: &mut [i64]) {
        let (wanted, nodes) = (&cycle.ask.images, cycle.cache.nodes().len());
        let spread: Vec<(&String, f64)> = wanted
            .iter()
            .map(|image| (image, cycle.cache.nodes_with_image(image) as f64 / nodes as f64))
            .filter(|(_, share)| *share > 0.0)
            .collect();
        if spread.is_empty() {
            return;
        }
        let most = BYTES_MAX.saturating_mul(wanted.len() as i64);
        for (value, candidate) in values.iter_mut().zip(candidates) {
            let bytes = spread.iter().filter_map(|(image, share)| {
                candidate.node.images.get(*image).map(|bytes| (*bytes as f64 * share) as i64)
            });
            let bytes = bytes.fold(0, i64::saturating_add).clamp(BYTES_MIN, most);
            *value = (i128::from(POINTS_MAX) * i128::from(bytes - BYTES_MIN) / i128::from(most - BYTES_MIN)) as i64;
        }
    }
}

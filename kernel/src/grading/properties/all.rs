//! `all: [{…}, {…}]`: several properties at once, in the order in which they are told.

use cluster_core::Cluster;
use serde::Deserialize;

use super::Property;
use crate::grading::check::Expectation;
use crate::grading::words::Words;

#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct All {
    properties: Vec<Expectation>,
}

impl Property for All {
    fn look(&self, cluster: &mut Cluster, start: &Cluster) -> Result<(), Words> {
        self.properties.iter().try_for_each(|Expectation(property)| property.look(cluster, start))
    }
}

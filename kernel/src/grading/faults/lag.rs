//! `lag: {of: kube-proxy, kind: EndpointSlice, by: 5s}`: from now on a component hears of changes of a kind so much later.

use std::time::Duration;

use cluster_core::Cluster;
use cluster_core::faults::{Edge, Effect, Rule};
use serde::Deserialize;

use super::Fault;
use crate::grading::check::span;
use crate::grading::words::Words;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lag {
    of: String,
    kind: String,
    #[serde(deserialize_with = "span")]
    by: Duration,
}

impl Fault for Lag {
    fn strike(&self, cluster: &mut Cluster) -> Result<(), Words> {
        let rule = Rule {
            edge: Edge::Delivery,
            component: self.of.as_str().into(),
            kind: self.kind.as_str().into(),
            name: "".into(),
            effect: Effect::Delay(self.by),
            times: None,
            until: None,
        };
        cluster.add_rule(rule, format!("{} hears of each {} {:?} late", self.of, self.kind, self.by));
        Ok(())
    }

    fn words(&self) -> Words {
        let Lag { of, kind, by } = self;
        Words::new(
            format!("{of} への {kind} の知らせが{by:?}遅れるようにした"),
            format!("a lag of {by:?} of {kind} on the way to {of}"),
        )
    }
}

//! `spread: {client: app=client, to: deployment/web, requests: 3000, share: [0.2, 0.5]}`: of so many requests that the client
//! sends as its environment tells (`TARGET`, and `REQUESTS_PER_CONNECTION`, 0 for all over one), every Ready Pod of the
//! object answers a share between these two.

use std::collections::BTreeMap;

use cluster_core::Cluster;
use cluster_core::api::Key;
use cluster_core::network::connect::{Options, Origin, Session};
use k8s_openapi::api::core::v1::Pod;
use serde::Deserialize;

use super::Property;
use crate::grading::objects::{Labelled, ObjectName, is_ready, listed};
use crate::grading::words::Words;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    client: Labelled,
    to: ObjectName,
    requests: usize,
    share: [f64; 2],
}

impl Property for Spread {
    fn look(&self, cluster: &mut Cluster, _start: &Cluster) -> Result<(), Words> {
        let client = self.client.pods(cluster).into_iter().find(|pod| is_ready(pod));
        let Some(client) = client else {
            return Err(Words::new("Readyなclientがない", "there is no Ready client"));
        };
        let variable = |name: &str| {
            let all = client.spec::<Pod>().containers.first().and_then(|container| container.env.as_ref());
            all.into_iter().flatten().find(|known| known.name == name).and_then(|known| known.value.clone())
        };
        let url = variable("TARGET").unwrap_or_default();
        let per_connection = variable("REQUESTS_PER_CONNECTION").and_then(|text| text.trim().parse::<usize>().ok());
        let Some(per_connection) = per_connection else {
            return Err(Words::new(
                "clientの環境変数 REQUESTS_PER_CONNECTION が数ではない",
                "REQUESTS_PER_CONNECTION of the client is not a number",
            ));
        };
        let from = Origin::Pod(client.key.clone());
        let mut counts: BTreeMap<Key, usize> = BTreeMap::new();
        for pod in cluster.list::<Pod>("default").filter(|pod| is_ready(pod) && self.to.is_above(cluster, pod)) {
            counts.insert(pod.key.clone(), 0);
        }
        let (mut session, mut sent) = (Session::default(), 0);
        for number in 0..self.requests {
            // More would not help a Pod that has had none by now.
            if number == self.requests / 10 && counts.values().any(|count| *count == 0) {
                break;
            }
            sent += 1;
            if number.checked_rem(per_connection) == Some(0) {
                session = Session::default();
            }
            let connection = cluster.connect_again(&mut session, &from, &url, &Options::default());
            let count = connection.backend.as_ref().and_then(|backend| counts.get_mut(backend));
            match (connection.result, count) {
                (Ok(reply), Some(count)) if reply.status < 400 => *count += 1,
                (Ok(reply), _) => return Err(Words::same(format!("{url} → {}", reply.status))),
                (Err(failure), _) => return Err(Words::same(format!("{url} → {failure}"))),
            }
        }
        let [low, high] = self.share.map(|share| share * self.requests as f64);
        if !counts.is_empty() && counts.values().all(|count| (low..=high).contains(&(*count as f64))) {
            return Ok(());
        }
        let shares = listed(counts.iter().map(|(pod, count)| format!("{} {count}", pod.name)));
        Err(Words::new(format!("{sent}回のリクエスト{shares}"), format!("{sent} requests{shares}")))
    }
}

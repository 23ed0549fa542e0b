//! A list and the watch that goes on from it, over HTTPS, while others write: nothing is lost, nothing comes twice.

use std::collections::BTreeMap;

use cluster_core::random::Random;
use cluster_core::{Cluster, Config};
use futures_util::{StreamExt, pin_mut};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};
use kube::{Client, ResourceExt};

use super::Live;
use super::server::Server;

const SEEDS: u64 = 2_000;
const SEEDS_AT_ONCE: usize = 6;
const WRITERS: u64 = 3;
const WRITES: u64 = 12;
const TIERS: [&str; 2] = ["front", "back"];
/// The last thing that is written.
const END: &str = "end";

async fn client() -> Client {
    let without = ["kube-controller-manager", "kube-scheduler"].map(str::to_owned).to_vec();
    let cluster = Cluster::new(Config { nodes: 0, without, ..Config::default() });
    let server = Server::bind(([127, 0, 0, 1], 0).into(), Live::start(cluster, 1.0).unwrap()).await.unwrap();
    let mut config = kube::Config::new(server.url().parse().unwrap());
    config.auth_info.token = Some(server.token().to_owned().into());
    config.accept_invalid_certs = true;
    tokio::spawn(server.run());
    Client::try_from(config).unwrap()
}

fn config_map(name: &str, tier: &str, text: u64) -> ConfigMap {
    let mut map = ConfigMap { data: Some([("text".into(), text.to_string())].into()), ..ConfigMap::default() };
    map.metadata.name = Some(name.into());
    map.metadata.labels = Some([("tier".into(), tier.into())].into());
    map
}

fn revision(map: &ConfigMap) -> u64 {
    map.resource_version().unwrap().parse().unwrap()
}

/// Creates, updates and deletes; what is there already or not any more is refused.
async fn write(api: Api<ConfigMap>, mut random: Random) {
    for text in 0..WRITES {
        let name = format!("map-{}", random.below(6));
        let map = config_map(&name, TIERS[random.below(2) as usize], text);
        let done = match random.below(3) {
            0 => api.create(&PostParams::default(), &map).await.map(drop),
            1 => api.replace(&name, &PostParams::default(), &map).await.map(drop),
            _ => api.delete(&name, &DeleteParams::default()).await.map(drop),
        };
        if let Err(error) = done {
            assert!(matches!(&error, kube::Error::Api(status) if [404, 409].contains(&status.code)), "{error}");
        }
    }
}

/// A client that keeps a copy of what it selects.
struct Reader {
    seed: u64,
    random: Random,
    api: Api<ConfigMap>,
    labels: String,
    known: BTreeMap<String, u64>,
    newest: u64,
}

impl Reader {
    /// Lists in pages of a drawn size.
    async fn list(&mut self) {
        self.known.clear();
        let limit = (self.random.below(2) == 0).then(|| 1 + self.random.below(3) as u32);
        let mut params = ListParams { label_selector: Some(self.labels.clone()), limit, ..ListParams::default() };
        loop {
            let page = self.api.list(&params).await.unwrap();
            for map in &page.items {
                let twice = self.known.insert(map.name_any(), revision(map));
                assert_eq!(twice, None, "seed {}: {} stands on two pages", self.seed, map.name_any());
            }
            self.newest = page.metadata.resource_version.unwrap().parse().unwrap();
            params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
            if params.continue_token.is_none() {
                return;
            }
        }
    }

    /// Watches until the end is written, sometimes over a new connection.
    async fn follow(&mut self) {
        let params = WatchParams { label_selector: Some(self.labels.clone()), ..WatchParams::default() };
        while !self.known.contains_key(END) {
            let events = self.api.watch(&params, &self.newest.to_string()).await.unwrap();
            pin_mut!(events);
            let mut left = 1 + self.random.below(12);
            while left > 0 && !self.known.contains_key(END) {
                let event = events.next().await.unwrap_or_else(|| panic!("seed {}: the watch ended", self.seed));
                self.hear(event.unwrap());
                left -= 1;
            }
        }
    }

    fn hear(&mut self, event: WatchEvent<ConfigMap>) {
        let (map, is_added, is_there) = match event {
            WatchEvent::Added(map) => (map, true, true),
            WatchEvent::Modified(map) => (map, false, true),
            WatchEvent::Deleted(map) => (map, false, false),
            other => panic!("seed {}: {other:?}", self.seed),
        };
        let (seed, name, revision) = (self.seed, map.name_any(), revision(&map));
        assert!(revision > self.newest, "seed {seed}: {revision} came after {}", self.newest);
        self.newest = revision;
        let before = if is_there { self.known.insert(name, revision) } else { self.known.remove(&map.name_any()) };
        assert_eq!(before.is_none(), is_added, "seed {seed}: {}", map.name_any());
    }
}

async fn one(client: Client, seed: u64) {
    let mut random = Random::new(seed);
    let namespace = format!("seed-{seed}");
    let mut object = Namespace::default();
    object.metadata.name = Some(namespace.clone());
    Api::all(client.clone()).create(&PostParams::default(), &object).await.unwrap();
    let api: Api<ConfigMap> = Api::namespaced(client, &namespace);

    let draws: Vec<u64> = (0..WRITERS).map(|_| random.below(u64::MAX)).collect();
    let writers = draws.into_iter().map(|draw| tokio::spawn(write(api.clone(), Random::new(draw)))).collect();
    let (labels, tier) =
        [("", "back"), ("tier=front", "front"), ("tier notin (front)", "back")][random.below(3) as usize];
    let (labels, known) = (labels.to_owned(), BTreeMap::new());
    let mut reader = Reader { seed, random, api: api.clone(), labels, known, newest: 0 };
    let written = async {
        let writers: Vec<tokio::task::JoinHandle<()>> = writers;
        for writer in writers {
            writer.await.unwrap();
        }
        api.create(&PostParams::default(), &config_map(END, tier, 0)).await.unwrap();
    };
    let read = async {
        reader.list().await;
        reader.follow().await;
        std::mem::take(&mut reader.known)
    };
    let ((), known) = tokio::join!(written, read);
    reader.list().await;
    assert_eq!(known, reader.known, "seed {seed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_goes_on_where_a_list_ended_without_gap_or_repetition() {
    let client = client().await;
    futures_util::stream::iter(0..SEEDS).for_each_concurrent(SEEDS_AT_ONCE, |seed| one(client.clone(), seed)).await;
}

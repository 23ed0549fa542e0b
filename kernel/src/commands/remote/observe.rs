//! Watches on everything that a server has, beside whoever speaks to it: one task a kind, on a thread of their own.
//! <https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes>

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use cluster_core::api::kind::KindRef;
use cluster_core::watch::EventType;
use futures_util::{StreamExt, TryStreamExt};
use kube::api::{ApiResource, DynamicObject, ListParams, WatchEvent, WatchParams};
use kube::{Client, Config};
use serde_json::Value;

/// How long a watch that failed waits before it begins anew.
const PAUSE: Duration = Duration::from_secs(5);

/// What the watches tell.
#[derive(Debug)]
pub enum Told {
    /// All objects of a kind, as they are where its watch begins, or begins anew.
    All(KindRef, Vec<Value>),
    One(EventType, KindRef, Value),
    /// Objects of this kind can't be listed, now or by this user.
    Refused(KindRef),
}

pub struct Observer {
    told: Receiver<Told>,
    /// Dropping it ends the thread.
    _stop: tokio::sync::oneshot::Sender<()>,
}

impl Observer {
    pub(super) fn start(config: Config, kinds: Vec<KindRef>) -> Observer {
        let (sender, told) = mpsc::channel();
        let (stop, stopped) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let Ok(runtime) = runtime else { return };
            runtime.block_on(async {
                let Ok(client) = Client::try_from(config) else { return };
                for kind in kinds {
                    tokio::spawn(follow(client.clone(), kind, sender.clone()));
                }
                let _ = stopped.await;
            });
        });
        Observer { told, _stop: stop }
    }

    /// The next that is told, if something is within this time.
    pub fn next(&self, within: Duration) -> Option<Told> {
        match self.told.recv_timeout(within) {
            Ok(told) => Some(told),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                // The thread could not begin; whoever waits for it still waits as long as they wanted to.
                std::thread::sleep(within);
                None
            }
        }
    }
}

async fn follow(client: Client, kind: KindRef, tell: Sender<Told>) {
    let resource = ApiResource {
        group: kind.group.to_string(),
        version: kind.version.to_string(),
        api_version: kind.api_version().to_string(),
        kind: kind.kind.to_string(),
        plural: kind.resource.to_string(),
    };
    let objects: kube::Api<DynamicObject> = kube::Api::all_with(client, &resource);
    // A receiver that is gone takes this task's thread with it.
    loop {
        match watch(&objects, &kind, &tell).await {
            Ok(()) => {}
            Err(kube::Error::Api(status)) if matches!(status.code, 401 | 403 | 404 | 405) => {
                let _ = tell.send(Told::Refused(kind));
                return;
            }
            Err(_) => {
                let _ = tell.send(Told::Refused(kind.clone()));
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Lists, and then watches until the server has forgotten where the watch stood.
async fn watch(objects: &kube::Api<DynamicObject>, kind: &KindRef, tell: &Sender<Told>) -> Result<(), kube::Error> {
    let json = |object: DynamicObject| serde_json::to_value(object).unwrap_or_default();
    let list = objects.list(&ListParams::default()).await?;
    let mut revision = list.metadata.resource_version.clone().unwrap_or_default();
    let _ = tell.send(Told::All(kind.clone(), list.items.into_iter().map(json).collect()));
    loop {
        let mut events = objects.watch(&WatchParams::default(), &revision).await?.boxed();
        while let Some(event) = events.try_next().await? {
            let (event, object) = match event {
                WatchEvent::Added(object) => (EventType::Added, object),
                WatchEvent::Modified(object) => (EventType::Modified, object),
                WatchEvent::Deleted(object) => (EventType::Deleted, object),
                WatchEvent::Bookmark(bookmark) => {
                    revision = bookmark.metadata.resource_version;
                    continue;
                }
                WatchEvent::Error(_) => return Ok(()),
            };
            revision = object.metadata.resource_version.clone().unwrap_or(revision);
            let _ = tell.send(Told::One(event, kind.clone(), json(object)));
        }
    }
}

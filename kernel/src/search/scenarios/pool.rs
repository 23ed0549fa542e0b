//! `pool`: Pods for a Pool, as a ReplicaSet keeps them. Pods are deleted, and one is somebody else's.

use kernetes_controller::Object as _;
use serde_json::json;

use crate::grading::words::Words;
use crate::search::scenario::{Act, Edit, Scenario, Scene, object};

const EXAMPLE: &str = "example.com/v1";

pub fn scenario() -> Scenario {
    let pool = |replicas: u64| object(EXAMPLE, "Pool", "web", json!({"spec": {"replicas": replicas}}));
    let stray = json!({"spec": {"containers": [{"name": "stray", "image": "nginx"}]}});
    Scenario {
        start: vec![object("v1", "Pod", "stray", stray), pool(2)],
        edits: vec![
            Edit::new(("3つにする", "scale to 3"), Act::Patch(pool(3))),
            Edit::disturbance(
                ("PoolのPodを1つ消す", "delete a Pod of the Pool"),
                Act::DeleteOwned(object("v1", "Pod", "", json!({}))),
            ),
            Edit::new(("1つにする", "scale to 1"), Act::Patch(pool(1))),
        ],
        met,
        // Which of its Pods is left is for the controller to say.
        confluent: false,
        ..Scenario::new("pool")
    }
}

fn met(scene: &Scene<'_>) -> Result<(), Words> {
    let Some(pool) = scene.get(EXAMPLE, "Pool", "web") else { return Ok(()) };
    let pods = scene.list("v1", "Pod");
    let (want, have) =
        (pool.spec()["replicas"].as_u64().unwrap_or(1), pods.iter().filter(|pod| pod.owned_by(&pool)).count());
    if have as u64 != want {
        return Err(Words::new(
            format!("Pool web のPodが{want}個のはずなのに{have}個"),
            format!("Pool web has {have} Pods where {want} are wished for"),
        ));
    }
    match pods.iter().any(|pod| pod.name() == "stray" && !pod.owned_by(&pool)) {
        true => Ok(()),
        false => Err(Words::new("関係のないPod stray がなくなった", "the Pod stray, which is nobody's, is gone")),
    }
}

//! `release`: two controllers, from an App to a Release, and from a Release to a ConfigMap.

use kernetes_controller::Object as _;
use serde_json::json;

use crate::grading::words::Words;
use crate::search::scenario::{Act, Edit, Scenario, Scene, object};

const EXAMPLE: &str = "example.com/v1";

pub fn scenario() -> Scenario {
    let app = |version: &str| object(EXAMPLE, "App", "web", json!({"spec": {"version": version}}));
    Scenario {
        start: vec![app("1")],
        edits: vec![
            Edit::new(("版を2にする", "version 2"), Act::Patch(app("2"))),
            Edit::disturbance(
                ("ConfigMapを消す", "delete the ConfigMap"),
                Act::DeleteOwned(object("v1", "ConfigMap", "", json!({}))),
            ),
        ],
        met,
        safe,
        controllers: 2,
        ..Scenario::new("release")
    }
}

fn met(scene: &Scene<'_>) -> Result<(), Words> {
    let Some(app) = scene.get(EXAMPLE, "App", "web") else { return Ok(()) };
    let releases: Vec<_> =
        scene.list(EXAMPLE, "Release").into_iter().filter(|release| release.owned_by(&app)).collect();
    let [release] = releases.as_slice() else {
        let count = releases.len();
        return Err(Words::new(format!("App web のReleaseが{count}個ある"), format!("App web has {count} Releases")));
    };
    let configs: Vec<_> = scene.list("v1", "ConfigMap").into_iter().filter(|config| config.owned_by(release)).collect();
    let [config] = configs.as_slice() else {
        let (count, name) = (configs.len(), release.name());
        return Err(Words::new(
            format!("Release {name} のConfigMapが{count}個ある"),
            format!("Release {name} has {count} ConfigMaps"),
        ));
    };
    let wanted = &app.spec()["version"];
    match &config["data"]["version"] {
        version if version == wanted => Ok(()),
        version => Err(Words::new(
            format!("版は {wanted} のはずが、ConfigMapは {version}"),
            format!("version {wanted} is wished for, and the ConfigMap says {version}"),
        )),
    }
}

/// Nobody shall have to say which of two Releases counts.
fn safe(scene: &Scene<'_>) -> Result<(), Words> {
    let releases = scene.list(EXAMPLE, "Release");
    let of = |app: &serde_json::Value| releases.iter().filter(|release| release.owned_by(app)).count();
    match scene.list(EXAMPLE, "App").iter().map(of).max() {
        Some(count) if count > 1 => {
            Err(Words::new(format!("App web のReleaseが{count}個ある"), format!("App web has {count} Releases")))
        }
        _ => Ok(()),
    }
}

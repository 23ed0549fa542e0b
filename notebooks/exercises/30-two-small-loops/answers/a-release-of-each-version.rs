use kernetes_controller::*;

const EXAMPLE: &str = "example.com/v1";

/// From an App to a Release of each version; the old one goes when the new one is there.
pub struct Apps;

impl Controller for Apps {
    fn watches(&self) -> Watches {
        Watches::of(EXAMPLE, "App").owns(EXAMPLE, "Release")
    }

    fn reconcile(&self, key: &Key, view: &View, _: Time) -> Plan {
        let mut plan = Plan::new();
        let Some(app) = view.get(EXAMPLE, "App", key).filter(|app| !app.deleting()) else { return plan };
        let spec = json!({"version": app.spec()["version"]});
        let version = app.spec()["version"].as_str().unwrap_or_default();
        let metadata = json!({"name": format!("{}-{version}", app.name()), "labels": {"app": app.name()}});
        let release = json!({"apiVersion": EXAMPLE, "kind": "Release", "metadata": metadata, "spec": spec});
        if !view.owned(EXAMPLE, "Release", &app).iter().any(|release| release.spec() == &spec) {
            plan.apply(child_of(&app, release), "the App has another version");
        }
        for old in view.owned(EXAMPLE, "Release", &app).iter().filter(|release| release.spec() != &spec) {
            plan.delete(old, "it is of an old version");
        }
        plan
    }
}

/// From a Release to a ConfigMap.
pub struct Releases;

impl Controller for Releases {
    fn watches(&self) -> Watches {
        Watches::of(EXAMPLE, "Release").owns("v1", "ConfigMap")
    }

    fn reconcile(&self, key: &Key, view: &View, _: Time) -> Plan {
        let mut plan = Plan::new();
        let Some(release) = view.get(EXAMPLE, "Release", key).filter(|it| !it.deleting()) else { return plan };
        let data = json!({"version": release.spec()["version"]});
        let metadata = json!({"name": format!("config-{}", release.uid())});
        let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data});
        if !view.owned("v1", "ConfigMap", &release).iter().any(|config| config["data"] == data) {
            plan.apply(child_of(&release, config), "the Release has another version");
        }
        plan
    }
}

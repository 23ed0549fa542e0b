use kernetes_controller::*;

const EXAMPLE: &str = "example.com/v1";

/// From an App to a Release, once.
pub struct Apps;

impl Controller for Apps {
    fn watches(&self) -> Watches {
        Watches::of(EXAMPLE, "App").owns(EXAMPLE, "Release")
    }

    fn reconcile(&self, key: &Key, view: &View, _: Time) -> Plan {
        let mut plan = Plan::new();
        let Some(app) = view.get(EXAMPLE, "App", key).filter(|app| !app.deleting()) else { return plan };
        let spec = json!({"version": app.spec()["version"]});
        let metadata = json!({"name": app.name(), "labels": {"app": app.name()}});
        let release = json!({"apiVersion": EXAMPLE, "kind": "Release", "metadata": metadata, "spec": spec});
        if view.owned(EXAMPLE, "Release", &app).is_empty() {
            plan.create(child_of(&app, release), "there is none");
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
        let config =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": release.name()}, "data": data});
        if !view.owned("v1", "ConfigMap", &release).iter().any(|config| config["data"] == data) {
            plan.apply(child_of(&release, config), "the Release has another version");
        }
        plan
    }
}

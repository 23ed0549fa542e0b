use kernetes_controller::*;

const EXAMPLE: &str = "example.com/v1";

/// From an App to a Release.
pub struct Apps;

/// From a Release to a ConfigMap.
pub struct Releases;

/// Keeps one child that says the same as its parent, in a field of its own.
fn follow(parent: &Value, view: &View, (api_version, kind): (&str, &str), field: &str) -> Plan {
    let mut plan = Plan::new();
    let version = json!({"version": parent.spec()["version"]});
    match view.owned(api_version, kind, parent).pop() {
        None => {
            let mut child = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": parent.name()}});
            child[field] = version;
            plan.create(child_of(parent, child), "there is none");
        }
        Some(mut child) if child[field] != version => {
            child[field] = version;
            plan.update(child, "the parent has another version");
        }
        Some(_) => {}
    }
    plan
}

impl Controller for Apps {
    fn watches(&self) -> Watches {
        Watches::of(EXAMPLE, "App").owns(EXAMPLE, "Release")
    }

    fn reconcile(&self, key: &Key, view: &View, _: Time) -> Plan {
        let app = view.get(EXAMPLE, "App", key).filter(|app| !app.deleting());
        app.map_or_else(Plan::done, |app| follow(&app, view, (EXAMPLE, "Release"), "spec"))
    }
}

impl Controller for Releases {
    fn watches(&self) -> Watches {
        Watches::of(EXAMPLE, "Release").owns("v1", "ConfigMap")
    }

    fn reconcile(&self, key: &Key, view: &View, _: Time) -> Plan {
        let release = view.get(EXAMPLE, "Release", key).filter(|release| !release.deleting());
        release.map_or_else(Plan::done, |release| follow(&release, view, ("v1", "ConfigMap"), "data"))
    }
}

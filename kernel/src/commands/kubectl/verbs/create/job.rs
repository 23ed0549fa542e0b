//! `kubectl create job` and `create cronjob`

use k8s_openapi::api::batch::v1::{CronJob, Job};
use serde_json::{Map, Value, json};

use super::super::super::failure::{Failure, Outcome, message};
use super::super::super::flags::text;
use super::super::super::resources::Item;
use super::super::super::verb::{Call, Verb};
use super::{command_of, create_flags, generated, name_of};

pub const JOB: Verb =
    Verb { name: "create job", aliases: &[], flags: create_flags![text("image"), text("from")], run: job };

pub const CRON_JOB: Verb = Verb {
    name: "create cronjob",
    aliases: &["cj"],
    flags: create_flags![text("image"), text("schedule"), text("restart")],
    run: cron_job,
};

fn job(call: &mut Call<'_, '_>) -> Outcome {
    let name = name_of(call)?;
    let command = command_of(call);
    let job = match (call.parsed.text("image"), call.parsed.text("from").map(str::to_owned)) {
        (Some(image), None) => json!({"metadata": {"name": name}, "spec": spec(&name, image, command, "Never")}),
        (None, Some(_)) if !command.is_empty() => return message("cannot specify --from and command"),
        (None, Some(from)) => from_cron_job(call, &name, &from)?,
        _ => return message("either --image or --from must be specified"),
    };
    generated::<Job>(call, with_status(job), "failed to create job: ")
}

fn cron_job(call: &mut Call<'_, '_>) -> Outcome {
    call.require(&["image", "schedule"])?;
    let name = name_of(call)?;
    let text = |flag: &str| call.parsed.text(flag).unwrap_or_default();
    let restart = call.parsed.text("restart").unwrap_or("OnFailure");
    let template = json!({"metadata": {"name": name}, "spec": spec(&name, text("image"), command_of(call), restart)});
    let cron_job = json!({
        "metadata": {"name": name},
        "spec": {"schedule": text("schedule"), "jobTemplate": template},
    });
    generated::<CronJob>(call, with_status(cron_job), "failed to create cronjob: ")
}

fn with_status(mut object: Value) -> Value {
    object["status"] = json!({});
    object
}

fn spec(name: &str, image: &str, command: Vec<String>, restart: &str) -> Value {
    let mut container = json!({"name": name, "image": image, "resources": {}});
    if !command.is_empty() {
        container["command"] = command.into();
    }
    json!({"template": {"metadata": {}, "spec": {"containers": [container], "restartPolicy": restart}}})
}

/// The job that a cron job would start now, owned by it.
fn from_cron_job(call: &mut Call<'_, '_>, name: &str, from: &str) -> Result<Value, Failure> {
    let (mut items, mut failures) = call.items_of(&[from.to_owned()])?;
    if !failures.is_empty() {
        return Err(failures.remove(0));
    }
    if items.len() != 1 {
        return message("from must be an existing cronjob");
    }
    let Item { kind, name: owner, value, .. } = items.remove(0);
    if &*kind.kind != "CronJob" {
        return message(format!("unknown object type *{}.{}", kind.version, kind.kind));
    }
    let template = value.pointer("/spec/jobTemplate").cloned().unwrap_or_default();
    let of_template = |field: &str| template.pointer(&format!("/metadata/{field}")).and_then(Value::as_object).cloned();
    let mut annotations = Map::from_iter([("cronjob.kubernetes.io/instantiate".to_owned(), "manual".into())]);
    annotations.extend(of_template("annotations").unwrap_or_default());
    let mut metadata = json!({
        "name": name,
        "annotations": annotations,
        "ownerReferences": [{
            "apiVersion": "batch/v1", "kind": "CronJob", "name": owner,
            "uid": value.pointer("/metadata/uid").cloned().unwrap_or_default(), "controller": true,
        }],
    });
    if let Some(labels) = of_template("labels") {
        metadata["labels"] = labels.into();
    }
    Ok(json!({"metadata": metadata, "spec": template.get("spec").cloned().unwrap_or_default()}))
}

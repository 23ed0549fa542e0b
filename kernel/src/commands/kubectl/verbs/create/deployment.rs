//! `kubectl create deployment`

use k8s_openapi::api::apps::v1::Deployment;
use serde_json::{Value, json};

use super::super::super::failure::{Outcome, message};
use super::super::super::flags::{integer, text};
use super::super::super::verb::{Call, Verb};
use super::{command_of, create_flags, generated, name_of};

pub const VERB: Verb = Verb {
    name: "create deployment",
    aliases: &["deploy"],
    flags: create_flags![text("image"), integer("replicas").short('r'), integer("port")],
    run,
};

fn run(call: &mut Call<'_, '_>) -> Outcome {
    let images: Vec<String> = call.parsed.list("image").map(str::to_owned).collect();
    if images.is_empty() {
        return message("required flag(s) \"image\" not set");
    }
    let name = name_of(call)?;
    let command = command_of(call);
    if images.len() > 1 && !command.is_empty() {
        return message("cannot specify multiple --image options and command");
    }
    let replicas = call.parsed.integer("replicas").unwrap_or(1);
    let port = call.parsed.integer("port").filter(|port| *port > 0);
    let random = call.context.api.now().timestamp().subsec_nanosecond();
    let mut containers: Vec<Value> = images.iter().map(|image| container(image, random.unsigned_abs())).collect();
    if let Some(first) = containers.first_mut() {
        if !command.is_empty() {
            first["command"] = command.into();
        }
        if let Some(port) = port {
            first["ports"] = json!([{"containerPort": port}]);
        }
    }
    let deployment = json!({
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "strategy": {},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": containers}},
        },
        "status": {},
    });
    generated::<Deployment>(call, deployment, "failed to create deployment: ")
}

/// A container called by its image: `docker.io/library/nginx:1.27` makes `nginx`. A name that has to be changed for that
/// could be another's too, and gets a suffix.
fn container(image: &str, seed: u32) -> Value {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let name = image.rsplit('/').next().unwrap_or(image);
    let name = name.split(':').next().unwrap_or(name);
    let name = name.split('@').next().unwrap_or(name);
    let mut sane: String = name.chars().map(|l| if l.is_ascii_alphanumeric() { l } else { '-' }).collect();
    if sane != name {
        let mut rest = seed as usize;
        sane.push('-');
        for _ in 0..5 {
            sane.push(char::from(LETTERS[rest % LETTERS.len()]));
            rest /= LETTERS.len();
        }
    }
    json!({"name": sane, "image": image, "resources": {}})
}

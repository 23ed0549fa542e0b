//! `kubectl set image`

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::super::failure::{Failure, Outcome, message};
use super::super::super::resources::split_pairs;
use super::super::super::verb::{Call, Verb};
use super::{Change, change_pods, containers, found, set_flags};

pub const VERB: Verb = Verb { name: "set image", aliases: &[], flags: set_flags![], run };

const CHANGE: Change =
    Change { done: "image updated", failing: "failed to patch image update to pod template: ", tells_always: false };

fn run(call: &mut Call<'_, '_>) -> Outcome {
    call.dry_run()?;
    call.format()?;
    let (resources, pairs) = split_pairs(&call.parsed.args, "image")?;
    call.parsed.args = resources;
    let mut images: BTreeMap<String, String> = BTreeMap::new();
    for pair in &pairs {
        match pair.split_once('=') {
            Some((name, image)) => drop(images.insert(name.to_owned(), image.to_owned())),
            None => return message(format!("invalid image format: {pair}")),
        }
    }
    let items = found(call)?;
    match images.len() {
        0 => return message("at least one image update is required"),
        2.. if images.contains_key("*") => {
            return message(
                "all containers are already specified by *, but saw more than one container_name=container_image pairs",
            );
        }
        _ => {}
    }
    change_pods(call, items, &CHANGE, |_, spec| {
        let mut missing = Vec::new();
        for (name, image) in &images {
            let mut known = false;
            for container in containers(spec, "*").filter(|container| name == "*" || container["name"] == **name) {
                container["image"] = Value::from(image.as_str());
                known = true;
            }
            if !known {
                missing.push(Failure::Message(format!("unable to find container named {name:?}")));
            }
        }
        if missing.is_empty() { Ok(()) } else { Err(missing) }
    })
}

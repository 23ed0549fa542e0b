//! `kubectl set image`

use serde_json::Value;

use super::super::super::failure::{Outcome, message};
use super::super::super::verb::{Call, Verb};
use super::{SHARED, change_containers, split_changes};

pub const VERB: Verb = Verb {
    name: "set image",
    aliases: &[],
    about: "Update the image of a pod template",
    usage: "set image (-f FILENAME | TYPE NAME) CONTAINER_NAME_1=CONTAINER_IMAGE_1 ... CONTAINER_NAME_N=CONTAINER_IMAGE_N [options]",
    flags: &SHARED,
    run,
};

fn run(call: &mut Call<'_, '_>) -> Outcome {
    let changes = split_changes(call);
    if changes.is_empty() {
        return message("at least one image update is required");
    }
    change_containers(call, "image updated", |containers| {
        for change in &changes {
            let Some((name, image)) = change.split_once('=') else {
                return message(format!("invalid image update {change:?}, expected CONTAINER=IMAGE"));
            };
            let mut found = false;
            for container in containers.iter_mut().filter(|container| name == "*" || container["name"] == name) {
                container["image"] = Value::from(image);
                found = true;
            }
            if !found {
                return message(format!("unable to find container named {name:?}"));
            }
        }
        Ok(())
    })
}

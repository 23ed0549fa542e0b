//! `kubectl set resources`

use serde_json::Value;

use super::super::super::failure::{Outcome, message};
use super::super::super::flags::{Flag, text};
use super::super::super::verb::{Call, Verb};
use super::{SHARED, change_containers, is_meant};

const FLAGS: [Flag; 11] = {
    let [a, b, c, d, e, f, g, h, i] = SHARED;
    [a, b, c, d, e, f, g, h, i, text("limits"), text("requests")]
};

pub const VERB: Verb = Verb {
    name: "set resources",
    aliases: &[],
    about: "Update resource requests/limits on objects with pod templates",
    usage: "set resources (-f FILENAME | TYPE NAME) ([--limits=LIMITS & --requests=REQUESTS] [options]",
    flags: &FLAGS,
    run,
};

fn run(call: &mut Call<'_, '_>) -> Outcome {
    let mut wanted = Vec::new();
    for field in ["limits", "requests"] {
        for pair in call.parsed.list(field) {
            let Some((resource, amount)) = pair.split_once('=') else {
                return message(format!("Invalid argument syntax {pair}, expected <resource>=<value>"));
            };
            wanted.push((field, resource.to_owned(), amount.to_owned()));
        }
    }
    if wanted.is_empty() {
        return message("you must specify an update to requests or limits (in the form of --requests/--limits)");
    }
    let pattern = call.parsed.text("containers").map(str::to_owned);
    change_containers(call, "resource requirements updated", |containers| {
        for container in containers.iter_mut().filter(|container| is_meant(container, pattern.as_deref())) {
            for (field, resource, amount) in &wanted {
                container["resources"][*field][resource.as_str()] = Value::from(amount.as_str());
            }
        }
        Ok(())
    })
}

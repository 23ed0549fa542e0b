//! `kubectl set resources`

use serde_json::{Value, json};

use super::super::super::failure::{Failure, Outcome, message};
use super::super::super::verb::{Call, Verb};
use super::super::create::policy::amounts;
use super::{Change, change_pods, containers, found, set_flags};

pub const VERB: Verb = Verb {
    name: "set resources",
    aliases: &[],
    flags: set_flags![text("containers").short('c'), text("limits"), text("requests")],
    run,
};

const CHANGE: Change = Change {
    done: "resource requirements updated",
    failing: "failed to patch resources update to pod template ",
    tells_always: false,
};

fn run(call: &mut Call<'_, '_>) -> Outcome {
    call.dry_run()?;
    call.format()?;
    let items = found(call)?;
    let mut wanted = Vec::new();
    for field in ["limits", "requests"] {
        if let Some(text) = call.parsed.text(field).filter(|text| !text.is_empty()) {
            wanted.push((field, amounts(text)?));
        }
    }
    if wanted.is_empty() {
        return message("you must specify an update to requests or limits (in the form of --requests/--limits)");
    }
    let pattern = call.parsed.text("containers").unwrap_or("*").to_owned();
    change_pods(call, items, &CHANGE, |_, spec| {
        let mut known = false;
        for container in containers(spec, &pattern) {
            known = true;
            for (field, amounts) in &wanted {
                for (resource, amount) in amounts.as_object().into_iter().flatten() {
                    if !container["resources"].is_object() {
                        container["resources"] = json!({});
                    }
                    container["resources"][*field][resource.as_str()] = Value::clone(amount);
                }
            }
        }
        match known {
            true => Ok(()),
            false => Err(vec![Failure::Message(format!("unable to find container named {pattern}"))]),
        }
    })
}

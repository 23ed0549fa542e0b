//! `kubectl describe`

use super::super::describe::describe;
use super::super::failure::{Outcome, all_of, message};
use super::super::flags::{integer, switch, text};
use super::super::manifests::{FILENAME, RECURSIVE};
use super::super::resources::{Item, targets};
use super::super::verb::{Call, Verb};

pub const VERB: Verb = Verb {
    name: "describe",
    aliases: &[],
    about: "Show details of a specific resource or group of resources",
    usage: "describe (-f FILENAME | TYPE [NAME_PREFIX | -l label] | TYPE/NAME) [options]",
    flags: &[
        FILENAME,
        RECURSIVE,
        switch("all-namespaces").short('A'),
        switch("show-events"),
        integer("chunk-size"),
        text("selector").short('l'),
    ],
    run,
};

const NOT_SPECIFIED: &str = "You must specify the type of resource to describe. Use \"kubectl api-resources\" for a complete list of supported resources.";

fn run(call: &mut Call<'_, '_>) -> Outcome {
    let mut failures = Vec::new();
    let mut items: Vec<Item> = Vec::new();
    if call.parsed.has("filename") {
        (items, failures) = call.items()?;
    } else {
        if call.parsed.args.is_empty() {
            return message(NOT_SPECIFIED);
        }
        let args = call.parsed.args.clone();
        for target in targets(call, &args)? {
            let everywhere = call.parsed.switch("all-namespaces") && target.kind.namespaced;
            let namespace = if everywhere { String::new() } else { call.namespace.clone() };
            let Some(name) = target.name else {
                let options = call.list_options(&target.kind)?;
                let all = call.list(&target.kind, &namespace, options)?;
                items.extend(all.into_iter().map(|value| Item::new(&target.kind, value)));
                continue;
            };
            match call.get(&target.kind, &namespace, &name) {
                Ok(value) => items.push(Item::new(&target.kind, value)),
                Err(failure) if failure.is_not_found() => {
                    let all = call.list(&target.kind, &namespace, Default::default())?;
                    let found = all.into_iter().map(|value| Item::new(&target.kind, value));
                    let found: Vec<Item> = found.filter(|item| item.name.starts_with(&name)).collect();
                    if found.is_empty() {
                        failures.push(failure);
                    }
                    items.extend(found);
                }
                Err(failure) => failures.push(failure),
            }
        }
    }
    if items.is_empty() && failures.is_empty() {
        call.context.error_line(format!("No resources found in {} namespace.", call.namespace));
    }
    for (place, item) in items.iter().enumerate() {
        let text = describe(call, item)?;
        if place > 0 {
            call.context.print("\n\n");
        }
        call.context.print(text);
    }
    all_of(failures)
}

//! `kubectl describe`

use super::super::describe::describe;
use super::super::failure::{Failure, Outcome, all_of, message};
use super::super::flags::{integer, switch, text};
use super::super::manifests::{FILENAME, KUSTOMIZE, RECURSIVE};
use super::super::resources::{Item, targets};
use super::super::verb::{Call, Verb};

pub const VERB: Verb = Verb {
    name: "describe",
    aliases: &[],
    flags: &[
        FILENAME,
        KUSTOMIZE,
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
    let args = call.parsed.args.clone();
    if args.is_empty() && !call.parsed.names_files() {
        return message(NOT_SPECIFIED);
    }
    let (items, mut failures) = found(call, &args)?;
    // Events are told of a single object only, unless they are asked for.
    let alone = failures.is_empty() && items.len() <= 1;
    let with_events = call.parsed.text("show-events").map_or(alone, |_| call.parsed.switch("show-events"));
    if let ([kind, prefix], [failure]) = (args.as_slice(), failures.as_slice())
        && failure.is_not_found()
    {
        return by_prefix(call, kind, prefix, with_events, failure.clone());
    }
    if items.is_empty() && failures.is_empty() {
        let everywhere = call.parsed.switch("all-namespaces");
        let place = if everywhere { String::new() } else { format!(" in {} namespace.", call.namespace) };
        call.context.error_line(format!("No resources found{place}"));
    }
    let mut printed = 0;
    for item in &items {
        match describe(call, item, with_events) {
            Ok(text) => {
                let gap = if printed > 0 { "\n\n" } else { "" };
                call.context.print(format!("{gap}{text}"));
                printed += 1;
            }
            Err(failure) => failures.push(failure),
        }
    }
    all_of(failures)
}

/// What is named, and what of it is not there.
fn found(call: &mut Call<'_, '_>, args: &[String]) -> Result<(Vec<Item>, Vec<Failure>), Failure> {
    if call.parsed.names_files() {
        return call.items_of(args);
    }
    let (mut items, mut failures) = (Vec::new(), Vec::new());
    for target in targets(call, args)? {
        let everywhere = call.parsed.switch("all-namespaces") && target.kind.namespaced;
        let namespace = if everywhere { String::new() } else { call.namespace.clone() };
        match target.name {
            Some(_) if everywhere => return message("a resource cannot be retrieved by name across all namespaces"),
            Some(_) if call.parsed.has("selector") => {
                return message("name cannot be provided when a selector is specified");
            }
            Some(name) => match call.get_in_namespace(&target.kind, &namespace, &name) {
                Ok(value) => {
                    call.deprecated(&target.kind);
                    items.push(Item::new(&target.kind, value));
                }
                Err(failure) => failures.push(failure),
            },
            None => {
                let options = call.list_options(&target.kind)?;
                let all = call.list(&target.kind, &namespace, options)?;
                call.deprecated(&target.kind);
                items.extend(all.into_iter().map(|value| Item::new(&target.kind, value)));
            }
        }
    }
    Ok((items, failures))
}

/// All whose name begins so; if there are none, what was told of the name.
fn by_prefix(call: &mut Call<'_, '_>, kind: &str, prefix: &str, with_events: bool, failure: Failure) -> Outcome {
    let Some(target) = targets(call, &[kind.to_owned()])?.into_iter().next() else { return Err(failure) };
    let namespace = call.namespace.clone();
    let all = call.list(&target.kind, &namespace, Default::default())?;
    let items = all.into_iter().map(|value| Item::new(&target.kind, value));
    let items: Vec<Item> = items.filter(|item| item.name.starts_with(prefix)).collect();
    if items.is_empty() {
        return Err(failure);
    }
    for item in &items {
        let text = describe(call, item, with_events)?;
        call.line(text);
    }
    Ok(())
}

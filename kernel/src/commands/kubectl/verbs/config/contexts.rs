//! The verbs of `kubectl config` that are about contexts.

use serde_json::{Value, json};

use super::super::super::columns::align;
use super::super::super::failure::{Failure, Outcome, all_of, message};
use super::super::super::verb::Call;
use super::{Kubeconfig, arguments, show_help, unexpected};

pub fn current(call: &mut Call<'_, '_>) -> Outcome {
    let config = Kubeconfig::read(call)?;
    if config.current().is_empty() {
        return message("current-context is not set");
    }
    call.line(config.current());
    Ok(())
}

pub fn get(call: &mut Call<'_, '_>) -> Outcome {
    let config = Kubeconfig::read(call)?;
    let output = call.parsed.text("output").unwrap_or_default().to_owned();
    if !matches!(output.as_str(), "" | "name" | "wide") {
        return message(format!(
            "--output {output} is not available in kubectl config get-contexts; resetting to default output format"
        ));
    }
    let known = config.names("contexts");
    let asked = if call.parsed.args.is_empty() { known.clone() } else { call.parsed.args.clone() };
    let (mut found, mut failures) = (Vec::new(), Vec::new());
    for name in asked {
        match known.contains(&name) {
            true => found.push(name),
            false => failures.push(Failure::Message(format!("context {name} not found"))),
        }
    }
    found.sort();
    if output == "name" {
        found.iter().for_each(|name| call.line(name));
        return all_of(failures);
    }
    let mut rows = Vec::new();
    if !call.parsed.switch("no-headers") {
        rows.push(["CURRENT", "NAME", "CLUSTER", "AUTHINFO", "NAMESPACE"].map(str::to_owned).to_vec());
    }
    for name in found {
        let context = config.entry("contexts", &name);
        let text = |field: &str| context[field].as_str().unwrap_or_default().to_owned();
        let mark = if name == config.current() { "*" } else { "" };
        rows.push(vec![mark.to_owned(), name, text("cluster"), text("user"), text("namespace")]);
    }
    call.context.print(align(&rows));
    all_of(failures)
}

pub fn change_to(call: &mut Call<'_, '_>) -> Outcome {
    let [name] = arguments(call)?;
    let mut config = Kubeconfig::read(call)?;
    if config.entry("contexts", &name).is_null() {
        return message(format!("no context exists with the name: {name:?}"));
    }
    config.value["current-context"] = name.as_str().into();
    config.write(call)?;
    call.line(format!("Switched to context {name:?}."));
    Ok(())
}

pub fn set(call: &mut Call<'_, '_>) -> Outcome {
    let mut config = Kubeconfig::read(call)?;
    let name = match (call.parsed.switch("current"), call.parsed.args.clone().as_slice()) {
        (true, []) if config.current().is_empty() => return message("no current context is set"),
        (true, []) => config.current().to_owned(),
        (true, _) => return message("you cannot specify both a context name and --current"),
        (false, [name]) => name.clone(),
        (false, []) => return message("you must specify a non-empty context name or --current"),
        (false, args) => return Err(unexpected(call, args)),
    };
    let known = config.entry("contexts", &name).clone();
    let mut context = if known.is_object() { known.clone() } else { json!({"cluster": "", "user": ""}) };
    for field in ["cluster", "user", "namespace"] {
        match call.parsed.text(field) {
            Some("") if field == "namespace" => {
                context.as_object_mut().map(|fields| fields.remove(field));
            }
            Some(wanted) => context[field] = wanted.into(),
            None => {}
        }
    }
    config.put("contexts", &name, context);
    config.write(call)?;
    call.line(format!("Context {name:?} {}.", if known == Value::Null { "created" } else { "modified" }));
    Ok(())
}

pub fn rename(call: &mut Call<'_, '_>) -> Outcome {
    let [old, new] = arguments(call)?;
    let mut config = Kubeconfig::read(call)?;
    let path = config.path.clone();
    let context = config.entry("contexts", &old).clone();
    if context.is_null() {
        return message(format!("cannot rename the context {old:?}, it's not in {path}"));
    }
    if !config.entry("contexts", &new).is_null() {
        return message(format!("cannot rename the context {old:?}, the context {new:?} already exists in {path}"));
    }
    config.remove("contexts", &old);
    config.put("contexts", &new, context);
    if config.current() == old {
        config.value["current-context"] = new.as_str().into();
    }
    config.write(call)?;
    call.line(format!("Context {old:?} renamed to {new:?}."));
    Ok(())
}

pub fn delete(call: &mut Call<'_, '_>) -> Outcome {
    let [name] = call.parsed.args.as_slice() else {
        show_help(call);
        return Ok(());
    };
    let name = name.clone();
    let config = Kubeconfig::read_to_delete(call, "contexts", &name)?;
    if config.current() == name {
        call.context.error_line(
            "warning: this removed your active context, use \"kubectl config use-context\" to select a different one",
        );
    }
    config.delete(call, "contexts", &name)
}

//! `kubectl kustomize`: what a kustomization comes to.

use super::super::failure::{Failure, Outcome, message};
use super::super::flags::text;
use super::super::kustomize;
use super::super::verb::{Call, Verb};
use crate::yaml;

pub const VERB: Verb = Verb {
    name: "kustomize",
    aliases: &[],
    flags: &[text("output").short('o'), text("load-restrictor"), text("reorder")],
    run,
};

fn run(call: &mut Call<'_, '_>) -> Outcome {
    let folder = match call.parsed.args.as_slice() {
        [] => ".".to_owned(),
        [folder] => folder.clone(),
        _ => return message(format!("specify one path to {}", "kustomization.yaml")),
    };
    let built = kustomize::build(&*call.context.files, &folder).map_err(Failure::Message)?;
    built.warnings.iter().for_each(|warning| call.context.error_line(warning));
    let mut objects = built.objects;
    if call.parsed.text("reorder") != Some("none") {
        kustomize::legacy(&mut objects);
    }
    let text = objects.iter().map(yaml::print).collect::<Vec<_>>().join("---\n");
    match call.parsed.text("output").map(str::to_owned) {
        Some(path) => {
            let written = call.context.files.write(&path, &text);
            written.map_err(|trouble| Failure::Message(format!("open {path}: {trouble}")))
        }
        None => {
            call.context.print(text);
            Ok(())
        }
    }
}

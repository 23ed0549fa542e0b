//! `kubectl top`: what pods and nodes use, which a metrics server would tell.
//! <https://kubernetes.io/docs/tasks/debug/debug-cluster/resource-metrics-pipeline/>

use super::super::failure::{Outcome, message, usage};
use super::super::flags::{switch, text};
use super::super::verb::{Call, Verb};
use super::group;

pub const TOP: Verb = Verb { name: "top", aliases: &[], flags: &[], run: group::on_stderr };

pub const POD: Verb = Verb {
    name: "top pod",
    aliases: &["pods", "po"],
    flags: &[
        switch("all-namespaces").short('A'),
        switch("containers"),
        switch("no-headers"),
        switch("sum"),
        text("selector").short('l'),
        text("field-selector"),
        text("sort-by"),
    ],
    run: |call| top(call, "pod [NAME | -l label]", "selector"),
};

pub const NODE: Verb = Verb {
    name: "top node",
    aliases: &["nodes", "no"],
    flags: &[switch("no-headers"), text("selector").short('l'), text("sort-by")],
    run: |call| top(call, "node [NAME | -l label]", "--selector"),
};

fn top(call: &mut Call<'_, '_>, use_line: &str, selectors: &str) -> Outcome {
    let parsed = &call.parsed;
    if parsed.args.len() > 1 {
        return usage(use_line);
    }
    if parsed.text("sort-by").is_some_and(|field| !matches!(field, "" | "cpu" | "memory")) {
        return message("--sort-by accepts only cpu or memory");
    }
    if !parsed.args.is_empty() && (parsed.has("selector") || parsed.has("field-selector")) {
        return message(format!("only one of NAME or {selectors} can be provided"));
    }
    match call.context.api.kinds()?.iter().any(|kind| &*kind.group == "metrics.k8s.io") {
        true => message("this server has metrics, but reading them is not built here"),
        false => message("Metrics API not available"),
    }
}

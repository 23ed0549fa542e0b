//! `kubectl debug`: a container more in a pod that runs, a copy of a pod, or a pod on a node, to look into them.
//! <https://kubernetes.io/docs/tasks/debug/debug-application/debug-running-pod/>

mod container;
mod copy;
mod node;

use cluster_core::api::kind::KindRef;
use cluster_core::api::request::{Body, PatchType, Request, Verb as ApiVerb};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::super::client;
use super::super::failure::{Failure, Outcome, message};
use super::super::flags::{switch, text};
use super::super::resources::Item;
use super::super::verb::{Call, Verb};
use super::pods::named;
use super::run::is_reference;
use container::{Profile, debug_container, default_name};

pub const VERB: Verb = Verb {
    name: "debug",
    aliases: &[],
    flags: &[
        text("image"),
        text("container").short('c'),
        text("target"),
        text("image-pull-policy"),
        text("env"),
        text("profile"),
        switch("arguments-only"),
        switch("stdin").short('i'),
        switch("tty").short('t'),
        switch("quiet").short('q'),
        switch("attach"),
        text("copy-to"),
        text("set-image"),
        switch("share-processes"),
        switch("same-node"),
        switch("replace"),
        switch("keep-labels"),
        switch("keep-annotations"),
        switch("keep-liveness"),
        switch("keep-readiness"),
        switch("keep-startup"),
        switch("keep-init-containers"),
    ],
    run,
};

/// What the call asks for, beside its flags.
struct Wish {
    profile: Profile,
    command: Vec<String>,
    /// Containers of a copy that get other images, `*` for all.
    images: Vec<(String, String)>,
}

fn run(call: &mut Call<'_, '_>) -> Outcome {
    let args = call.parsed.args.clone();
    let before = call.parsed.before_dash.unwrap_or(args.len());
    let (targets, command) = args.split_at(before.min(args.len()));
    let wish = wish(call, targets, command)?;
    for target in targets {
        let item = named(call, target)?;
        match &*item.kind.kind {
            "Node" => node::debug(call, &item, &wish)?,
            "Pod" if call.parsed.has("copy-to") => copy::debug(call, &item, &wish)?,
            "Pod" => join(call, &item, &wish)?,
            kind => {
                let (group, version) = (&item.kind.group, &item.kind.version);
                return message(format!("\"{group}/{version}, Kind={kind}\" not supported by debug"));
            }
        }
    }
    Ok(())
}

/// Reads the flags in the order in which kubectl complains about them.
fn wish(call: &mut Call<'_, '_>, targets: &[String], command: &[String]) -> Result<Wish, Failure> {
    let mut images = Vec::new();
    for pair in call.parsed.list("set-image") {
        let Some((name, image)) = pair.split_once('=') else {
            let problem =
                format!("invalid argument {pair:?} for \"--set-image\" flag: {pair} must be formatted as key=value");
            return Err(Failure::Flags(problem));
        };
        images.push((name.to_owned(), image.to_owned()));
    }
    let is_set = |flag: &str| call.parsed.text(flag).is_some_and(|text| !text.is_empty());
    if is_set("copy-to") {
        if !is_set("image") && images.is_empty() && command.is_empty() {
            return message("you must specify --image, --set-image or command arguments.");
        }
        if !command.is_empty() && !is_set("container") && !is_set("image") {
            return message("you must specify an existing container or a new image when specifying args.");
        }
    } else {
        for flag in ["replace", "same-node"] {
            if call.parsed.switch(flag) {
                return message(format!("--{flag} may only be used with --copy-to."));
            }
        }
        if !images.is_empty() {
            return message("--set-image may only be used with --copy-to.");
        }
        if !is_set("image") {
            return message("you must specify --image when not using --copy-to.");
        }
    }
    if let Some(image) = call.parsed.text("image").filter(|image| !image.is_empty() && !is_reference(image)) {
        return message(format!("invalid image name {image:?}: invalid reference format"));
    }
    if targets.is_empty() {
        return message("NAME or filename is required for debug");
    }
    if let Some(policy) = call.parsed.text("image-pull-policy")
        && !["", "Always", "IfNotPresent", "Never"].contains(&policy)
    {
        return message(format!("invalid image pull policy: {policy}"));
    }
    if let Some((name, image)) = images.iter().find(|(_, image)| !is_reference(image)) {
        return message(format!("invalid image name {image:?} for container {name:?}: invalid reference format"));
    }
    if is_set("target") && is_set("copy-to") {
        return message("--target is incompatible with --copy-to. Use --share-processes instead.");
    }
    if call.parsed.switch("tty") && !call.parsed.switch("stdin") {
        return message("-i/--stdin is required for containers with -t/--tty=true");
    }
    let profile = Profile::of(call.parsed.text("profile").unwrap_or("general"))?;
    if let Some(target) = call.parsed.text("target") {
        let note = "If you don't see processes from this container it may be because the container runtime doesn't support this feature.";
        call.context.error_line(format!("Targeting container \"{target}\". {note}"));
    }
    if profile == Profile::Legacy {
        call.context.error_line(
            "--profile=legacy is deprecated and planned to be removed in v1.39. It is recommended to specify other profile, for example \"--profile=general\".",
        );
    }
    Ok(Wish { profile, command: command.to_vec(), images })
}

/// A container joins a pod that runs.
/// <https://kubernetes.io/docs/concepts/workloads/pods/ephemeral-containers/>
fn join(call: &mut Call<'_, '_>, pod: &Item, wish: &Wish) -> Outcome {
    let name = match call.parsed.text("container") {
        Some(name) => name.to_owned(),
        None => default_name(call, &pod.value),
    };
    let mut container = json!({"name": name, "terminationMessagePolicy": "File"});
    debug_container(call, wish, &mut container)?;
    wish.profile.of_ephemeral(&mut container);
    if let Some(target) = call.parsed.text("target") {
        container["targetContainerName"] = target.into();
    }
    let body: Value = json!({"spec": {"ephemeralContainers": [container]}});
    let kind = KindRef::of::<Pod>();
    let request = client::request(ApiVerb::Patch(PatchType::StrategicMerge), kind, &pod.namespace, &pod.name);
    let request = Request { subresource: "ephemeralcontainers", body: Body::Json(body), ..request };
    call.send_for_object(request).map(drop)
}

#[cfg(test)]
mod tests {
    use crate::controls::testing::{run, session};

    const POD: &str = "apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  containers:
  - {name: web, image: nginx, readinessProbe: {httpGet: {port: 80}}}
  - {name: log, image: busybox, command: [sleep, inf]}
";

    #[test]
    fn a_container_joins_a_pod() {
        let mut session = session();
        run(&mut session, "kubectl run web --image=nginx");
        let told = run(&mut session, "kubectl debug web --image=busybox --target=web -- sh -c 'hostname; sleep 1'");
        let mut names = told.lines().filter_map(|line| line.strip_prefix("Defaulting debug container name to "));
        let name = names.next().unwrap_or_default().trim_end_matches('.');
        assert_eq!(run(&mut session, &format!("kubectl logs web -c {name}")), "web\n");
        assert_eq!(run(&mut session, "kubectl debug web"), "CommandFailed: exit code 1");
    }

    #[test]
    fn a_copy_of_a_pod_has_a_container_more_and_nobody_who_finds_it() {
        let mut session = session();
        run(&mut session, POD);
        let get = |session: &mut _, name: &str, path: &str| {
            run(session, &format!("kubectl get pod {name} -o jsonpath='{path}'"))
        };
        run(&mut session, "kubectl debug web --copy-to=copy --image=busybox -c look -- sleep inf");
        assert_eq!(get(&mut session, "copy", "{.metadata.labels}{.spec.containers[*].name}"), "web log look");
        assert_eq!(
            get(&mut session, "copy", "{.spec.shareProcessNamespace}{.spec.containers[0].readinessProbe}"),
            "true"
        );
        run(&mut session, "kubectl debug web --copy-to=newer --set-image=web=nginx:2 --same-node");
        assert_eq!(
            get(&mut session, "newer", "{.spec.containers[*].image} {.metadata.labels.app}"),
            "nginx:2 busybox web"
        );
        assert_eq!(get(&mut session, "newer", "{.spec.nodeName}"), get(&mut session, "web", "{.spec.nodeName}"));
        run(&mut session, "kubectl debug web --copy-to=other -c web --replace -- sleep 9");
        assert_eq!(get(&mut session, "other", "{.spec.containers[0].command}"), r#"["sleep","9"]"#);
        assert!(run(&mut session, "kubectl get pod web").contains("exit code 1"));
    }

    #[test]
    fn a_pod_looks_into_its_node() {
        let mut session = session();
        let told = run(&mut session, "kubectl debug node/node-1 --image=busybox -- sleep inf");
        let told = told.split_once("Creating debugging pod ").unwrap().1;
        let (name, rest) = told.split_once(' ').unwrap();
        assert!(name.starts_with("node-debugger-node-1-"), "{name}");
        assert!(rest.starts_with("with container debugger on node node-1.\n"), "{rest}");
        let told = run(
            &mut session,
            &format!("kubectl get pod {name} -o jsonpath='{{.spec.nodeName}} {{.spec.hostPID}} {{.status.phase}}'"),
        );
        assert_eq!(told, "node-1 true Running");
    }
}

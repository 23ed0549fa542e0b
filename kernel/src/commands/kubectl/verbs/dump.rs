//! `kubectl cluster-info dump`: what is there, for whoever looks for a fault: objects as lists, and the logs of all pods.
//! <https://kubernetes.io/docs/reference/kubectl/generated/kubectl_cluster-info/kubectl_cluster-info_dump/>

use cluster_core::api::Key;
use cluster_core::api::kind::{KindRef, Resource};
use cluster_core::api::request::{Response, Verb as ApiVerb};
use cluster_core::api::schema::Schema;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Event, Namespace, Node, Pod, ReplicationController, Service};
use serde_json::{Value, json};

use super::super::super::api::LogOptions;
use super::super::client;
use super::super::failure::{Failure, Outcome, message};
use super::super::flags::{duration, switch, text};
use super::super::output::{OUTPUT, without_managed_fields};
use super::super::typed;
use super::super::verb::{Call, Verb};
use crate::yaml;

pub const VERB: Verb = Verb {
    name: "cluster-info dump",
    aliases: &[],
    flags: &[
        OUTPUT,
        switch("all-namespaces").short('A'),
        text("namespaces"),
        text("output-directory"),
        duration("pod-running-timeout"),
    ],
    run,
};

/// What is dumped of a namespace, and the names of the files.
fn kinds() -> [(&'static KindRef, &'static str); 7] {
    [
        (KindRef::of::<Event>(), "events"),
        (KindRef::of::<ReplicationController>(), "replication-controllers"),
        (KindRef::of::<Service>(), "services"),
        (KindRef::of::<DaemonSet>(), "daemonsets"),
        (KindRef::of::<Deployment>(), "deployments"),
        (KindRef::of::<ReplicaSet>(), "replicasets"),
        (Pod::kind(), "pods"),
    ]
}

fn run(call: &mut Call<'_, '_>) -> Outcome {
    let format = call.parsed.text("output").filter(|format| !format.is_empty()).unwrap_or("json").to_owned();
    match format.as_str() {
        "json" | "yaml" => {}
        "name" => return message("list types are not supported by name printing: *v1.NodeList"),
        other => {
            return message(format!(
                "unable to match a printer suitable for the output format {other:?}, allowed formats are: json,yaml"
            ));
        }
    }
    let mut dump = Dump { call, as_yaml: format == "yaml", printed: 0 };
    dump.list(KindRef::of::<Node>(), "", "nodes")?;
    for namespace in dump.namespaces()? {
        let mut pods = Vec::new();
        for (kind, file) in kinds() {
            // What comes last are the pods.
            pods = dump.list(kind, &namespace, &format!("{namespace}/{file}"))?;
        }
        for pod in pods {
            dump.logs(&namespace, &pod)?;
        }
    }
    if let Some(folder) = call.parsed.text("output-directory").filter(|folder| *folder != "-").map(str::to_owned) {
        call.line(format!("Cluster info dumped to {folder}"));
    }
    Ok(())
}

struct Dump<'d, 'c, 'a> {
    call: &'d mut Call<'c, 'a>,
    as_yaml: bool,
    /// How many lists have been printed.
    printed: usize,
}

impl Dump<'_, '_, '_> {
    fn namespaces(&mut self) -> Result<Vec<String>, Failure> {
        if self.call.parsed.switch("all-namespaces") {
            let all = self.call.list(KindRef::of::<Namespace>(), "", Default::default())?;
            return Ok(all.iter().filter_map(|one| one["metadata"]["name"].as_str().map(str::to_owned)).collect());
        }
        let named: Vec<String> = self.call.parsed.list("namespaces").map(str::to_owned).collect();
        Ok(if named.is_empty() { vec!["kube-system".to_owned(), self.call.namespace.clone()] } else { named })
    }

    /// Writes a list of all objects of a kind, and returns them.
    fn list(&mut self, kind: &KindRef, namespace: &str, file: &str) -> Result<Vec<Value>, Failure> {
        let listed = self.call.send(client::request(ApiVerb::List, kind, namespace, ""))?;
        let revision = if let Response::List(list) = &listed { list.revision } else { 0 };
        let bare = |value: Value| {
            let mut value = without_managed_fields(value);
            if let Some(fields) = value.as_object_mut() {
                fields.retain(|field, _| field != "apiVersion" && field != "kind");
            }
            value
        };
        let items: Vec<Value> = listed.items().iter().map(|object| bare(object.to_json())).collect();
        let (kind_name, api_version) = (format!("{}List", kind.kind), kind.api_version());
        let metadata = if revision > 0 { json!({"resourceVersion": revision.to_string()}) } else { json!({}) };
        let text = if self.as_yaml {
            let before = if self.printed > 0 && !self.writes_files() { "---\n" } else { "" };
            let list = json!({"apiVersion": api_version, "items": items, "kind": kind_name, "metadata": metadata});
            format!("{before}{}", yaml::print(&list))
        } else {
            let deeper = |value: &Value| typed::json(value, Schema::of(kind)).replace('\n', "\n        ");
            let objects: Vec<String> = items.iter().map(|item| format!("\n        {}", deeper(item))).collect();
            let end = if objects.is_empty() { "" } else { "\n    " };
            let metadata = typed::json(&metadata, None).replace('\n', "\n    ");
            format!(
                "{{\n    \"kind\": \"{kind_name}\",\n    \"apiVersion\": \"{api_version}\",\n    \"metadata\": {metadata},\n    \"items\": [{}{end}]\n}}\n",
                objects.join(",")
            )
        };
        self.printed += 1;
        self.write(&format!("{file}.{}", if self.as_yaml { "yaml" } else { "json" }), text)?;
        Ok(items)
    }

    /// Writes what the containers of a pod have printed.
    fn logs(&mut self, namespace: &str, pod: &Value) -> Outcome {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        let mut text = String::new();
        for container in
            ["containers", "initContainers"].iter().flat_map(|field| pod["spec"][field].as_array()).flatten()
        {
            let container = container["name"].as_str().unwrap_or_default();
            text += &format!("==== START logs for container {container} of pod {namespace}/{name} ====\n");
            let key = Key::new(namespace, name);
            // A container that has not run yet has printed nothing.
            let _ =
                self.call.context.api.logs(&key, container, &LogOptions::default(), &mut |part| text.push_str(part));
            text += &format!("==== END logs for container {container} of pod {namespace}/{name} ====\n");
        }
        self.write(&format!("{namespace}/{name}/logs.txt"), text)
    }

    fn writes_files(&self) -> bool {
        self.call.parsed.text("output-directory").is_some_and(|folder| folder != "-" && !folder.is_empty())
    }

    fn write(&mut self, file: &str, text: String) -> Outcome {
        if !self.writes_files() {
            self.call.context.print(text);
            return Ok(());
        }
        let folder = self.call.parsed.text("output-directory").unwrap_or_default().trim_end_matches('/').to_owned();
        let path = format!("{folder}/{file}");
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        let files = &mut self.call.context.files;
        let written = files.make_folder(parent).and_then(|()| files.write(&path, &text));
        written.map_err(|trouble| Failure::Message(format!("open {path}: {trouble}")))
    }
}

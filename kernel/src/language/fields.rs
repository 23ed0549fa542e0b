//! What can be written at a cursor in a manifest: fields with their types, kinds, apiVersions, the values that a field may
//! have, names of the live cluster where a field refers to one.

use cluster_core::Cluster;
use cluster_core::api::kind::KindRef;
use cluster_core::api::schema::Schema;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

use super::offers;
use crate::commands::kubectl::{schema_in, with_common_fields};
use crate::output::{Completion, Match, MimeBundle, text};
use crate::session::Session;

/// Fields that hold the name of an object, by the end of their path, and its kind.
const REFERENCES: &[(&str, &str)] = &[
    ("metadata.namespace", "Namespace"),
    ("configMapRef.name", "ConfigMap"),
    ("configMapKeyRef.name", "ConfigMap"),
    ("configMap.name", "ConfigMap"),
    ("secretRef.name", "Secret"),
    ("secretKeyRef.name", "Secret"),
    ("secret.name", "Secret"),
    ("imagePullSecrets.name", "Secret"),
    ("secretName", "Secret"),
    ("serviceAccountName", "ServiceAccount"),
    ("storageClassName", "StorageClass"),
    ("priorityClassName", "PriorityClass"),
    ("runtimeClassName", "RuntimeClass"),
    ("ingressClassName", "IngressClass"),
    ("claimName", "PersistentVolumeClaim"),
    ("volumeName", "PersistentVolume"),
    ("nodeName", "Node"),
    ("service.name", "Service"),
    ("serviceName", "Service"),
    ("scaleTargetRef.name", "Deployment"),
    ("roleRef.name", "ClusterRole"),
];

/// The path of keys that encloses a line, read off the indentation, list items included.
struct Place {
    parents: Vec<String>,
    /// What has been typed of the key at the cursor.
    typed: String,
    /// Byte offset at which the typed word begins.
    start: usize,
    /// The key whose value is being typed, if the cursor stands behind a colon.
    value_of: Option<String>,
    /// An item of a list, if it stands behind a hyphen and no colon.
    item: bool,
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start_matches([' ', '-']).len()
}

fn key_of(line: &str) -> Option<&str> {
    let body = line.trim_start_matches([' ', '-']);
    let (key, _) = body.split_once(':')?;
    Some(key.trim().trim_matches(['"', '\'']))
}

impl Place {
    fn at(code: &str, cursor: usize) -> Place {
        let line_start = code[..cursor].rfind('\n').map_or(0, |at| at + 1);
        let line = &code[line_start..cursor];
        let mut depth = indentation(line);
        let mut parents = Vec::new();
        for earlier in code[..line_start].lines().rev() {
            if earlier.starts_with("---") {
                break;
            }
            if earlier.trim().is_empty() || earlier.trim_start().starts_with('#') {
                continue;
            }
            let indent = indentation(earlier);
            if let Some(key) = key_of(earlier).filter(|_| indent < depth) {
                parents.push(key.to_owned());
                depth = earlier.len() - earlier.trim_start().len();
                if earlier.trim_start().starts_with('-') {
                    depth += 1;
                    // The key of a list stands where its items do, or further left.
                    parents.pop();
                    if indentation(earlier) < indentation(line) {
                        parents.push(key.to_owned());
                    }
                }
            }
        }
        parents.reverse();
        let value_of = line.contains(':').then(|| key_of(line).map(str::to_owned)).flatten();
        let typed = match &value_of {
            Some(_) => line.rsplit(':').next().unwrap_or_default().trim_start().to_owned(),
            None => line.trim_start_matches([' ', '-']).to_owned(),
        };
        let item = value_of.is_none() && line.trim_start().starts_with('-');
        Place { parents, start: cursor - typed.len(), typed, value_of, item }
    }
}

/// The document in which the cursor stands.
fn document(code: &str, cursor: usize) -> &str {
    let start = code[..cursor].rfind("\n---").map_or(0, |at| at + 1);
    let end = code[cursor..].find("\n---").map_or(code.len(), |at| cursor + at);
    &code[start..end]
}

/// The value of a field of its own line, by its indentation and key: `  namespace`.
fn value<'a>(document: &'a str, key: &str) -> Option<&'a str> {
    let line = document.lines().find(|line| line.starts_with(key) && line[key.len()..].starts_with(':'))?;
    Some(line[key.len() + 1..].trim().trim_matches(['"', '\'']))
}

fn kind_at(document: &str, cluster: &Cluster) -> Option<KindRef> {
    let (version, name) = (value(document, "apiVersion")?, value(document, "kind")?);
    let is_file = |kind: &&KindRef| kind.api_version() == version && *kind.kind == *name;
    cluster.kind(version, name).or_else(|| Cluster::file_kinds().into_iter().find(is_file)).cloned()
}

/// The schema of a kind that a CustomResourceDefinition describes.
fn custom_schema(kind: &KindRef, cluster: &Cluster) -> Option<Value> {
    if let Some(schema) = &kind.schema {
        return Some(with_common_fields((**schema).clone()));
    }
    let definition = cluster.get::<CustomResourceDefinition>("", &kind.qualified_resource())?;
    Some(schema_in(&definition.to_json(), kind))
}

/// The schema of what encloses the cursor; lists are passed through to their items.
fn enclosing<'a>(schema: Schema<'a>, parents: &[String]) -> Option<Schema<'a>> {
    parents.iter().try_fold(schema, |schema, parent| {
        let field = schema.property(parent)?;
        Some(field.items().unwrap_or(field))
    })
}

/// The kind that a field's value names, if it refers to an object.
fn referred(place: &Place, key: &str, kind: &KindRef, session: &Session) -> Option<KindRef> {
    let path = place.parents.iter().map(String::as_str).chain([key]).collect::<Vec<_>>().join(".");
    if path == "metadata.name" {
        return Some(kind.clone());
    }
    let ends = |end: &str| path.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    let (_, referred) = REFERENCES.iter().find(|(end, _)| ends(end))?;
    session.kind_named(referred).cloned()
}

pub fn type_of(schema: &Schema<'_>) -> String {
    let resolved = schema.resolved();
    match resolved.get("type").and_then(|found| found.as_str()) {
        Some("array") => format!("[]{}", schema.items().map_or_else(|| "any".into(), |items| type_of(&items))),
        Some(found) => found.to_owned(),
        None => schema.type_name().and_then(|name| name.rsplit('.').next()).unwrap_or("any").to_owned(),
    }
}

pub fn complete(code: &str, cursor: usize, session: &Session) -> Completion {
    let cluster = &session.cluster;
    let (place, document) = (Place::at(code, cursor), document(code, cursor));
    let candidate = |text: String, kind: &str| Match { text, kind: kind.to_owned() };
    let kind = kind_at(document, cluster);
    let custom = kind.as_ref().filter(|kind| Schema::of(kind).is_none()).and_then(|kind| custom_schema(kind, cluster));
    let schema = kind.as_ref().and_then(|kind| Schema::of(kind)).or_else(|| custom.as_ref().map(Schema::new));
    let around = schema.and_then(|schema| enclosing(schema, &place.parents));
    let mut matches: Vec<Match> = match (place.value_of.as_deref(), place.parents.is_empty()) {
        (Some("apiVersion"), true) => {
            let mut versions: Vec<String> =
                cluster.kinds().filter(|kind| kind.allows("create")).map(|kind| kind.api_version()).collect();
            versions.sort();
            versions.dedup();
            versions.into_iter().map(|version| candidate(version, "apiVersion")).collect()
        }
        (Some("kind"), true) => {
            let version = value(document, "apiVersion");
            let fits =
                |kind: &&KindRef| kind.allows("create") && version.is_none_or(|version| kind.api_version() == version);
            cluster.kinds().filter(fits).map(|kind| candidate(kind.kind.to_string(), "kind")).collect()
        }
        (Some(key), _) => {
            let field = around.and_then(|schema| schema.property(key));
            let mut values: Vec<Match> = field.map(|field| values_of(&field)).unwrap_or_default();
            if key == "image" {
                values.extend(offers::images(cluster).into_iter().map(|image| candidate(image, "image")));
            }
            if let Some(kind) = kind.and_then(|kind| referred(&place, key, &kind, session)) {
                let namespace = value(document, "  namespace").unwrap_or("default");
                let names = offers::names(cluster, &kind, namespace, &place.typed);
                values.extend(names.into_iter().map(|name| candidate(name, &kind.kind)));
            }
            values
        }
        (None, _) => match around {
            Some(schema) if place.item && schema.properties().next().is_none() => values_of(&schema),
            Some(schema) => {
                schema.properties().map(|(name, field)| candidate(format!("{name}:"), &type_of(&field))).collect()
            }
            None if place.parents.is_empty() => ["apiVersion:", "kind:", "metadata:", "spec:"]
                .iter()
                .map(|field| candidate((*field).to_owned(), "field"))
                .collect(),
            None => Vec::new(),
        },
    };
    matches.retain(|known| known.text.starts_with(&place.typed));
    Completion { start: place.start, end: cursor, matches }
}

/// The values that a field may have, if only some.
fn values_of(field: &Schema<'_>) -> Vec<Match> {
    let value = |text: &str| Match { text: text.to_owned(), kind: "value".to_owned() };
    match field.resolved().get("type").and_then(Value::as_str) {
        Some("boolean") => ["true", "false"].map(value).to_vec(),
        _ => field.enumeration().into_iter().map(value).collect(),
    }
}

/// The object that a name refers to, or what `kubectl explain` says about the field at the cursor.
pub fn inspect(code: &str, cursor: usize, session: &Session) -> Option<MimeBundle> {
    let line_end = code[cursor..].find('\n').map_or(code.len(), |at| cursor + at);
    let line_start = code[..cursor].rfind('\n').map_or(0, |at| at + 1);
    let line = &code[line_start..line_end];
    let key = key_of(line)?;
    let place = Place::at(code, line_start + indentation(line));
    let (document, cluster) = (document(code, cursor), &session.cluster);
    let kind = kind_at(document, cluster)?;
    let name = line.split_once(':').map_or("", |(_, value)| value.trim().trim_matches(['"', '\'']));
    let stands_on_value = line.find(':').is_some_and(|colon| cursor > line_start + colon);
    let referred = referred(&place, key, &kind, session).filter(|_| stands_on_value);
    let namespace = value(document, "  namespace").unwrap_or("default");
    let object = referred.and_then(|kind| offers::described(cluster, &kind, namespace, name));
    object.or_else(|| {
        let path: Vec<&str> = [&*kind.resource].into_iter().chain(place.parents.iter().map(String::as_str)).collect();
        let (path, version) = (path.join("."), format!("--api-version={}", kind.api_version()));
        let told = offers::told(cluster, &["explain", &format!("{path}.{key}"), &version]);
        told.or_else(|| offers::told(cluster, &["explain", &path, &version])).map(text)
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Service;

    use super::*;
    use crate::controls::testing::{run, session};

    const CODE: &str = "apiVersion: apps/v1\nkind: Deployment\nspec:\n  template:\n    spec:\n      containers:\n      - name: web\n        im";

    fn words(code: &str, session: &Session) -> Vec<String> {
        complete(code, code.len(), session).matches.into_iter().map(|found| found.text).collect()
    }

    fn told(code: &str, at: &str, session: &Session) -> String {
        let cursor = code.rfind(at).unwrap() + 1;
        let told = inspect(code, cursor, session).unwrap_or_default();
        told.get("text/plain").and_then(|text| text.as_str()).unwrap_or_default().to_owned()
    }

    #[test]
    fn fields_fit_the_place() {
        let session = session();
        assert_eq!(words(CODE, &session), ["image:", "imagePullPolicy:"]);
        assert_eq!(words("apiVersion: apps/v1\nkind: Deployment\nspec:\n  rep", &session), ["replicas:"]);
        assert_eq!(words("apiVersion: apps/v1\nkind: Dep", &session), ["Deployment"]);
        assert_eq!(words("api", &session), ["apiVersion:"]);
    }

    #[test]
    fn values_are_those_of_the_field_and_of_the_live_cluster() {
        let mut session = session();
        run(&mut session, "kubectl create namespace shop\nkubectl create configmap stock -n shop --from-literal=a=b");
        let pod = "apiVersion: v1\nkind: Pod\nmetadata:\n  namespace: shop\n  name: a\nspec:\n";
        let values = |more: &str| words(&format!("{pod}{more}"), &session);
        assert_eq!(values("  restartPolicy: On"), ["OnFailure"]);
        assert_eq!(values("  hostNetwork: "), ["true", "false"]);
        assert_eq!(values("  nodeName: node-1"), ["node-1"]);
        assert_eq!(values("  containers:\n  - name: a\n    imagePullPolicy: If"), ["IfNotPresent"]);
        assert_eq!(values("  containers:\n  - name: a\n    image: ngi"), ["nginx"]);
        assert_eq!(
            values("  containers:\n  - name: a\n    envFrom:\n    - configMapRef:\n        name: st"),
            ["stock"]
        );
        let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nspec:\n  accessModes:\n  - ReadWriteO";
        assert_eq!(words(claim, &session), ["ReadWriteOnce", "ReadWriteOncePod"]);
        assert_eq!(words("apiVersion: v1\nkind: Pod\nmetadata:\n  namespace: sh", &session), ["shop"]);
    }

    #[test]
    fn custom_kinds_have_the_fields_of_their_definition() {
        let mut session = session();
        let schema = "{type: object, properties: {spec: {type: object, properties: {size: {type: string, enum: [small, large], description: How much.}}}}}";
        run(
            &mut session,
            &format!(
                "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: pools.example.com}}\n\
                 spec:\n  group: example.com\n  scope: Namespaced\n  names: {{kind: Pool, plural: pools, singular: pool}}\n  versions:\n  - \
                 {{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {schema}}}}}\n"
            ),
        );
        let pool = "apiVersion: example.com/v1\nkind: Pool\nspec:\n";
        assert_eq!(words(&format!("{pool}  si"), &session), ["size:"]);
        assert_eq!(words(&format!("{pool}  size: l"), &session), ["large"]);
        assert!(told(&format!("{pool}  size: large"), "size", &session).contains("How much."));
    }

    #[test]
    fn the_scheduler_takes_a_file() {
        let mut session = session();
        let file = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n";
        assert_eq!(words(&format!("{file}- schedulerName: a\n  plu"), &session), ["pluginConfig:", "plugins:"]);
        let wrong = run(&mut session, &format!("{file}- scheduler: a\n"));
        assert!(wrong.ends_with("unknown field \"profiles[0].scheduler\"; did you mean \"schedulerName\"?"), "{wrong}");
        let profile = "- schedulerName: packer\n  pluginConfig:\n  - name: NodeResourcesFit\n    args:\n      scoringStrategy: {type: MostAllocated}\n";
        let done = run(&mut session, &format!("{file}{profile}"));
        assert!(done.starts_with("kube-scheduler configured\n"), "{done}");
        let pods = (1..=4).map(|number| {
            format!(
                "apiVersion: v1\nkind: Pod\nmetadata: {{name: p{number}}}\nspec:\n  schedulerName: packer\n  containers:\n  - {{name: c, image: nginx, \
                 resources: {{requests: {{cpu: 1500m, memory: 6Gi}}}}}}\n---\n"
            )
        });
        run(&mut session, &pods.collect::<String>());
        let nodes = run(&mut session, "kubectl get pods -o jsonpath={.items[*].spec.nodeName}");
        let nodes: Vec<&str> = nodes.split(' ').collect();
        assert!(nodes.len() == 4 && nodes.iter().all(|node| *node == nodes[0]), "{nodes:?}");
    }

    #[test]
    fn an_image_is_declared_like_any_object() {
        let mut session = session();
        let image = "apiVersion: kernetes.dev/v1alpha1\nkind: Image\nmetadata:\n  name: shop\nspec:\n";
        assert_eq!(words(&format!("{image}  startD"), &session), ["startDelay:"]);
        assert!(told(&format!("{image}  startDelay: 5s"), "startDelay", &session).contains("until it listens"));
        let wrong = run(&mut session, &format!("{image}  startDely: 5s\n"));
        assert!(wrong.ends_with("unknown field \"spec.startDely\"; did you mean \"startDelay\"?"), "{wrong}");
        let http = "  http:\n  - port: 8080\n    body: sold out\n";
        assert!(run(&mut session, &format!("{image}{http}")).starts_with("image.kernetes.dev/shop created\n"));
        run(&mut session, "kubectl run web --image=shop:1 --port=8080 --expose");
        let service = session.cluster.get::<Service>("default", "web").unwrap().spec::<Service>().cluster_ip.clone();
        let asked = format!("node-1$ curl -s {}:8080", service.unwrap());
        assert_eq!(run(&mut session, &asked), "sold out");
        assert!(run(&mut session, "kubectl get images").starts_with("NAME   IMAGE   AGE\nshop "));
        let gone = run(&mut session, "kubectl delete image shop");
        assert!(gone.starts_with("image.kernetes.dev \"shop\" deleted\n"), "{gone}");
    }

    #[test]
    fn help_explains_the_field_or_tells_of_the_object() {
        let mut session = session();
        run(&mut session, "kubectl create deployment web --image=nginx");
        let code = CODE.replace("        im", "        image: nginx");
        let help = told(&code, "image", &session);
        assert!(help.starts_with("GROUP:      apps\nKIND:       Deployment"), "{help}");
        assert!(help.contains("FIELD: image <string>"), "{help}");
        let code = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n";
        assert!(told(code, "web", &session).contains("StrategyType:"));
        assert!(told(code, "name", &session).contains("FIELD: name <string>"));
    }
}

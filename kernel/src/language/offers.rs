//! What stands in the live cluster and can be offered at a cursor, and what is told of it.

use cluster_core::Cluster;
use cluster_core::api::kind::KindRef;
use k8s_openapi::api::core::v1::Pod;

use crate::commands::{self, Context};
use crate::output::{MimeBundle, text};
use crate::session::Session;

/// A person looks through so many names.
const NAMES_MAX: usize = 500;
/// Images that every cluster here can pull, for one in which nothing runs yet.
const IMAGES: &[&str] = &["nginx", "httpd", "redis", "busybox", "alpine"];

/// Names of objects of a kind that begin so.
pub fn names(cluster: &Cluster, kind: &KindRef, namespace: &str, typed: &str) -> Vec<String> {
    let namespace = if kind.namespaced { namespace } else { "" };
    let names = cluster.list_of(kind, namespace).map(|object| &object.key.name);
    names.filter(|name| name.starts_with(typed)).take(NAMES_MAX).map(|name| name.to_string()).collect()
}

/// Images that the machines have, as pods name them.
pub fn images(cluster: &Cluster) -> Vec<String> {
    let held = cluster.machines().flat_map(|(_, machine)| machine.runtime.images().map(|(name, _)| short(name)));
    let mut images: Vec<String> = held.chain(IMAGES.iter().copied()).map(str::to_owned).collect();
    images.sort();
    images.dedup();
    images
}

/// `nginx:1.27` for `docker.io/library/nginx:1.27`.
fn short(image: &str) -> &str {
    let image = image.strip_prefix("docker.io/library/").or_else(|| image.strip_prefix("docker.io/")).unwrap_or(image);
    image.strip_suffix(":latest").unwrap_or(image)
}

/// The containers of a pod.
pub fn containers(cluster: &Cluster, namespace: &str, pod: &str) -> Vec<String> {
    let pod = cluster.get::<Pod>(namespace, pod);
    let containers = pod.into_iter().flat_map(|pod| &pod.spec::<Pod>().containers);
    containers.map(|container| container.name.clone()).collect()
}

/// What kubectl prints on a fork of the cluster; nothing if it fails.
pub fn told(cluster: &Cluster, words: &[&str]) -> Option<String> {
    let mut fork = cluster.clone();
    let mut files = commands::files::Memory::default();
    let mut context = Context::new(&mut fork, &mut files);
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let code = commands::find("kubectl")?.run(&words, &mut context);
    Some(context.take_stdout()).filter(|told| code == 0 && !told.trim().is_empty())
}

/// What `kubectl describe` tells of an object, if there is one.
pub fn described(cluster: &Cluster, kind: &KindRef, namespace: &str, name: &str) -> Option<MimeBundle> {
    let namespace = if kind.namespaced { namespace } else { "" };
    let key = cluster_core::api::Key::new(namespace, name);
    cluster.store().get(kind, &key)?;
    let resource = kind.qualified_resource();
    let words = ["describe", &resource, name, "-n", if namespace.is_empty() { "default" } else { namespace }];
    told(cluster, &words).map(text)
}

/// The object that `kind/name` means.
pub fn object(session: &Session, word: &str) -> Option<MimeBundle> {
    let (kind, name) = word.split_once('/')?;
    described(&session.cluster, session.kind_named(kind)?, "default", name)
}

/// The whole word at a cursor.
pub fn word_around(code: &str, cursor: usize) -> &str {
    let ends = |letter: char| letter.is_whitespace() || matches!(letter, '"' | '\'' | '|' | ';');
    let from = code[..cursor].rfind(ends).map_or(0, |at| at + code[at..].chars().next().map_or(1, char::len_utf8));
    let to = code[cursor..].find(ends).map_or(code.len(), |at| cursor + at);
    &code[from..to]
}

//! `kubectl config`: what stands in a kubeconfig. In a cell without `--kubeconfig` it is the notebook's own, which says
//! in which namespace objects are meant to be.
//! <https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/>

mod clusters;
mod contexts;
mod property;
mod users;
mod view;

use std::path::{Component, Path, PathBuf};

use serde_json::{Value, json};

use super::super::super::files::Trouble;
use super::super::failure::{Failure, Outcome, message};
use super::super::flags::{optional, switch, text};
use super::super::help;
use super::super::output::{OUTPUT, TEMPLATE};
use super::super::verb::{Call, Verb};
use super::group;
use crate::yaml;

pub const CONFIG: Verb = Verb { name: "config", aliases: &[], flags: &[], run: group::on_stderr };
pub const VIEW: Verb = Verb {
    name: "config view",
    aliases: &[],
    flags: &[OUTPUT, TEMPLATE, switch("minify"), switch("raw"), switch("flatten"), optional("merge", "true")],
    run: view::run,
};
pub const CURRENT_CONTEXT: Verb =
    Verb { name: "config current-context", aliases: &[], flags: &[], run: contexts::current };
pub const GET_CONTEXTS: Verb =
    Verb { name: "config get-contexts", aliases: &[], flags: &[OUTPUT, switch("no-headers")], run: contexts::get };
pub const USE_CONTEXT: Verb =
    Verb { name: "config use-context", aliases: &["use"], flags: &[], run: contexts::change_to };
pub const SET_CONTEXT: Verb =
    Verb { name: "config set-context", aliases: &[], flags: &[switch("current")], run: contexts::set };
pub const RENAME_CONTEXT: Verb =
    Verb { name: "config rename-context", aliases: &[], flags: &[], run: contexts::rename };
pub const DELETE_CONTEXT: Verb =
    Verb { name: "config delete-context", aliases: &[], flags: &[], run: contexts::delete };
pub const SET: Verb =
    Verb { name: "config set", aliases: &[], flags: &[optional("set-raw-bytes", "true")], run: property::set };
pub const UNSET: Verb = Verb { name: "config unset", aliases: &[], flags: &[], run: property::unset };
pub const SET_CLUSTER: Verb = Verb {
    name: "config set-cluster",
    aliases: &[],
    flags: &[optional("embed-certs", "true"), text("proxy-url"), text("tls-server-name")],
    run: clusters::set,
};
pub const DELETE_CLUSTER: Verb =
    Verb { name: "config delete-cluster", aliases: &[], flags: &[], run: clusters::delete };
pub const SET_CREDENTIALS: Verb = Verb {
    name: "config set-credentials",
    aliases: &[],
    flags: &[
        optional("embed-certs", "true"),
        text("client-certificate"),
        text("client-key"),
        text("username"),
        text("password"),
        text("auth-provider"),
        text("auth-provider-arg"),
        text("exec-command"),
        text("exec-api-version"),
        text("exec-arg"),
        text("exec-env"),
        text("exec-interactive-mode"),
        optional("exec-provide-cluster-info", "true"),
    ],
    run: users::set,
};
pub const DELETE_USER: Verb = Verb { name: "config delete-user", aliases: &[], flags: &[], run: users::delete };
pub const GET_CLUSTERS: Verb =
    Verb { name: "config get-clusters", aliases: &[], flags: &[], run: |call| names(call, "clusters") };
pub const GET_USERS: Verb =
    Verb { name: "config get-users", aliases: &[], flags: &[], run: |call| names(call, "users") };

/// Lists of a kubeconfig, with the field in which each entry holds what it names.
pub const LISTS: [(&str, &str); 3] = [("clusters", "cluster"), ("contexts", "context"), ("users", "user")];

/// A kubeconfig, entries sorted by name as kubectl writes them.
pub struct Kubeconfig {
    pub value: Value,
    /// The file's name; empty for the notebook's own.
    pub path: String,
}

/// What an entry of a list holds, in one word: `cluster` in `clusters`.
fn field(list: &str) -> &'static str {
    LISTS.iter().find(|(known, _)| *known == list).map_or("", |(_, field)| field)
}

impl Kubeconfig {
    /// The one that is meant; an empty one if there is no such file.
    pub fn read(call: &Call<'_, '_>) -> Result<Kubeconfig, Failure> {
        let own = call.context.kubeconfig.as_deref().filter(|_| !call.parsed.has("kubeconfig"));
        let (path, text) = match own {
            Some(own) => (String::new(), own.clone()),
            None => {
                let path = place(call);
                match call.context.files.read(&path) {
                    Ok(text) => (path, text),
                    Err(Trouble::Missing) => (path, String::new()),
                    Err(trouble) => return message(format!("error loading config file \"{path}\": {trouble}")),
                }
            }
        };
        let documents = yaml::read(&text).map_err(|error| {
            Failure::Message(format!("error loading config file \"{path}\": {}", error.in_go_words()))
        })?;
        let read = documents.into_iter().next().map(|document| document.value).unwrap_or_default();
        let mut value = json!({"apiVersion": "v1", "kind": "Config", "current-context": ""});
        for (field, found) in read.as_object().into_iter().flatten() {
            let is_empty = field == "preferences" && found == &json!({});
            if !found.is_null() && !is_empty {
                value[field] = found.clone();
            }
        }
        for (list, _) in LISTS {
            if let Some(entries) = value[list].as_array_mut() {
                entries.sort_by_key(|entry| entry["name"].as_str().unwrap_or_default().to_owned());
            }
        }
        Ok(Kubeconfig { value, path })
    }

    pub fn write(&self, call: &mut Call<'_, '_>) -> Outcome {
        let mut value = self.value.clone();
        for (list, _) in LISTS {
            if value[list].as_array().is_none_or(Vec::is_empty) {
                value[list] = Value::Null;
            }
        }
        let text = yaml::print(&value);
        match &mut call.context.kubeconfig {
            Some(own) if self.path.is_empty() => **own = text,
            _ => {
                let path = &self.path;
                let written = call.context.files.write(path, &text);
                return written.map_err(|trouble| Failure::Message(format!("open {path}: {trouble}")));
            }
        }
        Ok(())
    }

    /// The one that is meant, if it has what is to be deleted.
    pub fn read_to_delete(call: &Call<'_, '_>, list: &str, name: &str) -> Result<Kubeconfig, Failure> {
        let config = Kubeconfig::read(call)?;
        if config.entry(list, name).is_null() {
            return message(format!("cannot delete {} {name}, not in {}", field(list), config.path));
        }
        Ok(config)
    }

    /// Takes out what stands under a name, and says so.
    pub fn delete(mut self, call: &mut Call<'_, '_>, list: &str, name: &str) -> Outcome {
        self.remove(list, name);
        self.write(call)?;
        call.line(format!("deleted {} {name} from {}", field(list), self.path));
        Ok(())
    }

    /// What a kubeconfig says under a name; null if nothing.
    pub fn entry(&self, list: &str, name: &str) -> &Value {
        let field = field(list);
        let mut entries = self.value[list].as_array().into_iter().flatten();
        entries.find(|entry| entry["name"] == name).map_or(&Value::Null, |entry| &entry[field])
    }

    pub fn names(&self, list: &str) -> Vec<String> {
        let entries = self.value[list].as_array().into_iter().flatten();
        entries.filter_map(|entry| entry["name"].as_str().map(str::to_owned)).collect()
    }

    pub fn current(&self) -> &str {
        self.value["current-context"].as_str().unwrap_or_default()
    }

    /// Puts something in under a name, at its place among the others of the list.
    pub fn put(&mut self, list: &str, name: &str, value: Value) {
        self.remove(list, name);
        let mut entry = json!({"name": name});
        entry[field(list)] = value;
        if !self.value[list].is_array() {
            self.value[list] = json!([]);
        }
        if let Some(entries) = self.value[list].as_array_mut() {
            entries.push(entry);
            entries.sort_by_key(|entry| entry["name"].as_str().unwrap_or_default().to_owned());
        }
    }

    pub fn remove(&mut self, list: &str, name: &str) {
        if let Some(entries) = self.value[list].as_array_mut() {
            entries.retain(|entry| entry["name"] != name);
        }
    }

    /// How a file is named in the kubeconfig: below its folder by what leads there, otherwise in full. The notebook's own
    /// lies in the folder of the notebook.
    pub fn place_of(&self, path: &str) -> String {
        if path.is_empty() || self.path.is_empty() {
            return path.to_owned();
        }
        let full = |path: &Path| std::path::absolute(path).map(|full| tidy(&full)).unwrap_or_else(|_| path.to_owned());
        let (file, kubeconfig) = (full(Path::new(path)), full(Path::new(&self.path)));
        let below = kubeconfig.parent().and_then(|folder| file.strip_prefix(folder).ok()).unwrap_or(&file);
        below.display().to_string()
    }
}

/// A path without `..`.
fn tidy(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut tidy, part| {
        match part {
            Component::ParentDir => drop(tidy.pop()),
            part => tidy.push(part),
        }
        tidy
    })
}

/// The file that `--kubeconfig` names, or the first of `KUBECONFIG`, or `~/.kube/config`.
fn place(call: &Call<'_, '_>) -> String {
    if let Some(path) = call.parsed.text("kubeconfig") {
        return path.to_owned();
    }
    let set = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
    let first = set("KUBECONFIG").and_then(|paths| paths.split(':').find(|path| !path.is_empty()).map(str::to_owned));
    first.unwrap_or_else(|| format!("{}/.kube/config", set("HOME").unwrap_or_default()))
}

/// The namespace that a kubeconfig's current context says.
pub fn namespace(kubeconfig: &str) -> Option<String> {
    let value = yaml::read(kubeconfig).ok()?.into_iter().next()?.value;
    let contexts = value["contexts"].as_array()?;
    let current = contexts.iter().find(|context| context["name"] == value["current-context"])?;
    current["context"]["namespace"].as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// A kubeconfig with another current context.
pub fn with_current(kubeconfig: &str, context: &str) -> String {
    let read = yaml::read(kubeconfig).ok().and_then(|documents| documents.into_iter().next());
    let Some(mut value) = read.map(|document| document.value).filter(Value::is_object) else {
        return kubeconfig.to_owned();
    };
    value["current-context"] = context.into();
    yaml::print(&value)
}

fn names(call: &mut Call<'_, '_>, list: &str) -> Outcome {
    let names = Kubeconfig::read(call)?.names(list);
    call.line("NAME");
    names.iter().for_each(|name| call.line(name));
    Ok(())
}

/// So many arguments.
fn arguments<const N: usize>(call: &mut Call<'_, '_>) -> Result<[String; N], Failure> {
    call.parsed.args.clone().try_into().map_err(|args: Vec<String>| unexpected(call, &args))
}

fn show_help(call: &mut Call<'_, '_>) {
    let command = call.command.clone();
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    call.context.print(help::of(&words).unwrap_or_default());
}

/// Shows the verb's help, and says that these are not its arguments.
fn unexpected(call: &mut Call<'_, '_>, args: &[String]) -> Failure {
    show_help(call);
    Failure::Message(format!("Unexpected args: [{}]", args.join(" ")))
}

#[cfg(test)]
mod tests {
    use crate::controls::testing::{run, session};

    #[test]
    fn a_cell_sets_the_namespace_that_is_meant_from_then_on() {
        let mut session = session();
        assert_eq!(run(&mut session, "kubectl config current-context"), "kubernetes-admin@kubernetes\n");
        run(&mut session, "kubectl create namespace shop");
        let told = run(&mut session, "kubectl config set-context --current --namespace=shop");
        assert_eq!(told, "Context \"kubernetes-admin@kubernetes\" modified.\n");
        run(&mut session, "kubectl create configmap a");
        run(&mut session, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n");
        let told = run(&mut session, "kubectl get configmap a b -n shop -o name");
        assert_eq!(told, "configmap/a\nconfigmap/b\n");
        assert!(run(&mut session, "kubectl config view --minify").contains("    namespace: shop\n"));
        run(&mut session, "%rewind 6");
        assert!(!run(&mut session, "kubectl config view").contains("shop"));
    }

    #[test]
    fn contexts_of_a_file_are_listed_made_and_used() {
        let mut session = session();
        let kubectl = |session: &mut _, words: &str| run(session, &format!("kubectl --kubeconfig kc config {words}"));
        assert_eq!(kubectl(&mut session, "set-context one --cluster=a --user=ben"), "Context \"one\" created.\n");
        assert_eq!(kubectl(&mut session, "set-context two --cluster=b --namespace=shop"), "Context \"two\" created.\n");
        assert_eq!(kubectl(&mut session, "use-context two"), "Switched to context \"two\".\n");
        assert_eq!(kubectl(&mut session, "rename-context one three"), "Context \"one\" renamed to \"three\".\n");
        assert_eq!(
            kubectl(&mut session, "get-contexts"),
            "CURRENT   NAME    CLUSTER   AUTHINFO   NAMESPACE\n          three   a         ben        \n*         two     b                    shop\n"
        );
        assert_eq!(kubectl(&mut session, "delete-context three"), "deleted context three from kc\n");
        assert_eq!(kubectl(&mut session, "get-contexts -o name"), "two\n");
    }

    #[test]
    fn clusters_and_users_are_made_changed_and_deleted() {
        let mut session = session();
        let kubectl = |session: &mut _, words: &str| run(session, &format!("kubectl --kubeconfig kc config {words}"));
        assert_eq!(kubectl(&mut session, "set-cluster a --server=https://a"), "Cluster \"a\" set.\n");
        assert_eq!(kubectl(&mut session, "set-credentials ben --token=secret"), "User \"ben\" set.\n");
        assert_eq!(
            kubectl(&mut session, "set clusters.a.tls-server-name b"),
            "Property \"clusters.a.tls-server-name\" set.\n"
        );
        let shown = kubectl(&mut session, "view");
        assert!(shown.contains("server: https://a\n    tls-server-name: b\n  name: a\n"), "{shown}");
        assert!(shown.contains("    token: REDACTED\n"), "{shown}");
        assert_eq!(kubectl(&mut session, "unset users.ben.token"), "Property \"users.ben.token\" unset.\n");
        assert!(kubectl(&mut session, "view").contains("- name: ben\n  user: {}\n"));
        assert_eq!(kubectl(&mut session, "delete-user ben"), "deleted user ben from kc\n");
        assert_eq!(kubectl(&mut session, "delete-cluster a"), "deleted cluster a from kc\n");
        assert_eq!(kubectl(&mut session, "get-clusters"), "NAME\n");
    }
}

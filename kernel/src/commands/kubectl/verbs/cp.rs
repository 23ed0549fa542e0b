//! `kubectl cp`: text files into a container, and out of one. As kubectl does, it has `tar` run there.
//! <https://kubernetes.io/docs/reference/kubectl/generated/kubectl_cp/>

use cluster_core::api::Key;
use cluster_core::api::kind::KindRef;
use cluster_core::runtime::tar::{self, Entry};
use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;

use super::super::failure::{Failure, Outcome, message};
use super::super::flags::{integer, switch, text};
use super::super::verb::{Call, Verb};
use super::exec::container_of;

pub const VERB: Verb = Verb {
    name: "cp",
    aliases: &[],
    flags: &[text("container").short('c'), switch("no-preserve"), integer("retries")],
    run,
};

/// `file`, `pod:file` or `namespace/pod:file`
struct Place<'a> {
    namespace: Option<&'a str>,
    pod: Option<&'a str>,
    file: &'a str,
}

fn place(text: &str) -> Result<Place<'_>, Failure> {
    let wrong = || Failure::Message("filespec must match the canonical format: [[namespace/]pod:]file/path".into());
    let Some((pod, file)) = text.split_once(':') else { return Ok(Place { namespace: None, pod: None, file: text }) };
    match pod.split('/').collect::<Vec<_>>()[..] {
        [""] => Err(wrong()),
        [pod] => Ok(Place { namespace: None, pod: Some(pod), file }),
        [namespace, pod] => Ok(Place { namespace: Some(namespace), pod: Some(pod), file }),
        _ => Err(wrong()),
    }
}

fn run(call: &mut Call<'_, '_>) -> Outcome {
    let args = call.parsed.args.clone();
    let [from, to] = args.as_slice() else { return message("source and destination are required") };
    let (from, to) = (place(from)?, place(to)?);
    if from.pod.is_some() && to.pod.is_some() {
        return message("one of src or dest must be a local file specification");
    }
    if from.file.is_empty() || to.file.is_empty() {
        return message("filepath can not be empty");
    }
    let remote = if from.pod.is_some() { &from } else { &to };
    let Some(name) = remote.pod else { return message("one of src or dest must be a remote file specification") };
    if to.pod.is_some() && call.context.files.read(from.file).is_err() && call.context.files.list(from.file).is_none() {
        return message(format!("{} doesn't exist in local filesystem", from.file));
    }
    let namespace = remote.namespace.unwrap_or(&call.namespace).to_owned();
    let pod = call.get(KindRef::of::<Pod>(), &namespace, name)?;
    if let Some(wanted) = call.parsed.text("container") {
        check_container(&pod, name, wanted)?;
    }
    let container = Container { pod: Key::new(namespace.as_str(), name), name: container_of(call, &pod)? };
    if to.pod.is_some() {
        container.copy_in(call, from.file, to.file)
    } else {
        container.copy_out(call, from.file, to.file)
    }
}

fn check_container(pod: &Value, pod_name: &str, wanted: &str) -> Outcome {
    let lists = ["containers", "initContainers", "ephemeralContainers"];
    let all = lists.iter().filter_map(|list| pod["spec"][*list].as_array()).flatten();
    let names: Vec<&str> = all.filter_map(|container| container["name"].as_str()).collect();
    match names.contains(&wanted) {
        true => Ok(()),
        false => message(format!("container {wanted} is not valid for pod {pod_name} out of: {}", names.join(", "))),
    }
}

struct Container {
    pod: Key,
    name: String,
}

impl Container {
    /// Runs a command in the container, and gives what it wrote; if it failed, its errors, too.
    fn run(&self, call: &mut Call<'_, '_>, command: &[&str], stdin: &str) -> Result<(String, i32), Failure> {
        let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
        let done = call.context.api.exec(&self.pod, &self.name, &command, stdin);
        let done = done.map_err(|status| Failure::Message(status.message))?;
        let output = if done.code == 0 { done.output } else { done.output + &done.errors };
        Ok((output, done.code))
    }

    /// Files go as an archive that `tar` in the container takes apart.
    fn copy_in(&self, call: &mut Call<'_, '_>, from: &str, to: &str) -> Outcome {
        let mut to = to.trim_end_matches('/').to_owned();
        // A folder that is there takes in what is copied, by its own name.
        let (_, code) = self.run(call, &["test", "-d", if to.is_empty() { "/" } else { &to }], "")?;
        if code == 0 {
            to = format!("{to}/{}", last(from));
        }
        let folder = to.rsplit_once('/').map_or(".", |(folder, _)| if folder.is_empty() { "/" } else { folder });
        let archive = tar::pack(&entries(call, from, last(&to))?);
        let (output, code) = self.run(call, &["tar", "-xmf", "-", "-C", folder], &archive)?;
        ended(call, &output, code)
    }

    fn copy_out(&self, call: &mut Call<'_, '_>, from: &str, to: &str) -> Outcome {
        let (output, code) = self.run(call, &["tar", "cf", "-", from], "")?;
        if code != 0 {
            return ended(call, &output, code);
        }
        let entries = tar::unpack(output.as_bytes()).map_err(Failure::Message)?;
        if from.starts_with('/') {
            call.context.error_line("tar: removing leading '/' from member names");
        }
        let name = from.trim_matches('/');
        for Entry { name: entry, text } in entries {
            let rest = entry.strip_prefix(name).unwrap_or(&entry).trim_matches('/');
            // An archive that somebody else made must not lead out of where it is put.
            if rest.split('/').any(|part| part == "..") {
                call.context.error_line(format!("warning: file {entry:?} is outside target destination, skipping"));
                continue;
            }
            let place = if rest.is_empty() { to.to_owned() } else { format!("{}/{rest}", to.trim_end_matches('/')) };
            let done = match text {
                Some(text) => call.context.files.write(&place, &text),
                None => call.context.files.make_folder(&place),
            };
            done.map_err(|trouble| Failure::Message(format!("open {place}: {trouble}")))?;
        }
        Ok(())
    }
}

/// A file of this machine, or the files right in a folder, under another name.
fn entries(call: &Call<'_, '_>, from: &str, name: &str) -> Result<Vec<Entry>, Failure> {
    let file = |from: &str, name: String| match call.context.files.read(from) {
        Ok(text) => Ok(Entry { name, text: Some(text) }),
        Err(trouble) => message(format!("open {from}: {trouble}")),
    };
    let Some(inside) = call.context.files.list(from) else { return Ok(vec![file(from, name.to_owned())?]) };
    let mut entries = vec![Entry { name: format!("{name}/"), text: None }];
    for inner in inside {
        entries.push(file(&format!("{}/{inner}", from.trim_end_matches('/')), format!("{name}/{inner}"))?);
    }
    Ok(entries)
}

fn last(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}

/// kubectl says how a command ended that it has run for itself.
fn ended(call: &mut Call<'_, '_>, output: &str, code: i32) -> Outcome {
    if code == 0 {
        return Ok(());
    }
    call.context.error_line(output.trim_end());
    call.context.error_line(format!("command terminated with exit code {code}"));
    Err(Failure::Command(code))
}

#[cfg(test)]
mod tests {
    use crate::controls::testing::{run, session};

    #[test]
    fn files_go_into_a_container_and_come_out_again() {
        let mut session = session();
        run(&mut session, "kubectl run web --image=nginx");
        for (file, text) in [("note", "one\ntwo\n"), ("conf/a", "1"), ("conf/b", "2")] {
            session.files.write(file, text).unwrap();
        }
        assert_eq!(run(&mut session, "kubectl cp note web:/tmp/copy"), "");
        assert_eq!(run(&mut session, "kubectl exec web -- cat /tmp/copy"), "one\ntwo\n");
        run(&mut session, "kubectl cp note default/web:/tmp");
        run(&mut session, "kubectl cp conf web:/etc/app -c web");
        assert_eq!(run(&mut session, "kubectl exec web -- cat /tmp/note /etc/app/a /etc/app/b"), "one\ntwo\n12");
        run(&mut session, "kubectl cp web:/tmp/copy back");
        assert_eq!(session.files.read("back").unwrap(), "one\ntwo\n");
        run(&mut session, "kubectl cp web:/etc/app app");
        assert_eq!(session.files.read("app/b").unwrap(), "2");
        assert!(run(&mut session, "kubectl cp web:/none x").contains("exit code 1"));
        assert!(run(&mut session, "kubectl cp none web:/x").contains("exit code 1"));
    }
}

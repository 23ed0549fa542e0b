//! What agnhost's netexec does outside of its own answers: it asks others, runs commands, ends.
//! <https://github.com/kubernetes/kubernetes/tree/master/test/images/agnhost#netexec>

use std::time::Duration;

use serde_json::json;

use super::connect::{Network, Options, Origin, Session, Way};
use super::datagram::Datagram;
use super::url::parameter;
use crate::api::Name;
use crate::runtime::container::Handle;
use crate::runtime::http::Answer;
use crate::runtime::shell::exec::Ran;
use crate::trace::Causes;

/// How often `/dial` asks at most, and how long it waits for a datagram.
const TRIES_MAX: usize = 100;
const PATIENCE: Duration = Duration::from_secs(5);

impl Network<'_> {
    /// The answer to a request that a container alone can't answer; `None` for others.
    pub(super) fn netexec(&mut self, machine: &Name, handle: Handle, path: &str, way: &mut Way) -> Option<Answer> {
        let (place, query) = path.split_once('?').unwrap_or((path, ""));
        let (status, body) = match place {
            "/dial" => self.dial(machine, handle, query, way),
            "/shell" => self.shell(machine, handle, query)?,
            "/exit" => {
                let code = parameter(query, "code").and_then(|code| code.parse().ok()).unwrap_or(0);
                let runtime = &mut self.machines.get_mut(machine)?.runtime;
                runtime.exit(handle, code, Causes::None, self.world);
                (200, String::new())
            }
            _ => return None,
        };
        Some(Answer { status, body, took: Duration::ZERO })
    }

    /// `/dial?host=&port=&protocol=&request=&tries=`: what others answer to the same request.
    fn dial(&mut self, machine: &Name, handle: Handle, query: &str, way: &mut Way) -> (u16, String) {
        let text = |name: &str| parameter(query, name).unwrap_or_default();
        let (host, request) = (text("host"), text("request"));
        let Ok(port) = text("port").parse::<u16>() else { return (400, "invalid port".into()) };
        let tries = text("tries").parse().unwrap_or(1).clamp(1, TRIES_MAX);
        let container = self.machines.get(machine).and_then(|machine| machine.runtime.container(handle));
        let Some(from) = container.map(|container| Origin::Pod(container.identity.pod.clone())) else {
            return (500, String::new());
        };
        let (mut responses, mut errors) = (Vec::new(), Vec::new());
        for _ in 0..tries {
            let (result, took) = if text("protocol") == "udp" {
                let (host, text) = (host.clone(), request.clone());
                let sent = self.datagram(&from, &Datagram { host, port, text, patience: PATIENCE });
                (sent.result, sent.took)
            } else {
                let url = format!("http://{host}:{port}/{}", request.trim_start_matches('/'));
                let options = Options { timeout: Some(PATIENCE), host: None };
                let got = self.get(&mut Session::default(), &from, &url, &options);
                (got.result.map(|reply| reply.body), got.took)
            };
            way.waited += took;
            match result {
                Ok(response) => responses.push(response),
                Err(failure) => errors.push(failure.to_string()),
            }
        }
        let mut told = json!({});
        for (name, texts) in [("responses", responses), ("errors", errors)] {
            if !texts.is_empty() {
                told[name] = json!(texts);
            }
        }
        (200, told.to_string())
    }

    /// `/shell?cmd=`: what a shell prints.
    fn shell(&mut self, machine: &Name, handle: Handle, query: &str) -> Option<(u16, String)> {
        let text = parameter(query, "cmd").or_else(|| parameter(query, "shellCommand")).unwrap_or_default();
        let command = ["/bin/sh".to_owned(), "-c".to_owned(), text];
        let runtime = &mut self.machines.get_mut(machine)?.runtime;
        let told = match runtime.exec(handle, &command, self.world.now)? {
            Ran::Ended(done) if done.code == 0 => json!({"output": done.output}),
            Ran::Ended(done) => json!({"output": done.output, "error": format!("exit status {}", done.code)}),
            Ran::Asks => json!({"error": "a command of /shell can't ask the network"}),
        };
        Some((200, told.to_string()))
    }
}

//! The container that is put beside others, and what the profiles allow it.
//! <https://kubernetes.io/docs/tasks/debug/debug-application/debug-running-pod/#debugging-profiles>

use cluster_core::random::safe_encode;
use serde_json::{Value, json};

use super::super::super::failure::{Failure, Outcome, message};
use super::super::super::verb::Call;
use super::Wish;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Profile {
    Legacy,
    General,
    Baseline,
    Restricted,
    NetAdmin,
    SysAdmin,
}

impl Profile {
    pub fn of(name: &str) -> Result<Profile, Failure> {
        Ok(match name {
            "legacy" => Profile::Legacy,
            "general" | "" => Profile::General,
            "baseline" => Profile::Baseline,
            "restricted" => Profile::Restricted,
            "netadmin" => Profile::NetAdmin,
            "sysadmin" => Profile::SysAdmin,
            other => return message(format!("unknown profile: {other}")),
        })
    }

    /// Beside the containers of a pod that runs.
    pub fn of_ephemeral(self, container: &mut Value) {
        if self == Profile::General {
            container["securityContext"] = json!({"capabilities": {"add": ["SYS_PTRACE"]}});
        }
        self.rights(container);
    }

    /// In a copy of a pod.
    pub fn of_copy(self, spec: &mut Value, container: &str) {
        if self != Profile::Legacy && spec["shareProcessNamespace"].is_null() {
            spec["shareProcessNamespace"] = true.into();
        }
        let containers = spec["containers"].as_array_mut().into_iter().flatten();
        for container in containers.filter(|known| known["name"] == container) {
            if self == Profile::Baseline {
                container.as_object_mut().map(|fields| fields.remove("securityContext"));
            }
            self.of_ephemeral(container);
        }
    }

    /// On a node, whose namespaces and files most of them see.
    pub fn of_node(self, spec: &mut Value) {
        if !matches!(self, Profile::Baseline | Profile::Restricted) {
            for namespace in ["hostNetwork", "hostPID", "hostIPC"] {
                spec[namespace] = true.into();
            }
        }
        if matches!(self, Profile::Legacy | Profile::General | Profile::SysAdmin) {
            spec["volumes"] = json!([{"name": "host-root", "hostPath": {"path": "/"}}]);
            spec["containers"][0]["volumeMounts"] = json!([{"name": "host-root", "mountPath": "/host"}]);
        }
        self.rights(&mut spec["containers"][0]);
    }

    fn rights(self, container: &mut Value) {
        let rights = match self {
            Profile::Legacy | Profile::General | Profile::Baseline => return,
            Profile::Restricted => json!({
                "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": true,
                "seccompProfile": {"type": "RuntimeDefault"},
            }),
            Profile::NetAdmin => json!({"capabilities": {"add": ["NET_ADMIN", "NET_RAW"]}}),
            Profile::SysAdmin => json!({"privileged": true}),
        };
        container["securityContext"] = rights;
    }
}

/// A name for a container that was given none, and says so.
pub fn default_name(call: &mut Call<'_, '_>, pod: &Value) -> String {
    let name = format!("debugger-{}", suffix(pod));
    call.line(format!("Defaulting debug container name to {name}."));
    name
}

/// What the flags say of the container, put over what it is already.
pub fn debug_container(call: &Call<'_, '_>, wish: &Wish, container: &mut Value) -> Outcome {
    for (field, flag) in [("image", "image"), ("imagePullPolicy", "image-pull-policy")] {
        if let Some(text) = call.parsed.text(flag).filter(|text| !text.is_empty()) {
            container[field] = text.into();
        }
    }
    for field in ["stdin", "tty"] {
        if call.parsed.switch(field) {
            container[field] = true.into();
        }
    }
    if !wish.command.is_empty() {
        if call.parsed.switch("arguments-only") {
            container["args"] = json!(wish.command);
        } else {
            container["command"] = json!(wish.command);
            container.as_object_mut().map(|fields| fields.remove("args"));
        }
    }
    let mut variables = Vec::new();
    for pair in call.parsed.all("env") {
        let Some((name, value)) = pair.split_once('=') else { return message(format!("invalid env: {pair}")) };
        variables.push(json!({"name": name, "value": value}));
    }
    if !variables.is_empty() {
        container["env"] = variables.into();
    }
    Ok(())
}

/// Five letters, the same in every run: of the pod's uid, and of how many such containers it has.
fn suffix(pod: &Value) -> String {
    let uid: String = pod["metadata"]["uid"].as_str().unwrap_or_default().chars().rev().take(4).collect();
    let known = pod["spec"]["ephemeralContainers"].as_array().map_or(0, Vec::len);
    safe_encode(&format!("{uid}{}", char::from(b'a' + (known % 26) as u8)))
}

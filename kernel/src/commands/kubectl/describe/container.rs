//! Containers, in pods and in pod templates.

use serde_json::Value;

use super::super::jsonpath::go_text;
use super::{Page, list, number, or_none, text, time};

/// How far the fields of a container or a volume are indented, wherever its heading stands.
pub const INNER: usize = 2;

/// `Containers:` and what each is. `level` is that of the heading; `space` is what the names are indented by beyond it.
pub fn containers(page: &mut Page, level: usize, heading: &str, containers: &[Value], statuses: &[Value], space: &str) {
    if containers.is_empty() {
        return;
    }
    page.line(level, format!("{heading}:"));
    for container in containers {
        let name = text(container, "/name");
        page.line(level, format!("{space}{name}:"));
        let status = statuses.iter().find(|status| text(status, "/name") == name);
        one(page, INNER, container, status);
    }
}

fn one(page: &mut Page, level: usize, container: &Value, status: Option<&Value>) {
    if let Some(status) = status {
        page.field(level, "Container ID", text(status, "/containerID"));
    }
    page.field(level, "Image", text(container, "/image"));
    if let Some(status) = status {
        page.field(level, "Image ID", text(status, "/imageID"));
    }
    ports(page, level, list(container, "/ports"));
    words(page, level, "Command", list(container, "/command"));
    words(page, level, "Args", list(container, "/args"));
    if let Some(status) = status {
        states(page, level, status);
    }
    for (field, name) in [("/resources/limits", "Limits"), ("/resources/requests", "Requests")] {
        let amounts = container.pointer(field).and_then(Value::as_object);
        if let Some(amounts) = amounts.filter(|amounts| !amounts.is_empty()) {
            page.line(level, format!("{name}:"));
            for (resource, amount) in amounts {
                page.field(level + 1, resource, go_text(amount));
            }
        }
    }
    for (field, name) in
        [("/livenessProbe", "Liveness"), ("/readinessProbe", "Readiness"), ("/startupProbe", "Startup")]
    {
        if let Some(probe) = container.pointer(field) {
            page.field(level, name, described_probe(probe));
        }
    }
    environment(page, level, container);
    mounts(page, level, container);
}

fn ports(page: &mut Page, level: usize, ports: &[Value]) {
    let named = |port: &Value, number: i64| {
        let protocol = match text(port, "/protocol") {
            "" => "TCP",
            protocol => protocol,
        };
        match text(port, "/name") {
            "" => format!("{number}/{protocol}"),
            name => format!("{number}/{protocol} ({name})"),
        }
    };
    let container: Vec<String> = ports.iter().map(|port| named(port, number(port, "/containerPort"))).collect();
    let host: Vec<String> = ports.iter().map(|port| named(port, number(port, "/hostPort"))).collect();
    let plural = if ports.len() > 1 { "s" } else { "" };
    page.field(level, &format!("Port{plural}"), or_none(&container.join(", ")));
    page.field(level, &format!("Host Port{plural}"), or_none(&host.join(", ")));
}

fn words(page: &mut Page, level: usize, name: &str, words: &[Value]) {
    if words.is_empty() {
        return;
    }
    page.line(level, format!("{name}:"));
    for word in words.iter().filter_map(Value::as_str) {
        word.split('\n').for_each(|line| page.line(level + 1, line));
    }
}

fn states(page: &mut Page, level: usize, status: &Value) {
    state(page, level, "State", status.get("state"));
    if status.get("lastState").and_then(Value::as_object).is_some_and(|last| !last.is_empty()) {
        state(page, level, "Last State", status.get("lastState"));
    }
    page.field(level, "Ready", if status["ready"] == true { "True" } else { "False" });
    page.field(level, "Restart Count", number(status, "/restartCount"));
}

fn state(page: &mut Page, level: usize, name: &str, state: Option<&Value>) {
    let of = |sort: &str| state.and_then(|state| state.get(sort));
    if let Some(running) = of("running") {
        page.field(level, name, "Running");
        page.field(level + 1, "Started", time(text(running, "/startedAt")));
    } else if let Some(ended) = of("terminated") {
        page.field(level, name, "Terminated");
        for (field, label) in [("/reason", "Reason"), ("/message", "Message")] {
            if !text(ended, field).is_empty() {
                page.field(level + 1, label, text(ended, field));
            }
        }
        page.field(level + 1, "Exit Code", number(ended, "/exitCode"));
        if number(ended, "/signal") > 0 {
            page.field(level + 1, "Signal", number(ended, "/signal"));
        }
        page.field(level + 1, "Started", time(text(ended, "/startedAt")));
        page.field(level + 1, "Finished", time(text(ended, "/finishedAt")));
    } else {
        page.field(level, name, "Waiting");
        let reason = of("waiting").map(|waiting| text(waiting, "/reason")).unwrap_or_default();
        if !reason.is_empty() {
            page.field(level + 1, "Reason", reason);
        }
    }
}

/// `http-get http://:80/live delay=3s timeout=1s period=5s #success=1 #failure=3`
fn described_probe(probe: &Value) -> String {
    let or = |field: &str, default: i64| probe.pointer(field).and_then(Value::as_i64).unwrap_or(default);
    let timing = format!(
        "delay={}s timeout={}s period={}s #success={} #failure={}",
        or("/initialDelaySeconds", 0),
        or("/timeoutSeconds", 0),
        or("/periodSeconds", 0),
        or("/successThreshold", 0),
        or("/failureThreshold", 0)
    );
    let action = if let Some(exec) = probe.get("exec") {
        format!("exec {}", go_text(exec.get("command").unwrap_or(&Value::Array(Vec::new()))))
    } else if let Some(get) = probe.get("httpGet") {
        let scheme = match text(get, "/scheme") {
            "" => "http".to_owned(),
            scheme => scheme.to_lowercase(),
        };
        let port = get.get("port").map(go_text).unwrap_or_default();
        format!("http-get {scheme}://{}:{port}{}", text(get, "/host"), text(get, "/path"))
    } else if let Some(socket) = probe.get("tcpSocket") {
        format!("tcp-socket {}:{}", text(socket, "/host"), socket.get("port").map(go_text).unwrap_or_default())
    } else if let Some(grpc) = probe.get("grpc") {
        format!("grpc <pod>:{} {}", number(grpc, "/port"), text(grpc, "/service"))
    } else {
        "unknown".to_owned()
    };
    format!("{action} {timing}")
}

fn environment(page: &mut Page, level: usize, container: &Value) {
    let sources = list(container, "/envFrom");
    if !sources.is_empty() {
        page.line(level, "Environment Variables from:");
        for source in sources {
            let (sort, place) = match source.get("configMapRef") {
                Some(_) => ("ConfigMap", "/configMapRef"),
                None => ("Secret", "/secretRef"),
            };
            let optional = source.pointer(&format!("{place}/optional")) == Some(&Value::Bool(true));
            let prefix = match text(source, "/prefix") {
                "" => String::new(),
                prefix => format!(" with prefix '{prefix}'"),
            };
            page.line(
                level + 1,
                format!("{}\t{sort}{prefix}\tOptional: {optional}", text(source, &format!("{place}/name"))),
            );
        }
    }
    let variables = list(container, "/env");
    if variables.is_empty() {
        page.field(level, "Environment", "<none>");
        return;
    }
    page.line(level, "Environment:");
    for variable in variables {
        let name = text(variable, "/name");
        let optional = |place: &str| variable.pointer(&format!("{place}/optional")) == Some(&Value::Bool(true));
        match variable.get("valueFrom") {
            None => {
                let mut lines = text(variable, "/value").split('\n');
                page.field(level + 1, name, lines.next().unwrap_or_default());
                lines.for_each(|line| page.line(level + 1, format!("\t{line}")));
            }
            Some(from) if from.get("fieldRef").is_some() => {
                let version = match text(from, "/fieldRef/apiVersion") {
                    "" => "v1",
                    version => version,
                };
                page.field(level + 1, name, format!(" ({version}:{})", text(from, "/fieldRef/fieldPath")));
            }
            Some(from) if from.get("resourceFieldRef").is_some() => {
                page.field(level + 1, name, format!(" ({})", text(from, "/resourceFieldRef/resource")));
            }
            Some(from) => {
                let (place, what, within) = match from.get("configMapKeyRef") {
                    Some(_) => ("/valueFrom/configMapKeyRef", "config map", "of"),
                    None => ("/valueFrom/secretKeyRef", "secret", "in"),
                };
                let (key, holder) = (text(variable, &format!("{place}/key")), text(variable, &format!("{place}/name")));
                page.line(
                    level + 1,
                    format!(
                        "{name}:\t<set to the key '{key}' {within} {what} '{holder}'>\tOptional: {}",
                        optional(place)
                    ),
                );
            }
        }
    }
}

fn mounts(page: &mut Page, level: usize, container: &Value) {
    let mut mounts: Vec<&Value> = list(container, "/volumeMounts").iter().collect();
    if mounts.is_empty() {
        page.field(level, "Mounts", "<none>");
        return;
    }
    mounts.sort_by_key(|mount| text(mount, "/mountPath"));
    page.line(level, "Mounts:");
    for mount in mounts {
        let mut flags = vec![if mount["readOnly"] == true { "ro".to_owned() } else { "rw".to_owned() }];
        if !text(mount, "/subPath").is_empty() {
            flags.push(format!("path={:?}", text(mount, "/subPath")));
        }
        page.line(
            level + 1,
            format!("{} from {} ({})", text(mount, "/mountPath"), text(mount, "/name"), flags.join(",")),
        );
    }
}

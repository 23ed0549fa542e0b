//! Containers, in pods and in pod templates.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::Value;

use super::super::jsonpath::go_text;
use super::amounts;
use super::{Page, fields, is_true, list, number, or_none, text, time};

/// How far the fields of a container or a volume are indented, wherever its heading stands.
pub const INNER: usize = 2;

/// A heading and the containers below it, with what is known of each. `space` indents heading and names a little more:
/// those of a template do not stand at the margin.
pub struct Containers<'a> {
    pub heading: &'a str,
    pub specs: &'a [Value],
    pub statuses: &'a [Value],
    /// The pod that they are part of; a template has none.
    pub pod: Option<&'a Value>,
}

impl Containers<'_> {
    pub fn print(&self, page: &mut Page) {
        let (level, space) = if self.pod.is_some() { (0, "") } else { (1, " ") };
        let none = if self.specs.is_empty() { " <none>" } else { "" };
        page.line(level, format!("{}:{none}", self.heading));
        for container in self.specs {
            let name = text(container, "/name");
            page.line(1, format!("{space}{name}:"));
            let status = self.statuses.iter().find(|status| text(status, "/name") == name);
            one(page, container, status, self.pod);
        }
    }
}

fn one(page: &mut Page, container: &Value, status: Option<&Value>, pod: Option<&Value>) {
    if let Some(status) = status {
        page.field(INNER, "Container ID", text(status, "/containerID"));
    }
    page.field(INNER, "Image", text(container, "/image"));
    if let Some(status) = status {
        page.field(INNER, "Image ID", text(status, "/imageID"));
    }
    ports(page, INNER, list(container, "/ports"));
    seccomp_profile(page, INNER, INNER + 1, container);
    words(page, INNER, "Command", list(container, "/command"));
    words(page, INNER, "Args", list(container, "/args"));
    if let Some(status) = status {
        states(page, INNER, status);
    }
    resources(page, INNER, container.get("resources").unwrap_or(&Value::Null));
    for (field, name) in
        [("/livenessProbe", "Liveness"), ("/readinessProbe", "Readiness"), ("/startupProbe", "Startup")]
    {
        if let Some(probe) = container.pointer(field) {
            page.field(INNER, name, described_probe(probe));
        }
    }
    environment(page, INNER, container, pod);
    mounts(page, INNER, container);
}

/// The profile in the security context of a pod or a container.
pub fn seccomp_profile(page: &mut Page, level: usize, level_of_local: usize, of: &Value) {
    let type_ = text(of, "/securityContext/seccompProfile/type");
    if !type_.is_empty() {
        page.field(level, "SeccompProfile", type_);
    }
    if type_ == "Localhost" {
        let profile = text(of, "/securityContext/seccompProfile/localhostProfile");
        page.field(level_of_local, "LocalhostProfile", profile);
    }
}

/// `Limits:` and `Requests:`, of a container or of a pod.
pub fn resources(page: &mut Page, level: usize, resources: &Value) {
    for (field, name) in [("/limits", "Limits"), ("/requests", "Requests")] {
        let mut amounts = fields(resources, field).peekable();
        if amounts.peek().is_some() {
            page.line(level, format!("{name}:"));
        }
        amounts.for_each(|(resource, amount)| page.field(level + 1, resource, go_text(amount)));
    }
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
    if status.pointer("/lastState/terminated").is_some() {
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
        let port = get.get("port").map(go_text).unwrap_or_default();
        format!("http-get {}", url(text(get, "/scheme"), text(get, "/host"), &port, text(get, "/path")))
    } else if let Some(socket) = probe.get("tcpSocket") {
        format!("tcp-socket {}:{}", text(socket, "/host"), socket.get("port").map(go_text).unwrap_or_default())
    } else if let Some(grpc) = probe.get("grpc") {
        format!("grpc <pod>:{} {}", number(grpc, "/port"), text(grpc, "/service"))
    } else {
        "unknown".to_owned()
    };
    format!("{action} {timing}")
}

/// As Go writes a URL: what is no letter of a path is escaped, and a path begins with a slash.
fn url(scheme: &str, host: &str, port: &str, path: &str) -> String {
    const PATH: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'%').add(b'<').add(b'>').add(b'?').add(b'#');
    const PATH_TOO: &AsciiSet = &PATH.add(b'[').add(b']').add(b'^').add(b'`').add(b'{').add(b'}').add(b'|').add(b'\\');
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let slash = if path.is_empty() || path.starts_with('/') { "" } else { "/" };
    let scheme = if scheme.is_empty() { String::new() } else { format!("{}:", scheme.to_lowercase()) };
    format!("{scheme}//{host}:{port}{slash}{}", utf8_percent_encode(path, PATH_TOO))
}

fn environment(page: &mut Page, level: usize, container: &Value, pod: Option<&Value>) {
    let sources = list(container, "/envFrom");
    if !sources.is_empty() {
        page.line(level, "Environment Variables from:");
        sources.iter().for_each(|source| page.line(level + 1, source_line(source)));
    }
    let variables = list(container, "/env");
    if variables.is_empty() {
        page.field(level, "Environment", "<none>");
        return;
    }
    page.line(level, "Environment:");
    for variable in variables {
        let name = text(variable, "/name");
        match variable.get("valueFrom").filter(|from| from.is_object()) {
            None => page.lines(level + 1, name, text(variable, "/value").split('\n').map(str::to_owned)),
            Some(from) => {
                if let Some(value) = value_from(from, container, pod) {
                    page.field(level + 1, name, value);
                }
            }
        }
    }
}

/// `settings  ConfigMap with prefix 'APP_'  Optional: false`
fn source_line(source: &Value) -> String {
    let (sort, holder) = match (source.get("configMapRef"), source.get("secretRef")) {
        (Some(holder), _) => ("ConfigMap", holder),
        (None, Some(holder)) => ("Secret", holder),
        (None, None) => ("", &Value::Null),
    };
    let prefix = match text(source, "/prefix") {
        "" => String::new(),
        prefix => format!(" with prefix '{prefix}'"),
    };
    format!("{}\t{sort}{prefix}\tOptional: {}", text(holder, "/name"), is_true(holder, "/optional"))
}

/// What a variable takes its value from, and the value if it can be told.
fn value_from(from: &Value, container: &Value, pod: Option<&Value>) -> Option<String> {
    let key = |reference: &Value| (text(reference, "/key").to_owned(), text(reference, "/name").to_owned());
    if let Some(field) = from.get("fieldRef") {
        let path = text(field, "/fieldPath");
        let value = pod.map(|pod| field_of_pod(pod, path)).unwrap_or_default();
        Some(format!("{value} ({}:{path})", text(field, "/apiVersion")))
    } else if let Some(field) = from.get("resourceFieldRef") {
        let resource = text(field, "/resource");
        let value = match amounts::resource_field(container, field) {
            Some(0) if matches!(resource, "limits.cpu" | "limits.memory") => "node allocatable".to_owned(),
            amount => amount.map(|amount| amount.to_string()).unwrap_or_default(),
        };
        Some(format!("{value} ({resource})"))
    } else if let Some(secret) = from.get("secretKeyRef") {
        let (key, name) = key(secret);
        Some(format!("<set to the key '{key}' in secret '{name}'>\tOptional: {}", is_true(secret, "/optional")))
    } else if let Some(map) = from.get("configMapKeyRef") {
        let (key, name) = key(map);
        Some(format!("<set to the key '{key}' of config map '{name}'>\tOptional: {}", is_true(map, "/optional")))
    } else {
        None
    }
}

/// Fields of the metadata; those of spec and status are not told.
fn field_of_pod(pod: &Value, path: &str) -> String {
    let all = |field: &str| {
        let pairs = fields(pod, field).map(|(key, value)| format!("{key}={:?}", go_text(value)));
        pairs.collect::<Vec<_>>().join("\n")
    };
    let one = |field: &str, key: &str| pod.pointer(field).and_then(|map| map[key].as_str()).unwrap_or_default().into();
    if let Some((map, key)) = path.strip_suffix("']").and_then(|path| path.split_once("['")) {
        return match map {
            "metadata.labels" => one("/metadata/labels", key),
            "metadata.annotations" => one("/metadata/annotations", key),
            _ => String::new(),
        };
    }
    match path {
        "metadata.labels" => all("/metadata/labels"),
        "metadata.annotations" => all("/metadata/annotations"),
        "metadata.name" | "metadata.namespace" | "metadata.uid" => {
            text(pod, &format!("/{}", path.replace('.', "/"))).to_owned()
        }
        _ => String::new(),
    }
}

fn mounts(page: &mut Page, level: usize, container: &Value) {
    let mut mounts: Vec<&Value> = list(container, "/volumeMounts").iter().collect();
    mounts.sort_by_key(|mount| text(mount, "/mountPath"));
    let none = if mounts.is_empty() { "\t<none>" } else { "" };
    page.line(level, format!("Mounts:{none}"));
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
    let mut devices: Vec<&Value> = list(container, "/volumeDevices").iter().collect();
    devices.sort_by_key(|device| text(device, "/devicePath"));
    if !devices.is_empty() {
        page.line(level, format!("Devices:{none}"));
    }
    for device in devices {
        page.line(level + 1, format!("{} from {}", text(device, "/devicePath"), text(device, "/name")));
    }
}

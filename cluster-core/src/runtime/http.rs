//! What a container's program answers on a port.

use std::net::Ipv4Addr;
use std::time::Duration;

use super::Runtime;
use super::container::{Container, Handle};
use super::programs::{Handler, Site};
use super::shell::input::{Output, Stream};
use crate::clock::Time;
use crate::network::url::parameter;

/// An answer over HTTP.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub status: u16,
    pub body: String,
    /// How long it lets wait.
    pub took: Duration,
}

impl Answer {
    fn new(status: u16, body: impl Into<String>) -> Answer {
        Answer { status, body: body.into(), took: Duration::ZERO }
    }
}

/// Nobody listens on that port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

impl Runtime {
    /// The running container of a pod address that listens on a port.
    pub fn listener(&self, ip: &str, port: u16) -> Option<(Handle, &Container)> {
        let sandbox = self.sandboxes().find(|sandbox| sandbox.ready && *sandbox.ip == *ip)?;
        self.containers().find(|(_, c)| c.identity.pod_uid == sandbox.pod_uid && c.listens_on(port))
    }

    /// Sends a GET to an address.
    pub fn http(&self, ip: &str, port: u16, path: &str) -> Result<Answer, Refused> {
        self.listener(ip, port).ok_or(Refused)?.1.http(port, path)
    }
}

impl Runtime {
    /// Lets a program print what it prints about a request.
    pub fn log_request(&mut self, handle: Handle, path: &str, now: Time) {
        if let Some(container) = self.container_mut(handle)
            && let Some(line) = container.noted(path, now)
        {
            container.log(now, Output(vec![(Stream::Error, format!("{line}\n"))]));
        }
    }
}

impl Container {
    /// True if a connection to this port is accepted.
    pub fn listens_on(&self, port: u16) -> bool {
        if !self.is_running() {
            return false;
        }
        match self.process.site() {
            None => false,
            Some((ports, site)) => {
                let declared = matches!(site, Site::Anything | Site::Netexec);
                ports.contains(&port)
                    || declared && (self.ports.contains(&port) || ports.is_empty() && self.ports.is_empty())
            }
        }
    }

    /// True if what answers on its ports speaks TLS.
    pub fn speaks_tls(&self) -> bool {
        matches!(self.process.site(), Some((_, Site::Reviews(_))))
    }

    /// It is agnhost's netexec, which does some things that a container alone can't.
    pub fn is_netexec(&self) -> bool {
        matches!(self.process.site(), Some((_, Site::Netexec)))
    }

    /// Sends a GET to this container, from its own machine.
    pub fn http(&self, port: u16, path: &str) -> Result<Answer, Refused> {
        self.http_from(port, path, None)
    }

    /// Sends a GET to this container, over TLS if it speaks that.
    pub fn http_from(&self, port: u16, path: &str, from: Option<Ipv4Addr>) -> Result<Answer, Refused> {
        if !self.listens_on(port) {
            return Err(Refused);
        }
        if !self.healthy {
            return Ok(Answer::new(503, "unhealthy\n"));
        }
        Ok(match self.process.site() {
            Some((_, Site::Documents { root })) => self.document(root, path.split('?').next().unwrap_or_default()),
            Some((_, Site::Files)) => self.browse(path.split('?').next().unwrap_or_default()),
            Some((_, Site::Handlers(handlers))) => self.handle(handlers, port, path),
            Some((_, Site::Netexec)) => netexec(path, &self.hostname, from),
            Some((_, site)) => answer(site, path, &self.hostname),
            None => answer(&Site::NotHttp, path, &self.hostname),
        })
    }

    /// What its program prints about a request.
    pub(super) fn noted(&self, path: &str, now: Time) -> Option<String> {
        let stamp = now.timestamp().strftime("%Y/%m/%d %H:%M:%S");
        self.is_netexec().then(|| format!("{stamp} GET {path}"))
    }

    /// A file below the root of the documents; a folder means its index, which may not be listed without one.
    fn document(&self, root: &str, place: &str) -> Answer {
        let is_folder = place.is_empty() || place.ends_with('/');
        let path = format!("{root}/{}{}", place.trim_start_matches('/'), if is_folder { "index.html" } else { "" });
        match self.files.read(&path) {
            Some(body) => Answer::new(200, body),
            None if is_folder && self.files.is_folder(&format!("{root}/{place}")) => {
                Answer::new(403, "403 Forbidden\n")
            }
            None => Answer::new(404, "404 Not Found\n"),
        }
    }

    /// As Go's file server answers: a folder without an index is listed. <https://pkg.go.dev/net/http#FileServer>
    fn browse(&self, place: &str) -> Answer {
        let found = self.document("", place);
        match found.status {
            403 => {
                let names = self.files.list(place).into_iter().map(|(name, _)| name);
                let shown =
                    names.map(|name| if self.files.is_folder(&format!("{place}/{name}")) { name + "/" } else { name });
                let rows: String = shown.map(|name| format!("<a href=\"{name}\">{name}</a>\n")).collect();
                let head = "<!doctype html>\n<meta name=\"viewport\" content=\"width=device-width\">\n";
                Answer::new(200, format!("{head}<pre>\n{rows}</pre>\n"))
            }
            _ => found,
        }
    }

    /// The handler of the longest path that leads to the place.
    fn handle(&self, handlers: &[Handler], port: u16, path: &str) -> Answer {
        let place = path.split('?').next().unwrap_or_default();
        let leads = |handler: &&Handler| {
            let rest = place.strip_prefix(handler.path.trim_end_matches('/'));
            handler.port == port && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let Some(handler) = handlers.iter().filter(leads).max_by_key(|handler| handler.path.len()) else {
            return Answer::new(404, "404 Not Found\n");
        };
        let answer = if self.process.age() < handler.after {
            Answer::new(503, "not yet\n")
        } else {
            let own = || format!("Hello from {}\n", self.hostname);
            Answer::new(handler.status, handler.body.clone().unwrap_or_else(own))
        };
        Answer { took: handler.delay, ..answer }
    }
}

/// Where a client's connection comes from, as far as nobody asks for more than that there is one.
const CLIENT_PORT: u16 = 40000;

/// <https://github.com/kubernetes/kubernetes/tree/master/test/images/agnhost#netexec>
fn netexec(path: &str, host: &str, from: Option<Ipv4Addr>) -> Answer {
    let (place, query) = path.split_once('?').unwrap_or((path, ""));
    let ok = |body: String| Answer::new(200, body);
    match place {
        "/hostname" | "/hostName" => ok(host.into()),
        "/clientip" => ok(format!("{}:{CLIENT_PORT}", from.unwrap_or(Ipv4Addr::LOCALHOST))),
        "/healthz" => ok(String::new()),
        "/echo" => {
            let status = parameter(query, "code").and_then(|code| code.parse().ok()).unwrap_or(200);
            Answer::new(status, parameter(query, "msg").unwrap_or_default())
        }
        "/redirect" => Answer::new(parameter(query, "code").and_then(|code| code.parse().ok()).unwrap_or(302), ""),
        // The network does the rest of these.
        "/dial" | "/shell" | "/exit" | "/shutdown" => ok(String::new()),
        _ => ok(format!("NOW: {host}")),
    }
}

fn answer(site: &Site, path: &str, host: &str) -> Answer {
    let place = path.split('?').next().unwrap_or_default();
    let ok = |body: String| Answer::new(200, body);
    match site {
        Site::Anything => ok(format!("Hello from {host}\n")),
        Site::Hostname => ok(host.into()),
        Site::Reviews(_) => ok(if place == "/readyz" { "ok".into() } else { String::new() }),
        Site::Documents { .. } | Site::Netexec | Site::Files | Site::Handlers(_) => Answer::new(404, "404 Not Found\n"),
        // A reply that is no HTTP.
        Site::NotHttp => Answer::new(0, ""),
    }
}

//! What a container's program answers on a port.

use super::Runtime;
use super::container::{Container, Handle};
use super::programs::Site;

/// An answer over HTTP.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub status: u16,
    pub body: String,
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

impl Container {
    /// True if a connection to this port is accepted.
    pub fn listens_on(&self, port: u16) -> bool {
        if !self.is_running() {
            return false;
        }
        match self.process.site() {
            None => false,
            Some((ports, site)) => {
                let declared = site == Site::Anything || site == Site::Netexec;
                ports.contains(&port)
                    || declared && (self.ports.contains(&port) || ports.is_empty() && self.ports.is_empty())
            }
        }
    }

    /// Sends a GET to this container.
    pub fn http(&self, port: u16, path: &str) -> Result<Answer, Refused> {
        if !self.listens_on(port) {
            return Err(Refused);
        }
        if !self.healthy {
            return Ok(Answer { status: 503, body: "unhealthy\n".into() });
        }
        let site = self.process.site().map_or(Site::NotHttp, |(_, site)| site);
        if let Site::Page { root, .. } = site
            && self.mounts.iter().any(|mount| mount.path == root)
        {
            return Ok(self.document(root, path.split('?').next().unwrap_or_default()));
        }
        Ok(answer(site, path, &self.hostname))
    }

    /// A file below the root of the documents; a folder means its index, which may not be listed without one.
    fn document(&self, root: &str, place: &str) -> Answer {
        let is_folder = place.is_empty() || place.ends_with('/');
        let path = format!("{root}/{}{}", place.trim_start_matches('/'), if is_folder { "index.html" } else { "" });
        match self.files.read(&path) {
            Some(body) => Answer { status: 200, body: body.to_owned() },
            None if is_folder => Answer { status: 403, body: "403 Forbidden\n".into() },
            None => Answer { status: 404, body: "404 Not Found\n".into() },
        }
    }
}

fn answer(site: Site, path: &str, host: &str) -> Answer {
    let (place, query) = path.split_once('?').unwrap_or((path, ""));
    let ok = |body: String| Answer { status: 200, body };
    match site {
        Site::Page { index, .. } if matches!(place, "" | "/" | "/index.html") => ok(index.into()),
        Site::Netexec if place == "/hostname" => ok(host.into()),
        Site::Netexec if matches!(place, "/" | "/healthz" | "/clientip") => ok(format!("NOW: {host}")),
        Site::Netexec if place == "/echo" => ok(query.strip_prefix("msg=").unwrap_or_default().into()),
        Site::Anything => ok(format!("Hello from {host}\n")),
        Site::Page { .. } | Site::Netexec => Answer { status: 404, body: "404 Not Found\n".into() },
        // A reply that is no HTTP.
        Site::NotHttp => Answer { status: 0, body: String::new() },
    }
}

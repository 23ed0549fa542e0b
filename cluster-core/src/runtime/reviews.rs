//! Programs that an apiserver asks: it can reach them as long as they run.

use std::net::Ipv4Addr;
use std::sync::Arc;

use super::Runtime;
use super::agnhost::Reviewer;
use super::container::{Container, Handle};
use super::programs::Site;
use crate::listeners::Listener;
use crate::world::World;

impl Runtime {
    pub(super) fn open_to_reviews(&self, handle: Handle, world: &mut World) {
        let Some(((container, reviewer), address)) = self.reviewer(handle).zip(self.review_address(handle)) else {
            return;
        };
        let certificate = container.files().read(&reviewer.certificate).unwrap_or_default().into();
        let listener = Listener { machine: self.machine.clone(), certificate, program: reviewer.clone() };
        world.listeners().open(address, listener);
    }

    pub(super) fn close_to_reviews(&self, handle: Handle, world: &mut World) {
        if let Some(address) = self.review_address(handle) {
            world.listeners().close(address);
        }
    }

    fn reviewer(&self, handle: Handle) -> Option<(&Container, &Arc<Reviewer>)> {
        let container = self.container(handle).filter(|container| container.is_running())?;
        match container.process.site()? {
            (_, Site::Reviews(reviewer)) => Some((container, reviewer)),
            _ => None,
        }
    }

    fn review_address(&self, handle: Handle) -> Option<(Ipv4Addr, u16)> {
        let (container, _) = self.reviewer(handle)?;
        let (ports, _) = container.process.site()?;
        let sandbox = self.sandbox(&container.identity.pod_uid)?;
        Some((sandbox.ip.parse().ok()?, *ports.first()?))
    }
}

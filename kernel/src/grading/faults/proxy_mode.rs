//! `proxy-mode: ipvs`: all kube-proxies work in this mode.

use cluster_core::Cluster;
use serde::Deserialize;

use super::Fault;
use crate::controls::PROXY_MODES;
use crate::grading::words::Words;

#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct ProxyMode {
    mode: String,
}

impl Fault for ProxyMode {
    fn strike(&self, cluster: &mut Cluster) -> Result<(), Words> {
        let mode = PROXY_MODES.into_iter().find(|mode| mode.as_str() == self.mode);
        let mode = mode.ok_or_else(|| Words::same(format!("kube-proxy: {}?", self.mode)))?;
        cluster.set_proxy_mode(mode);
        Ok(())
    }

    fn words(&self) -> Words {
        let mode = &self.mode;
        Words::new(format!("kube-proxyを {mode} に切り替えた"), format!("switching kube-proxies to {mode}"))
    }
}

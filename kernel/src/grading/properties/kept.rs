//! `kept: [pod/web]`: these objects are still the ones that were there when the exercise began, not others of their names.

use cluster_core::Cluster;
use cluster_core::api::object::Object;
use serde::Deserialize;

use super::Property;
use crate::grading::objects::ObjectName;
use crate::grading::words::Words;

#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct Kept {
    objects: Vec<ObjectName>,
}

impl Property for Kept {
    fn look(&self, cluster: &mut Cluster, start: &Cluster) -> Result<(), Words> {
        for name in &self.objects {
            let Some(now) = name.find(cluster) else { return Err(name.gone()) };
            if name.find(start).map(Object::uid) != Some(now.uid()) {
                let (ja, en) = (format!("{name} は作り直されている"), format!("{name} was made anew"));
                return Err(Words::new(ja, en));
            }
        }
        Ok(())
    }
}

//! The commonest cell: a Deployment of three, run until it has settled, then its picture.

use serde_json::{Map, Value, json};

use super::{Nowhere, median, milliseconds, timed};
use crate::session::Session;
use crate::settings::Settings;

const RUNS: usize = 40;

const MANIFEST: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 3
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - name: web
        image: nginx:1.27
";

pub fn run() -> Result<Map<String, Value>, String> {
    let mut walls = Vec::new();
    for seed in 0..RUNS as u64 {
        let mut session = Session::with(Settings { seed, ..Settings::default() });
        let (result, wall) = timed(|| {
            session.execute(MANIFEST, &mut Nowhere)?;
            session.execute("%plot desired deployment/web", &mut Nowhere)
        });
        result.map_err(|error| error.evalue)?;
        walls.push(wall);
    }
    let slowest = walls.iter().max().copied().unwrap_or_default();
    Ok(Map::from_iter([
        ("wall_ms".into(), milliseconds(median(walls))),
        ("slowest_ms".into(), milliseconds(slowest)),
        ("runs".into(), json!(RUNS)),
    ]))
}

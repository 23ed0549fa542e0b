//! A session as the cells that have made it: written to a file, and lived through again. The same cells with the same
//! seed make the same clusters, so nothing else needs to be kept.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Pace, Session};
use crate::output::{CellError, Output, Sink};
use crate::settings::{Language, Settings};

/// A cell that was run; empty for one that went back, which leaves nothing to live through.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Past {
    /// Virtual time that had passed since the last cell, if the cluster followed the wall clock.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub waited_micros: u64,
    /// Its id in the notebook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<String>,
    pub code: String,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What stands in the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Saved {
    /// The version of the program that wrote it.
    kernetes: String,
    seed: u64,
    nodes: usize,
    cells: Vec<Past>,
    /// Where that leads: virtual time in microseconds, and etcd's revision.
    time_micros: u64,
    revision: u64,
}

/// Where a replay has led.
pub struct Replayed {
    pub cells: usize,
    /// The virtual time and the revision that the file promised, if it led elsewhere.
    pub promised: Option<(cluster_core::clock::Time, u64)>,
}

/// Lets cells speak to nobody, and be interrupted all the same.
struct Silent<'a> {
    outer: &'a dyn Sink,
    cell: Option<String>,
}

impl Sink for Silent<'_> {
    fn put(&mut self, _: Output) {}

    fn interrupted(&self) -> bool {
        self.outer.interrupted()
    }

    fn cell(&self) -> Option<&str> {
        self.cell.as_deref()
    }
}

impl Session {
    /// The session so far, without the running cell, as the text of a file; `None` while the past is being lived through.
    pub fn saved(&self) -> Option<String> {
        let (_, cells) = self.past.split_last().filter(|_| !self.replaying)?;
        let before = self.checkpoints.last().map(|running| &running.present.cluster)?;
        let saved = Saved {
            kernetes: env!("CARGO_PKG_VERSION").into(),
            seed: self.settings.seed,
            nodes: self.settings.nodes,
            cells: cells.iter().filter(|past| !past.code.is_empty()).cloned().collect(),
            time_micros: before.now().as_micros(),
            revision: before.revision(),
        };
        serde_json::to_string_pretty(&saved).ok().map(|text| text + "\n")
    }

    /// Makes everything anew as a file tells it. What was before stays if the file can't be read, or the person
    /// interrupts; `None` while the past is being lived through.
    pub fn replay(&mut self, text: &str, sink: &mut dyn Sink) -> Result<Option<Replayed>, CellError> {
        if self.replaying {
            return Ok(None);
        }
        let saved: Saved = serde_json::from_str(text).map_err(|error| {
            let message = match self.language() {
                Language::Ja => format!("%save で書いたファイルではありません: {error}"),
                Language::En => format!("this is not what %save writes: {error}"),
            };
            CellError::new("BadFile", message)
        })?;
        let settings = Settings { seed: saved.seed, nodes: saved.nodes, ..self.settings.clone() };
        let mut before = std::mem::replace(self, Session::with(settings));
        // What is not of the clusters goes on.
        std::mem::swap(&mut self.files, &mut before.files);
        std::mem::swap(&mut self.rust, &mut before.rust);
        self.replaying = true;
        let interrupted = saved.cells.iter().any(|past| !self.relive(past, sink));
        self.replaying = false;
        self.past.push(Past::default());
        if interrupted {
            std::mem::swap(&mut self.files, &mut before.files);
            std::mem::swap(&mut self.rust, &mut before.rust);
            *self = before;
            return Err(self.interrupted());
        }
        self.pace = Pace::Settling;
        self.progress = std::mem::take(&mut before.progress);
        self.settings.language = before.settings.language;
        let reached = (self.cluster.now().as_micros(), self.cluster.revision());
        let promised = (saved.time_micros, saved.revision);
        Ok(Some(Replayed {
            cells: saved.cells.len(),
            promised: (reached != promised).then(|| (cluster_core::clock::Time::from_micros(promised.0), promised.1)),
        }))
    }

    /// Runs a cell again; false if the person interrupts. A cell that failed fails again.
    fn relive(&mut self, past: &Past, sink: &dyn Sink) -> bool {
        let mut silent = Silent { outer: sink, cell: past.cell.clone() };
        let waited = match past.waited_micros {
            0 => true,
            micros => self.advance(Duration::from_micros(micros), &mut silent).is_ok(),
        };
        // Time that passed by a wall clock is told by the file.
        let pace = self.pace;
        if let Pace::Live { .. } = pace {
            self.pace = Pace::Paused;
        }
        let _ = self.execute(&past.code, &mut silent);
        if let Some(last) = self.past.last_mut() {
            last.waited_micros = past.waited_micros;
        }
        waited && !silent.interrupted()
    }
}

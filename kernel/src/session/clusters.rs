//! Back and aside: earlier moments of the clusters, and other clusters beside the present one.

use cluster_core::Cluster;

use super::replay::Past;
use super::{Checkpoint, Fork, Session};
use crate::output::CellError;
use crate::settings::Language;

impl Session {
    /// Goes back to before the last `cells` cells (the running one not counted), and says what that undoes.
    pub fn rewind(&mut self, cells: usize) -> Result<String, CellError> {
        let (first, possible) = self.undone(cells)?;
        let mut undone = self.checkpoints.split_off(first);
        undone.truncate(possible - first);
        let (from, to) = (self.cluster.now(), undone[0].present.cluster.now());
        let (revision, before) = (self.cluster.revision(), undone[0].present.cluster.revision());
        let text = match self.language() {
            Language::Ja => {
                format!("{from} から {to} に戻りました（リビジョン {revision} → {before}）。取り消したセル:\n")
            }
            Language::En => format!("back from {from} to {to} (revision {revision} → {before}); undone cells:\n"),
        };
        let text = text + &first_lines(&undone);
        if let Some(first) = undone.into_iter().next() {
            self.past.truncate(first.past);
            self.past.push(Past::default());
            self.forks.extend(first.forks);
            self.forks.remove(&first.name);
            self.name = first.name;
            self.enter(first.present);
        }
        Ok(text)
    }

    /// What going back would undo: the words about it, and the cluster that would be the present one.
    pub fn would_undo(&self, cells: usize) -> Result<(String, &Cluster), CellError> {
        let (first, possible) = self.undone(cells)?;
        let undone = &self.checkpoints[first..possible];
        let first = &self.checkpoints[first].present.cluster;
        let (from, to) = (self.cluster.now(), first.now());
        let (revision, before) = (self.cluster.revision(), first.revision());
        let text = match self.language() {
            Language::Ja => {
                format!("{from} から {to} に戻ると（リビジョン {revision} → {before}）、取り消されるセル:\n")
            }
            Language::En => format!("going back from {from} to {to} (revision {revision} → {before}) would undo:\n"),
        };
        Ok((text + &first_lines(undone), first))
    }

    /// The index of the first of the last `cells` checkpoints, and how many there are, the running cell's not counted.
    fn undone(&self, cells: usize) -> Result<(usize, usize), CellError> {
        // The cell that asks has a checkpoint, too, unless it has just gone elsewhere.
        let is_running = self.checkpoints.last().is_some_and(|last| last.past + 1 == self.past.len());
        let possible = self.checkpoints.len() - usize::from(is_running);
        match possible.checked_sub(cells).filter(|_| cells > 0) {
            Some(first) => Ok((first, possible)),
            None => Err(CellError::new(
                "CannotRewind",
                match self.language() {
                    Language::Ja => format!("戻せるのは1から{possible}セルまでです"),
                    Language::En => format!("between 1 and {possible} cells can be undone"),
                },
            )),
        }
    }

    pub(super) fn present(&self) -> Fork {
        Fork { cluster: self.cluster.clone(), applied: self.applied.clone(), kubeconfig: self.kubeconfig.clone() }
    }

    /// Makes a cluster the present one; the one before is gone unless somebody keeps it.
    fn enter(&mut self, fork: Fork) -> Fork {
        let cluster = std::mem::replace(&mut self.cluster, fork.cluster);
        let applied = std::mem::replace(&mut self.applied, fork.applied);
        let kubeconfig = std::mem::replace(&mut self.kubeconfig, fork.kubeconfig);
        self.told = self.cluster.trace().next_sequence();
        Fork { cluster, applied, kubeconfig }
    }

    /// Keeps a copy of the present cluster.
    ///
    /// # Errors
    /// If that is the name of the present one.
    pub fn keep_fork(&mut self, name: &str) -> Result<(), CellError> {
        if name == self.name {
            let message = match self.language() {
                Language::Ja => format!("{name} はいまのクラスタの名前です"),
                Language::En => format!("{name} is the name of the present cluster"),
            };
            return Err(CellError::new("AlreadyExists", message));
        }
        self.forks.insert(name.to_owned(), self.present());
        Ok(())
    }

    /// The names of the other clusters.
    pub fn forks(&self) -> Vec<String> {
        self.forks.keys().cloned().collect()
    }

    /// All clusters by their names, the present one first.
    pub fn clusters(&self) -> impl Iterator<Item = (&str, &Cluster)> {
        let others = self.forks.iter().map(|(name, fork)| (name.as_str(), &fork.cluster));
        std::iter::once((self.name.as_str(), &self.cluster)).chain(others)
    }

    /// A cluster by its name.
    pub fn fork(&self, name: &str) -> Result<&Cluster, CellError> {
        let found = self.clusters().find(|(known, _)| *known == name);
        found.map(|(_, cluster)| cluster).ok_or_else(|| self.no_fork(name))
    }

    fn no_fork(&self, name: &str) -> CellError {
        let known = self.forks().join(", ");
        let message = match (self.language(), known.is_empty()) {
            (Language::Ja, true) => format!("{name} という写しはありません（%fork NAME で取っておけます）"),
            (Language::Ja, false) => format!("{name} という写しはありません（あるのは: {known}）"),
            (Language::En, true) => format!("there is no copy named {name} (%fork NAME keeps one)"),
            (Language::En, false) => format!("there is no copy named {name} (there are: {known})"),
        };
        CellError::new("NotFound", message)
    }

    /// Goes on in another cluster, and keeps the present one under its name.
    pub fn switch_to(&mut self, name: &str) -> Result<String, CellError> {
        if name != self.name {
            let next = self.forks.remove(name).ok_or_else(|| self.no_fork(name))?;
            let left = self.enter(next);
            let left_name = std::mem::replace(&mut self.name, name.to_owned());
            self.forks.insert(left_name, left);
        }
        let (at, other) = (self.cluster.now(), if name == "main" { "NAME" } else { "main" });
        Ok(match self.language() {
            Language::Ja => format!("いまは {name}（{at}）。元のクラスタは %switch {other} で\n"),
            Language::En => format!("now in {name} ({at}); %switch {other} for the one before\n"),
        })
    }

    /// Runs a cell in another cluster, and comes back.
    pub fn in_cluster<T>(
        &mut self,
        name: &str,
        code: &str,
        run: impl FnOnce(&mut Session) -> Result<T, CellError>,
    ) -> Result<T, CellError> {
        let (home, cell) = (self.name.clone(), self.cell);
        self.switch_to(name)?;
        self.begin(code);
        let result = run(self);
        // The cell may itself have gone elsewhere, or made its cluster anew.
        if self.name == name {
            self.switch_to(&home)?;
        }
        self.cell = cell;
        result
    }

    /// Looks at another cluster as if it were the present one.
    pub fn as_cluster<T>(&mut self, name: &str, look: impl FnOnce(&mut Session) -> T) -> Option<T> {
        let (home, told) = (self.name.clone(), self.told);
        self.switch_to(name).ok()?;
        let seen = look(self);
        self.switch_to(&home).ok()?;
        self.told = told;
        Some(seen)
    }
}

fn first_lines(cells: &[Checkpoint]) -> String {
    let line = |checkpoint: &Checkpoint| {
        let first = checkpoint.code.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        format!("  {first}\n")
    };
    cells.iter().map(line).collect()
}

//! What must hold of a controller in every schedule: one file a property, one line in [`ALL`].

pub mod confluent;
pub mod deletion;
pub mod few_writes;
pub mod guarded_deletes;
pub mod honest_status;
pub mod idempotent;
pub mod lets_go;
pub mod level_triggered;
pub mod no_hot_loop;
pub mod no_orphan;
pub mod observed_generation;
pub mod others_untouched;
pub mod quiescent;
pub mod replay;
pub mod safety;
pub mod stable;

use cluster_core::api::object::Object;
use cluster_core::controllers::controller::Write;
use cluster_core::trace::RequestEntry;

use super::lab::Lab;
use super::part::Run;
use crate::grading::words::Words;

/// A property that does not hold, and what is there instead.
#[derive(Clone, Debug, PartialEq)]
pub struct Broken {
    pub property: &'static str,
    pub found: Words,
}

pub trait Property: Sync {
    /// As reports and tests name it: `no-orphan`.
    fn name(&self) -> &'static str;

    /// What it demands, in a sentence.
    fn demands(&self) -> Words;

    /// Looked at after each write of a controller under test.
    fn on_write(&self, _: &Written<'_>) -> Result<(), Words> {
        Ok(())
    }

    /// Looked at when nothing is left to happen.
    fn at_rest(&self, _: &Rest<'_>) -> Result<(), Words> {
        Ok(())
    }
}

/// All properties. Of those that break at the same moment the first is told.
pub const ALL: &[&dyn Property] = &[
    &replay::Replay,
    &safety::Safety,
    &deletion::Deletion,
    &lets_go::LetsGo,
    &guarded_deletes::GuardedDeletes,
    &others_untouched::OthersUntouched,
    &honest_status::HonestStatus,
    &observed_generation::ObservedGeneration,
    &no_hot_loop::NoHotLoop,
    &level_triggered::LevelTriggered,
    &stable::Stable,
    &no_orphan::NoOrphan,
    &quiescent::Quiescent,
    &idempotent::Idempotent,
    &confluent::Confluent,
    &few_writes::FewWrites,
];

/// A write that was sent, and what it changed.
pub struct Written<'a> {
    /// After the write.
    pub lab: &'a Lab<'a>,
    /// Which controller sent it.
    pub part: usize,
    pub run: &'a Run,
    pub write: &'a Write,
    /// Nothing, if it was refused or changed nothing.
    pub commits: &'a [RequestEntry],
}

impl Written<'_> {
    /// The object that was reconciled, as the controller saw it.
    pub fn main(&self) -> Option<&Object> {
        let kind = self.lab.task.subjects[self.part].main()?;
        self.run.view.view(self.run.began).get_of(kind, &self.run.key)
    }

    /// The write is about the object that was reconciled.
    pub fn is_about_main(&self, commit: &RequestEntry) -> bool {
        let main = self.lab.task.subjects[self.part].main();
        main.is_some_and(|kind| kind.slot == commit.kind.slot) && commit.key == self.run.key
    }

    /// An object as the controller saw it.
    pub fn seen(&self, commit: &RequestEntry) -> Option<&Object> {
        self.run.view.view(self.run.began).get_of(&commit.kind, &commit.key)
    }
}

/// The end of a schedule.
pub struct Rest<'a> {
    pub lab: &'a Lab<'a>,
    /// After everything was looked at once more.
    pub resynced: &'a Lab<'a>,
    /// After the controllers were restarted once more.
    pub restarted: &'a Lab<'a>,
    /// What there is if nothing is late and nothing fails.
    pub usual_content: Option<u64>,
}

pub fn on_write(written: &Written<'_>) -> Result<(), Broken> {
    ALL.iter().try_for_each(|property| {
        property.on_write(written).map_err(|found| Broken { property: property.name(), found })
    })
}

pub fn at_rest(rest: &Rest<'_>) -> Result<(), Broken> {
    ALL.iter()
        .try_for_each(|property| property.at_rest(rest).map_err(|found| Broken { property: property.name(), found }))
}

/// `ConfigMap web`
fn named(object: &Object) -> String {
    format!("{} {}", object.kind.kind, object.key.name)
}

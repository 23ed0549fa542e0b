//! What can happen next: one choice of a schedule, with a name by which it can be stored and found again.

use cluster_core::api::{Key, Name};

use crate::grading::words::Words;

/// One step of a schedule. Parts are the controllers under test, by their place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// A watch delivers its next event to an informer.
    Hear { part: usize, kind: Name },
    /// The same, and the event comes once more.
    HearTwice { part: usize, kind: Name },
    /// The event is hidden, because a later one about the same object overwrites it.
    Skip { part: usize, kind: Name },
    /// The event is lost, until the informer lists anew.
    Lose { part: usize, kind: Name },
    /// A worker takes this key and reconciles it.
    Begin { part: usize, key: Key },
    /// The next write of the plan under way reaches the API server.
    Write { part: usize, outcome: Outcome },
    /// The controller's process ends here and starts again, with informers that list this.
    Restart { part: usize, list: FirstList },
    /// The controller's process ends here.
    Crash { part: usize },
    /// It starts.
    Start { part: usize },
    /// Time passes until this key comes back.
    Timer { part: usize, key: Key },
    /// Informers list everything anew.
    Relist { part: usize },
    /// What else runs in the cluster does all that it has to do.
    Settle,
    /// The next edit from outside.
    Edit,
}

/// What becomes of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    Done,
    /// 500, and nothing is written.
    Error,
    /// 409, and nothing is written.
    Conflict,
    /// It is written, and the answer is lost.
    LostAnswer,
}

/// What a controller that starts is told by its first list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FirstList {
    Now,
    /// An API server that lags: all kinds as they were after so many edits.
    AtEdit(usize),
    /// The same, but for its main kind alone.
    MainAtEdit(usize),
}

impl Action {
    /// Something goes wrong here, rather than only in another order.
    pub fn is_fault(&self) -> bool {
        match self {
            Action::HearTwice { .. } | Action::Lose { .. } => true,
            Action::Write { outcome, .. } => *outcome != Outcome::Done,
            _ => self.is_crash(),
        }
    }

    /// A controller's process ends.
    pub fn is_crash(&self) -> bool {
        matches!(self, Action::Restart { .. } | Action::Crash { .. })
    }
}

impl Action {
    /// What it is called where the controllers have these names. The English is what a schedule is stored as.
    pub fn words(&self, names: &[String]) -> Words {
        let who = |part: &usize| names.get(*part).map_or("?", String::as_str);
        let words = |part: &usize, ja: String, en: String| {
            Words::new(format!("{} {ja}", who(part)), format!("{} {en}", who(part)))
        };
        let listed = |list: &FirstList| match list {
            FirstList::Now => Words::default(),
            FirstList::AtEdit(edit) => Words::new(
                format!("。見えるのは操作{edit}のあとの古い一覧"),
                format!(" and sees the cluster as after edit {edit}"),
            ),
            FirstList::MainAtEdit(edit) => Words::new(
                format!("。主な種類だけは操作{edit}のあとの古い一覧"),
                format!(" and sees its main kind as after edit {edit}"),
            ),
        };
        match self {
            Action::Hear { part, kind } => words(part, format!("に {kind} の変化が届く"), format!("hears of a {kind}")),
            Action::HearTwice { part, kind } => words(
                part,
                format!("に {kind} の変化が届き、同じものがもう一度来る"),
                format!("hears of a {kind}, and will once more"),
            ),
            Action::Skip { part, kind } => words(
                part,
                format!("に {kind} の変化は届かない（次の変化で上書き）"),
                format!("never hears of a {kind}: it has changed again"),
            ),
            Action::Lose { part, kind } => words(
                part,
                format!("への {kind} の変化の知らせが失われる"),
                format!("misses an event about a {kind}, which is lost"),
            ),
            Action::Begin { part, key } => {
                words(part, format!("が {} を調整する", key.name), format!("reconciles {}", key.name))
            }
            Action::Write { part, outcome } => match outcome {
                Outcome::Done => words(part, "が書く".into(), "writes".into()),
                Outcome::Error => words(part, "の書き込みが失敗する（500）".into(), "writes, which fails (500)".into()),
                Outcome::Conflict => {
                    words(part, "の書き込みが断られる（409）".into(), "writes, which is refused (409)".into())
                }
                Outcome::LostAnswer => {
                    words(part, "が書くが、返事が失われる".into(), "writes, but the answer is lost".into())
                }
            },
            Action::Restart { part, list } => {
                let Words { ja, en } = listed(list);
                words(part, format!("が落ちて、再び始まる{ja}"), format!("crashes, starts again{en}"))
            }
            Action::Crash { part } => words(part, "が落ちる".into(), "crashes".into()),
            Action::Start { part } => words(part, "が始まる".into(), "starts".into()),
            Action::Timer { part, key } => words(
                part,
                format!("が {} をもう一度見る時刻になる", key.name),
                format!("is to look at {} again", key.name),
            ),
            Action::Relist { part } => words(part, "が一覧を取り直す".into(), "lists everything anew".into()),
            Action::Settle => Words::new("クラスタのほかのコントローラーが動く", "the cluster's own controllers act"),
            Action::Edit => Words::new("次の操作", "the next edit"),
        }
    }
}

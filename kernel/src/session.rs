//! A session owns the cluster and runs cells on it: the learner's lab.

mod clusters;
mod replay;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use cluster_core::api::Key;
use cluster_core::api::kind::KindRef;
use cluster_core::api::object::Object;
use cluster_core::clock::Time;
use cluster_core::cluster::Pause;
use cluster_core::trace::{RequestEntry, Sequence};
use cluster_core::{Cluster, Config};

use crate::away::Away;
use crate::commands::files::{Files, Folder};
use crate::commands::kubectl::config;
use crate::controls::lesson::Lesson;
use crate::language;
use crate::notebook;
use crate::output::{CellError, Completeness, Completion, MimeBundle, Output, Sink, text};
use crate::progress::Progress;
use crate::rust_cells::RustCells;
use crate::settings::{Language, Settings};
use crate::story;

/// How much virtual time a cell waits for the cluster to settle.
const SETTLE_SECONDS_MAX: u64 = 60;
/// How long a real cluster is waited for: until it first moves, and then until it moves no more.
const STIR: Duration = Duration::from_millis(400);
const QUIET: Duration = Duration::from_secs(2);
const GLANCE: Duration = Duration::from_millis(100);
/// Of the simulated cluster, named as kubeadm names them.
const KUBECONFIG: &str = "apiVersion: v1
kind: Config
clusters:
- name: kubernetes
  cluster: {server: 'https://10.0.0.1:6443'}
contexts:
- name: kubernetes-admin@kubernetes
  context: {cluster: kubernetes, user: kubernetes-admin}
current-context: kubernetes-admin@kubernetes
users:
- name: kubernetes-admin
  user: {}
";
/// A wait shows how far it is when it has been asked so often whether to go on. Not after a time by the wall clock:
/// whether there is a bar must not depend on how fast the machine is.
const PROGRESS_AFTER_ASKED: usize = 1000;
/// The bar moves so often.
const PROGRESS_PERIOD: Duration = Duration::from_millis(250);
/// A cell larger than this is refused before it is read (the API refuses objects beyond 3 MiB, too).
const CELL_BYTES_MAX: usize = 3 * 1024 * 1024;
/// A cluster that follows the wall clock catches up so much between two cells: a notebook can lie for days.
const CATCH_UP_MAX: Duration = Duration::from_secs(24 * 3600);
/// A person looks through so many names, and so many of each kind.
const NAMES_MAX: usize = 500;
const NAMES_OF_KIND_MAX: usize = 100;
/// So many cells can be undone.
const CHECKPOINTS_MAX: usize = 100;

pub struct Session {
    pub settings: Settings,
    /// The simulated cluster, or the mirror of the one that is `away`.
    pub cluster: Cluster,
    /// The real cluster that cells speak to.
    pub away: Option<Away>,
    /// The exercise that is under way.
    pub lesson: Option<Lesson>,
    pub rust: RustCells,
    /// Question and answer, in the order in which they were locked in.
    pub predictions: Vec<(String, String)>,
    /// What the learner has done, in this session and before.
    pub progress: Progress,
    /// What each manifest cell has applied, by the cell's id.
    pub applied: BTreeMap<String, Vec<(KindRef, Key)>>,
    /// What `kubectl config` shows and changes in a cell, as the text of a kubeconfig.
    pub kubeconfig: String,
    /// The folder in which commands find files.
    pub files: Box<dyn Files + Send>,
    /// What lets time pass.
    pub pace: Pace,
    /// The name of the present cluster; the others stand in `forks`.
    name: String,
    forks: BTreeMap<String, Fork>,
    checkpoints: Vec<Checkpoint>,
    /// The cells that have made the clusters what they are.
    past: Vec<replay::Past>,
    /// The past is being lived through again.
    replaying: bool,
    /// The trace entry of the cell that runs, and the moment at which it began.
    cell: (Sequence, Time),
    /// Everything before this entry has been told.
    told: Sequence,
}

/// A cluster that is not the present one, and what cells have applied to it.
#[derive(Clone)]
struct Fork {
    cluster: Cluster,
    applied: BTreeMap<String, Vec<(KindRef, Key)>>,
    kubeconfig: String,
}

/// All clusters as they were before a cell.
struct Checkpoint {
    code: String,
    name: String,
    present: Fork,
    forks: BTreeMap<String, Fork>,
    /// So many cells had been run.
    past: usize,
}

/// What lets virtual time pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Each cell, until things have settled.
    Settling,
    /// The wall clock, so many times as fast; cells wait for nothing.
    Live { speed: f64, since: Instant },
    /// Nothing but `%advance` and `%until`.
    Paused,
}

impl Default for Session {
    fn default() -> Self {
        Session::new()
    }
}

impl Session {
    /// A session in the language of the notebook that it is started for, or else of the locale.
    pub fn new() -> Self {
        let language = notebook::language_of_session().unwrap_or_else(Language::of_locale);
        let settings = Settings { language, interactive: true, ..Settings::default() };
        Session { progress: Progress::of_session(), ..Session::with(settings) }
    }

    pub fn with(settings: Settings) -> Self {
        let (cluster, _) = booted(&settings, |_| true);
        Session {
            told: cluster.trace().next_sequence(),
            cell: (0, cluster.now()),
            cluster,
            away: None,
            settings,
            lesson: None,
            rust: RustCells::new(),
            predictions: Vec::new(),
            progress: Progress::default(),
            applied: BTreeMap::new(),
            kubeconfig: KUBECONFIG.to_owned(),
            files: Box::new(Folder::new(".")),
            pace: Pace::Settling,
            name: "main".into(),
            forks: BTreeMap::new(),
            checkpoints: Vec::new(),
            past: Vec::new(),
            replaying: false,
        }
    }

    pub fn language(&self) -> Language {
        self.settings.language
    }

    /// Makes the cluster anew; the old one stays if the person interrupts that.
    pub fn reset(&mut self, settings: Settings, sink: &mut dyn Sink) -> Result<(), CellError> {
        let progress = self.bar(Duration::from_secs(SETTLE_SECONDS_MAX));
        let mut progress = Bar { start: Time::ZERO, ..progress };
        let (cluster, pause) = booted(&settings, |cluster| {
            progress.show(cluster.now(), sink);
            !sink.interrupted()
        });
        if let Some(id) = progress.id() {
            sink.put(Output::Update { data: text(""), id });
        }
        self.after_wait(pause)?;
        self.applied.clear();
        self.checkpoints.clear();
        // The cell that asked for it can be lived through again; what was before can't matter.
        self.past.drain(..self.past.len().saturating_sub(1));
        self.told = cluster.trace().next_sequence();
        self.cell = (0, cluster.now());
        self.cluster = cluster;
        self.settings = settings;
        Ok(())
    }

    /// Runs one cell; its outputs go to `sink` as they come.
    pub fn execute(&mut self, code: &str, sink: &mut dyn Sink) -> Result<(), CellError> {
        // A text that was pasted from an editor of Windows may begin with a byte order mark.
        let code = code.strip_prefix('\u{feff}').unwrap_or(code);
        if code.trim().is_empty() {
            return Ok(());
        }
        if code.len() > CELL_BYTES_MAX {
            let size = code.len() / 1024;
            let message = match self.language() {
                Language::Ja => format!("セルが大きすぎます（{size} KiB、3 MiB まで）"),
                Language::En => format!("the cell is too large ({size} KiB; at most 3 MiB)"),
            };
            return Err(CellError::new("TooLarge", message));
        }
        if let Some(away) = &mut self.away {
            away.take_in(&mut self.cluster, Duration::ZERO);
            away.remote.forget_kinds();
        }
        if self.checkpoints.len() >= CHECKPOINTS_MAX {
            self.checkpoints.remove(0);
        }
        self.checkpoints.push(Checkpoint {
            code: code.to_owned(),
            name: self.name.clone(),
            present: self.present(),
            forks: self.forks.clone(),
            past: self.past.len(),
        });
        let waited = self.catch_up(sink)?;
        // What was done to a real cluster is not lived through again.
        if self.away.is_none() {
            self.past.push(replay::Past {
                waited_micros: waited,
                cell: sink.cell().map(str::to_owned),
                code: code.into(),
            });
        }
        self.begin(code);
        language::of(code).run(code, self, sink)
    }

    /// That a cell may do what depends on the moment at which it is run: somebody sits before it, or a file tells how it went.
    /// `what` it wants to do, and what to do `instead`, in Japanese and English.
    pub fn unrepeatable(&self, what: (&str, &str), instead: (&str, &str)) -> Result<(), CellError> {
        if self.settings.interactive || self.replaying {
            return Ok(());
        }
        let message = match self.language() {
            Language::Ja => format!(
                "{}。再生されるノートブック（kernetes run、kernetes grade、レッスン）は何度実行しても同じ結果で\
                 なければなりません。代わりに: {}",
                what.0, instead.0
            ),
            Language::En => format!(
                "{}, and a notebook that is replayed (kernetes run, kernetes grade, the lessons) must come to the same each time; \
                 instead: {}",
                what.1, instead.1
            ),
        };
        Err(CellError::new("NotRepeatable", message))
    }

    /// Records a cell in the present cluster: the cause of what it asks for.
    fn begin(&mut self, code: &str) {
        let begun = self.cluster.now();
        let sequence = self.cluster.record_cell(code);
        self.cell = (sequence, begun);
        self.told = sequence + 1;
    }

    /// Lets pass what has passed by the wall clock since the last cell, if the cluster follows that; so many microseconds.
    fn catch_up(&mut self, sink: &mut dyn Sink) -> Result<u64, CellError> {
        let Pace::Live { speed, since } = self.pace else { return Ok(0) };
        if self.away.is_some() {
            self.pace = Pace::Live { speed, since: Instant::now() };
            return Ok(0);
        }
        let passed = since.elapsed().mul_f64(speed).min(CATCH_UP_MAX);
        let micros = u64::try_from(passed.as_micros()).unwrap_or(u64::MAX);
        self.cell.1 = self.cluster.now();
        let caught_up = if micros > 0 { self.advance(Duration::from_micros(micros), sink) } else { Ok(()) };
        self.pace = Pace::Live { speed, since: Instant::now() };
        caught_up.map(|()| micros)
    }

    /// The trace entry of the running cell: the cause of what it asks for.
    pub fn cell_sequence(&self) -> Sequence {
        self.cell.0
    }

    /// Lets time run until nothing but periodic work is left, for 60 virtual seconds at most; not if it passes otherwise.
    pub fn settle(&mut self, sink: &mut dyn Sink) -> Result<(), CellError> {
        if self.away.is_some() {
            return self.follow(Duration::from_secs(SETTLE_SECONDS_MAX), Some(STIR), sink);
        }
        if self.pace != Pace::Settling {
            self.tell(sink);
            return Ok(());
        }
        let mut progress = self.bar(Duration::from_secs(SETTLE_SECONDS_MAX));
        let pause = self.cluster.settle(Duration::from_secs(SETTLE_SECONDS_MAX), |cluster| {
            progress.show(cluster.now(), sink);
            !sink.interrupted()
        });
        self.tell_over(progress.id(), sink);
        self.after_wait(pause)
    }

    /// Lets this much virtual time pass, and says what happened.
    pub fn advance(&mut self, by: Duration, sink: &mut dyn Sink) -> Result<(), CellError> {
        if self.away.is_some() {
            return self.follow(by, None, sink);
        }
        let mut progress = self.bar(by);
        let pause = self.cluster.advance(by, |cluster| {
            progress.show(cluster.now(), sink);
            !sink.interrupted()
        });
        self.tell_over(progress.id(), sink);
        self.after_wait(pause)
    }

    fn bar(&self, limit: Duration) -> Bar {
        let id = format!("kernetes-progress-{}", self.cluster.trace().next_sequence());
        Bar { id, language: self.language(), start: self.cluster.now(), limit, asked: 0, shown: None }
    }

    fn after_wait(&self, pause: Pause) -> Result<(), CellError> {
        if pause == Pause::Interrupted { Err(self.interrupted()) } else { Ok(()) }
    }

    /// Says what happened since the last time.
    pub fn tell(&mut self, sink: &mut dyn Sink) {
        self.tell_over(None, sink);
    }

    /// The same, in the place of a progress bar if there is one: what is saved with the notebook must not depend on how
    /// fast the machine was.
    fn tell_over(&mut self, progress: Option<String>, sink: &mut dyn Sink) {
        let japanese = self.language().is_japanese();
        let story = story::tell(self.cluster.trace(), self.told, self.cell.1, japanese);
        self.told = self.cluster.trace().next_sequence();
        match progress {
            Some(id) => sink.put(Output::Update { data: text(story), id }),
            None if story.is_empty() => {}
            None => sink.put(Output::Display { data: text(story), id: None }),
        }
    }

    pub fn interrupted(&self) -> CellError {
        let at = self.cluster.now();
        let message = match self.language() {
            Language::Ja => format!("{at} で止めました。クラスタはそのまま使えます"),
            Language::En => format!("stopped at {at}; the cluster can be used as it is"),
        };
        CellError::new("Interrupted", message)
    }

    /// Runs a `%%rust` cell; controllers that it defines join the cluster.
    pub fn run_rust(&mut self, source: &str, sink: &mut dyn Sink) -> Result<(), CellError> {
        let controllers = self.rust.evaluate(source, sink)?;
        for controller in controllers {
            let kinds: Vec<KindRef> = self.cluster.kinds().cloned().collect();
            self.cluster.join(controller.client(kinds.iter())?);
        }
        let settled = self.settle(sink);
        self.rust.drain(sink);
        settled
    }

    pub fn complete(&mut self, code: &str, cursor: usize) -> Completion {
        let mut completion = language::of(code).complete(code, byte_offset(code, cursor), self);
        completion.start = code[..completion.start].chars().count();
        completion.end = code[..completion.end].chars().count();
        completion
    }

    pub fn inspect(&mut self, code: &str, cursor: usize) -> Option<MimeBundle> {
        language::of(code).inspect(code, byte_offset(code, cursor), self)
    }

    pub fn is_complete(&self, code: &str) -> Completeness {
        if code.trim().is_empty() { Completeness::Complete } else { language::of(code).is_complete(code) }
    }
}

/// To a real cluster, and back.
impl Session {
    /// From now on cells speak to another cluster, of which there is a mirror.
    pub fn go_away(&mut self, away: Away, mirror: Cluster) {
        self.arrive(mirror);
        self.kubeconfig.clone_from(&away.kubeconfig);
        self.away = Some(away);
        if let Some(running) = self.past.last_mut() {
            *running = replay::Past::default();
        }
    }

    /// Back to the simulated cluster, as it was left.
    pub fn come_back(&mut self) {
        if let Some(away) = self.away.take() {
            self.arrive(away.simulation);
            self.kubeconfig = KUBECONFIG.to_owned();
        }
    }

    /// Where objects are meant to be that name no namespace.
    pub fn namespace(&self) -> String {
        if self.kubeconfig == KUBECONFIG {
            return "default".to_owned();
        }
        config::namespace(&self.kubeconfig).unwrap_or_else(|| "default".to_owned())
    }

    /// Goes on in another cluster: nothing leads back to what cells did in the one before.
    pub fn arrive(&mut self, cluster: Cluster) {
        self.applied.clear();
        self.checkpoints.clear();
        self.told = cluster.trace().next_sequence();
        self.cell = (0, cluster.now());
        self.cluster = cluster;
    }

    /// Does what is due next, if that is before a moment; of a real cluster, waits a little. False if nothing is due.
    pub fn step_before(&mut self, deadline: Time) -> bool {
        let Some(away) = &mut self.away else { return self.cluster.step_before(deadline) };
        away.take_in(&mut self.cluster, GLANCE);
        true
    }

    /// Waits while the real cluster works: until it has been quiet, if it is said how soon it must begin.
    fn follow(&mut self, limit: Duration, stir: Option<Duration>, sink: &mut dyn Sink) -> Result<(), CellError> {
        let start = Instant::now();
        let mut quiet = stir.map(|stir| start + stir);
        while start.elapsed() < limit && quiet.is_none_or(|quiet| Instant::now() < quiet) {
            if sink.interrupted() {
                self.tell(sink);
                return Err(self.interrupted());
            }
            let Some(away) = &mut self.away else { break };
            if away.take_in(&mut self.cluster, GLANCE) > 0 {
                quiet = quiet.map(|_| Instant::now() + QUIET);
            }
        }
        self.tell(sink);
        Ok(())
    }
}

/// Names that a person can type.
impl Session {
    /// The object that `kind/name` means; its name may be shortened to a beginning that only one object has.
    pub fn target(&self, text: &str) -> Result<(KindRef, Key), CellError> {
        let (kind, alike) = self.alike(text)?;
        match alike.as_slice() {
            [first, second, ..] => {
                let names = format!("{}, {} …", first.name, second.name);
                Err(CellError::new("NotFound", format!("several objects begin with {text}: {names}")))
            }
            one => Ok((kind, one.first().cloned().unwrap_or_else(|| Key::new("", text)))),
        }
    }

    /// The same, but of several objects the one that was made last.
    pub fn newest(&self, text: &str) -> Result<(KindRef, Key), CellError> {
        let (kind, alike) = self.alike(text)?;
        let made = |key: &Key| {
            let of_key = |write: &RequestEntry| write.kind.slot == kind.slot && write.key == *key;
            let made = |write: &RequestEntry| write.before.is_none() && of_key(write);
            self.cluster.trace().writes().rev().find(|(_, write)| made(write)).map(|(entry, _)| entry.sequence)
        };
        let newest = alike.iter().max_by_key(|key| made(key)).cloned();
        Ok((kind, newest.unwrap_or_else(|| Key::new("", text))))
    }

    /// The object of exactly that name, or all whose names begin so; the name itself if there is none. Never empty.
    fn alike(&self, text: &str) -> Result<(KindRef, Vec<Key>), CellError> {
        let wrong = |message: String| CellError::new("NotFound", message);
        let (kind_name, name) = text
            .split_once('/')
            .ok_or_else(|| wrong(format!("'{text}' is not an object: expected KIND/NAME, such as deployment/web")))?;
        let kind = self.kind_named(kind_name).cloned();
        let kind = kind.ok_or_else(|| wrong(format!("the server doesn't have a resource type \"{kind_name}\"")))?;
        let (namespace, name) = match name.split_once('/') {
            Some((namespace, name)) => (namespace, name),
            None if kind.namespaced => ("default", name),
            None => ("", name),
        };
        let key = Key::new(namespace, name);
        let known = |key: &Key| {
            self.cluster.trace().writes().any(|(_, write)| write.kind.slot == kind.slot && write.key == *key)
        };
        if self.cluster.store().get(&kind, &key).is_some() || known(&key) {
            return Ok((kind, vec![key]));
        }
        let begins = |object: &&Object| object.key.name.starts_with(name);
        let mut alike: Vec<Key> =
            self.cluster.list_of(&kind, namespace).filter(begins).map(|object| object.key.clone()).collect();
        if alike.is_empty() {
            alike.push(key);
        }
        Ok((kind, alike))
    }

    /// The kind that a word means: its kind, its resource, one of it, or a short name.
    pub fn kind_named(&self, word: &str) -> Option<&KindRef> {
        self.cluster.kinds().find(|kind| {
            [&kind.kind, &kind.resource, &kind.singular].iter().any(|known| known.eq_ignore_ascii_case(word))
                || kind.short_names.iter().any(|short| **short == *word)
        })
    }

    /// Objects that begin as what has been typed, `deployment/web`: of each kind some, of one that is named many.
    pub fn object_names(&self, typed: &str) -> Vec<String> {
        let told = |kind: &&KindRef| !matches!(&*kind.kind, "Event" | "Lease" | "APIService");
        let namespace = |kind: &KindRef| if kind.namespaced { "default" } else { "" };
        if let Some((word, name)) = typed.split_once('/') {
            let Some(kind) = self.kind_named(word) else { return Vec::new() };
            let objects = self.cluster.list_of(kind, namespace(kind)).map(|object| &object.key.name);
            let begins = objects.filter(|known| known.starts_with(name));
            return begins.take(NAMES_MAX).map(|name| format!("{word}/{name}")).collect();
        }
        let kinds = self.cluster.kinds().filter(told).filter(|kind| kind.singular.starts_with(typed));
        let names = kinds.flat_map(|kind| {
            let objects = self.cluster.list_of(kind, namespace(kind)).take(NAMES_OF_KIND_MAX);
            objects.map(|object| format!("{}/{}", kind.singular, object.key.name))
        });
        names.take(NAMES_MAX).collect()
    }

    pub fn node_names(&self) -> Vec<String> {
        self.cluster.machines().map(|(name, _)| name.to_string()).collect()
    }

    pub fn component_names(&self) -> Vec<String> {
        self.cluster.components().iter().map(|name| name.to_string()).collect()
    }
}

/// A new cluster that has come up, so that the first cell finds its nodes ready, if `go_on` let it.
fn booted(settings: &Settings, go_on: impl FnMut(&Cluster) -> bool) -> (Cluster, Pause) {
    let signer = Some(crate::token_signer::of_seed(settings.seed));
    // Another key than that of the tokens.
    let authority = Some(crate::token_signer::of_seed(!settings.seed));
    let (seed, nodes) = (settings.seed, settings.nodes);
    let config = Config { seed, nodes, images: true, signer, authority, ..Config::default() };
    let mut cluster = Cluster::new(config);
    let pause = cluster.settle(Duration::from_secs(SETTLE_SECONDS_MAX), go_on);
    (cluster, pause)
}

/// The byte at which a code point stands; the end if there are fewer.
fn byte_offset(code: &str, cursor: usize) -> usize {
    code.char_indices().nth(cursor).map_or(code.len(), |(at, _)| at)
}

/// How far a long wait has come, in a display that is replaced as it goes.
struct Bar {
    id: String,
    language: Language,
    start: Time,
    limit: Duration,
    asked: usize,
    shown: Option<Instant>,
}

impl Bar {
    fn show(&mut self, now: Time, sink: &mut dyn Sink) {
        self.asked += 1;
        let due = self.shown.is_none_or(|shown| shown.elapsed() >= PROGRESS_PERIOD);
        if self.asked < PROGRESS_AFTER_ASKED || !due {
            return;
        }
        let passed = now.since(self.start);
        let share = (passed.as_secs_f64() / self.limit.as_secs_f64().max(1e-9)).min(1.0);
        let bar = "█".repeat((share * 20.0) as usize) + &"░".repeat(20 - (share * 20.0) as usize);
        let words = self.language.say("仮想時間", "virtual time");
        let data = text(format!("{bar} {words} {:.1}s / {:.0}s", passed.as_secs_f64(), self.limit.as_secs_f64()));
        sink.put(match self.shown {
            None => Output::Display { data, id: Some(self.id.clone()) },
            Some(_) => Output::Update { data, id: self.id.clone() },
        });
        self.shown = Some(Instant::now());
    }

    /// The display to write over, if the bar was shown.
    fn id(self) -> Option<String> {
        self.shown.is_some().then_some(self.id)
    }
}

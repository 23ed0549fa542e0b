//! The lab's controls: what a `%` line does. A control is one line in [`ALL`] and a function in the file of its topic.

pub mod cluster;
mod clusters;
mod faults;
pub mod lesson;
mod machines;
mod pictures;
mod progress;
mod setup;
#[cfg(test)]
pub mod testing;
mod time;
mod who;

use cluster_core::trace::{Sequence, What};

pub use self::faults::PROXY_MODES;
use crate::output::{CellError, Sink};
use crate::plots::{self, Plot};
use crate::session::Session;
use crate::settings::Language;
use crate::text;

pub struct Control {
    pub name: &'static str,
    pub usage: &'static str,
    pub about: (&'static str, &'static str),
    pub run: fn(&Args<'_>, &mut Session, &mut dyn Sink) -> Result<(), CellError>,
    /// Words that can follow, for completion.
    pub words: fn(&Session, &Typed<'_>) -> Vec<String>,
}

/// Where the cursor stands in a control's line.
pub struct Typed<'a> {
    /// The words between the control's name and the one at the cursor.
    pub before: Vec<&'a str>,
    /// What has been typed of that one.
    pub word: &'a str,
}

/// All controls, in the order in which `%help` lists them.
pub const ALL: &[Control] = &[
    Control {
        name: "help",
        usage: "%help [CONTROL]",
        about: ("この一覧", "this list"),
        run: setup::help,
        words: |_, _| ALL.iter().map(|control| control.name.to_owned()).collect(),
    },
    Control {
        name: "advance",
        usage: "%advance DURATION",
        about: ("仮想時間を進める", "lets virtual time pass"),
        run: time::advance,
        words: |_, _| ["1s", "10s", "30s", "1m", "5m"].map(str::to_owned).to_vec(),
    },
    Control {
        name: "until",
        usage: "%until KIND/NAME CONDITION [within DURATION]",
        about: (
            "条件が満たされるまで時間を進める（ready、gone、Available、.status.phase=Running など）",
            "lets time pass until something holds (ready, gone, Available, .status.phase=Running …)",
        ),
        run: time::until,
        words: |session, typed| match typed.before.len() {
            0 => session.object_names(typed.word),
            1 => ["ready", "gone", "Available", "Ready", "!Ready", ".status.phase="].map(str::to_owned).to_vec(),
            _ => vec!["within".into()],
        },
    },
    Control {
        name: "live",
        usage: "%live [SPEED]",
        about: (
            "仮想時間を実時間に合わせて進める（10x は10倍）。セルは待たない",
            "lets virtual time follow the wall clock (10x: ten times as fast); cells wait for nothing",
        ),
        run: time::live,
        words: |_, _| ["1x", "10x", "60x"].map(str::to_owned).to_vec(),
    },
    Control {
        name: "pause",
        usage: "%pause",
        about: ("時間を止める（%advance と %until だけが進める）", "stops time, but for %advance and %until"),
        run: time::pause,
        words: |_, _| Vec::new(),
    },
    Control {
        name: "settle",
        usage: "%settle",
        about: ("落ち着くまで進め、これからもセルごとにそうする", "lets things settle, now and after each cell again"),
        run: time::settle,
        words: |_, _| Vec::new(),
    },
    Control {
        name: "rewind",
        usage: "%rewind [CELLS] [--dry-run]",
        about: (
            "セルの前まで巻き戻す（--dry-run は取り消されるものを見るだけ）",
            "goes back to before the last cell, or the last CELLS; --dry-run only says what that would undo",
        ),
        run: time::rewind,
        words: |_, _| vec!["--dry-run".into()],
    },
    Control {
        name: "fork",
        usage: "%fork NAME",
        about: ("いまのクラスタの写しに名前を付けて取っておく", "keeps a copy of the cluster as it is, by name"),
        run: clusters::fork,
        words: |_, _| Vec::new(),
    },
    Control {
        name: "switch",
        usage: "%switch NAME",
        about: (
            "取っておいた写しに移る（いまのものも残る）",
            "goes on in the copy of that name, keeping the present one",
        ),
        run: clusters::switch,
        words: |session, _| session.forks(),
    },
    Control {
        name: "restore",
        usage: "%restore NAME",
        about: (
            "etcd だけを、取っておいた写しの内容に戻す（機械とコンテナはそのまま）",
            "puts etcd alone back to what it held in that copy; machines and containers stay as they are",
        ),
        run: clusters::restore,
        words: |session, _| session.forks(),
    },
    Control {
        name: "diff",
        usage: "%diff A [B]",
        about: ("二つの写しの違い（B は省くと現在）", "what differs between two copies (B: the present one)"),
        run: clusters::diff,
        words: |session, _| session.forks(),
    },
    Control {
        name: "clusters",
        usage: "%clusters | %%cluster NAME (with a cell below)",
        about: (
            "クラスタの一覧（%%cluster NAME は下のセルをそのクラスタで実行する）",
            "lists the clusters; %%cluster NAME runs the cell below in that one",
        ),
        run: clusters::clusters,
        words: |_, _| Vec::new(),
    },
    Control {
        name: "save",
        usage: "%save [FILE]",
        about: (
            "ここまでの歩みをノートブックのフォルダのファイルに書く",
            "writes what the session has done into a file of the notebook's folder",
        ),
        run: clusters::save,
        words: |_, _| Vec::new(),
    },
    Control {
        name: "load",
        usage: "%load [FILE]",
        about: ("%save で書いたところまで、もう一度たどる", "does again what %save has written"),
        run: clusters::load,
        words: |session, _| session.files.list("").unwrap_or_default(),
    },
    Control {
        name: "kill",
        usage: "%kill pod/NAME [CONTAINER] | deployment/NAME | docker/NAME …",
        about: (
            "コンテナを強制終了させる（deployment/NAME はその最初の Pod の）",
            "kills a container, as a crash does; deployment/NAME: one of its first pod",
        ),
        run: faults::kill,
        words: |session, typed| session.object_names(typed.word),
    },
    Control {
        name: "poweroff",
        usage: "%poweroff NODE",
        about: ("ノードの電源を切る", "takes power from a node"),
        run: faults::power_off,
        words: |session, _| session.node_names(),
    },
    Control {
        name: "poweron",
        usage: "%poweron NODE",
        about: ("ノードの電源を入れる", "gives it back"),
        run: faults::power_on,
        words: |session, _| session.node_names(),
    },
    Control {
        name: "stop",
        usage: "%stop COMPONENT",
        about: ("部品を止める", "stops a component"),
        run: faults::stop,
        words: |session, _| session.component_names(),
    },
    Control {
        name: "start",
        usage: "%start COMPONENT",
        about: ("部品を動かす", "starts it again"),
        run: faults::start,
        words: |session, _| session.component_names(),
    },
    Control {
        name: "partition",
        usage: "%partition NODE",
        about: ("ノードをコントロールプレーンから切り離す", "cuts a node off from the control plane"),
        run: faults::partition,
        words: |session, _| session.node_names(),
    },
    Control {
        name: "heal",
        usage: "%heal [NODE]",
        about: ("切り離しと、落とす・遅らせる規則をやめる", "ends a partition; without NODE also all drops and delays"),
        run: faults::heal,
        words: |session, _| session.node_names(),
    },
    Control {
        name: "drop",
        usage: "%drop COMPONENT [KIND[/NAME]] [N]",
        about: (
            "部品に届くはずの知らせを N 個（省くと1個）失わせる。docker はホストの規則",
            "loses N watch events (1) on their way to a component; docker: the host's exit events",
        ),
        run: faults::drop,
        words: |session, _| session.component_names(),
    },
    Control {
        name: "delay",
        usage: "%delay COMPONENT DURATION [KIND[/NAME]]",
        about: ("部品に届く知らせを遅らせる（%heal まで）", "delays watch events to a component, until %heal"),
        run: faults::delay,
        words: |session, _| session.component_names(),
    },
    Control {
        name: "on",
        usage: "%on exit NAME: COMMAND",
        about: (
            "docker のコンテナが終了したら COMMAND を実行する規則",
            "a rule of the plain container host: when NAME exits, run COMMAND",
        ),
        run: faults::on,
        words: |_, _| vec!["exit".into()],
    },
    Control {
        name: "plot",
        usage: "%plot PICTURE [SUBJECT [SUBJECT]] [--from DURATION | --last DURATION]",
        about: (
            "図を描く（名前は %help plot で）。SUBJECT は deployment/web、pod/web、service/web、docker、app=web、コントローラーなど",
            "draws a picture (%help plot names them) of deployment/web, pod/web, docker, app=web, a controller …",
        ),
        run: pictures::plot,
        words: |session, typed| match typed.before.as_slice() {
            [] => plots::ALL.iter().map(|plot| plot.name.to_owned()).collect(),
            ["queue"] => session.cluster.controllers().map(|(name, _)| name.to_string()).collect(),
            _ => {
                let objects = session.object_names(typed.word).into_iter();
                objects.chain(["docker", "--from", "--last"].map(str::to_owned)).collect()
            }
        },
    },
    Control {
        name: "why",
        usage: "%why KIND/NAME",
        about: (
            "そうなった原因をたどる（名前は途中まででもよい。いくつもあれば最も新しいもの）",
            "the chain of causes that led to it; of several that begin with NAME, the newest",
        ),
        run: pictures::why,
        words: |session, typed| session.object_names(typed.word),
    },
    Control {
        name: "who",
        usage: "%who KIND/NAME",
        about: (
            "それができるまでに、だれが何を見て何をしたか",
            "of all that its coming led to: who heard of what, and did what",
        ),
        run: who::who,
        words: |session, typed| session.object_names(typed.word),
    },
    Control {
        name: "trace",
        usage: "%trace [N] [KIND/NAME]",
        about: ("記録の最後の N 行", "the last N entries of the record"),
        run: pictures::trace,
        words: |session, typed| session.object_names(typed.word),
    },
    Control {
        name: "components",
        usage: "%components [PROCESS]",
        about: (
            "部品（またはその中のコントローラー）と、動いているかどうか",
            "all components, or what one holds, and whether they run",
        ),
        run: faults::components,
        words: |session, _| session.component_names(),
    },
    Control {
        name: "proxymode",
        usage: "%proxymode iptables|ipvs|nftables",
        about: ("すべての kube-proxy の動き方を変える", "has all kube-proxies work in this mode"),
        run: faults::proxy_mode,
        words: |_, _| faults::PROXY_MODES.map(|mode| mode.as_str().to_owned()).to_vec(),
    },
    Control {
        name: "watches",
        usage: "%watches [CONTROLLER]",
        about: (
            "kube-controller-manager の各コントローラーが見張る kind と、見張りの本数",
            "which kinds the controllers of kube-controller-manager watch, and how many watches that takes",
        ),
        run: who::watches,
        words: |session, _| session.component_names(),
    },
    Control {
        name: "cluster",
        usage: "%cluster [use KUBECONFIG [CONTEXT] | sim]",
        about: (
            "セルの相手を、本物のクラスタ（use）かシミュレーション（sim）にする",
            "lets cells speak to a real cluster (use), or to the simulated one again (sim)",
        ),
        run: cluster::cluster,
        words: |_, _| ["use", "sim"].map(str::to_owned).to_vec(),
    },
    Control {
        name: "seed",
        usage: "%seed N",
        about: ("種を変えてクラスタを作り直す", "makes the cluster anew with another seed"),
        run: setup::seed,
        words: |_, _| Vec::new(),
    },
    Control {
        name: "nodes",
        usage: "%nodes N",
        about: ("ノードを N 台にしてクラスタを作り直す", "makes the cluster anew with N nodes"),
        run: setup::nodes,
        words: |_, _| Vec::new(),
    },
    Control {
        name: "addnode",
        usage: "%addnode NODE",
        about: ("クラスタに機械を一台加える", "adds a machine to the cluster"),
        run: faults::add_node,
        words: |_, _| Vec::new(),
    },
    Control {
        name: "static",
        usage: "%static NODE [rm FILE] | %%static NODE (with a manifest below)",
        about: (
            "ノードの静的 Pod のマニフェストを一覧・削除する（%%static はセルの Pod を置く）",
            "lists or removes the manifests of a node's static pods; %%static puts the cell's Pod there",
        ),
        run: machines::static_pods,
        words: |session, _| session.node_names(),
    },
    Control {
        name: "fill",
        usage: "%fill NODE memory|disk|pids AMOUNT | %fill pod/NAME memory|cpu AMOUNT | %fill service/NAME requests AMOUNT",
        about: (
            "ノードのメモリ・ディスク・PID、または Pod のメモリ・CPU を使わせる。Service には毎秒の要求を送りつづける（0 で戻す）",
            "makes a node's memory, disk or process numbers taken, or a pod's memory or CPU, or lets so many requests a second come to a service; 0 ends that",
        ),
        run: machines::fill,
        words: |session, typed| session.node_names().into_iter().chain(session.object_names(typed.word)).collect(),
    },
    Control {
        name: "reset",
        usage: "%reset",
        about: ("クラスタを最初から作り直す", "makes the cluster anew"),
        run: setup::reset,
        words: |_, _| Vec::new(),
    },
    Control {
        name: "clear",
        usage: "%clear",
        about: ("セルのここまでの出力を消す", "empties what the cell has put out so far"),
        run: setup::clear,
        words: |_, _| Vec::new(),
    },
    Control {
        name: "lang",
        usage: "%lang ja|en",
        about: ("表示の言葉", "the language of the kernel's own words"),
        run: setup::lang,
        words: |_, _| vec!["ja".into(), "en".into()],
    },
    Control {
        name: "predict",
        usage: "%predict [QUESTION: ANSWER]",
        about: (
            "結果を見る前の予想を書き留める（何も付けなければ一覧）",
            "locks a prediction in before the run; without one, lists them",
        ),
        run: setup::predict,
        words: |_, _| Vec::new(),
    },
    Control {
        name: "progress",
        usage: "%progress",
        about: (
            "これまでの予想、終えた回、合格した演習（次のセッションにも残る）",
            "predictions, finished lessons and passed exercises so far, over all sessions",
        ),
        run: progress::progress,
        words: |_, _| Vec::new(),
    },
    Control {
        name: "exercise",
        usage: "%exercise [ID]",
        about: ("演習を始める（クラスタを作り直す）", "begins an exercise, on a new cluster"),
        run: lesson::exercise,
        words: |_, _| crate::grading::exercise::SOURCES.iter().map(|(id, _)| (*id).to_owned()).collect(),
    },
    Control {
        name: "hint",
        usage: "%hint",
        about: ("演習の次のヒント", "the exercise's next hint"),
        run: lesson::hint,
        words: |_, _| Vec::new(),
    },
    Control {
        name: "check",
        usage: "%check [--score [POINTS]]",
        about: ("演習の答え合わせ", "looks at the answer to the exercise"),
        run: lesson::check,
        words: |_, _| vec!["--score".into()],
    },
];

pub fn find(name: &str) -> Option<&'static Control> {
    ALL.iter().find(|control| control.name == name)
}

impl Control {
    pub fn help(&self, language: Language) -> String {
        let help = format!("{}\n    {}", self.usage, language.say(self.about.0, self.about.1));
        if self.name != "plot" {
            return help;
        }
        let picture = |plot: &Plot| vec![format!("    {}", plot.name), language.say(plot.about.0, plot.about.1).into()];
        let pictures: Vec<Vec<String>> = plots::ALL.iter().map(picture).collect();
        let columns = [language.say("    図", "    PICTURE"), language.say("内容", "WHAT IT SHOWS")].map(str::to_owned);
        format!("{help}\n\n{}", text::table(&columns, &pictures))
    }
}

/// The words of a control's line.
pub struct Args<'a> {
    pub control: &'static Control,
    /// Everything behind the name.
    pub text: &'a str,
    pub words: Vec<&'a str>,
}

impl Args<'_> {
    /// The one word that is expected.
    pub fn one(&self) -> Result<&str, CellError> {
        match self.words.as_slice() {
            [word] => Ok(word),
            _ => Err(self.wrong()),
        }
    }

    pub fn wrong(&self) -> CellError {
        CellError::new("UsageError", format!("usage: {}", self.control.usage))
    }
}

/// Runs one `%` line.
pub fn run(line: &str, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let body = line.trim().trim_start_matches('%');
    let (name, rest) = body.split_once(char::is_whitespace).unwrap_or((body, ""));
    let rest = rest.trim();
    let Some(control) = find(name) else {
        let name = &*text::short(name);
        let nearest = ALL.iter().map(|control| control.name).min_by_key(|known| strsim::levenshtein(known, name));
        let hint = nearest.filter(|known| strsim::levenshtein(known, name) <= 2.min(name.chars().count() / 2));
        let mut message = match session.language() {
            Language::Ja => format!("%{name} という操作はありません（%help で一覧が出ます）"),
            Language::En => format!("there is no control %{name} (%help lists them)"),
        };
        if let Some(known) = hint {
            message += &match session.language() {
                Language::Ja => format!("。%{known} のことですか?"),
                Language::En => format!("; did you mean %{known}?"),
            };
        }
        return Err(CellError::new("UnknownControl", message));
    };
    cluster::possible(control.name, session)?;
    let args = Args { control, text: rest, words: rest.split_whitespace().collect() };
    (control.run)(&args, session, sink)
}

/// `1m30s`, `500ms`, or a number of seconds.
pub fn duration(word: &str) -> Result<std::time::Duration, CellError> {
    let seconds = word.parse::<f64>().ok().map(jiff::SignedDuration::try_from_secs_f64);
    let parsed = match seconds {
        Some(seconds) => seconds.ok(),
        None => word.parse::<jiff::SignedDuration>().ok(),
    };
    let limit = jiff::SignedDuration::from_hours(24 * 366);
    match parsed.filter(|span| !span.is_negative() && *span <= limit) {
        Some(span) => Ok(span.unsigned_abs()),
        None => Err(CellError::new(
            "BadDuration",
            format!(
                "'{}' is not a duration: expected something like 30s, 5m or 1h30m, at most a year",
                text::short(word)
            ),
        )),
    }
}

/// One entry of the trace in one line.
pub fn entry_line(session: &Session, sequence: Sequence) -> Option<Vec<String>> {
    let entry = session.cluster.trace().get(sequence)?;
    let what = match &entry.what {
        What::Cell(text) => {
            let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
            let more = if text.trim().lines().count() > 1 { " …" } else { "" };
            format!("cell: {first}{more}")
        }
        What::Request(request) => {
            let subresource =
                if request.subresource.is_empty() { String::new() } else { format!("/{}", request.subresource) };
            let what = format!("{} {}{subresource} {}", request.verb.as_str(), request.kind.resource, request.key);
            let outcome = if request.is_write() { format!("@{}", request.revision) } else { request.code.to_string() };
            let reason = if request.reason.is_empty() { String::new() } else { format!(": {}", request.reason) };
            format!("{what} {outcome}{reason}")
        }
        What::Reconcile { key, kind, writes, note } if note.is_empty() => {
            format!("reconcile {kind} {key}: {writes} writes")
        }
        What::Reconcile { key, kind, note, .. } => format!("reconcile {kind} {key}: {note}"),
        What::Container(container) => {
            let phase = match &container.phase {
                cluster_core::trace::ContainerPhase::Exited { code, reason } => format!("exited {code} ({reason})"),
                cluster_core::trace::ContainerPhase::BackingOff { seconds } => format!("backing off {seconds}s"),
                cluster_core::trace::ContainerPhase::PullFailed { message } => format!("pull failed: {message}"),
                cluster_core::trace::ContainerPhase::Signalled(signal) => format!("got {signal}"),
                cluster_core::trace::ContainerPhase::SandboxCreated => "sandbox created".to_owned(),
                cluster_core::trace::ContainerPhase::SandboxRemoved => "sandbox removed".to_owned(),
                phase => format!("{phase:?}").to_lowercase(),
            };
            let slash = if container.container.is_empty() { "" } else { "/" };
            format!("container {}{slash}{} {phase}", container.pod, container.container)
        }
        What::Rules { service, endpoints, .. } => format!("rules for service {service}: {endpoints} endpoints"),
        What::Connection(connection) => {
            let bars = connection.barred_by.iter().map(|policy| format!(" (NetworkPolicy {policy})"));
            let bars = bars.collect::<String>();
            format!("{} → {}: {}{bars}", connection.from, connection.to, connection.outcome)
        }
        What::Fault(text) => format!("fault: {text}"),
        What::Note { about, text } => format!("{about}: {text}"),
    };
    let causes: Vec<String> = entry.causes.as_slice().iter().rev().take(3).map(|cause| format!("#{cause}")).collect();
    let causes = if causes.is_empty() { String::new() } else { format!("← {}", causes.join(" ")) };
    Some(vec![format!("#{sequence}"), entry.at.to_string(), entry.actor.to_string(), what, causes])
}

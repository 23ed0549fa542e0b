//! Controls of time: forward, back, and how fast.

use std::time::{Duration, Instant};

use cluster_core::Cluster;
use cluster_core::api::object::Object;
use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;

use super::clusters::told_differences;
use super::{Args, duration};
use crate::output::{CellError, Output, Sink};
use crate::session::{Pace, Session};

const SPEED_MIN: f64 = 0.01;
const SPEED_MAX: f64 = 10_000.0;
/// How long `%until` waits if not told otherwise.
const UNTIL_SECONDS_MAX: u64 = 600;

pub fn advance(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let by = duration(args.one()?)?;
    session.advance(by, sink)
}

pub fn until(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let (words, limit) = match args.words.as_slice() {
        [words @ .., "within", limit] => (words, duration(limit)?),
        words => (words, Duration::from_secs(UNTIL_SECONDS_MAX)),
    };
    let (&[target, condition], language) = (words, session.language()) else { return Err(args.wrong()) };
    let (kind, key) = session.target(target)?;
    let holds = |cluster: &Cluster| {
        let object = cluster.store().get(&kind, &key);
        condition_holds(object, condition)
    };
    let start = session.cluster.now();
    let deadline = start + limit;
    let mut looked_at = None;
    let reached = loop {
        // Only a write can change the answer.
        let revision = session.cluster.revision();
        if looked_at.replace(revision) != Some(revision) && holds(&session.cluster) {
            break true;
        }
        if session.cluster.now() >= deadline || !session.step_before(deadline) {
            break holds(&session.cluster);
        }
        if sink.interrupted() {
            return Err(session.interrupted());
        }
    };
    session.tell(sink);
    let passed = seconds(session.cluster.now().since(start));
    if reached {
        let text = if language.is_japanese() {
            format!("{target} {condition}: {passed} 後に成り立ちました\n")
        } else {
            format!("{target} {condition}: holds after {passed}\n")
        };
        sink.put(Output::Stdout(text));
        return Ok(());
    }
    let text = if language.is_japanese() {
        format!("{target} {condition}: {} 待っても成り立ちませんでした", seconds(limit))
    } else {
        format!("{target} {condition}: did not hold within {}", seconds(limit))
    };
    Err(CellError::new("NotReached", text))
}

pub fn seconds(duration: Duration) -> String {
    format!("{:.3}s", duration.as_secs_f64())
}

/// `ready`, `gone`, a condition's type (`Available`, `!Ready`), or `.path=value`.
fn condition_holds(object: Option<&Object>, condition: &str) -> bool {
    if condition == "gone" {
        return object.is_none();
    }
    let Some(object) = object else { return false };
    let json = object.to_json();
    if let Some((path, wanted)) = condition.strip_prefix('.').and_then(|rest| rest.split_once('=')) {
        let pointer = format!("/{}", path.replace('.', "/"));
        return match json.pointer(&pointer) {
            Some(Value::String(text)) => text == wanted,
            Some(value) => serde_json::from_str::<Value>(wanted).is_ok_and(|wanted| wanted == *value),
            None => wanted.is_empty(),
        };
    }
    let status = |name: &str| {
        let conditions = json.pointer("/status/conditions").and_then(Value::as_array);
        conditions.into_iter().flatten().find(|c| c["type"] == name).and_then(|c| c["status"].as_str()) == Some("True")
    };
    match condition {
        "ready" if object.is::<Pod>() => status("Ready"),
        "ready" => match json.pointer("/spec/replicas").and_then(Value::as_i64) {
            Some(replicas) => {
                let count = |field: &str| json["status"][field].as_i64().unwrap_or(0);
                let observed = json["status"]["observedGeneration"] == json["metadata"]["generation"];
                observed && count("readyReplicas") == replicas && count("replicas") == replicas
            }
            None => status("Ready"),
        },
        name => match name.strip_prefix('!') {
            Some(name) => !status(name),
            None => status(name),
        },
    }
}

pub fn rewind(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let (words, is_dry_run) = match args.words.as_slice() {
        [words @ .., "--dry-run"] => (words, true),
        words => (words, false),
    };
    let cells = match words {
        [] => 1,
        [count] => count.parse().map_err(|_| args.wrong())?,
        _ => return Err(args.wrong()),
    };
    let told = if is_dry_run {
        let (text, before) = session.would_undo(cells)?;
        let nothing = session.language().say("違いはありません", "no difference");
        text + &told_differences(&session.cluster, before, nothing)
    } else {
        session.rewind(cells)?
    };
    sink.put(Output::Stdout(told));
    Ok(())
}

/// Time follows the wall clock from now on, so many times as fast.
pub fn live(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let speed = match args.words.as_slice() {
        [] => Ok(1.0),
        [speed] => speed.trim_end_matches(['x', '×', '倍']).parse::<f64>(),
        _ => return Err(args.wrong()),
    };
    let speed = speed.ok().filter(|speed| (SPEED_MIN..=SPEED_MAX).contains(speed)).ok_or_else(|| {
        let message = match session.language().is_japanese() {
            true => format!("速さは {SPEED_MIN}x から {SPEED_MAX}x までです: %live 10x"),
            false => format!("the speed is between {SPEED_MIN}x and {SPEED_MAX}x: %live 10x"),
        };
        CellError::new("BadSpeed", message)
    })?;
    session.unrepeatable(
        ("%live は実時間に従います", "%live follows the wall clock"),
        (
            "%advance や %until で進めるか、Jupyter で開いて実行する",
            "let time pass with %advance or %until, or run the notebook in Jupyter",
        ),
    )?;
    session.pace = Pace::Live { speed, since: Instant::now() };
    let text = match session.language().is_japanese() {
        true => format!(
            "仮想時間は実時間の{speed}倍で進みます。セルは落ち着くのを待ちません（%pause で止め、%settle で元に戻す）\n"
        ),
        false => format!(
            "virtual time follows the wall clock {speed} times as fast; cells wait for nothing (%pause stops it, %settle ends it)\n"
        ),
    };
    sink.put(Output::Stdout(text));
    Ok(())
}

/// Time stands still until somebody moves it.
pub fn pause(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    if !args.words.is_empty() {
        return Err(args.wrong());
    }
    session.pace = Pace::Paused;
    let at = session.cluster.now();
    let text = match session.language().is_japanese() {
        true => format!("{at} で止まっています。%advance と %until だけが時間を進めます（%settle で元に戻す）\n"),
        false => format!("time stands at {at}; %advance and %until alone move it (%settle ends that)\n"),
    };
    sink.put(Output::Stdout(text));
    Ok(())
}

/// Each cell waits again until things have settled, and so does this one.
pub fn settle(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    if !args.words.is_empty() {
        return Err(args.wrong());
    }
    session.pace = Pace::Settling;
    session.settle(sink)
}

#[cfg(test)]
mod tests {
    use crate::controls::testing::{interactive, run, session};

    #[test]
    fn a_dry_run_says_what_going_back_would_undo() {
        let mut session = session();
        run(&mut session, "kubectl create configmap a --from-literal=a=b");
        run(&mut session, "kubectl create configmap b --from-literal=a=b");
        let told = run(&mut session, "%rewind 2 --dry-run");
        assert!(told.contains("would undo:\n  kubectl create configmap a"), "{told}");
        assert!(told.contains("\n- configmap/a\n- configmap/b\n"), "{told}");
        assert!(run(&mut session, "kubectl get configmap b").contains("b      1"));
        assert!(run(&mut session, "%rewind 4").starts_with("back from"));
        assert!(run(&mut session, "kubectl get configmap a").contains("exit code 1"));
        assert!(run(&mut session, "%rewind 9 --dry-run").contains("can be undone"));
    }

    #[test]
    fn a_paused_cluster_moves_only_when_told() {
        let mut session = session();
        run(&mut session, "%pause");
        let before = session.cluster.now();
        run(&mut session, "kubectl run web --image=nginx");
        assert!(session.cluster.now().since(before).as_millis() < 100);
        assert!(run(&mut session, "kubectl get pod web").contains("Pending"));
        run(&mut session, "%advance 10s");
        assert!(run(&mut session, "kubectl get pod web").contains("Running"));
        assert!(run(&mut session, "%pause now").starts_with("UsageError"));
    }

    #[test]
    fn a_live_cluster_follows_the_clock_on_the_wall() {
        let mut session = interactive();
        run(&mut session, "%live 1000x");
        run(&mut session, "kubectl run web --image=nginx");
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(run(&mut session, "kubectl get pod web").contains("Running"));
        assert!(run(&mut session, "%live fast").starts_with("BadSpeed"));
        assert!(run(&mut session, "%live 0x").starts_with("BadSpeed"));
    }

    #[test]
    fn a_notebook_that_is_replayed_does_not_follow_it() {
        let mut session = session();
        let told = run(&mut session, "%live 10x");
        assert!(told.starts_with("NotRepeatable: %live follows the wall clock") && told.contains("%advance"), "{told}");
        run(&mut session, "%reset");
        assert!(run(&mut session, "%live").starts_with("NotRepeatable"));
        let before = session.cluster.now();
        std::thread::sleep(std::time::Duration::from_millis(5));
        run(&mut session, "%pause");
        assert_eq!(session.cluster.now(), before);
    }

    #[test]
    fn what_a_file_tells_of_a_live_session_is_repeatable() {
        let mut lived = interactive();
        run(&mut lived, "%live 1000x");
        run(&mut lived, "kubectl run web --image=nginx");
        std::thread::sleep(std::time::Duration::from_millis(20));
        run(&mut lived, "%save lived.json");
        let mut replayed = session();
        let file = lived.files.read("lived.json").unwrap();
        replayed.files.write("lived.json", &file).unwrap();
        let told = run(&mut replayed, "%load lived.json");
        assert!(told.starts_with("ran 2 cells again"), "{told}");
        assert!(run(&mut replayed, "kubectl get pod web").contains("web"));
    }
}

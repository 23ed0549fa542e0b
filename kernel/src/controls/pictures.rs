//! Controls that show: pictures, chains of causes, the record.

use cluster_core::api::Name;
use cluster_core::clock::Time;
use cluster_core::cluster::Machine;
use cluster_core::trace::{Trace, What, causes};
use k8s_openapi::api::core::v1::Pod;

use super::{Args, duration, entry_line};
use crate::output::{CellError, Output, Sink};
use crate::plots::packing::verdict_table;
use crate::plots::{self, Context, lives::Subject};
use crate::session::Session;
use crate::text;

/// So many nodes are told of.
const NODES_MAX: usize = 12;

pub fn plot(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let (words, from) = match args.words.as_slice() {
        [words @ .., "--from", from] => (words, Some(Time::ZERO + duration(from)?)),
        [words @ .., "--last", span] => (words, Some(before(session.cluster.now(), duration(span)?))),
        words => (words, None),
    };
    let Some((name, subjects)) = words.split_first() else { return Err(args.wrong()) };
    let plot = plots::find(name).ok_or_else(|| {
        let known: Vec<&str> = plots::ALL.iter().map(|plot| plot.name).collect();
        CellError::new("UnknownPicture", format!("there is no picture '{name}'; there are: {}", known.join(", ")))
    })?;
    let trace = session.cluster.trace();
    let subject = |index: usize| subjects.get(index).map(|text| subject(text, trace)).transpose();
    let wrong = |message| CellError::new("PlotError", message);
    let used = |(name, machine): (&Name, &Machine)| (name.clone(), machine.runtime.memory_bytes());
    let context = Context {
        trace,
        scheduler: session.cluster.scheduler(),
        memory_bytes: &session.cluster.machines().map(used).collect(),
        now: session.cluster.now(),
        subject: subject(0).map_err(wrong)?.unwrap_or(Subject::Everything),
        other: subject(1).map_err(wrong)?,
        from,
        japanese: session.language().is_japanese(),
    };
    let picture = (plot.draw)(&context).map_err(wrong)?;
    sink.put(Output::Display { data: picture.bundle(), id: None });
    Ok(())
}

/// An object, or a component by its name.
fn subject(text: &str, trace: &Trace) -> Result<Subject, String> {
    let acts = || trace.iter().any(|entry| *entry.actor == *text);
    Subject::parse(text).or_else(|wrong| if acts() { Ok(Subject::Actor(text.to_owned())) } else { Err(wrong) })
}

/// The moment that lies so long before another, or the beginning.
fn before(now: Time, span: std::time::Duration) -> Time {
    Time::ZERO + now.since(Time::ZERO).saturating_sub(span)
}

pub fn why(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let target = args.one()?;
    let (kind, key) = session.newest(target)?;
    let target = format!("{}/{}", kind.singular, key.name);
    let trace = session.cluster.trace();
    let about: Vec<_> = trace.writes().filter(|(_, write)| write.kind.slot == kind.slot && write.key == key).collect();
    let Some((first, _)) = about.first() else {
        let message = match session.language().is_japanese() {
            true => format!("{target} についての記録はありません"),
            false => format!("there is no record of {target}"),
        };
        return Err(CellError::new("NotFound", message));
    };
    let say = |ja: &'static str, en: &'static str| session.language().say(ja, en);
    let mut parts = vec![(say("なぜ存在するか", "why it exists"), first.sequence)];
    let bound = about.iter().find(|(_, write)| write.subresource == "binding");
    parts.extend(bound.map(|(entry, _)| (say("なぜそのノードか", "why it is on its node"), entry.sequence)));
    let deleted = about.iter().find(|(_, write)| {
        let ending = |object: &Option<_>| object.as_ref().is_none_or(cluster_core::api::object::Object::is_terminating);
        write.before.is_some() && ending(&write.after)
    });
    parts.extend(deleted.map(|(entry, _)| (say("なぜ消されたか", "why it was deleted"), entry.sequence)));
    let restart = trace.iter().rev().find(|entry| match &entry.what {
        What::Container(container) => {
            &*kind.kind == "Pod"
                && container.pod == key
                && matches!(container.phase, cluster_core::trace::ContainerPhase::Exited { .. })
        }
        _ => false,
    });
    parts.extend(restart.map(|entry| (say("なぜコンテナが終わったか", "why a container ended"), entry.sequence)));
    let mut lines = Vec::new();
    for (title, sequence) in parts {
        let rows: Vec<Vec<String>> =
            causes::chain(trace, sequence, 24).iter().filter_map(|entry| entry_line(session, entry.sequence)).collect();
        let rows = shortened(rows);
        if let Some((head, rest)) = rows.split_first() {
            lines.push(format!("{target}: {title}\n{}", text::table(head, rest)));
        }
    }
    let pending = session.cluster.store().get(&kind, &key).filter(|object| object.is::<Pod>());
    if let Some(pod) = pending.filter(|pod| pod.spec::<Pod>().node_name.is_none()) {
        let told = pod.status::<Pod>().conditions.iter().flatten().find(|c| c.type_ == "PodScheduled");
        if let Some(message) = told.and_then(|condition| condition.message.as_deref()) {
            lines.push(format!("{target}: {}\n{message}", say("なぜ Pending か", "why it is pending")));
        }
    }
    if &*kind.kind == "Pod"
        && let Some(verdict) = session.cluster.scheduler().verdict(&key).filter(|verdict| !verdict.nodes.is_empty())
    {
        let mut nodes = verdict_table(&verdict, session.language().is_japanese());
        if nodes.rows.len() > NODES_MAX {
            let hidden = nodes.rows.split_off(NODES_MAX).len();
            nodes.rows.push(vec!["…".into(), format!("({hidden})")]);
        }
        lines.push(format!("{target}: {}\n{nodes}", say("各ノードの判定", "what the scheduler found of each node")));
    }
    sink.put(Output::Stdout(lines.join("\n\n") + "\n"));
    Ok(())
}

/// A chain of merged causes can be long: its beginning and its end are what matters.
fn shortened(rows: Vec<Vec<String>>) -> Vec<Vec<String>> {
    if rows.len() <= 16 {
        return rows;
    }
    let hidden = rows.len() - 15;
    let mut short = rows[..8].to_vec();
    short.push(vec!["…".into(), format!("({hidden})")]);
    short.extend_from_slice(&rows[rows.len() - 7..]);
    short
}

pub fn trace(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let (count, target) = match args.words.as_slice() {
        [] => (20, None),
        [count] if count.parse::<usize>().is_ok() => (count.parse().unwrap_or(20), None),
        [target] => (20, Some(*target)),
        [count, target] => (count.parse().map_err(|_| args.wrong())?, Some(*target)),
        _ => return Err(args.wrong()),
    };
    let target = target.map(|target| session.target(target)).transpose()?;
    let trace = session.cluster.trace();
    let heartbeat =
        |what: &What| matches!(what, What::Request(request) if matches!(&*request.kind.kind, "Lease" | "Event"));
    let chosen = trace.iter().rev().filter(|entry| match &target {
        Some((kind, key)) => causes::concerns(entry, kind, key),
        None => !heartbeat(&entry.what),
    });
    let mut rows: Vec<Vec<String>> =
        chosen.take(count.min(1000)).filter_map(|entry| entry_line(session, entry.sequence)).collect();
    rows.reverse();
    let columns = ["SEQ", "TIME", "ACTOR", "WHAT", "CAUSES"].map(str::to_owned);
    sink.put(Output::Stdout(text::table(&columns, &rows) + "\n"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::controls::testing::{run, session};

    #[test]
    fn why_tells_the_points_and_the_refusals_of_each_node() {
        let mut session = session();
        run(&mut session, "kubectl cordon node-2");
        run(&mut session, "kubectl run web --image=nginx");
        let told = run(&mut session, "%why pod/web");
        let line = |node: &str| told.lines().rev().find(|line| line.starts_with(node)).unwrap_or_default();
        assert!(line("node-2").ends_with("refused      NodeUnschedulable: node(s) were unschedulable"), "{told}");
        assert!(told.contains("chosen ") && told.contains("passed "), "{told}");
        assert!(line("node-1").contains("TaintToleration 300, NodeResourcesFit "), "{told}");
    }

    #[test]
    fn why_tells_a_pending_pod_which_plugin_refused_which_node() {
        let mut session = session();
        let spec = "spec: {nodeSelector: {disk: ssd}, containers: [{name: web, image: nginx}]}";
        run(&mut session, &format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\n{spec}"));
        let told = run(&mut session, "%why pod/web");
        let refused = "NodeAffinity: node(s) didn't match Pod's node affinity/selector";
        assert_eq!(told.lines().filter(|line| line.ends_with(refused)).count(), 3, "{told}");
    }
}

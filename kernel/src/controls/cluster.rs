//! `%cluster`: which cluster cells speak to, the one in this process or a real one; and what only the former can do.

use super::Args;
use crate::away::Away;
use crate::commands::Api;
use crate::output::{CellError, Output, Sink};
use crate::session::Session;

/// Controls that only a simulation has, and what to do instead, in Japanese and English.
const INSTEAD: &[(&str, (&str, &str))] = &[
    (
        "rewind",
        (
            "kubectl rollout undo か、前のマニフェストの適用で戻します",
            "kubectl rollout undo, or apply the manifest that was there before",
        ),
    ),
    ("fork", APART),
    ("switch", APART),
    ("clusters", APART),
    ("live", ("時間はいつも実時間です", "time is the wall clock's there")),
    ("pause", SIMULATED),
    ("settle", ("%until か kubectl wait で待ちます", "%until and kubectl wait do")),
    ("save", ("kubectl get -o yaml で書き出します", "kubectl get -o yaml writes objects down")),
    ("load", SIMULATED),
    ("restore", APART),
    ("diff", ("kubectl diff で比べます", "kubectl diff compares")),
    (
        "kill",
        (
            "kubectl delete pod か kubectl exec POD -- kill 1 で消します",
            "kubectl delete pod, or kubectl exec POD -- kill 1",
        ),
    ),
    (
        "poweroff",
        ("kubectl drain で空にしてから、機械そのものを止めます", "kubectl drain, and then turn the machine itself off"),
    ),
    (
        "poweron",
        ("機械そのものの電源を入れ、kubectl uncordon します", "turn the machine itself on, then kubectl uncordon"),
    ),
    ("stop", SIMULATED),
    ("start", SIMULATED),
    ("partition", ("NetworkPolicy で Pod の通信を止められます", "a NetworkPolicy can cut off pods")),
    ("heal", ("NetworkPolicy を消します", "delete the NetworkPolicy")),
    ("drop", SIMULATED),
    ("delay", SIMULATED),
    ("on", SIMULATED),
    ("components", ("kubectl get pods -n kube-system で見ます", "kubectl get pods -n kube-system shows them")),
    (
        "proxymode",
        (
            "kubectl get configmap kube-proxy -n kube-system -o yaml で見ます",
            "kubectl get configmap kube-proxy -n kube-system -o yaml shows it",
        ),
    ),
    (
        "watches",
        (
            "kubectl get --raw /metrics の apiserver_longrunning_requests を見ます",
            "kubectl get --raw /metrics has apiserver_longrunning_requests",
        ),
    ),
    ("seed", SIMULATED),
    ("nodes", SIMULATED),
    ("addnode", ("機械の上で kubeadm join を実行します", "kubeadm join, on the machine")),
    ("static", ("ノードの /etc/kubernetes/manifests に置きます", "put it into /etc/kubernetes/manifests of the node")),
    ("fill", ("kubectl run で負荷をかける Pod を動かします", "kubectl run a pod that takes as much")),
    ("reset", ("kubectl delete で自分で消します", "kubectl delete, by hand")),
    ("exercise", SIMULATED),
    ("hint", SIMULATED),
    (
        "check",
        (
            "壊して試す採点はシミュレーションの写しでします。ここでは %until で確かめます",
            "a check breaks copies of the simulation; here, %until looks whether something holds",
        ),
    ),
    ("rust", ("kube-rs のプログラムとして動かします", "run it as a program with kube-rs")),
];
const APART: (&str, &str) =
    ("写しは取れません。別の Namespace で試します", "there is no copy of it; try things in a namespace of their own");
const SIMULATED: (&str, &str) = ("%cluster sim で戻ってから使います", "%cluster sim goes back to where it works");

/// That a control, or a language of cells, can be used on the cluster that is used now.
pub fn possible(name: &str, session: &Session) -> Result<(), CellError> {
    let Some((_, (ja, en))) = INSTEAD.iter().find(|(known, _)| *known == name).filter(|_| session.away.is_some())
    else {
        return Ok(());
    };
    let message = match session.language().is_japanese() {
        true => format!("%{name} はシミュレーションのクラスタだけでできます。代わりに: {ja}"),
        false => format!("only a simulated cluster can do %{name}; instead: {en}"),
    };
    Err(CellError::new("OnlySimulated", message))
}

pub fn cluster(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    match args.words.as_slice() {
        [] => {}
        ["sim"] => session.come_back(),
        ["use", kubeconfig] => go(kubeconfig, None, session)?,
        ["use", kubeconfig, context] => go(kubeconfig, Some(context), session)?,
        _ => return Err(args.wrong()),
    }
    let (language, namespace) = (session.language(), session.namespace());
    let text = match &mut session.away {
        None => {
            let (nodes, seed) = (session.settings.nodes, session.settings.seed);
            match language.is_japanese() {
                true => format!("シミュレーションのクラスタ（ノード{nodes}台、種{seed}）\n"),
                false => format!("the simulated cluster ({nodes} nodes, seed {seed})\n"),
            }
        }
        Some(away) => {
            let version = away.remote.version().unwrap_or_default();
            let address = away.remote.address();
            match language.is_japanese() {
                true => format!(
                    "{address} のクラスタ（{version}、Namespace {namespace}）。ここですることは本物です。%cluster sim で戻ります\n"
                ),
                false => format!(
                    "the cluster at {address} ({version}, namespace {namespace}): what you do here is real; %cluster sim goes back\n"
                ),
            }
        }
    };
    sink.put(Output::Stdout(text));
    Ok(())
}

fn go(kubeconfig: &str, context: Option<&str>, session: &mut Session) -> Result<(), CellError> {
    session.unrepeatable(
        (
            "本物のクラスタは実時間で動き、いつも同じではありません",
            "a real cluster lives by the wall clock and is not the same twice",
        ),
        ("Jupyter か jupyter execute で実行する", "run the notebook in Jupyter, or with jupyter execute"),
    )?;
    let simulation = match session.away.take() {
        Some(away) => away.simulation,
        None => session.cluster.clone(),
    };
    match Away::go(kubeconfig, context, simulation.clone()) {
        Ok((away, mirror)) => {
            session.go_away(away, mirror);
            Ok(())
        }
        Err(problem) => {
            session.arrive(simulation);
            Err(CellError::new("NotReached", problem))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controls::ALL;
    use crate::controls::testing::{interactive, run, session};

    #[test]
    fn what_is_only_simulated_is_a_control_or_a_language() {
        for (name, _) in INSTEAD.iter().filter(|(name, _)| *name != "rust") {
            assert!(ALL.iter().any(|control| control.name == *name), "{name}");
        }
    }

    #[test]
    fn a_cluster_that_is_not_there_leaves_the_simulation() {
        let mut session = interactive();
        assert_eq!(run(&mut session, "%cluster"), "the simulated cluster (3 nodes, seed 1)\n");
        let told = run(&mut session, "%cluster use no-such-file");
        assert_eq!(told, "NotReached: stat no-such-file: no such file or directory");
        assert!(run(&mut session, "kubectl get nodes").contains("node-3"));
        assert!(run(&mut session, "%cluster elsewhere").starts_with("UsageError: usage: %cluster"));
    }

    #[test]
    fn a_notebook_that_is_replayed_uses_no_real_cluster() {
        let mut session = session();
        let told = run(&mut session, "%cluster use kubeconfig");
        assert!(told.starts_with("NotRepeatable: a real cluster") && told.contains("jupyter execute"), "{told}");
        assert_eq!(run(&mut session, "%cluster sim"), "the simulated cluster (3 nodes, seed 1)\n");
    }
}

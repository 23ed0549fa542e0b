//! Interrupt stops whatever waits, soon, and leaves the cluster as it is by then.

use std::time::Duration;

use kernetes::settings::Language;

use super::{Screen, run, session};

const NEVER_READY: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {nodeSelector: {no: such}, containers: \
     [{name: a, image: nginx}]}";

#[test]
fn every_cell_that_waits_can_be_interrupted() {
    let many = "kubectl create deployment web --image=nginx --replicas=5000";
    let held = "kubectl patch pod a -p '{\"metadata\":{\"finalizers\":[\"example.com/held\"]}}'\nkubectl delete pod a";
    for code in [
        "%advance 300h",
        "%until pod/a ready within 300h",
        "kubectl wait --for=condition=Ready pod/a --timeout=300h",
        "kubectl create deployment b --image=no:such\nkubectl rollout status deployment b",
        "kubectl create deployment b --image=no:such\nkubectl wait --for=create pod/c --timeout=300h",
        "%nodes 1000",
        held,
        many,
    ] {
        let mut session = session(Language::En);
        run(&mut session, NEVER_READY);
        let begun = session.cluster.now();
        let mut screen = Screen { interrupt_after: Some(60), ..Screen::default() };
        let error = session.execute(&format!("{code}\n%advance 300h"), &mut screen).expect_err(code);
        assert_eq!(error.ename, "Interrupted", "{code}: {error:?}");
        assert!(screen.asked.get() < 80, "{code}: asked {} times", screen.asked.get());
        assert!(session.cluster.now().since(begun) < Duration::from_secs(3600), "{code}");
        let (told, failed) = run(&mut session, "kubectl get pod a -o name");
        assert!(told.starts_with("pod/a\n") && failed.is_none(), "{code}: {told}");
    }
}

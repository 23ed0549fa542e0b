//! Completion and help at every place of a cell: never a panic, never a trace of them.

use kernetes::session::Session;
use kernetes::settings::Language;
use proptest::prelude::*;

use super::{run, session};

const CELLS: &[&str] = &[
    "",
    "kubectl get pods -o wide | grep 'あ'\nkubectl　describe　po",
    "%advance 30s\n%plot pods 日本\n%　why pod/",
    "# 三つを保つ\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: 箱\nspec:\n  replicas: 3 # 三つ\n  \
     template:\n    spec:\n      containers:\n      - name: 名前\n        image: ng\n---\napiVersion: v1\nkind: Po",
    "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"é\u{301}🚀\"}}",
    "node-1$ crictl ps\n\tdocker　run\u{a0}-d \u{2028}nginx",
    "%%cluster main\nkubectl get 箱 w --namespace=日本 -o",
    "%%rust\nfn main() { println!(\"こんにちは\"); }",
];

fn state(session: &Session) -> (u64, String, usize) {
    (session.cluster.revision(), session.cluster.now().to_string(), session.cluster.trace().len())
}

/// Asks at a place; the answer must lie in the cell.
fn ask(session: &mut Session, code: &str, cursor: usize) {
    let letters = code.chars().count();
    let found = session.complete(code, cursor);
    assert!(found.start <= found.end && found.end <= letters, "{code:?} {cursor}: {found:?}");
    let typed: String = code.chars().skip(found.start).take(found.end - found.start).collect();
    assert!(found.matches.iter().all(|known| known.text.starts_with(&typed)), "{code:?} {cursor}: {found:?}");
    session.inspect(code, cursor);
    session.is_complete(code);
}

#[test]
fn every_place_of_a_cell_can_be_asked_about() {
    let mut session = session(Language::Ja);
    let before = state(&session);
    for code in CELLS {
        for cursor in 0..=code.chars().count() + 1 {
            ask(&mut session, code, cursor);
        }
    }
    assert_eq!(state(&session), before);
}

#[test]
fn many_objects_do_not_slow_it_down() {
    let mut session = session(Language::En);
    let documents: String = (0..3000)
        .map(|number| format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c{number}}}\n"))
        .collect();
    run(&mut session, &documents);
    let begun = std::time::Instant::now();
    for code in ["kubectl get ", "%why configmap/c1", "kubectl get configmap c29"] {
        assert!(!session.complete(code, code.len()).matches.is_empty(), "{code}");
        session.inspect(code, code.len());
    }
    assert!(begun.elapsed() < std::time::Duration::from_secs(2), "{:?}", begun.elapsed());
}

proptest! {
    #[test]
    fn any_text_can_be_asked_about(
        pieces in prop::collection::vec(prop::sample::select(CELLS), 1..3),
        cut in 0_usize..200,
        insert in "[ \\n%:'\"{あ　-]{0,3}",
        cursor in 0_usize..250,
    ) {
        let mut session = Session::with(kernetes::settings::Settings { nodes: 0, ..Default::default() });
        let whole = pieces.concat();
        let code: String = whole.chars().take(cut).chain(insert.chars()).chain(whole.chars().skip(cut + 1)).collect();
        ask(&mut session, &code, cursor);
    }
}

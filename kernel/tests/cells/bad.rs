//! Whatever stands in a cell: it is answered, soon, and what is wrong changes nothing.

use std::time::{Duration, Instant};

use cluster_core::trace::What;
use kernetes::commands::files::Memory;
use kernetes::settings::Language;
use proptest::prelude::*;

use super::{run, session};

const POD: &str =
    "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\nspec:\n  containers:\n  - name: a\n    image: nginx\n";

/// Cells that fail, and a part of what they are told.
fn bad() -> Vec<(String, &'static str)> {
    let pod = |from: &str, to: &str| POD.replace(from, to);
    let aliases: String = ('b'..='k')
        .map(|key| format!("{key}: &{key} [*{0},*{0},*{0},*{0},*{0},*{0}]\n", (key as u8 - 1) as char))
        .collect();
    let crd = |schema: &str| {
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: foos.example.com}}\n\
             spec:\n  group: example.com\n  scope: Namespaced\n  names: {{kind: Foo, plural: foos}}\n  versions:\n  - \
             {{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {schema}}}}}\n"
        )
    };
    vec![
        ("apiVersion: v1\nkind: [Pod".into(), "line 2, column 7: this `[` is never closed"),
        ("apiVersion: v1\nkind: Pod\n\tmetadata: {}".into(), "a tab stands where YAML wants spaces"),
        ("kind: Pod".into(), "apiVersion not set"),
        ("apiVersion: 1\nkind: Pod".into(), "apiVersion: expected a string, not 1"),
        (pod("name: a\nspec", "labels: {}\nspec"), "metadata.name: Required value"),
        (pod("name: a\nspec", &format!("name: {}\nspec", "a".repeat(300))), "must be no more than 253 characters"),
        (pod("nginx", "[nginx]"), "spec.containers[0].image: expected a string"),
        (pod("nginx", "nginx\n    resources: {limits: {cpu: [1]}}"), "expected a quantity"),
        (pod("nginx", "nginx\n    ports: [{containerPort: 80, color: red}]"), "ports[0].color"),
        (pod("nginx", "nginx\n    resources: {limits: {cpu: lots}}"), "quantities must match"),
        (pod("image", "imag"), "did you mean \"image\""),
        (pod("nginx", "ng\0inx"), "U+0000"),
        (format!("{POD}---\n{}", pod("kind: Pod", "kind: Pood")), "did you mean Pod"),
        (pod("  name: a\ns", &format!("  name: a\n  annotations: {{a: '{}'}}\ns", "x".repeat(300_000))), "Too long"),
        (format!("a: &a [1,1]\n{aliases}"), "aliases"),
        ("[".repeat(100_000), "nested deeper"),
        ("a: ".to_owned() + &"{a: ".repeat(100_000), "nested deeper"),
        (format!("a: {}", "x".repeat(10 << 20)), "too large"),
        ("x".repeat(10 << 20), "too large"),
        ("%".to_owned() + &"x".repeat(2 << 20), "there is no control"),
        ("echo \\\n".repeat(300_000) + "'", "matching `''"),
        (crd("{type: strange}"), "Unsupported value: \"strange\""),
        (crd("{type: object, properties: {a: {type: array}}}"), "properties[a].items: Required value"),
        (crd("{type: object, properties: {a: {type: string, pattern: '('}}}"), "valid regular expression"),
        ("%".into(), "%help"),
        ("%advance 999999h".into(), "at most a year"),
        ("%advance NaN".into(), "not a duration"),
        ("%rewind 99".into(), "can be undone"),
        ("%nodes 100000".into(), "at most 5000 nodes"),
        ("%drop kubelet 99999999999".into(), "usage: %drop"),
        ("%kill nothing".into(), "expected KIND/NAME"),
        ("%kill pod/none".into(), "no container of pod/none is running"),
        ("%plot pods 日本/x".into(), "not something to plot"),
        ("kubectl delete namespace default".into(), "exit code 1"),
        ("kubectl scale deployment web --replicas=-1".into(), "exit code 1"),
    ]
}

#[test]
fn what_is_wrong_is_told_at_once_and_changes_nothing() {
    let mut session = session(Language::En);
    let revision = session.cluster.revision();
    let faults = |session: &kernetes::session::Session| {
        let is_fault = |what: &What| matches!(what, What::Fault(_));
        session.cluster.trace().iter().filter(|entry| is_fault(&entry.what)).count()
    };
    for (code, expected) in bad() {
        let begun = Instant::now();
        let (_, failed) = run(&mut session, &code);
        let start: String = code.chars().take(80).collect();
        let error = failed.expect(&start);
        let told = error.evalue.clone() + &error.traceback.concat();
        assert!(told.contains(expected), "{start}\n{told}");
        assert_eq!((session.cluster.revision(), faults(&session)), (revision, 0), "{start}");
        // Generous, for a busy machine and a build for debugging.
        assert!(begun.elapsed() < Duration::from_secs(5), "{start}: {:?}", begun.elapsed());
    }
    assert_eq!(run(&mut session, POD).1, None);
}

#[test]
fn what_says_nothing_does_nothing() {
    let mut session = session(Language::En);
    for code in ["", "\n\n", "# a\n# b", "---\n---", "\u{feff}", "$ "] {
        assert_eq!(run(&mut session, code), (String::new(), None), "{code:?}");
    }
}

#[test]
fn line_ends_marks_and_spaces_of_other_systems_are_taken() {
    let mut session = session(Language::En);
    let (told, failed) = run(&mut session, &format!("\u{feff}{}", POD.replace('\n', "\r\n")));
    assert!(told.starts_with("pod/a created\n") && failed.is_none(), "{told}");
    let (told, _) = run(&mut session, "kubectl　get　pods \\\r\n  -o name\r\n");
    assert_eq!(told, "pod/a\n");
}

#[test]
fn without_its_components_a_cluster_answers_with_errors() {
    let mut session = session(Language::En);
    run(&mut session, POD);
    for component in session.component_names() {
        run(&mut session, &format!("%stop {component}"));
    }
    let refused = run(&mut session, "kubectl get pods").1.unwrap();
    assert_eq!(refused.ename, "CommandFailed");
    assert!(run(&mut session, &POD.replace("name: a", "name: b")).1.is_some());
    for component in session.component_names() {
        run(&mut session, &format!("%start {component}"));
    }
    assert_eq!(run(&mut session, "kubectl delete nodes --all\nkubectl get pods").1, None);
}

/// As many as the API takes: pods come in portions, and settling ends after its virtual minute.
#[test]
fn a_size_beyond_all_nodes_is_taken_and_worked_at() {
    let mut session = session(Language::En);
    let workload = POD.replace("apiVersion: v1\nkind: Pod", "apiVersion: apps/v1\nkind: Deployment");
    let (head, spec) = workload.split_once("spec:\n").unwrap();
    let template: String = spec.lines().map(|line| format!("    {line}\n")).collect();
    let code = format!(
        "{head}spec:\n  replicas: {}\n  selector: {{matchLabels: {{a: b}}}}\n  template:\n    metadata: {{labels: {{a: b}}}}\n    spec:\n{template}",
        i32::MAX
    );
    let mut screen = super::Screen { interrupt_after: Some(40), ..Default::default() };
    let error = session.execute(&code, &mut screen).unwrap_err();
    assert_eq!(error.ename, "Interrupted", "{error:?}");
    let kind = session.cluster.kind("v1", "Pod").unwrap();
    let pods = session.cluster.list_of(kind, "default").count();
    assert!((1..5000).contains(&pods), "{pods}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_cell_panics(words in prop::collection::vec(prop::sample::select(WORDS), 0..12)) {
        let mut session = kernetes::session::Session::with(kernetes::settings::Settings { nodes: 1, ..Default::default() });
        session.files = Box::new(Memory::default());
        let mut screen = super::Screen { interrupt_after: Some(500), ..Default::default() };
        let _ = session.execute(&words.concat(), &mut screen);
    }
}

const WORDS: &[&str] = &[
    "kubectl ",
    "get ",
    "pods ",
    "-o ",
    "jsonpath=",
    "{.items[*]",
    "}",
    "'",
    "\"",
    "\n",
    " ",
    "　",
    "日本",
    "%",
    "%plot ",
    "pods",
    "/",
    "%why ",
    "pod/",
    "apiVersion: ",
    "v1",
    "kind: ",
    "Pod",
    "- ",
    ": ",
    "{",
    "[",
    "]",
    "|",
    "> ",
    "<<EOF\n",
    "EOF",
    "&&",
    "\\",
    "$ ",
    "node-1$ ",
    "crictl ps ",
    "docker run ",
    "--name ",
    "x ",
    "nginx ",
    "-1",
    "999999999999 ",
    "curl ",
    "http://",
    "[::1]",
    "etcdctl get ",
    "--prefix ",
    "%until ",
    "ready ",
    "within ",
    "1s ",
    "=",
    "-l ",
    "a in (",
    "describe ",
    "explain ",
    "scale ",
    "--replicas=",
    "deploy ",
    "create ",
    "run ",
    "--image=",
    "-",
    "--",
    "\u{202e}",
    "é",
    "taint ",
    "nodes ",
    "node-1 ",
    "label ",
    "a=b ",
    "logs ",
    "patch ",
    "-p ",
    "wait ",
    "--for=",
    "delete ",
    "--all ",
];

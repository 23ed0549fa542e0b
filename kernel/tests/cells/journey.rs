//! The way from a first manifest to two futures of one cluster, in both languages.

use kernetes::settings::Language;

use super::{session, transcript};

const CELLS: &[&str] = &[
    "apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 2
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - name: web
        image: nginx",
    "kubectl get pods -o wide",
    "kubectl scale deployment web --replicas=3",
    "%kill pod/web",
    "%kill pod/web-5c4798c59b-kvm2t",
    "%poweroff node-2",
    "%advance 10m\nkubectl get pods",
    "%why deployment/web",
    "%rewind 2",
    "%fork before",
    "kubectl delete deployment web",
    "%diff before",
];

#[test]
fn from_a_manifest_to_a_fork() {
    insta::assert_snapshot!("journey-ja", transcript(&mut session(Language::Ja), CELLS));
    insta::assert_snapshot!("journey-en", transcript(&mut session(Language::En), CELLS));
}

#[test]
fn errors_name_the_place_and_what_was_expected() {
    let cells = [
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replica: 3\n  template:\n    spec:\n      \
         containers: nginx",
        "apiVersion: v1\nkind: Pood\nmetadata: {name: web}",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a, creationTimestamp: now}\ndata: {k: '?'}",
        "apiVersion: v1\nkind: Pod\nspec: {containers: [",
        "kubctl get pods",
        "kubectl get pods --nonsense",
        "%advnce 3s",
        "%advance -1s",
        "%kill pod/web",
        "%until pod/web ready within 1s",
        "%plot pods",
    ];
    insta::assert_snapshot!("errors-en", transcript(&mut session(Language::En), &cells));
    insta::assert_snapshot!("errors-ja", transcript(&mut session(Language::Ja), &cells[6..]));
}

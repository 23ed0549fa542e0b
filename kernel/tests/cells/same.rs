//! The same notebook gives the same bytes, whatever surrounds it.

use std::process::Command;

const NOTEBOOK: &str = r#"{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [
  {"cell_type": "code", "id": "a", "metadata": {}, "execution_count": null, "outputs": [],
   "source": "kubectl create deployment web --image=nginx --replicas=3\nkubectl expose deployment web --port=80"},
  {"cell_type": "code", "id": "b", "metadata": {}, "execution_count": null, "outputs": [],
   "source": "%poweroff node-1\n%advance 1h\nkubectl get pods -o yaml\n%plot pods deployment/web"},
  {"cell_type": "code", "id": "c", "metadata": {"tags": ["raises-exception"]}, "execution_count": null,
   "outputs": [], "source": "docker run -d --name web nginx\n%kill docker/web\n%trace 50\nkubectl get events\nnonsense"}
]}"#;

fn bytes(seed: &str, env: &[(&str, &str)]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.ipynb"), NOTEBOOK).unwrap();
    let ran = Command::new(env!("CARGO_BIN_EXE_kernetes"))
        .args(["run", "a.ipynb", "--out", "b.ipynb", "--seed", seed])
        .current_dir(folder.path())
        .env_clear()
        .envs(env.iter().copied())
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    std::fs::read(folder.path().join("b.ipynb")).unwrap()
}

#[test]
fn the_surroundings_do_not_show() {
    let here = bytes("7", &[]);
    let elsewhere = [("TZ", "Asia/Tokyo"), ("LANG", "en_US.UTF-8"), ("HOME", "/nowhere"), ("HOSTNAME", "far")];
    assert!(here == bytes("7", &elsewhere));
    assert!(here != bytes("8", &[]));
}

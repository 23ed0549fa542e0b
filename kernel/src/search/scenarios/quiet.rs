//! `quiet`: a ConfigMap that says what its Greeting says, and a status that is honest about it. Half an hour passes in which
//! nothing happens.

use std::time::Duration;

use kernetes_controller::Object as _;
use serde_json::{Value, json};

use crate::grading::words::Words;
use crate::search::scenario::{Act, Edit, Scenario, Scene, object};

const EXAMPLE: &str = "example.com/v1";

pub fn scenario() -> Scenario {
    let greeting = |text: &str| object(EXAMPLE, "Greeting", "hello", json!({"spec": {"text": text}}));
    Scenario {
        start: vec![greeting("hi")],
        edits: vec![Edit::new(("文がhelloになる", "the text becomes hello"), Act::Patch(greeting("hello")))],
        met,
        ready: Some(is_ready),
        horizon: Duration::from_secs(1800),
        runs_a_minute_max: 16,
        writes_max: Some(12),
        ..Scenario::new("quiet")
    }
}

fn is_ready(scene: &Scene<'_>, greeting: &Value) -> bool {
    let child = scene.get("v1", "ConfigMap", greeting.name());
    child.is_some_and(|child| child.owned_by(greeting) && child["data"]["text"] == greeting.spec()["text"])
}

fn met(scene: &Scene<'_>) -> Result<(), Words> {
    let Some(greeting) = scene.get(EXAMPLE, "Greeting", "hello") else { return Ok(()) };
    if !is_ready(scene, &greeting) {
        return Err(Words::new(
            "ConfigMap hello が、Greetingの言うとおりになっていない",
            "ConfigMap hello does not say what the Greeting says",
        ));
    }
    match greeting.condition("Ready") {
        Some("True") => Ok(()),
        ready => Err(Words::new(
            format!("望みどおりなのに、Readyが {}", ready.unwrap_or("-")),
            format!("all is as wished, and yet Ready is {}", ready.unwrap_or("-")),
        )),
    }
}

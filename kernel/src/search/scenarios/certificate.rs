//! `certificate`: a Secret that is renewed before it expires, and not sooner. The Secret is deleted, and hours pass.

use kernetes_controller::{Duration, Object as _, Time, Value};
use serde_json::json;

use crate::grading::words::Words;
use crate::search::scenario::{Act, Edit, Scenario, Scene, object};

const EXAMPLE: &str = "example.com/v1";
const ISSUED: &str = "example.com/issued-at";
/// A Certificate lasts an hour, and is renewed in the last ten minutes of it.
const LASTS: Duration = Duration::from_secs(3600);
const RENEWED_AFTER: Duration = Duration::from_secs(3000);
/// What a renewal may be late or early by: reconciles take their time.
const SLACK: Duration = Duration::from_secs(120);

pub fn scenario() -> Scenario {
    let spec =
        json!({"spec": {"secretName": "web-tls", "durationSeconds": LASTS.as_secs(), "renewBeforeSeconds": 600}});
    Scenario {
        start: vec![object(EXAMPLE, "Certificate", "web", spec)],
        edits: vec![
            Edit::new(("75分たつ", "75 minutes pass"), Act::Wait(Duration::from_secs(75 * 60))),
            Edit::disturbance(
                ("Secretを消す", "delete the Secret"),
                Act::DeleteOwned(object("v1", "Secret", "", json!({}))),
            ),
        ],
        met,
        safe,
        // Between its renewal and its end, which comes too late.
        horizon: Duration::from_secs(55 * 60),
        // Moments differ.
        confluent: false,
        ..Scenario::new("certificate")
    }
}

fn issued(secret: &Value) -> Option<Time> {
    secret.annotation(ISSUED).and_then(Time::parse)
}

fn met(scene: &Scene<'_>) -> Result<(), Words> {
    let secret = scene.get("v1", "Secret", "web-tls");
    let Some(issued) = secret.as_ref().and_then(issued) else {
        return Err(Words::new(
            "いつ発行したかの分かるSecret web-tls がない",
            "there is no Secret web-tls that says when it was issued",
        ));
    };
    let age = scene.now() - issued;
    match age <= RENEWED_AFTER + SLACK {
        true => Ok(()),
        false => Err(Words::new(
            format!("Secret web-tls は{}秒前に発行されたまま、更新されていない", age.as_secs()),
            format!("Secret web-tls was issued {} s ago and has not been renewed", age.as_secs()),
        )),
    }
}

/// Not issued anew before its time. Looks at the last write: what has been issued before is gone with it.
fn safe(scene: &Scene<'_>) -> Result<(), Words> {
    let Some((_, write)) = scene.0.trace().writes().next_back().filter(|(_, write)| &*write.kind.kind == "Secret")
    else {
        return Ok(());
    };
    let (Some(before), Some(after)) = (&write.before, &write.after) else { return Ok(()) };
    match (issued(&before.to_json()), issued(&after.to_json())) {
        (Some(before), Some(after)) if after != before && after - before + SLACK < RENEWED_AFTER => {
            let age = (after - before).as_secs();
            Err(Words::new(
                format!("発行から{age}秒で、もう発行し直した"),
                format!("it was issued again after {age} s, long before its time"),
            ))
        }
        _ => Ok(()),
    }
}

use kernetes_controller::*;

const ISSUED: &str = "example.com/issued-at";

/// Issues, and then notes in the status when to renew.
pub struct Answer;

impl Controller for Answer {
    fn watches(&self) -> Watches {
        Watches::of("example.com/v1", "Certificate").owns("v1", "Secret")
    }

    fn reconcile(&self, key: &Key, view: &View, now: Time) -> Plan {
        let mut plan = Plan::new();
        let Some(certificate) = view.get("example.com/v1", "Certificate", key).filter(|it| !it.deleting()) else {
            return plan;
        };
        let seconds = |field: &str| Duration::from_secs(certificate.spec()[field].as_u64().unwrap_or(0));
        let lasts = seconds("durationSeconds").saturating_sub(seconds("renewBeforeSeconds"));
        let noted = certificate.status()["renewAt"].as_str().and_then(Time::parse);
        match (view.owned("v1", "Secret", &certificate).pop(), noted) {
            (None, _) => {
                let metadata =
                    json!({"name": certificate.spec()["secretName"], "annotations": {ISSUED: now.to_string()}});
                let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata});
                plan.create(child_of(&certificate, secret), "there is none");
            }
            (Some(mut secret), Some(noted)) if now >= noted => {
                secret["metadata"]["annotations"][ISSUED] = json!(now.to_string());
                plan.update(secret, "it is about to expire");
            }
            (Some(_), Some(noted)) => return plan.requeue_after(noted - now),
            (Some(_), None) => return plan,
        }
        plan.update_status(&certificate, json!({"renewAt": (now + lasts).to_string()}), "it was issued");
        plan.requeue_after(lasts)
    }
}

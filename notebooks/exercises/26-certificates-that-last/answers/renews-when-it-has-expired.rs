use kernetes_controller::*;

const ISSUED: &str = "example.com/issued-at";

/// Renews when it has expired, not before.
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
        let lasts = seconds("durationSeconds");
        let metadata = json!({"name": certificate.spec()["secretName"], "annotations": {ISSUED: now.to_string()}});
        let fresh = child_of(&certificate, json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata}));
        let Some(mut secret) = view.owned("v1", "Secret", &certificate).pop() else {
            plan.create(fresh, "there is none");
            return plan.requeue_after(lasts);
        };
        let due = secret.annotation(ISSUED).and_then(Time::parse).unwrap_or_default() + lasts;
        if now < due {
            return plan.requeue_after(due - now);
        }
        secret["metadata"]["annotations"][ISSUED] = json!(now.to_string());
        plan.update(secret, "it has expired");
        plan.requeue_after(lasts)
    }
}

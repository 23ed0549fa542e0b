use kernetes_controller::*;

const ISSUED: &str = "example.com/issued-at";

/// Patches the very version that it has seen, and looks again half way, too.
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
        let metadata = json!({"name": certificate.spec()["secretName"], "annotations": {ISSUED: now.to_string()}});
        let fresh = child_of(&certificate, json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata}));
        let Some(secret) = view.owned("v1", "Secret", &certificate).pop() else {
            plan.create(fresh, "there is none");
            return plan.requeue_after(lasts);
        };
        let due = secret.annotation(ISSUED).and_then(Time::parse).unwrap_or_default() + lasts;
        if now < due {
            let left = due - now;
            return plan.requeue_after(left.div_f64(2.0).max(left.min(Duration::from_secs(60))));
        }
        let annotations = json!({ISSUED: now.to_string()});
        let seen = &secret["metadata"]["resourceVersion"];
        plan.patch(
            &secret,
            json!({"metadata": {"annotations": annotations, "resourceVersion": seen}}),
            "it is about to expire",
        );
        plan.requeue_after(lasts)
    }
}

use kernetes_controller::*;

const ISSUED: &str = "example.com/issued-at";

/// When to renew is computed from what stands in the Secret.
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
        let secret = view.owned("v1", "Secret", &certificate).pop();
        let issued = secret.as_ref().and_then(|secret| Time::parse(secret.annotation(ISSUED)?));
        match (secret, issued) {
            (None, _) => {
                let metadata =
                    json!({"name": certificate.spec()["secretName"], "annotations": {ISSUED: now.to_string()}});
                let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata});
                plan.create(child_of(&certificate, secret), "there is none");
                plan.requeue_after(lasts)
            }
            (Some(_), Some(issued)) if now < issued + lasts => plan.requeue_after(issued + lasts - now),
            (Some(mut secret), _) => {
                secret["metadata"]["annotations"][ISSUED] = json!(now.to_string());
                plan.update(secret, "it is about to expire");
                plan.requeue_after(lasts)
            }
        }
    }
}

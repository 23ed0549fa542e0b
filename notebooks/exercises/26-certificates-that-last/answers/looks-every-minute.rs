use kernetes_controller::*;

const ISSUED: &str = "example.com/issued-at";

/// Looks every minute whether it is time.
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
        let lasts = certificate.spec()["durationSeconds"].as_u64().unwrap_or(0);
        let before = certificate.spec()["renewBeforeSeconds"].as_u64().unwrap_or(0);
        match view.owned("v1", "Secret", &certificate).pop() {
            None => {
                let metadata =
                    json!({"name": certificate.spec()["secretName"], "annotations": {ISSUED: now.to_string()}});
                let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata});
                plan.create(child_of(&certificate, secret), "there is none");
            }
            Some(mut secret) => {
                let issued = secret.annotation(ISSUED).and_then(Time::parse).unwrap_or_default();
                if now >= issued + Duration::from_secs(lasts - before) {
                    secret["metadata"]["annotations"][ISSUED] = json!(now.to_string());
                    plan.update(secret, "it is about to expire");
                }
            }
        }
        plan.requeue_after(Duration::from_secs(60))
    }
}

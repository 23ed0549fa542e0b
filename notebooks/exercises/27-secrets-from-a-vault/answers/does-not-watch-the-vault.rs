use kernetes_controller::*;

const VAULT: &str = "vault.example.com/v1";

/// Does not say that it wants to see the vault, and so it sees nothing of it.
pub struct Answer;

impl Controller for Answer {
    fn watches(&self) -> Watches {
        Watches::of("example.com/v1", "ExternalSecret").owns("v1", "Secret").also("v1", "Secret")
    }

    fn reconcile(&self, key: &Key, view: &View, _: Time) -> Plan {
        let mut plan = Plan::new();
        let Some(wish) = view.get("example.com/v1", "ExternalSecret", key).filter(|it| !it.deleting()) else {
            return plan;
        };
        let name = wish.spec()["secretName"].as_str().unwrap_or_default();
        let there = view.get("v1", "Secret", &Key::new(wish.namespace(), name));
        let entry = view.get(VAULT, "Entry", &Key::new("", wish.spec()["entry"].as_str().unwrap_or_default()));
        let value = entry.as_ref().and_then(|entry| entry.spec()["value"].as_str());
        let (ready, reason) = match (&there, value) {
            (Some(there), _) if !there.owned_by(&wish) => ("False", "Taken"),
            (_, None) => ("False", "VaultSealed"),
            (there, Some(value)) => {
                let data = json!({"value": base64(value)});
                if there.as_ref().is_none_or(|there| there["data"] != data) {
                    let secret =
                        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data});
                    let secret = child_of(&wish, secret);
                    match there {
                        None => plan.create(secret, "there is none"),
                        Some(there) => plan.patch(there, json!({"data": data}), "the vault has another value"),
                    };
                }
                ("True", "Synced")
            }
        };
        let conditions = json!([{"type": "Ready", "status": ready, "reason": reason}]);
        let status = json!({"conditions": conditions});
        if wish.status() != &status {
            plan.update_status(&wish, status, "the status has changed");
        }
        plan
    }
}

fn base64(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = text.as_bytes().chunks(3).flat_map(|chunk| {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        (0..4).map(move |index| match index <= chunk.len() {
            true => char::from(DIGITS[(bits >> (18 - 6 * index) & 63) as usize]),
            false => '=',
        })
    });
    digits.collect()
}

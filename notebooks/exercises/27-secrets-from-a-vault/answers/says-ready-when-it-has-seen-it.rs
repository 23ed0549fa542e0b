use kernetes_controller::*;

const VAULT: &str = "vault.example.com/v1";

/// Writes the Secret, and says Ready only when it sees the copy.
pub struct Answer;

impl Controller for Answer {
    fn watches(&self) -> Watches {
        Watches::of("example.com/v1", "ExternalSecret").owns("v1", "Secret").also("v1", "Secret").also(VAULT, "Entry")
    }

    fn reconcile(&self, key: &Key, view: &View, now: Time) -> Plan {
        let mut plan = Plan::new();
        let Some(wish) = view.get("example.com/v1", "ExternalSecret", key).filter(|it| !it.deleting()) else {
            return plan;
        };
        let name = wish.spec()["secretName"].as_str().unwrap_or_default();
        let there = view.get("v1", "Secret", &Key::new(wish.namespace(), name));
        let entry = view.get(VAULT, "Entry", &Key::new("", wish.spec()["entry"].as_str().unwrap_or_default()));
        let value = entry.as_ref().and_then(|entry| entry.spec()["value"].as_str());
        let (ready, reason) = match (there, value) {
            (Some(there), _) if !there.owned_by(&wish) => (false, "Taken"),
            (_, None) => (false, "VaultSealed"),
            (Some(there), Some(value)) if there["data"]["value"] == base64(value) => (true, "Synced"),
            (Some(mut there), Some(value)) => {
                there["data"]["value"] = json!(base64(value));
                plan.update(there, "the vault has another value");
                (false, "Copying")
            }
            (None, Some(value)) => {
                let (metadata, data) = (json!({"name": name}), json!({"value": base64(value)}));
                let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data});
                plan.create(child_of(&wish, secret), "there is none");
                (false, "Copying")
            }
        };
        let mut status = wish.status().clone();
        set_condition(&mut status, "Ready", ready, reason, "", now);
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

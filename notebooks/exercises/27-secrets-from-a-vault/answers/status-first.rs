use kernetes_controller::*;

const VAULT: &str = "vault.example.com/v1";

/// Says that it is not Ready before it writes, and Ready once there is nothing to write.
pub struct Answer;

impl Controller for Answer {
    fn watches(&self) -> Watches {
        Watches::of("example.com/v1", "ExternalSecret").owns("v1", "Secret").also("v1", "Secret").also(VAULT, "Entry")
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
        let is_taken = there.as_ref().is_some_and(|there| !there.owned_by(&wish));
        let data = value.map(|value| json!({"value": base64(value)}));
        let is_so = there.as_ref().zip(data.as_ref()).is_some_and(|(there, data)| &there["data"] == data);
        let ready = if is_so && !is_taken { "True" } else { "False" };
        if wish.condition("Ready") != Some(ready) {
            let conditions = json!([{"type": "Ready", "status": ready, "reason": "Compared"}]);
            plan.update_status(&wish, json!({"conditions": conditions}), "the status has changed");
        }
        if let Some(data) = data.filter(|_| !is_so && !is_taken) {
            let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data});
            match &there {
                None => plan.create(child_of(&wish, secret), "there is none"),
                Some(there) => plan.patch(there, json!({"data": data}), "the vault has another value"),
            };
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

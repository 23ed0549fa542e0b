//! `both-added: {of: configmap/account, field: balance, managers: [alice, bob], adds: 100}`: since the exercise began each of
//! the two has written the field once, so much more than it found. `met-and-retried`, of the same: one was refused with 409
//! between the two writes, and the second write says over which version it goes.

use cluster_core::Cluster;
use cluster_core::api::object::Object;
use cluster_core::apiserver::managed;
use cluster_core::trace::{Entry, RequestEntry, What};
use serde::Deserialize;
use serde_json::Value;

use super::Property;
use crate::grading::objects::ObjectName;
use crate::grading::words::Words;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Account {
    of: ObjectName,
    field: String,
    managers: [String; 2],
    adds: i64,
}

#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct BothAdded {
    account: Account,
}

#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct MetAndRetried {
    account: Account,
}

impl Property for BothAdded {
    fn look(&self, cluster: &mut Cluster, start: &Cluster) -> Result<(), Words> {
        let account = &self.account;
        let steps = account.steps(cluster, start);
        let told: Vec<String> = steps.iter().map(|(_, write)| account.told(write)).collect();
        let wrong = || Words::same(format!("{}: {}", account.of, told.join(", ")));
        let [(_, first), (_, second)] = steps.as_slice() else { return Err(wrong()) };
        let adds =
            |write: &RequestEntry| Some(account.value(write.after.as_ref())? - account.value(write.before.as_ref())?);
        let is_by = |write: &RequestEntry, manager: &str| account.writer(write).as_deref() == Some(manager);
        let [one, other] = &account.managers;
        let by_both = is_by(first, one) && is_by(second, other) || is_by(first, other) && is_by(second, one);
        if by_both && [first, second].iter().all(|write| adds(write) == Some(account.adds)) {
            Ok(())
        } else {
            Err(wrong())
        }
    }
}

impl Property for MetAndRetried {
    fn look(&self, cluster: &mut Cluster, start: &Cluster) -> Result<(), Words> {
        let account = &self.account;
        let steps = account.steps(cluster, start);
        let [(first, _), .., (last, retried)] = steps.as_slice() else {
            return Err(Words::new("書き込みが2つない", "there are no two writes"));
        };
        let is_conflict = |entry: &Entry| match &entry.what {
            What::Request(refused) => refused.code == 409 && account.of.names(&refused.kind, &refused.key),
            _ => false,
        };
        let mut between = cluster.trace().since(first.sequence).take_while(|entry| entry.sequence < last.sequence);
        if !between.any(is_conflict) {
            return Err(Words::new("2つの書き込みの間に409がない", "no 409 between the two writes"));
        }
        let over = retried.before.as_ref().map_or(0, |before| before.revision).to_string();
        let cell = last.causes.as_slice().iter().find_map(|&cause| match &cluster.trace().get(cause)?.what {
            What::Cell(text) => Some(text.clone()),
            _ => None,
        });
        // Whoever names the version that it writes over, or what it holds, has looked; so has who pipes on what it read.
        let is_piped = |line: &str| {
            let stages: Vec<&str> = line.split('|').map(str::trim).collect();
            let [read, .., write] = stages.as_slice() else { return false };
            let writes_it = write.starts_with("kubectl replace") && write.split_whitespace().any(|word| word == "-");
            read.starts_with("kubectl get") && writes_it
        };
        let has_read = |text: &str| {
            let is_between = |letter: char| !letter.is_ascii_digit();
            let names_version = text.split(is_between).any(|number| number == over);
            names_version || text.contains("\"test\"") || text.lines().any(is_piped)
        };
        if cell.is_some_and(|text| has_read(&text)) {
            return Ok(());
        }
        Err(Words::new(
            "2つめの書き込みは、どの版に上書きするかを言っていない",
            "the second write does not say which version it writes over",
        ))
    }
}

impl Account {
    /// The writes that changed the field.
    fn steps<'a>(&self, cluster: &'a Cluster, start: &Cluster) -> Vec<(&'a Entry, &'a RequestEntry)> {
        let begun = start.trace().next_sequence();
        let writes = cluster.trace().writes().filter(|(entry, _)| entry.sequence >= begun);
        let own = writes.filter(|(_, write)| self.of.names(&write.kind, &write.key));
        own.filter(|(_, write)| self.value(write.before.as_ref()) != self.value(write.after.as_ref())).collect()
    }

    fn value(&self, object: Option<&Object>) -> Option<i64> {
        object?.to_json().get("data")?.get(&self.field)?.as_str()?.trim().parse().ok()
    }

    /// Who manages the field after a write.
    fn writer(&self, write: &RequestEntry) -> Option<String> {
        let metadata = managed::metadata_json(write.after.as_ref()?);
        let entries = metadata.get("managedFields").and_then(Value::as_array).cloned().unwrap_or_default();
        let owns = |entry: &&Value| entry["fieldsV1"]["f:data"].get(format!("f:{}", self.field)).is_some();
        entries.iter().find(owns).and_then(|entry| entry["manager"].as_str().map(str::to_owned))
    }

    /// `0 → 100 (alice)`
    fn told(&self, write: &RequestEntry) -> String {
        let value =
            |object: Option<&Object>| self.value(object).map_or_else(|| "?".to_owned(), |value| value.to_string());
        let (before, after) = (value(write.before.as_ref()), value(write.after.as_ref()));
        format!("{before} → {after} ({})", self.writer(write).unwrap_or_default())
    }
}

//! Another writer of templates' status: a hub that runs workload controllers.
//!
//! Such a hub has Nodes, which the shell looks for when it starts ([`crate::index::Config::hub_has_nodes`]), or something
//! there puts another status in the place of ours again and again. Two writers of one field would write for ever: ours is not
//! written then, and what the members report is in the bindings.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use serde_json::Value;

use super::Index;
use crate::{
    object::{Gvk, ResourceId, Time},
    plan::{Change, Plan, Verb},
};

/// So often our status of one template is replaced before it is left alone.
const TIMES: u8 = 3;

/// Within this time, in milliseconds.
const WITHIN: i64 = 300_000;

/// What became of the status that was last written to a template.
#[derive(Clone, Debug)]
pub struct Contest {
    sent: u64,
    stored: bool,
    replaced: u8,
    since: Time,
}

/// Why the status of templates of a kind is not ours to write; `None` where it is.
pub(crate) fn is_of_others(index: &Index, gvk: &Gvk) -> Option<&'static str> {
    if index.config.hub_has_nodes {
        return Some("the hub has Nodes: its own controllers write the status of workloads");
    }
    index
        .contested
        .contains(gvk)
        .then_some("another writer on the hub writes the status of this kind, too")
}

impl Index {
    /// Notes what is about to be written to a template's status. Cost: O(size of the status).
    pub(crate) fn sends_status(&mut self, id: &ResourceId, plan: &Plan, now: Time) {
        let Some(sent) = plan.changes.iter().find_map(|change| match change {
            Change::Hub {
                verb: Verb::MergeStatus(body),
                ..
            } => Some(hash_of(&body["status"])),
            _ => None,
        }) else {
            return;
        };
        let Some(resource) = self.resources.get_mut(id) else {
            return;
        };
        match &mut resource.contest {
            Some(contest) => (contest.sent, contest.stored) = (sent, false),
            None => {
                resource.contest = Some(Box::new(Contest {
                    sent,
                    stored: false,
                    replaced: 0,
                    since: now,
                }));
            }
        }
    }

    /// A template has another status than before: ours, or one in its place. Cost: O(size of the status).
    pub(crate) fn status_seen(&mut self, id: &ResourceId, status: &Value, now: Time) {
        let Some(contest) = self
            .resources
            .get_mut(id)
            .and_then(|resource| resource.contest.as_mut())
        else {
            return;
        };
        if hash_of(status) == contest.sent {
            contest.stored = true;
            return;
        }
        if !std::mem::take(&mut contest.stored) {
            return;
        }
        if now >= contest.since.plus(WITHIN) {
            (contest.replaced, contest.since) = (0, now);
        }
        contest.replaced += 1;
        if contest.replaced >= TIMES && self.contested.insert(id.gvk.clone()) {
            self.notices.push(format!(
                "another writer on the hub writes the status of {id}: the status of {} templates is no longer \
                 written. A hub runs no workload controllers (docs/concepts.md, \"The status of a template\"); what \
                 members report is in the bindings",
                id.gvk.kind
            ));
        }
    }
}

/// What tells one status from another, whatever the order of its fields; null is as good as absent.
fn hash_of(value: &Value) -> u64 {
    fn add(value: &Value, hasher: &mut DefaultHasher) {
        match value {
            Value::Object(map) => {
                let sorted: BTreeMap<_, _> = map.iter().filter(|(_, value)| !value.is_null()).collect();
                sorted.len().hash(hasher);
                for (key, value) in sorted {
                    key.hash(hasher);
                    add(value, hasher);
                }
            }
            Value::Array(items) => {
                items.len().hash(hasher);
                items.iter().for_each(|item| add(item, hasher));
            }
            plain => plain.to_string().hash(hasher),
        }
    }
    let mut hasher = DefaultHasher::new();
    add(value, &mut hasher);
    hasher.finish()
}

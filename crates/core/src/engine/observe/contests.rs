//! Contests over the status of templates: see [`crate::fleet::contests`].

use serde_json::Value;

use crate::{
    cache::Contest,
    fleet::Fleet,
    object::{ResourceId, Time},
    plan::{Change, Plan, Verb},
};

impl Fleet {
    /// Records the status that is about to be written to a template. Cost: O(size of the status).
    pub(in crate::engine) fn sends_status(&mut self, id: &ResourceId, plan: &Plan) {
        let Some(sent) = plan.changes.iter().find_map(|change| match change {
            Change::Hub {
                verb: Verb::MergeStatus(body),
                ..
            } => Some(&body["status"]),
            _ => None,
        }) else {
            return;
        };
        let Some(resource) = self.cache.resources.get_mut(id) else {
            return;
        };
        match &mut resource.contest {
            Some(contest) => contest.sends(sent),
            None => resource.contest = Some(Box::new(Contest::begins(sent))),
        }
    }

    /// The status of a template changed: to ours, or to another one in its place. Cost: O(size of the status).
    pub(super) fn status_seen(&mut self, id: &ResourceId, status: &Value, now: Time) {
        let resource = self.cache.resources.get_mut(id);
        let contest = resource.and_then(|resource| resource.contest.as_mut());
        if contest.is_some_and(|contest| contest.observe(status, now))
            && self.memory.contested.insert(id.gvk.clone())
        {
            self.memory.notices.push(format!(
                "another writer on the hub writes the status of {id}: the status of {} templates is no longer \
                 written. A hub runs no workload controllers (docs/concepts.md, \"The status of a template\"); what \
                 members report is in the bindings",
                id.gvk.kind
            ));
        }
    }
}

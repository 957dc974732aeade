//! I9, against what the world itself did: a stored `FullyApplied=True` that carries the binding's generation means that each
//! scheduled cluster was seen with the version that the binding names.
//!
//! A status that was written before the binding changed carries an older generation: it is stale until the control plane has
//! acted, and says so. So nothing here depends on what the control plane remembers.

use std::collections::BTreeMap;

use entourage_core::object::ResourceId;
use serde_json::Value;

use super::{World, id_in};

/// The revision of the hub, the content, the replicas.
type Seen = (u64, Value, Option<i32>);

/// The templates over time, and the versions of them that were seen on members.
#[derive(Default)]
pub(super) struct Truth {
    /// The content of each template, by resourceVersion.
    templates: BTreeMap<(ResourceId, String), Value>,
    /// The copies on members as written or found equal: the revision of the hub at that time, the template's content, and the
    /// assigned replicas.
    seen: BTreeMap<(String, ResourceId), Vec<Seen>>,
}

/// The content of a template, without the fields that servers and this project write.
fn content(template: &Value) -> Value {
    let mut content = template.clone();
    if let Some(fields) = content.as_object_mut() {
        fields.retain(|field, _| !["metadata", "status"].contains(&field.as_str()));
    }
    content
}

impl World {
    pub(super) fn note_template(&mut self, key: &ResourceId) {
        let Some(object) = self.hub.get(key) else { return };
        let revision = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        let entry = (key.clone(), revision.to_owned());
        self.truth.templates.insert(entry, content(object));
    }

    pub(super) fn note_seen(
        &mut self,
        cluster: &str,
        key: &ResourceId,
        source: &Value,
        replicas: Option<i32>,
    ) {
        let entry = (self.versions.last(), content(source), replicas);
        let all = self
            .truth
            .seen
            .entry((cluster.to_owned(), key.clone()))
            .or_default();
        all.push(entry);
    }

    /// I9, for each stored binding.
    pub(crate) fn assert_reported_truly(&self) {
        for binding in self.hub.values().filter(|each| is_binding(each)) {
            self.assert_is_true(binding);
        }
    }

    pub(super) fn assert_is_true(&self, binding: &Value) {
        let generation = &binding["metadata"]["generation"];
        let conditions = binding["status"]["conditions"].as_array();
        let is_true = |each: &Value| {
            each["type"] == "FullyApplied"
                && each["status"] == "True"
                && each["observedGeneration"] == *generation
        };
        if !conditions.into_iter().flatten().any(is_true) {
            return;
        }
        let resource = &binding["spec"]["resource"];
        let text = |field: &str| resource[field].as_str().unwrap_or_default().to_owned();
        let key = id_in(resource);
        let revision = text("resourceVersion");
        let Some(wanted) = self.truth.templates.get(&(key.clone(), revision.clone())) else {
            return;
        };
        let since: u64 = revision.parse().unwrap_or_default();
        let own = binding["spec"]["clusters"].as_array().into_iter().flatten();
        let own = own.filter(|_| binding["spec"]["placement"].is_object());
        let divides = binding["spec"]["placement"]["replicaScheduling"]["replicaSchedulingType"] == "Divided";
        let required = binding["spec"]["requiredBy"].as_array().into_iter().flatten();
        let required = required.flat_map(|each| each["clusters"].as_array().into_iter().flatten());
        let own = own.map(|target| (target, divides));
        for (target, divided) in own.chain(required.map(|target| (target, false))) {
            let cluster = target["name"].as_str().unwrap_or_default();
            if self.hub_object("Cluster", cluster).is_none() {
                continue;
            }
            let share = target["replicas"].as_i64().filter(|_| divided);
            let is_it = |(at, content, replicas): &Seen| {
                let is_share =
                    replicas.is_none() || share.is_none_or(|share| replicas.map(i64::from) == Some(share));
                // What was delivered after that version was there is that version, or a later one.
                if content == wanted { is_share } else { *at >= since }
            };
            let seen = self.truth.seen.get(&(cluster.to_owned(), key.clone()));
            let seen = seen.map(Vec::as_slice).unwrap_or_default();
            let after = seen.partition_point(|(at, ..)| *at < since);
            let before = seen[..after].last();
            assert!(
                before.is_some_and(is_it) || seen[after..].iter().any(is_it),
                "FullyApplied of {} is no truth: {cluster} was not seen with {key:?} {revision}: {wanted}\nseen: {seen:#?}\nbinding: \
                 {binding:#}",
                binding["metadata"]["name"],
            );
        }
    }

    /// Every condition carries the generation of its object: nothing is on its way any more.
    pub(crate) fn assert_generations_are_taken_in(&self) {
        for (key, object) in self.hub.iter() {
            let meta = &object["metadata"];
            if !meta["deletionTimestamp"].is_null() || meta["generation"].is_null() {
                continue;
            }
            for each in object["status"]["conditions"].as_array().into_iter().flatten() {
                let reported = &each["observedGeneration"];
                assert!(
                    reported.is_null() || *reported == meta["generation"],
                    "{key:?} {each:#} {meta:#}"
                );
            }
        }
    }
}

pub(super) fn is_binding(object: &Value) -> bool {
    let kind = object["kind"].as_str();
    kind.is_some_and(|kind| ["ResourceBinding", "ClusterResourceBinding"].contains(&kind))
}

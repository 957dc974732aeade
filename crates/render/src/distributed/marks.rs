//! The ownership metadata of a distribution's copy, and the record of the labels and annotations that the distribution set.

use std::collections::BTreeSet;

use entourage_api::keys::{TRUE, annotation, label};
use serde_json::{Map, Value, json};

use super::{
    normal,
    render::{DistributionRenderSpec, Mark, Standing},
};
use entourage_model::problem::is_subdomain;

/// Returns the owner of an object. An earlier distribution of the same name is another one: it has another uid.
///
/// A copy that a control plane delivered to this cluster is held although it has no controller: taking it over would contend
/// with that control plane, which may be our own.
#[must_use]
pub fn standing(render_spec: &DistributionRenderSpec, live: &Value) -> Standing {
    if is_marked(render_spec, live) {
        return Standing::Ours;
    }
    holder(live).map_or(Standing::Free, Standing::Held)
}

/// The owner of an object that is not of the given distribution, for a person; `None` if it has no owner.
pub(super) fn holder(live: &Value) -> Option<String> {
    if let Some(controller) = owners(live).find(|owner| is_controller(owner)) {
        let text = |field: &str| clipped(controller[field].as_str().unwrap_or_default());
        return Some(format!("{} {}", text("kind"), text("name")).trim().to_owned());
    }
    let (labels, annotations) = (&live["metadata"]["labels"], &live["metadata"]["annotations"]);
    if let Some(hub) = labels[label::DISTRIBUTED_BY].as_str().map(clipped) {
        let name = annotations[annotation::DISTRIBUTED_FROM].as_str();
        let place = annotations[annotation::DISTRIBUTED_IN].as_str().map(clipped);
        let place = place.map_or_else(String::new, |place| format!(", made for {place}"));
        return Some(match name.filter(|name| is_subdomain(name)) {
            Some(name) => format!("{KIND} {name} of hub {hub}{place}"),
            None => format!("hub {hub}{place}"),
        });
    }
    if let Some(hub) = labels[label::HUB].as_str().map(clipped) {
        return Some(format!("hub {hub}"));
    }
    if labels[label::MANAGED] == TRUE {
        return Some("a control plane".to_owned());
    }
    None
}

/// The live object without our ownership metadata, ready for a PUT; `None` if it carries none of this distribution. Labels and
/// annotations that the distribution set are kept, like its data.
#[must_use]
pub fn release(render_spec: &DistributionRenderSpec, live: &Value) -> Option<Value> {
    let is_ours = |owner: &Value| render_spec.mark == Mark::Owner && is_uid(owner, &render_spec.uid);
    if !is_marked(render_spec, live) && !owners(live).any(is_ours) {
        return None;
    }
    let mut object = live.clone();
    let meta = object.get_mut("metadata")?.as_object_mut()?;
    meta.remove("managedFields");
    take_out(meta, "annotations", RECORDS);
    if matches!(render_spec.mark, Mark::Member { .. }) {
        take_out(meta, "labels", &[label::DISTRIBUTED_BY]);
    } else if let Some(Value::Array(owners)) = meta.get_mut("ownerReferences") {
        owners.retain(|owner| !is_ours(owner));
    }
    Some(object)
}

/// The annotations that identify a copy.
pub(super) const RECORDS: &[&str] = &[
    annotation::DISTRIBUTED_FROM,
    annotation::DISTRIBUTED_HASH,
    annotation::DISTRIBUTED_IN,
    annotation::DISTRIBUTED_KEYS,
];

/// The keys of labels and annotations that a distribution set on a copy.
#[derive(Debug, Default)]
pub(super) struct Keys {
    labels: BTreeSet<String>,
    annotations: BTreeSet<String>,
}

impl Keys {
    /// The keys of two maps.
    pub(super) fn of(labels: &Map<String, Value>, annotations: &Map<String, Value>) -> Self {
        Self {
            labels: labels.keys().cloned().collect(),
            annotations: annotations.keys().cloned().collect(),
        }
    }

    /// The keys that an object lists as set. A key that no distribution sets is omitted, whoever wrote it there.
    pub(super) fn on(live: &Value) -> Self {
        let written = &live["metadata"]["annotations"][annotation::DISTRIBUTED_KEYS];
        let mut keys = Self::default();
        for key in written.as_str().into_iter().flat_map(|keys| keys.split(',')) {
            let (set, key) = match key.split_once(':') {
                Some(("l", key)) => (&mut keys.labels, key),
                Some(("a", key)) => (&mut keys.annotations, key),
                _ => continue,
            };
            if normal::travels(key) {
                set.insert(key.to_owned());
            }
        }
        keys
    }

    /// The keys of `labels` or `annotations`.
    pub(super) fn in_field(&self, field: &str) -> &BTreeSet<String> {
        match field {
            "labels" => &self.labels,
            _ => &self.annotations,
        }
    }

    /// The value of [`annotation::DISTRIBUTED_KEYS`].
    pub(super) fn written(&self) -> String {
        let annotations = self.annotations.iter().map(|key| format!("a:{key}"));
        let labels = self.labels.iter().map(|key| format!("l:{key}"));
        annotations.chain(labels).collect::<Vec<_>>().join(",")
    }
}

/// The owners of a copy: those of the live object, and the distribution if ownership is by ownerReference. A server accepts one
/// controller.
///
/// An existing reference of ours in the other version of the kind is not changed.
pub(super) fn owners_of_copy(render_spec: &DistributionRenderSpec, live: &Value) -> Vec<Value> {
    let mut all: Vec<Value> = owners(live).cloned().collect();
    if render_spec.mark != Mark::Owner {
        return all;
    }
    let place = all.iter().position(|owner| is_uid(owner, &render_spec.uid));
    let standing = place.map(|place| &all[place]).filter(|owner| is_of_group(owner));
    let ours = json!({
        "apiVersion": standing.map_or(json!(API_VERSION), |owner| owner["apiVersion"].clone()),
        "kind": KIND,
        "name": &*render_spec.distribution,
        "uid": &*render_spec.uid,
        "controller": true,
        "blockOwnerDeletion": true,
    });
    for owner in all.iter_mut().filter(|owner| is_controller(owner)) {
        owner["controller"] = json!(false);
    }
    let place = place.unwrap_or(all.len());
    all.retain(|owner| !is_uid(owner, &render_spec.uid));
    all.insert(place, ours);
    all
}

/// True if a live object has the distribution among its owners that a copy has as its controller.
pub(super) fn has_owner_of(copy: &Value, live: &Value) -> bool {
    let without_version = |owner: &Value| {
        let mut owner = owner.clone();
        if is_of_group(&owner) {
            owner["apiVersion"] = json!(API_GROUP);
        }
        owner
    };
    let is_ours = |owner: &&Value| is_controller(owner) && is_of_group(owner) && owner["kind"] == KIND;
    let ours = owners(copy).find(is_ours).map(without_version);
    ours.is_none_or(|ours| owners(live).any(|owner| without_version(owner) == ours))
}

const API_GROUP: &str = "apps.kruise.io";
const API_VERSION: &str = "apps.kruise.io/v1alpha1";
const KIND: &str = "ResourceDistribution";

fn is_marked(render_spec: &DistributionRenderSpec, live: &Value) -> bool {
    match &render_spec.mark {
        Mark::Owner => owners(live).any(|owner| is_controller(owner) && is_uid(owner, &render_spec.uid)),
        Mark::Member { hub, cluster } => {
            let meta = &live["metadata"];
            !hub.is_empty()
                && meta["labels"][label::DISTRIBUTED_BY] == **hub
                && meta["annotations"][annotation::DISTRIBUTED_FROM] == *render_spec.distribution
                && meta["annotations"][annotation::DISTRIBUTED_IN] == *place(cluster, &render_spec.namespace)
        }
    }
}

/// The place that a copy on a member was made for, as its annotation has it. A copy that is duplicated or restored elsewhere
/// carries the same annotation: there it has no owner.
#[must_use]
pub fn place(cluster: &str, namespace: &str) -> String {
    format!("{cluster}/{namespace}")
}

fn owners(object: &Value) -> impl Iterator<Item = &Value> {
    let all = object["metadata"]["ownerReferences"].as_array();
    all.into_iter().flatten().filter(|owner| owner.is_object())
}

fn is_controller(owner: &Value) -> bool {
    owner["controller"] == true
}

fn is_uid(owner: &Value, uid: &str) -> bool {
    !uid.is_empty() && owner["uid"] == uid
}

/// True if an owner is of the group of distributions, in any version.
fn is_of_group(owner: &Value) -> bool {
    let group = owner["apiVersion"].as_str().and_then(|text| text.split_once('/'));
    group.is_some_and(|(group, _)| group == API_GROUP)
}

fn take_out(meta: &mut Map<String, Value>, field: &str, keys: &[&str]) {
    if let Some(map) = meta.get_mut(field).and_then(Value::as_object_mut) {
        map.retain(|key, _| !keys.contains(&key.as_str()));
    }
}

/// Cuts a text to the longest length of a name: it is written into a status, once for each namespace.
fn clipped(text: &str) -> &str {
    let end = text.char_indices().nth(253).map_or(text.len(), |(at, _)| at);
    &text[..end]
}

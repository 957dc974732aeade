//! The ownership metadata of a copy of a distribution, and the labels and annotations that the distribution set.

use std::collections::BTreeSet;

use entourage_api::keys::{TRUE, annotation, label};
use serde_json::{Map, Value, json};

use super::{
    normal,
    render::{DistributionRenderSpec, Mark, Standing},
};
use entourage_model::problem::is_subdomain;

/// Tells whose an object is. An earlier distribution of the same name is another one: it has another uid.
///
/// What a control plane delivered to this cluster is held although it has no controller: who takes it over fights with that
/// control plane, which may be our own.
#[must_use]
pub fn standing(render_spec: &DistributionRenderSpec, live: &Value) -> Standing {
    if is_marked(render_spec, live) {
        return Standing::Ours;
    }
    holder(live).map_or(Standing::Free, Standing::Held)
}

/// Whose an object is that is not the asking distribution's, for a person; `None` when it is nobody's.
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

/// The live object without our marks, ready for a PUT; `None` when it carries none of this distribution. What the
/// distribution set of labels and annotations stays, as its data does.
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

/// The annotations that say what a copy is.
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
    /// All keys of two maps.
    pub(super) fn of(labels: &Map<String, Value>, annotations: &Map<String, Value>) -> Self {
        Self {
            labels: labels.keys().cloned().collect(),
            annotations: annotations.keys().cloned().collect(),
        }
    }

    /// Those that an object says were set. A key that no distribution sets is not among them, whoever wrote it there.
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

    /// Those of `labels` or `annotations`.
    pub(super) fn in_field(&self, field: &str) -> &BTreeSet<String> {
        match field {
            "labels" => &self.labels,
            _ => &self.annotations,
        }
    }

    /// As [`annotation::DISTRIBUTED_KEYS`] holds them.
    pub(super) fn written(&self) -> String {
        let annotations = self.annotations.iter().map(|key| format!("a:{key}"));
        let labels = self.labels.iter().map(|key| format!("l:{key}"));
        annotations.chain(labels).collect::<Vec<_>>().join(",")
    }
}

/// The owners of a copy: those of the live object, and the distribution where it is one. A server takes one controller.
///
/// A reference of ours that stands there in the other version of the kind stays as it is.
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

/// Whether a live object has the distribution among its owners that a copy has for its controller.
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

/// How a copy on a member names the place that it was made for. Whoever copies or restores a copy elsewhere copies this, too:
/// there it is nobody's.
pub(super) fn place(cluster: &str, namespace: &str) -> String {
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

/// Whether an owner is of the group of distributions, in any version.
fn is_of_group(owner: &Value) -> bool {
    let group = owner["apiVersion"].as_str().and_then(|text| text.split_once('/'));
    group.is_some_and(|(group, _)| group == API_GROUP)
}

fn take_out(meta: &mut Map<String, Value>, field: &str, keys: &[&str]) {
    if let Some(map) = meta.get_mut(field).and_then(Value::as_object_mut) {
        map.retain(|key, _| !keys.contains(&key.as_str()));
    }
}

/// No longer than names are: the text ends up in a status, as often as there are namespaces.
fn clipped(text: &str) -> &str {
    let end = text.char_indices().nth(253).map_or(text.len(), |(at, _)| at);
    &text[..end]
}

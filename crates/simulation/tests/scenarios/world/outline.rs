//! The state that should be equal between two runs.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{World, kind_of};

impl World {
    /// Everything that should be equal between a disturbed and an undisturbed run.
    pub(crate) fn outline(&self) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        for (id, object) in self.hub.iter() {
            let mut object = object.clone();
            let kind = kind_of(id);
            if kind.ends_with("ResourceBinding") {
                mask(&mut object);
            }
            all.insert(
                format!("hub {kind}/{}/{}", id.namespace, id.name),
                masked(&object),
            );
        }
        for (member, objects) in &self.members {
            for (id, object) in objects.iter() {
                let line = format!("{member} {}/{}/{}", kind_of(id), id.namespace, id.name);
                all.insert(line, masked(object));
            }
        }
        all
    }
}

fn masked(object: &Value) -> String {
    let mut object = object.clone();
    // A member's own numbering of rollouts.
    if let Some(all) = object["metadata"]["annotations"].as_object_mut() {
        all.remove("deployment.kubernetes.io/revision");
    }
    mask(&mut object);
    object.to_string()
}

/// uids, versions, times and permanent ids differ from run to run.
fn mask(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                let volatile = [
                    "uid",
                    "creationTimestamp",
                    "resourceVersion",
                    "generation",
                    "observedGeneration",
                    "lastTransitionTime",
                    "lastScheduledTime",
                    "unhealthySince",
                    "schedulerObservedGeneration",
                    "timeAdded",
                    "copy",
                    "resourcetemplate.karmada.io/uid",
                    "resourcetemplate.karmada.io/generation",
                    "entourage.dev/content",
                    "entourage.dev/activated",
                ];
                if volatile.contains(&key.as_str())
                    || key.contains("permanent-id")
                    || key.contains("depended-by")
                {
                    *value = json!("*");
                } else {
                    mask(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(mask),
        _ => {}
    }
}

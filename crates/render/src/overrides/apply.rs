//! Application of rules to an object.
//!
//! Ownership and identity of a copy cannot be changed: its apiVersion, kind and name, metadata other than labels and
//! annotations, status, and our own labels and annotations. If a rule sets or removes a whole map of labels or annotations, our
//! entries are kept.

use std::{collections::BTreeMap, fmt, sync::Arc};

use entourage_api::policy::OverriderOperator;
use serde_json::{Map, Value, json};

use super::{Rule, containers, field, metadata, patch, record::is_secret};
use entourage_model::{
    marks::is_mark,
    object::{Gvk, ResourceId, Str, StrMap},
};

/// The maps in an object's metadata that may be changed.
const MAPS: [&str; 2] = ["labels", "annotations"];

/// A rule that cannot be applied. It names the policy, the rule, the cause, and the remedy; never any content of the object or
/// the values that the rule sets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct BadOverride {
    /// Policy and place in it, such as `OverridePolicy default/o spec.overrideRules[0].overriders.plaintext[1]`.
    pub at: String,
    /// The cluster that the copy is for.
    pub cluster: Str,
    /// The cause and the remedy.
    pub why: String,
}

impl fmt::Display for BadOverride {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} cannot be applied for cluster {}: {}",
            self.at, self.cluster, self.why
        )
    }
}

/// Applies rules in their order to the copy that is rendered for a cluster. `object` has the template's labels and annotations,
/// and no ownership metadata, no status and no other metadata than name and namespace.
///
/// # Errors
/// The first rule that cannot be applied. The object is then of no use.
///
/// Cost: O(size of the object and the rules); of the changes of one field that holds a document, O(size of it) each.
pub fn apply(
    rules: &[Arc<Rule>],
    id: &ResourceId,
    cluster: &str,
    object: &mut Value,
) -> Result<(), BadOverride> {
    if rules.is_empty() {
        return Ok(());
    }
    let had = prepare(object);
    let target = Target {
        id,
        cluster,
        all: true,
    };
    rules.iter().try_for_each(|rule| target.apply(rule, object))?;
    tidy(object, had);
    Ok(())
}

/// Applies only those changes of rules that affect labels and annotations.
///
/// # Errors
/// As [`apply`]. Labels and annotations are then as they were.
///
/// Cost: O(labels, annotations and rules); O(rules) when none touches them.
pub fn apply_to_metadata(
    rules: &[Arc<Rule>],
    cluster: &str,
    labels: &mut StrMap,
    annotations: &mut StrMap,
) -> Result<(), BadOverride> {
    if !rules.iter().any(|rule| rule.touches_metadata()) {
        return Ok(());
    }
    let mut object = json!({"metadata": {"labels": &*labels, "annotations": &*annotations}});
    let id = ResourceId::new(Gvk::new("", ""), "", "");
    let target = Target {
        id: &id,
        cluster,
        all: false,
    };
    rules
        .iter()
        .filter(|rule| rule.touches_metadata())
        .try_for_each(|rule| target.apply(rule, &mut object))?;
    let read = |field: &str| -> StrMap {
        let map = object["metadata"][field].as_object();
        map.into_iter()
            .flatten()
            .filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into())))
            .collect()
    };
    (*labels, *annotations) = (read("labels"), read("annotations"));
    Ok(())
}

/// The target of rules.
struct Target<'a> {
    id: &'a ResourceId,
    cluster: &'a str,
    /// True for the whole object, false for its labels and annotations only.
    all: bool,
}

impl Target<'_> {
    fn apply(&self, rule: &Rule, object: &mut Value) -> Result<(), BadOverride> {
        let fail = |at: String, why: String| BadOverride {
            at: format!("{rule}{at}"),
            cluster: self.cluster.into(),
            why,
        };
        if let Some(why) = &rule.unusable {
            return Err(fail(String::new(), why.clone()));
        }
        let changes = &rule.overriders;
        let fixed = Fixed::of(object);
        let mut step = |list: &str,
                        position: usize,
                        path: Option<&str>,
                        change: &dyn Fn(&mut Value) -> Result<(), String>| {
            if !self.all && !path.is_some_and(reaches_maps) {
                return Ok(());
            }
            change(object)
                .and_then(|()| fixed.check(object))
                .map_err(|why| fail(format!(".overriders.{list}[{position}]"), why))
        };
        let gvk = &self.id.gvk;
        for (n, each) in changes.image_overrider.iter().enumerate() {
            let path = each.predicate.as_ref().map(|predicate| &*predicate.path);
            step("imageOverrider", n, path, &|object| {
                containers::revise_images(gvk, object, each)
            })?;
        }
        for (n, each) in changes.command_overrider.iter().enumerate() {
            step("commandOverrider", n, None, &|object| {
                containers::revise_words(gvk, object, "command", each)
            })?;
        }
        for (n, each) in changes.args_overrider.iter().enumerate() {
            step("argsOverrider", n, None, &|object| {
                containers::revise_words(gvk, object, "args", each)
            })?;
        }
        for (n, each) in changes.labels_overrider.iter().enumerate() {
            step("labelsOverrider", n, Some("/metadata/labels"), &|object| {
                metadata::revise(object, "labels", each)
            })?;
        }
        for (n, each) in changes.annotations_overrider.iter().enumerate() {
            step(
                "annotationsOverrider",
                n,
                Some("/metadata/annotations"),
                &|object| metadata::revise(object, "annotations", each),
            )?;
        }
        for (n, each) in changes.field_overrider.iter().enumerate() {
            step("fieldOverrider", n, Some(&each.field_path), &|object| {
                field::revise(is_secret(self.id), object, each)
            })?;
        }
        for (n, each) in changes.plaintext.iter().enumerate() {
            step("plaintext", n, Some(&each.path), &|object| {
                if each.path.is_empty() && each.operator != OverriderOperator::Remove {
                    return Err("the object as a whole cannot be overridden: name a field".into());
                }
                patch::apply(object, &each.path, each.operator, &each.value)?;
                fixed.restore(object, &each.path);
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// True if a path may belong to labels or annotations. The rest of metadata cannot change.
fn reaches_maps(path: &str) -> bool {
    let field = path.strip_prefix("/metadata").map(|rest| rest.split('/').nth(1));
    field.is_some_and(|field| field.is_none_or(|field| MAPS.contains(&field)))
}

/// Creates the maps that rules may add to. Returns true for each that existed.
fn prepare(object: &mut Value) -> [bool; 2] {
    MAPS.map(|field| {
        let map = &mut object["metadata"][field];
        let had = !map.is_null();
        if !had {
            *map = Value::Object(Map::new());
        }
        had
    })
}

/// Removes the created maps that are still empty.
fn tidy(object: &mut Value, had: [bool; 2]) {
    let Some(metadata) = object["metadata"].as_object_mut() else {
        return;
    };
    for (field, had) in MAPS.iter().zip(had) {
        let empty = metadata
            .get(*field)
            .and_then(Value::as_object)
            .is_some_and(Map::is_empty);
        if empty && !had {
            metadata.remove(*field);
        }
    }
}

/// The parts of an object that cannot be changed, in their original state.
struct Fixed {
    identity: [Value; 2],
    metadata: BTreeMap<String, Value>,
    managed: [BTreeMap<String, Value>; 2],
}

impl Fixed {
    fn of(object: &Value) -> Self {
        let metadata = object["metadata"].as_object();
        Self {
            identity: [object["apiVersion"].clone(), object["kind"].clone()],
            metadata: metadata
                .into_iter()
                .flatten()
                .filter(|(key, _)| !MAPS.contains(&key.as_str()))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
            managed: MAPS.map(|field| managed_entries(&object["metadata"][field])),
        }
    }

    /// Restores our metadata after the map as a whole was set or removed, which is meant for the user's own entries only.
    /// Entries of ours that the new map sets itself are left as they are: [`Self::check`] refuses them.
    fn restore(&self, object: &mut Value, path: &str) {
        let Some(place) = MAPS
            .iter()
            .position(|field| path.strip_prefix("/metadata/") == Some(field))
        else {
            return;
        };
        let Some(metadata) = object["metadata"].as_object_mut() else {
            return;
        };
        let map = metadata
            .entry(MAPS[place])
            .or_insert_with(|| Value::Object(Map::new()));
        if let Some(map) = map.as_object_mut() {
            for (key, value) in &self.managed[place] {
                map.entry(key).or_insert_with(|| value.clone());
            }
        }
    }

    /// Succeeds if all fixed parts are unchanged, and labels and annotations are maps of texts.
    fn check(&self, object: &Value) -> Result<(), String> {
        for (field, was) in ["apiVersion", "kind"].iter().zip(&self.identity) {
            if object[*field] != *was {
                return Err(format!("{field} cannot be overridden: remove this from the rule"));
            }
        }
        if object.get("status").is_some() {
            return Err(
                "status cannot be overridden, the cluster reports it: remove this from the rule".into(),
            );
        }
        let Some(metadata) = object["metadata"].as_object() else {
            return Err("metadata as a whole cannot be overridden: name a label or annotation".into());
        };
        let fields = metadata.keys().chain(self.metadata.keys());
        for field in fields.filter(|field| !MAPS.contains(&field.as_str())) {
            if metadata.get(field) != self.metadata.get(field) {
                return Err(format!(
                    "metadata.{field} cannot be overridden: remove this from the rule"
                ));
            }
        }
        for (field, was) in MAPS.iter().zip(&self.managed) {
            let map = match metadata.get(*field) {
                None => &Value::Null,
                Some(map) => map,
            };
            let strings = map
                .as_object()
                .is_none_or(|map| map.values().all(Value::is_string));
            if !strings || !(map.is_null() || map.is_object()) {
                return Err(format!("metadata.{field} maps keys to strings: quote the value"));
            }
            let now = managed_entries(map);
            let changed = now
                .keys()
                .chain(was.keys())
                .find(|key| now.get(*key) != was.get(*key));
            if let Some(key) = changed {
                return Err(format!(
                    "metadata.{field} {key} cannot be overridden, it is kept by the control plane or is not \
                     propagated: remove this from the rule"
                ));
            }
        }
        Ok(())
    }
}

fn managed_entries(map: &Value) -> BTreeMap<String, Value> {
    let entries = map.as_object().into_iter().flatten();
    entries
        .filter(|(key, _)| is_mark(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

//! The status of ValidatingAdmissionPolicies: the warnings of a type check of their expressions, once for each generation.
//! Source: the controller `validatingadmissionpolicy-status` of kube-controller-manager.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use super::{Context, Controller, Queue, Seen};
use crate::{
    apply::{self, Manager},
    object::{
        Object, field, metadata,
        tree::{below, count, list, object, text},
    },
    resource::{Kinds, Resource, stored},
    schema::{Schema, cel::policy},
    store::{Expect, Happened},
};

const POLICIES: &str = "admissionregistration.k8s.io/validatingadmissionpolicies";

const MANAGER: &str = "validatingadmissionpolicy-status";

/// The number of kinds after which no further ones of a rule are checked.
const MOST_KINDS: usize = 10;

/// The policies whose status may be of an earlier generation.
#[derive(Default)]
pub(super) struct TypeChecks {
    queue: Queue<String>,
}

impl Controller for TypeChecks {
    fn reset(&mut self) {
        self.queue.clear();
    }

    fn see(&mut self, seen: &Seen) {
        if seen.place.collection == POLICIES && seen.happened != Happened::Deleted {
            self.queue.insert(seen.place.key.clone());
        }
    }

    fn work(&mut self, cluster: &dyn Context) -> bool {
        if !cluster.stand_ins().type_checks {
            self.queue.clear();
            return false;
        }
        let Some(name) = self.queue.pop_first() else {
            return false;
        };
        // When another write was faster, the policy is seen again.
        let _ = note(cluster, &name);
        true
    }
}

/// Writes the status of a policy, unless it is of this generation. `None`: there is nothing to write, or it was not written.
fn note(cluster: &dyn Context, name: &str) -> Option<()> {
    let kinds = cluster.kinds();
    let resource = kinds.of_collection(POLICIES)?;
    let entry = cluster.store().get(POLICIES, name)?;
    let policy = stored::shown(resource, &entry.object);
    let generation = count(metadata(&policy), "generation");
    if generation <= count(below(&policy, "status"), "observedGeneration") {
        return None;
    }
    let spec = below(&policy, "spec");
    let params = object(spec, "paramKind").and_then(|kind| {
        let version = text(kind, "apiVersion");
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        kinds.of_kind(group, version, text(kind, "kind"))
    });
    let params = params.map(|resource| Arc::clone(resource.schema.get()));
    let warnings = policy::warnings(spec, &matched(&kinds, spec), params.as_ref());
    let checked = match warnings.as_slice() {
        [] => json!({}),
        warnings => json!({"expressionWarnings": warnings}),
    };
    let applied = json!({"apiVersion": resource.api_version(), "kind": resource.kind,
        "metadata": {"name": field(&policy, "name")},
        "status": {"observedGeneration": generation, "typeChecking": checked}});
    let manager = Manager {
        name: MANAGER,
        subresource: "status",
        now: &cluster.now(),
    };
    let new = apply::apply(resource, Some(&policy), applied.as_object()?, manager, true).ok()?;
    let expect = Expect::At(entry.revision);
    cluster
        .store()
        .put(POLICIES, name, expect, |revision| {
            stored::encode_as(resource, new, revision)
        })
        .ok()?;
    Some(())
}

/// The kinds that the rules of a policy name, by group, version and kind, each with its schema. Rules with a wildcard name none.
fn matched(kinds: &Kinds, spec: &Object) -> Vec<(String, Arc<Schema>)> {
    let mut found: BTreeMap<[&str; 3], &Arc<Resource>> = BTreeMap::new();
    let rules = list(below(spec, "matchConstraints"), "resourceRules");
    'rules: for rule in rules.iter().filter_map(Value::as_object) {
        let names = |field: &str| -> Vec<&str> {
            let mut names: Vec<&str> = list(rule, field).iter().filter_map(Value::as_str).collect();
            names.sort_unstable();
            names
        };
        let [groups, versions] = ["apiGroups", "apiVersions"].map(names);
        if groups.iter().chain(&versions).any(|name| name.contains('*')) {
            continue;
        }
        let mut number = 0;
        for (group, version) in groups
            .iter()
            .flat_map(|group| versions.iter().map(move |version| (group, version)))
        {
            for plural in names("resources") {
                // No group is any: so a client's mapping of resources takes it.
                let is_named = |resource: &&Arc<Resource>| {
                    resource.version == **version
                        && (group.is_empty() || resource.group == **group)
                        && [resource.plural.as_str(), &resource.singular].contains(&plural)
                };
                for resource in kinds.all().filter(is_named) {
                    let key = [resource.group.as_str(), &resource.version, &resource.kind];
                    found.insert(key, resource);
                    number += 1;
                    if number == MOST_KINDS {
                        break 'rules;
                    }
                }
            }
        }
    }
    let name = |[group, version, kind]: [&str; 3]| format!("{group}/{version}, Kind={kind}");
    found
        .into_iter()
        .map(|(key, resource)| (name(key), Arc::clone(resource.schema.get())))
        .collect()
}

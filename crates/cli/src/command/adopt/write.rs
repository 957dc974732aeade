//! Writes the marks of this hub on a member's objects, or takes them off, one by one.
//!
//! The controllers' account has `update` on copies and `patch` on namespaces, so a copy is read and written whole. Its content is
//! wiped after use.

use std::collections::BTreeMap;

use entourage_core::{
    adoption::{Decision, HubState, Transfer, decide, patch},
    marks,
    object::{Gvk, Meta, NamespacedName, ResourceId},
    rendered::wipe,
};
use futures::{StreamExt as _, stream};
use kube::{
    Api,
    api::{DynamicObject, ObjectMeta, Patch},
};
use serde_json::{Value, json};

use super::{AT_ONCE, Member};
use crate::{
    apply::{self, without_values},
    connect::{is_not_found, within},
    kinds::Served,
    lists::api,
};

/// The number of attempts on a conflict with another writer.
const ATTEMPTS: usize = 5;

/// The end of an object that was to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is this hub's, or is given back.
    Adopted,
    /// It was deleted on the member.
    Gone,
}

/// The outcome, or why the object was not written.
pub(super) type Written = Result<Outcome, String>;

/// The decision on an object as it is now, and what is written.
pub(super) trait Rule: Sync {
    fn decide(&self, id: &ResourceId, live: &Meta) -> Option<Decision>;
    fn patch(&self, live: &Meta) -> Value;
    /// True if a decision on an object that was to be written shows that nothing is left to write.
    fn is_done(&self, decision: Option<&Decision>) -> bool;
    /// The version of a kind in which the copies of a binding are written.
    fn version_of(&self, binding: &NamespacedName) -> Option<&Gvk>;
}

/// The copies of a former hub are adopted.
pub(super) struct FormerHub<'a> {
    pub(super) state: &'a HubState,
    pub(super) transfer: &'a Transfer,
}

impl Rule for FormerHub<'_> {
    fn decide(&self, id: &ResourceId, live: &Meta) -> Option<Decision> {
        decide(self.state, self.transfer, id, live)
    }

    fn patch(&self, live: &Meta) -> Value {
        patch(self.transfer, live)
    }

    fn is_done(&self, decision: Option<&Decision>) -> bool {
        decision.is_none()
    }

    fn version_of(&self, binding: &NamespacedName) -> Option<&Gvk> {
        self.state.version_of(binding)
    }
}

/// True if an object is written by this decision.
pub(super) fn is_written(decision: &Decision) -> bool {
    matches!(decision, Decision::Adopt | Decision::Return)
}

/// Writes all objects that are to be adopted or given back. Each result is in `written` as soon as there is one.
pub(super) async fn all(
    rule: &dyn Rule,
    member: &Member,
    decisions: &[(ResourceId, Decision)],
    written: &mut BTreeMap<ResourceId, Written>,
) {
    let adopted = decisions.iter().filter(|(_, decision)| is_written(decision));
    let mut results = stream::iter(adopted)
        .map(|(id, _)| async move { (id.clone(), one(rule, member, id).await) })
        .buffer_unordered(AT_ONCE);
    while let Some((id, result)) = results.next().await {
        written.insert(id, result);
    }
}

/// Decides again on the object as it is now: it may have changed since it was listed.
async fn one(rule: &dyn Rule, member: &Member, id: &ResourceId) -> Written {
    let served = served(rule, member, id).ok_or("its kind is not served")?;
    let api = api(&member.client, served, &id.namespace);
    for _ in 0..ATTEMPTS {
        let object = match within(api.get(&id.name)).await {
            Err(error) if is_not_found(&error) => return Ok(Outcome::Gone),
            answer => answer.map_err(words)?,
        };
        let live = Meta::of(&json!({"metadata": object.metadata}));
        match rule.decide(id, &live) {
            Some(decision) if is_written(&decision) => {}
            decision if rule.is_done(decision.as_ref()) => return discard(object, Ok(Outcome::Adopted)),
            Some(other) => return discard(object, Err(other.to_string())),
            None => {
                return discard(
                    object,
                    Err("it is no copy of that control plane any more".to_owned()),
                );
            }
        }
        let patch = rule.patch(&live);
        let is_namespace = id.gvk.is_namespace();
        match write(&api, &id.name, object, &patch, is_namespace).await {
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) if is_not_found(&error) => return Ok(Outcome::Gone),
            answer => return answer.map(|()| Outcome::Adopted).map_err(words),
        }
    }
    Err("it keeps changing on the member".to_owned())
}

/// The version in which an object is read and written: that of its binding, so that no field is lost, else the one in which it was
/// listed.
fn served<'a>(rule: &dyn Rule, member: &'a Member, id: &ResourceId) -> Option<&'a Served> {
    let binding = member.objects.get(id).and_then(marks::owner);
    let version = binding.and_then(|name| rule.version_of(&name));
    let of_binding = version.filter(|gvk| **gvk == id.gvk);
    of_binding
        .and_then(|gvk| member.kinds.get(gvk))
        .or_else(|| member.kinds.in_some_version(&id.gvk))
}

async fn write(
    api: &Api<DynamicObject>,
    name: &str,
    mut object: DynamicObject,
    patch: &Value,
    is_namespace: bool,
) -> kube::Result<()> {
    if is_namespace {
        let answer = within(api.patch(name, &apply::patch(), &Patch::Merge(patch))).await;
        return answer.map(drop);
    }
    set(&mut object.metadata, patch);
    let answer = within(api.replace(name, &apply::post(), &object)).await;
    wipe(&mut object.data);
    answer.map(|mut answer| wipe(&mut answer.data))
}

/// Sets the labels and annotations of the patch. The resourceVersion is that of the object as it was read.
fn set(meta: &mut ObjectMeta, patch: &Value) {
    let parts = [
        ("labels", &mut meta.labels),
        ("annotations", &mut meta.annotations),
    ];
    for (field, map) in parts {
        for (key, value) in patch["metadata"][field].as_object().into_iter().flatten() {
            let map = map.get_or_insert_default();
            match value.as_str() {
                Some(value) => map.insert(key.clone(), value.to_owned()),
                None => map.remove(key),
            };
        }
    }
}

fn discard(mut object: DynamicObject, written: Written) -> Written {
    wipe(&mut object.data);
    written
}

/// The words of an error never quote a value: the object may be a Secret.
fn words(error: kube::Error) -> String {
    without_values(error).to_string()
}

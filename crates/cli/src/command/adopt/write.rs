//! Writes the marks of this hub on a member's objects, one by one.
//!
//! The controllers' account has `update` on copies and `patch` on namespaces, so a copy is read and written whole. Its content is
//! wiped after use.

use std::collections::BTreeMap;

use entourage_core::{
    adoption::{Decision, HubState, Transfer, decide, patch},
    marks,
    object::{Meta, ResourceId},
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

/// The end of an object that was to be adopted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is this hub's.
    Adopted,
    /// It was deleted on the member.
    Gone,
}

/// The outcome, or why the object was not written.
type Written = Result<Outcome, String>;

/// Writes all objects that are to be adopted.
pub(super) async fn all(
    state: &HubState,
    transfer: &Transfer,
    member: &Member,
    decisions: &[(ResourceId, Decision)],
) -> BTreeMap<ResourceId, Written> {
    let adopted = decisions
        .iter()
        .filter(|(_, decision)| *decision == Decision::Adopt);
    stream::iter(adopted)
        .map(|(id, _)| async move { (id.clone(), one(state, transfer, member, id).await) })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await
}

/// Decides again on the object as it is now: it may have changed since it was listed.
async fn one(state: &HubState, transfer: &Transfer, member: &Member, id: &ResourceId) -> Written {
    let served = served(state, member, id).ok_or("its kind is not served")?;
    let api = api(&member.client, served, &id.namespace);
    for _ in 0..ATTEMPTS {
        let object = match within(api.get(&id.name)).await {
            Err(error) if is_not_found(&error) => return Ok(Outcome::Gone),
            answer => answer.map_err(words)?,
        };
        let live = Meta::of(&json!({"metadata": object.metadata}));
        match decide(state, transfer, id, &live) {
            Some(Decision::Adopt) => {}
            Some(other) => return discard(object, Err(other.to_string())),
            None => return discard(object, Ok(Outcome::Adopted)),
        }
        let patch = patch(transfer, &live);
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
fn served<'a>(state: &HubState, member: &'a Member, id: &ResourceId) -> Option<&'a Served> {
    let binding = member.objects.get(id).and_then(marks::owner);
    let version = binding.and_then(|name| state.version_of(&name));
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

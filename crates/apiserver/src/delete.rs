//! DELETE of one object, and of a collection.
//!
//! An object is removed at once, or it becomes terminating and waits for its finalizers and its grace period. Its last event
//! carries the last state that was stored.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::{
    admission::{Context, request::Request, webhooks},
    call::{Call, Item, Reply},
    object::{Object, field, finalizers, metadata, metadata_mut},
    registry::{find, remove},
    resource::{self, Resource, stored},
    status::{About, Result, Status},
    store::{Entry, Expect, Mismatch, Store},
};

mod options;

pub(crate) use options::{DeleteOptions, Propagation};

/// Objects of a collection that are deleted before others get their turn.
const BREATH: usize = 32;

/// DELETE of one object.
pub(crate) async fn delete(cluster: &dyn Context, call: &Call) -> Result<Reply> {
    let options = DeleteOptions::of(call)?;
    let resource = &*call.resource;
    let (deleted, mut warnings) = asked(cluster, call, &call.namespace, &call.name, &options).await?;
    if options.propagation.is_none() && options.orphan.is_none() {
        warnings.extend(resource.rules.orphan_warning().map(str::to_owned));
    }
    match deleted {
        Deleted::Gone(uid, _) if !resource.rules.delete_returns_object() => Ok(Reply::Other {
            code: 200,
            value: success(resource, &call.name, &uid),
            warnings,
        }),
        Deleted::Gone(_, last) => Ok(Reply::ok(last, warnings)),
        Deleted::Waits(item) => Ok(Reply::Object {
            // The server answers 202 only to the old form of this option.
            code: if options.orphan == Some(false) { 202 } else { 200 },
            item,
            warnings,
        }),
    }
}

/// DELETE of a collection: each object that a list with the same parameters shows. Answers that list.
pub(crate) async fn collection(cluster: &dyn Context, call: &Call) -> Result<Reply> {
    let options = DeleteOptions::of(call)?;
    let reply = crate::list::list(cluster.store(), call).await?;
    let Reply::List { items, .. } = &reply else {
        return Ok(reply);
    };
    for (at, item) in items.iter().enumerate() {
        let Item::Stored(entry) = item else { continue };
        if at % BREATH == BREATH - 1 {
            tokio::task::yield_now().await;
        }
        let (namespace, name) = entry.key.split_once('/').unwrap_or(("", &entry.key));
        match asked(cluster, call, namespace, name, &options).await {
            Err(status) if status.code != 404 => return Err(status),
            // An object that is gone already counts as deleted.
            _ => {}
        }
    }
    Ok(reply)
}

/// Deletes an object if neither policies nor webhooks refuse it; again if it changed while they were evaluated. Returns
/// warnings too.
async fn asked(
    cluster: &dyn Context,
    call: &Call,
    namespace: &str,
    name: &str,
    options: &DeleteOptions,
) -> Result<(Deleted, Vec<String>)> {
    let resource = &*call.resource;
    loop {
        let entry = find(cluster.store(), resource, namespace, name)?;
        let old = stored::shown(resource, &entry.object);
        let warnings = admitted(cluster, call, &old, (namespace, name), options).await?;
        if let Some(deleted) = attempt(cluster, resource, name, options, entry, old)? {
            return Ok((deleted, warnings));
        }
    }
}

/// Refuses a deletion that an admission policy or a webhook denies. Returns warnings.
async fn admitted(
    cluster: &dyn Context,
    call: &Call,
    old: &Object,
    (namespace, name): (&str, &str),
    options: &DeleteOptions,
) -> Result<Vec<String>> {
    let resource = &*call.resource;
    may_go(resource, name, old, options)?;
    let request = Request {
        cluster,
        resource,
        subresource: "",
        operation: "DELETE",
        namespace,
        name,
        user: &call.user,
        dry_run: options.dry_run,
    };
    webhooks::delete(&request, old).await
}

/// The result of a deletion.
pub(crate) enum Deleted {
    /// It is gone; its uid and its last state.
    Gone(String, Item),
    /// It is terminating.
    Waits(Item),
}

crate::hidden::without_content!(Deleted);

/// The effect of a deletion on the present object.
enum Step {
    /// Nothing: it is terminating already.
    Keep,
    /// It becomes this and waits.
    Mark(Object),
    /// It is removed; `Some`: with a change to this state before (graceful kinds).
    Remove(Option<Object>),
}

/// Deletes one object without admission; again if another write was faster.
pub(crate) fn object(
    cluster: &dyn Context,
    resource: &Resource,
    namespace: &str,
    name: &str,
    options: &DeleteOptions,
) -> Result<Deleted> {
    loop {
        let entry = find(cluster.store(), resource, namespace, name)?;
        let old = stored::shown(resource, &entry.object);
        if let Some(deleted) = attempt(cluster, resource, name, options, entry, old)? {
            return Ok(deleted);
        }
    }
}

/// Deletes an object whose stored state is `entry`, decoded as `old`; `None` if another write was faster.
fn attempt(
    cluster: &dyn Context,
    resource: &Resource,
    name: &str,
    options: &DeleteOptions,
    entry: Arc<Entry>,
    old: Object,
) -> Result<Option<Deleted>> {
    may_go(resource, name, &old, options)?;
    let step = step(cluster, resource, &old, options);
    let uid = field(&old, "uid").to_owned();
    if options.dry_run {
        return Ok(Some(match step {
            Step::Keep => Deleted::Waits(Item::Stored(entry)),
            Step::Mark(object) => Deleted::Waits(Item::Made(object)),
            Step::Remove(object) => Deleted::Gone(uid, Item::Made(object.unwrap_or(old))),
        }));
    }
    let entry = match step {
        Step::Keep => return Ok(Some(Deleted::Waits(Item::Stored(entry)))),
        Step::Mark(object) if object == old => {
            return Ok(Some(Deleted::Waits(Item::Stored(entry))));
        }
        Step::Mark(object) => {
            let written = write(cluster.store(), resource, &entry, object).ok();
            return Ok(written.map(|entry| Deleted::Waits(Item::Stored(entry))));
        }
        Step::Remove(Some(object)) => match write(cluster.store(), resource, &entry, object) {
            Ok(entry) => entry,
            Err(_) => return Ok(None),
        },
        Step::Remove(None) => entry,
    };
    let removed = remove(cluster.store(), resource, &entry).ok();
    Ok(removed.map(|last| Deleted::Gone(uid, Item::Stored(last))))
}

/// Refuses the deletion of an undeletable object, and of another state than that of the preconditions.
fn may_go(resource: &Resource, name: &str, old: &Object, options: &DeleteOptions) -> Result<()> {
    if let Some(why) = resource.rules.undeletable(name) {
        return Err(Status::forbidden(resource::about(resource, name), why));
    }
    preconditions(resource, name, old, options)
}

/// Writes another state of an object, unless another write was faster.
pub(crate) fn write(
    store: &Store,
    resource: &Resource,
    entry: &Entry,
    object: Object,
) -> std::result::Result<Arc<Entry>, Mismatch> {
    let expect = Expect::At(entry.revision);
    store.put(&resource.collection, &entry.key, expect, |revision| {
        stored::encode_as(resource, object, revision)
    })
}

/// Refuses another state than that of the preconditions.
pub(crate) fn preconditions(
    resource: &Resource,
    name: &str,
    old: &Object,
    options: &DeleteOptions,
) -> Result<()> {
    let about = About {
        group: &resource.group,
        resource: &resource.kind,
        name,
    };
    let uid = field(old, "uid");
    if let Some(wanted) = options.uid.as_deref().filter(|wanted| *wanted != uid) {
        let why = format!(
            "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). The object might have been deleted and then recreated"
        );
        return Err(Status::conflict(about, &why));
    }
    let version = field(old, "resourceVersion");
    if let Some(wanted) = options
        .resource_version
        .as_deref()
        .filter(|wanted| *wanted != version)
    {
        let why = format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({version}). The object might have been modified"
        );
        return Err(Status::conflict(about, &why));
    }
    Ok(())
}

fn step(cluster: &dyn Context, resource: &Resource, old: &Object, options: &DeleteOptions) -> Step {
    let leaving = !field(old, "deletionTimestamp").is_empty();
    let mut object = old.clone();
    if !leaving {
        if resource.rules.begin_delete(&mut object, &cluster.now()) {
            metadata_mut(&mut object).insert("deletionTimestamp".to_owned(), cluster.now().into());
            collector_finalizers(resource, &mut object, options);
            return Step::Mark(object);
        }
    } else if !resource.rules.may_go(old) {
        return Step::Keep;
    }
    let Some(grace) = grace(resource, &mut object, options, cluster.timestamp()) else {
        return Step::Keep;
    };
    collector_finalizers(resource, &mut object, options);
    let waits = finalizers(&object).next().is_some();
    match grace {
        Grace::None if waits => {
            mark(&mut object, &cluster.now());
            Step::Mark(object)
        }
        Grace::None => Step::Remove(None),
        Grace::Seconds(seconds) if waits || seconds > 0 => Step::Mark(object),
        Grace::Seconds(_) => Step::Remove(Some(object)),
    }
}

/// The grace period of an object.
enum Grace {
    /// The kind knows no grace, or it was given long ago.
    None,
    /// The object was given so much; it is written into it.
    Seconds(i64),
}

/// Sets the grace period of a graceful kind; `None`: it has its final one already.
fn grace(resource: &Resource, object: &mut Object, options: &DeleteOptions, now: Timestamp) -> Option<Grace> {
    let Some(seconds) = resource.rules.grace(object, options.grace) else {
        return Some(Grace::None);
    };
    let ends: Option<Timestamp> = field(object, "deletionTimestamp").parse().ok();
    let Some(ends) = ends else {
        let ends = later(now, seconds);
        grown_generation(object);
        set_end(object, ends, seconds);
        return Some(Grace::Seconds(seconds));
    };
    let Some(given) = metadata(object)
        .get("deletionGracePeriodSeconds")
        .and_then(Value::as_i64)
    else {
        return Some(Grace::None);
    };
    // A later deletion may only shorten the time. Less than nothing counts as one second.
    let asked = options.grace.map(|asked| if asked < 0 { 1 } else { asked })?;
    if asked >= given {
        return None;
    }
    let ends = later(later(ends, given.saturating_neg()), asked);
    set_end(object, ends, asked);
    Some(Grace::Seconds(asked))
}

fn later(time: Timestamp, seconds: i64) -> Timestamp {
    time.checked_add(SignedDuration::from_secs(seconds))
        .unwrap_or(time)
}

fn set_end(object: &mut Object, ends: Timestamp, seconds: i64) {
    let ends = ends.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let metadata = metadata_mut(object);
    metadata.insert("deletionTimestamp".to_owned(), ends.into());
    metadata.insert("deletionGracePeriodSeconds".to_owned(), seconds.into());
}

/// An object without grace that must wait for its finalizers becomes terminating.
fn mark(object: &mut Object, now: &str) {
    if field(object, "deletionTimestamp").is_empty() {
        grown_generation(object);
    }
    let metadata = metadata_mut(object);
    let known = metadata.get("deletionTimestamp").and_then(Value::as_str);
    if known.is_none_or(|known| known > now) {
        metadata.insert("deletionTimestamp".to_owned(), now.into());
    }
    metadata.insert("deletionGracePeriodSeconds".to_owned(), 0.into());
}

fn grown_generation(object: &mut Object) {
    let generation = metadata(object).get("generation").and_then(Value::as_i64);
    if let Some(generation) = generation.filter(|generation| *generation > 0) {
        metadata_mut(object).insert("generation".to_owned(), (generation + 1).into());
    }
}

/// Sets the finalizers that request orphaning of dependents, or their deletion first, from the garbage collector.
fn collector_finalizers(resource: &Resource, object: &mut Object, options: &DeleteOptions) {
    const ORPHAN: &str = "orphan";
    const FOREGROUND: &str = "foregroundDeletion";
    let has = |wanted: &str| finalizers(object).any(|name| name == wanted);
    let wanted = match (options.orphan, options.propagation) {
        (Some(true), _) | (None, Some(Propagation::Orphan)) => Some(ORPHAN),
        (None, Some(Propagation::Foreground)) => Some(FOREGROUND),
        (Some(false), _) | (None, Some(Propagation::Background)) => None,
        (None, None) if has(ORPHAN) => Some(ORPHAN),
        (None, None) if has(FOREGROUND) => Some(FOREGROUND),
        (None, None) if resource.rules.orphans_by_default() => Some(ORPHAN),
        (None, None) => None,
    };
    let unchanged =
        has(ORPHAN) == (wanted == Some(ORPHAN)) && has(FOREGROUND) == (wanted == Some(FOREGROUND));
    if unchanged {
        return;
    }
    let others = finalizers(object).filter(|name| !matches!(*name, ORPHAN | FOREGROUND));
    let next: Vec<Value> = others.chain(wanted).map(Value::from).collect();
    if next.is_empty() {
        metadata_mut(object).remove("finalizers");
    } else {
        metadata_mut(object).insert("finalizers".to_owned(), next.into());
    }
}

/// The answer to a deletion that is done.
fn success(resource: &Resource, name: &str, uid: &str) -> Value {
    let mut details = json!({"name": name, "kind": resource.plural, "uid": uid});
    if !resource.group.is_empty() {
        details["group"] = resource.group.clone().into();
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

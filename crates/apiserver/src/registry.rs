//! Reads and writes of objects: the steps between a request and the store, the same for every kind.
//!
//! Create: decode → namespace → defaults → ownership → names and the kind's preparations → validation → store. Update, patch
//! and apply: read → new state → immutable parts restored → ownership → the kind's preparations → validation → store, again
//! when another write was faster. Fields that the server sets after the ownership was recorded belong to nobody.

use std::sync::Arc;

use crate::{
    admission::{self, policies::States},
    apply,
    auth::{self, Access},
    call::{Call, Item, Reply},
    decode::{self, Decoded, Media},
    meta, names,
    object::{Object, metadata_mut},
    resource::{Resource, about, about_kind, stored},
    status::{Result, Status},
    store::{Entry, Expect, Mismatch, Store},
};

mod create;
mod patching;
mod rewrite;
pub(crate) mod scale;
mod system;
pub(crate) mod terms;

pub(crate) use create::create;
use create::{create_object, fits};
pub(crate) use patching::patch;
pub(crate) use rewrite::{rewrite, rewrite_as};
pub(crate) use terms::{Terms, dry_run_problems, options};

/// The number of attempts of a write that loses races.
const TRIES: usize = 20;

/// The view of the cluster for writes.
pub(crate) trait Context: admission::Context {
    /// Keys and grants, and the store that they are read from.
    fn access(&self) -> Access<'_>;
}

/// The object of a GET.
pub(crate) async fn get(store: &Store, call: &Call) -> Result<Reply> {
    crate::list::wait_for_revision(store, call).await?;
    let entry = find(store, &call.resource, &call.namespace, &call.name)?;
    Ok(Reply::ok(Item::Stored(entry), Vec::new()))
}

/// The stored object, or the NotFound of it.
pub(crate) fn find(store: &Store, resource: &Resource, namespace: &str, name: &str) -> Result<Arc<Entry>> {
    store
        .get(&resource.collection, &resource.key(namespace, name))
        .ok_or_else(|| Status::not_found(about(resource, name)))
}

/// Takes an object out of the store. Its last state is the stored one with the revision of the deletion.
pub(crate) fn remove(
    store: &Store,
    resource: &Resource,
    entry: &Entry,
) -> std::result::Result<Arc<Entry>, Mismatch> {
    store.delete(&resource.collection, &entry.key, entry.revision, |revision| {
        stored::with_revision(&entry.object, revision)
    })
}

/// A write as admission sees it.
pub(crate) fn asked<'a>(
    cluster: &'a dyn admission::Context,
    call: &'a Call,
    terms: &Terms,
    operation: &'static str,
    name: &'a str,
) -> admission::request::Request<'a> {
    admission::request::Request {
        cluster,
        resource: &call.resource,
        subresource: &call.subresource,
        operation,
        namespace: &call.namespace,
        name,
        user: &call.user,
        dry_run: terms.dry_run,
    }
}

/// PUT.
pub(crate) async fn update(cluster: &dyn Context, call: &Call) -> Result<Reply> {
    let terms = Terms::of(cluster, call)?;
    let media = media(call)?;
    let decoded = decode::body(&call.resource, &call.body, media, terms.validation)?;
    system::same_name(call, &decoded.object)?;
    let change = || -> Attempt<'_> {
        Box::pin(async {
            let mut next = |_: &Object| Ok(decoded.clone());
            change(cluster, call, &terms, Source::Put, &mut next).await
        })
    };
    if !(call.subresource.is_empty() && call.resource.rules.create_on_update()) {
        return change().await;
    }
    let create = || -> Attempt<'_> {
        Box::pin(async {
            system::same_uid(&call.resource, call, &decoded.object, "")?;
            let mut decoded = decoded.clone();
            metadata_mut(&mut decoded.object).remove("resourceVersion");
            create_object(cluster, call, &terms, decoded, None).await
        })
    };
    create_or_change(cluster.store(), call, &create, &change).await
}

/// A write that is under way.
type Attempt<'a> = std::pin::Pin<Box<dyn Future<Output = Result<Reply>> + Send + 'a>>;

/// Creates what is not there and changes what is; when another write was faster, the other way round.
async fn create_or_change<'a>(
    store: &Store,
    call: &Call,
    create: &(dyn Fn() -> Attempt<'a> + Sync),
    change: &(dyn Fn() -> Attempt<'a> + Sync),
) -> Result<Reply> {
    let key = call.resource.key(&call.namespace, &call.name);
    let is_there = || store.get(&call.resource.collection, &key).is_some();
    for _ in 0..TRIES {
        let (done, lost) = if is_there() {
            (change().await, "NotFound")
        } else {
            (create().await, "AlreadyExists")
        };
        match done {
            // Only about the object itself: it is there now, or no longer.
            Err(status) if status.reason == lost && is_there() == (lost == "AlreadyExists") => {}
            done => return done,
        }
    }
    Err(Status::conflict(
        about(&call.resource, &call.name),
        system::MODIFIED,
    ))
}

/// The origin of a change: origins differ in the fields that may be absent, and in the recording of ownership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Put,
    Patch,
    Apply,
}

/// Reads, makes the new state with `next`, checks and writes it; again when another write was faster.
pub(crate) async fn change(
    cluster: &dyn Context,
    call: &Call,
    terms: &Terms,
    source: Source,
    next: &mut (dyn FnMut(&Object) -> Result<Decoded> + Send),
) -> Result<Reply> {
    let resource = &*call.resource;
    for _ in 0..TRIES {
        let entry = find(cluster.store(), resource, &call.namespace, &call.name)?;
        let old = stored::shown(resource, &entry.object);
        let Decoded {
            object: mut new,
            mut warnings,
        } = next(&old)?;
        system::preconditions(resource, call, source, &new, &old)?;
        warnings.extend(system::dedupe_owners(&mut new, source != Source::Put));
        system::keep_system_fields(&mut new, &old);
        if source != Source::Apply {
            resource.rules.defaults(&mut new);
        }
        system::keep_other_part(resource, &call.subresource, &mut new, &old);
        if source != Source::Apply {
            apply::track(resource, Some(&old), &mut new, terms.manager(call));
        }
        let request = asked(cluster, call, terms, "UPDATE", &call.name);
        admission::policies::mutate(&request, &mut new, Some(&old))?;
        warnings.extend(admission::webhooks::mutate(&request, &mut new, Some(&old)).await?);
        system::keep_system_fields(&mut new, &old);
        // Policies and webhooks may not write through this request either what its sender may not.
        system::keep_other_part(resource, &call.subresource, &mut new, &old);
        resource
            .rules
            .prepare_update(&call.subresource, &mut new, &old, cluster)?;
        system::count_generation(resource, &call.subresource, &mut new, &old);
        let mut errors = meta::validate_update(resource, &call.subresource, &new, &old);
        let of_kind = resource.rules.validate_update(&call.subresource, &new, &old);
        errors.extend(names::ratcheted(of_kind, &old));
        if !errors.is_empty() {
            if resource.custom.is_some() {
                warnings.extend(resource.rules.warnings(&new, Some(&old)));
            }
            return Err(Status::invalid(about_kind(resource, &call.name), &errors).with_warnings(warnings));
        }
        auth::escalation::check(
            cluster.access(),
            &call.user,
            resource,
            &call.namespace,
            &new,
            Some(&old),
        )?;
        warnings.extend(resource.rules.warnings(&new, Some(&old)));
        let states = States {
            new: Some(&new),
            old: Some(&old),
        };
        admission::certificates::check(cluster.access(), &request, states)?;
        warnings.extend(admission::policies::validate(&request, states)?);
        warnings.extend(admission::webhooks::validate(&request, states).await?);
        if system::is_finished(resource, &new, &old) {
            if !terms.dry_run && crate::registry::remove(cluster.store(), resource, &entry).is_err() {
                continue;
            }
            return Ok(Reply::ok(Item::Made(new), warnings));
        }
        apply::keep_times(&old, &mut new);
        let unchanged = new == old;
        if terms.dry_run && !unchanged {
            admission::admit_update(cluster, resource, &call.subresource, [&new, &old], true)?;
        }
        if terms.dry_run || unchanged {
            let item = if unchanged {
                Item::Stored(entry)
            } else {
                Item::Made(new)
            };
            return Ok(Reply::ok(item, warnings));
        }
        fits(call, entry.object.len(), &new)?;
        let _held = resource.rules.hold(&new, cluster)?;
        let charged = admission::admit_update(cluster, resource, &call.subresource, [&new, &old], false)?;
        let written = cluster.store().put(
            &resource.collection,
            &entry.key,
            Expect::At(entry.revision),
            |revision| stored::encode_as(resource, new, revision),
        );
        if let Ok(entry) = written {
            return Ok(Reply::ok(Item::Stored(entry), warnings));
        }
        admission::refund(cluster, charged);
    }
    Err(Status::conflict(about(resource, &call.name), system::MODIFIED))
}

/// The format of the body of a POST or PUT, by its Content-Type.
pub(crate) fn media(call: &Call) -> Result<Media> {
    match call.media_type() {
        "" | "application/json" => Ok(Media::Json),
        "application/yaml" => Ok(Media::Yaml),
        _ => Err(Status::new(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf",
        )),
    }
}

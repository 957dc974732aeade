//! Creation: names, fields set by the server, checks, and the error for a name that is taken.

use std::sync::Arc;

use serde_json::json;

use super::{Context, Terms, asked, media, system};
use crate::{
    admission::{self, policies::States},
    apply,
    auth::{
        self,
        policy::{Target, authorize_create},
    },
    call::{Call, Item, Reply},
    decode::{self, Decoded},
    meta,
    object::{Object, field},
    resource::{Resource, Surroundings, about, about_kind, stored},
    status::{About, Result, Status},
    store::{Entry, Expect, Mismatch},
};

/// The largest object that is stored, in bytes of JSON: what etcd takes in one request.
const LARGEST: usize = 3 << 19;

/// POST.
pub(crate) async fn create(cluster: &dyn Context, call: &Call) -> Result<Reply> {
    let terms = Terms::of(cluster, call)?;
    let decoded = decode::body(&call.resource, &call.body, media(call)?, terms.validation)?;
    create_object(cluster, call, &terms, decoded, None).await
}

/// Creates what was decoded; `applied`: by server-side apply, whose ownership is in it already.
pub(super) async fn create_object(
    cluster: &dyn Context,
    call: &Call,
    terms: &Terms,
    decoded: Decoded,
    applied: Option<()>,
) -> Result<Reply> {
    /// The number of names that are generated before a taken one is an error.
    const NAMES: usize = 8;
    let resource = &*call.resource;
    let Decoded {
        mut object,
        mut warnings,
    } = decoded;
    system::namespace_of_request(resource, call, &mut object)?;
    warnings.extend(system::dedupe_owners(&mut object, applied.is_some()));
    if resource.namespaced {
        namespace_takes(cluster, call, &object)?;
    }
    resource.rules.defaults(&mut object);
    if resource.rules.has_status() {
        object.remove("status");
    }
    system::system_fields(resource, &mut object, &terms.now, applied.is_some());
    if applied.is_none() {
        apply::track(resource, None, &mut object, terms.manager(call));
    }
    let name = field(&object, "name").to_owned();
    let request = asked(cluster, call, terms, "CREATE", &name);
    admission::policies::mutate(&request, &mut object, None)?;
    admission::fill(cluster, resource, &mut object)?;
    warnings.extend(admission::webhooks::mutate(&request, &mut object, None).await?);
    system::namespace_of_request(resource, call, &mut object)?;
    if resource.rules.has_status() {
        object.remove("status");
    }
    let mut left = if field(&object, "name").is_empty() {
        NAMES
    } else {
        1
    };
    loop {
        left -= 1;
        let mut candidate = if left == 0 {
            std::mem::take(&mut object)
        } else {
            object.clone()
        };
        let generated = system::generate_name(&mut candidate);
        match create_named(cluster, call, terms, candidate, &mut warnings).await {
            Err(status) if generated && left > 0 && status.reason == "AlreadyExists" => {}
            result => {
                return result.map(|item| Reply::Object {
                    code: 201,
                    item,
                    warnings,
                });
            }
        }
    }
}

/// Prepares, checks and stores an object that has its name.
async fn create_named(
    cluster: &dyn Context,
    call: &Call,
    terms: &Terms,
    mut object: Object,
    warnings: &mut Vec<String>,
) -> Result<Item> {
    let resource = &*call.resource;
    let name = field(&object, "name").to_owned();
    let request = asked(cluster, call, terms, "CREATE", &name);
    let asked = terms.dry_run.then(|| object.clone());
    resource.rules.prepare_create(&mut object, cluster)?;
    if let Some(asked) = &asked {
        resource.rules.rehearse(&mut object, asked);
    }
    admission::certificates::name_user(resource, &mut object, &call.user);
    let mut errors = meta::validate(resource, &object);
    errors.extend(resource.rules.validate(&object));
    if errors.is_empty() {
        errors = meta::validate_common(resource, &object);
    }
    if !errors.is_empty() {
        return Err(
            Status::invalid(about_kind(resource, &name), &errors).with_warnings(std::mem::take(warnings))
        );
    }
    if call.method != http::Method::POST {
        let target = Target {
            resource,
            subresource: &call.subresource,
            namespace: &call.namespace,
            name: &call.name,
        };
        authorize_create(cluster.access(), &call.user, &target)?;
    }
    auth::escalation::check(
        cluster.access(),
        &call.user,
        resource,
        &call.namespace,
        &object,
        None,
    )?;
    for warning in resource.rules.warnings(&object, None) {
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    let states = States {
        new: Some(&object),
        old: None,
    };
    admission::certificates::check(cluster.access(), &request, states)?;
    warnings.extend(admission::policies::validate(&request, states)?);
    warnings.extend(admission::webhooks::validate(&request, states).await?);
    let key = resource.key(&call.namespace, &name);
    let prefixed = !field(&object, "generateName").is_empty();
    if terms.dry_run {
        warnings.extend(admission::admit(cluster, resource, &object, true)?.0);
        return match cluster.store().get(&resource.collection, &key) {
            Some(entry) => Err(taken(resource, &name, prefixed, Some(entry))),
            None => Ok(Item::Made(object)),
        };
    }
    if !matches!(field(&object, "resourceVersion"), "" | "0") {
        return Err(Status::unforeseen(
            "resourceVersion should not be set on objects to be created",
        ));
    }
    fits(call, 0, &object)?;
    if let Some(entry) = cluster.store().get(&resource.collection, &key) {
        return Err(taken(resource, &name, prefixed, Some(entry)));
    }
    let (reported, charged) = admission::admit(cluster, resource, &object, false)?;
    warnings.extend(reported);
    let stored = held(cluster, resource, &key, object)
        .and_then(|written| written.map_err(|mismatch| taken(resource, &name, prefixed, mismatch.0)));
    if stored.is_err() {
        admission::refund(cluster, charged);
    }
    stored.map(Item::Stored)
}

/// Stores a new object while what it claims is held for it.
fn held(
    cluster: &dyn Context,
    resource: &Resource,
    key: &str,
    object: Object,
) -> Result<std::result::Result<Arc<Entry>, Mismatch>> {
    let _held = resource.rules.hold(&object, cluster)?;
    Ok(cluster
        .store()
        .put(&resource.collection, key, Expect::Absent, |revision| {
            stored::encode_as(resource, object, revision)
        }))
}

/// The error for a name that `entry` has; `prefixed`: the object has a generateName.
fn taken(resource: &Resource, name: &str, prefixed: bool, entry: Option<Arc<Entry>>) -> Box<Status> {
    let mut status = Status::already_exists(about(resource, name));
    if prefixed {
        status
            .message
            .push_str(", the server was not able to generate a unique name for the object");
        status = status.with_retry_after(1);
    }
    let leaving =
        entry.is_some_and(|entry| !field(&stored::decode(&entry.object), "deletionTimestamp").is_empty());
    if leaving {
        status.message = format!("object is being deleted: {}", status.message);
    }
    status
}

/// Refuses what etcd would. `before`: bytes of the state before. What could be too large is measured with the books about its
/// fields; custom resources as JSON that is safe inside of HTML, as a kube-apiserver stores them.
pub(super) fn fits(call: &Call, before: usize, object: &Object) -> Result<()> {
    const GROWS: usize = 8;
    // Only a JSON patch makes more of an object than it brings: it copies.
    let copies = call.media_type() == "application/json-patch+json";
    if !copies && (call.body.len() + before) * GROWS < LARGEST {
        return Ok(());
    }
    let size = if call.resource.custom.is_some() {
        crate::json::compact_map(object).len()
    } else {
        serde_json::to_vec(object).map_or(usize::MAX, |bytes| bytes.len())
    };
    if size <= LARGEST {
        Ok(())
    } else {
        Err(Status::unforeseen("etcdserver: request is too large"))
    }
}

/// Checks that the namespace exists and accepts new objects.
fn namespace_takes(cluster: &dyn Surroundings, call: &Call, object: &Object) -> Result<()> {
    let Some(namespace) = cluster.get("namespaces", &call.namespace) else {
        let about = About {
            group: "",
            resource: "namespaces",
            name: &call.namespace,
        };
        return Err(Status::not_found(about));
    };
    if field(&namespace, "deletionTimestamp").is_empty() {
        return Ok(());
    }
    let name = match (field(object, "name"), field(object, "generateName")) {
        ("", "") => "Unknown",
        ("", generate_name) => generate_name,
        (name, _) => name,
    };
    let why = format!(
        "unable to create new content in namespace {} because it is being terminated",
        call.namespace
    );
    let mut status = Status::forbidden(about(&call.resource, name), &why);
    let cause = json!([{"reason": "NamespaceTerminating",
        "message": format!("namespace {} is being terminated", call.namespace), "field": "metadata.namespace"}]);
    status
        .details
        .get_or_insert_default()
        .insert("causes".to_owned(), cause);
    Err(status)
}

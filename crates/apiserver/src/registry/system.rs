//! Metadata that the server sets, and the parts of an object that a request may not change.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    call::Call,
    object::{Object, field, finalizers, metadata, metadata_mut, text},
    random,
    registry::Source,
    resource::{Resource, about},
    status::{FieldError, Result, Status},
};

/// The message for the loser of a race.
pub(crate) const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// The object gets the namespace of the path; another one in the body is refused.
pub(super) fn namespace_of_request(resource: &Resource, call: &Call, object: &mut Object) -> Result<()> {
    if !resource.namespaced {
        metadata_mut(object).remove("namespace");
        return Ok(());
    }
    let given = field(object, "namespace");
    if !given.is_empty() && given != call.namespace {
        return Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    metadata_mut(object).insert("namespace".to_owned(), call.namespace.clone().into());
    Ok(())
}

/// Namespace and name in the body of an update must be those of the path; the namespace may be absent.
pub(super) fn same_name(call: &Call, object: &Object) -> Result<()> {
    let namespace = field(object, "namespace");
    if call.resource.namespaced && !namespace.is_empty() && namespace != call.namespace {
        return Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    match field(object, "name") {
        "" => Err(Status::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            call.name
        ))),
        name if name != call.name => Err(Status::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.name
        ))),
        _ => Ok(()),
    }
}

/// Owners that are named twice in the same words are named once. Returns the warning about it; `after`: it was seen after
/// admission (patches), where the words differ.
pub(super) fn dedupe_owners(object: &mut Object, after: bool) -> Option<String> {
    let Some(Value::Array(owners)) = metadata_mut(object).get_mut("ownerReferences") else {
        return None;
    };
    let mut kept: Vec<Value> = Vec::with_capacity(owners.len());
    let mut twice: BTreeSet<String> = BTreeSet::new();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for owner in owners.drain(..) {
        if seen.insert(owner.to_string()) {
            kept.push(owner);
        } else {
            twice.insert(text(&owner, "uid").to_owned());
        }
    }
    *owners = kept;
    if twice.is_empty() {
        return None;
    }
    let when = if after {
        " after mutating admission happens"
    } else {
        ""
    };
    let uids: Vec<String> = twice.into_iter().collect();
    Some(format!(
        ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
        uids.join(", ")
    ))
}

/// Makes a name from generateName when there is none. Returns true if it did.
pub(super) fn generate_name(object: &mut Object) -> bool {
    const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    const LONGEST_PREFIX: usize = 58;
    let prefix = field(object, "generateName");
    if !field(object, "name").is_empty() || prefix.is_empty() {
        return false;
    }
    let cut: String = prefix.chars().take(LONGEST_PREFIX).collect();
    let random: String = random::random()
        .iter()
        .take(5)
        .map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]))
        .collect();
    metadata_mut(object).insert("name".to_owned(), format!("{cut}{random}").into());
    true
}

/// Sets the fields that the server alone sets on a create; `applied`: the object has its managedFields already.
pub(super) fn system_fields(resource: &Resource, object: &mut Object, now: &str, applied: bool) {
    let counts = resource.rules.has_generation();
    let metadata = metadata_mut(object);
    for gone in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        metadata.remove(gone);
    }
    if !applied {
        metadata.remove("managedFields");
    }
    metadata.insert("uid".to_owned(), random::new_uid().into());
    metadata.insert("creationTimestamp".to_owned(), now.into());
    if counts {
        metadata.insert("generation".to_owned(), 1.into());
    }
}

/// Checks uid and resourceVersion of a change. A patch of the object as read carries its version without having named it.
pub(super) fn preconditions(
    resource: &Resource,
    call: &Call,
    source: Source,
    new: &Object,
    old: &Object,
) -> Result<()> {
    if source == Source::Put {
        same_uid(resource, call, new, field(old, "uid"))?;
    }
    match revision_of(field(new, "resourceVersion"))? {
        0 if resource.rules.unconditional_update() => Ok(()),
        0 => {
            let error = FieldError::invalid("metadata.resourceVersion", 0, "must be specified for an update");
            Err(Status::invalid(about(resource, &call.name), &[error]))
        }
        version if revision_of(field(old, "resourceVersion"))? == version => Ok(()),
        _ => Err(Status::conflict(about(resource, &call.name), MODIFIED)),
    }
}

/// Checks the uid in the body of a PUT; nothing that is there has none.
pub(super) fn same_uid(resource: &Resource, call: &Call, new: &Object, old: &str) -> Result<()> {
    let uid = field(new, "uid");
    if uid.is_empty() || uid == old {
        return Ok(());
    }
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: /registry/{}/{}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {old}",
        storage_prefix(resource),
        resource.key(&call.namespace, &call.name),
    );
    Err(Status::conflict(about(resource, &call.name), &why))
}

/// A resourceVersion as a number, 0 for none; anything else is an error that the server did not foresee.
fn revision_of(text: &str) -> Result<u64> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let why = if digits {
            "value out of range"
        } else {
            "invalid syntax"
        };
        Status::unforeseen(format!("strconv.ParseUint: parsing {text:?}: {why}"))
    })
}

/// The key in etcd for the objects of a resource, which errors of the storage name.
fn storage_prefix(resource: &Resource) -> String {
    if resource.custom.is_some() || resource.group == "apiextensions.k8s.io" {
        return format!("{}/{}", resource.group, resource.plural);
    }
    match resource.plural.as_str() {
        "services" => "services/specs",
        "endpoints" => "services/endpoints",
        "nodes" => "minions",
        "ingresses" => "ingress",
        "replicationcontrollers" => "controllers",
        plural => plural,
    }
    .to_owned()
}

/// Restores the metadata that only the server may change, and that an update may leave out.
pub(super) fn keep_system_fields(new: &mut Object, old: &Object) {
    let metadata = metadata_mut(new);
    metadata.remove("selfLink");
    for name in ["creationTimestamp", "generation", "resourceVersion"] {
        match self::metadata(old).get(name) {
            Some(value) => metadata.insert(name.to_owned(), value.clone()),
            None => metadata.remove(name),
        };
    }
    for name in [
        "name",
        "namespace",
        "uid",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        let absent = metadata
            .get(name)
            .is_none_or(|value| value.is_null() || value == "");
        if absent && let Some(value) = self::metadata(old).get(name) {
            metadata.insert(name.to_owned(), value.clone());
        }
    }
}

/// Status is changed through its subresource only (and through approval, which is a part of it), and little else through it:
/// nothing of a custom resource, of a built-in kind its metadata (what more it keeps is up to its rules).
pub(super) fn keep_other_part(resource: &Resource, subresource: &str, new: &mut Object, old: &Object) {
    if !resource.rules.has_status() {
        return;
    }
    if !matches!(subresource, "status" | "approval") {
        set_back(new, old, |name| name == "status");
        return;
    }
    metadata_mut(new);
    set_back(new, old, |name| !matches!(name, "status" | "metadata"));
    let kept = resource.rules.kept_by_status();
    let metadata_of_old = |name: &str| match resource.custom {
        None => kept.contains(&name),
        Some(_) => name != "managedFields",
    };
    set_back(metadata_mut(new), metadata(old), metadata_of_old);
}

/// Makes those fields of `new` that are `meant` what they are in `old`. Most are: nothing is copied of these.
fn set_back(new: &mut Object, old: &Object, meant: impl Fn(&str) -> bool) {
    new.retain(|name, _| !meant(name) || old.contains_key(name));
    for (name, value) in old.iter().filter(|(name, _)| meant(name)) {
        if new.get(name) != Some(value) {
            new.insert(name.clone(), value.clone());
        }
    }
}

/// The generation grows with what the kind counts, never through the status.
pub(super) fn count_generation(resource: &Resource, subresource: &str, new: &mut Object, old: &Object) {
    if subresource != "status"
        && resource.rules.has_generation()
        && resource.rules.generation_changes(old, new)
    {
        let generation = metadata(old)
            .get("generation")
            .and_then(Value::as_i64)
            .unwrap_or(0)
            + 1;
        metadata_mut(new).insert("generation".to_owned(), generation.into());
    }
}

/// True if a change removes an object that is being deleted: no finalizer is left, no grace is given, and the kind agrees.
pub(super) fn is_finished(resource: &Resource, new: &Object, old: &Object) -> bool {
    let grace = metadata(old)
        .get("deletionGracePeriodSeconds")
        .and_then(Value::as_i64)
        .unwrap_or(0);
    !field(old, "deletionTimestamp").is_empty()
        && finalizers(new).next().is_none()
        && grace == 0
        && resource.rules.may_go(new)
}

//! `pods/binding`: a scheduler gives a pod to a node.

use serde_json::{Value, json};

use crate::{
    admission::Context,
    call::{Call, Reply},
    decode::{self, FieldValidation},
    object::{
        self, Object, field, metadata_mut,
        tree::{Errors, below, list, made, text},
    },
    registry::{self, Terms, find},
    resource::{Resource, stored},
    status::{About, Result, Status, field as fields},
    store::Expect,
};

/// POST of a Binding. The node need not be there.
pub(crate) fn bind(cluster: &dyn Context, call: &Call) -> Result<Reply> {
    let terms = Terms::of(cluster, call)?;
    let kinds = cluster.kinds();
    let kind = kinds
        .find("", "v1", "bindings")
        .ok_or_else(Status::no_such_path)?;
    let binding = body(call, kind)?;
    let name = field(&binding, "name");
    if !name.is_empty() && name != call.name {
        return Err(Status::bad_request(
            "name in URL does not match name in Binding object",
        ));
    }
    let target = below(&binding, "target");
    let mut errors = Errors::default();
    let kind = text(target, "kind");
    if !kind.is_empty() && kind != "Node" {
        errors.one_of("target.kind", kind, &["Node", "<empty>"]);
    }
    errors.needs(target, "target", "name");
    if !errors.0.is_empty() {
        return Err(Status::unforeseen(fields::summary(&errors.0)));
    }
    let resource = &*call.resource;
    loop {
        let entry = find(cluster.store(), resource, &call.namespace, &call.name)?;
        let mut pod = stored::shown(resource, &entry.object);
        if let Some(why) = refusal(&pod, call) {
            let about = About {
                group: "",
                resource: "pods/binding",
                name: &call.name,
            };
            return Err(Status::conflict(about, &why));
        }
        assign(&mut pod, &binding, &terms.now);
        if terms.dry_run {
            return Ok(created());
        }
        let written = cluster.store().put(
            &resource.collection,
            &entry.key,
            Expect::At(entry.revision),
            |revision| stored::encode_as(resource, pod, revision),
        );
        if written.is_ok() {
            return Ok(created());
        }
    }
}

fn refusal(pod: &Object, call: &Call) -> Option<String> {
    let node = text(below(pod, "spec"), "nodeName");
    if !field(pod, "deletionTimestamp").is_empty() {
        return Some(format!(
            "pod {} is being deleted, cannot be assigned to a host",
            call.name
        ));
    }
    if !node.is_empty() {
        return Some(format!("pod {} is already assigned to node {node:?}", call.name));
    }
    (!list(below(pod, "spec"), "schedulingGates").is_empty())
        .then(|| format!("pod {} has non-empty .spec.schedulingGates", call.name))
}

fn assign(pod: &mut Object, binding: &Object, now: &str) {
    let node = text(below(binding, "target"), "name");
    made(pod, "spec").insert("nodeName".to_owned(), node.into());
    for key in ["labels", "annotations"] {
        let given = below(object::metadata(binding), key);
        if !given.is_empty() {
            made(metadata_mut(pod), key).extend(given.clone());
        }
    }
    let condition = json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null,
        "lastTransitionTime": now});
    made(pod, "status").remove("nominatedNodeName");
    set_condition(pod, condition);
}

/// Sets a condition of a pod, in place of the one of its type.
pub(super) fn set_condition(pod: &mut Object, condition: Value) {
    let status = made(pod, "status");
    let mut conditions = list(status, "conditions").to_vec();
    let of_this_type = |one: &Value| one.get("type") == condition.get("type");
    match conditions.iter_mut().find(|one| of_this_type(one)) {
        Some(one) => *one = condition,
        None => conditions.push(condition),
    }
    status.insert("conditions".to_owned(), Value::Array(conditions));
}

/// The answer to a binding or an eviction that was done.
pub(super) fn created() -> Reply {
    Reply::Other {
        code: 201,
        value: json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
        warnings: Vec::new(),
    }
}

/// The body of a POST to a subresource: an object of another kind.
pub(super) fn body(call: &Call, resource: &Resource) -> Result<Object> {
    let media = registry::media(call)?;
    decode::body(resource, &call.body, media, FieldValidation::Warn).map(|decoded| decoded.object)
}

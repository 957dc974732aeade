//! ComponentStatuses: made for each response, nothing of them is stored. All are healthy: they are this process.

use serde_json::{Value, json};

use crate::{
    call::{Call, Item, Reply},
    list::Options,
    object::Object,
    registry::Context,
    resource::about,
    status::{Result, Status},
};

/// The components that a kube-apiserver asks for their health.
const COMPONENTS: [&str; 3] = ["controller-manager", "scheduler", "etcd-0"];

/// True for a GET of components.
pub(crate) fn is_asked(call: &Call) -> bool {
    call.resource.group.is_empty() && call.resource.kind == "ComponentStatus"
}

/// One component, or all that are selected.
pub(crate) fn answer(cluster: &dyn Context, call: &Call) -> Result<Reply> {
    if !call.name.is_empty() {
        return match COMPONENTS.iter().find(|name| **name == call.name) {
            Some(name) => Ok(Reply::ok(Item::Made(component(name)), Vec::new())),
            None => Err(Status::not_found(about(&call.resource, &call.name))),
        };
    }
    let options = Options::of(call, false)?;
    let selected = COMPONENTS
        .map(component)
        .into_iter()
        .filter(|component| options.selection.matches(&call.resource, component));
    Ok(Reply::List {
        items: selected.map(Item::Made).collect(),
        revision: cluster.store().revision(),
        next: String::new(),
        remaining: None,
    })
}

fn component(name: &str) -> Object {
    let component = json!({"kind": "ComponentStatus", "apiVersion": "v1", "metadata": {"name": name},
        "conditions": [{"type": "Healthy", "status": "True", "message": "ok"}]});
    match component {
        Value::Object(component) => component,
        _ => Object::new(),
    }
}

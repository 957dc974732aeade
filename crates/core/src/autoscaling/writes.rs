//! The record of the writes of a template, from the changes of a plan.

use entourage_api::keys::{annotation, label};
use serde_json::Value;

use crate::{
    cache::{Label, ResourceState, ScalingWrites, Sent, Written},
    fleet::autoscaling::label_of,
    object::{Str, StrMap, Time},
    plan::{Change, Verb},
};

/// The record of the writes of a template once this change is sent; `None` if it is none of them.
pub(crate) fn next_writes(resource: &ResourceState, change: &Change, now: Time) -> Option<ScalingWrites> {
    let Change::Hub {
        verb: Verb::Merge(body),
        ..
    } = change
    else {
        return None;
    };
    let template = resource.template.as_ref()?;
    let mut writes = resource.scaling_writes.as_deref().cloned().unwrap_or_default();
    let mut sent = Sent {
        before: template.meta.clone(),
        after: template.meta.clone(),
        replicas: template.replicas,
    };
    if let Some(replicas) = body["spec"]["replicas"].as_i64() {
        let (found, value) = (&template.replicas, i32::try_from(replicas).ok());
        sent.replicas = value;
        writes.replicas = Some(Written::next(
            writes.replicas.as_ref(),
            (found, value),
            super::REPLICAS,
            now,
        ));
    } else {
        let text = |value: &Value| value.as_str().map(Str::from);
        let found = label_of(&template.meta);
        let value = Label {
            value: text(&body["metadata"]["labels"][label::RETAIN_REPLICAS]),
            by: text(&body["metadata"]["annotations"][annotation::SCALED_BY]),
        };
        put(
            &mut sent.after.labels,
            label::RETAIN_REPLICAS,
            value.value.as_ref(),
        );
        put(
            &mut sent.after.annotations,
            annotation::SCALED_BY,
            value.by.as_ref(),
        );
        let path = label::RETAIN_REPLICAS;
        writes.label = Some(Written::next(writes.label.as_ref(), (&found, value), path, now));
    }
    writes.sent = Some(sent);
    Some(writes)
}

/// Sets or removes a key, as the patch does.
fn put(all: &mut StrMap, key: &str, value: Option<&Str>) {
    match value {
        Some(value) => all.insert(key.into(), value.clone()),
        None => all.remove(key),
    };
}

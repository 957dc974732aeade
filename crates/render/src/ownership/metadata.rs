//! The labels and annotations of a copy: the template's own and the ownership metadata (karmada reference 0.2, 0.3, observed
//! example).

use entourage_api::{
    keys::{self, annotation, label},
    names,
};

pub use entourage_model::marks::{Marks, on, owner};
use entourage_model::{
    marks::is_mark,
    object::{Meta, ResourceId, StrMap},
    scope,
};

use crate::{overrides, render_spec::RenderSpec};

/// Returns those of a copy, from a template's metadata and its overrides (karmada reference 0.2, 0.3, observed example).
#[must_use]
pub fn of(template: &Meta, render_spec: &RenderSpec, id: &ResourceId, cluster: &str) -> Marks {
    let mut labels = with_preserved(template, render_spec);
    let mut annotations = template.annotations.clone();
    for of_ours in [
        annotation::WAITS,
        annotation::SCALED_BY,
        annotation::CREATED_BY,
        annotation::APPLIED_OVERRIDES,
        annotation::APPLIED_CLUSTER_OVERRIDES,
        annotation::VOLUME_RETENTION,
        annotation::RELEASED_FROM,
        annotation::ADOPTED_FROM,
        annotation::DATA_RESTORED_AT,
    ] {
        annotations.remove(of_ours);
    }
    annotations.retain(|key, _| !key.starts_with(annotation::MANAGED_BY_PREFIX));
    // A copy with a rule that cannot be applied is not rendered: then the result does not matter.
    let _ = overrides::apply_to_metadata(&render_spec.overrides, cluster, &mut labels, &mut annotations);
    labels.insert(label::MANAGED.into(), "true".into());
    labels.insert(label::HUB.into(), render_spec.hub.clone());
    let owner = scope::binding(&render_spec.binding.namespace);
    labels.insert(owner.id_label.into(), render_spec.permanent_id.clone());

    let resolution = if render_spec.overwrite {
        "overwrite"
    } else {
        "abort"
    };
    let work = names::work_name(&id.namespace, &id.name, &id.gvk.kind);
    let mut put = |key: &str, value: &str| annotations.insert(key.into(), value.into());
    if render_spec.binding.namespace.is_empty() {
        put(
            annotation::CLUSTER_RESOURCE_BINDING_NAME,
            &render_spec.binding.name,
        );
    } else {
        put(
            annotation::RESOURCE_BINDING_NAMESPACE,
            &render_spec.binding.namespace,
        );
        put(annotation::RESOURCE_BINDING_NAME, &render_spec.binding.name);
    }
    put(annotation::WORK_NAMESPACE, &names::execution_namespace(cluster));
    put(annotation::WORK_NAME, &work);
    put(annotation::CONFLICT_RESOLUTION, resolution);
    put(annotation::TEMPLATE_UID, &template.uid);
    if let Some(generation) = template.generation {
        put(annotation::TEMPLATE_GENERATION, &generation.to_string());
    }
    for (key, record) in overrides::records(&render_spec.overrides, id) {
        put(key, &record);
    }
    put(annotation::MANAGED_LABELS, "");
    put(annotation::MANAGED_ANNOTATIONS, "");
    let keys = |map: &StrMap| map.keys().map(|key| &**key).collect::<Vec<_>>().join(",");
    let (label_keys, annotation_keys) = (keys(&labels), keys(&annotations));
    annotations.insert(annotation::MANAGED_LABELS.into(), label_keys.into());
    annotations.insert(annotation::MANAGED_ANNOTATIONS.into(), annotation_keys.into());
    Marks { labels, annotations }
}

/// The labels of a template, and those preserved from the copy that it replaces. Overrides see both.
pub(crate) fn with_preserved(template: &Meta, render_spec: &RenderSpec) -> StrMap {
    let mut labels = template.labels.clone();
    if render_spec.adds_label(&labels) {
        labels.insert(label::RETAIN_REPLICAS.into(), keys::TRUE.into());
    }
    let preserved = render_spec.preserved.iter().filter(|(key, _)| !is_mark(key));
    labels.extend(preserved.map(|(key, value)| (key.clone(), value.clone())));
    labels
}

//! The fields of a binding that follow from its template alone, or from its referrers alone.

use entourage_api::{
    keys::annotation,
    work::{ObjectReference, ResourceBinding, ResourceBindingSpec, TargetCluster, TargetComponent},
};

use crate::{
    cache::ResourceState,
    dependencies::Merged,
    fleet::{Fleet, autoscaling::is_own_write, render_specs::content_version},
    object::{Meta, ResourceId},
    observation::Template,
    stored_binding::is_scheduled_by_us,
};

/// Fills in `spec.resource`: its resourceVersion changes only together with content (architecture 2.5). Where the kind has a
/// generation, or a substitute for it, an annotation stores the one of that content; without it every resourceVersion counts as
/// new content.
///
/// The clusters where the application failed are those of the content that a user wrote: what this control plane writes to the template
/// because of autoscalers makes none of them better.
pub(super) fn describe(
    id: &ResourceId,
    (resource, template): (&ResourceState, &Template),
    binding: &mut ResourceBinding,
) {
    let spec = &mut binding.spec;
    let content = template
        .meta
        .content_generation()
        .map(|_| content_version(&template.meta));
    let annotations = binding.metadata.annotations.get_or_insert_default();
    let same_content = content.is_some()
        && spec.resource.uid == *template.meta.uid
        && annotations.get(annotation::CONTENT) == content.as_ref();
    if !same_content {
        spec.resource.resource_version = template.meta.resource_version.to_string();
        let stored = annotations.get(annotation::CONTENT).cloned();
        let was = |before: &Meta| stored.as_ref() == Some(&content_version(before));
        if !is_own_write(resource, &template.meta, was) {
            annotations.remove(annotation::FAILED_CLUSTERS);
        }
    }
    match content {
        Some(content) => annotations.insert(annotation::CONTENT.into(), content),
        None => annotations.remove(annotation::CONTENT),
    };
    spec.resource = ObjectReference {
        api_version: id.gvk.api_version(),
        kind: id.gvk.kind.to_string(),
        namespace: id.namespace.to_string(),
        name: id.name.to_string(),
        uid: template.meta.uid.to_string(),
        resource_version: std::mem::take(&mut spec.resource.resource_version),
    };
}

/// Fills in the resources that the template requests. Replicas or components, as in Karmada, whose readers do not divide a
/// workload with several components; if both are known, the replicas, which are divided here.
pub(super) fn demand(fleet: &Fleet, template: &Template, spec: &mut ResourceBindingSpec) {
    spec.replicas = template.replicas.unwrap_or_default();
    spec.replica_requirements = template.requirements.as_deref().cloned();
    let components = template.components.as_deref().unwrap_or_default();
    spec.components = match template.replicas {
        Some(_) => Vec::new(),
        None => components.to_vec(),
    };
    if fleet.config.multiple_pod_templates && is_scheduled_by_us(spec) {
        follow_components(spec);
    }
}

/// A set that is placed is delivered as its template is: what its clusters have of each component follows, whether another cluster fits or
/// not.
fn follow_components(spec: &mut ResourceBindingSpec) {
    let is_set = |target: &&mut TargetCluster| target.replicas == 0 && !target.components.is_empty();
    for target in spec.clusters.iter_mut().filter(is_set) {
        let whole = spec.components.iter().map(|component| TargetComponent {
            name: component.name.clone(),
            replicas: component.replicas,
        });
        target.components = whole.collect();
    }
}

/// Fills in the fields of a required part that no policy sets (karmada reference 2.5).
pub(super) fn attach(merged: &Merged, spec: &mut ResourceBindingSpec) {
    spec.conflict_resolution = merged.conflict_resolution;
    spec.preserve_resources_on_deletion = Some(merged.preserve);
    spec.propagate_deps = false;
    spec.replicas = 0;
    spec.replica_requirements = None;
    spec.components.clear();
    spec.clusters.clear();
    spec.graceful_eviction_tasks.clear();
    spec.placement = None;
    spec.scheduler_name.clear();
    spec.failover = None;
    spec.suspension = None;
    spec.workload_affinity_groups = None;
    spec.schedule_priority = None;
}

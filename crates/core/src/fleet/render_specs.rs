//! The render spec of a copy on a cluster, from its template, its binding and the policies.

use entourage_api::{
    keys::{self, annotation, label},
    policy::{ConflictResolution, ReplicaSchedulingType},
    work::{CopyRecord, ResourceBindingSpec, TargetCluster},
};

use crate::{
    cache::{Binding, CopyState, ResourceState},
    fleet::{
        Fleet,
        autoscaling::{is_followed, is_scale_target, raise_of},
        needs,
    },
    object::{Meta, NamespacedName, ResourceId, Str},
    observation::Template,
    render_spec::RenderSpec,
    scheduler,
    stored_binding::{preserved_labels_on, purge::share},
};

/// The render spec of the copy on a cluster.
pub(crate) fn render_spec(
    fleet: &Fleet,
    id: &ResourceId,
    (resource, template, binding): (&ResourceState, &Template, &Binding),
    (state, cluster): (&CopyState, &str),
) -> RenderSpec {
    let spec = &binding.object.spec;
    // The template's own annotation takes precedence over the policy (karmada reference 0.3); other values are ignored.
    let setting = template.meta.annotation(annotation::CONFLICT_RESOLUTION);
    let overwrite = match setting {
        // A namespace may have been created on demand, before it was known that a policy claims it.
        _ if id.gvk.is_namespace() => true,
        Some("overwrite") => true,
        Some("abort") => false,
        _ => needs::conflict_resolution(fleet, id, resource, cluster) == ConflictResolution::Overwrite,
    };
    let divided = spec
        .placement
        .as_ref()
        .is_some_and(|placement| placement.replica_scheduling_type() == ReplicaSchedulingType::Divided);
    // A copy gets no more replicas than the quotas of its namespace allowed its binding: while these are others than those of
    // the template, those of the binding count.
    let is_held_back = |target: &TargetCluster| {
        fleet.config.enforce_quotas
            && template
                .replicas
                .is_some_and(|replicas| replicas != target.replicas)
    };
    let is_left = spec
        .placement
        .as_ref()
        .is_some_and(|placement| is_followed(fleet, id, template, placement));
    let replicas = TargetCluster::find(&spec.clusters, cluster)
        .filter(|target| (divided || is_held_back(target)) && template.replicas.is_some())
        .map(|target| share(&binding.object, target, is_left));
    // A share that the scheduler raised is delivered once: see `crate::autoscaling`.
    let raise = TargetCluster::find(&spec.clusters, cluster)
        .filter(|_| is_left)
        .and_then(|target| raise_of(&binding.object, target));
    let is_delivered = |record: &CopyRecord| record.share == replicas && record.raise == raise;
    let is_due = raise.is_some() && !state.record.as_ref().is_some_and(is_delivered);
    let completions = replicas
        .filter(|_| divided)
        .and_then(|_| share_of_completions(template, spec, cluster));
    RenderSpec {
        hub: fleet.config.hub.clone(),
        binding: binding.name.clone(),
        permanent_id: binding.permanent_id().into(),
        replicas,
        at_least: replicas.filter(|_| is_due),
        raise,
        // As observed here: the template that is rendered is read anew, and may have lost the label by then.
        keeps_replicas: spec.placement.is_some()
            && template
                .meta
                .label(label::RETAIN_REPLICAS)
                .is_none_or(|value| value == keys::TRUE)
            && is_scale_target(fleet, id, template),
        completions,
        preserved: preserved_labels_on(&binding.object, cluster),
        overwrite,
        overrides: fleet.graph.override_index.rules(
            id,
            &template.meta.labels,
            fleet.cache.members.get(cluster),
        ),
        interpretation: fleet.graph.interpreter.of(&id.gvk),
        written_uid: state.record.as_ref().map(|record| record.uid.as_str().into()),
    }
}

/// A divided Job's completions here: divided as its replicas are (Karmada reference 1.4).
fn share_of_completions(template: &Template, spec: &ResourceBindingSpec, cluster: &str) -> Option<i64> {
    let total = template.completions?;
    let holders: Vec<(&str, i64)> = spec
        .clusters
        .iter()
        .map(|target| (target.name.as_str(), i64::from(target.replicas)))
        .collect();
    let place = holders.iter().position(|(name, _)| *name == cluster)?;
    scheduler::apportion(total, &holders, &template.meta.uid)
        .get(place)
        .copied()
}

/// The render spec of the copy; `None` when there is nothing to write.
pub(crate) fn render_spec_of(fleet: &Fleet, id: &ResourceId, cluster: &Str) -> Option<RenderSpec> {
    let resource = fleet.resource(id)?;
    let (template, binding) = (resource.template.as_ref()?, resource.binding.as_ref()?);
    let none = CopyState::default();
    let state = resource.copies.get(cluster).unwrap_or(&none);
    Some(render_spec(
        fleet,
        id,
        (resource, template, binding),
        (state, cluster),
    ))
}

/// An identifier of the content of a template: see [`crate::render_spec::source_version`], without the render spec.
#[must_use]
pub(crate) fn content_version(meta: &Meta) -> String {
    let none = crate::render_spec::RenderSpec {
        hub: "".into(),
        binding: NamespacedName::new("", ""),
        permanent_id: "".into(),
        replicas: None,
        at_least: None,
        raise: None,
        keeps_replicas: false,
        completions: None,
        preserved: Default::default(),
        overwrite: false,
        overrides: Default::default(),
        written_uid: None,
        interpretation: Default::default(),
    };
    crate::render_spec::source_version(meta, &none)
}

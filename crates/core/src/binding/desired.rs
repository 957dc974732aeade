//! What a binding should say: the own part from its policy, the required part from its referrers.

use entourage_api::{
    keys::{annotation, finalizer, label},
    names,
    work::{DependentObjectReference, ObjectReference, ResourceBinding, ResourceBindingSpec, Suspension},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::{Own, schedule};
use crate::{
    dependencies::{self, Merged, Required},
    index::{Entity, Index, Policy, content_version},
    object::{Id, Named},
    observation::Template,
    scheduler::Outcome,
};

pub(super) fn desired(
    index: &Index,
    id: &Id,
    (entity, template): (&Entity, &Template),
    own: Option<Own<'_>>,
    required: &[Required],
    mut binding: ResourceBinding,
) -> ResourceBinding {
    describe(id, template, &mut binding);
    let claimed = match own {
        Some(Own::Claimed(name, policy)) => {
            claim(index, id, template, policy, &mut binding.spec);
            Some((name, policy))
        }
        Some(Own::Orphaned) => {
            binding.spec.replicas = template.replicas.unwrap_or_default();
            None
        }
        None => {
            if index.config.propagate_deps {
                attach(&dependencies::merged(index, entity), &mut binding.spec);
            }
            None
        }
    };
    binding.spec.required_by = required.iter().map(|each| each.snapshot.clone()).collect();
    mark(index, entity, claimed, required, &mut binding);
    binding
}

/// `spec.resource`: its resourceVersion changes only together with content (architecture 2.5). Where the kind has a
/// generation an annotation keeps which content that was; without one every resourceVersion counts as content.
fn describe(id: &Id, template: &Template, binding: &mut ResourceBinding) {
    let spec = &mut binding.spec;
    let content = template.meta.generation.map(|_| content_version(&template.meta));
    let annotations = binding.metadata.annotations.get_or_insert_default();
    let same_content = content.is_some()
        && spec.resource.uid == *template.meta.uid
        && annotations.get(annotation::CONTENT) == content.as_ref();
    if !same_content {
        spec.resource.resource_version = template.meta.resource_version.to_string();
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

/// What a policy says (karmada reference 1.2).
fn claim(index: &Index, id: &Id, template: &Template, policy: &Policy, spec: &mut ResourceBindingSpec) {
    let from = &policy.object.spec;
    spec.propagate_deps = from.propagate_deps;
    spec.scheduler_name.clone_from(&from.scheduler_name);
    spec.failover.clone_from(&from.failover);
    spec.conflict_resolution = from.conflict_resolution;
    spec.preserve_resources_on_deletion = from.preserve_resources_on_deletion;
    let scheduling = spec.suspension.as_ref().and_then(|held| held.scheduling);
    spec.suspension = match (&from.suspension, scheduling) {
        (None, None) => None,
        (dispatch, scheduling) => Some(Suspension {
            dispatch: dispatch.clone().unwrap_or_default(),
            scheduling,
        }),
    };
    spec.replicas = template.replicas.unwrap_or_default();
    if scheduling != Some(true)
        && let Outcome::Placed { clusters, .. } =
            schedule(index, id, template, &from.placement, &spec.clusters)
    {
        spec.clusters = clusters;
    }
    spec.placement = Some(from.placement.clone());
}

/// What the referrers of a binding say that no policy made (karmada reference 2.5).
fn attach(merged: &Merged, spec: &mut ResourceBindingSpec) {
    spec.conflict_resolution = merged.conflict_resolution;
    spec.preserve_resources_on_deletion = Some(merged.preserve);
    spec.propagate_deps = false;
    spec.replicas = 0;
    spec.clusters.clear();
    spec.placement = None;
    spec.scheduler_name.clear();
    spec.failover = None;
    spec.suspension = None;
}

/// Labels, annotations and finalizers of ours; what others set stays.
fn mark(
    index: &Index,
    entity: &Entity,
    claimed: Option<(&Named, &Policy)>,
    required: &[Required],
    binding: &mut ResourceBinding,
) {
    let following =
        index.config.propagate_deps && binding.spec.placement.is_some() && binding.spec.propagate_deps;
    let labels = binding.metadata.labels.get_or_insert_default();
    labels
        .retain(|key, _| !key.starts_with(label::DEPENDED_BY_PREFIX) && key != label::PROPAGATION_POLICY_ID);
    for Required {
        snapshot,
        permanent_id,
    } in required
    {
        labels.insert(
            names::depended_by_key(&snapshot.namespace, &snapshot.name),
            permanent_id.to_string(),
        );
    }
    if let Some(permanent_id) = &entity.permanent_id {
        labels
            .entry(label::RESOURCE_BINDING_ID.into())
            .or_insert_with(|| permanent_id.to_string());
    }
    let left_out = dependencies::left_out(index, entity, required.len());
    let annotations = binding.metadata.annotations.get_or_insert_default();
    for key in [
        annotation::PROPAGATION_POLICY_NAMESPACE,
        annotation::PROPAGATION_POLICY_NAME,
        annotation::DEPENDENCIES,
        annotation::REQUIRED_BY_LEFT_OUT,
    ] {
        annotations.remove(key);
    }
    if left_out > 0 {
        annotations.insert(annotation::REQUIRED_BY_LEFT_OUT.into(), left_out.to_string());
    }
    if let Some((name, policy)) = claimed {
        let permanent_id = policy
            .meta
            .label(label::PROPAGATION_POLICY_ID)
            .unwrap_or_default();
        labels.insert(label::PROPAGATION_POLICY_ID.into(), permanent_id.into());
        annotations.insert(
            annotation::PROPAGATION_POLICY_NAMESPACE.into(),
            name.namespace.to_string(),
        );
        annotations.insert(annotation::PROPAGATION_POLICY_NAME.into(), name.name.to_string());
        if let Some(placement) = &binding.spec.placement {
            annotations.insert(
                annotation::APPLIED_PLACEMENT.into(),
                serde_json::to_string(placement).unwrap_or_default(),
            );
        }
    }
    if following && !entity.references.is_empty() {
        let listed: Vec<DependentObjectReference> = entity
            .references
            .iter()
            .map(|reference| DependentObjectReference {
                api_version: reference.kind.api_version().into(),
                kind: reference.kind.kind().into(),
                namespace: reference.namespace.clone(),
                name: reference.name.clone(),
                label_selector: None,
            })
            .collect();
        annotations.insert(
            annotation::DEPENDENCIES.into(),
            serde_json::to_string(&listed).unwrap_or_default(),
        );
    }
    if annotations.is_empty() {
        binding.metadata.annotations = None;
    }
    let finalizers = binding.metadata.finalizers.get_or_insert_default();
    let mut keep = |name: &str, wanted: bool| {
        let there = finalizers.iter().any(|each| each == name);
        if wanted && !there {
            finalizers.push(name.into());
        } else if !wanted && there {
            finalizers.retain(|each| each != name);
        }
    };
    keep(finalizer::BINDING, true);
    keep(finalizer::DEPENDENCIES, following);
}

/// Name, owner and permanent id of a binding that is made now.
pub(super) fn identity(index: &Index, id: &Id, entity: &Entity, template: &Template) -> ObjectMeta {
    let permanent_id = entity.permanent_id.as_ref().map_or_else(
        || names::permanent_id(&[&index.config.hub, &template.meta.uid, "ResourceBinding"]),
        ToString::to_string,
    );
    ObjectMeta {
        name: Some(names::binding_name(&id.gvk.kind, &id.name)),
        namespace: Some(id.namespace.to_string()),
        labels: Some([(label::RESOURCE_BINDING_ID.into(), permanent_id)].into()),
        owner_references: Some(vec![OwnerReference {
            api_version: id.gvk.api_version(),
            kind: id.gvk.kind.to_string(),
            name: id.name.to_string(),
            uid: template.meta.uid.to_string(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }]),
        ..ObjectMeta::default()
    }
}

//! The objects of the floor: bindings and copies of the size that a control plane writes, with placeholder ownership metadata.

use serde_json::{Value, json};

use crate::bench::{
    kind::{Kind, ObjectId},
    objects::World,
};

/// The placeholder of every id.
const MARK: &str = "4efd799d-5b87-4acd-ad2d-df789084d1b8";

/// A binding of the size that a control plane writes.
pub(super) fn binding(of: &ObjectId, world: &World) -> (ObjectId, Value) {
    let id = ObjectId::new(
        Kind::FloorBinding,
        &of.namespace,
        format!("{}-{}", of.name, of.kind.name().to_lowercase()),
    );
    let clusters: Vec<_> = world
        .members
        .iter()
        .map(|name| json!({"name": name, "replicas": 2}))
        .collect();
    let mut spec = json!({
        "resource": {
            "apiVersion": of.kind.api_version(), "kind": of.kind.name(), "namespace": of.namespace, "name": of.name,
            "uid": MARK, "resourceVersion": "100000",
        },
        "conflictResolution": "Abort",
    });
    if of.kind == Kind::Deployment {
        spec["clusters"] = json!(clusters);
        spec["propagateDeps"] = json!(true);
        spec["placement"] = json!({"clusterAffinity": {"clusterNames": world.members}});
    } else {
        spec["requiredBy"] = json!([{"namespace": of.namespace, "name": format!("{}-deployment", of.name), "clusters": clusters}]);
    }
    let object = json!({
        "apiVersion": Kind::FloorBinding.api_version(),
        "kind": Kind::FloorBinding.name(),
        "metadata": {
            "name": id.name,
            "namespace": id.namespace,
            "labels": {
                "resourcebinding.karmada.io/permanent-id": MARK,
                "propagationpolicy.karmada.io/permanent-id": MARK,
            },
            "annotations": {
                "propagationpolicy.karmada.io/name": "shared",
                "propagationpolicy.karmada.io/namespace": of.namespace,
                "policy.karmada.io/applied-placement": json!({"clusterAffinity": {"clusterNames": world.members}}).to_string(),
            },
            "ownerReferences": [{
                "apiVersion": of.kind.api_version(), "kind": of.kind.name(), "name": of.name, "uid": MARK,
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": spec,
    });
    (id, object)
}

/// The status of such a binding.
pub(super) fn status(world: &World) -> Value {
    let time = "2026-01-01T00:00:00Z";
    let condition = |kind: &str| json!({"type": kind, "status": "True", "reason": "Success", "message": "all of it", "lastTransitionTime": time});
    let entries = world.members.iter().map(|name| {
        json!({
            "clusterName": name, "applied": true, "health": "Unhealthy",
            "copy": {"uid": MARK, "generation": 1, "source": "4efd799d-5b87-4acd 1 0123456789abcdef"},
        })
    });
    let conditions = ["Scheduled", "FullyApplied"].map(condition);
    json!({
        "conditions": conditions,
        "aggregatedStatus": entries.collect::<Vec<_>>(),
        "lastScheduledTime": time,
        "schedulerObservedGeneration": 1,
    })
}

/// A copy with the ownership metadata of copies.
pub(super) fn copy(id: &ObjectId, mut object: Value) -> Value {
    let labels = &mut object["metadata"]["labels"];
    labels["karmada.io/managed"] = json!("true");
    labels["resourcebinding.karmada.io/permanent-id"] = json!(MARK);
    object["metadata"]["annotations"] = json!({
        "resourcebinding.karmada.io/name": format!("{}-{}", id.name, id.kind.name().to_lowercase()),
        "resourcebinding.karmada.io/namespace": id.namespace,
        "resourcetemplate.karmada.io/uid": MARK,
        "resourcetemplate.karmada.io/managed-labels":
            "bench.entourage.dev/run,karmada.io/managed,resourcebinding.karmada.io/permanent-id",
        "resourcetemplate.karmada.io/managed-annotations":
            "resourcebinding.karmada.io/name,resourcebinding.karmada.io/namespace,resourcetemplate.karmada.io/uid",
        "work.karmada.io/conflict-resolution": "abort",
        "work.karmada.io/name": format!("{}-567c465fbb", id.name),
        "work.karmada.io/namespace": "karmada-es-member1",
    });
    object
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::objects::tests::world;

    #[test]
    fn a_binding_of_the_floor_is_of_a_kind_that_nobody_looks_at() {
        let world = world(1, 1);
        let (id, object) = binding(&world.deployment_id(0), &world);
        assert_eq!(
            (id.kind, id.name.as_str()),
            (Kind::FloorBinding, "app-0000-deployment")
        );
        assert_eq!(object["apiVersion"], "bench.entourage.dev/v1alpha2");
        assert_eq!(object["spec"]["clusters"][1]["name"], "m2");
    }

    #[test]
    fn a_copy_keeps_its_content_and_the_bench_s_label() {
        let (id, object) = world(1, 1).deployments().remove(0);
        let copy = copy(&id, object.clone());
        assert_eq!(copy["spec"], object["spec"]);
        assert_eq!(copy["metadata"]["labels"]["bench.entourage.dev/run"], "bench");
    }
}

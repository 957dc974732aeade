//! Rebalancers as they are written and read.

use serde_json::json;

use super::*;

#[test]
fn a_rebalancer_and_what_came_of_it_survive_unchanged() {
    let deployment =
        json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "namespace": "shop" });
    let role =
        json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "reader" });
    let object = json!({
        "apiVersion": "apps.karmada.io/v1alpha1",
        "kind": "WorkloadRebalancer",
        "metadata": { "name": "after-the-outage" },
        "spec": { "workloads": [deployment, role], "ttlSecondsAfterFinished": 60 },
        "status": {
            "observedWorkloads": [
                { "workload": deployment, "result": "Successful" },
                { "workload": role, "result": "Failed", "reason": "ReferencedBindingNotFound" },
            ],
            "observedGeneration": 1,
            "finishTime": "2026-01-02T03:04:05Z",
        },
    });
    let read: WorkloadRebalancer = serde_json::from_value(object.clone()).unwrap();
    assert_eq!(read.spec.workloads[1].namespace, "");
    assert_eq!(serde_json::to_value(&read).unwrap(), object);
}

//! Clusters as they are written and read.

use serde_json::json;

use super::*;

#[test]
fn a_cluster_survives_unchanged() {
    let cluster = json!({
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": { "name": "member1" },
        "spec": {
            "id": "1b2c",
            "syncMode": "Pull",
            "apiEndpoint": "https://10.0.0.1:6443",
            "secretRef": { "namespace": "karmada-cluster", "name": "member1" },
            "insecureSkipTLSVerification": true,
            "proxyURL": "http://proxy:3128",
            "proxyHeader": { "X-Token": "t" },
            "zones": ["a", "b"],
            "taints": [{ "key": "k", "effect": "NoSchedule" }],
            "resourceModels": [{ "grade": 1, "ranges": [{ "name": "cpu", "min": "0", "max": "1" }] }],
        },
        "status": {
            "kubernetesVersion": "v1.33.1",
            "apiEnablements": [
                { "groupVersion": "apps/v1", "resources": [{ "name": "deployments", "kind": "Deployment" }] },
            ],
            "nodeSummary": { "totalNum": 3, "readyNum": 2 },
            "resourceSummary": {
                "allocatable": { "cpu": "10" },
                "allocatableModelings": [{ "grade": 1, "count": 0 }],
            },
        },
    });
    let read: Cluster = serde_json::from_value(cluster.clone()).unwrap();
    assert_eq!(read.spec.sync_mode, SyncMode::Pull);
    assert_eq!(serde_json::to_value(&read).unwrap(), cluster);
}

#[test]
fn kubectl_shows_the_columns_that_karmada_shows() {
    use kube::CustomResourceExt as _;
    let crd = serde_json::to_value(Cluster::crd()).unwrap();
    let columns: Vec<(String, i64)> = crd["spec"]["versions"][0]["additionalPrinterColumns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| {
            (
                column["name"].as_str().unwrap().into(),
                column["priority"].as_i64().unwrap_or(0),
            )
        })
        .collect();
    let names = |priority| -> Vec<&str> {
        columns
            .iter()
            .filter(|(_, p)| *p == priority)
            .map(|(name, _)| name.as_str())
            .collect()
    };
    assert_eq!(names(0), ["VERSION", "MODE", "READY", "AGE"]);
    assert_eq!(
        names(1),
        ["ZONES", "REGION", "PROVIDER", "API-ENDPOINT", "PROXY-URL"]
    );
    assert_eq!(crd["spec"]["scope"], "Cluster");
}

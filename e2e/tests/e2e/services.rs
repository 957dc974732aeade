//! Services of other clusters: `--controllers=*,serviceExport,endpointSlice,serviceImport`.
//!
//! No endpoint controller runs on the members: the tests write the EndpointSlices that one would.

use anyhow::{Context as _, Result, ensure};
use entourage_e2e::{
    harness::{Scene, eventually, manifests, status_code},
    tests,
};
use serde_json::{Value, json};

tests![
    endpoints_of_an_exported_service_reach_the_clusters_that_import_it,
    endpoints_leave_with_the_export_and_the_service_with_the_import,
];

const DEFINITIONS: [&str; 2] = [
    "serviceexports.multicluster.x-k8s.io",
    "serviceimports.multicluster.x-k8s.io",
];
const EXPORTERS: &[&str] = &["member1", "member2"];
const IMPORTERS: &[&str] = &["member2", "member3"];
const SERVICE_NAME: &str = "kubernetes.io/service-name";
const OF_MEMBER1: &str = "imported-member1-web-a";
const OF_MEMBER2: &str = "imported-member2-web-b";

/// Runs a test on members that serve both kinds, and removes them there again. Servers before 1.21 have no EndpointSlices v1.
async fn with_definitions(scene: &mut Scene, test: impl AsyncFn(&mut Scene) -> Result<()>) -> Result<()> {
    if !scene.bed.has("endpointslice_v1")? {
        return Ok(());
    }
    for name in DEFINITIONS {
        let definition = scene.hub.get("CustomResourceDefinition", "", name).await?;
        let definition = definition.context("the hub serves it")?;
        let bare = json!({
            "apiVersion": definition["apiVersion"], "kind": definition["kind"], "metadata": {"name": name},
            "spec": definition["spec"],
        });
        for member in &scene.members {
            member.create(&bare).await?;
        }
    }
    let tested = test(scene).await;
    for name in DEFINITIONS {
        for member in &scene.members {
            if let Err(error) = member.delete("CustomResourceDefinition", "", name).await {
                ensure!(status_code(&error) == 404, error);
            }
        }
    }
    tested
}

fn endpoints(addresses: &[&str]) -> Value {
    let endpoint = |address: &&str| json!({"addresses": [address], "conditions": {"ready": true}});
    addresses.iter().map(endpoint).collect()
}

/// The endpoint controller of a member writes a slice of the Service `web`.
async fn serve(scene: &Scene, member: &str, slice: &str, addresses: &[&str]) -> Result<()> {
    scene
        .apply_on(
            member,
            json!({
                "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
                "metadata": {"name": slice, "labels": {
                    SERVICE_NAME: "web", "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
                }},
                "addressType": "IPv4", "ports": [{"name": "", "port": 80, "protocol": "TCP"}],
                "endpoints": endpoints(addresses),
            }),
        )
        .await?;
    Ok(())
}

/// A Service that two clusters export and two import, one of them both.
async fn share(scene: &mut Scene) -> Result<()> {
    scene.options.share_services = true;
    scene.start().await?;
    for (member, slice, address) in [("member1", "web-a", "10.1.0.1"), ("member2", "web-b", "10.2.0.1")] {
        scene.make_namespace(member).await?;
        serve(scene, member, slice, &[address]).await?;
    }
    let api = "multicluster.x-k8s.io/v1alpha1";
    scene
        .apply(json!({"apiVersion": api, "kind": "ServiceExport", "metadata": {"name": "web"}}))
        .await?;
    scene
        .apply(json!({
            "apiVersion": api, "kind": "ServiceImport", "metadata": {"name": "web"},
            "spec": {"type": "ClusterSetIP", "ports": [{"port": 80, "protocol": "TCP"}]},
        }))
        .await?;
    for (kind, clusters) in [("ServiceExport", EXPORTERS), ("ServiceImport", IMPORTERS)] {
        let name = kind.to_lowercase();
        scene
            .apply(manifests::policy_for(&name, kind, "web", clusters))
            .await?;
    }
    scene.until_held("EndpointSlice", OF_MEMBER1, IMPORTERS).await?;
    // Not back to where they come from.
    scene
        .until_held("EndpointSlice", OF_MEMBER2, &["member3"])
        .await?;
    scene.until_held("Service", "derived-web", IMPORTERS).await
}

async fn end(scene: &Scene) -> Result<()> {
    for kind in ["ServiceImport", "ServiceExport"] {
        scene.delete(kind, "web").await?;
    }
    for slice in [OF_MEMBER1, OF_MEMBER2] {
        scene.until_gone("EndpointSlice", slice).await?;
        scene.until_held("EndpointSlice", slice, &[]).await?;
    }
    scene.until_gone("Service", "derived-web").await?;
    scene.until_held("Service", "derived-web", &[]).await?;
    for (member, slice) in [("member1", "web-a"), ("member2", "web-b")] {
        scene.delete_on(member, "EndpointSlice", slice).await?;
    }
    for binding in ["web-serviceimport", "web-serviceexport"] {
        scene.until_gone("ResourceBinding", binding).await?;
    }
    Ok(())
}

async fn endpoints_of_an_exported_service_reach_the_clusters_that_import_it(scene: &mut Scene) -> Result<()> {
    with_definitions(scene, async |scene| {
        share(scene).await?;
        let hub = scene.get("EndpointSlice", OF_MEMBER1).await?;
        ensure!(hub["metadata"]["labels"][SERVICE_NAME] == "derived-web", "{hub}");
        ensure!(hub["endpoints"] == endpoints(&["10.1.0.1"]), "{hub}");
        for type_ in ["FullyApplied", "DependenciesReady"] {
            scene
                .until_condition("web-serviceimport", type_, "True", "")
                .await?;
        }
        serve(scene, "member1", "web-a", &["10.1.0.1", "10.1.0.2"]).await?;
        eventually("the importers have the second endpoint", async || {
            for member in IMPORTERS {
                let copy = scene.copy(member, "EndpointSlice", OF_MEMBER1).await?;
                ensure!(
                    copy["endpoints"] == endpoints(&["10.1.0.1", "10.1.0.2"]),
                    "{copy}"
                );
            }
            Ok(())
        })
        .await?;
        scene.quiet().await?;
        scene.restart().await?;
        let wrote = scene.quiet().await?;
        ensure!(
            wrote == 0,
            "{wrote} writes after a restart: {:#?}",
            scene.writes()
        );
        end(scene).await
    })
    .await
}

async fn endpoints_leave_with_the_export_and_the_service_with_the_import(scene: &mut Scene) -> Result<()> {
    with_definitions(scene, async |scene| {
        share(scene).await?;
        scene
            .apply(manifests::policy_for(
                "serviceexport",
                "ServiceExport",
                "web",
                &["member2"],
            ))
            .await?;
        scene.until_gone("EndpointSlice", OF_MEMBER1).await?;
        scene.until_held("EndpointSlice", OF_MEMBER1, &[]).await?;
        scene
            .until_held("EndpointSlice", OF_MEMBER2, &["member3"])
            .await?;
        // A slice that ends while no process runs.
        scene.stop().await?;
        scene.delete_on("member2", "EndpointSlice", "web-b").await?;
        scene.start().await?;
        scene.until_gone("EndpointSlice", OF_MEMBER2).await?;
        serve(scene, "member2", "web-b", &["10.2.0.9"]).await?;
        scene
            .until_held("EndpointSlice", OF_MEMBER2, &["member3"])
            .await?;
        scene.until_held("Service", "derived-web", IMPORTERS).await?;
        serve(scene, "member1", "web-a", &["10.1.0.1"]).await?;
        end(scene).await
    })
    .await
}

//! Policies of the referrers of one dependency that contradict each other (Karmada reference 7.1, dependency conflicts).

use anyhow::{Result, ensure};
use entourage_e2e::{
    harness::{Scene, condition, manifests},
    tests,
};
use serde_json::{Value, json};

tests![
    a_conflict_on_both_fields_is_reported_with_both,
    a_conflict_on_conflict_resolution_is_reported_alone,
    a_conflict_on_preserving_is_reported_alone,
    a_conflict_ends_with_an_update_of_a_policy,
    a_conflict_outlives_the_policy_that_is_deleted,
];

const ATTACHED: &str = "shared-configmap";
const RESOLUTION: &str = "ConflictResolution conflicted (Overwrite vs Abort)";
const PRESERVE: &str = "PreserveResourcesOnDeletion conflicted (true vs false)";

/// The fields of a policy: conflictResolution, preserveResourcesOnDeletion.
type Says = (&'static str, bool);

fn policy(name: &str, (resolution, preserve): Says) -> Value {
    let mut policy = manifests::policy_for(name, "Deployment", name, &["member1"]);
    policy["spec"]["propagateDeps"] = json!(true);
    policy["spec"]["conflictResolution"] = json!(resolution);
    policy["spec"]["preserveResourcesOnDeletion"] = json!(preserve);
    policy
}

/// The Deployments `a` and `b`, which share a ConfigMap, with a policy each.
async fn shared(scene: &mut Scene, a: Says, b: Says) -> Result<()> {
    scene.start().await?;
    scene.apply(manifests::config_map("shared", "a")).await?;
    for (name, says) in [("a", a), ("b", b)] {
        scene.apply(manifests::deployment(name, &["shared"])).await?;
        scene.apply(policy(name, says)).await?;
    }
    scene.until_held("ConfigMap", "shared", &["member1"]).await
}

/// Waits until the attached binding has these values, and the conflict is reported once, with this message.
async fn until_reported(scene: &Scene, wanted: Says, conflicts: &[&str]) -> Result<()> {
    until_says(scene, wanted).await?;
    let message = format!("Dependency policy conflict detected: {}.", conflicts.join("; "));
    let reported = scene
        .until_condition(ATTACHED, "DependencyPolicyConflict", "True", &message)
        .await?;
    ensure!(reported["message"] == message, "{reported}");
    let event = scene
        .until_reported_once("DependencyPolicyConflict", ATTACHED)
        .await?;
    ensure!(
        event["message"] == message && event["type"] == "Warning",
        "{event}"
    );
    Ok(())
}

async fn until_says(scene: &Scene, (resolution, preserve): Says) -> Result<()> {
    scene
        .until_binding(ATTACHED, |binding| {
            let spec = &binding["spec"];
            ensure!(
                spec["requiredBy"].as_array().map(Vec::len) == Some(2)
                    && spec["conflictResolution"] == resolution
                    && spec["preserveResourcesOnDeletion"] == preserve,
                "{spec}"
            );
            Ok(())
        })
        .await?;
    Ok(())
}

async fn a_conflict_on_both_fields_is_reported_with_both(scene: &mut Scene) -> Result<()> {
    shared(scene, ("Overwrite", true), ("Abort", false)).await?;
    until_reported(scene, ("Overwrite", true), &[RESOLUTION, PRESERVE]).await?;
    // Reported once, and not again after a restart.
    scene.quiet().await?;
    scene.restart().await?;
    ensure!(
        scene.quiet().await? == 0,
        "a restart writes {:#?}",
        scene.writes()
    );
    Ok(())
}

async fn a_conflict_on_conflict_resolution_is_reported_alone(scene: &mut Scene) -> Result<()> {
    shared(scene, ("Overwrite", false), ("Abort", false)).await?;
    until_reported(scene, ("Overwrite", false), &[RESOLUTION]).await
}

async fn a_conflict_on_preserving_is_reported_alone(scene: &mut Scene) -> Result<()> {
    shared(scene, ("Overwrite", true), ("Overwrite", false)).await?;
    until_reported(scene, ("Overwrite", true), &[PRESERVE]).await
}

async fn a_conflict_ends_with_an_update_of_a_policy(scene: &mut Scene) -> Result<()> {
    shared(scene, ("Overwrite", true), ("Abort", false)).await?;
    until_reported(scene, ("Overwrite", true), &[RESOLUTION, PRESERVE]).await?;
    scene.apply(policy("b", ("Overwrite", true))).await?;
    scene
        .until_binding(ATTACHED, |binding| {
            let reported = condition(binding, "DependencyPolicyConflict");
            ensure!(reported.is_null(), "{reported}");
            Ok(())
        })
        .await?;
    until_says(scene, ("Overwrite", true)).await?;
    scene
        .until_reported_once("DependencyPolicyConflict", ATTACHED)
        .await?;
    Ok(())
}

/// The same as in Karmada: a deleted policy leaves its settings in its binding, so both still count. They end with the
/// workload.
async fn a_conflict_outlives_the_policy_that_is_deleted(scene: &mut Scene) -> Result<()> {
    shared(scene, ("Overwrite", true), ("Abort", false)).await?;
    until_reported(scene, ("Overwrite", true), &[RESOLUTION, PRESERVE]).await?;
    scene.delete("PropagationPolicy", "b").await?;
    scene.until_gone("PropagationPolicy", "b").await?;
    scene.quiet().await?;
    until_reported(scene, ("Overwrite", true), &[RESOLUTION, PRESERVE]).await?;
    let left = scene.binding("b-deployment").await?["spec"]["conflictResolution"].clone();
    ensure!(left == "Abort", "{left}");
    scene.delete("Deployment", "b").await?;
    scene
        .until_binding(ATTACHED, |binding| {
            let reported = condition(binding, "DependencyPolicyConflict");
            let spec = &binding["spec"];
            ensure!(reported.is_null(), "{reported}");
            ensure!(
                spec["conflictResolution"] == "Overwrite" && spec["preserveResourcesOnDeletion"] == true,
                "{spec}"
            );
            Ok(())
        })
        .await?;
    Ok(())
}

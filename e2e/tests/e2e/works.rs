//! Execution namespaces, and Works as views of copies (`--work-objects=mirror`).

use anyhow::{Context as _, Result, ensure};
use entourage_api::names;
use entourage_e2e::{
    harness::{Canary, Scene, eventually, manifests},
    tests,
};
use serde_json::{Value, json};

tests![
    kubectl_get_work_shows_what_is_applied_on_each_cluster,
    a_suspended_work_holds_its_cluster_back,
    the_work_of_a_secret_has_no_data,
];

/// The Work of a copy.
async fn work(scene: &Scene, member: &str, kind: &str, name: &str) -> Result<Value> {
    let namespace = names::execution_namespace(member);
    let work = names::work_name(&scene.ns, name, kind);
    let path = format!("/apis/work.karmada.io/v1alpha1/namespaces/{namespace}/works/{work}");
    scene.hub.call("GET", &path, None).await
}

fn condition<'a>(work: &'a Value, type_: &str) -> &'a Value {
    let all = work["status"]["conditions"].as_array();
    let found = all.and_then(|all| all.iter().find(|each| each["type"] == type_));
    found.unwrap_or(&Value::Null)
}

async fn until(scene: &Scene, member: &str, type_: &str, status: &str) -> Result<Value> {
    eventually("the Work shows it", async || {
        let found = work(scene, member, "Deployment", "myapp").await?;
        ensure!(
            condition(&found, type_)["status"] == status,
            "{}",
            found["status"]
        );
        Ok(found)
    })
    .await
}

/// A user edits a Work, which may be written meanwhile.
async fn suspend(scene: &Scene, suspended: bool) -> Result<()> {
    eventually("the Work is edited", async || {
        let mut held = work(scene, "member1", "Deployment", "myapp").await?;
        held["spec"]["suspendDispatching"] = json!(suspended);
        let meta = &held["metadata"];
        let text = |field: &str| meta[field].as_str().unwrap_or_default().to_owned();
        let path = format!(
            "/apis/work.karmada.io/v1alpha1/namespaces/{}/works/{}",
            text("namespace"),
            text("name")
        );
        scene.hub.call("PUT", &path, Some(&held)).await
    })
    .await?;
    Ok(())
}

/// The Works are left to the controllers: the next test finds none.
async fn end(scene: &Scene, kind: &str, name: &str, members: &[&str]) -> Result<()> {
    scene.hub.delete(kind, &scene.ns, name).await?;
    eventually("the Works are gone", async || {
        for member in members {
            ensure!(work(scene, member, kind, name).await.is_err(), "{member} has one");
        }
        Ok(())
    })
    .await
}

async fn end_all(scene: &Scene) -> Result<()> {
    let members = ["member1", "member2"];
    end(scene, "Deployment", "myapp", &members).await?;
    end(scene, "ConfigMap", "my-config", &members).await
}

async fn start(scene: &mut Scene) -> Result<()> {
    scene.options.mirror_works = true;
    scene.start().await?;
    for object in manifests::example() {
        scene.apply(object).await?;
    }
    scene.until_settled(&["member1", "member2"]).await
}

async fn kubectl_get_work_shows_what_is_applied_on_each_cluster(scene: &mut Scene) -> Result<()> {
    start(scene).await?;
    for member in ["member1", "member2"] {
        let namespace = names::execution_namespace(member);
        let found = scene
            .hub
            .get("Namespace", "", &namespace)
            .await?
            .context("its execution namespace")?;
        ensure!(
            found["metadata"]["labels"]["karmada.io/system"] == "true",
            "{found}"
        );
        let found = until(scene, member, "Applied", "True").await?;
        let manifest = &found["spec"]["workload"]["manifests"][0];
        let copy = scene.copy(member, "Deployment", "myapp").await?;
        ensure!(
            manifest["metadata"]["labels"] == copy["metadata"]["labels"],
            "{manifest}"
        );
    }
    scene.quiet().await?;
    scene.restart().await?;
    let wrote = scene.quiet().await?;
    ensure!(
        wrote == 0,
        "{wrote} writes after a restart: {:#?}",
        scene.writes()
    );
    end_all(scene).await
}

async fn a_suspended_work_holds_its_cluster_back(scene: &mut Scene) -> Result<()> {
    start(scene).await?;
    until(scene, "member1", "Applied", "True").await?;
    suspend(scene, true).await?;
    until(scene, "member1", "Dispatching", "False").await?;
    let scale = |live: &mut Value| live["spec"]["replicas"] = json!(4);
    scene.hub.edit("Deployment", &scene.ns, "myapp", scale).await?;
    eventually("the other cluster follows", async || {
        let copy = scene.copy("member2", "Deployment", "myapp").await?;
        ensure!(copy["spec"]["replicas"] == 4, "{}", copy["spec"]);
        Ok(())
    })
    .await?;
    scene.quiet().await?;
    let copy = scene.copy("member1", "Deployment", "myapp").await?;
    ensure!(copy["spec"]["replicas"] != 4, "{}", copy["spec"]);
    suspend(scene, false).await?;
    eventually("the cluster goes on", async || {
        let copy = scene.copy("member1", "Deployment", "myapp").await?;
        ensure!(copy["spec"]["replicas"] == 4, "{}", copy["spec"]);
        Ok(())
    })
    .await?;
    end_all(scene).await
}

async fn the_work_of_a_secret_has_no_data(scene: &mut Scene) -> Result<()> {
    scene.options.mirror_works = true;
    scene.start().await?;
    let canary = Canary::new("works");
    scene.apply(manifests::secret("login", &canary.value)).await?;
    scene
        .apply(manifests::policy_for("login", "Secret", "login", &["member1"]))
        .await?;
    scene.until_held("Secret", "login", &["member1"]).await?;
    let found = eventually("the Secret has a Work", async || {
        work(scene, "member1", "Secret", "login").await
    })
    .await?;
    ensure!(!canary.is_in(&found.to_string()), "the Work holds the canary");
    ensure!(
        found["spec"]["workload"]["manifests"][0]["kind"] == "Secret",
        "another manifest"
    );
    scene.quiet().await?;
    canary.assert_kept(scene).await?;
    end(scene, "Secret", "login", &["member1"]).await
}

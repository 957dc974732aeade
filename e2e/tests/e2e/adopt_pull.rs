//! Objects of a cluster in Pull mode that a former hub had its agent apply, and `entourage adopt`. The Works are made by hand.

use anyhow::{Context as _, Result, bail, ensure};
use entourage_e2e::harness::{Scene, Test};
use serde_json::{Value, json};

use super::agent::{applied, begin, cluster, config, create, edit, end, has, member, until, works};

/// The tests of this module.
pub(crate) fn tests() -> Vec<Test> {
    macro_rules! all {
        ($($name:ident),* $(,)?) => {
            vec![$(Test::new(
                concat!(module_path!(), "::", stringify!($name)),
                |scene| Box::pin($name(scene)),
            )
            .plain()),*]
        };
    }
    all![
        a_rebuilt_hub_adopts_what_an_agent_applied_for_its_predecessor,
        a_copy_of_a_karmada_is_an_agents_when_it_names_the_hub,
    ]
}

/// The id of the former hub.
const FORMER: &str = "00000000-0000-4000-8000-000000000017";

const HUB: &str = "entourage.dev/hub";

async fn a_rebuilt_hub_adopts_what_an_agent_applied_for_its_predecessor(scene: &mut Scene) -> Result<()> {
    let agent = begin(scene).await?;
    let mut manifest = config("one");
    manifest["metadata"]["labels"] = json!({HUB: FORMER});
    manifest["metadata"]["annotations"] = json!({"resourcebinding.karmada.io/namespace": scene.ns,
        "resourcebinding.karmada.io/name": "config-configmap"});
    create(scene, "config", manifest).await?;
    applied(scene, "config").await?;
    let system = scene.hub.get("Namespace", "", "kube-system").await?;
    let hub_id = system.context("a namespace")?["metadata"]["uid"].clone();
    let before = copy(scene).await?;

    // The Works of the new hub name it.
    edit(scene, "config", |work| {
        let manifest = &mut work["spec"]["workload"]["manifests"][0];
        manifest["metadata"]["labels"][HUB] = hub_id.clone();
        manifest["data"]["k"] = json!("two");
    })
    .await?;
    let refused = until(scene, "config", "Applied", "False").await?;
    let message = refused["message"].as_str().unwrap_or_default();
    let remedy = format!(
        "entourage adopt --former-hub {FORMER} --member {}=FILE",
        cluster(scene)
    );
    ensure!(message.contains(&remedy), "{message}");
    let mut template = config("two");
    template["metadata"]["namespace"] = json!(scene.ns);
    let template = scene.hub.create(&template).await?;
    scene
        .hub
        .create(&json!({"apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
            "metadata": {"name": "config-configmap", "namespace": scene.ns,
                "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "config", "controller": true,
                    "uid": template["metadata"]["uid"]}]},
            "spec": {"placement": {}, "clusters": [{"name": cluster(scene)}],
                "resource": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": scene.ns, "name": "config"}}}))
        .await?;

    let line = ["--former-hub", FORMER, "--cluster", cluster(scene)];
    let error = match scene.bed.adopt(&line).await {
        Ok(printed) => bail!("it cannot be reached from the hub:\n{printed}"),
        Err(error) => format!("{error:#}"),
    };
    let flag = format!("--member {}", cluster(scene));
    ensure!(error.contains(&format!("give {flag}=FILE")), "{error}");
    let file = scene.bed.fleet.members[2].kubeconfig_path();
    let given = format!("{}={}", cluster(scene), file.display());
    let line = [&line[..], &["--member", &given]].concat();
    let printed = scene.bed.adopt(&line).await?;
    let decision = printed.lines().find(|line| line.contains("ConfigMap config"));
    ensure!(
        decision.is_some_and(|line| line.contains("not scheduled yet")),
        "{printed}"
    );
    let scheduled = |binding: &mut Value| {
        binding["status"] = json!({"schedulerObservedGeneration": binding["metadata"]["generation"]});
    };
    scene
        .hub
        .edit_status("ResourceBinding", &scene.ns, "config-configmap", scheduled)
        .await?;
    let printed = scene.bed.adopt(&line).await?;
    let decision = printed.lines().find(|line| line.contains("ConfigMap config"));
    ensure!(
        decision.is_some_and(|line| line.ends_with("adopt")) && printed.contains("nothing was written"),
        "{printed}"
    );
    assert_eq!(copy(scene).await?, before, "a dry run");
    let printed = scene.bed.adopt(&[&line[..], &["--yes"]].concat()).await?;
    ensure!(printed.contains("1 object adopted"), "{printed}");

    applied(scene, "config").await?;
    has(scene, Some("two")).await?;
    let after = copy(scene).await?;
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(after["metadata"]["labels"][HUB], hub_id);
    scene
        .hub
        .delete("ResourceBinding", &scene.ns, "config-configmap")
        .await?;
    scene.hub.delete("ConfigMap", &scene.ns, "config").await?;
    end(scene, agent).await
}

/// A Karmada has a Work of the same name: the name alone takes nothing over.
async fn a_copy_of_a_karmada_is_an_agents_when_it_names_the_hub(scene: &mut Scene) -> Result<()> {
    let agent = begin(scene).await?;
    let system = scene.hub.get("Namespace", "", "kube-system").await?;
    let hub_id = system.context("a namespace")?["metadata"]["uid"].clone();
    let mut theirs = config("one");
    theirs["metadata"]["namespace"] = json!(scene.ns);
    theirs["metadata"]["labels"] = json!({"karmada.io/managed": "true", "work.karmada.io/permanent-id": "w"});
    theirs["metadata"]["annotations"] =
        json!({"work.karmada.io/namespace": works(scene), "work.karmada.io/name": "config"});
    let before = member(scene).create(&theirs).await?;
    let mut manifest = config("one");
    manifest["metadata"]["labels"] = json!({HUB: hub_id});
    create(scene, "config", manifest).await?;
    let refused = until(scene, "config", "Applied", "False").await?;
    let message = refused["message"].as_str().unwrap_or_default();
    ensure!(message.contains("is not managed by Work"), "{message}");
    let left = copy(scene).await?;
    assert_eq!(
        left["metadata"]["resourceVersion"],
        before["metadata"]["resourceVersion"]
    );

    // As `entourage adopt --from-karmada` does.
    let name = |copy: &mut Value| copy["metadata"]["labels"][HUB] = hub_id.clone();
    member(scene).edit("ConfigMap", &scene.ns, "config", name).await?;
    applied(scene, "config").await?;
    let after = copy(scene).await?;
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    end(scene, agent).await
}

async fn copy(scene: &Scene) -> Result<Value> {
    let found = member(scene).get("ConfigMap", &scene.ns, "config").await?;
    found.context("a copy")
}

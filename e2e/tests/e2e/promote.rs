//! Objects of members that become templates of the hub, by `entourage promote`.

use anyhow::{Context as _, Result, bail, ensure};
use entourage_e2e::{
    harness::{Scene, manifests},
    tests,
};
use serde_json::{Value, json};

tests![
    a_workload_of_a_member_is_promoted_with_what_it_needs_and_not_rolled_out_again,
    a_promotion_changes_nothing_that_exists_on_the_hub,
];

/// The value of a Secret, as a user wrote it and as it is stored.
const CANARY: (&str, &str) = ("canary-of-a-promotion", "Y2FuYXJ5LW9mLWEtcHJvbW90aW9u");

const OBJECTS: [(&str, &str); 3] = [("Deployment", "web"), ("ConfigMap", "conf"), ("Secret", "login")];

/// A Deployment that runs on member1 alone, with a ConfigMap and a Secret.
async fn web_on_member1(scene: &Scene) -> Result<()> {
    let mut secret = manifests::secret("login", "x");
    secret.as_object_mut().context("an object")?.remove("stringData");
    secret["data"] = json!({"password": CANARY.1});
    let mut deployment = manifests::deployment("web", &["conf"]);
    deployment["spec"]["template"]["spec"]["containers"][0]["envFrom"] =
        json!([{"secretRef": {"name": "login"}}]);
    for object in [manifests::config_map("conf", "one"), secret, deployment] {
        scene.apply_on("member1", object).await?;
    }
    Ok(())
}

async fn a_workload_of_a_member_is_promoted_with_what_it_needs_and_not_rolled_out_again(
    scene: &mut Scene,
) -> Result<()> {
    scene.start().await?;
    web_on_member1(scene).await?;
    let before = objects(scene).await?;
    let line = ["deploy", "web", "-n", &scene.ns, "-C", "member1", "--deps"];
    let printed = scene.bed.promote(&[&line[..], &["--dry-run"]].concat()).await?;
    for part in [
        "kind: Deployment",
        "kind: ConfigMap",
        "kind: Secret",
        "kind: PropagationPolicy",
        "password:",
    ] {
        ensure!(printed.contains(part), "{part}:\n{printed}");
    }
    for secret in [CANARY.0, CANARY.1, "resourceVersion", "clusterIP", "status:"] {
        ensure!(!printed.contains(secret), "{secret}:\n{printed}");
    }
    for (kind, name) in OBJECTS {
        let written = scene.hub.get(kind, &scene.ns, name).await?;
        ensure!(written.is_none(), "{kind} {name} was written by a dry run");
    }

    let printed = scene.bed.promote(&line).await?;
    ensure!(
        !printed.contains(CANARY.1) && !printed.contains("note:"),
        "{printed}"
    );
    for binding in ["web-deployment", "conf-configmap", "login-secret"] {
        scene.until_condition(binding, "FullyApplied", "True", "").await?;
    }
    for (kind, name) in OBJECTS {
        scene.until_held(kind, name, &["member1"]).await?;
    }
    for (before, after) in before.iter().zip(objects(scene).await?) {
        assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
        // The pod template is the same, so that nothing is rolled out. (A Deployment's generation counts annotations, too.)
        assert_eq!(after["spec"], before["spec"]);
        assert_eq!(after["data"], before["data"]);
        ensure!(
            after["metadata"]["labels"]["entourage.dev/hub"].is_string(),
            "{}",
            after["metadata"]
        );
    }
    let again = refused(scene, &line).await?;
    ensure!(again.contains("managed by this hub already"), "{again}");

    scene.apply(manifests::config_map("conf", "two")).await?;
    scene
        .until_copy("member1", "ConfigMap", "conf", |copy| {
            ensure!(copy["data"]["key"] == "two", "{}", copy["data"]);
            Ok(())
        })
        .await
        .map(drop)
}

async fn a_promotion_changes_nothing_that_exists_on_the_hub(scene: &mut Scene) -> Result<()> {
    web_on_member1(scene).await?;
    scene.apply(manifests::config_map("conf", "of the hub")).await?;
    let conf = scene.get("ConfigMap", "conf").await?;
    let line = ["deployment.apps", "web", "-n", &scene.ns, "-C", "member1", "-d"];
    let why = refused(scene, &line).await?;
    ensure!(
        why.contains("conf already exists on the hub, and its data.key is not that of the member's"),
        "{why}"
    );
    assert_eq!(scene.get("ConfigMap", "conf").await?, conf);
    scene.apply(manifests::config_map("conf", "one")).await?;
    let conf = scene.get("ConfigMap", "conf").await?;

    let other = manifests::policy_for("web-deployment", "Deployment", "another", &["member2"]);
    scene.apply(other).await?;
    let why = refused(scene, &line).await?;
    ensure!(why.contains("--policy-name"), "{why}");
    let other = manifests::policy_for("all-logins", "Secret", "login", &["member1", "member2"]);
    scene.apply(other).await?;
    let named = [&line[..], &["--policy-name", "web"]].concat();
    let why = refused(scene, &named).await?;
    ensure!(
        why.contains("all-logins would claim its dependency") && why.contains("member1, member2"),
        "{why}"
    );
    scene.delete("PropagationPolicy", "all-logins").await?;
    for (kind, name) in [
        ("Deployment", "web"),
        ("Secret", "login"),
        ("PropagationPolicy", "web"),
    ] {
        let written = scene.hub.get(kind, &scene.ns, name).await?;
        ensure!(
            written.is_none(),
            "{kind} {name}: nothing is written before all is checked"
        );
    }

    let line = [&line[..], &["--auto-create-policy=false"]].concat();
    let printed = scene.bed.promote(&line).await?;
    for part in [
        "configmap/conf exists on the hub and is not changed",
        "no policy of the hub selects",
    ] {
        ensure!(printed.contains(part), "{part}:\n{printed}");
    }
    assert_eq!(scene.get("ConfigMap", "conf").await?, conf);
    assert_eq!(scene.get("Secret", "login").await?["data"]["password"], CANARY.1);
    let template = scene.hub.get("Deployment", &scene.ns, "web").await?;
    let template = template.context("promoted")?;
    let request = &template["metadata"]["annotations"]["work.karmada.io/conflict-resolution"];
    ensure!(
        request.is_null(),
        "the policy alone allows to take objects over: {request}"
    );
    let why = refused(scene, &line).await?;
    ensure!(why.contains("already exists on the hub"), "{why}");
    for (kind, name) in OBJECTS {
        scene.delete_on("member1", kind, name).await?;
    }
    Ok(())
}

/// The error of a promotion.
async fn refused(scene: &Scene, line: &[&str]) -> Result<String> {
    match scene.bed.promote(line).await {
        Ok(printed) => bail!("not refused:\n{printed}"),
        Err(error) => Ok(format!("{error:#}")),
    }
}

async fn objects(scene: &Scene) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for (kind, name) in OBJECTS {
        all.push(scene.copy("member1", kind, name).await?);
    }
    Ok(all)
}

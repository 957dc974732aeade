//! `entourage join` and `entourage unjoin`, against controllers that run.

use anyhow::{Result, ensure};
use entourage_api::names;
use entourage_e2e::{
    harness::{Front, Scene, manifests},
    servers::Certificate,
    tests,
};
use k8s_openapi::ByteString;
use serde_json::json;

tests![
    a_member_leaves_and_comes_back,
    a_member_whose_serving_certificate_is_what_its_clients_trust_is_joined_and_served,
];

async fn a_member_leaves_and_comes_back(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    let [deployment, _, config] = manifests::example();
    for object in [deployment, manifests::policy(&["member1", "member3"]), config] {
        scene.apply(object).await?;
    }
    scene.until_settled(&["member1", "member3"]).await?;

    // After unjoining, its copies stay, without ownership metadata.
    let kubeconfig = scene.bed.cluster("member3")?.kubeconfig_path();
    let kubeconfig = kubeconfig.to_string_lossy().into_owned();
    scene
        .bed
        .unjoin("member3", &["--cluster-kubeconfig", &kubeconfig, "--wait", "30s"])
        .await?;
    ensure!(
        scene.hub.get("Cluster", "", "member3").await?.is_none(),
        "the Cluster is there"
    );
    for (kind, name) in [("Deployment", "myapp"), ("ConfigMap", "my-config")] {
        let mut meta = scene.copy("member3", kind, name).await?["metadata"].clone();
        if let Some(meta) = meta.as_object_mut() {
            meta.remove("managedFields");
        }
        let text = meta.to_string();
        ensure!(
            !text.contains("karmada.io") && !text.contains("entourage.dev"),
            "{kind}: {text}"
        );
    }
    ensure!(
        scene
            .hub
            .get("Secret", "karmada-cluster", "member3")
            .await?
            .is_none(),
        "the Secret is there"
    );
    let accounts = scene
        .member("member3")?
        .list("ServiceAccount", "karmada-cluster", "")
        .await?;
    let ours = accounts
        .iter()
        .filter(|each| each["metadata"]["name"].to_string().contains("entourage"))
        .count();
    assert_eq!(ours, 0, "the account is there");
    scene
        .until_binding("myapp-deployment", |binding| {
            let clusters = binding["spec"]["clusters"].as_array().map(Vec::len);
            ensure!(clusters == Some(1), "{}", binding["spec"]["clusters"]);
            Ok(())
        })
        .await?;
    scene
        .until_condition("myapp-deployment", "Scheduled", "True", "member3")
        .await?;

    // After joining again, existing objects are unmanaged until the policy says otherwise.
    let reported = scene
        .bed
        .join("member3", &["--wait", "30s", "--labels", "tier=edge"])
        .await?;
    ensure!(reported.contains("member3"), "{reported}");
    scene.bed.remember().await?;
    scene.until_cluster("member3", "True", "").await?;
    scene
        .until_condition("myapp-deployment", "FullyApplied", "False", "Overwrite")
        .await?;
    let mut policy = manifests::policy(&["member1", "member3"]);
    policy["spec"]["conflictResolution"] = json!("Overwrite");
    scene.apply(policy).await?;
    scene.until_settled(&["member1", "member3"]).await?;
    // Joined again with the same flags, nothing changes.
    scene.quiet().await?;
    let before = scene.hub.get("Cluster", "", "member3").await?;
    scene
        .bed
        .join("member3", &["--wait", "30s", "--labels", "tier=edge"])
        .await?;
    assert_eq!(scene.hub.get("Cluster", "", "member3").await?, before);

    // It leaves for good.
    scene
        .bed
        .unjoin("member3", &["--remove-copies", "--wait", "30s"])
        .await?;
    scene.until_held("Deployment", "myapp", &["member1"]).await?;
    scene.until_held("ConfigMap", "my-config", &["member1"]).await?;
    // Its execution namespace went along, and those of the others did not.
    let stands = async |member: &str| {
        let namespace = names::execution_namespace(member);
        anyhow::Ok(scene.hub.get("Namespace", "", &namespace).await?.is_some())
    };
    ensure!(
        !stands("member3").await?,
        "member3 left, and its execution namespace stays"
    );
    ensure!(
        stands("member1").await?,
        "member1 stays, and its execution namespace is gone"
    );
    Ok(())
}

async fn a_member_whose_serving_certificate_is_what_its_clients_trust_is_joined_and_served(
    scene: &mut Scene,
) -> Result<()> {
    scene.start().await?;
    scene
        .bed
        .unjoin("member3", &["--remove-copies", "--wait", "30s"])
        .await?;
    let member = scene.bed.cluster("member3")?;
    let (certificate, stranger) = (Certificate::of_authority(&[])?, Certificate::of_authority(&[])?);
    let front = Front::start(member, &certificate).await?;
    let original = std::fs::read_to_string(member.kubeconfig_path())?;
    let file = scene.bed.dir().join("front.kubeconfig");
    let with = |trusted: &Certificate| {
        let authority = json!(ByteString(member.ca_pem().as_bytes().to_vec()));
        let text = original.replace(&member.endpoint(), &front.endpoint()).replace(
            authority.as_str().unwrap_or_default(),
            trusted.bundle().as_str().unwrap_or_default(),
        );
        std::fs::write(&file, text)
    };

    // The certificate itself is trusted, not any certificate that calls itself an authority.
    with(&stranger)?;
    let refused = scene.bed.join_by("member3", &file, &[]).await;
    ensure!(refused.is_err(), "joined under another certificate");
    with(&certificate)?;
    scene.bed.join_by("member3", &file, &["--wait", "30s"]).await?;
    scene.until_cluster("member3", "True", "").await?;
    let cluster = scene.hub.get("Cluster", "", "member3").await?.unwrap_or_default();
    assert_eq!(cluster["spec"]["apiEndpoint"], front.endpoint());
    for object in manifests::example() {
        scene.apply(object).await?;
    }
    scene.apply(manifests::policy(&["member1", "member3"])).await?;
    scene.until_settled(&["member1", "member3"]).await?;

    scene
        .bed
        .unjoin("member3", &["--remove-copies", "--wait", "30s"])
        .await?;
    scene.until_held("Deployment", "myapp", &["member1"]).await
}

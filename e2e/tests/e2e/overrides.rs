//! Overrides: what is changed in the copies on some clusters.

use anyhow::{Context as _, Result, ensure};
use clap::Parser as _;
use entourage::command::{Cli, Command, get};
use entourage_e2e::{
    harness::{Scene, condition, eventually, manifests},
    tests,
};
use serde_json::{Value, json};

tests![
    copies_are_changed_where_the_rules_say_and_dependencies_too,
    a_bad_override_keeps_the_last_good_version_and_is_reported_once,
    a_secret_is_overridden_and_nobody_tells_what_is_in_it,
    a_policy_waits_for_the_overrides_that_it_depends_on,
    an_override_in_both_forms_is_refused_by_the_hub,
    an_override_policy_that_changes_no_copy_is_reported_by_an_event_and_by_get,
];

const CONFIG: &str = r#"
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata:
  name: config
spec:
  resourceSelectors:
  - apiVersion: v1
    kind: ConfigMap
    name: settings
  overrideRules:
  - targetCluster:
      clusterNames: [member2]
    overriders:
      fieldOverrider:
      - fieldPath: /data/app.yaml
        yaml:
        - subPath: /database/host
          operator: replace
          value: db.eu.example
      annotationsOverrider:
      - operator: add
        value: {example.io/site: eu}
"#;

const MIRROR: &str = r#"
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterOverridePolicy
spec:
  resourceSelectors:
  - apiVersion: apps/v1
    kind: Deployment
  overrideRules:
  - overriders:
      imageOverrider:
      - component: Registry
        operator: replace
        value: mirror.example:5000
      argsOverrider:
      - containerName: main
        operator: add
        value: [--verbose]
  - targetCluster:
      clusterNames: [member1]
    overriders:
      plaintext:
      - path: /spec/minReadySeconds
        operator: add
        value: 3
"#;

fn read(text: &str) -> Value {
    serde_saphyr::from_str(text).expect("the manifest of a test")
}

fn settings(host: &str) -> Value {
    let mut config = manifests::config_map("settings", "");
    config["data"] =
        json!({"app.yaml": format!("database:\n  host: {host}\n  port: 5432\nfeatures: [a, b]\n")});
    config
}

fn workload() -> Value {
    let mut workload = manifests::deployment("myapp", &["settings"]);
    workload["spec"]["template"]["spec"]["containers"][0]["name"] = json!("main");
    workload["spec"]["template"]["spec"]["containers"][0]["image"] = json!("nginx:1.25");
    workload
}

/// The ClusterOverridePolicy of this test: it selects in the test's own namespace only.
fn mirror(scene: &Scene) -> Value {
    let mut mirror = read(MIRROR);
    mirror["metadata"] = json!({"name": scene.ns});
    mirror["spec"]["resourceSelectors"][0]["namespace"] = json!(scene.ns);
    mirror
}

fn document(copy: &Value) -> Result<Value> {
    Ok(serde_saphyr::from_str(
        copy["data"]["app.yaml"].as_str().unwrap_or_default(),
    )?)
}

async fn started(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    for object in [
        workload(),
        manifests::policy(&["member1", "member2"]),
        settings("db.example"),
    ] {
        scene.apply(object).await?;
    }
    scene
        .until_held("ConfigMap", "settings", &["member1", "member2"])
        .await?;
    scene
        .until_held("Deployment", "myapp", &["member1", "member2"])
        .await
}

async fn copies_are_changed_where_the_rules_say_and_dependencies_too(scene: &mut Scene) -> Result<()> {
    started(scene).await?;
    scene.hub.apply(&mirror(scene)).await?;
    scene.apply(read(CONFIG)).await?;
    for (member, seconds) in [("member1", json!(3)), ("member2", Value::Null)] {
        let copy = scene
            .until_copy(member, "Deployment", "myapp", |copy| {
                let container = &copy["spec"]["template"]["spec"]["containers"][0];
                ensure!(
                    container["image"] == "mirror.example:5000/nginx:1.25",
                    "{container}"
                );
                ensure!(container["args"] == json!(["--verbose"]), "{container}");
                ensure!(copy["spec"]["minReadySeconds"] == seconds, "{}", copy["spec"]);
                Ok(())
            })
            .await?;
        let record = &copy["metadata"]["annotations"]["policy.karmada.io/applied-cluster-overrides"];
        let record: Value = serde_json::from_str(record.as_str().unwrap_or_default())?;
        ensure!(record[0]["policyName"] == scene.ns, "{record}");
        ensure!(
            record[0]["overriders"]["imageOverrider"][0]["component"] == "Registry",
            "{record}"
        );
    }
    scene
        .until_copy("member2", "ConfigMap", "settings", |copy| {
            let wanted = json!({"database": {"host": "db.eu.example", "port": 5432}, "features": ["a", "b"]});
            ensure!(document(copy)? == wanted, "{}", copy["data"]);
            ensure!(
                copy["metadata"]["annotations"]["example.io/site"] == "eu",
                "{}",
                copy["metadata"]
            );
            Ok(())
        })
        .await?;
    ensure!(
        document(&scene.copy("member1", "ConfigMap", "settings").await?)?["database"]["host"] == "db.example"
    );
    let event = scene
        .until_reported_once("ApplyOverridePolicySucceed", "settings")
        .await?;
    ensure!(event["type"] == "Normal", "{event}");

    // No write is repeated, and a restart changes nothing.
    scene.quiet().await?;
    scene.restart().await?;
    scene.faults.recorder().reset();
    scene.quiet().await?;
    ensure!(scene.writes().is_empty(), "{:#?}", scene.writes());

    // A change of the template is changed, too.
    scene.apply(settings("db2.example")).await?;
    scene
        .until_copy("member1", "ConfigMap", "settings", |copy| {
            ensure!(
                document(copy)?["database"]["host"] == "db2.example",
                "{}",
                copy["data"]
            );
            Ok(())
        })
        .await?;
    ensure!(
        document(&scene.copy("member2", "ConfigMap", "settings").await?)?["database"]["host"]
            == "db.eu.example"
    );

    // Without the policies the copies equal the templates again.
    scene.delete("OverridePolicy", "config").await?;
    scene.hub.delete("ClusterOverridePolicy", "", &scene.ns).await?;
    scene
        .until_copy("member2", "ConfigMap", "settings", |copy| {
            ensure!(
                document(copy)?["database"]["host"] == "db2.example",
                "{}",
                copy["data"]
            );
            let annotations = copy["metadata"]["annotations"].to_string();
            ensure!(
                !annotations.contains("applied-overrides") && !annotations.contains("site"),
                "{annotations}"
            );
            Ok(())
        })
        .await?;
    scene
        .until_copy("member1", "Deployment", "myapp", |copy| {
            let container = &copy["spec"]["template"]["spec"]["containers"][0];
            ensure!(
                container["image"] == "nginx:1.25" && container["args"].is_null(),
                "{container}"
            );
            Ok(())
        })
        .await
        .map(drop)
}

async fn a_bad_override_keeps_the_last_good_version_and_is_reported_once(scene: &mut Scene) -> Result<()> {
    started(scene).await?;
    scene.apply(read(CONFIG)).await?;
    let good = scene
        .until_copy("member2", "ConfigMap", "settings", |copy| {
            ensure!(
                document(copy)?["database"]["host"] == "db.eu.example",
                "{}",
                copy["data"]
            );
            Ok(())
        })
        .await?;
    let mut bad = read(CONFIG);
    bad["spec"]["overrideRules"][0]["overriders"]["fieldOverrider"][0]["yaml"][0]["subPath"] =
        json!("/cache/host");
    scene.apply(bad).await?;
    let failed = scene
        .until_condition("settings-configmap", "FullyApplied", "False", "/cache not found")
        .await?;
    let message = failed["message"].as_str().unwrap_or_default();
    for part in [
        "OverridePolicy",
        "config",
        "overrideRules[0].overriders.fieldOverrider[0]",
        "member2",
        "/data/app.yaml",
    ] {
        ensure!(message.contains(part), "{part:?} is not in {message:?}");
    }
    ensure!(
        !message.contains("5432") && !message.contains("db.example"),
        "{message}"
    );
    scene.apply(settings("db2.example")).await?;
    scene
        .until_copy("member1", "ConfigMap", "settings", |copy| {
            ensure!(
                document(copy)?["database"]["host"] == "db2.example",
                "{}",
                copy["data"]
            );
            Ok(())
        })
        .await?;
    scene.quiet().await?;
    ensure!(scene.copy("member2", "ConfigMap", "settings").await?["data"] == good["data"]);
    let event = scene
        .until_reported_once("ApplyOverridePolicyFailed", "settings")
        .await?;
    ensure!(event["type"] == "Warning", "{event}");

    scene.apply(read(CONFIG)).await?;
    scene
        .until_condition("settings-configmap", "FullyApplied", "True", "")
        .await?;
    ensure!(
        document(&scene.copy("member2", "ConfigMap", "settings").await?)?["database"]["host"]
            == "db.eu.example"
    );
    Ok(())
}

async fn a_secret_is_overridden_and_nobody_tells_what_is_in_it(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    let secret = manifests::secret("login", r#"{"password": "canary-4711", "host": "a"}"#);
    scene.apply(secret).await?;
    scene
        .apply(manifests::policy_for("login", "Secret", "login", &["member1"]))
        .await?;
    let rule = |path: &str| {
        let mut policy = read(CONFIG);
        policy["metadata"]["name"] = json!("login");
        policy["spec"]["resourceSelectors"] = json!([{"apiVersion": "v1", "kind": "Secret"}]);
        policy["spec"]["overrideRules"] = json!([{"overriders": {
            "fieldOverrider": [{"fieldPath": "/data/key", "json": [{"subPath": path, "operator": "replace", "value": "canary-4712"}]}],
        }}]);
        policy
    };
    scene.apply(rule("/host")).await?;
    let copy = scene
        .until_copy("member1", "Secret", "login", |copy| {
            // {"host":"canary-4712","password":"canary-4711"}
            let wanted = "eyJob3N0IjoiY2FuYXJ5LTQ3MTIiLCJwYXNzd29yZCI6ImNhbmFyeS00NzExIn0=";
            ensure!(copy["data"]["key"] == wanted, "not overridden");
            Ok(())
        })
        .await?;
    ensure!(
        !copy["metadata"].to_string().contains("canary"),
        "its annotations tell"
    );
    scene.apply(rule("/user")).await?;
    scene
        .until_condition("login-secret", "FullyApplied", "False", "/user")
        .await?;
    let binding = scene.binding("login-secret").await?;
    ensure!(!binding.to_string().contains("canary"), "its binding tells");
    let events = scene.hub.list("Event", &scene.ns, "").await?;
    ensure!(!json!(events).to_string().contains("canary"), "an event tells");
    ensure!(scene.bed.log.with("canary-47").is_empty(), "the log tells");
    Ok(())
}

async fn a_policy_waits_for_the_overrides_that_it_depends_on(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    let mut policy = manifests::policy(&["member2"]);
    policy["spec"]["dependentOverrides"] = json!(["config"]);
    for object in [settings("db.example"), workload(), policy] {
        scene.apply(object).await?;
    }
    eventually("the policy says what it waits for", async || {
        let policy = scene.get("PropagationPolicy", "myapp-propagation").await?;
        let matched = condition(&policy, "Matched");
        ensure!(matched["reason"] == "DependentOverrideMissing", "{matched}");
        ensure!(
            matched["message"]
                .as_str()
                .is_some_and(|why| why.contains("OverridePolicy config")),
            "{matched}"
        );
        Ok(())
    })
    .await?;
    scene.quiet().await?;
    ensure!(
        scene
            .hub
            .get("ResourceBinding", &scene.ns, "myapp-deployment")
            .await?
            .is_none()
    );
    scene.apply(read(CONFIG)).await?;
    scene.until_held("Deployment", "myapp", &["member2"]).await?;
    let copy = scene.copy("member2", "ConfigMap", "settings").await?;
    ensure!(
        document(&copy)?["database"]["host"] == "db.eu.example",
        "its first version is overridden"
    );
    Ok(())
}

async fn an_override_in_both_forms_is_refused_by_the_hub(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    let mut both = read(CONFIG);
    both["spec"]["targetCluster"] = json!({"clusterNames": ["member1"]});
    match scene.apply(both).await {
        Err(error) => {
            let why = format!("{error:#}");
            ensure!(why.contains("are mutually exclusive"), "{why}");
        }
        // If the hub's CRDs have no validation rules, the form with overrideRules counts.
        Ok(_) => ensure!(!scene.bed.has("cel")?, "it was taken"),
    }
    Ok(())
}

/// The rows of `entourage get`, as programs read them.
async fn listed(scene: &Scene, what: &str, name: &str) -> Result<Value> {
    let kubeconfig = scene.bed.fleet.hub.kubeconfig_path();
    let kubeconfig = kubeconfig.to_str().context("text")?;
    let line = [
        "entourage",
        "get",
        what,
        name,
        "-n",
        &scene.ns,
        "-o",
        "json",
        "--kubeconfig",
        kubeconfig,
    ];
    let Command::Get(args) = Cli::try_parse_from(line)?.command else {
        anyhow::bail!("not a get");
    };
    let mut out = Vec::new();
    get::run(args, &mut out).await?;
    let listed: Value = serde_json::from_slice(&out)?;
    listed["items"][0].as_object().context("no row")?;
    Ok(listed["items"][0].clone())
}

async fn an_override_policy_that_changes_no_copy_is_reported_by_an_event_and_by_get(
    scene: &mut Scene,
) -> Result<()> {
    started(scene).await?;
    let mut odd = read(CONFIG);
    odd["spec"]["overrideRules"][0]["targetCluster"]["clusterNames"] = json!(["nope"]);
    scene.apply(odd).await?;
    let event = scene.until_reported_once("PartsWithoutEffect", "config").await?;
    let why = "targetCluster selects no cluster of this hub";
    let message = event["message"].as_str().unwrap_or_default();
    ensure!(event["type"] == "Warning" && message.contains(why), "{event}");
    let row = listed(scene, "overrides", "config").await?;
    let problem = row["problem"].as_str().unwrap_or_default();
    ensure!(row["copies"] == 0 && problem.contains(why), "{row}");

    // The plan changes one copy, as expected, and nothing else.
    scene.apply(read(CONFIG)).await?;
    scene
        .until_copy("member2", "ConfigMap", "settings", |copy| {
            ensure!(
                document(copy)?["database"]["host"] == "db.eu.example",
                "{}",
                copy["data"]
            );
            Ok(())
        })
        .await?;
    let row = listed(scene, "overrides", "config").await?;
    ensure!(
        row["copies"] == 1 && row["problem"] == "" && row["clusters"] == json!(["member2"]),
        "{row}"
    );
    scene.quiet().await?;
    ensure!(scene.events("PartsWithoutEffect", "config").await?.len() == 1);

    // The selection by labels reads those of the templates.
    let mut labelled = read(CONFIG);
    labelled["spec"]["resourceSelectors"] = json!([{"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": {"matchLabels": {"tier": "front"}}}]);
    scene.apply(labelled).await?;
    ensure!(listed(scene, "overrides", "config").await?["copies"] == 0);
    let mut config = settings("db.example");
    config["metadata"]["labels"] = json!({"tier": "front"});
    scene.apply(config).await?;
    ensure!(listed(scene, "overrides", "config").await?["copies"] == 1);
    Ok(())
}

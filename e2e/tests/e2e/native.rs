//! Native kinds other than Deployments: Services, Ingresses, CronJobs, autoscalers, disruption budgets, volumes.
//!
//! No workload controllers run on the members: the tests say what they would say.

use anyhow::{Context as _, Result, ensure};
use entourage_e2e::{
    harness::{Scene, eventually, kind, manifests},
    tests,
};
use serde_json::{Value, json};

tests![
    services_and_their_kin_arrive_as_each_member_can_have_them_and_stay_quiet,
    what_members_report_is_summed_up_on_the_template_and_then_quiet,
    a_certificate_goes_with_its_ingress_and_leaves_with_it,
    a_volume_travels_by_a_cluster_policy_and_keeps_its_claim,
    kinds_travel_in_the_versions_of_older_servers,
];

const BOTH: &[&str] = &["member1", "member2"];

fn service() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {
            "type": "LoadBalancer", "externalTrafficPolicy": "Local", "selector": {"app": "web"},
            "ports": [{"name": "http", "port": 80}, {"name": "admin", "port": 81, "targetPort": "admin"}],
        },
    })
}

fn ingress(secret: &str) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "web"},
        "spec": {
            "tls": [{"hosts": ["web.example.com"], "secretName": secret}, {"hosts": ["other.example.com"]}],
            "defaultBackend": {"service": {"name": "web", "port": {"number": 80}}},
        },
    })
}

fn certificate(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": "kubernetes.io/tls",
        "stringData": {"tls.crt": "canary", "tls.key": "canary"},
    })
}

/// An object of every kind that this hub serves; older servers lack some.
async fn objects(scene: &Scene) -> Result<Vec<Value>> {
    let pod = json!({"restartPolicy": "Never", "containers": [
        {"name": "main", "image": "nginx", "envFrom": [{"configMapRef": {"name": "settings"}}]}]});
    let all = [
        service(),
        ingress("web-tls"),
        json!({
            "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "web"},
            "spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": {"spec": pod}}}},
        }),
        json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"},
            "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": 5,
                     "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}}},
        }),
        json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
        }),
    ];
    let mut served = Vec::new();
    for object in all {
        let wanted = kind(name_of(&object));
        let path = match wanted.api_version.contains('/') {
            true => format!("/apis/{}", wanted.api_version),
            false => format!("/api/{}", wanted.api_version),
        };
        let answer = scene.hub.call("GET", &path, None).await;
        let resources = answer.ok().and_then(|list| list["resources"].as_array().cloned());
        let is_served = resources
            .iter()
            .flatten()
            .any(|each| each["name"] == wanted.plural);
        ensure!(
            is_served == is_in_its_newest_version(scene, wanted.kind)?,
            "{object}"
        );
        if is_served {
            served.push(object);
        }
    }
    Ok(served)
}

/// True if the hub serves a kind in the version that it has today.
fn is_in_its_newest_version(scene: &Scene, kind: &str) -> Result<bool> {
    match kind {
        "CronJob" => scene.bed.has("cronjob_v1"),
        "HorizontalPodAutoscaler" => scene.bed.has("autoscaling_v2"),
        "PodDisruptionBudget" => scene.bed.has("policy_v1"),
        _ => Ok(true),
    }
}

fn name_of(object: &Value) -> &str {
    object["kind"].as_str().unwrap_or_default()
}

/// All of them on both members.
async fn settled(scene: &mut Scene) -> Result<Vec<Value>> {
    scene.start().await?;
    let objects = objects(scene).await?;
    scene.apply(certificate("web-tls")).await?;
    scene.apply(manifests::config_map("settings", "one")).await?;
    for object in &objects {
        let kind_name = name_of(object);
        let mut policy = manifests::policy_for(&kind_name.to_lowercase(), kind_name, "web", BOTH);
        policy["spec"]["propagateDeps"] = json!(true);
        scene.apply(policy).await?;
        scene.apply(object.clone()).await?;
    }
    for object in &objects {
        scene.until_held(name_of(object), "web", BOTH).await?;
    }
    scene.until_held("Secret", "web-tls", BOTH).await?;
    Ok(objects)
}

/// Takes everything back.
async fn end(scene: &Scene, objects: &[Value]) -> Result<()> {
    for object in objects {
        scene.delete(name_of(object), "web").await?;
    }
    for object in objects {
        scene.until_held(name_of(object), "web", &[]).await?;
    }
    Ok(())
}

/// Nothing is written, neither now nor after a restart.
async fn stays_quiet(scene: &mut Scene) -> Result<()> {
    scene.quiet().await?;
    let before = scene.writes().len();
    let after = scene.quiet().await?;
    ensure!(after == before, "running: {:#?}", &scene.writes()[before..]);
    scene.restart().await?;
    let after = scene.quiet().await?;
    ensure!(after == 0, "restarted: {:#?}", scene.writes());
    Ok(())
}

async fn services_and_their_kin_arrive_as_each_member_can_have_them_and_stay_quiet(
    scene: &mut Scene,
) -> Result<()> {
    let objects = settled(scene).await?;
    let hub = scene.get("Service", "web").await?;
    for member in BOTH {
        let copy = scene.copy(member, "Service", "web").await?;
        for field in ["clusterIP", "healthCheckNodePort"] {
            ensure!(!copy["spec"][field].is_null(), "{member}: {}", copy["spec"]);
        }
        for field in ["type", "ports", "selector", "externalTrafficPolicy"] {
            ensure!(
                copy["spec"][field] == hub["spec"][field],
                "{member}: {}",
                copy["spec"]
            );
        }
    }
    if objects.iter().any(|object| name_of(object) == "CronJob") {
        scene.until_held("ConfigMap", "settings", BOTH).await?;
    }
    stays_quiet(scene).await?;

    // Fields that a member chose stay when the template changes.
    let before = scene.copy("member1", "Service", "web").await?;
    let mut changed = service();
    changed["spec"]["selector"] = json!({"app": "other"});
    changed["spec"]["ports"] = hub["spec"]["ports"].clone();
    scene
        .hub
        .edit("Service", &scene.ns, "web", |live| {
            live["spec"]["selector"] = changed["spec"]["selector"].clone();
        })
        .await?;
    let after = scene
        .until_copy("member1", "Service", "web", |copy| {
            ensure!(copy["spec"]["selector"]["app"] == "other", "{}", copy["spec"]);
            Ok(())
        })
        .await?;
    for field in ["clusterIP", "clusterIPs", "healthCheckNodePort", "ports"] {
        ensure!(
            after["spec"][field] == before["spec"][field],
            "{field}: {}",
            after["spec"]
        );
    }
    // A change on a member is reverted.
    scene
        .edit_on("member1", "Service", "web", |live| {
            live["spec"]["selector"] = json!({"app": "theirs"});
        })
        .await?;
    scene
        .until_copy("member1", "Service", "web", |copy| {
            ensure!(copy["spec"]["selector"]["app"] == "other", "{}", copy["spec"]);
            Ok(())
        })
        .await?;
    stays_quiet(scene).await?;
    end(scene, &objects).await
}

/// The status that the controllers of a member would report.
fn report(kind_name: &str, member: &str) -> Value {
    match kind_name {
        "Service" | "Ingress" => {
            let ip = format!("192.0.2.{}", member.trim_start_matches("member"));
            json!({"loadBalancer": {"ingress": [{"ip": ip}]}})
        }
        "CronJob" => {
            json!({"lastScheduleTime": format!("2025-01-01T00:0{}:00Z", member.trim_start_matches("member"))})
        }
        "HorizontalPodAutoscaler" => json!({"currentReplicas": 1, "desiredReplicas": 2}),
        _ => json!({"currentHealthy": 1, "desiredHealthy": 1, "disruptionsAllowed": 0, "expectedPods": 1}),
    }
}

/// The status of the template after that, field by field.
fn summed(kind_name: &str) -> Value {
    match kind_name {
        "Service" | "Ingress" => json!({"loadBalancer": {"ingress": [
            {"ip": "192.0.2.1"}, {"ip": "192.0.2.2"}]}}),
        "CronJob" => json!({"lastScheduleTime": "2025-01-01T00:02:00Z"}),
        "HorizontalPodAutoscaler" => json!({"currentReplicas": 2, "desiredReplicas": 4}),
        _ => json!({"currentHealthy": 2, "desiredHealthy": 2, "expectedPods": 2}),
    }
}

async fn what_members_report_is_summed_up_on_the_template_and_then_quiet(scene: &mut Scene) -> Result<()> {
    let objects = settled(scene).await?;
    for object in &objects {
        let kind_name = name_of(object);
        for member in BOTH {
            let reported = report(kind_name, member);
            let server = scene.member(member)?;
            let say = |live: &mut Value| live["status"] = reported.clone();
            server.edit_status(kind_name, &scene.ns, "web", say).await?;
        }
    }
    for object in &objects {
        let (kind_name, wanted) = (name_of(object), summed(name_of(object)));
        eventually(
            &format!("the status of the {kind_name} sums up the members'"),
            async || {
                let mut template = scene.get(kind_name, "web").await?;
                for point in template["status"]["loadBalancer"]["ingress"]
                    .as_array_mut()
                    .into_iter()
                    .flatten()
                {
                    if let Some(point) = point.as_object_mut() {
                        point.remove("ipMode");
                    }
                }
                for (field, value) in wanted.as_object().context("fields")? {
                    ensure!(template["status"][field] == *value, "{}", template["status"]);
                }
                Ok(())
            },
        )
        .await?;
    }
    stays_quiet(scene).await?;

    // Words that change nothing for us cost nothing, of a kind without a generation too.
    if objects
        .iter()
        .any(|object| name_of(object) == "HorizontalPodAutoscaler")
    {
        let before = scene.writes().len();
        let say = |live: &mut Value| {
            live["status"]["conditions"] = json!([{
                "type": "AbleToScale", "status": "True", "reason": "Ready", "message": "",
                "lastTransitionTime": "2025-01-01T00:00:00Z"}]);
        };
        for member in BOTH {
            let server = scene.member(member)?;
            server
                .edit_status("HorizontalPodAutoscaler", &scene.ns, "web", say)
                .await?;
        }
        let after = scene.quiet().await?;
        ensure!(after == before, "{:#?}", &scene.writes()[before..]);
    }
    end(scene, &objects).await
}

async fn a_certificate_goes_with_its_ingress_and_leaves_with_it(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    for name in ["web-tls", "next-tls"] {
        scene.apply(certificate(name)).await?;
    }
    let mut policy = manifests::policy_for("ingress", "Ingress", "web", &["member1"]);
    policy["spec"]["propagateDeps"] = json!(true);
    scene.apply(policy).await?;
    scene.apply(ingress("web-tls")).await?;
    scene.until_held("Ingress", "web", &["member1"]).await?;
    scene.until_held("Secret", "web-tls", &["member1"]).await?;
    scene
        .until_condition("web-ingress", "DependenciesReady", "True", "")
        .await?;
    scene.apply(ingress("next-tls")).await?;
    scene.until_held("Secret", "next-tls", &["member1"]).await?;
    scene.until_held("Secret", "web-tls", &[]).await?;
    scene.delete("Ingress", "web").await?;
    scene.until_held("Ingress", "web", &[]).await?;
    scene.until_held("Secret", "next-tls", &[]).await
}

async fn a_volume_travels_by_a_cluster_policy_and_keeps_its_claim(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    let name = format!("{}-nfs", scene.ns);
    let volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], "storageClassName": "none",
            "nfs": {"server": "nfs.example.com", "path": "/a"},
        },
    });
    let policy = json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterPropagationPolicy", "metadata": {"name": name},
        "spec": {
            "resourceSelectors": [{"apiVersion": "v1", "kind": "PersistentVolume", "name": name}],
            "placement": {"clusterAffinity": {"clusterNames": BOTH}},
        },
    });
    scene.hub.apply(&volume).await?;
    scene.hub.apply(&policy).await?;
    for member in BOTH {
        let server = scene.member(member)?;
        eventually(&format!("the volume is on {member}"), async || {
            server
                .get("PersistentVolume", "", &name)
                .await?
                .context("it is not there")
                .map(drop)
        })
        .await?;
        // A binder would do this.
        let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": scene.ns, "name": "data",
                           "uid": "00000000-0000-4000-8000-000000000000"});
        server
            .edit("PersistentVolume", "", &name, |live| {
                live["spec"]["claimRef"] = claim.clone()
            })
            .await?;
        server
            .edit_status("PersistentVolume", "", &name, |live| {
                live["status"] = json!({"phase": "Bound"})
            })
            .await?;
    }
    eventually("the volume is bound", async || {
        let template = scene
            .hub
            .get("PersistentVolume", "", &name)
            .await?
            .context("no template")?;
        ensure!(template["status"]["phase"] == "Bound", "{}", template["status"]);
        Ok(())
    })
    .await?;
    stays_quiet(scene).await?;
    for member in BOTH {
        let copy = scene.member(member)?.get("PersistentVolume", "", &name).await?;
        let copy = copy.context("no copy")?;
        ensure!(copy["spec"]["claimRef"]["name"] == "data", "{}", copy["spec"]);
    }
    scene.hub.delete("ClusterPropagationPolicy", "", &name).await?;
    scene.hub.delete("PersistentVolume", "", &name).await?;
    let members = BOTH.iter().map(|member| scene.member(member));
    for server in std::iter::once(Ok(&scene.hub)).chain(members) {
        let server = server?;
        eventually(&format!("the volume is gone from {}", server.name), async || {
            let Some(live) = server.get("PersistentVolume", "", &name).await? else {
                return Ok(());
            };
            // On real clusters a controller removes the finalizer of a volume that is being deleted.
            if live["metadata"]["deletionTimestamp"].is_string() {
                let let_go = |live: &mut Value| {
                    if let Some(finalizers) = live["metadata"]["finalizers"].as_array_mut() {
                        finalizers.retain(|each| each != "kubernetes.io/pv-protection");
                    }
                };
                server.edit("PersistentVolume", "", &name, let_go).await?;
            }
            anyhow::bail!("{}", live["metadata"])
        })
        .await?;
    }
    Ok(())
}

/// Kinds that servers before 1.21, or 1.23, have in another version only, with a spec each.
fn older() -> [(&'static str, &'static str, &'static str, Value); 3] {
    let pod = json!({"restartPolicy": "Never", "containers": [
        {"name": "main", "image": "nginx", "envFrom": [{"configMapRef": {"name": "settings"}}]}]});
    [
        (
            "batch/v1beta1",
            "CronJob",
            "cronjobs",
            json!({"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": {"spec": pod}}}}),
        ),
        (
            "autoscaling/v2beta2",
            "HorizontalPodAutoscaler",
            "horizontalpodautoscalers",
            json!({"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": 5}),
        ),
        (
            "policy/v1beta1",
            "PodDisruptionBudget",
            "poddisruptionbudgets",
            json!({"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}),
        ),
    ]
}

async fn kinds_travel_in_the_versions_of_older_servers(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    scene.apply(manifests::config_map("settings", "one")).await?;
    let mut served = Vec::new();
    for (version, kind_name, plural, spec) in older() {
        let answer = scene.hub.call("GET", &format!("/apis/{version}"), None).await;
        let names = answer.ok().and_then(|list| list["resources"].as_array().cloned());
        if !names.iter().flatten().any(|each| each["name"] == plural) {
            ensure!(
                is_in_its_newest_version(scene, kind_name)?,
                "no {kind_name} is served"
            );
            println!("{version} {kind_name} is not served here");
            continue;
        }
        let path = format!("/apis/{version}/namespaces/{}/{plural}", scene.ns);
        let mut policy = manifests::policy_for(&kind_name.to_lowercase(), kind_name, "web", BOTH);
        policy["spec"]["propagateDeps"] = json!(true);
        policy["spec"]["resourceSelectors"][0]["apiVersion"] = json!(version);
        scene.apply(policy).await?;
        let object =
            json!({"apiVersion": version, "kind": kind_name, "metadata": {"name": "web"}, "spec": spec});
        scene.hub.call("POST", &path, Some(&object)).await?;
        served.push((path, kind_name));
    }
    for (path, kind_name) in &served {
        for member in BOTH {
            let server = scene.member(member)?;
            eventually(&format!("the {kind_name} is on {member}"), async || {
                server.call("GET", &format!("{path}/web"), None).await.map(drop)
            })
            .await?;
        }
        if *kind_name == "CronJob" {
            scene.until_held("ConfigMap", "settings", BOTH).await?;
        }
        let status = match *kind_name {
            "CronJob" => json!({"lastScheduleTime": "2025-01-01T00:02:00Z"}),
            _ => report(kind_name, "member1"),
        };
        let server = scene.member("member1")?;
        let mut live = server.call("GET", &format!("{path}/web"), None).await?;
        live["status"] = status;
        let reported = server
            .call("PUT", &format!("{path}/web/status"), Some(&live))
            .await?["status"]
            .clone();
        eventually(&format!("the {kind_name} on the hub says so"), async || {
            let template = scene.hub.call("GET", &format!("{path}/web"), None).await?;
            for field in ["lastScheduleTime", "desiredReplicas", "currentHealthy"] {
                ensure!(
                    template["status"][field] == reported[field],
                    "{}",
                    template["status"]
                );
            }
            Ok(())
        })
        .await?;
    }
    stays_quiet(scene).await?;
    for (path, _) in &served {
        // The options of kubectl: by default the older versions of CronJob are deleted as with --cascade=orphan.
        let path = format!("{path}/web?propagationPolicy=Background");
        scene.hub.call("DELETE", &path, None).await?;
    }
    for (path, kind_name) in &served {
        for member in BOTH {
            let server = scene.member(member)?;
            eventually(&format!("the {kind_name} is gone from {member}"), async || {
                let live = server.call("GET", &format!("{path}/web"), None).await;
                ensure!(live.is_err(), "{live:?}");
                Ok(())
            })
            .await?;
        }
    }
    Ok(())
}

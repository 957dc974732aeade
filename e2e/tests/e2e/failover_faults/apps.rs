//! The workloads that fail over, what they need, and whether all of it is where it belongs.

use anyhow::{Context as _, Result, ensure};
use entourage_e2e::harness::{
    Draw, MEMBERS, PATIENCE, Space, condition, eventually, eventually_within, manifests,
};
use serde_json::{Value, json};

/// One workload: a Deployment that mounts a ConfigMap and a Secret.
pub(super) struct App {
    pub(super) name: String,
    config: String,
    secret: String,
    /// On how many members it is to be.
    spread: usize,
}

impl App {
    pub(super) fn new(number: u64, draw: &mut Draw) -> Self {
        Self {
            name: format!("app-{number}"),
            config: format!("config-{number}"),
            secret: format!("secret-{number}"),
            spread: if draw.below(2) == 0 { 1 } else { 2 },
        }
    }

    pub(super) fn needs(&self) -> Vec<(&'static str, String)> {
        vec![
            ("ConfigMap", self.config.clone()),
            ("Secret", self.secret.clone()),
        ]
    }

    pub(super) fn deployment(&self) -> Value {
        let volumes = json!({"volumes": [
            {"name": "config", "configMap": {"name": self.config}},
            {"name": "secret", "secret": {"secretName": self.secret}},
        ]});
        manifests::workload("Deployment", &self.name, &volumes)
    }

    /// On so many members of all; one that is down is borne for a second.
    pub(super) fn policy(&self, key: &str) -> Value {
        let mut policy = manifests::policy_for(&self.name, "Deployment", &self.name, &MEMBERS);
        policy["spec"]["propagateDeps"] = json!(true);
        let placement = &mut policy["spec"]["placement"];
        placement["spreadConstraints"] =
            json!([{"spreadByField": "cluster", "minGroups": self.spread, "maxGroups": self.spread}]);
        placement["clusterTolerations"] =
            json!([{"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}]);
        policy
    }
}

/// Gives every workload other data, so that there is something to deliver.
pub(super) async fn edit(space: &Space, apps: &[App], edits: u32) -> Result<()> {
    let data = format!("edit {edits}");
    for app in apps {
        // The hub may be back for a moment only.
        eventually("the hub takes an edit", async || {
            space.apply(manifests::config_map(&app.config, &data)).await?;
            space.apply(manifests::secret(&app.secret, &data)).await
        })
        .await?;
    }
    Ok(())
}

pub(super) async fn until_left(space: &Space, apps: &[App], member: &str) -> Result<()> {
    eventually_within(
        PATIENCE * 2,
        &format!("nothing is placed on {member}"),
        async || {
            for app in apps {
                let placed = clusters(&space.binding(&binding_of("Deployment", &app.name)).await?);
                ensure!(
                    !placed.iter().any(|each| each == member),
                    "{} is on {placed:?}",
                    app.name
                );
            }
            Ok(())
        },
    )
    .await
}

pub(super) async fn until_converged(space: &Space, apps: &[App], edits: u32) -> Result<()> {
    eventually_within(PATIENCE * 2, "everything is where it belongs", async || {
        is_converged(space, apps, edits).await
    })
    .await
}

/// Members are well; each workload, and what it needs, is on exactly the clusters of its binding, as many as its policy says; and
/// the status says so.
pub(super) async fn is_converged(space: &Space, apps: &[App], edits: u32) -> Result<()> {
    for member in MEMBERS {
        let cluster = space
            .hub
            .get("Cluster", "", member)
            .await?
            .context("no Cluster")?;
        let (ready, taints) = (condition(&cluster, "Ready"), &cluster["spec"]["taints"]);
        let untainted = taints.as_array().is_none_or(Vec::is_empty);
        ensure!(
            ready["status"] == "True" && untainted,
            "{member}: {ready}, taints {taints}"
        );
    }
    for app in apps {
        let binding = space.binding(&binding_of("Deployment", &app.name)).await?;
        let (placed, tasks) = (clusters(&binding), &binding["spec"]["gracefulEvictionTasks"]);
        ensure!(placed.len() == app.spread, "{} is placed on {placed:?}", app.name);
        ensure!(
            tasks.as_array().is_none_or(Vec::is_empty),
            "{} is placed on {placed:?}, and leaves: {tasks}",
            app.name
        );
        let needs = app.needs();
        let workload = [("Deployment", app.name.clone())];
        for (kind, name) in workload.iter().chain(&needs) {
            let holders = space.holders(kind, name).await?;
            ensure!(
                holders == placed,
                "{kind} {name} is on {holders:?}, not on {placed:?}"
            );
            let binding = space.binding(&binding_of(kind, name)).await?;
            let applied = condition(&binding, "FullyApplied");
            ensure!(applied["status"] == "True", "{kind} {name}: {applied}");
        }
        for member in &placed {
            let data = space.copy(member, "ConfigMap", &app.config).await?["data"]["key"].take();
            ensure!(
                data == format!("edit {edits}"),
                "{} on {member} has {data}, not edit {edits}",
                app.config
            );
        }
    }
    Ok(())
}

fn binding_of(kind: &str, name: &str) -> String {
    format!("{name}-{}", kind.to_lowercase())
}

/// The clusters that a binding is scheduled to, sorted.
fn clusters(binding: &Value) -> Vec<String> {
    let all = binding["spec"]["clusters"].as_array().into_iter().flatten();
    let names = all.filter_map(|each| each["name"].as_str()).map(str::to_owned);
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Everything of a seed ends, so that the next one is alone.
pub(super) async fn clear(space: &Space, apps: &[App]) -> Result<()> {
    for app in apps {
        space.delete("PropagationPolicy", &app.name).await?;
        space.delete("Deployment", &app.name).await?;
        space.delete("ConfigMap", &app.config).await?;
        space.delete("Secret", &app.secret).await?;
    }
    eventually_within(PATIENCE * 2, "nothing of the seed is left", async || {
        for app in apps {
            space.until_held("Deployment", &app.name, &[]).await?;
            for (kind, name) in app.needs() {
                space.until_held(kind, &name, &[]).await?;
            }
        }
        let bindings = space.hub.list("ResourceBinding", &space.ns, "").await?;
        ensure!(bindings.is_empty(), "{} bindings are there", bindings.len());
        Ok(())
    })
    .await
}

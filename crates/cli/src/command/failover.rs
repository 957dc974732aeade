//! `entourage failover --dry-run CLUSTER`: evictions if a member failed, workloads without another cluster, and data that would
//! remain there. Makes the same decisions as the controllers, in a simulation: nothing is written.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    io::Write,
};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use entourage_api::keys::{condition, taint};
use kube::Client;
use serde::Serialize;
use serde_json::{Value, json};

use super::answer::{self, Output};
use crate::{
    apply::{CLUSTER, Target},
    args::{self, CLUSTER_NAMESPACE, HubArgs},
    connect,
    simulate::{
        Assumed, Simulated,
        live::{self, LiveOptions, MembersFrom},
    },
};

pub mod taints;

/// The time at which the taint was added: limited tolerations are over.
const LONG_AGO: &str = "1970-01-01T00:00:00Z";

/// Flags of `entourage failover`.
#[derive(Args, Clone, Debug)]
pub struct FailoverArgs {
    /// Name of the member on the hub
    #[arg(value_name = "CLUSTER", value_parser = args::cluster_name)]
    pub name: String,

    /// Only simulate. Required; `entourage drain` evicts workloads from a member
    #[arg(long, required = true)]
    pub dry_run: bool,

    /// Key of the NoExecute taint of the simulated failure
    #[arg(long, value_name = "KEY", default_value = taint::NOT_READY)]
    pub taint: String,

    /// The hub.
    #[command(flatten)]
    pub hub: HubArgs,

    /// Source of the members, and of the objects on them
    #[arg(long, value_enum, default_value_t)]
    pub members: MembersFrom,

    /// Namespace of the hub with the members' credentials
    #[arg(long, value_name = "NAMESPACE", default_value = CLUSTER_NAMESPACE)]
    pub cluster_namespace: String,

    /// Output format
    #[arg(short = 'o', long, value_enum, default_value_t)]
    pub output: Output,
}

/// The predicted result for the workloads of a member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Forecast {
    /// The member.
    pub cluster: String,
    /// Workloads that would be evicted.
    pub moves: Vec<Move>,
    /// Workloads that would have to be evicted, and have no other cluster.
    pub blocked: Vec<Stays>,
    /// Workloads that tolerate the taint.
    pub tolerate: Vec<String>,
    /// Claims whose data would remain on it.
    pub data: Vec<String>,
}

/// A workload that would be evicted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Move {
    /// `Deployment shop/web`.
    pub object: String,
    /// Its new scheduling result, each cluster with its replicas.
    pub to: Vec<(String, i64)>,
    /// The new ones of these clusters.
    pub new: Vec<String>,
    /// The dependencies that would be delivered before it.
    pub dependencies: Vec<String>,
}

/// A workload that would stay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stays {
    /// `Deployment shop/web`.
    pub object: String,
    /// The reason why no other cluster fits.
    pub why: String,
}

/// Runs the command; the forecast goes to `out`.
///
/// # Errors
/// An error with the hub or the name, and the remedy.
pub async fn run(args: FailoverArgs, out: &mut (dyn Write + Send)) -> Result<()> {
    let hub = connect::config(args.hub.kubeconfig.as_deref(), args.hub.context.as_deref()).await?;
    let simulated = simulate(&args, &connect::client(hub)?).await?;
    let forecast = forecast(simulated.simulation.hub().map(|(_, object)| object), &args.name);
    let text = match args.output {
        Output::Text => text(&forecast, &simulated.remarks)?,
        format => {
            let mut value = serde_json::to_value(&forecast)?;
            value["remarks"] = json!(simulated.remarks);
            answer::formatted(format, &value)?
        }
    };
    out.write_all(text.as_bytes())?;
    Ok(())
}

/// Simulates the failure with the given client.
///
/// # Errors
/// As [`run`].
pub async fn simulate(args: &FailoverArgs, hub: &Client) -> Result<Simulated> {
    let name = args.name.as_str();
    let api = Target {
        client: hub.clone(),
        place: "hub",
        dry_run: true,
        out: &mut std::io::sink(),
    }
    .api(CLUSTER, "");
    let cluster = match connect::within(api.get(name)).await {
        Ok(cluster) => cluster,
        Err(error) if connect::is_not_found(&error) => bail!("cluster {name:?} not found"),
        Err(error) => {
            return Err(connect::explain(error)).with_context(|| format!("cannot read cluster {name}"));
        }
    };
    let options = LiveOptions {
        members: args.members,
        namespace: "default".to_owned(),
        cluster_namespace: args.cluster_namespace.clone(),
        assumed: Assumed::default(),
        adopted: BTreeMap::new(),
    };
    let mut objects = vec![failed(name, &cluster.data["spec"], &args.taint)];
    objects.extend(taints::kept(&taints::policies(hub).await?, &args.taint));
    live::simulate(hub, objects, &options).await
}

/// The Cluster with the taint of a failure.
fn failed(name: &str, spec: &Value, key: &str) -> Value {
    let mut spec = spec.clone();
    let added = json!({"key": key, "effect": "NoExecute", "timeAdded": LONG_AGO});
    match spec["taints"].as_array_mut() {
        Some(taints) => taints.push(added),
        None => spec["taints"] = json!([added]),
    }
    json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": name}, "spec": spec})
}

/// Derives the forecast from the simulated objects of the hub.
#[must_use]
pub fn forecast<'a>(objects: impl Iterator<Item = &'a Value>, cluster: &str) -> Forecast {
    let mut forecast = Forecast {
        cluster: cluster.to_owned(),
        ..Forecast::default()
    };
    let bindings: Vec<&Value> = objects
        .filter(|each| {
            each["apiVersion"]
                .as_str()
                .is_some_and(|version| version.starts_with("work.karmada.io/"))
                && each["kind"]
                    .as_str()
                    .is_some_and(|kind| kind.ends_with("ResourceBinding"))
        })
        .collect();
    for binding in &bindings {
        let spec = &binding["spec"];
        if spec["placement"].is_null() {
            continue;
        }
        let object = title(spec);
        let tasks = spec["gracefulEvictionTasks"].as_array().into_iter().flatten();
        let task = tasks.into_iter().find(|task| task["fromCluster"] == cluster);
        let is_there = names(&spec["clusters"]).contains(cluster);
        if let Some(task) = task {
            forecast.moves.push(moved(binding, task, object, &bindings));
        } else if let Some(why) = why_blocked(binding).filter(|_| is_there) {
            let why = why.rsplit_once("can be scheduled: ").map_or(why, |(_, why)| why);
            let why = why.to_owned();
            forecast.blocked.push(Stays { object, why });
        } else if is_there {
            forecast.tolerate.push(object);
        }
    }
    let is_of_move = |binding: &&&Value| {
        let by = binding["spec"]["requiredBy"].as_array().into_iter().flatten();
        binding["spec"]["resource"]["kind"] == "PersistentVolumeClaim"
            && by
                .into_iter()
                .any(|each| names(&each["clusters"]).contains(cluster))
    };
    forecast.data = bindings
        .iter()
        .filter(is_of_move)
        .map(|binding| title(&binding["spec"]))
        .collect();
    forecast.moves.sort_by(|a, b| a.object.cmp(&b.object));
    forecast.blocked.sort_by(|a, b| a.object.cmp(&b.object));
    forecast.tolerate.sort();
    forecast.data.sort();
    forecast
}

fn moved(binding: &Value, task: &Value, object: String, bindings: &[&Value]) -> Move {
    let clusters = binding["spec"]["clusters"].as_array().into_iter().flatten();
    let to: Vec<(String, i64)> = clusters
        .map(|target| {
            let name = target["name"].as_str().unwrap_or_default().to_owned();
            (name, target["replicas"].as_i64().unwrap_or_default())
        })
        .collect();
    let before = task["clustersBeforeFailover"].as_array();
    let was_there = |name: &str| before.is_some_and(|all| all.iter().any(|each| each == name));
    let new = to.iter().map(|(name, _)| name);
    let new: Vec<String> = new.filter(|name| !was_there(name)).cloned().collect();
    let meta = &binding["metadata"];
    let needs = |each: &&&Value| {
        let by = each["spec"]["requiredBy"].as_array().into_iter().flatten();
        by.into_iter()
            .any(|by| by["name"] == meta["name"] && by["namespace"] == meta["namespace"])
    };
    let needed = bindings.iter().filter(needs);
    let mut dependencies: Vec<String> = needed.map(|each| title(&each["spec"])).collect();
    dependencies.sort();
    Move {
        object,
        to,
        new,
        dependencies,
    }
}

fn why_blocked(binding: &Value) -> Option<&str> {
    let conditions = binding["status"]["conditions"].as_array()?;
    let blocked = conditions
        .iter()
        .find(|each| each["type"] == condition::EVICTION_BLOCKED)?;
    blocked["message"].as_str()
}

fn names(clusters: &Value) -> BTreeSet<&str> {
    let all = clusters.as_array().into_iter().flatten();
    all.filter_map(|each| each["name"].as_str()).collect()
}

/// `Deployment shop/web`.
fn title(spec: &Value) -> String {
    let field = |name: &str| spec["resource"][name].as_str().unwrap_or_default();
    match field("namespace") {
        "" => format!("{} {}", field("kind"), field("name")),
        namespace => format!("{} {namespace}/{}", field("kind"), field("name")),
    }
}

/// The forecast as lines.
fn text(forecast: &Forecast, remarks: &[String]) -> Result<String> {
    let mut text = String::new();
    for remark in remarks {
        writeln!(text, "note: {remark}")?;
    }
    if !remarks.is_empty() {
        text.push('\n');
    }
    let cluster = &forecast.cluster;
    if !forecast.moves.is_empty() {
        writeln!(text, "Moves off {cluster}:")?;
    }
    let width = forecast.moves.iter().map(|each| each.object.len()).max();
    let width = width.unwrap_or_default();
    for each in &forecast.moves {
        let to: Vec<String> = each
            .to
            .iter()
            .map(|(name, replicas)| {
                let new = if each.new.contains(name) {
                    ""
                } else {
                    ", has it already"
                };
                match replicas {
                    0 => format!(
                        "{name}{}",
                        new.replacen(", has", " (has", 1) + if new.is_empty() { "" } else { ")" }
                    ),
                    _ => format!("{name} ({replicas}{new})"),
                }
            })
            .collect();
        write!(text, "  {:<width$}  -> {}", each.object, to.join(", "))?;
        match each.dependencies.as_slice() {
            [] => writeln!(text)?,
            all => writeln!(text, "  after {}", all.join(", "))?,
        }
    }
    if !forecast.blocked.is_empty() {
        writeln!(text, "Has no other cluster, and stays:")?;
    }
    for each in &forecast.blocked {
        writeln!(text, "  {}: {}", each.object, each.why)?;
    }
    if !forecast.tolerate.is_empty() {
        writeln!(
            text,
            "Tolerates it, and stays:\n  {}",
            forecast.tolerate.join("\n  ")
        )?;
    }
    if !forecast.data.is_empty() {
        writeln!(
            text,
            "Data that remains on {cluster}:\n  {}",
            forecast.data.join("\n  ")
        )?;
    }
    if *forecast
        == (Forecast {
            cluster: cluster.clone(),
            ..Forecast::default()
        })
    {
        writeln!(text, "Nothing is scheduled to {cluster}.")?;
    }
    let count = |count: usize, one: &str, many: &str| match count {
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    };
    writeln!(
        text,
        "\n{}, {}, {}, {}.",
        count(forecast.moves.len(), "workload moves", "workloads move"),
        count(
            forecast.blocked.len(),
            "has no other cluster",
            "have no other cluster"
        ),
        count(forecast.tolerate.len(), "tolerates it", "tolerate it"),
        count(forecast.data.len(), "claim remains", "claims remain"),
    )?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding(kind: &str, name: &str, spec: &Value) -> Value {
        let mut object = json!({
            "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
            "metadata": {"namespace": "shop", "name": format!("{name}-{}", kind.to_lowercase())}, "spec": spec,
        });
        object["spec"]["resource"] = json!({"kind": kind, "namespace": "shop", "name": name});
        object
    }

    #[test]
    fn a_forecast_says_what_moves_what_stays_and_which_data_stays_behind() {
        let evicted = json!([{"fromCluster": "member1", "clustersBeforeFailover": ["member1", "member3"]}]);
        let both = json!([{"name": "member1"}, {"name": "member2"}]);
        let of_web = json!([{"namespace": "shop", "name": "web-deployment", "clusters": both}]);
        let mut stuck = binding(
            "StatefulSet",
            "db",
            &json!({"placement": {}, "clusters": [{"name": "member1"}]}),
        );
        stuck["status"] = json!({"conditions": [{"type": "EvictionBlocked", "status": "True",
            "message": "It is to be evicted from member1 (x), and stays, because no replacement can be scheduled: 0 of 3 clusters fit"}]});
        let all = [
            binding(
                "Deployment",
                "web",
                &json!({"placement": {}, "gracefulEvictionTasks": evicted,
                    "clusters": [{"name": "member2", "replicas": 2}, {"name": "member3", "replicas": 1}]}),
            ),
            binding("ConfigMap", "settings", &json!({"requiredBy": of_web})),
            binding("PersistentVolumeClaim", "data", &json!({"requiredBy": of_web})),
            stuck,
            binding(
                "DaemonSet",
                "agent",
                &json!({"placement": {}, "clusters": [{"name": "member1"}]}),
            ),
            binding(
                "Deployment",
                "elsewhere",
                &json!({"placement": {}, "clusters": [{"name": "member2"}]}),
            ),
        ];
        let forecast = forecast(all.iter(), "member1");
        assert_eq!(
            text(&forecast, &[]).unwrap(),
            "Moves off member1:
  Deployment shop/web  -> member2 (2), member3 (1, has it already)  after ConfigMap shop/settings, PersistentVolumeClaim shop/data
Has no other cluster, and stays:
  StatefulSet shop/db: 0 of 3 clusters fit
Tolerates it, and stays:
  DaemonSet shop/agent
Data that remains on member1:
  PersistentVolumeClaim shop/data

1 workload moves, 1 has no other cluster, 1 tolerates it, 1 claim remains.
"
        );
    }

    #[test]
    fn a_member_without_workloads_is_reported_to_have_none() {
        let none = forecast(std::iter::empty(), "member1");
        assert!(
            text(&none, &[])
                .unwrap()
                .starts_with("Nothing is scheduled to member1.")
        );
    }

    #[test]
    fn the_taint_of_a_failure_is_added_to_those_of_the_cluster() {
        let spec = json!({"syncMode": "Push", "taints": [{"key": "a", "effect": "NoSchedule"}]});
        let failed = failed("member1", &spec, "broken");
        assert_eq!(
            failed["spec"]["taints"],
            json!([
                {"key": "a", "effect": "NoSchedule"},
                {"key": "broken", "effect": "NoExecute", "timeAdded": LONG_AGO},
            ])
        );
    }
}

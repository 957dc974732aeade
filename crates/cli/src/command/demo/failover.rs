//! The last step of the demo: a member stops responding, and returns.

use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use entourage_core::object::{Gvk, ResourceId};
use serde_json::json;

use super::{
    Demo, SAMPLE,
    cluster::{CLUSTER, CONFIG_MAP, Clients, DEPLOYMENT, Kind, POLICY},
    indented,
};
use crate::{
    command::drill::{TAINT_POLICY, THRESHOLD},
    fleet::Fleet,
    kinds::Kinds,
    manifests,
    observe::{Observer, Sighting, condition},
};

/// The member that fails.
const DEAD: &str = "member3";

/// The member that replaces it.
const HEIR: &str = "member1";

impl Demo<'_> {
    pub(super) async fn fails(&mut self) -> Result<()> {
        self.step(&format!(
            "Let the policy choose two of three members, have dead ones evicted from, and cut off {DEAD}"
        ))?;
        self.prepare().await?;
        let observer = observer(&self.fleet).await?;
        self.fleet.disconnect(DEAD)?;
        let begin = Instant::now();
        self.say(&format!(
            "{DEAD} does not respond any more; it counts as dead after {} ms here, after 30 s by default",
            THRESHOLD.as_millis()
        ))?;
        self.until(
            begin,
            &format!("{DEAD} is not ready, and has the taint"),
            async |clients| {
                let cluster = clients.template(&CLUSTER, DEAD).await?.context("no Cluster")?;
                ensure!(condition(&cluster, "Ready", "False").is_some(), "it is Ready");
                ensure!(
                    cluster["spec"]["taints"].to_string().contains("NoExecute"),
                    "no taint"
                );
                Ok(())
            },
        )
        .await?;
        self.until(
            begin,
            &format!("ConfigMap my-config is on {HEIR}"),
            async |clients| is_there(clients, &CONFIG_MAP, "my-config").await,
        )
        .await?;
        self.until(
            begin,
            "Deployment myapp is there, too, and came after its ConfigMap",
            async |clients| {
                is_there(clients, &DEPLOYMENT, "myapp").await?;
                let seen = observer.sightings();
                let came = |id: &ResourceId| changed(&seen, HEIR, id, true);
                ensure!(came(&config_map())? < came(&deployment())?, "it came before");
                Ok(())
            },
        )
        .await?;
        self.until(
            begin,
            &format!("{DEAD} may run the Deployment still: it is accounted for, with its ConfigMap"),
            async |clients| {
                let tasks =
                    clients.binding("myapp-deployment").await?["spec"]["gracefulEvictionTasks"].to_string();
                ensure!(tasks.contains(DEAD), "no eviction task: {tasks}");
                let required =
                    clients.binding("my-config-configmap").await?["spec"]["requiredBy"].to_string();
                ensure!(required.contains(DEAD), "not required there: {required}");
                Ok(())
            },
        )
        .await?;
        self.fleet.reconnect(DEAD)?;
        let begin = Instant::now();
        self.say(&format!("{DEAD} answers again"))?;
        self.until(
            begin,
            "the stale Deployment is deleted there, and then its ConfigMap",
            async |_| {
                let seen = observer.sightings();
                let left = |id: &ResourceId| changed(&seen, DEAD, id, false);
                ensure!(
                    left(&deployment())? < left(&config_map())?,
                    "the ConfigMap went first"
                );
                Ok(())
            },
        )
        .await?;
        self.until(
            begin,
            &format!("{DEAD} is ready; both are settled on {HEIR} and member2, and nowhere else"),
            async |clients| {
                let cluster = clients.template(&CLUSTER, DEAD).await?.context("no Cluster")?;
                ensure!(condition(&cluster, "Ready", "True").is_some(), "it is not Ready");
                let binding = clients.binding("myapp-deployment").await?;
                ensure!(
                    binding["spec"]["gracefulEvictionTasks"].is_null(),
                    "a task is left"
                );
                clients
                    .is_exactly_on(&DEPLOYMENT, "myapp", &[HEIR, "member2"])
                    .await?;
                clients
                    .is_exactly_on(&CONFIG_MAP, "my-config", &[HEIR, "member2"])
                    .await?;
                clients.is_settled(2).await
            },
        )
        .await
    }

    /// Restores the Deployment's reference to its ConfigMap, allows any two members, and has workloads evicted from failed
    /// members.
    async fn prepare(&mut self) -> Result<()> {
        let hub = self.fleet.hub.client();
        let begin = Instant::now();
        let two = json!({"spec": {"placement": {"clusterAffinity": null,
            "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 2, "maxGroups": 2}]}}});
        self.patch(&POLICY, "myapp-propagation", &two).await?;
        let (origin, text) = TAINT_POLICY;
        for (origin, text) in [("config/samples/myapp", SAMPLE[0]), (origin, text)] {
            for object in manifests::parse(text, origin)? {
                let line = manifests::apply(&hub, &object).await?;
                self.say(&format!("hub: {line}"))?;
            }
        }
        let policy: String = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .fold(String::new(), |all, line| all + line + "\n");
        writeln!(self.out, "\n{}\n", self.style.dim(&indented(policy.trim_end())))?;
        self.until(
            begin,
            "both are on member2 and member3 again, and settled",
            async |clients| {
                clients
                    .is_exactly_on(&DEPLOYMENT, "myapp", &["member2", "member3"])
                    .await?;
                clients
                    .is_exactly_on(&CONFIG_MAP, "my-config", &["member2", "member3"])
                    .await?;
                clients.is_settled(2).await
            },
        )
        .await
    }
}

async fn is_there(clients: &Clients, kind: &Kind, name: &str) -> Result<()> {
    let copy = clients.copy(HEIR, kind, name).await?;
    copy.map(drop).with_context(|| format!("{HEIR} has no {name}"))
}

async fn observer(fleet: &Fleet) -> Result<Observer> {
    let hub = fleet.hub.client();
    let mut kinds = Kinds::default();
    let wanted = [deployment().gvk, config_map().gvk];
    kinds.learn(&hub, wanted.clone()).await?;
    let served: Vec<_> = wanted.iter().filter_map(|gvk| kinds.get(gvk).cloned()).collect();
    let members = fleet.members.iter();
    let clients: Vec<_> = members
        .map(|member| (member.name.clone(), member.client()))
        .collect();
    Observer::start(&clients, &served).await
}

/// The revision of a cluster at which an object appeared, or disappeared.
fn changed(seen: &[Sighting], cluster: &str, id: &ResourceId, came: bool) -> Result<u64> {
    let mut changes = seen
        .iter()
        .filter(|each| !each.initial && each.cluster == cluster);
    match changes.find(|each| each.id == *id && each.copy.is_some() == came) {
        Some(change) => Ok(change.revision),
        None => bail!("no such change of {id} on {cluster} was seen"),
    }
}

fn deployment() -> ResourceId {
    ResourceId::new(Gvk::new("apps/v1", "Deployment"), "default", "myapp")
}

fn config_map() -> ResourceId {
    ResourceId::new(Gvk::new("v1", "ConfigMap"), "default", "my-config")
}

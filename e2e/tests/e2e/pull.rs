//! Clusters in Pull mode. The tests play the agent, with plain requests to the hub.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Parser as _;
use entourage::{
    command::{Cli, Command, plan},
    manifests as files,
};
use entourage_api::names;
use entourage_e2e::{
    faults::FaultPlan,
    harness::{Canary, Scene, Server, condition, eventually, manifests, status_code},
    tests,
};
use entourage_simulation::{Fate, Place};
use serde_json::{Value, json};

use super::distribution_rights::{granted, roles, unlimit};

tests![
    a_deployment_travels_with_its_configmap_and_secret_as_works,
    what_the_agent_cannot_apply_is_reported_on_the_binding,
    a_plan_reads_the_works_of_the_cluster,
    a_copy_is_removed_when_the_agent_has_removed_it,
    an_agent_that_does_not_renew_its_lease_is_absent,
    an_agent_that_renews_is_present_although_no_watch_reports_it,
    leases_that_may_not_be_listed_are_reported_and_nothing_else_follows,
    an_object_of_its_cluster_is_promoted_by_a_kubeconfig,
];

const CLUSTER: &str = "zz-pull";

/// The agent of a cluster in Pull mode.
struct Agent {
    hub: Server,
    /// The kinds that it cannot apply.
    refuses: Vec<&'static str>,
    /// True if it removes objects whose Works are deleted.
    removes: bool,
}

impl Agent {
    fn works(name: &str) -> String {
        let namespace = names::execution_namespace(CLUSTER);
        let slash = if name.is_empty() { "" } else { "/" };
        format!("/apis/work.karmada.io/v1alpha1/namespaces/{namespace}/works{slash}{name}")
    }

    /// It renews its Lease and reports its cluster, then takes care of each Work once.
    async fn round(&self) -> Result<()> {
        self.renew().await?;
        self.report().await?;
        let list = self.hub.call("GET", &Self::works(""), None).await?;
        for work in list["items"].as_array().into_iter().flatten() {
            match self.take_care(work.clone()).await {
                // Changed or gone meanwhile.
                Err(error) if matches!(status_code(&error), 404 | 409) => {}
                result => result?,
            }
        }
        Ok(())
    }

    async fn take_care(&self, mut work: Value) -> Result<()> {
        let name = work["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let path = Self::works(&name);
        if work["metadata"]["deletionTimestamp"].is_string() {
            if self.removes {
                work["metadata"]["finalizers"] = json!([]);
                self.hub.call("PUT", &path, Some(&work)).await?;
            }
            return Ok(());
        }
        let manifest = &work["spec"]["workload"]["manifests"][0];
        let kind = manifest["kind"].as_str().unwrap_or_default();
        let (status, reason, message) = match self.refuses.contains(&kind) {
            true => ("False", "AppliedFailed", "there is no room"),
            false => (
                "True",
                "AppliedSuccessful",
                "Manifest has been successfully applied",
            ),
        };
        if condition(&work, "Applied")["status"] == status {
            return Ok(());
        }
        let identifier = json!({
            "ordinal": 0, "version": "v1", "kind": kind, "resource": "any", "name": manifest["metadata"]["name"],
        });
        let reported = match kind {
            "Deployment" => json!({"replicas": 1, "readyReplicas": 1}),
            _ => Value::Null,
        };
        let mut reports = json!({"identifier": identifier, "health": "Healthy"});
        if !reported.is_null() {
            reports["status"] = reported;
        }
        work["status"] = json!({
            "conditions": [{"type": "Applied", "status": status, "reason": reason, "message": message,
                "lastTransitionTime": "2026-01-01T00:00:00Z"}],
            "manifestStatuses": [reports],
        });
        self.hub
            .call("PUT", &format!("{path}/status"), Some(&work))
            .await?;
        Ok(())
    }

    async fn renew(&self) -> Result<()> {
        let all = "/apis/coordination.k8s.io/v1/namespaces/karmada-cluster/leases";
        let path = format!("{all}/{CLUSTER}");
        let held = match self.hub.call("GET", &path, None).await {
            Err(error) if status_code(&error) == 404 => None,
            held => Some(held?),
        };
        // A number that grows with each renewal: nobody reads it as a time.
        let count = |lease: &Value| {
            let text = lease["spec"]["renewTime"].as_str().unwrap_or_default();
            text.get(20..26)
                .and_then(|digits| digits.parse::<u32>().ok())
                .unwrap_or_default()
        };
        let renewed = |count: u32| format!("2026-01-01T00:00:00.{count:06}Z");
        match held {
            Some(mut lease) => {
                lease["spec"]["renewTime"] = json!(renewed(count(&lease) + 1));
                self.hub.call("PUT", &path, Some(&lease)).await?;
            }
            None => {
                let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": CLUSTER},
                    "spec": {"holderIdentity": CLUSTER, "leaseDurationSeconds": 40, "renewTime": renewed(1)}});
                self.hub.call("POST", all, Some(&lease)).await?;
            }
        }
        Ok(())
    }

    async fn report(&self) -> Result<()> {
        let Some(cluster) = self.hub.get("Cluster", "", CLUSTER).await? else {
            return Ok(());
        };
        if condition(&cluster, "Ready")["status"] == "True" {
            return Ok(());
        }
        let served = |group_version: &str, kinds: &[(&str, &str)]| {
            let all: Vec<Value> = kinds
                .iter()
                .map(|(name, kind)| json!({"name": name, "kind": kind}))
                .collect();
            json!({"groupVersion": group_version, "resources": all})
        };
        let core = [
            ("configmaps", "ConfigMap"),
            ("namespaces", "Namespace"),
            ("secrets", "Secret"),
        ];
        let set = |live: &mut Value| {
            live["status"] = json!({
                "kubernetesVersion": "v1.33.0",
                "apiEnablements": [served("v1", &core), served("apps/v1", &[("deployments", "Deployment")])],
                "conditions": [{"type": "Ready", "status": "True", "reason": "ClusterReady",
                    "message": "cluster is healthy and ready to accept workloads",
                    "lastTransitionTime": "2026-01-01T00:00:00Z"}],
            });
        };
        match self.hub.edit_status("Cluster", "", CLUSTER, set).await {
            Err(error) if status_code(&error) == 404 => Ok(()),
            result => result.map(drop),
        }
    }

    /// The Work of an object in a namespace, if it is there.
    async fn work(&self, namespace: &str, kind: &str, name: &str) -> Result<Option<Value>> {
        let path = Self::works(&names::work_name(namespace, name, kind));
        match self.hub.call("GET", &path, None).await {
            Err(error) if status_code(&error) == 404 => Ok(None),
            work => work.map(Some),
        }
    }
}

/// Starts controllers, and an agent whose cluster is ready.
async fn start(scene: &mut Scene) -> Result<Agent> {
    let agent = register(scene).await?;
    scene.start().await?;
    until_ready(scene, &agent).await?;
    Ok(agent)
}

/// A Cluster without a status, and its agent with a Lease.
async fn register(scene: &mut Scene) -> Result<Agent> {
    // The tests do nothing for longer on slow machines, where the cluster comes and goes: nothing waits for it.
    scene.options.cluster_monitor_grace = Duration::from_secs(4);
    let agent = Agent {
        hub: scene.hub.clone(),
        refuses: Vec::new(),
        removes: true,
    };
    scene
        .hub
        .create(
            &json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": CLUSTER},
            "spec": {"syncMode": "Pull", "id": "zz-pull-id"}}),
        )
        .await?;
    agent.renew().await?;
    Ok(agent)
}

async fn until_ready(scene: &Scene, agent: &Agent) -> Result<()> {
    eventually("the agent has reported", async || {
        agent.round().await?;
        let cluster = scene.hub.get("Cluster", "", CLUSTER).await?.context("it")?;
        ensure!(condition(&cluster, "Ready")["status"] == "True", "{cluster}");
        Ok(())
    })
    .await
}

/// The Cluster leaves, and its execution namespace with it.
async fn end(scene: &Scene, agent: &mut Agent) -> Result<()> {
    (agent.removes, agent.refuses) = (true, Vec::new());
    scene.hub.delete("Cluster", "", CLUSTER).await?;
    eventually("the Cluster and its execution namespace are gone", async || {
        agent.round().await?;
        ensure!(
            scene.hub.get("Cluster", "", CLUSTER).await?.is_none(),
            "the Cluster"
        );
        let namespace = names::execution_namespace(CLUSTER);
        ensure!(scene.hub.get("Namespace", "", &namespace).await?.is_none());
        Ok(())
    })
    .await?;
    let lease = format!("/apis/coordination.k8s.io/v1/namespaces/karmada-cluster/leases/{CLUSTER}");
    scene.hub.call("DELETE", &lease, None).await?;
    Ok(())
}

/// A Deployment with a ConfigMap and a Secret, for the cluster.
async fn apply(scene: &Scene, canary: &str) -> Result<()> {
    let mut deployment = manifests::deployment("myapp", &["my-config"]);
    let container = &mut deployment["spec"]["template"]["spec"]["containers"][0];
    container["envFrom"] = json!([{"secretRef": {"name": "login"}}]);
    for object in [
        manifests::config_map("my-config", "one"),
        manifests::secret("login", canary),
        deployment,
        manifests::policy(&[CLUSTER]),
    ] {
        scene.apply(object).await?;
    }
    Ok(())
}

/// Waits until the agent has applied the Deployment.
async fn until_applied(scene: &Scene, agent: &Agent) -> Result<()> {
    eventually("the Deployment is applied", async || {
        agent.round().await?;
        let binding = scene.binding("myapp-deployment").await?;
        for type_ in ["FullyApplied", "DependenciesReady"] {
            ensure!(
                condition(&binding, type_)["status"] == "True",
                "{}",
                binding["status"]
            );
        }
        Ok(())
    })
    .await
}

async fn a_deployment_travels_with_its_configmap_and_secret_as_works(scene: &mut Scene) -> Result<()> {
    let mut agent = start(scene).await?;
    let canary = Canary::new("pulled");
    apply(scene, &canary.value).await?;
    until_applied(scene, &agent).await?;
    for (kind, name) in [
        ("Deployment", "myapp"),
        ("ConfigMap", "my-config"),
        ("Secret", "login"),
    ] {
        let work = agent.work(&scene.ns, kind, name).await?.context("a Work")?;
        ensure!(
            work["metadata"]["finalizers"] == json!(["karmada.io/execution-controller"]),
            "{kind}"
        );
        let manifests = work["spec"]["workload"]["manifests"]
            .as_array()
            .context("manifests")?;
        ensure!(manifests.len() == 1 && manifests[0]["kind"] == kind);
        ensure!(manifests[0]["metadata"]["labels"]["karmada.io/managed"] == "true");
        ensure!((kind == "Secret") == manifests[0]["data"]["key"].is_string() || kind == "ConfigMap");
    }
    let namespace = agent.work("", "Namespace", &scene.ns).await?;
    ensure!(namespace.is_some(), "an agent makes no namespace by itself");
    let binding = scene.binding("myapp-deployment").await?;
    let item = &binding["status"]["aggregatedStatus"][0];
    ensure!(
        item["health"] == "Healthy" && item["status"]["readyReplicas"] == 1,
        "{item}"
    );
    end(scene, &mut agent).await
}

async fn what_the_agent_cannot_apply_is_reported_on_the_binding(scene: &mut Scene) -> Result<()> {
    let mut agent = start(scene).await?;
    agent.refuses = vec!["Deployment"];
    apply(scene, "plain").await?;
    eventually("the binding tells it", async || {
        agent.round().await?;
        let binding = scene.binding("myapp-deployment").await?;
        let reported = condition(&binding, "FullyApplied");
        let message = reported["message"].as_str().unwrap_or_default();
        ensure!(
            reported["status"] == "False" && message.contains("AppliedFailed: there is no room"),
            "{reported}"
        );
        Ok(())
    })
    .await?;
    agent.refuses = Vec::new();
    until_applied(scene, &agent).await?;
    end(scene, &mut agent).await
}

async fn a_plan_reads_the_works_of_the_cluster(scene: &mut Scene) -> Result<()> {
    let mut agent = start(scene).await?;
    apply(scene, "plain").await?;
    until_applied(scene, &agent).await?;
    let changed = manifests::config_map("my-config", "two").to_string();
    let line = ["entourage", "plan", "-f", "-", "-n", scene.ns.as_str()];
    let Command::Plan(args) = Cli::try_parse_from(line)?.command else {
        unreachable!()
    };
    let objects = files::parse(&changed, "the test")?;
    let simulated = plan::against(&args, &scene.hub.client, &scene.ns, &objects).await?;
    let report = simulated.simulation.report();
    let read = simulated.remarks.iter().any(|remark| {
        remark.starts_with("members in Pull mode are read by their Works") && remark.contains(CLUSTER)
    });
    ensure!(
        read && !report.unread.contains_key(CLUSTER),
        "{:?}",
        simulated.remarks
    );
    for (kind, fate) in [
        ("ConfigMap", Fate::Changed),
        ("Deployment", Fate::Unchanged),
        ("Secret", Fate::Unchanged),
    ] {
        let found = report.outcomes.iter().find(|each| {
            each.place == Place::Member(CLUSTER.into())
                && &*each.object.gvk.kind == kind
                && *each.object.namespace == *scene.ns
        });
        let found = found.with_context(|| format!("{kind} is not in the plan"))?;
        ensure!(found.fate == fate, "{kind}: {:?} {}", found.fate, found.message);
    }
    end(scene, &mut agent).await
}

async fn a_copy_is_removed_when_the_agent_has_removed_it(scene: &mut Scene) -> Result<()> {
    let mut agent = start(scene).await?;
    apply(scene, "plain").await?;
    until_applied(scene, &agent).await?;
    agent.removes = false;
    scene.delete("Deployment", "myapp").await?;
    eventually(
        "the Work is being deleted, and the agent is waited for",
        async || {
            agent.round().await?;
            let work = agent
                .work(&scene.ns, "Deployment", "myapp")
                .await?
                .context("a Work")?;
            ensure!(work["metadata"]["deletionTimestamp"].is_string());
            Ok(())
        },
    )
    .await?;
    ensure!(
        scene
            .hub
            .get("ResourceBinding", &scene.ns, "myapp-deployment")
            .await?
            .is_some()
    );
    let config = agent
        .work(&scene.ns, "ConfigMap", "my-config")
        .await?
        .context("its Work")?;
    ensure!(
        config["metadata"]["deletionTimestamp"].is_null(),
        "what the Deployment needs stays as long as it"
    );
    agent.removes = true;
    eventually("nothing is left", async || {
        agent.round().await?;
        for (kind, name) in [
            ("Deployment", "myapp"),
            ("ConfigMap", "my-config"),
            ("Secret", "login"),
        ] {
            ensure!(agent.work(&scene.ns, kind, name).await?.is_none(), "{kind}");
        }
        let binding = scene
            .hub
            .get("ResourceBinding", &scene.ns, "myapp-deployment")
            .await?;
        ensure!(binding.is_none(), "the binding");
        Ok(())
    })
    .await?;
    end(scene, &mut agent).await
}

async fn an_agent_that_does_not_renew_its_lease_is_absent(scene: &mut Scene) -> Result<()> {
    let mut agent = start(scene).await?;
    eventually("its absence is reported", async || {
        let cluster = scene.hub.get("Cluster", "", CLUSTER).await?.context("it")?;
        let reported = condition(&cluster, "Ready");
        ensure!(
            reported["status"] == "Unknown" && reported["reason"] == "ClusterStatusUnknown",
            "{reported}"
        );
        let taints = cluster["spec"]["taints"].to_string();
        ensure!(taints.contains("cluster.karmada.io/unreachable"), "{taints}");
        Ok(())
    })
    .await?;
    eventually("it is back", async || {
        agent.round().await?;
        let cluster = scene.hub.get("Cluster", "", CLUSTER).await?.context("it")?;
        ensure!(condition(&cluster, "Ready")["status"] == "True");
        let taints = cluster["spec"]["taints"].to_string();
        ensure!(!taints.contains("cluster.karmada.io/unreachable"), "{taints}");
        Ok(())
    })
    .await?;
    end(scene, &mut agent).await
}

/// The number of GETs of a Lease by the controllers.
async fn gets_of_leases(scene: &Scene) -> Result<u64> {
    let metrics = scene.controllers()?.metrics().await?;
    let of_leases = metrics.lines().filter_map(|line| {
        let rest =
            line.strip_prefix(r#"entourage_api_requests_total{server="hub",verb="get",resource="leases","#)?;
        rest.rsplit_once(' ')?.1.parse::<u64>().ok()
    });
    Ok(of_leases.sum())
}

async fn an_agent_that_renews_is_present_although_no_watch_reports_it(scene: &mut Scene) -> Result<()> {
    let mut agent = register(scene).await?;
    // Longer than a busy machine holds up a renewal.
    scene.options.cluster_monitor_grace = Duration::from_secs(10);
    agent.report().await?;
    // No event of any watch of the hub arrives.
    let mut mute: FaultPlan = "watch-drop=100%".parse()?;
    mute.only = vec!["hub".into()];
    scene.launch(mute)?;
    scene.controllers()?.ready().await?;
    // A patience of several graces passes between two GETs.
    eventually("its Lease is read for the second time", async || {
        agent.renew().await?;
        let cluster = scene.hub.get("Cluster", "", CLUSTER).await?.context("it")?;
        let ready = condition(&cluster, "Ready");
        assert_eq!(ready["status"], "True", "{ready}");
        let count = gets_of_leases(scene).await?;
        ensure!(count >= 2, "{count} GETs");
        Ok(())
    })
    .await?;
    eventually("its absence is reported", async || {
        let cluster = scene.hub.get("Cluster", "", CLUSTER).await?.context("it")?;
        ensure!(condition(&cluster, "Ready")["status"] == "Unknown");
        Ok(())
    })
    .await?;
    scene.kill();
    scene.start().await?;
    until_ready(scene, &agent).await?;
    end(scene, &mut agent).await
}

const DEFAULT: &str = include_str!("../../../config/rbac/role.yaml");
const SECRETS: &str = include_str!("../../../config/rbac-kinds/secrets/role.yaml");

async fn leases_that_may_not_be_listed_are_reported_and_nothing_else_follows(
    scene: &mut Scene,
) -> Result<()> {
    // The default rights have none for it.
    scene.options.distribute = false;
    let (mut rules, all) = roles(DEFAULT)?;
    rules.extend(roles(SECRETS)?.0);
    let mut without = all.clone();
    for (namespace, rules) in &mut without {
        let lacks = |rule: &Value| !rule["resources"].to_string().contains("leases");
        if namespace == "karmada-cluster"
            && let Some(rules) = rules.as_array_mut()
        {
            rules.retain(lacks);
        }
    }
    let mut agent = register(scene).await?;
    agent.report().await?;
    let made = granted(scene, &rules, without).await?;
    let reported = async {
        scene.start().await?;
        // The agent renews nothing, for longer than the grace.
        eventually("it is reported", async || {
            let cluster = scene.hub.get("Cluster", "", CLUSTER).await?.context("it")?;
            let reported = condition(&cluster, "AgentWatched");
            let message = reported["message"].as_str().unwrap_or_default();
            ensure!(
                reported["status"] == "False" && reported["reason"] == "RightsMissing",
                "{}",
                cluster["status"]["conditions"]
            );
            for part in [
                "list and watch leases.coordination.k8s.io",
                "namespace karmada-cluster",
                "forbidden",
            ] {
                ensure!(message.contains(part), "{part}: {message}");
            }
            Ok(())
        })
        .await?;
        scene.quiet().await?;
        let cluster = scene.hub.get("Cluster", "", CLUSTER).await?.context("it")?;
        ensure!(condition(&cluster, "Ready")["status"] == "True", "{cluster}");
        ensure!(!cluster["spec"]["taints"].is_array(), "{cluster}");
        Ok(())
    };
    let reported = reported.await;
    unlimit(scene, &made).await?;
    scene.kill();
    reported?;
    // With the rights that config/rbac grants.
    let made = granted(scene, &rules, all).await?;
    let ended = async {
        scene.start().await?;
        eventually("it is reported no more", async || {
            agent.round().await?;
            let cluster = scene.hub.get("Cluster", "", CLUSTER).await?.context("it")?;
            let reported = condition(&cluster, "AgentWatched");
            ensure!(reported.is_null(), "{reported}");
            Ok(())
        })
        .await?;
        end(scene, &mut agent).await
    };
    let ended = ended.await;
    unlimit(scene, &made).await?;
    scene.kill();
    ended
}

async fn an_object_of_its_cluster_is_promoted_by_a_kubeconfig(scene: &mut Scene) -> Result<()> {
    let mut agent = register(scene).await?;
    scene
        .apply_on("member3", manifests::config_map("conf", "one"))
        .await?;
    let system = scene
        .member("member3")?
        .get("Namespace", "", "kube-system")
        .await?;
    let id = system.context("a namespace")?["metadata"]["uid"].clone();
    be(scene, &id).await?;
    let line = ["cm", "conf", "-n", &scene.ns, "-C", CLUSTER];
    let Err(refused) = scene.bed.promote(&line).await else {
        bail!("it cannot be reached from the hub");
    };
    let refused = format!("{refused:#}");
    ensure!(refused.contains("give --cluster-kubeconfig FILE"), "{refused}");
    let file = scene.bed.cluster("member3")?.kubeconfig_path();
    let file = file.to_str().context("text")?;
    let printed = scene
        .bed
        .promote(&[&line[..], &["--cluster-kubeconfig", file]].concat())
        .await?;
    ensure!(printed.contains("configmap/conf created"), "{printed}");

    // Two Clusters of one id would be one too many for the controllers.
    be(scene, &json!("zz-pull-id")).await?;
    scene.start().await?;
    until_ready(scene, &agent).await?;
    eventually("the agent is asked to take it over", async || {
        agent.round().await?;
        let work = agent
            .work(&scene.ns, "ConfigMap", "conf")
            .await?
            .context("a Work")?;
        let manifest = &work["spec"]["workload"]["manifests"][0];
        ensure!(manifest["data"]["key"] == "one", "{manifest}");
        let asked = &manifest["metadata"]["annotations"]["work.karmada.io/conflict-resolution"];
        ensure!(asked == "overwrite", "{asked}");
        let binding = scene.binding("conf-configmap").await?;
        ensure!(
            condition(&binding, "FullyApplied")["status"] == "True",
            "{binding}"
        );
        Ok(())
    })
    .await?;
    scene.delete("ConfigMap", "conf").await?;
    scene.delete_on("member3", "ConfigMap", "conf").await?;
    end(scene, &mut agent).await
}

/// Sets the id of the cluster.
async fn be(scene: &Scene, id: &Value) -> Result<()> {
    let set = |cluster: &mut Value| cluster["spec"]["id"] = id.clone();
    scene.hub.edit("Cluster", "", CLUSTER, set).await.map(drop)
}

//! Each right of the controllers on the hub that is taken away: it is named, nothing is deleted, and the work goes on when it is back.
//!
//! The rights are those of the generated roles, so a new one is denied here by itself. What no table row exercises fails the test.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context as _, Result, ensure};
use entourage_e2e::{
    harness::{Scene, eventually, eventually_within, manifests},
    tests,
};
use serde_json::{Value, json};

use super::distribution_rights::{granted, roles, unlimit};

tests![Embedded:
    each_right_to_list_or_watch_that_is_denied_is_named_and_works_again_when_it_is_granted,
    each_right_to_write_that_is_denied_is_named_and_works_again_when_it_is_granted,
];

/// The roles of the controllers, as `config/hub` grants them.
const ROLES: [&str; 2] = [
    include_str!("../../../config/rbac/role.yaml"),
    include_str!("../../../config/rbac-kinds/secrets/role.yaml"),
];

/// The kinds of rights that no scene here uses, with the reason. A right that is not among them must be exercised.
const UNUSED: [(&str, &str, &str); 16] = [
    (
        "*",
        "customresourcedefinitions",
        "only when a kind that was served is not served any more",
    ),
    ("*", "nodes", "asked for once, of a hub with workload controllers"),
    ("*", "works", "in Pull mode, and with --work-objects=mirror"),
    ("*", "works/status", "with --work-objects=mirror"),
    ("*", "leases", "in Pull mode; leader election is off in scenes"),
    ("*", "workloadrebalancers/status", "nobody asks for a rebalancing"),
    ("delete", "workloadrebalancers", "nobody asks for a rebalancing"),
    ("*", "federatedresourcequotas/status", "there is no quota"),
    ("patch", "federatedresourcequotas", "there is no quota"),
    (
        "*",
        "clusterresourcebindings",
        "its namespaced counterpart stands for it",
    ),
    (
        "*",
        "clusterresourcebindings/status",
        "its namespaced counterpart stands for it",
    ),
    (
        "patch",
        "clusterpropagationpolicies",
        "its namespaced counterpart stands for it",
    ),
    (
        "patch",
        "clusterpropagationpolicies/status",
        "its namespaced counterpart stands for it",
    ),
    (
        "get",
        "propagationpolicies",
        "only where a watch and a write disagree",
    ),
    (
        "get",
        "clusterpropagationpolicies",
        "only where a watch and a write disagree",
    ),
    (
        "*",
        "namespaces",
        "written for a Cluster that joins or leaves; the members of a scene have joined",
    ),
];

/// The templates that stand for all kinds: their rights are one row of the table of controllers.
const TEMPLATES: [&str; 3] = ["configmaps", "deployments", "deployments/status"];

/// A right on the whole hub.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Right {
    group: String,
    resource: String,
    verb: String,
}

impl Right {
    /// The beginning of the metric that counts its requests, up to the code.
    fn counter(&self) -> String {
        let (verb, resource) = (&self.verb, &self.resource);
        format!(
            "entourage_api_requests_total{{server=\"hub\",verb=\"{verb}\",resource=\"{resource}\",code=\""
        )
    }

    /// The number of requests with this code, and with any other.
    fn counted(&self, metrics: &str) -> (u64, u64) {
        let counter = self.counter();
        let lines = metrics.lines().filter_map(|line| line.strip_prefix(&counter));
        lines.fold((0, 0), |(refused, others), rest| {
            let count: u64 = rest
                .rsplit(' ')
                .next()
                .and_then(|count| count.parse().ok())
                .unwrap_or_default();
            match rest.starts_with("403") {
                true => (refused + count, others),
                false if rest.starts_with('2') => (refused, others + count),
                false => (refused, others),
            }
        })
    }

    fn is_unused(&self) -> bool {
        UNUSED
            .iter()
            .any(|(verb, resource, _)| (*verb == "*" || *verb == self.verb) && *resource == self.resource)
    }

    fn is_read(&self) -> bool {
        ["list", "watch"].contains(&&*self.verb)
    }
}

/// The rights of rules, but for those on single objects.
fn rights(rules: &[Value]) -> BTreeSet<Right> {
    let strings = |value: &Value| -> Vec<String> {
        let all = value.as_array().into_iter().flatten();
        all.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut all = BTreeSet::new();
    for rule in rules.iter().filter(|rule| rule["resourceNames"].is_null()) {
        for group in strings(&rule["apiGroups"]) {
            for resource in strings(&rule["resources"]) {
                for verb in strings(&rule["verbs"]) {
                    let (group, resource) = (group.clone(), resource.clone());
                    all.insert(Right {
                        group,
                        resource,
                        verb,
                    });
                }
            }
        }
    }
    all
}

/// The rules without some rights.
fn without(rules: &[Value], denied: &[&Right]) -> Vec<Value> {
    let mut kept: Vec<Value> = rules
        .iter()
        .filter(|rule| !rule["resourceNames"].is_null())
        .cloned()
        .collect();
    for right in rights(rules).iter().filter(|right| !denied.contains(right)) {
        kept.push(json!({
            "apiGroups": [right.group], "resources": [right.resource], "verbs": [right.verb],
        }));
    }
    kept
}

/// All rules on the whole hub, with the namespaced ones beside them.
async fn limited(scene: &mut Scene) -> Result<(Vec<Value>, Vec<String>)> {
    scene.options.distribute = false;
    let (mut rules, mut namespaced) = (Vec::new(), Vec::new());
    for text in ROLES {
        let (everywhere, there) = roles(text)?;
        rules.extend(everywhere);
        namespaced.extend(there);
    }
    let made = granted(scene, &rules, namespaced).await?;
    Ok((rules, made))
}

async fn grant(scene: &Scene, rules: Vec<Value>) -> Result<()> {
    let name = scene.user.clone().context("no user")?;
    let edit = |role: &mut Value| role["rules"] = json!(rules);
    scene.hub.edit("ClusterRole", "", &name, edit).await?;
    Ok(())
}

/// Checks what holds whatever is denied: the controllers run, nothing was deleted anywhere, and the copies are there.
async fn unharmed(scene: &Scene, what: &str) -> Result<()> {
    ensure!(
        scene.bed.log.panics().is_empty(),
        "{what}: {:?}",
        scene.bed.log.panics()
    );
    scene
        .controllers()?
        .metrics()
        .await
        .with_context(|| format!("{what}: the controllers ended"))?;
    let writes = scene.writes();
    let deletions: Vec<&String> = writes.iter().filter(|write| write.contains(" delete ")).collect();
    ensure!(deletions.is_empty(), "{what}: {deletions:#?}");
    for (kind, name) in [("Deployment", "myapp"), ("ConfigMap", "my-config")] {
        scene.copy("member1", kind, name).await.context(what.to_owned())?;
    }
    Ok(())
}

async fn each_right_to_list_or_watch_that_is_denied_is_named_and_works_again_when_it_is_granted(
    scene: &mut Scene,
) -> Result<()> {
    let (rules, made) = limited(scene).await?;
    let tested = reads(scene, &rules).await;
    unlimit(scene, &made).await?;
    scene.kill();
    tested
}

/// The number of groups that rights to read are denied in, after that of the kinds which name other kinds.
const GROUPS: usize = 2;

async fn reads(scene: &mut Scene, rules: &[Value]) -> Result<()> {
    scene.example().await?;
    scene.kill();
    let all = rights(rules);
    let read = all.iter().filter(|right| right.is_read() && !right.is_unused());
    // Only what a policy selects or a template needs is watched.
    let is_template = |right: &Right| {
        let patch = Right {
            verb: "patch".into(),
            ..right.clone()
        };
        let finalizers = Right {
            verb: "update".into(),
            resource: format!("{}/finalizers", right.resource),
            ..right.clone()
        };
        all.contains(&patch) && all.contains(&finalizers)
    };
    let read: Vec<&Right> = read
        .filter(|right| !is_template(right) || TEMPLATES.contains(&&*right.resource))
        .collect();
    // Of one resource either the list is denied or the watch: without a list there is no watch.
    let names = |right: &Right| right.group.ends_with("karmada.io");
    for group in 0..=GROUPS {
        for (list, watch) in [("list", "watch"), ("watch", "list")] {
            let of_it = |(place, right): &(usize, &&Right)| match group {
                0 => names(right),
                _ => !names(right) && place % GROUPS + 1 == group,
            };
            let resources: Vec<&Right> = read
                .iter()
                .enumerate()
                .filter(of_it)
                .map(|(_, right)| *right)
                .collect();
            let denied = resources.iter().enumerate().filter(|(place, right)| {
                let verb = if place % 2 == 0 { list } else { watch };
                right.verb == verb
            });
            let denied: Vec<&Right> = denied.map(|(_, right)| *right).collect();
            if denied.is_empty() {
                continue;
            }
            denied_reads(scene, rules, &denied).await?;
        }
    }
    Ok(())
}

async fn denied_reads(scene: &mut Scene, rules: &[Value], denied: &[&Right]) -> Result<()> {
    grant(scene, without(rules, denied)).await?;
    scene.launch(entourage_e2e::faults::FaultPlan::default())?;
    eventually(
        "each list and watch that is denied is counted as refused",
        async || {
            let metrics = scene.controllers()?.metrics().await?;
            let missing = denied.iter().filter(|right| right.counted(&metrics).0 == 0);
            let missing: Vec<&&Right> = missing.collect();
            ensure!(missing.is_empty(), "not exercised: {missing:?}");
            Ok(())
        },
    )
    .await?;
    // The line follows the request that is counted.
    eventually("the log names each list and watch that is denied", async || {
        for right in denied {
            let named = scene.bed.log.with(&format!("cannot {} resource", right.verb));
            let resource = format!("resource={}", right.resource);
            ensure!(
                named.iter().any(|line| line.contains(&resource)),
                "no line of the log names {right:?}: {named:#?}"
            );
        }
        Ok(())
    })
    .await?;
    unharmed(scene, &format!("{denied:?}")).await?;
    let before = scene.controllers()?.metrics().await?;
    grant(scene, rules.to_vec()).await?;
    eventually("what was denied works again", async || {
        let metrics = scene.controllers()?.metrics().await?;
        let waiting = denied
            .iter()
            .filter(|right| right.counted(&metrics).1 <= right.counted(&before).1);
        let waiting: Vec<&&Right> = waiting.collect();
        ensure!(waiting.is_empty(), "still denied: {waiting:?}");
        Ok(())
    })
    .await?;
    unharmed(scene, &format!("{denied:?}, granted")).await?;
    scene.kill();
    scene.bed.log.clear();
    Ok(())
}

async fn each_right_to_write_that_is_denied_is_named_and_works_again_when_it_is_granted(
    scene: &mut Scene,
) -> Result<()> {
    let (rules, made) = limited(scene).await?;
    let tested = writes(scene, &rules).await;
    unlimit(scene, &made).await?;
    scene.kill();
    tested
}

async fn writes(scene: &mut Scene, rules: &[Value]) -> Result<()> {
    scene.example().await?;
    let all = rights(rules);
    let is_template = |right: &Right| {
        let base = right.resource.split('/').next().unwrap_or_default().to_owned();
        let finalizers = Right {
            verb: "update".into(),
            resource: format!("{base}/finalizers"),
            ..right.clone()
        };
        all.contains(&finalizers)
    };
    let writes = all.iter().filter(|right| !right.is_read() && !right.is_unused());
    // The right to update finalizers is asked for by an admission plug-in alone.
    let writes = writes.filter(|right| !right.resource.ends_with("/finalizers"));
    let writes: Vec<&Right> = writes
        .filter(|right| !is_template(right) || TEMPLATES.contains(&&*right.resource))
        .collect();
    let mut unexercised = Vec::new();
    for (number, right) in writes.iter().enumerate() {
        grant(scene, without(rules, &[*right])).await?;
        let before = scene.controllers()?.metrics().await?;
        let space = scene.another_space().await?;
        for object in manifests::example() {
            space.apply(object).await?;
        }
        // A cluster's and a policy's own fields, and a deletion.
        let touch = |live: &mut Value| live["metadata"]["labels"]["touched"] = json!(format!("t{number}"));
        scene.hub.edit("Cluster", "", "member3", touch).await?;
        let asked = eventually_within(Duration::from_secs(10), "it is counted as refused", async || {
            let metrics = scene.controllers()?.metrics().await?;
            ensure!(
                right.counted(&metrics).0 > right.counted(&before).0,
                "not exercised"
            );
            Ok(())
        });
        if asked.await.is_err() {
            unexercised.push(*right);
        }
        unharmed(scene, &format!("{right:?}")).await?;
        grant(scene, rules.to_vec()).await?;
        space
            .until_settled(&["member1", "member2"])
            .await
            .with_context(|| format!("{right:?}, granted"))?;
    }
    ensure!(
        unexercised.is_empty(),
        "no request was refused for want of these rights; exercise them here, or say in UNUSED why not: {unexercised:#?}"
    );
    Ok(())
}

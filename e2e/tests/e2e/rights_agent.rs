//! Each right of an agent on the hub that is taken away: it is named, nothing is deleted, and the work goes on when it is back.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use entourage_e2e::{
    harness::{Agent, Scene, status_code},
    tests,
};
use serde_json::{Value, json};

use super::{
    agent::{applied, cluster, config, create, edit, has, lease, registered, start_as, works},
    rights::{Answers, Places, Right, answers, grant_to, of},
    rights_denied::{until_named, until_resumed},
};

tests![Embedded: each_right_of_an_agent_that_is_denied_is_named_and_made_up_for];

/// The rights that are denied together: the request for none depends on the answer to another.
const ROUNDS: [&[(&str, &str)]; 6] = [
    &[("list", "clusters.cluster.karmada.io")],
    &[
        ("watch", "clusters.cluster.karmada.io"),
        ("list", "works.work.karmada.io"),
    ],
    &[("watch", "works.work.karmada.io"), ("create", "events")],
    // Its id.
    &[("patch", "clusters.cluster.karmada.io")],
    &[
        ("get", "works.work.karmada.io"),
        ("patch", "clusters.cluster.karmada.io/status"),
        ("patch", "leases.coordination.k8s.io"),
    ],
    &[
        ("get", "clusters.cluster.karmada.io"),
        ("create", "leases.coordination.k8s.io"),
        ("patch", "works.work.karmada.io"),
        ("patch", "works.work.karmada.io/status"),
    ],
];

/// The rights that are not needed here, and why.
const UNUSED: [(&str, &str, &str); 1] = [(
    "patch",
    "events",
    "asked for when an Event is repeated, which none is here",
)];

/// Rights for requests that are not repeated after a refusal; the next one is sent.
const LOST: [(&str, &str); 2] = [("create", "events"), ("get", "clusters.cluster.karmada.io")];

/// The rights of `config/agent/hub`, for the cluster of the test.
fn rights(scene: &Scene) -> Result<BTreeSet<Right>> {
    let text = include_str!("../../../config/agent/hub/role.yaml");
    of(&text.replace("member1", cluster(scene)))
}

fn is_in(table: &[(&str, &str)], right: &Right) -> bool {
    table.contains(&(&*right.verb, &*right.resource))
}

async fn grant(scene: &Scene, denied: &[Right]) -> Result<String> {
    let (user, all) = (scene.own("agent"), rights(scene)?);
    let places: Places = all
        .iter()
        .map(|right| (right.namespace.clone(), Vec::new()))
        .collect();
    grant_to(
        scene,
        &user,
        places,
        all.iter().filter(|right| !denied.contains(right)),
    )
    .await?;
    Ok(user)
}

/// Each right is in one round, or in the table of those that are not needed.
fn is_complete(all: &BTreeSet<Right>) -> Result<()> {
    for right in all {
        let rounds = ROUNDS.iter().filter(|round| is_in(round, right)).count();
        let unused = UNUSED
            .iter()
            .filter(|(verb, resource, _)| is_in(&[(*verb, *resource)], right))
            .count();
        ensure!(
            rounds + unused == 1,
            "{} is in {rounds} rounds and {unused} rows of UNUSED",
            right.words()
        );
    }
    Ok(())
}

async fn each_right_of_an_agent_that_is_denied_is_named_and_made_up_for(scene: &mut Scene) -> Result<()> {
    let all = rights(scene)?;
    is_complete(&all)?;
    registered(scene, "Pull").await?;
    create(scene, "config", config("0")).await?;
    for (number, round) in ROUNDS.iter().enumerate() {
        let denied: Vec<Right> = all.iter().filter(|right| is_in(round, right)).cloned().collect();
        ensure!(denied.len() == round.len(), "not granted: {round:?}");
        scene.bed.log.clear();
        let user = grant(scene, &denied).await?;
        forget(scene).await?;
        need(scene, number).await?;
        let agent = start_as(scene, Some(&user))?;
        until_named(scene, &agent.faults, &denied, &Answers::new()).await?;
        unharmed(scene, &agent)?;
        let before = answers(&agent.faults);
        grant(scene, &[]).await?;
        let repeated: Vec<Right> = denied.into_iter().filter(|right| !is_in(&LOST, right)).collect();
        until_resumed(&agent.faults, &repeated, &before).await?;
        let events: Vec<Right> = all
            .iter()
            .filter(|right| is_in(&[LOST[0]], right))
            .cloned()
            .collect();
        one_more(scene, &format!("last-{number}")).await?;
        until_resumed(&agent.faults, &events, &before).await?;
        agent.ready().await?;
        has(scene, Some(&(number + 1).to_string())).await?;
        applied(scene, "config").await?;
        unharmed(scene, &agent)?;
        let unused = UNUSED.iter().filter(|(verb, resource, _)| {
            let mut rows = all.iter().filter(|right| is_in(&[(*verb, *resource)], right));
            rows.any(|right| right.counted(&answers(&agent.faults)) != (0, 0))
        });
        let unused: Vec<_> = unused.collect();
        ensure!(unused.is_empty(), "needed: {unused:?}");
        agent.stop().await?;
    }
    Ok(())
}

/// Has an agent that starts need all its rights: a Work is edited, one is new, which an Event reports, one ends, and its Lease is not
/// there.
async fn need(scene: &Scene, number: usize) -> Result<()> {
    let value = (number + 1).to_string();
    edit(scene, "config", |work| {
        work["spec"]["workload"]["manifests"][0]["data"]["k"] = json!(value);
    })
    .await?;
    let (new, other) = (format!("new-{number}"), format!("other-{number}"));
    one_more(scene, &new).await?;
    one_more(scene, &other).await?;
    let path = format!(
        "/apis/work.karmada.io/v1alpha1/namespaces/{}/works/{other}",
        works(scene)
    );
    scene.hub.call("DELETE", &path, None).await?;
    // It is there when the agent has renewed it.
    match scene.hub.call("DELETE", &lease(scene), None).await {
        Err(error) if status_code(&error) != 404 => Err(error),
        _ => Ok(()),
    }
}

/// A Work with a ConfigMap of the same name.
async fn one_more(scene: &Scene, name: &str) -> Result<()> {
    let mut map = config("0");
    map["metadata"]["name"] = json!(name);
    create(scene, name, map).await.map(drop)
}

/// Makes the Cluster one that no agent has reported about.
async fn forget(scene: &Scene) -> Result<()> {
    let without_status = |live: &mut Value| {
        if let Some(all) = live.as_object_mut() {
            all.remove("status");
        }
    };
    let without_id = |live: &mut Value| {
        if let Some(spec) = live["spec"].as_object_mut() {
            spec.remove("id");
        }
    };
    let name = cluster(scene);
    scene.hub.edit("Cluster", "", name, without_id).await?;
    scene
        .hub
        .edit_status("Cluster", "", name, without_status)
        .await
        .map(drop)
}

/// Checks what holds whatever is denied: the agent runs, and what was not ended is on its cluster.
fn unharmed(scene: &Scene, agent: &Agent) -> Result<()> {
    let panics = scene.bed.log.panics();
    ensure!(panics.is_empty(), "{panics:?}");
    let writes = agent.writes();
    let ended = format!(" {}/other-", scene.ns);
    let deleted: Vec<&String> = writes
        .iter()
        .filter(|write| write.contains(" delete configmaps") && !write.contains(&ended))
        .collect();
    ensure!(deleted.is_empty(), "{deleted:#?}");
    Ok(())
}

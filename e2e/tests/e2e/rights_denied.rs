//! Each right of the controllers on the hub that is taken away: it is named, nothing is deleted, and the work goes on when it is back.
//!
//! The rights are those of the generated roles ([`super::rights`]), so a new one is denied here by itself, and one whose verb no test is about fails.
//! Several are denied at a time where the call for one does not depend on the answer to another.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Result, ensure};
use entourage_e2e::{
    faults::{FaultPlan, Faults},
    harness::{Scene, eventually, eventually_within},
    tests,
};

use super::{
    rights::{Answers, Right, all, answers, conflicts, forget_the_address, forget_the_lease, grant, prepare},
    rights_life::Life,
};

tests![Embedded:
    lists_and_watches_of_our_kinds_that_are_denied_are_named_and_resumed,
    watches_and_lists_of_our_kinds_that_are_denied_are_named_and_resumed,
    lists_and_watches_of_other_kinds_that_are_denied_are_named_and_resumed,
    watches_and_lists_of_other_kinds_that_are_denied_are_named_and_resumed,
    creations_that_are_denied_are_named_and_made_up_for,
    writes_of_a_status_that_are_denied_are_named_and_made_up_for,
    changes_of_our_kinds_that_are_denied_are_named_and_made_up_for,
    changes_of_other_kinds_that_are_denied_are_named_and_made_up_for,
    deletions_that_are_denied_are_named_and_made_up_for,
    reads_that_are_denied_are_named_and_made_up_for,
    reads_after_a_conflict_that_are_denied_are_named_and_made_up_for,
    rights_without_which_nothing_begins_are_named_and_waited_for,
];

/// Rights for requests that are sent once, when the controllers start.
const ONCE: [(&str, &str); 1] = [("list", "nodes")];

/// Rights for requests that are not repeated after a refusal; the next one is sent.
const LOST: [(&str, &str); 2] = [("create", "events"), ("patch", "events")];

/// The rights without which a process does nothing else, or not until it is connected to a member: each is denied alone.
const FIRST: [(&str, &str); 7] = [
    ("get", "namespaces"),
    ("list", "nodes"),
    ("get", "secrets"),
    ("patch", "secrets"),
    ("get", "leases.coordination.k8s.io"),
    ("create", "leases.coordination.k8s.io"),
    ("update", "leases.coordination.k8s.io"),
];

fn is_in(table: &[(&str, &str)], right: &Right) -> bool {
    table.contains(&(&*right.verb, &*right.resource))
}

/// The rights of one round, which are denied together.
fn chosen(rights: impl Fn(&Right) -> bool) -> Result<Vec<Right>> {
    let chosen = all()?
        .into_iter()
        .filter(|right| right.is_used() && !(is_in(&FIRST, right) && right.is_first()) && rights(right));
    let chosen: Vec<Right> = chosen.collect();
    ensure!(!chosen.is_empty(), "no right is denied");
    Ok(chosen)
}

fn is_read(right: &Right) -> bool {
    ["list", "watch"].contains(&&*right.verb)
}

/// True for the kinds that users make for the controllers, and for the kind that says whether bootstrap tokens are read.
fn is_ours(right: &Right) -> bool {
    right.resource.contains(".karmada.io")
        || right.resource.contains(".kruise.io")
        || right.namespace.as_deref() == Some("kube-public")
}

fn is_status(right: &Right) -> bool {
    right.resource.ends_with("/status")
}

/// Grants all rights but those that give one of the denied ones.
async fn deny(scene: &mut Scene, denied: &[Right]) -> Result<()> {
    let all = all()?;
    let is_denied = |right: &&Right| denied.iter().any(|each| each.is_granted_by(right));
    grant(scene, all.iter().filter(|right| !is_denied(right))).await
}

/// Waits until each right was asked for and refused, and the log names it, once, with what to do.
pub(super) async fn until_named(
    scene: &Scene,
    faults: &Faults,
    denied: &[Right],
    before: &Answers,
) -> Result<()> {
    eventually("each right is asked for, and refused", async || {
        let now = answers(faults);
        let missing = denied
            .iter()
            .filter(|right| right.counted(&now).0 <= right.counted(before).0);
        let missing: Vec<String> = missing.map(Right::words).collect();
        ensure!(missing.is_empty(), "not asked for: {missing:#?}");
        Ok(())
    })
    .await?;
    // The line follows the answer that is counted.
    eventually("the log names each right that is denied", async || {
        let named = scene.bed.log.with("a right is denied to this process");
        let leases = scene.bed.log.with("the lease");
        for right in denied {
            let words = right.words();
            let lines = named
                .iter()
                .filter(|line| line.contains(&format!("right=\"{words}\"")))
                .count();
            let of_leader = leases.iter().any(|line| right.is_quoted_by(line));
            ensure!(
                lines == 1 || of_leader,
                "{lines} lines of the log name {words}: {named:#?}"
            );
        }
        ensure!(
            named
                .iter()
                .all(|line| line.contains("WARN") && line.contains("docs/reference/members.md")),
            "{named:#?}"
        );
        Ok(())
    })
    .await
}

/// The longest pause before what was denied is tried again: a minute, and half of it.
const RETRIED: Duration = Duration::from_secs(100);

/// Waits until each call is made again, and answered.
pub(super) async fn until_resumed(faults: &Faults, denied: &[Right], before: &Answers) -> Result<()> {
    eventually_within(RETRIED, "what was denied is done", async || {
        let now = answers(faults);
        let waiting = denied
            .iter()
            .filter(|right| !is_in(&ONCE, right) && !is_in(&LOST, right))
            .filter(|right| right.counted(&now).1 <= right.counted(before).1);
        let waiting: Vec<String> = waiting.map(Right::words).collect();
        ensure!(waiting.is_empty(), "still not done: {waiting:#?}");
        Ok(())
    })
    .await
}

/// Checks what holds whatever is denied: the controllers run, and nothing was deleted on a member but what was of an ended life.
async fn unharmed(scene: &Scene, ended: Option<&Life>) -> Result<()> {
    let panics = scene.bed.log.panics();
    ensure!(panics.is_empty(), "{panics:?}");
    scene.controllers()?.metrics().await?;
    let deleted: Vec<String> = scene
        .writes()
        .into_iter()
        .filter(|write| write.starts_with("member") && write.contains(" delete "))
        .filter(|write| !ended.is_some_and(|life| write.contains(life.namespace())))
        .collect();
    ensure!(deleted.is_empty(), "{deleted:#?}");
    Ok(())
}

/// A hub with a life on it, whose controllers do everything. They run.
async fn begin(scene: &mut Scene) -> Result<Life> {
    prepare(scene).await?;
    grant(scene, &all()?).await?;
    scene.start().await?;
    let life = Life::begin(scene, 1).await?;
    scene.quiet().await?;
    life.change(scene, 1).await?;
    scene.quiet().await?;
    Ok(life)
}

/// Denies rights to read to a process that starts.
async fn reads(scene: &mut Scene, rights: impl Fn(&Right) -> bool, first: &str) -> Result<()> {
    let life = begin(scene).await?;
    scene.kill();
    let all: Vec<Right> = chosen(|right| is_read(right) && rights(right))?;
    // Of one resource either the list is denied or the watch: without a list there is no watch.
    let mut numbers = BTreeMap::new();
    for right in &all {
        let number = numbers.len();
        numbers.entry(right.resource.clone()).or_insert(number);
    }
    let is_denied = |right: &&Right| {
        let is_even = numbers.get(&right.resource).is_some_and(|number| number % 2 == 0);
        (right.verb == first) == is_even
    };
    let denied: Vec<Right> = all.iter().filter(is_denied).cloned().collect();
    deny(scene, &denied).await?;
    scene.launch(FaultPlan::default())?;
    until_named(scene, &scene.faults, &denied, &Answers::new()).await?;
    unharmed(scene, None).await?;
    let before = answers(&scene.faults);
    grant(scene, &self::all()?).await?;
    until_resumed(&scene.faults, &denied, &before).await?;
    scene.controllers()?.ready().await?;
    life.change(scene, 2).await?;
    life.until_delivered(2, &["member1", "member2"]).await?;
    unharmed(scene, None).await?;
    scene.kill();
    Ok(())
}

async fn lists_and_watches_of_our_kinds_that_are_denied_are_named_and_resumed(
    scene: &mut Scene,
) -> Result<()> {
    reads(scene, is_ours, "list").await
}

async fn watches_and_lists_of_our_kinds_that_are_denied_are_named_and_resumed(
    scene: &mut Scene,
) -> Result<()> {
    reads(scene, is_ours, "watch").await
}

async fn lists_and_watches_of_other_kinds_that_are_denied_are_named_and_resumed(
    scene: &mut Scene,
) -> Result<()> {
    reads(scene, |right| !is_ours(right), "list").await
}

async fn watches_and_lists_of_other_kinds_that_are_denied_are_named_and_resumed(
    scene: &mut Scene,
) -> Result<()> {
    reads(scene, |right| !is_ours(right), "watch").await
}

/// Denies rights to a process that runs, has it need them, and grants them again.
async fn acts(scene: &mut Scene, rights: impl Fn(&Right) -> bool) -> Result<()> {
    let denied = chosen(rights)?;
    let life = begin(scene).await?;
    let before = answers(&scene.faults);
    deny(scene, &denied).await?;
    let second = Life::begin(scene, 2).await?;
    // Its copies are for another member, too.
    life.change(scene, 2).await?;
    until_named(scene, &scene.faults, &denied, &before).await?;
    unharmed(scene, None).await?;
    let before = answers(&scene.faults);
    grant(scene, &all()?).await?;
    until_resumed(&scene.faults, &denied, &before).await?;
    life.until_delivered(2, &["member1", "member2"]).await?;
    second.change(scene, 1).await?;
    second.until_delivered(1, &["member1"]).await?;
    scene.quiet().await?;
    unharmed(scene, None).await?;
    scene.kill();
    Ok(())
}

async fn creations_that_are_denied_are_named_and_made_up_for(scene: &mut Scene) -> Result<()> {
    acts(scene, |right| right.verb == "create").await
}

async fn writes_of_a_status_that_are_denied_are_named_and_made_up_for(scene: &mut Scene) -> Result<()> {
    acts(scene, is_status).await
}

fn is_change(right: &Right) -> bool {
    ["patch", "update"].contains(&&*right.verb) && !is_status(right)
}

/// Without its id a policy claims nothing: the rights on templates are denied by another test.
async fn changes_of_our_kinds_that_are_denied_are_named_and_made_up_for(scene: &mut Scene) -> Result<()> {
    acts(scene, |right| is_change(right) && is_ours(right)).await
}

async fn changes_of_other_kinds_that_are_denied_are_named_and_made_up_for(scene: &mut Scene) -> Result<()> {
    acts(scene, |right| is_change(right) && !is_ours(right)).await
}

async fn reads_that_are_denied_are_named_and_made_up_for(scene: &mut Scene) -> Result<()> {
    acts(scene, |right| right.verb == "get" && !is_ours(right)).await
}

async fn deletions_that_are_denied_are_named_and_made_up_for(scene: &mut Scene) -> Result<()> {
    let denied = chosen(|right| right.verb == "delete")?;
    let life = begin(scene).await?;
    let needed = Life::begin(scene, 2).await?;
    scene.quiet().await?;
    let before = answers(&scene.faults);
    deny(scene, &denied).await?;
    life.leave_loose_ends().await?;
    life.change(scene, 2).await?;
    life.end(scene).await?;
    until_named(scene, &scene.faults, &denied, &before).await?;
    let before = answers(&scene.faults);
    grant(scene, &all()?).await?;
    until_resumed(&scene.faults, &denied, &before).await?;
    life.until_removed().await?;
    scene.quiet().await?;
    needed.change(scene, 1).await?;
    needed.until_delivered(1, &["member1"]).await?;
    unharmed(scene, Some(&life)).await?;
    scene.kill();
    Ok(())
}

async fn reads_after_a_conflict_that_are_denied_are_named_and_made_up_for(scene: &mut Scene) -> Result<()> {
    let denied = chosen(|right| right.verb == "get" && is_ours(right))?;
    let life = begin(scene).await?;
    scene.kill();
    deny(scene, &denied).await?;
    scene.launch(conflicts()?)?;
    life.change(scene, 2).await?;
    Life::begin(scene, 2).await?;
    until_named(scene, &scene.faults, &denied, &Answers::new()).await?;
    unharmed(scene, None).await?;
    let before = answers(&scene.faults);
    grant(scene, &all()?).await?;
    until_resumed(&scene.faults, &denied, &before).await?;
    unharmed(scene, None).await?;
    scene.kill();
    scene.start().await?;
    life.until_delivered(2, &["member1", "member2"]).await?;
    unharmed(scene, None).await?;
    scene.kill();
    Ok(())
}

/// Each right that is needed is denied by one of these tests.
fn is_complete() -> Result<()> {
    let is_denied = |right: &Right| {
        is_in(&FIRST, right) && right.is_first()
            || is_read(right)
            || is_status(right)
            || is_change(right)
            || ["create", "delete", "get"].contains(&&*right.verb)
    };
    let missing: Vec<String> = all()?
        .iter()
        .filter(|right| right.is_used() && !is_denied(right))
        .map(Right::words)
        .collect();
    ensure!(missing.is_empty(), "no test denies {missing:?}");
    Ok(())
}

async fn rights_without_which_nothing_begins_are_named_and_waited_for(scene: &mut Scene) -> Result<()> {
    is_complete()?;
    prepare(scene).await?;
    scene.options.leader_election = true;
    for (verb, resource) in FIRST {
        let of_it = all()?
            .into_iter()
            .filter(|right| right.is_used() && (verb, resource) == (&*right.verb, &*right.resource));
        let denied: Vec<Right> = of_it.filter(Right::is_first).collect();
        ensure!(!denied.is_empty(), "{verb} {resource}");
        scene.bed.log.clear();
        forget_the_lease(scene).await?;
        forget_the_address(scene).await?;
        deny(scene, &denied).await?;
        scene.launch(FaultPlan::default())?;
        until_named(scene, &scene.faults, &denied, &Answers::new()).await?;
        unharmed(scene, None).await?;
        let before = answers(&scene.faults);
        grant(scene, &all()?).await?;
        until_resumed(&scene.faults, &denied, &before).await?;
        scene.controllers()?.ready().await?;
        scene.kill();
    }
    Ok(())
}

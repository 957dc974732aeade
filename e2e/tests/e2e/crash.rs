//! A crash after any call leads to the same end as no crash (invariant I6).
//!
//! Only writes are counted: after a read, servers are as they were after the write before it, and what the process knew
//! is lost either way. On embedded clusters every scenario is crashed after every write; on real servers the example is,
//! and the others are after a sample of writes that follows from a seed. `ENTOURAGE_E2E_EVERY_K=1` tries all of them, and
//! before the write takes effect as well.

use anyhow::{Context as _, Result, ensure};
use entourage_e2e::{
    faults::Call,
    harness::{Outline, Scene, Space, differences, eventually, every_k, manifests, seed},
    tests,
};
use futures::{
    FutureExt as _,
    future::{FusedFuture as _, LocalBoxFuture},
};
use serde_json::json;

tests![
    the_example_survives_a_crash_after_every_odd_write,
    the_example_survives_a_crash_after_every_even_write,
    a_move_survives_a_crash_after_any_write,
    a_dropped_reference_survives_a_crash_after_any_write,
    a_deleted_workload_survives_a_crash_after_any_write,
    a_revoked_dependency_survives_a_crash_after_any_write,
    an_edit_survives_a_crash_after_any_write,
    a_shared_dependency_survives_a_crash_after_any_write,
    a_policy_without_dependencies_survives_a_crash_after_any_write,
    a_deleted_policy_survives_a_crash_after_any_write
];

/// The number of crashes of each other scenario that are tried on real servers.
const SAMPLED: usize = 2;

/// Something that is done in a space, or waited for.
pub(crate) type Act = for<'a> fn(&'a Space) -> LocalBoxFuture<'a, Result<()>>;

/// A scenario in which crashes are tried.
#[derive(Clone, Copy)]
pub(crate) struct Scenario {
    /// Makes the initial state.
    pub given: Act,
    /// Waits until that has come to rest.
    pub arrived: Act,
    /// The action under test. It may wait for its effects: after a crash the controllers run again.
    pub act: Act,
}

impl Scenario {
    /// The scenario of an action on the settled example.
    pub(crate) const fn example(act: Act) -> Self {
        Self {
            given: |space| Box::pin(arrives(space)),
            arrived: |space| Box::pin(space.until_settled(&["member1", "member2"])),
            act,
        }
    }
}

async fn a_move_survives_a_crash_after_any_write(scene: &mut Scene) -> Result<()> {
    survives_crashes(scene, Scenario::example(|space| Box::pin(moves(space)))).await
}

async fn a_dropped_reference_survives_a_crash_after_any_write(scene: &mut Scene) -> Result<()> {
    survives_crashes(scene, Scenario::example(|space| Box::pin(drops(space)))).await
}

async fn a_deleted_workload_survives_a_crash_after_any_write(scene: &mut Scene) -> Result<()> {
    survives_crashes(
        scene,
        Scenario::example(|space| Box::pin(space.delete("Deployment", "myapp"))),
    )
    .await
}

async fn a_revoked_dependency_survives_a_crash_after_any_write(scene: &mut Scene) -> Result<()> {
    survives_crashes(
        scene,
        Scenario::example(|space| Box::pin(space.delete("ConfigMap", "my-config"))),
    )
    .await
}

async fn an_edit_survives_a_crash_after_any_write(scene: &mut Scene) -> Result<()> {
    survives_crashes(scene, Scenario::example(|space| Box::pin(edits(space)))).await
}

async fn a_shared_dependency_survives_a_crash_after_any_write(scene: &mut Scene) -> Result<()> {
    survives_crashes(scene, Scenario::example(|space| Box::pin(shares(space)))).await
}

async fn a_policy_without_dependencies_survives_a_crash_after_any_write(scene: &mut Scene) -> Result<()> {
    survives_crashes(scene, Scenario::example(|space| Box::pin(turns_off(space)))).await
}

async fn a_deleted_policy_survives_a_crash_after_any_write(scene: &mut Scene) -> Result<()> {
    let deletes: Act = |space| Box::pin(space.delete("PropagationPolicy", "myapp-propagation"));
    survives_crashes(scene, Scenario::example(deletes)).await
}

async fn moves(space: &Space) -> Result<()> {
    space
        .apply(manifests::policy(&["member2", "member3"]))
        .await
        .map(drop)
}

async fn drops(space: &Space) -> Result<()> {
    space.apply(manifests::deployment("myapp", &[])).await.map(drop)
}

async fn edits(space: &Space) -> Result<()> {
    space
        .apply(manifests::config_map("my-config", "two"))
        .await
        .map(drop)
}

async fn shares(space: &Space) -> Result<()> {
    space
        .apply(manifests::deployment("another", &["my-config"]))
        .await?;
    let mut policy = manifests::policy_for("another", "Deployment", "another", &["member2", "member3"]);
    policy["spec"]["propagateDeps"] = json!(true);
    space.apply(policy).await.map(drop)
}

async fn turns_off(space: &Space) -> Result<()> {
    let mut policy = manifests::policy(&["member1", "member2"]);
    policy["spec"]["propagateDeps"] = json!(false);
    space.apply(policy).await.map(drop)
}

async fn arrives(space: &Space) -> Result<()> {
    for object in manifests::example() {
        space.apply(object).await?;
    }
    Ok(())
}

async fn the_example_survives_a_crash_after_every_odd_write(scene: &mut Scene) -> Result<()> {
    example_survives(scene, |call| call % 2 == 1).await
}

async fn the_example_survives_a_crash_after_every_even_write(scene: &mut Scene) -> Result<()> {
    example_survives(scene, |call| call % 2 == 0).await
}

/// The spaces of earlier crashes stay, so that each start has more to read: half of the calls in one test are enough.
async fn example_survives(scene: &mut Scene, is_tried: fn(&usize) -> bool) -> Result<()> {
    // The undisturbed run, from the start of the process on.
    let space = scene.another_space().await?;
    arrives(&space).await?;
    scene.start().await?;
    space.until_settled(&["member1", "member2"]).await?;
    let count = scene.quiet().await?;
    let wanted = space.outline().await?;
    let mut spaces = vec![space];
    for plan in plans(&(1..=count).filter(is_tried).collect::<Vec<_>>()) {
        scene.kill();
        let space = scene.another_space().await?;
        arrives(&space).await?;
        scene.launch(plan.parse()?)?;
        survives(scene, &space, |_| Box::pin(async { Ok(()) }), &wanted)
            .await
            .with_context(|| plan.clone())?;
        spaces.push(space);
    }
    // The settled spaces have stayed settled while the others crashed.
    scene.quiet().await?;
    for space in &spaces {
        let differences = differences(&wanted, &space.outline().await?);
        ensure!(differences.is_empty(), "later, in {}: {differences:#?}", space.ns);
    }
    Ok(())
}

/// A scenario ends as without a crash, whichever of its writes the crash comes after.
pub(crate) async fn survives_crashes(scene: &mut Scene, scenario: Scenario) -> Result<()> {
    let seed = seed();
    // Once without a crash: what is written, and how it ends.
    scene.start().await?;
    let calm = settled(scene, scenario, 1).await?;
    let calm = calm.first().context("one space")?;
    scene.faults.recorder().reset();
    (scenario.act)(calm).await?;
    scene.quiet().await?;
    let writes = scene.faults.recorder().writes();
    let count = writes.iter().filter(|write| is_about(&write.call, calm)).count();
    let wanted = calm.outline().await?;
    let all: Vec<usize> = (1..=count).collect();
    let chosen = if every_k() || scene.bed.is_embedded() {
        all
    } else {
        sample(all, seed)
    };
    // The runs with crashes. Many spaces are settled at a time, so that the waiting is shared.
    for some in plans(&chosen).chunks(24) {
        scene.kill();
        scene.start().await?;
        let spaces = settled(scene, scenario, some.len()).await?;
        for (plan, space) in some.iter().zip(&spaces) {
            let reported = || format!("{plan} of {count}, ENTOURAGE_E2E_SEED={seed}");
            scene.kill();
            scene.launch(plan.parse()?)?;
            scene.controllers()?.ready().await.with_context(reported)?;
            survives(scene, space, scenario.act, &wanted)
                .await
                .with_context(reported)?;
        }
    }
    Ok(())
}

/// True if a write belongs to a space, or to something cluster-scoped; only Clusters are everybody's.
fn is_about(call: &Call, space: &Space) -> bool {
    match call.namespace.as_deref() {
        Some(ns) => ns == space.ns || ns.starts_with(&space.own("")),
        None => !call.resource.starts_with("clusters."),
    }
}

/// This many spaces in which a scenario can begin: the running controllers have no work left for them, and are quiet.
async fn settled(scene: &mut Scene, scenario: Scenario, count: usize) -> Result<Vec<Space>> {
    let mut spaces = Vec::new();
    for _ in 0..count {
        let space = scene.another_space().await?;
        (scenario.given)(&space).await?;
        spaces.push(space);
    }
    for space in &spaces {
        (scenario.arrived)(space).await?;
    }
    scene.quiet().await?;
    Ok(spaces)
}

/// Acts until the crash, or to the end of a run that has fewer writes than the undisturbed one; starts again; acts on;
/// and waits until everything is as it would be without.
async fn survives(scene: &mut Scene, space: &Space, act: Act, wanted: &Outline) -> Result<()> {
    let ended = async || {
        eventually("it ends as if nothing had happened", async || {
            let differences = differences(wanted, &space.outline().await?);
            ensure!(differences.is_empty(), "{differences:#?}");
            Ok(())
        })
        .await
    };
    let faults = scene.faults.clone();
    let mut acting = act(space).fuse();
    let crashed = tokio::select! {
        biased;
        () = faults.crashed() => true,
        // The crash may come after the end that can be seen, and after a grace period.
        calm = async { (&mut acting).await?; ended().await?; scene.quiet().await } => calm.map(|_| false)?,
    };
    if crashed {
        scene.kill();
        scene.start().await?;
        if !acting.is_terminated() {
            acting.await?;
        }
    }
    ended().await
}

fn plans(calls: &[usize]) -> Vec<String> {
    let moments: &[&str] = if every_k() {
        &["after", "before"]
    } else {
        &["after"]
    };
    calls
        .iter()
        .flat_map(|call| {
            moments
                .iter()
                .map(move |moment| format!("crash-{moment}={call}:writes"))
        })
        .collect()
}

/// A few of them, by the seed. An own generator (splitmix64): the choice must stay the same when libraries change.
fn sample(mut from: Vec<usize>, seed: u64) -> Vec<usize> {
    let mut state = seed;
    let mut chosen = Vec::new();
    while chosen.len() < SAMPLED && !from.is_empty() {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let at = usize::try_from(mixed % from.len() as u64).unwrap_or_default();
        chosen.push(from.swap_remove(at));
    }
    chosen
}

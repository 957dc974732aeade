//! SIGKILLs spread over S1: at whatever moment the control plane is killed, the end state must be that of an undisturbed run.
//! Both runs use the same names, one after the other, because names are hashed into other names.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context as _, Result, bail};

use super::{create_all, everywhere, prepare, remove};
use crate::bench::{
    Bench,
    compare::{self, State},
    kind::Kind,
    meter,
    objects::World,
    report::Run,
    seen::Expectation,
};

/// The time that events of writes made before a kill may take to arrive.
const LATE: Duration = Duration::from_millis(200);

/// The number of differences that are printed.
const SHOWN: usize = 20;

/// Runs it with the given number of kills.
///
/// # Errors
/// The end states differ, with the differences; or a run does not finish.
pub async fn run(bench: &mut Bench, kills: usize) -> Result<()> {
    if !bench.control.is_child() {
        bail!("--kill needs --controllers: the bench kills only what it has started");
    }
    bench.control.start_fresh(bench.options.limit).await?;
    bench.members_ready().await?;
    let world = bench.world("k", bench.options.workloads);
    let undisturbed = state_after(bench, &world, 0).await?;
    let disturbed = state_after(bench, &world, kills).await?;
    let found = compare::compare(&undisturbed, &disturbed);
    let values = [
        ("kills", kills as f64),
        ("objects", undisturbed.len() as f64),
        ("differences", found.len() as f64),
    ];
    let mut run = Run::new(None, values);
    run.notes = found.iter().take(SHOWN).map(ToString::to_string).collect();
    bench
        .report
        .add("kills", "SIGKILLs during cold propagation", world.workloads, run);
    if let Some(first) = found.first() {
        bail!("the end states differ in {} places, such as {first}", found.len());
    }
    Ok(())
}

async fn state_after(bench: &mut Bench, world: &World, kills: usize) -> Result<State> {
    prepare(bench, world).await?;
    let deployments = world.deployments();
    let copies = everywhere(bench, world.copies());
    let total = copies.len();
    let seen = bench.seen.clone();
    let mut wait = seen.expect_that(Expectation::Present, copies);

    // The kills need the control plane, the Deployments the rest of the bench.
    let mut control = std::mem::take(&mut bench.control);
    let limit = bench.options.limit;
    let killing = async {
        let mut left = total;
        for number in 1..=kills {
            // At an even share of the run, and only once a copy was written since the last kill.
            let share = total - total * number / (kills + 1);
            wait.down_to(share.min(left.saturating_sub(1)), limit).await?;
            control.kill()?;
            tokio::time::sleep(LATE).await;
            left = wait.left();
            if left == 0 {
                bail!("all copies were there after {number} of {kills} kills; give more --workloads");
            }
            control.spawn()?;
        }
        Ok(())
    };
    let created = futures::try_join!(create_all(bench, &deployments), killing);
    bench.control = control;
    created.context("while the control plane was killed again and again")?;
    wait.met(limit)
        .await
        .with_context(|| format!("cold propagation with {kills} kills"))?;
    bench.control.ready(limit).await?;
    meter::settle(&bench.servers, limit).await?;
    let state = state(bench, world).await?;
    remove(bench, world).await?;
    meter::settle(&bench.servers, limit).await?;
    Ok(state)
}

/// The compared objects in a world's namespaces.
async fn state(bench: &Bench, world: &World) -> Result<State> {
    let mut state = State::new();
    for (place, server) in bench.servers.iter().enumerate() {
        let mut kinds = BTreeSet::from(Kind::COPIED);
        if place == 0 {
            kinds.extend([Kind::Policy, Kind::Binding]);
        }
        for namespace in world.namespaces() {
            for kind in &kinds {
                for object in server.whole(*kind, &namespace).await? {
                    let name = object
                        .pointer("/metadata/name")
                        .and_then(|name| name.as_str())
                        .unwrap_or_default();
                    state.insert(
                        format!("{} {} {namespace}/{name}", server.name, kind.name()),
                        object,
                    );
                }
            }
        }
    }
    Ok(state)
}

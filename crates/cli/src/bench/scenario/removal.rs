//! S5, removal: workloads drop a reference to a ConfigMap with no other referrer, until it is deleted from all members; then
//! all Deployments are deleted, until every copy is deleted from the members and every binding from the hub.

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use tokio::task::JoinSet;

use super::{Scenario, bindings, delete_all, everywhere};
use crate::bench::{
    Bench,
    floor::Floor,
    kind::{Kind, ObjectId},
    meter::Meter,
    objects::{Own, World},
    report::Run,
    seen::Expectation,
    watch,
};

/// Workloads that drop a reference.
const DROPS: usize = 50;

/// Name of the second half in reports.
const ALL: &str = "S5-all";

/// Runs it. Only the objects of the world that are not workloads remain on the hub.
///
/// # Errors
/// Names the objects that still exist.
pub async fn run(bench: &mut Bench, world: &World, floor: Option<&Floor>) -> Result<()> {
    // Its copies carry the bench's label and bindings do not; so this watch is only for this scenario.
    let mut tasks = JoinSet::new();
    let target = watch::Target {
        server: bench.servers[0].clone(),
        place: 0,
        kind: Kind::Binding,
        label: None,
    };
    watch::start(target, bench.seen.clone(), &mut tasks).await?;
    references(bench, world).await?;
    everything(bench, world, floor).await
}

async fn references(bench: &mut Bench, world: &World) -> Result<()> {
    let drops = DROPS.min(world.workloads);
    let dropped = (0..drops).map(|workload| world.own_id(workload, Own::Environment));
    let meter = Meter::start(&bench.servers, &bench.control.pids()).await?;
    let wait = bench
        .seen
        .expect_that(Expectation::Absent, everywhere(bench, dropped));
    let (hub, in_flight) = (bench.hub(), bench.options.in_flight);
    let edits = (0..drops).map(|workload| async move {
        hub.patch(
            &world.deployment_id(workload),
            &world.without_environment(workload),
        )
        .await
        .map(drop)
    });
    stream::iter(edits)
        .buffer_unordered(in_flight)
        .try_collect::<()>()
        .await?;
    let gone = wait
        .met(bench.options.limit)
        .await
        .context("after references were dropped")?;
    let figures = meter
        .settle(gone, &bench.control.pids(), bench.options.limit)
        .await?;
    let run = Run::new(Some(figures), [("references", drops as f64)]);
    bench.report.add(
        Scenario::Removal.name(),
        "removal of references",
        world.workloads,
        run,
    );
    Ok(())
}

async fn everything(bench: &mut Bench, world: &World, floor: Option<&Floor>) -> Result<()> {
    let namespaces: Vec<_> = world.namespaces().collect();
    let mut all = everywhere(bench, world.copies());
    let of_world = |id: &ObjectId| id.kind == Kind::Binding && namespaces.contains(&id.namespace);
    all.extend(bench.seen.on(0).into_iter().filter(of_world).map(|id| (0, id)));

    let meter = Meter::start(&bench.servers, &bench.control.pids()).await?;
    let wait = bench.seen.expect_that(Expectation::Absent, all);
    delete_all(
        bench,
        (0..world.workloads).map(|workload| world.deployment_id(workload)),
    )
    .await?;
    let gone = wait
        .met(bench.options.limit)
        .await
        .context("after all Deployments were deleted")?;
    let figures = meter
        .settle(gone, &bench.control.pids(), bench.options.limit)
        .await?;
    let left = bindings(bench, world).await?.len();
    let wall_s = figures.wall_s;
    let mut run = Run::new(Some(figures), [("bindings_left", left as f64)]);
    if let Some(floor) = floor {
        run.values.insert("floor_s".into(), floor.delete_s);
        run.values
            .insert("ratio_to_floor".into(), wall_s / floor.delete_s);
    }
    bench
        .report
        .add(ALL, "removal of all Deployments", world.workloads, run);
    Ok(())
}

//! S2, update of dependencies: ConfigMaps that workloads mount are edited one at a time, then Secrets that the workloads of a
//! namespace share. Each time runs from sending the edit to the moment at which the last member has it; the next edit follows
//! at once.

use std::time::Instant;

use anyhow::{Context as _, Result};

use super::{Scenario, everywhere};
use crate::bench::{
    Bench,
    floor::Floor,
    kind::ObjectId,
    meter::Meter,
    objects::{Own, World},
    report::Run,
    seen::Expectation,
    stats::Spread,
};

/// Edits of ConfigMaps.
const CONFIG_MAPS: usize = 50;

/// Edits of shared Secrets.
const SECRETS: usize = 10;

/// Runs it.
///
/// # Errors
/// Names the edit that did not arrive and the member.
pub async fn run(bench: &mut Bench, world: &World, floor: Option<&Floor>) -> Result<()> {
    let config_maps = (0..CONFIG_MAPS).map(|number| world.own_id(number % world.workloads, Own::Mounted));
    let namespaces: Vec<_> = world.namespaces().collect();
    let secrets = (0..SECRETS).map(|number| World::shared_id(&namespaces[number % namespaces.len()]));

    let meter = Meter::start(&bench.servers, &bench.control.pids()).await?;
    let (config_maps, from_answer) = edits(bench, world, config_maps.collect()).await?;
    let (secrets, _) = edits(bench, world, secrets.collect()).await?;
    let mut figures = meter
        .settle(Instant::now(), &bench.control.pids(), bench.options.limit)
        .await?;

    // The sum of the edits' times adds nothing to the times.
    figures.wall_s = 0.0;
    let mut run = Run::new(Some(figures), []);
    let spreads = [
        ("configmap", &config_maps),
        ("configmap_after_answer", &from_answer),
        ("secret", &secrets),
    ];
    for (what, times) in spreads {
        let Spread {
            p50_ms,
            p90_ms,
            p99_ms,
            max_ms,
            ..
        } = Spread::of(times);
        for (name, value) in [("p50", p50_ms), ("p90", p90_ms), ("p99", p99_ms), ("max", max_ms)] {
            run.values.insert(format!("{what}_{name}_ms"), value);
        }
    }
    if let Some(floor) = floor {
        run.values
            .insert("floor_configmap_p50_ms".into(), floor.edit_p50_ms);
    }
    bench.report.add(
        Scenario::Update.name(),
        Scenario::Update.title(),
        world.workloads,
        run,
    );
    Ok(())
}

/// Makes each edit. Returns the times in milliseconds, from sending the edit and from the hub's response to it.
async fn edits(bench: &Bench, world: &World, ids: Vec<ObjectId>) -> Result<(Vec<f64>, Vec<f64>)> {
    let (mut from_request, mut from_answer) = (Vec::new(), Vec::new());
    for (number, id) in ids.into_iter().enumerate() {
        let step = format!("{}-{number}", id.kind.plural());
        let wait = bench
            .seen
            .expect_that(Expectation::Step(step.clone()), everywhere(bench, [id.clone()]));
        let patch = world.edit(&id, &step);
        let sent = Instant::now();
        bench.hub().patch(&id, &patch).await?;
        let answered = Instant::now();
        let arrived = wait
            .met(bench.options.limit)
            .await
            .with_context(|| format!("edit {number} of {id}"))?;
        from_request.push(arrived.saturating_duration_since(sent).as_secs_f64() * 1e3);
        from_answer.push(arrived.saturating_duration_since(answered).as_secs_f64() * 1e3);
    }
    Ok((from_request, from_answer))
}

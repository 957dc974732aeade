//! S8, distribution: one ResourceDistribution writes a Secret of a kilobyte into as many namespaces as the other scenarios have
//! Deployments. Measured are the first copies, an edit, namespaces that are created one after the other once all is idle, an
//! idle period, a restart, and the removal. The namespaces are not propagated to members, whose cost the other scenarios
//! measure.

use std::time::Instant;

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};

use super::{Scenario, create};
use crate::bench::{
    Bench,
    kind::{Kind, ObjectId},
    meter::{self, Figures, Meter},
    objects::{LABEL, STEP},
    report::Run,
    seen::{Expectation, Place},
    stats::Spread,
};

/// Namespaces that are created one after the other.
const LATE: usize = 100;

/// Bytes of the Secret.
const CONTENT: usize = 1024;

/// The hub, in the list of servers.
const HUB: Place = 0;

/// Runs it, from an empty hub to an empty hub. The control plane must run with the gate ResourceDistributionGate.
///
/// # Errors
/// A server's; also if copies are not created, or not deleted, in time.
pub async fn run(bench: &mut Bench, number: usize) -> Result<()> {
    let count = bench.options.workloads;
    let prefix = format!("{}-d{number}", bench.options.prefix);
    let namespaces: Vec<String> = (0..count + LATE)
        .map(|each| format!("{prefix}-{each:05}"))
        .collect();
    let (early, late) = namespaces.split_at(count);
    let copies = |of: &[String]| -> Vec<(Place, ObjectId)> {
        let each = of
            .iter()
            .map(|namespace| (HUB, ObjectId::new(Kind::Secret, namespace, &prefix)));
        each.collect()
    };
    let limit = bench.options.limit;
    bench.control.start_fresh(limit).await?;
    let each = early.iter().map(|name| namespace(bench, name));
    stream::iter(each)
        .buffer_unordered(bench.options.in_flight)
        .try_collect::<()>()
        .await?;
    meter::settle(&bench.servers, limit).await?;

    let id = ObjectId::new(Kind::Distribution, "", &prefix);
    let meter = Meter::start(&bench.servers, &bench.control.pids()).await?;
    let wait = bench.seen.expect_that(Expectation::Present, copies(early));
    create(bench.hub(), &id, &distribution(bench, &prefix)).await?;
    let there = wait.met(limit).await.context("the first copies")?;
    let figures = meter.settle(there, &bench.control.pids(), limit).await?;
    let mut values = vec![("distribute_s", figures.wall_s)];
    writes(
        &figures,
        ["distribute_writes", "distribute_status_writes"],
        &mut values,
    );

    let meter = Meter::start(&bench.servers, &bench.control.pids()).await?;
    let wait = bench
        .seen
        .expect_that(Expectation::Step("1".into()), copies(early));
    let edit = json!({"spec": {"resource": {
        "metadata": {"annotations": {STEP: "1"}},
        "stringData": {"content": "b".repeat(CONTENT)},
    }}});
    bench.hub().patch(&id, &edit).await?;
    let there = wait.met(limit).await.context("the edit")?;
    let edited = meter.settle(there, &bench.control.pids(), limit).await?;
    values.push(("update_s", edited.wall_s));
    writes(&edited, ["update_writes", "update_status_writes"], &mut values);

    let mut times = Vec::new();
    for name in late {
        let wait = bench
            .seen
            .expect_that(Expectation::Present, copies(std::slice::from_ref(name)));
        namespace(bench, name).await?;
        let answered = Instant::now();
        let there = wait.met(limit).await.context("a new namespace")?;
        times.push(there.saturating_duration_since(answered).as_secs_f64() * 1e3);
    }
    let spread = Spread::of(&times);
    values.extend([
        ("new_namespace_p50_ms", spread.p50_ms),
        ("new_namespace_p99_ms", spread.p99_ms),
    ]);
    meter::settle(&bench.servers, limit).await?;

    let meter = Meter::start(&bench.servers, &bench.control.pids()).await?;
    tokio::time::sleep(bench.options.idle).await;
    let idle = meter.stop(&bench.control.pids()).await?;
    values.push(("idle_writes", idle.hub.writes as f64));
    if bench.control.is_child() {
        bench.control.stop().await?;
        let meter = Meter::start(&bench.servers, &[]).await?;
        bench.control.spawn()?;
        bench.control.ready(limit).await?;
        let pids = bench.control.pids();
        let restarted = meter.settle(Instant::now(), &pids, limit).await?;
        values.push(("restart_writes", restarted.hub.writes as f64));
    }
    let gone = bench.seen.expect_that(Expectation::Absent, copies(&namespaces));
    let began = Instant::now();
    bench.hub().delete(&id).await?;
    let there = gone.met(limit).await.context("the end")?;
    values.push(("delete_s", there.saturating_duration_since(began).as_secs_f64()));
    bench.report.add(
        Scenario::Distribution.name(),
        Scenario::Distribution.title(),
        count,
        Run::new(Some(figures), values),
    );
    let ids = namespaces
        .iter()
        .map(|name| ObjectId::new(Kind::Namespace, "", name));
    super::delete_all(bench, ids).await
}

async fn namespace(bench: &Bench, name: &str) -> Result<()> {
    let labels = json!({
        LABEL: bench.options.prefix,
        entourage_api::keys::label::SKIP_AUTO_PROPAGATION: entourage_api::keys::TRUE,
    });
    let object =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
    create(bench.hub(), &ObjectId::new(Kind::Namespace, "", name), &object).await
}

fn distribution(bench: &Bench, name: &str) -> Value {
    json!({
        "apiVersion": Kind::Distribution.api_version(),
        "kind": Kind::Distribution.name(),
        "metadata": {"name": name},
        "spec": {
            "resource": {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {
                    "name": name,
                    "labels": {LABEL: bench.options.prefix},
                    "annotations": {STEP: "0"},
                },
                "stringData": {"content": "a".repeat(CONTENT)},
            },
            "targets": {"namespaceLabelSelector": {"matchLabels": {LABEL: bench.options.prefix}}},
        },
    })
}

/// Writes of copies, and of the distribution's status.
fn writes(figures: &Figures, names: [&'static str; 2], values: &mut Vec<(&'static str, f64)>) {
    let sum = |is: fn(&str) -> bool| -> u64 {
        let all = figures.hub.writes_by.iter();
        all.filter(|(what, _)| is(what)).map(|(_, count)| *count).sum()
    };
    values.push((names[0], sum(|what| what.ends_with(" secrets")) as f64));
    values.push((names[1], sum(|what| what.ends_with("/status")) as f64));
}

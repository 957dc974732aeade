//! The scenarios, a file each; and their shared steps: writing a world to the hub, waiting for its copies, removing it.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::Value;

use super::{
    Bench, floor,
    kind::{Kind, ObjectId},
    meter,
    objects::World,
    seen::{Expectation, Place},
    server::{Server, Written},
};

pub mod cold;
pub mod distribution;
pub mod failover;
pub mod growth;
pub mod idle;
pub mod kills;
pub mod removal;
pub mod restart;
pub mod update;

/// A scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Scenario {
    /// The floor alone: the cost of a bare client, without a control plane
    #[value(name = "floor")]
    Floor,
    /// Cold propagation
    #[value(name = "S1", alias = "s1")]
    Cold,
    /// Update of dependencies
    #[value(name = "S2", alias = "s2")]
    Update,
    /// Idle
    #[value(name = "S3", alias = "s3")]
    Idle,
    /// Restart of the control plane
    #[value(name = "S4", alias = "s4")]
    Restart,
    /// Removal of references, then of all workloads
    #[value(name = "S5", alias = "s5")]
    Removal,
    /// Failover off a tainted member
    #[value(name = "S6", alias = "s6")]
    Failover,
    /// S1 at 100, 300 and 900 Deployments
    #[value(name = "S7", alias = "s7")]
    Growth,
    /// Distribution into as many namespaces as --workloads
    #[value(name = "S8", alias = "s8")]
    Distribution,
    /// S1 to S7
    #[value(name = "all")]
    All,
}

impl Scenario {
    /// The scenarios that run one after the other on the same world.
    pub const ON_ONE_WORLD: [Self; 5] = [Self::Cold, Self::Update, Self::Idle, Self::Restart, Self::Removal];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::Cold => "S1",
            Self::Update => "S2",
            Self::Idle => "S3",
            Self::Restart => "S4",
            Self::Removal => "S5",
            Self::Failover => "S6",
            Self::Growth => "S7",
            Self::Distribution => "S8",
            Self::All => "all",
        }
    }

    /// Its title in reports.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Floor => "the same objects written by a bare client",
            Self::Cold => "cold propagation",
            Self::Update => "update of dependencies",
            Self::Idle => "idle",
            Self::Restart => "restart",
            Self::Removal => "removal",
            Self::Failover => "failover: workloads off a tainted member",
            Self::Growth => "growth: cold propagation",
            Self::Distribution => "distribution: copies in namespaces of the hub",
            Self::All => "everything",
        }
    }
}

/// Runs the requested scenarios, in their order.
///
/// # Errors
/// The first that fails; those before are in the report.
pub async fn run(bench: &mut Bench) -> Result<()> {
    let all = bench.options.scenarios.contains(&Scenario::All);
    let scenarios = bench.options.scenarios.clone();
    let apart = [Scenario::Floor, Scenario::Distribution];
    let asked = |each: &Scenario| scenarios.contains(each) || (all && !apart.contains(each));
    let on_one_world: Vec<_> = Scenario::ON_ONE_WORLD.into_iter().filter(asked).collect();
    let (growth, floor, kills) = (
        asked(&Scenario::Growth),
        asked(&Scenario::Floor),
        bench.options.kills,
    );
    let runs = bench.options.runs;
    if floor || growth || !on_one_world.is_empty() {
        floor::add_definition(bench.hub()).await?;
    }
    if floor {
        for number in 1..=runs {
            bench
                .floor(&format!("f{number}"), bench.options.workloads)
                .await?;
        }
    }
    let distribution = asked(&Scenario::Distribution);
    let failover = asked(&Scenario::Failover);
    if growth || failover || !on_one_world.is_empty() || kills > 0 {
        bench.watch().await?;
    }
    if distribution {
        bench.watch_hub(Kind::Secret).await?;
        for number in 1..=runs {
            bench.say(&format!("distribution, run {number} of {runs}"));
            distribution::run(bench, number).await?;
        }
    }
    if !on_one_world.is_empty() {
        for number in 1..=runs {
            bench.say(&format!("run {number} of {runs}"));
            one_world(bench, number, &on_one_world).await?;
        }
    }
    if failover {
        for number in 1..=runs {
            bench.say(&format!("failover, run {number} of {runs}"));
            failover::run(bench, number).await?;
        }
    }
    if growth {
        for number in 1..=runs {
            bench.say(&format!("growth, run {number} of {runs}"));
            growth::run(bench, number).await?;
        }
    }
    if kills > 0 {
        bench.say(&format!("{kills} kills"));
        kills::run(bench, kills).await?;
    }
    Ok(())
}

/// S1 to S5 on one world. S1 creates it, so it always runs.
async fn one_world(bench: &mut Bench, number: usize, asked: &[Scenario]) -> Result<()> {
    let (name, workloads) = (format!("r{number}"), bench.options.workloads);
    let floor = bench.floor_then_fresh(&name, workloads).await?;
    let world = bench.world(&name, workloads);
    cold::run(bench, &world, Some(&floor), Scenario::Cold).await?;
    for scenario in asked {
        bench.say(scenario.name());
        match scenario {
            Scenario::Update => update::run(bench, &world, Some(&floor)).await?,
            Scenario::Idle => idle::run(bench, &world).await?,
            Scenario::Restart => restart::run(bench, &world).await?,
            Scenario::Removal => removal::run(bench, &world, Some(&floor)).await?,
            Scenario::Floor
            | Scenario::Cold
            | Scenario::Failover
            | Scenario::Growth
            | Scenario::Distribution
            | Scenario::All => {}
        }
    }
    if asked.contains(&Scenario::Removal) {
        remove_rest(bench, &world).await
    } else {
        remove(bench, &world).await
    }
}

/// Creates the namespaces of a world.
///
/// # Errors
/// The server's.
pub async fn namespaces(server: &Server, world: &World) -> Result<()> {
    for name in world.namespaces() {
        server
            .create(
                &ObjectId::new(Kind::Namespace, "", &name),
                &world.namespace_object(&name),
            )
            .await?;
    }
    Ok(())
}

/// Creates an object that must not exist yet.
///
/// # Errors
/// The server's; also if it already exists.
pub async fn create(server: &Server, id: &ObjectId, object: &Value) -> Result<()> {
    match server.create(id, object).await?.0 {
        Written::Done => Ok(()),
        _ => bail!(
            "{id} exists already on {}, left by another bench; delete it first",
            server.name
        ),
    }
}

/// Creates objects on the hub, as fast as it accepts them.
///
/// # Errors
/// The server's.
pub async fn create_all(bench: &Bench, objects: &[(ObjectId, Value)]) -> Result<()> {
    let each = objects.iter().map(|(id, object)| create(bench.hub(), id, object));
    stream::iter(each)
        .buffer_unordered(bench.options.in_flight)
        .try_collect()
        .await
}

/// Deletes objects on the hub, as fast as it accepts that.
///
/// # Errors
/// The server's.
pub async fn delete_all(bench: &Bench, ids: impl IntoIterator<Item = ObjectId>) -> Result<()> {
    let each = ids
        .into_iter()
        .map(|id| async move { bench.hub().delete(&id).await.map(drop) });
    stream::iter(each)
        .buffer_unordered(bench.options.in_flight)
        .try_collect()
        .await
}

/// Writes all objects of a world except the Deployments, and waits until the servers are idle.
///
/// # Errors
/// A server's; also if the servers do not become idle.
pub async fn prepare(bench: &Bench, world: &World) -> Result<()> {
    namespaces(bench.hub(), world).await?;
    create_all(bench, &world.first()).await?;
    meter::settle(&bench.servers, bench.options.limit)
        .await
        .context("while the world was prepared")
        .map(drop)
}

/// The copies of these objects on every member.
pub fn everywhere(bench: &Bench, ids: impl IntoIterator<Item = ObjectId>) -> Vec<(Place, ObjectId)> {
    let places = 1..bench.servers.len();
    ids.into_iter()
        .flat_map(|id| places.clone().map(move |place| (place, id.clone())))
        .collect()
}

/// Removes a world without measuring it: the workloads, then, when their copies are deleted, the rest.
///
/// # Errors
/// A server's; also if an object is not deleted in time.
pub async fn remove(bench: &Bench, world: &World) -> Result<()> {
    let limit = bench.options.limit;
    let gone = bench
        .seen
        .expect_that(Expectation::Absent, everywhere(bench, world.copies()));
    delete_all(bench, world.deployments().into_iter().map(|(id, _)| id)).await?;
    gone.met(limit)
        .await
        .context("after all Deployments were deleted")?;
    remove_rest(bench, world).await
}

/// Removes the remaining objects of a world on the hub when its copies are deleted, and waits until its bindings are deleted
/// too.
///
/// # Errors
/// A server's; also if a binding is not deleted in time.
pub async fn remove_rest(bench: &Bench, world: &World) -> Result<()> {
    let started = std::time::Instant::now();
    loop {
        let left = bindings(bench, world).await?;
        if left.is_empty() {
            break;
        }
        if started.elapsed() > bench.options.limit {
            bail!("{} bindings stay on the hub, such as {}", left.len(), left[0]);
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    delete_all(bench, world.first().into_iter().map(|(id, _)| id)).await
}

/// The bindings of a world.
///
/// # Errors
/// The hub's.
pub async fn bindings(bench: &Bench, world: &World) -> Result<Vec<ObjectId>> {
    let list = bench.hub().list(Kind::Binding, "", None).await?;
    let namespaces: Vec<_> = world.namespaces().collect();
    let ids = list
        .items()
        .map(|each| ObjectId::new(Kind::Binding, each.namespace, each.name));
    Ok(ids.filter(|id| namespaces.contains(&id.namespace)).collect())
}

//! `entourage drill`: a failover on embedded clusters in this process, with every change of a copy observed.
//!
//! A member is cut off from the controllers, its workloads are evicted, it is reconnected and cleaned up. The report is based
//! on observations of the members ([`crate::observe`]); `entourage failover --dry-run` predicts the result.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use entourage_controllers::Options;
use entourage_core::object::ResourceId;
use kube::Client;
use tokio::time::sleep;

use super::{
    answer::{self, Output},
    failover::{self, FailoverArgs},
    plan::FileArgs,
};
use crate::{
    args::{self, CLUSTER_NAMESPACE, HubArgs},
    fleet::{self, Fleet, Place},
    logging::{self, LogArgs, LogFormat},
    manifests::{self, Manifest},
    observe::{Observer, eventually},
    simulate::live::MembersFrom,
};

mod facts;
mod hub;
mod moves;
pub mod report;

use hub::Binding;
use moves::{arrived, report_moves, victim};
use report::{Cleaned, Healed, Report, millis};

/// The objects without -f: a workload that is evicted, one with a claim, and one that has no other cluster.
const SAMPLE: [(&str, &str); 3] = [
    (
        "config/samples/failover/web.yaml",
        include_str!("../../../../config/samples/failover/web.yaml"),
    ),
    (
        "config/samples/failover/orders.yaml",
        include_str!("../../../../config/samples/failover/orders.yaml"),
    ),
    (
        "config/samples/failover/pinned.yaml",
        include_str!("../../../../config/samples/failover/pinned.yaml"),
    ),
];

/// The policy that evicts from a member that is down, unless the files contain one.
pub(super) const TAINT_POLICY: (&str, &str) = (
    "config/samples/failover/taint-policy.yaml",
    include_str!("../../../../config/samples/failover/taint-policy.yaml"),
);

/// The time for which a member must fail its probes, and their interval: shorter than in operation.
pub(super) const THRESHOLD: Duration = Duration::from_millis(500);
const PROBES: Duration = Duration::from_millis(200);

/// The interval between reads of the hub.
const POLL: Duration = Duration::from_millis(20);

/// The time without a change of a binding after which the hub counts as settled.
const QUIET: Duration = Duration::from_millis(400);

/// Flags of `entourage drill`.
#[derive(Args, Clone, Debug)]
pub struct DrillArgs {
    /// The member that fails, such as member2 (default: the one with the most workloads)
    #[arg(value_name = "CLUSTER", value_parser = args::cluster_name)]
    pub cluster: Option<String>,

    /// The objects to use; without it config/samples/failover.
    #[command(flatten)]
    pub files: FileArgs,

    /// Number of members: member1, member2 and so on
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub members: u16,

    /// Time limit of the whole drill
    #[arg(long, value_name = "DURATION", value_parser = args::duration, default_value = "60s")]
    pub timeout: Duration,

    /// Output format
    #[arg(short = 'o', long, value_enum, default_value_t)]
    pub output: Output,
}

/// Runs the command; the report goes to `out`.
///
/// # Errors
/// An error in starting or applying, or a failed check.
pub async fn run(args: DrillArgs, out: &mut (dyn Write + Send)) -> Result<()> {
    logging::init(&LogArgs {
        log_format: LogFormat::default(),
        // A failing member is expected here.
        log_level: "error".to_owned(),
    })?;
    drill(&args, out).await
}

/// The options of the controllers of a fleet in which a member is about to fail.
pub(super) fn options() -> Options {
    Options {
        cluster_failure_threshold: THRESHOLD,
        probe_interval: PROBES,
        ..fleet::options()
    }
}

/// Drills, and prints the report.
///
/// # Errors
/// As [`run`].
pub async fn drill(args: &DrillArgs, out: &mut (dyn Write + Send)) -> Result<()> {
    let begin = Instant::now();
    let objects = objects(&args.files)?;
    let fleet = Fleet::start(args.members.into(), &Place::Nowhere, options()).await?;
    let mut drill = Drill {
        ends: begin + args.timeout,
        hub: fleet.hub.client(),
        members: fleet
            .members
            .iter()
            .map(|member| (member.name.clone(), member.client()))
            .collect(),
        verbose: args.output == Output::Text,
        fleet,
        out,
    };
    drill.say(&format!(
        "A hub and {} are up after {} ms. A member that does not respond is not ready after {} ms here, and after 30 s by default.\n",
        match args.members {
            1 => "1 member".to_owned(),
            many => format!("{many} members"),
        },
        begin.elapsed().as_millis(),
        THRESHOLD.as_millis(),
    ))?;
    let report = drill.play(args.cluster.as_deref(), &objects).await;
    let ended = drill.fleet.end().await;
    let report = report?;
    if args.output != Output::Text {
        let report = serde_json::to_value(&report)?;
        out.write_all(answer::formatted(args.output, &report)?.as_bytes())?;
    }
    out.flush()?;
    ensure!(
        report.problems.is_empty(),
        "the drill of {} failed: {}",
        report.cluster,
        report.problems.join("; ")
    );
    ended
}

fn objects(files: &FileArgs) -> Result<Vec<Manifest>> {
    if !files.is_empty() {
        return files.read();
    }
    let mut all = Vec::new();
    for (origin, text) in SAMPLE {
        all.extend(manifests::parse(text, origin)?);
    }
    Ok(all)
}

/// The state of a drill.
struct Drill<'a> {
    fleet: Fleet,
    hub: Client,
    members: Vec<(String, Client)>,
    /// The time limit.
    ends: Instant,
    /// True if progress is printed.
    verbose: bool,
    out: &'a mut (dyn Write + Send),
}

/// The state before the member was cut off.
struct Before {
    bindings: BTreeMap<ResourceId, Binding>,
    needs: BTreeMap<ResourceId, BTreeSet<ResourceId>>,
    observer: Observer,
}

impl Drill<'_> {
    async fn play(&mut self, named: Option<&str>, objects: &[Manifest]) -> Result<Report> {
        let bindings = self.prepare(objects).await?;
        let victim = victim(named, &bindings, self.fleet.members.len())?;
        let mut report = Report {
            cluster: victim.clone(),
            members: self.members.len(),
            forecast: self.forecast(&victim).await?,
            ..Report::default()
        };
        let kinds = hub::kinds(&self.hub, bindings.keys()).await?;
        let before = Before {
            needs: hub::needs(&self.hub, &bindings).await?,
            observer: Observer::start(&self.members, &kinds).await?,
            bindings,
        };
        let killed = self.fail(&before, &mut report).await?;
        self.heal(&before, &mut report).await?;
        let after = hub::bindings(&self.hub).await?;
        let wrong = hub::left_over(&self.members, &kinds, &after).await?;
        report.problems.extend(wrong);
        let seen = before.observer.sightings();
        report.changes = seen.iter().filter(|sighting| !sighting.initial).count();
        report.problems.extend(facts::lacks(&seen, &before.needs, killed));
        self.say(&report.healing()?)?;
        Ok(report)
    }

    /// Applies the objects, and waits until all copies are on their target clusters.
    async fn prepare(&mut self, objects: &[Manifest]) -> Result<BTreeMap<ResourceId, Binding>> {
        // A member that is not ready yet would be left out, and the scheduling result would differ from drill to drill.
        self.until(async |hub| {
            for (name, _) in &self.members {
                ensure!(hub::cluster(hub, name).await?.ready, "{name} is not Ready yet");
            }
            Ok(())
        })
        .await?;
        let begin = Instant::now();
        for object in objects {
            manifests::apply(&self.hub, object).await?;
        }
        if hub::evicting_taint(&self.hub).await?.is_none() {
            let (origin, text) = TAINT_POLICY;
            for object in manifests::parse(text, origin)? {
                manifests::apply(&self.hub, &object).await?;
            }
        }
        let bindings = self.settled(None).await;
        let bindings = bindings.context(
            "the workloads are not settled, so nothing was cut off; see what the message asks for, or give more --timeout",
        )?;
        let workloads = bindings.values().filter(|each| each.is_workload()).count();
        self.say(&format!(
            "{} objects are applied, {} scheduled; settled after {} ms.\n",
            objects.len(),
            match workloads {
                1 => "1 workload is".to_owned(),
                many => format!("{many} workloads are"),
            },
            begin.elapsed().as_millis()
        ))?;
        Ok(bindings)
    }

    async fn forecast(&mut self, victim: &str) -> Result<failover::Forecast> {
        let taint = hub::evicting_taint(&self.hub).await?;
        let args = FailoverArgs {
            name: victim.to_owned(),
            dry_run: true,
            taint: taint.context("no ClusterTaintPolicy evicts from a member that is not ready")?,
            hub: HubArgs::default(),
            members: MembersFrom::default(),
            cluster_namespace: CLUSTER_NAMESPACE.to_owned(),
            output: Output::default(),
        };
        let simulated = failover::simulate(&args, &self.hub).await?;
        Ok(failover::forecast(
            simulated.simulation.hub().map(|(_, object)| object),
            victim,
        ))
    }

    /// Cuts the member off and waits until all evictable workloads are evicted. Returns the time of the cut.
    async fn fail(&mut self, before: &Before, report: &mut Report) -> Result<Instant> {
        let victim = report.cluster.clone();
        self.fleet.disconnect(&victim)?;
        let killed = Instant::now();
        self.say(&format!("\n{victim} is cut off.\n"))?;
        let not_ready = self.until(async |hub| {
            ensure!(
                !hub::cluster(hub, &victim).await?.ready,
                "{victim} is still Ready"
            );
            Ok(())
        });
        if not_ready.await.is_ok() {
            report.not_ready_after_ms = Some(millis(killed.elapsed()));
        }
        let mut of_it: Vec<&Binding> = before.bindings.values().collect();
        of_it.retain(|each| each.is_workload() && each.clusters().contains_key(&victim));
        let tolerate: BTreeSet<&str> = report.forecast.tolerate.iter().map(String::as_str).collect();
        let waited = self
            .quietly(async |hub| {
                ensure!(
                    hub::cluster(hub, &victim).await?.evicts,
                    "{victim} has no NoExecute taint"
                );
                let now = hub::bindings(hub).await?;
                for each in &of_it {
                    let stays = tolerate.contains(each.id.to_string().as_str());
                    let is = now
                        .get(&each.id)
                        .with_context(|| format!("{} has no binding", each.id))?;
                    arrived(is, &victim, stays, &before.observer)?;
                }
                Ok(now)
            })
            .await;
        if let Err(error) = &waited {
            report.problems.push(format!("{error:#}"));
        }
        let now = match waited {
            Ok(now) => now,
            Err(_) => hub::bindings(&self.hub).await?,
        };
        report_moves(before, &of_it, &now, killed, report);
        report.compare();
        self.say(&report.failure()?)?;
        Ok(killed)
    }

    /// Reconnects the member, and waits until nothing is left to do.
    async fn heal(&mut self, before: &Before, report: &mut Report) -> Result<()> {
        let victim = report.cluster.clone();
        self.fleet.reconnect(&victim)?;
        let reconnected = Instant::now();
        self.say(&format!("\n{victim} is back.\n"))?;
        let ready = self.until(async |hub| {
            ensure!(
                hub::cluster(hub, &victim).await?.ready,
                "{victim} is not Ready again"
            );
            Ok(())
        });
        let ready = ready.await.map(|()| reconnected.elapsed());
        let settled = match ready {
            Ok(_) => self.settled(Some(&victim)).await.map(drop),
            Err(_) => Ok(()),
        };
        // The hub was observed to be idle for that long.
        let settled_after = reconnected.elapsed().saturating_sub(QUIET);
        let seen = before.observer.sightings();
        let mut cleaned = Vec::new();
        let mut managed: BTreeMap<&ResourceId, bool> = BTreeMap::new();
        for each in seen.iter().filter(|each| each.cluster == victim) {
            let is = each.copy.is_some_and(|copy| copy.managed);
            let was = managed.insert(&each.id, is).unwrap_or_default();
            if was && !is && each.at >= reconnected {
                cleaned.push(Cleaned {
                    object: each.id.to_string(),
                    how: if each.copy.is_some() {
                        "released"
                    } else {
                        "deleted"
                    },
                    after_ms: millis(each.at.duration_since(reconnected)),
                });
            }
        }
        for claim in &report.data {
            let mut all = before.bindings.keys();
            let id = all.find(|id| id.to_string() == *claim);
            if id.is_some_and(|id| before.observer.copy(&victim, id).is_none()) {
                report
                    .problems
                    .push(format!("{claim} was deleted on {victim}, and its data with it"));
            }
        }
        let ready_after = ready.as_ref().copied().unwrap_or_default();
        report.healed = Some(Healed {
            ready_after_ms: millis(ready_after),
            cleaned,
            settled_after_ms: millis(settled_after),
        });
        let failed = [ready.map(drop), settled].into_iter().filter_map(Result::err);
        report.problems.extend(failed.map(|error| format!("{error:#}")));
        Ok(())
    }

    /// Waits until every binding is settled, and none has changed for a while; with a reconnected member also until no taint
    /// evicts from it.
    async fn settled(&self, back: Option<&str>) -> Result<BTreeMap<ResourceId, Binding>> {
        self.quietly(async |hub| {
            let now = hub::bindings(hub).await?;
            ensure!(
                now.values().any(Binding::is_workload),
                "no policy has selected a workload yet; the files need a PropagationPolicy"
            );
            if let Some(why) = now.values().find_map(Binding::unsettled) {
                bail!("{why}");
            }
            if let Some(victim) = back {
                let is = hub::cluster(hub, victim).await?;
                ensure!(!is.evicts, "{victim} still has a NoExecute taint");
            }
            Ok(now)
        })
        .await
    }

    /// Waits until a check of the bindings succeeds, and none of them has changed for a while.
    async fn quietly(
        &self,
        holds: impl AsyncFn(&Client) -> Result<BTreeMap<ResourceId, Binding>>,
    ) -> Result<BTreeMap<ResourceId, Binding>> {
        let versions =
            |all: &BTreeMap<ResourceId, Binding>| -> Vec<_> { all.values().map(Binding::version).collect() };
        self.until(async |hub| {
            let first = holds(hub).await?;
            sleep(QUIET).await;
            let second = holds(hub).await?;
            ensure!(
                versions(&first) == versions(&second),
                "the bindings are still being written"
            );
            Ok(second)
        })
        .await
    }

    async fn until<T>(&self, holds: impl AsyncFn(&Client) -> Result<T>) -> Result<T> {
        let left = self.ends.saturating_duration_since(Instant::now());
        let hub = &self.hub;
        eventually(left, POLL, async || holds(hub).await).await
    }

    /// Prints progress, for people.
    fn say(&mut self, text: &str) -> Result<()> {
        if self.verbose {
            write!(self.out, "{text}")?;
            self.out.flush()?;
        }
        Ok(())
    }
}

//! A checker that polls the members during a test and reports violations of these invariants:
//!
//! - A workload exists on a member only together with all its dependencies: they are created first and deleted last.
//! - A dependency is never deleted while its workload exists, not even to be created again.
//! - Once scheduled, a workload exists on some member: one that responds, or one that had it in its last response.
//!
//! Two lists are not taken at the same time. So dependencies are listed after the workloads, and a violation counts only if
//! the same workload (by its uid) still exists after that: then it existed all the time.
//!
//! The checker also acts as the members' own controllers: it reports workloads as healthy. So no copy is healthy before the
//! checker has observed it, and the replacement of a copy that is deleted because the new one is healthy is observed here.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::{server::Server, space::Space};

/// The interval between two polls of a member.
const PAUSE: Duration = Duration::from_millis(40);

/// The timeout of one poll. A member that takes longer does not respond.
const ANSWER: Duration = Duration::from_secs(4);

/// The number of searches of all members before a workload counts as missing.
const SWEEPS: usize = 4;

const WORKLOAD: &str = "Deployment";

/// The dependencies of each Deployment: kinds and names.
pub type Needs = BTreeMap<String, Vec<(&'static str, String)>>;

/// Polls the members until it is dropped.
pub struct Witness {
    seen: Arc<Mutex<Seen>>,
    _tasks: Vec<AbortOnDropHandle<()>>,
}

/// The observations so far.
#[derive(Default)]
struct Seen {
    /// The workloads of each member, as of its last response.
    standing: BTreeMap<String, BTreeSet<String>>,
    /// The workloads that ever existed on any member.
    placed: BTreeSet<String>,
    looks: usize,
    broken: Vec<String>,
}

/// The result of one poll of a member: uids by kind and name.
type Look = BTreeMap<(&'static str, String), String>;

impl Witness {
    /// Starts to poll the members of a space. Must be called inside a Tokio runtime.
    #[must_use]
    pub fn start(space: &Space, needs: &Needs) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let mut tasks: Vec<AbortOnDropHandle<()>> = (space.members.iter())
            .map(|member| Eye {
                member: member.clone(),
                ns: space.ns.clone(),
                needs: needs.clone(),
                seen: seen.clone(),
                last: Look::new(),
            })
            .map(|eye| AbortOnDropHandle::new(tokio::spawn(eye.look_on())))
            .collect();
        let sweep = look_for_lost(space.clone(), seen.clone());
        tasks.push(AbortOnDropHandle::new(tokio::spawn(sweep)));
        Self { seen, _tasks: tasks }
    }

    /// # Errors
    /// The observed violations.
    pub fn check(&self) -> Result<()> {
        let broken = &lock(&self.seen).broken;
        ensure!(broken.is_empty(), "{}", broken.join("\n"));
        Ok(())
    }

    /// Stops and returns the number of polls.
    ///
    /// # Errors
    /// As [`check`](Self::check), and if no member was ever polled.
    pub fn end(self) -> Result<usize> {
        self.check()?;
        let looks = lock(&self.seen).looks;
        ensure!(looks > 0, "no member could be looked at, so nothing was checked");
        Ok(looks)
    }
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Polls one member.
struct Eye {
    member: Server,
    ns: String,
    needs: Needs,
    seen: Arc<Mutex<Seen>>,
    last: Look,
}

impl Eye {
    async fn look_on(mut self) {
        loop {
            // A member that does not respond may be down: the state of its objects is unknown.
            let _ = timeout(ANSWER, self.look()).await;
            sleep(PAUSE).await;
        }
    }

    async fn look(&mut self) -> Result<()> {
        let mut look = Look::new();
        let mut unwell = Vec::new();
        for kind in [WORKLOAD, "ConfigMap", "Secret"] {
            for object in self.member.list(kind, &self.ns, "").await? {
                let name = text(&object, "name");
                if kind == WORKLOAD && !is_well(&object) {
                    unwell.push(name.clone());
                }
                if !object["metadata"]["deletionTimestamp"].is_string() {
                    look.insert((kind, name), text(&object, "uid"));
                }
            }
        }
        let mut broken = Vec::new();
        for (name, needs) in &self.needs {
            let workload = (WORKLOAD, name.clone());
            let Some(uid) = look.get(&workload) else { continue };
            let stood = self.last.get(&workload) == Some(uid);
            for need in needs {
                let what = match (look.get(need), self.last.get(need)) {
                    (None, _) => "is not there".to_owned(),
                    (Some(now), Some(before)) if stood && now != before => {
                        format!("was deleted and made again (uid {before}, then {now})")
                    }
                    _ => continue,
                };
                if self.still(name).await?.as_ref() == Some(uid) {
                    let (kind, named) = need;
                    broken.push(format!(
                        "{}: {WORKLOAD} {name} (uid {uid}) stands, and {kind} {named} {what}",
                        self.member.name
                    ));
                }
            }
        }
        let standing: BTreeSet<String> = (look.keys())
            .filter(|(kind, _)| *kind == WORKLOAD)
            .map(|(_, name)| name.clone())
            .collect();
        self.last = look;
        {
            let mut seen = lock(&self.seen);
            seen.looks += 1;
            seen.broken.extend(broken);
            seen.placed.extend(standing.iter().cloned());
            seen.standing.insert(self.member.name.clone(), standing);
        }
        for name in unwell {
            // After the copy was reported.
            self.report(&name).await?;
        }
        Ok(())
    }

    /// The uid of the workload that exists there now.
    async fn still(&self, name: &str) -> Result<Option<String>> {
        let live = self.member.get(WORKLOAD, &self.ns, name).await?;
        let live = live.filter(|live| !live["metadata"]["deletionTimestamp"].is_string());
        Ok(live.map(|live| text(&live, "uid")))
    }

    async fn report(&self, name: &str) -> Result<()> {
        let well = |live: &mut Value| live["status"] = wellness(live);
        self.member
            .edit_status(WORKLOAD, &self.ns, name, well)
            .await
            .map(drop)
    }
}

fn text(object: &Value, field: &str) -> String {
    object["metadata"][field].as_str().unwrap_or_default().to_owned()
}

/// The status of a Deployment all of whose Pods are ready.
fn wellness(object: &Value) -> Value {
    let replicas = object["spec"]["replicas"].as_i64().unwrap_or(1);
    json!({
        "observedGeneration": object["metadata"]["generation"], "replicas": replicas, "updatedReplicas": replicas,
        "readyReplicas": replicas, "availableReplicas": replicas,
    })
}

fn is_well(object: &Value) -> bool {
    let wanted = wellness(object);
    let mut fields = wanted.as_object().into_iter().flatten();
    fields.all(|(field, value)| object["status"][field] == *value)
}

/// Checks that every workload that was scheduled exists on some member.
async fn look_for_lost(space: Space, seen: Arc<Mutex<Seen>>) {
    let stands = |seen: &Seen, name: &str| seen.standing.values().any(|names| names.contains(name));
    loop {
        sleep(PAUSE).await;
        let suspects: Vec<String> = {
            let seen = lock(&seen);
            let lost = seen.placed.iter().filter(|name| !stands(&seen, name));
            lost.cloned().collect()
        };
        for name in suspects {
            let mut found = Vec::new();
            for _ in 0..SWEEPS {
                found = sweep(&space, &name).await;
                if found.iter().any(|(_, there)| *there == Some(true)) {
                    break;
                }
            }
            let mut seen = lock(&seen);
            let is_found = found.iter().any(|(_, there)| *there == Some(true));
            if !is_found && !stands(&seen, &name) {
                let reported = format!("{WORKLOAD} {name} stands nowhere: {found:?} (none: no answer)");
                seen.broken.push(reported);
                // Once is enough.
                seen.placed.remove(&name);
            }
        }
    }
}

/// The existence of a workload, by member; `None` for a member that does not respond.
async fn sweep(space: &Space, name: &str) -> Vec<(String, Option<bool>)> {
    let mut found = Vec::new();
    for member in &space.members {
        let answer = timeout(ANSWER, member.get(WORKLOAD, &space.ns, name)).await;
        let there = answer.ok().and_then(Result::ok).map(|live| live.is_some());
        found.push((member.name.clone(), there));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        harness::{eventually, manifests},
        servers::Fleet,
    };

    async fn space(test: &str) -> Result<(Fleet, Space)> {
        entourage::install_tls_provider();
        let dir = std::env::temp_dir().join(format!("entourage-e2e-{test}-{}", std::process::id()));
        let fleet = Fleet::embedded(2, &dir).await?;
        std::fs::remove_dir_all(&dir)?;
        let server = |cluster: &crate::servers::TestCluster| Server {
            name: cluster.name().to_owned(),
            client: cluster.client(),
        };
        let space = Space {
            ns: "shop".into(),
            hub: server(&fleet.hub),
            members: fleet.members.iter().map(server).collect(),
        };
        Ok((fleet, space))
    }

    fn needs() -> Needs {
        Needs::from([("app".to_owned(), vec![("ConfigMap", "config".to_owned())])])
    }

    async fn until_broken(witness: &Witness, says: &str) -> Result<()> {
        eventually(says, async || {
            let reported = witness.check().err().map(|error| error.to_string());
            ensure!(
                reported.as_ref().is_some_and(|reported| reported.contains(says)),
                "{reported:?}"
            );
            Ok(())
        })
        .await
    }

    async fn until_well(space: &Space, member: &str) -> Result<()> {
        eventually("the workload is well", async || {
            let live = space.copy(member, WORKLOAD, "app").await?;
            ensure!(is_well(&live), "{}", live["status"]);
            Ok(())
        })
        .await
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_workload_without_what_it_needs_is_reported() -> Result<()> {
        let (_fleet, space) = space("witness-needs").await?;
        let witness = Witness::start(&space, &needs());
        space
            .apply_on("member1", manifests::config_map("config", ""))
            .await?;
        space
            .apply_on("member1", manifests::deployment("app", &["config"]))
            .await?;
        until_well(&space, "member1").await?;
        witness.check()?;
        space.delete_on("member1", "ConfigMap", "config").await?;
        until_broken(&witness, "stands, and ConfigMap config is not there").await
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_workload_that_moves_is_not_lost_and_one_that_is_nowhere_is() -> Result<()> {
        let (fleet, space) = space("witness-lost").await?;
        let witness = Witness::start(&space, &needs());
        for member in ["member1", "member2"] {
            space
                .apply_on(member, manifests::config_map("config", ""))
                .await?;
            space
                .apply_on(member, manifests::deployment("app", &["config"]))
                .await?;
            until_well(&space, member).await?;
            if member == "member2" {
                space.delete_on("member1", WORKLOAD, "app").await?;
            }
        }
        // It existed in the member's last response.
        fleet.members[1].stop_apiserver();
        sleep(PAUSE * 10).await;
        witness.check()?;
        fleet.members[1].start_apiserver().await?;
        space.delete_on("member2", WORKLOAD, "app").await?;
        until_broken(&witness, "Deployment app stands nowhere").await
    }
}

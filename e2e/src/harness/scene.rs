//! One test: its controllers, its namespaces, its end.

use std::{ops::Deref, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use entourage_controllers::Options;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{
    bed::Bed,
    controllers::Controllers,
    eventually::eventually,
    kinds::{DEPENDENCIES, OWN, WORKLOADS, is_ours},
    server::{Server, status_code},
    short::short,
    space::Space,
};
use crate::faults::{FaultPlan, Faults};

/// The time without any write after which the system counts as quiet: the longest delay that the controllers put on purpose
/// between an observation and a write (two seconds until a policy reports that it selects nothing), and as much again for
/// the machine.
const QUIET: Duration = Duration::from_secs(4);

/// The same when the controllers say that nothing is pending: what the servers still have to tell them.
const IDLE: Duration = Duration::from_millis(400);

/// After so many looks a system that still writes will never be quiet: a minute, and more on a machine that is slow to look.
const NEVER: usize = 1_200;

/// The environment of a test. It dereferences to [`Space`], its own namespace.
pub struct Scene {
    /// The hub and the members.
    pub bed: Arc<Bed>,
    /// The options of the controllers; change them before [`start`](Self::start).
    pub options: Options,
    /// The faults and the record of the controllers that run, or ran last.
    pub faults: Faults,
    /// The hub's user for the controllers; `None` is admin.
    pub user: Option<String>,
    space: Space,
    controllers: Option<Controllers>,
    name: String,
    namespaces: Vec<String>,
}

impl Deref for Scene {
    type Target = Space;

    fn deref(&self) -> &Space {
        &self.space
    }
}

impl Scene {
    /// A scene without controllers. `name` becomes part of its namespace's name.
    ///
    /// # Errors
    /// When the hub does not make the namespace.
    pub async fn open(bed: Arc<Bed>, name: &str) -> Result<Self> {
        bed.log.clear();
        let name = short(name);
        let name = name.trim_end_matches('-').to_owned();
        let space = Space {
            ns: String::new(),
            hub: bed.hub.clone(),
            members: bed.members.clone(),
        };
        let options = Options {
            // Long enough to look at what is there meanwhile, short enough for tests.
            deletion_grace: Duration::from_secs(2),
            distribute: true,
            ..Options::default()
        };
        let mut scene = Self {
            bed,
            options,
            faults: Faults::none(),
            user: None,
            space,
            controllers: None,
            name,
            namespaces: Vec::new(),
        };
        scene.space = scene.another_space().await?;
        Ok(scene)
    }

    /// A further namespace of this test.
    ///
    /// # Errors
    /// When the hub does not make it.
    pub async fn another_space(&mut self) -> Result<Space> {
        let ns = format!("t-{}-{}", self.name, self.namespaces.len() + 1);
        self.hub
            .create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ns}}))
            .await?;
        Ok(self.space_of(&ns))
    }

    /// A namespace that exists, whose content this test will clean up.
    pub fn space_of(&mut self, ns: &str) -> Space {
        self.namespaces.push(ns.to_owned());
        Space {
            ns: ns.to_owned(),
            ..self.space.clone()
        }
    }

    /// The controllers that run.
    ///
    /// # Errors
    /// When none do.
    pub fn controllers(&self) -> Result<&Controllers> {
        self.controllers.as_ref().context("no controllers run")
    }

    /// Starts controllers and waits until they are ready.
    ///
    /// # Errors
    /// When they are not.
    pub async fn start(&mut self) -> Result<()> {
        self.launch(FaultPlan::default())?;
        self.controllers()?.ready().await
    }

    /// Starts controllers under faults, and does not wait.
    ///
    /// # Errors
    /// When some run already.
    pub fn launch(&mut self, plan: FaultPlan) -> Result<()> {
        ensure!(self.controllers.is_none(), "controllers run already");
        self.faults = Faults::new(plan);
        let mut hub = self.bed.fleet.hub.config();
        hub.auth_info.impersonate.clone_from(&self.user);
        let thread = self.bed.log.thread();
        self.controllers = Some(Controllers::start(
            self.options.clone(),
            hub,
            &self.faults,
            thread,
        )?);
        Ok(())
    }

    /// Stops the controllers in an orderly way.
    ///
    /// # Errors
    /// When they do not end as they should.
    pub async fn stop(&mut self) -> Result<()> {
        self.controllers
            .take()
            .context("no controllers run")?
            .stop()
            .await
    }

    /// Kills the controllers.
    pub fn kill(&mut self) {
        self.controllers = None;
    }

    /// Stops and starts the controllers.
    ///
    /// # Errors
    /// As [`stop`](Self::stop) and [`start`](Self::start).
    pub async fn restart(&mut self) -> Result<()> {
        self.stop().await?;
        self.start().await
    }

    /// The example, delivered.
    ///
    /// # Errors
    /// When it does not arrive.
    pub async fn example(&mut self) -> Result<()> {
        if self.controllers.is_none() {
            self.start().await?;
        }
        for object in super::manifests::example() {
            self.apply(object).await?;
        }
        self.until_settled(&["member1", "member2"]).await
    }

    /// The writes of the controllers so far: `member1 create configmaps t-x-1/: 201`.
    #[must_use]
    pub fn writes(&self) -> Vec<String> {
        self.faults
            .recorder()
            .writes()
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    /// Waits until nothing was written for as long as it takes to be sure; see `QUIET` and `IDLE`. Returns the number of
    /// writes until then.
    ///
    /// # Errors
    /// When writes do not end; shows the last ones.
    pub async fn quiet(&self) -> Result<usize> {
        let begin = Instant::now();
        let mut count = self.writes().len();
        let (mut written, mut busy) = (begin, begin);
        let mut looks = 0;
        loop {
            looks += 1;
            sleep(Duration::from_millis(50)).await;
            let writes = self.writes();
            if writes.len() != count {
                (count, written) = (writes.len(), Instant::now());
            }
            if self.pending().await != Some(0) {
                busy = Instant::now();
            }
            if written.elapsed() >= QUIET || written.max(busy).elapsed() >= IDLE {
                return Ok(count);
            }
            if looks > NEVER {
                bail!(
                    "it never stops writing: {:#?}",
                    writes.iter().rev().take(12).collect::<Vec<_>>()
                );
            }
        }
    }

    /// The number of pending keys that the controllers report; `None` if none run or they do not respond.
    async fn pending(&self) -> Option<u64> {
        let metrics = self.controllers.as_ref()?.metrics().await.ok()?;
        let line = metrics
            .lines()
            .find_map(|line| line.strip_prefix("entourage_pending "));
        line?.parse().ok()
    }

    /// The position of the write that starts with `start` in `writes`.
    ///
    /// # Errors
    /// When there is none.
    pub fn position(writes: &[String], start: &str) -> Result<usize> {
        let found = writes.iter().position(|write| write.starts_with(start));
        found.with_context(|| format!("no write {start:?} among {writes:#?}"))
    }

    /// Waits until a condition of a Cluster has a status and a message that contains `says`.
    ///
    /// # Errors
    /// Shows the conditions.
    pub async fn until_cluster(&self, name: &str, status: &str, says: &str) -> Result<Value> {
        super::eventually::eventually_within(
            Bed::failure_threshold(),
            &format!("Ready of {name} is {status}"),
            async || {
                let cluster = self
                    .hub
                    .get("Cluster", "", name)
                    .await?
                    .context("no such Cluster")?;
                let ready = super::space::condition(&cluster, "Ready");
                let message = ready["message"].as_str().unwrap_or_default();
                ensure!(ready["status"] == status && message.contains(says), "{ready}");
                ensure!(
                    ready["observedGeneration"].is_i64(),
                    "no observedGeneration: {ready}"
                );
                Ok(ready.clone())
            },
        )
        .await
    }

    /// The end of a test that passed: everything is deleted on the hub, and nothing of ours may remain anywhere.
    ///
    /// # Errors
    /// Says what remained.
    pub async fn close(&mut self) -> Result<()> {
        self.bed.repair().await?;
        if self.controllers.is_none()
            || self.faults.is_crashed()
            || *self.faults.plan() != FaultPlan::default()
        {
            self.kill();
            self.start().await?;
        }
        for ns in &self.namespaces {
            for kind in WORKLOADS
                .iter()
                .chain(&["PropagationPolicy", "OverridePolicy"])
                .chain(DEPENDENCIES)
            {
                self.hub
                    .delete_all(kind, ns)
                    .await
                    .with_context(|| format!("deleting all {kind} in {ns}"))?;
            }
        }
        self.delete_own().await?;
        for ns in &self.namespaces {
            for kind in ["ResourceBinding", "PropagationPolicy"] {
                eventually(&format!("every {kind} of {ns} is gone"), async || {
                    self.play_volume_protection(ns).await?;
                    let left = self.hub.list(kind, ns, "").await?;
                    ensure!(
                        left.is_empty(),
                        "{}",
                        left.iter()
                            .map(|each| each.to_string())
                            .collect::<Vec<_>>()
                            .join("\n")
                    );
                    Ok(())
                })
                .await?;
            }
            self.nothing_of_ours(ns).await?;
        }
        self.stop().await?;
        let panics = self.bed.log.panics();
        ensure!(panics.is_empty(), "the controllers panicked: {panics:#?}");
        self.drop_namespaces().await
    }

    /// The end of a test that passed and had no controllers.
    ///
    /// # Errors
    /// When a namespace is not deleted.
    pub async fn leave(&mut self) -> Result<()> {
        ensure!(self.controllers.is_none(), "controllers run");
        self.drop_namespaces().await
    }

    /// The end of a test that failed: whatever it takes for the next one to find the servers as they should be.
    ///
    /// # Errors
    /// When that fails.
    pub async fn clear_away(&mut self) -> Result<()> {
        self.kill();
        self.bed.restore().await?;
        for kind in OWN {
            for server in std::iter::once(&self.hub).chain(&self.members) {
                if server.name != self.hub.name && is_ours(kind) {
                    continue;
                }
                for name in self.own_on(server, kind).await? {
                    server.delete(kind, "", &name).await?;
                    let bare = |live: &mut Value| live["metadata"]["finalizers"] = json!([]);
                    match server.edit(kind, "", &name, bare).await {
                        Err(error) if status_code(&error) == 404 => {}
                        result => drop(result?),
                    }
                }
            }
        }
        for ns in &self.namespaces {
            for kind in WORKLOADS
                .iter()
                .chain(&["PropagationPolicy", "OverridePolicy", "ResourceBinding"])
                .chain(DEPENDENCIES)
            {
                self.hub.delete_all(kind, ns).await?;
                for object in self.hub.list(kind, ns, "").await? {
                    let name = object["metadata"]["name"].as_str().unwrap_or_default();
                    if object["metadata"]["finalizers"].is_array() {
                        let bare = self
                            .hub
                            .edit(kind, ns, name, |live| live["metadata"]["finalizers"] = json!([]))
                            .await;
                        ensure!(
                            bare.as_ref().err().is_none_or(|error| status_code(error) == 404),
                            bare.err().context("")?
                        );
                    }
                }
                for member in &self.members {
                    if !["PropagationPolicy", "OverridePolicy", "ResourceBinding"].contains(kind) {
                        member.delete_all(kind, ns).await?;
                    }
                }
            }
        }
        self.drop_namespaces().await
    }

    /// Deletes the cluster-scoped objects of this test on the hub, and waits until none is left anywhere.
    async fn delete_own(&self) -> Result<()> {
        for kind in OWN {
            for name in self.own_on(&self.hub, kind).await? {
                match self.hub.delete(kind, "", &name).await {
                    Err(error) if status_code(&error) == 404 => {}
                    result => result?,
                }
            }
        }
        for server in std::iter::once(&self.hub).chain(&self.members) {
            let kinds = OWN
                .iter()
                .filter(|kind| server.name == self.hub.name || !is_ours(kind));
            for kind in kinds {
                eventually(
                    &format!("no {kind} of the test is on {}", server.name),
                    async || {
                        let left = self.own_on(server, kind).await?;
                        ensure!(left.is_empty(), "{left:?}");
                        Ok(())
                    },
                )
                .await?;
            }
        }
        Ok(())
    }

    /// The cluster-scoped objects of this test on a server.
    async fn own_on(&self, server: &Server, kind: &str) -> Result<Vec<String>> {
        let all = server.list(kind, "", "").await?;
        let names = all.iter().filter_map(|each| each["metadata"]["name"].as_str());
        Ok(names
            .filter(|name| {
                self.namespaces
                    .iter()
                    .any(|ns| name.starts_with(&format!("{ns}-")))
            })
            .map(Into::into)
            .collect())
    }

    /// Lets claims go that are being deleted on members. On real clusters a controller does that which does not run here.
    async fn play_volume_protection(&self, ns: &str) -> Result<()> {
        for server in &self.members {
            for claim in server.list("PersistentVolumeClaim", ns, "").await? {
                let (meta, protection) = (&claim["metadata"], json!(["kubernetes.io/pvc-protection"]));
                if meta["deletionTimestamp"].is_string() && meta["finalizers"] == protection {
                    let name = meta["name"].as_str().unwrap_or_default();
                    let let_go = |live: &mut Value| live["metadata"]["finalizers"] = json!([]);
                    match server.edit("PersistentVolumeClaim", ns, name, let_go).await {
                        Err(error) if status_code(&error) == 404 => {}
                        result => drop(result?),
                    }
                }
            }
        }
        Ok(())
    }

    /// Succeeds if no object of any member has ownership metadata in this namespace.
    async fn nothing_of_ours(&self, ns: &str) -> Result<()> {
        for member in &self.members {
            for kind in WORKLOADS.iter().chain(DEPENDENCIES) {
                eventually(
                    &format!("no {kind} of ours is left in {ns} on {}", member.name),
                    async || {
                        self.play_volume_protection(ns).await?;
                        let mut left = member.list(kind, ns, "entourage.dev/hub").await?;
                        left.extend(member.list(kind, ns, "entourage.dev/distributed-by").await?);
                        let names: Vec<&Value> = left.iter().map(|each| &each["metadata"]["name"]).collect();
                        ensure!(names.is_empty(), "{names:?}");
                        Ok(())
                    },
                )
                .await?;
            }
        }
        Ok(())
    }

    /// Has the test's namespaces deleted everywhere, without waiting for it: names are never used again.
    async fn drop_namespaces(&self) -> Result<()> {
        for server in std::iter::once(&self.hub).chain(&self.members) {
            for ns in self.namespaces.iter().filter(|ns| *ns != "default") {
                match server.delete("Namespace", "", ns).await {
                    Err(error) if matches!(status_code(&error), 404 | 409) => {}
                    result => result?,
                }
            }
        }
        Ok(())
    }

    /// The namespaces of this test.
    #[must_use]
    pub fn namespaces(&self) -> &[String] {
        &self.namespaces
    }
}

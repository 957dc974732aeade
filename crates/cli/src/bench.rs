//! `entourage bench`: measures a control plane, of any vendor, through the API that it serves.
//!
//! The bench acts as a user: it writes policies, Deployments and their dependencies to the hub, and watches the members for the
//! copies. Costs are measured from outside: CPU time and memory from the operating system, requests from the API servers' own
//! counters (less the bench's own).
//!
//! | module | content |
//! |---|---|
//! | [`objects`], [`kind`] | the written objects |
//! | [`server`], [`watch`], [`seen`] | one API server; watches of metadata; waiting for their events |
//! | [`counts`], [`process`], [`meter`] | requests; CPU time and memory; both between two moments |
//! | [`floor`] | the same objects written by a bare client |
//! | [`control`], [`child`] | the measured control plane |
//! | [`scenario`] | S1 to S8 and the kills, a file each |
//! | [`compare`] | comparison of two end states |
//! | [`options`] | the parameters |
//! | [`report`], [`stats`] | JSON, table, medians |

use std::sync::Arc;

use anyhow::{Result, bail};
use kube::{
    Api,
    api::{ApiResource, DynamicObject},
};
use tokio::task::JoinSet;

use crate::{
    connect,
    wait::{Waited, until},
};

pub mod child;
mod clean;
pub mod compare;
pub mod control;
pub mod counts;
pub mod floor;
pub mod kind;
pub mod meter;
pub mod objects;
pub mod options;
pub mod process;
pub mod report;
pub mod scenario;
pub mod seen;
pub mod server;
pub mod stats;
pub mod watch;

use control::Control;
use floor::Floor;
use kind::Kind;
use objects::{LABEL, World};
pub use options::Options;
use report::{Machine, Parameters, Report, Run};
use scenario::Scenario;
use seen::Seen;
use server::Server;

/// The state of a bench.
pub struct Bench {
    /// The parameters.
    pub options: Options,
    /// The hub, then the members.
    pub servers: Vec<Arc<Server>>,
    /// The state of the watches.
    pub seen: Seen,
    /// The measured control plane.
    pub control: Control,
    /// The results.
    pub report: Report,
    /// The worlds, with the prefixes of the namespaces that were created.
    worlds: Vec<World>,
    tasks: JoinSet<()>,
}

/// Runs the scenarios. Returns the report also if one of them fails, with the error in it.
///
/// # Errors
/// A server cannot be reached, or the bench would overwrite existing objects.
pub async fn run(options: Options, control: Control) -> Result<Report> {
    let mut bench = Bench::new(options, control).await?;
    let done = scenario::run(&mut bench).await;
    let cleaned = if bench.options.keep {
        Ok(())
    } else {
        clean::clean(&mut bench).await
    };
    let stopped = bench.control.stop().await;
    if let Err(error) = done.and(cleaned).and(stopped.map(drop)) {
        bench.report.error = Some(format!("{error:#}"));
    }
    Ok(bench.report)
}

impl Bench {
    async fn new(options: Options, control: Control) -> Result<Self> {
        let mut servers = vec![Arc::new(Server::connect("hub", options.hub.as_deref()).await?)];
        for (name, kubeconfig) in &options.members {
            servers.push(Arc::new(Server::connect(name, Some(kubeconfig)).await?));
        }
        for server in &servers {
            let left = server
                .list(Kind::Namespace, "", None)
                .await?
                .items()
                .find(|each| {
                    each.name
                        .strip_prefix(&options.prefix)
                        .is_some_and(|rest| rest.starts_with('-'))
                });
            if let Some(left) = left {
                let (server, name) = (&server.name, left.name);
                bail!("the namespace {name} is on {server}; delete it, or give another --prefix");
            }
        }
        let report = Report {
            format: 1,
            entourage: env!("CARGO_PKG_VERSION").to_owned(),
            date: k8s_openapi::jiff::Timestamp::now()
                .strftime("%Y-%m-%dT%H:%M:%SZ")
                .to_string(),
            machine: Machine::here(),
            servers: servers
                .iter()
                .map(|server| (server.name.clone(), server.version.clone()))
                .collect(),
            parameters: Parameters {
                workloads: options.workloads,
                namespaces: options.namespaces,
                members: options.members.len(),
                runs: options.runs,
                in_flight: options.in_flight,
                controllers: options.controllers.clone(),
            },
            scenarios: Vec::new(),
            error: None,
        };
        let seen = Seen::new(servers.iter().map(|server| server.name.clone()).collect());
        let (worlds, tasks) = (Vec::new(), JoinSet::new());
        Ok(Self {
            options,
            servers,
            seen,
            control,
            report,
            worlds,
            tasks,
        })
    }

    /// The hub.
    #[must_use]
    pub fn hub(&self) -> &Server {
        &self.servers[0]
    }

    /// Creates a world with its own namespaces, which are removed at the end.
    pub fn world(&mut self, name: &str, workloads: usize) -> World {
        let world = World {
            label: self.options.prefix.clone(),
            namespace_prefix: format!("{}-{name}", self.options.prefix),
            workloads,
            namespaces: self.options.namespaces,
            members: self
                .options
                .members
                .iter()
                .map(|(name, _)| name.clone())
                .collect(),
        };
        self.worlds.push(world.clone());
        world
    }

    /// Prints progress.
    pub fn say(&self, what: &str) {
        eprintln!("bench: {what}");
    }

    /// Measures the floor while our control plane is stopped, then starts it fresh and waits for the members.
    ///
    /// # Errors
    /// A server's; or the control plane does not become ready.
    pub async fn floor_then_fresh(&mut self, name: &str, workloads: usize) -> Result<Floor> {
        self.control.stop().await?;
        let floor = self.floor(name, workloads).await?;
        self.control.start_fresh(self.options.limit).await?;
        self.members_ready().await?;
        Ok(floor)
    }

    /// Starts the control plane fresh and waits for the members.
    ///
    /// # Errors
    /// It does not become ready.
    pub async fn fresh(&mut self) -> Result<()> {
        self.control.stop().await?;
        self.control.start_fresh(self.options.limit).await?;
        self.members_ready().await
    }

    /// Waits until the servers are idle.
    ///
    /// # Errors
    /// A server's; or they do not become idle.
    pub async fn at_rest(&self) -> Result<()> {
        meter::settle(&self.servers, self.options.limit).await.map(drop)
    }

    /// Waits until every member is ready on the hub.
    ///
    /// # Errors
    /// Names a member that is not.
    pub async fn members_ready(&self) -> Result<()> {
        for (name, _) in &self.options.members {
            self.until_cluster(name, "is not ready", is_ready).await?;
        }
        Ok(())
    }

    /// Waits until a member is not ready on the hub.
    ///
    /// # Errors
    /// It stays ready.
    pub async fn member_unready(&self, name: &str) -> Result<()> {
        self.until_cluster(name, "is still ready", |cluster| !is_ready(cluster))
            .await
    }

    async fn until_cluster(
        &self,
        name: &str,
        else_it: &str,
        holds: fn(&DynamicObject) -> bool,
    ) -> Result<()> {
        let resource = ApiResource {
            group: "cluster.karmada.io".into(),
            version: "v1alpha1".into(),
            api_version: "cluster.karmada.io/v1alpha1".into(),
            kind: "Cluster".into(),
            plural: "clusters".into(),
        };
        let api: Api<DynamicObject> = Api::all_with(self.hub().client.clone(), &resource);
        let waited = until(&api, name, self.options.limit, |found| found.is_some_and(holds)).await;
        if let Waited::TimedOut(found) = waited.map_err(connect::explain)? {
            let known = if found.is_some() {
                else_it
            } else {
                "is not a Cluster of the hub"
            };
            bail!("{name} {known} after {} s", self.options.limit.as_secs());
        }
        Ok(())
    }

    /// Measures the floor and reports it.
    ///
    /// # Errors
    /// A server's.
    pub async fn floor(&mut self, name: &str, workloads: usize) -> Result<Floor> {
        let mut world = self.world(&format!("{name}-floor"), workloads);
        // Another label, so that the watches do not receive the objects of the floor.
        world.label.push_str("-floor");
        let floor = floor::measure(&self.servers, &world, self.options.in_flight).await?;
        let Floor {
            write_s,
            writes,
            edit_p50_ms,
            delete_s,
        } = floor;
        let values = [
            ("write_s", write_s),
            ("writes", writes as f64),
            ("writes_per_s", writes as f64 / write_s),
            ("edit_p50_ms", edit_p50_ms),
            ("delete_s", delete_s),
        ];
        self.report.add(
            Scenario::Floor.name(),
            Scenario::Floor.title(),
            workloads,
            Run::new(None, values),
        );
        Ok(floor)
    }

    /// Starts to watch the bench's own objects of a kind on the hub.
    ///
    /// # Errors
    /// The hub's.
    pub async fn watch_hub(&mut self, kind: Kind) -> Result<()> {
        let target = watch::Target {
            server: self.servers[0].clone(),
            place: 0,
            kind,
            label: Some(format!("{LABEL}={}", self.options.prefix)),
        };
        watch::start(target, self.seen.clone(), &mut self.tasks).await
    }

    /// Starts to watch the members.
    ///
    /// # Errors
    /// A member's.
    pub async fn watch(&mut self) -> Result<()> {
        for (place, server) in self.servers.iter().enumerate().skip(1) {
            for kind in Kind::COPIED {
                let label = Some(format!("{LABEL}={}", self.options.prefix));
                let target = watch::Target {
                    server: server.clone(),
                    place,
                    kind,
                    label,
                };
                watch::start(target, self.seen.clone(), &mut self.tasks).await?;
            }
        }
        Ok(())
    }
}

fn is_ready(cluster: &DynamicObject) -> bool {
    let conditions = cluster
        .data
        .pointer("/status/conditions")
        .and_then(|all| all.as_array());
    conditions.is_some_and(|all| {
        all.iter()
            .any(|each| each["type"] == "Ready" && each["status"] == "True")
    })
}

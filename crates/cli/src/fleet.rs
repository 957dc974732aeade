//! A hub and members in this process: embedded API servers, and the controllers between them.
//!
//! The controllers reach the clusters without sockets; people and their tools over TLS on loopback, with the kubeconfig
//! files that lie in the fleet's directory.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow};
use entourage_apiserver::{Cluster, Service, listener, workloads};
use entourage_controllers::{ClientFactory, Options};
use futures::{StreamExt as _, TryStreamExt as _};
use secrecy::ExposeSecret as _;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{
    apply::{Target, ensure_namespace},
    args::CLUSTER_NAMESPACE,
    command::{
        crds,
        join::{self, JoinArgs, Reach},
    },
};

mod files;

/// How many members join at a time.
const JOINS: usize = 8;

/// How long the controllers may take to end.
const STOP: Duration = Duration::from_secs(6);

/// How a fleet is made.
#[derive(Clone, Debug, Default)]
pub struct FleetOptions {
    /// How many members, `member1` to `memberN`.
    pub members: usize,
    /// Where objects, credentials and kubeconfigs are kept from one run to the next; `None`: in memory, kubeconfigs in `dir`.
    pub data_dir: Option<PathBuf>,
    /// Where kubeconfigs are written when nothing is kept.
    pub dir: PathBuf,
}

/// One cluster of a fleet.
#[derive(Debug)]
pub struct Machine {
    /// `hub` or `memberN`.
    pub name: String,
    /// The cluster.
    pub cluster: Cluster,
    /// Where it is served.
    pub address: SocketAddr,
    token: String,
}

impl Machine {
    /// Its address as kubeconfigs have it.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("https://{}", self.address)
    }

    /// A client as its admin, without a socket.
    #[must_use]
    pub fn client(&self) -> kube::Client {
        self.cluster.client()
    }
}

/// A hub, its members, and the controllers. Ends when it is dropped.
#[derive(Debug)]
pub struct Fleet {
    /// Where policies and templates live.
    pub hub: Machine,
    /// Where workloads go.
    pub members: Vec<Machine>,
    authority: String,
    dir: PathBuf,
    stop: CancellationToken,
    controllers: Option<Running>,
}

#[derive(Debug)]
struct Running {
    stop: CancellationToken,
    task: JoinHandle<Result<(), entourage_controllers::Error>>,
}

impl Fleet {
    /// Starts hub and members, brings our kinds to the hub and joins the members. No controllers run yet.
    ///
    /// # Errors
    /// When a port, a file or a store cannot be had; says which and what to do.
    pub async fn start(options: &FleetOptions) -> Result<Self> {
        let dir = options.data_dir.as_deref().unwrap_or(&options.dir);
        let kept = files::Kept::open(dir, options.data_dir.is_some(), options.members)?;
        let authority = kept.authority()?;
        let stop = CancellationToken::new();
        let mut machines = Vec::with_capacity(options.members + 1);
        for name in names(options.members) {
            machines.push(machine(&kept, &name, &authority, &stop).await?);
        }
        let mut machines = machines.into_iter();
        let fleet = Self {
            hub: machines.next().context("a fleet has a hub")?,
            members: machines.collect(),
            authority: authority.certificate.clone(),
            dir: dir.to_owned(),
            stop,
            controllers: None,
        };
        // A hub runs no workloads.
        for member in &fleet.members {
            workloads::start(&member.cluster, workloads::Stages::default());
        }
        kept.remember(options.members, fleet.machines())?;
        fleet.write_kubeconfigs()?;
        fleet.furnish().await?;
        Ok(fleet)
    }

    /// The hub, then the members.
    pub fn machines(&self) -> impl Iterator<Item = &Machine> + Clone {
        std::iter::once(&self.hub).chain(&self.members)
    }

    /// A kubeconfig with a context for each cluster; that of the hub is the current one.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.dir.join("kubeconfig")
    }

    /// The kubeconfig of one cluster.
    #[must_use]
    pub fn kubeconfig_of(&self, name: &str) -> PathBuf {
        self.dir.join(format!("{name}.kubeconfig"))
    }

    /// Starts the controllers; does nothing when they run.
    pub fn start_controllers(&mut self, options: Options) {
        if self.controllers.is_some() {
            return;
        }
        let stop = self.stop.child_token();
        let hub = kube::Config::new(http::Uri::from_static("https://hub.invalid"));
        let run = entourage_controllers::run(options, hub, self.clients(), stop.clone());
        self.controllers = Some(Running {
            stop,
            task: tokio::spawn(run),
        });
    }

    /// Ends the controllers in an orderly way.
    ///
    /// # Errors
    /// When they ended with an error, or do not end.
    pub async fn stop_controllers(&mut self) -> Result<()> {
        let Some(running) = self.controllers.take() else {
            return Ok(());
        };
        running.stop.cancel();
        let ended = tokio::time::timeout(STOP, running.task).await;
        ended
            .context("the controllers do not end")??
            .context("the controllers ended")
    }

    /// Waits until the controllers end, which they do only with an error or when they are told to.
    ///
    /// # Errors
    /// Why they ended.
    pub async fn controllers_ended(&mut self) -> Result<()> {
        match &mut self.controllers {
            Some(running) => (&mut running.task).await?.context("the controllers ended"),
            None => std::future::pending().await,
        }
    }

    /// Clients of the clusters for the controllers: of clusters of this fleet without a socket, of others over the network.
    #[must_use]
    pub fn clients(&self) -> ClientFactory {
        let others = entourage_controllers::plain_clients();
        let ours: Vec<(String, Service)> = self
            .machines()
            .map(|machine| (machine.endpoint(), machine.cluster.service()))
            .collect();
        let hub = self.hub.cluster.service().with_token(&self.hub.token);
        Arc::new(move |scope, config| {
            if scope == "hub" {
                return Ok(kube::Client::new(entourage_agent(hub.clone()), "default"));
            }
            let url = config.cluster_url.to_string();
            let url = url.trim_end_matches('/');
            match ours.iter().find(|(endpoint, _)| endpoint == url) {
                Some((_, service)) => {
                    let token = config
                        .auth_info
                        .token
                        .as_ref()
                        .map(|token| token.expose_secret().to_owned());
                    let service = service.clone().with_token(&token.unwrap_or_default());
                    Ok(kube::Client::new(entourage_agent(service), "default"))
                }
                None => others(scope, config),
            }
        })
    }

    /// Ends everything. What is kept is on disk when this returns.
    ///
    /// # Errors
    /// As [`stop_controllers`](Self::stop_controllers).
    pub async fn end(mut self) -> Result<()> {
        let ended = self.stop_controllers().await;
        self.stop.cancel();
        ended
    }

    /// Our kinds on the hub, and the members joined.
    async fn furnish(&self) -> Result<()> {
        let hub = self.hub.client();
        crds::apply(&hub, entourage_api::crds::crds(None), &mut std::io::sink()).await?;
        // Once for all joins, which run at the same time.
        let mut target = Target {
            client: hub.clone(),
            place: "hub",
            dry_run: false,
            out: &mut std::io::sink(),
        };
        ensure_namespace(&mut target, CLUSTER_NAMESPACE).await?;
        let joins = self.members.iter().map(|member| {
            let (hub, member_client) = (hub.clone(), member.client());
            let reach = Reach {
                endpoint: member.endpoint(),
                ca_bundle: Some(self.authority.clone()),
            };
            let args = join_args(&member.name);
            async move {
                let joined = join::join(&args, hub, member_client, &reach, &mut std::io::sink()).await;
                joined.with_context(|| format!("cannot join {}", args.name))
            }
        });
        futures::stream::iter(joins)
            .buffer_unordered(JOINS)
            .try_collect::<()>()
            .await
    }

    fn write_kubeconfigs(&self) -> Result<()> {
        let all = files::kubeconfig(&self.authority, self.machines())?;
        files::private(&self.kubeconfig(), &all)?;
        for machine in self.machines() {
            let one = files::kubeconfig(&self.authority, std::iter::once(machine))?;
            files::private(&self.kubeconfig_of(&machine.name), &one)?;
        }
        Ok(())
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn names(members: usize) -> impl Iterator<Item = String> {
    std::iter::once("hub".to_owned()).chain((1..=members).map(|number| format!("member{number}")))
}

async fn machine(
    kept: &files::Kept,
    name: &str,
    authority: &listener::Authority,
    stop: &CancellationToken,
) -> Result<Machine> {
    let token = kept.token(name);
    let cluster = Cluster::open(entourage_apiserver::Options {
        name: name.to_owned(),
        admin_token: token.clone(),
        authority: Some(authority.certificate.clone()),
        data: kept.store(name),
        ..entourage_apiserver::Options::default()
    })?;
    let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, kept.port(name)));
    let bound = listener::listen(cluster.clone(), authority, wanted, stop.clone()).await;
    let address = match bound {
        // Somebody else has the port of the last run: kubeconfigs are written anew with another one.
        Err(_) if wanted.port() != 0 => {
            let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            listener::listen(cluster.clone(), authority, any, stop.clone()).await
        }
        bound => bound,
    };
    Ok(Machine {
        name: name.to_owned(),
        cluster,
        address: address.map_err(|error| anyhow!("no port on 127.0.0.1 for {name}: {error}"))?,
        token,
    })
}

fn join_args(name: &str) -> JoinArgs {
    JoinArgs {
        name: name.to_owned(),
        cluster_kubeconfig: PathBuf::new(),
        cluster_context: None,
        hub: crate::args::HubArgs::default(),
        labels: std::collections::BTreeMap::new(),
        provider: None,
        region: None,
        zone: Vec::new(),
        cluster_namespace: CLUSTER_NAMESPACE.to_owned(),
        api_endpoint: None,
        insecure_skip_tls_verification: false,
        proxy_url: None,
        admin: true,
        allow: Vec::new(),
        wait: Duration::ZERO,
        dry_run: false,
    }
}

/// The service with the User-Agent of the controllers, which managedFields show.
fn entourage_agent(service: Service) -> Service {
    service.with_agent(concat!("entourage/", env!("CARGO_PKG_VERSION")))
}

/// The directory of a fleet that keeps nothing.
#[must_use]
pub fn temporary(purpose: &str) -> PathBuf {
    std::env::temp_dir().join(format!("entourage-{purpose}-{}", std::process::id()))
}

/// Removes the directory of a fleet that keeps nothing. What cannot be removed stays.
pub fn remove_temporary(dir: &Path) {
    let _ = std::fs::remove_dir_all(dir);
}

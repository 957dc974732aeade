//! A hub and members in this process: embedded API servers, and the controllers between them.
//!
//! The controllers reach the clusters without sockets; people and their tools over TLS on loopback, with the kubeconfig files
//! in the fleet's directory.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow};
use entourage_apiserver::{Cluster, Connector, Service, StandIns, listener, workloads};
use entourage_controllers::{ClientFactory, Options};
use futures::{StreamExt as _, TryStreamExt as _};
use kube::{Api, api::DynamicObject};
use secrecy::ExposeSecret as _;
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::AbortOnDropHandle,
};
use tracing::warn;

use crate::{
    apply::{CLUSTER, Target, ensure_namespace},
    args::CLUSTER_NAMESPACE,
    crds,
    join::{self, JoinArgs, Reach, Rights},
    wait::{Waited, until},
};

mod files;
mod limits;
mod proxy;
mod switch;

/// The number of concurrent joins.
const JOINS: usize = 8;

/// The time that the controllers may take to end.
const STOP: Duration = Duration::from_secs(6);

/// The time to wait for a member that was being removed when the last run ended.
const REMOVAL: Duration = Duration::from_secs(10);

/// The files of a fleet on disk.
#[derive(Clone, Debug)]
pub enum Place {
    /// None.
    Nowhere,
    /// Kubeconfigs in a new directory with this name prefix, which is deleted with the fleet.
    Temporary(&'static str),
    /// Objects, credentials and kubeconfigs in this directory, for the next run.
    Kept(PathBuf),
}

/// One cluster of a fleet.
#[derive(Debug)]
pub struct Machine {
    /// `hub` or `memberN`.
    pub name: String,
    /// The cluster.
    pub cluster: Cluster,
    /// Its address.
    pub address: SocketAddr,
    token: files::Token,
    /// The switch between the controllers and this cluster.
    switch: switch::Switch,
}

impl Machine {
    /// Its URL in kubeconfigs.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("https://{}", self.address)
    }

    /// A client with admin rights, without a socket.
    #[must_use]
    pub fn client(&self) -> kube::Client {
        self.cluster.client()
    }
}

/// A hub, its members, and the controllers. They end on drop.
#[derive(Debug)]
pub struct Fleet {
    /// The cluster with policies and templates.
    pub hub: Machine,
    /// The target clusters.
    pub members: Vec<Machine>,
    authority: String,
    dir: Option<files::Directory>,
    stop: DropGuard,
    controllers: Option<Running>,
    /// Answers `clusters/NAME/proxy` of the hub.
    proxy: Option<Proxied>,
}

struct Proxied(#[expect(dead_code, reason = "held until dropped")] Arc<dyn Connector>);

impl std::fmt::Debug for Proxied {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Proxied")
    }
}

#[derive(Debug)]
struct Running {
    stop: CancellationToken,
    task: AbortOnDropHandle<Result<(), entourage_controllers::Error>>,
}

/// The options of the controllers of a fleet: with all features, since its clusters are only the user's own.
#[must_use]
pub fn options() -> Options {
    Options {
        distribute: true,
        model_resources: true,
        ..Options::default()
    }
}

impl Fleet {
    /// Starts a hub and the given number of members, `member1` to `memberN`, installs our kinds on the hub, joins the members
    /// and starts the controllers.
    ///
    /// # Errors
    /// A port, a file or a store cannot be used, with its name and the remedy.
    pub async fn start(members: usize, place: &Place, controllers: Options) -> Result<Self> {
        limits::suffice(members, matches!(place, Place::Kept(_)))?;
        let kept = files::Kept::open(place, members)?;
        let authority = kept.authority()?;
        let stop = CancellationToken::new();
        // From here on, all that was started ends if this function fails.
        let guard = stop.clone().drop_guard();
        let mut machines = Vec::with_capacity(members + 1);
        for name in names(members) {
            machines.push(machine(&kept, &name, &authority, stand_ins(&name, place), &stop).await?);
        }
        kept.remember(members, &authority, machines.iter())?;
        let mut machines = machines.into_iter();
        let mut fleet = Self {
            hub: machines.next().context("a fleet has a hub")?,
            members: machines.collect(),
            authority: authority.certificate.clone(),
            dir: kept.directory(),
            stop: guard,
            controllers: None,
            proxy: None,
        };
        // A hub runs no workloads.
        for member in &fleet.members {
            workloads::start(&member.cluster, workloads::Stages::default());
        }
        fleet.write_kubeconfigs()?;
        crds::apply(
            &fleet.hub.client(),
            entourage_api::crds::crds(None),
            &mut std::io::sink(),
        )
        .await?;
        fleet.join_members(&controllers).await?;
        fleet.start_controllers(controllers);
        let clients = fleet.clients_with(entourage_controllers::passing_clients());
        fleet.proxy = Some(Proxied(proxy::serve(&fleet.hub.cluster, clients)));
        Ok(fleet)
    }

    /// The hub, then the members.
    pub fn machines(&self) -> impl Iterator<Item = &Machine> + Clone {
        std::iter::once(&self.hub).chain(&self.members)
    }

    /// A kubeconfig with a context for each cluster; that of the hub is the current one. `None` if nothing is on disk.
    #[must_use]
    pub fn kubeconfig(&self) -> Option<PathBuf> {
        self.dir.as_ref().map(|dir| dir.path().join("kubeconfig"))
    }

    /// The kubeconfig of one cluster.
    #[must_use]
    pub fn kubeconfig_of(&self, name: &str) -> Option<PathBuf> {
        self.dir
            .as_ref()
            .map(|dir| dir.path().join(format!("{name}.kubeconfig")))
    }

    /// Starts the controllers; does nothing if they run.
    pub fn start_controllers(&mut self, options: Options) {
        if self.controllers.is_some() {
            return;
        }
        let stop = self.stop.token().child_token();
        let hub = kube::Config::new(http::Uri::from_static("https://hub.invalid"));
        let run = entourage_controllers::run(options, hub, self.clients(), stop.clone());
        self.controllers = Some(Running {
            stop,
            task: AbortOnDropHandle::new(tokio::spawn(run)),
        });
    }

    /// Ends the controllers gracefully.
    ///
    /// # Errors
    /// They ended with an error, or do not end.
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

    /// Waits until the controllers end, which they do only with an error or on request.
    ///
    /// # Errors
    /// Their error.
    pub async fn controllers_ended(&mut self) -> Result<()> {
        match &mut self.controllers {
            Some(running) => (&mut running.task).await?.context("the controllers ended"),
            None => std::future::pending().await,
        }
    }

    /// Clients of the clusters for the controllers: of clusters of this fleet without a socket, of others over the network.
    #[must_use]
    pub fn clients(&self) -> ClientFactory {
        self.clients_with(entourage_controllers::plain_clients())
    }

    /// The same with this factory for the others.
    fn clients_with(&self, others: ClientFactory) -> ClientFactory {
        let ours: Vec<(String, switch::Switched)> = self
            .machines()
            .map(|machine| {
                (
                    machine.endpoint(),
                    machine.switch.guard(machine.cluster.service()),
                )
            })
            .collect();
        let hub = self.hub.cluster.service().with_token(self.hub.token.expose());
        Arc::new(move |scope, config| {
            if scope == "hub" {
                return Ok(kube::Client::new(entourage_agent(hub.clone()), "default"));
            }
            let url = config.cluster_url.to_string();
            let url = url.trim_end_matches('/');
            match ours.iter().find(|(endpoint, _)| endpoint == url) {
                Some((_, switched)) => {
                    let token = config
                        .auth_info
                        .token
                        .as_ref()
                        .map(|token| token.expose_secret().to_owned());
                    let token = token.unwrap_or_default();
                    let service = switched
                        .clone()
                        .map(|service| entourage_agent(service.with_token(&token)));
                    Ok(kube::Client::new(service, "default"))
                }
                None => others(scope, config),
            }
        })
    }

    /// Cuts a member off from the controllers: their requests are refused, and their open watches end. The member keeps running
    /// and [its own client](Machine::client) reaches it.
    ///
    /// # Errors
    /// There is no such member.
    pub fn disconnect(&self, member: &str) -> Result<()> {
        self.member(member)?.switch.disconnect();
        Ok(())
    }

    /// Reconnects a member to the controllers.
    ///
    /// # Errors
    /// There is no such member.
    pub fn reconnect(&self, member: &str) -> Result<()> {
        self.member(member)?.switch.reconnect();
        Ok(())
    }

    /// A member by its name.
    ///
    /// # Errors
    /// It is not found; the error lists the members.
    pub fn member(&self, name: &str) -> Result<&Machine> {
        let mut members = self.members.iter();
        members.find(|member| member.name == name).with_context(|| {
            let count = self.members.len();
            format!("member {name:?} not found; this fleet has member1 to member{count}")
        })
    }

    /// Ends all of it. When this returns, kept data is on disk, and its files are closed.
    ///
    /// # Errors
    /// As [`stop_controllers`](Self::stop_controllers), or another owner still holds a cluster of a fleet that is kept.
    pub async fn end(mut self) -> Result<()> {
        let ended = self.stop_controllers().await;
        let kept = matches!(self.dir, Some(files::Directory::Kept(_)));
        let closed: Vec<_> = self.machines().map(|machine| machine.cluster.closed()).collect();
        drop(self);
        if kept {
            let closed = tokio::time::timeout(STOP, futures::future::join_all(closed)).await;
            closed.context("the stores are still in use")?;
        }
        ended
    }

    /// Joins the members that are not joined yet. Cost: one list of Clusters, and a few calls for each member.
    async fn join_members(&mut self, controllers: &Options) -> Result<()> {
        let hub = self.hub.client();
        // Once for all joins, which run concurrently.
        let mut target = Target {
            client: hub.clone(),
            place: "hub",
            dry_run: false,
            out: &mut std::io::sink(),
        };
        ensure_namespace(&mut target, CLUSTER_NAMESPACE).await?;
        let mut joined = join::hub::list_clusters(&target).await?;
        let mut leaving: Vec<String> = joined
            .extract_if(.., |cluster| cluster.metadata.deletion_timestamp.is_some())
            .filter_map(|cluster| cluster.metadata.name)
            .collect();
        if !leaving.is_empty() {
            // The last run ended before its controllers finished the removal.
            self.start_controllers(controllers.clone());
            leaving = self.still_there(leaving).await?;
        }
        let joined = Arc::new(joined);
        let staying = self
            .members
            .iter()
            .filter(|member| !leaving.contains(&member.name));
        let joins = staying.map(|member| {
            let (hub, member_client, joined) = (hub.clone(), member.client(), joined.clone());
            let reach = Reach {
                endpoint: member.endpoint(),
                ca_bundle: Some(self.authority.clone()),
            };
            let args = join_args(&member.name);
            async move {
                let out = &mut std::io::sink();
                let done = join::join_beside(&joined, &args, hub, member_client, &reach, out).await;
                done.with_context(|| format!("cannot join {}", args.name))
            }
        });
        futures::stream::iter(joins)
            .buffer_unordered(JOINS)
            .try_collect::<()>()
            .await
    }

    /// Waits for the removal of these members. Those that are not removed in time are returned, and served but not joined.
    async fn still_there(&self, leaving: Vec<String>) -> Result<Vec<String>> {
        let api: Api<DynamicObject> = Api::all_with(self.hub.client(), &CLUSTER.resource());
        let mut left = Vec::new();
        for name in leaving {
            if let Waited::TimedOut(_) = until(&api, &name, REMOVAL, |cluster| cluster.is_none()).await? {
                warn!(
                    cluster = name,
                    "the member was being removed when the last run ended and is not gone yet; the status of its Cluster shows the reason"
                );
                left.push(name);
            }
        }
        Ok(left)
    }

    fn write_kubeconfigs(&self) -> Result<()> {
        let Some(all) = self.kubeconfig() else {
            return Ok(());
        };
        files::private(&all, &files::kubeconfig(&self.authority, self.machines())?)?;
        for machine in self.machines() {
            if let Some(path) = self.kubeconfig_of(&machine.name) {
                let one = files::kubeconfig(&self.authority, std::iter::once(machine))?;
                files::private(&path, &one)?;
            }
        }
        Ok(())
    }
}

/// The name of the hub.
const HUB: &str = "hub";

fn names(members: usize) -> impl Iterator<Item = String> {
    std::iter::once(HUB.to_owned()).chain((1..=members).map(|number| format!("member{number}")))
}

/// The parts of a whole cluster that one has. The members of a drill stand for others, whose nodes and classes are not known:
/// every pod runs there and every claim is bound.
fn stand_ins(name: &str, place: &Place) -> StandIns {
    match place {
        _ if name == HUB => StandIns::default(),
        Place::Nowhere => StandIns {
            node: false,
            volumes: false,
            ..StandIns::ALL
        },
        Place::Temporary(_) | Place::Kept(_) => StandIns::ALL,
    }
}

async fn machine(
    kept: &files::Kept,
    name: &str,
    authority: &listener::Authority,
    stand_ins: StandIns,
    stop: &CancellationToken,
) -> Result<Machine> {
    let token = kept.token(name);
    let cluster = Cluster::open(entourage_apiserver::Options {
        name: name.to_owned(),
        admin_token: token.expose().to_owned(),
        authority: Some(authority.clone()),
        storage_protection: true,
        default_classes: stand_ins.volumes,
        stand_ins,
        data: kept.store(name),
        ..entourage_apiserver::Options::default()
    })?;
    let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, kept.port(name)));
    let bound = listener::listen(cluster.clone(), authority, wanted, stop.clone()).await;
    let address = match bound {
        // Another process has the port of the last run: kubeconfigs are written again with a new one.
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
        switch: switch::Switch::default(),
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
        impersonate: None,
        replace: false,
        rights: Rights::Keep,
        wait: Duration::ZERO,
        dry_run: false,
    }
}

/// The service with the User-Agent of the controllers, which managedFields contain.
fn entourage_agent(service: Service) -> Service {
    service.with_agent(concat!("entourage/", env!("CARGO_PKG_VERSION")))
}

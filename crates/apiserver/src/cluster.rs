//! One embedded cluster: a server with its controllers, its clients and its service.

use std::sync::Arc;

use tokio::sync::watch;

use crate::{
    connection::{Connector, Subresource},
    controllers::{self, Context as _},
    server::{Options, Server},
    store::{OpenError, Store},
};

mod service;

pub use service::Service;

/// An embedded cluster. Clones are the same cluster; it lives as long as one of them.
#[derive(Clone, Debug)]
pub struct Cluster(Arc<Server>);

impl Cluster {
    /// A cluster in memory, with the namespaces and objects that every cluster has. Its controllers (namespaces, garbage
    /// collection, service accounts, CRDs) run as tasks of the current Tokio runtime until the last clone is dropped.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self::with(options, Store::new())
    }

    /// The same, with its objects in the file that the options name, if they name one.
    ///
    /// # Errors
    /// The file cannot be read, is in use or is not a store; the error names the remedy.
    pub fn open(options: Options) -> Result<Self, OpenError> {
        let store = match &options.data {
            Some(file) => Store::open(file)?,
            None => Store::new(),
        };
        Ok(Self::with(options, store))
    }

    fn with(options: Options, store: Store) -> Self {
        let server = Server::new(options, store);
        let controlled: Arc<dyn controllers::Context> = server.clone();
        controllers::start(&controlled);
        Self(server)
    }

    /// The state of the cluster, for the modules that answer its requests.
    pub(crate) fn inner(&self) -> &Arc<Server> {
        &self.0
    }

    /// The tower service: requests without TLS, in this process. The user is that of the Authorization header.
    #[must_use]
    pub fn service(&self) -> Service {
        Service::new(self.clone())
    }

    /// The same with the cluster's admin as the user of requests that name none.
    #[must_use]
    pub fn admin_service(&self) -> Service {
        self.service().with_token(&self.0.options.admin_token)
    }

    /// Returns a function that makes services of the cluster as its admin, and does not keep the cluster alive.
    pub(crate) fn weak_service(&self) -> impl Fn() -> Option<Service> + Send + use<> {
        let weak = Arc::downgrade(&self.0);
        move || {
            let cluster = Self(weak.upgrade()?);
            Some(cluster.admin_service())
        }
    }

    /// A client of the cluster as its admin, without a socket.
    #[must_use]
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.admin_service(), "default")
    }

    /// Ends when the last clone of this cluster is dropped and its file, if it has one, is closed: everything that was answered
    /// is in it, and it can be opened again.
    pub fn closed(&self) -> impl Future<Output = ()> + Send + use<> {
        self.0.closed().clone().cancelled_owned()
    }

    /// Has `connector` answer the requests of a subresource, as long as somebody keeps it alive. The cluster does not. Discovery lists
    /// the subresource as long as the resource is served.
    pub fn connect(&self, subresource: Subresource, connector: &Arc<dyn Connector>) {
        self.0.connectors.insert(subresource, connector);
        let Subresource {
            group,
            version,
            resource,
            subresource,
        } = subresource;
        self.0
            .change_kinds(&mut |kinds| kinds.connect([group, version], resource, subresource));
    }

    /// The objects beside the API: for tests that read or write them without a request.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// Changes when other kinds are served; the value is the number of changes.
    #[must_use]
    pub fn kinds_changes(&self) -> watch::Receiver<u64> {
        self.0.kinds_changes()
    }

    /// Drops all events: watches and pages of earlier revisions fail as too old.
    pub fn forget_history(&self) {
        self.0.store.compact(self.0.store.revision());
    }
}

#[cfg(test)]
impl Cluster {
    /// A cluster without controllers: it needs no runtime.
    pub(crate) fn bare(options: Options) -> Self {
        Self(Server::new(options, Store::new()))
    }
}

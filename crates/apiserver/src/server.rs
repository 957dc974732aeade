//! The state of one embedded cluster: its store, kinds, keys and clock, and the narrow views of it for the modules below.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::{Arc, OnceLock, PoisonError, RwLock},
};

use jiff::Timestamp;
use serde_json::json;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    admission,
    auth::{Access, Auth, User, policy, token},
    authority::Authority,
    connection::Connectors,
    controllers::{self, StandIns},
    kinds,
    object::Object,
    openapi::Documents,
    random::new_uid,
    registry,
    resource::{Kinds, Surroundings, stored},
    store::{Event, Page, Revision, Store},
};

/// The options of a cluster.
#[derive(Clone)]
pub struct Options {
    /// The name, for logs.
    pub name: String,
    /// Bearer token of the user `admin`, member of `system:masters`; a random one when none is given.
    pub admin_token: String,
    /// Further bearer tokens and their users.
    pub tokens: Vec<(String, User)>,
    /// The authority that signs the server's certificate: Secrets with tokens carry its own, and it signs what approved
    /// CertificateSigningRequests ask for. Without one nothing is signed.
    pub authority: Option<Authority>,
    /// True if claims and volumes that are being deleted are released once they are unused, as by the controllers
    /// `pvc-protection` and `pv-protection`, which an API server alone lacks. Default: false.
    pub storage_protection: bool,
    /// True if claims and Ingresses that name no class get the default one, and Pods what their RuntimeClass says. A hub
    /// leaves that to its members. Default: true.
    pub default_classes: bool,
    /// The parts of a whole cluster that this one has. Default: none, as on a hub.
    pub stand_ins: StandIns,
    /// File that holds the objects and survives the process; `None`: they live in memory.
    pub data: Option<PathBuf>,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            name: "cluster".to_owned(),
            admin_token: new_uid(),
            tokens: Vec::new(),
            authority: None,
            storage_protection: false,
            default_classes: true,
            stand_ins: StandIns::default(),
            data: None,
        }
    }
}

/// The state of one embedded cluster: its objects, kinds, keys and clock.
#[derive(Debug)]
pub(crate) struct Server {
    /// Its options.
    pub(crate) options: Options,
    /// All objects.
    pub(crate) store: Store,
    /// Keys and grants.
    pub(crate) auth: Auth,
    /// OpenAPI documents.
    pub(crate) documents: Documents,
    /// Subresources that others answer.
    pub(crate) connectors: Connectors,
    /// The first address at which it is served.
    address: OnceLock<SocketAddr>,
    fairness: [(&'static str, http::HeaderValue); 2],
    kinds: RwLock<Arc<Kinds>>,
    /// The number of their changes.
    kinds_changes: watch::Sender<u64>,
    /// The last field: it goes when the store is closed.
    closed: DropGuard,
}

/// Namespaces that every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

impl Server {
    /// A server of what is stored, with the namespaces and objects that every cluster has.
    pub(crate) fn new(options: Options, store: Store) -> Arc<Self> {
        let mut kinds = kinds::builtin();
        if options.stand_ins.api_services {
            for resource in kinds::api_services() {
                kinds.add(resource);
            }
        }
        let server = Self {
            auth: Auth::new(options.admin_token.clone(), options.tokens.clone()),
            options,
            store,
            documents: Documents::default(),
            connectors: Connectors::default(),
            address: OnceLock::new(),
            fairness: fairness(),
            kinds: RwLock::new(Arc::new(kinds)),
            kinds_changes: watch::Sender::new(0),
            closed: CancellationToken::new().drop_guard(),
        };
        server.furnish();
        Arc::new(server)
    }

    /// The kinds served now.
    pub(crate) fn kinds(&self) -> Arc<Kinds> {
        self.kinds.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keys and grants, and the store that they are read from.
    pub(crate) const fn access(&self) -> Access<'_> {
        Access {
            auth: &self.auth,
            store: &self.store,
        }
    }

    /// The clock. One place, so that tests may set it.
    pub(crate) fn timestamp(&self) -> Timestamp {
        Timestamp::now()
    }

    /// Cancelled when the server is gone and its store is closed.
    pub(crate) fn closed(&self) -> &CancellationToken {
        self.closed.token()
    }

    /// Notes an address at which the server is served from now on.
    pub(crate) fn advertise(&self, address: SocketAddr) {
        if self.address.set(address).is_ok() {
            // The same kinds as before: this wakes the controllers.
            self.kinds_changes.send_modify(|_| {});
        }
    }

    /// The headers that name the flow schema and priority level of a request: the same two for all.
    pub(crate) fn fairness(&self) -> &[(&'static str, http::HeaderValue)] {
        &self.fairness
    }

    fn furnish(&self) {
        for name in NAMESPACES {
            let namespace = json!({"metadata": {"labels": {"kubernetes.io/metadata.name": name}},
                "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}});
            controllers::create(&self.store, &self.now(), "namespaces", name, namespace);
        }
        policy::furnish(&self.store, &self.now());
    }
}

impl Surroundings for Server {
    fn has_default_classes(&self) -> bool {
        self.options.default_classes
    }

    fn get(&self, collection: &str, key: &str) -> Option<Object> {
        self.store
            .get(collection, key)
            .map(|entry| stored::decode(&entry.object))
    }

    fn list(&self, collection: &str, prefix: &str) -> Vec<Object> {
        let page = self.store.list(collection, prefix, None, 0);
        page.entries
            .iter()
            .map(|entry| stored::decode(&entry.object))
            .collect()
    }

    fn events(&self, collection: &str, since: Revision) -> Option<(Vec<Arc<Event>>, Revision)> {
        self.store.events(collection, "", since, 0).ok()
    }

    fn entries(&self, collection: &str) -> Page {
        self.store.list(collection, "", None, 0)
    }

    fn now(&self) -> String {
        self.timestamp().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }
}

impl admission::Context for Server {
    fn kinds(&self) -> Arc<Kinds> {
        self.kinds()
    }

    fn store(&self) -> &Store {
        &self.store
    }

    fn timestamp(&self) -> Timestamp {
        self.timestamp()
    }
}

impl registry::Context for Server {
    fn access(&self) -> Access<'_> {
        self.access()
    }
}

impl controllers::Context for Server {
    fn change_kinds(&self, change: &mut dyn FnMut(&mut Kinds)) {
        let mut kinds = self.kinds.write().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut kinds));
        drop(kinds);
        self.kinds_changes.send_modify(|count| *count += 1);
    }

    fn kinds_changes(&self) -> watch::Receiver<u64> {
        self.kinds_changes.subscribe()
    }

    fn token_key(&self) -> &token::Key {
        self.auth.key(&self.store)
    }

    fn authority(&self) -> Option<&Authority> {
        self.options.authority.as_ref()
    }

    fn storage_protection(&self) -> bool {
        self.options.storage_protection
    }

    fn stand_ins(&self) -> StandIns {
        self.options.stand_ins
    }

    fn address(&self) -> SocketAddr {
        let unserved = SocketAddr::from((Ipv4Addr::LOCALHOST, 443));
        self.address.get().copied().unwrap_or(unserved)
    }
}

fn fairness() -> [(&'static str, http::HeaderValue); 2] {
    [
        "x-kubernetes-pf-flowschema-uid",
        "x-kubernetes-pf-prioritylevel-uid",
    ]
    .map(|name| {
        let uid = http::HeaderValue::from_str(&new_uid());
        (name, uid.unwrap_or(http::HeaderValue::from_static("")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_that_is_given_no_token_makes_up_its_own() {
        let tokens = [Options::default(), Options::default()].map(|options| options.admin_token);
        assert_ne!(tokens[0], tokens[1]);
        assert!(tokens.iter().all(|token| token.len() >= 32));
    }
}

#[cfg(test)]
pub(crate) mod tests_support {
    //! Servers for unit tests.

    use super::*;

    /// A server without controllers: it needs no runtime.
    pub(crate) fn bare() -> Arc<Server> {
        Server::new(Options::default(), Store::new())
    }

    /// The options of one whose admin has the token `admin`.
    pub(crate) fn admins() -> Options {
        Options {
            admin_token: "admin".to_owned(),
            ..Options::default()
        }
    }
}

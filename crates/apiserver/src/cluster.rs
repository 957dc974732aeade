//! One embedded cluster: its store, its kinds, its clock, and the doors to it.

use std::{
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
};

use bytes::Bytes;
use jiff::Timestamp;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    controllers,
    kinds::Kinds,
    resource::{Object, Resource, Surroundings},
    store::{Entry, Event, Expect, OpenError, Page, Revision, Store},
};

mod service;

pub use service::{Body, Service};

/// How a cluster is made.
#[derive(Clone)]
pub struct Options {
    /// Name, for logs.
    pub name: String,
    /// Bearer token of the user `admin`, member of `system:masters`; a random one when none is given.
    pub admin_token: String,
    /// Further bearer tokens and whom they belong to.
    pub tokens: Vec<(String, crate::auth::User)>,
    /// Certificate of the authority that signs the server's, PEM: Secrets with tokens carry it.
    pub authority: Option<String>,
    /// Whether claims and volumes that are being deleted, and that nothing uses, are let go: what the controllers
    /// `pvc-protection` and `pv-protection` do, which an API server alone lacks. Default: no.
    pub storage_protection: bool,
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
            data: None,
        }
    }
}

/// An embedded cluster. Clones are the same cluster; it lives as long as one of them.
#[derive(Clone, Debug)]
pub struct Cluster(Arc<Inner>);

/// What the modules of the server share.
#[derive(Debug)]
pub struct Inner {
    /// How it was made.
    pub options: Options,
    /// All objects.
    pub store: Store,
    /// Keys and grants.
    pub auth: crate::auth::Auth,
    /// OpenAPI documents.
    pub documents: crate::openapi::Documents,
    fairness: [(&'static str, http::HeaderValue); 2],
    kinds: RwLock<Arc<Kinds>>,
    /// How often they changed.
    kinds_changes: watch::Sender<u64>,
    /// The last field: it goes when the store is closed.
    closed: DropGuard,
}

/// Namespaces that every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

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
    /// When the file cannot be read, is in use or no store; the error says what to do.
    pub fn open(options: Options) -> Result<Self, OpenError> {
        let store = match &options.data {
            Some(file) => Store::open(file)?,
            None => Store::new(),
        };
        Ok(Self::with(options, store))
    }

    fn with(options: Options, store: Store) -> Self {
        let cluster = Self::made(options, store);
        controllers::start(&cluster);
        cluster
    }

    fn made(options: Options, store: Store) -> Self {
        let cluster = Self(Arc::new(Inner {
            options,
            store,
            auth: crate::auth::Auth::default(),
            documents: crate::openapi::Documents::default(),
            fairness: fairness(),
            kinds: RwLock::new(Arc::new(Kinds::builtin())),
            kinds_changes: watch::Sender::new(0),
            closed: CancellationToken::new().drop_guard(),
        }));
        cluster.furnish();
        cluster
    }

    /// What is shared; modules of the server use it.
    #[must_use]
    pub fn inner(&self) -> &Arc<Inner> {
        &self.0
    }

    /// The tower service: requests without TLS, in this process. The user is whoever the Authorization header says.
    #[must_use]
    pub fn service(&self) -> Service {
        Service::new(self.clone())
    }

    /// Makes services of the cluster as its admin as long as the cluster lives, without keeping it alive.
    pub(crate) fn weak_service(&self) -> impl Fn() -> Option<Service> + Send + use<> {
        let weak = Arc::downgrade(&self.0);
        move || {
            let cluster = Self(weak.upgrade()?);
            let token = cluster.0.options.admin_token.clone();
            Some(cluster.service().with_token(&token))
        }
    }

    /// A client of the cluster as its admin, without a socket.
    #[must_use]
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.service().with_token(&self.0.options.admin_token), "default")
    }

    /// Ends when the last clone of this cluster is dropped and its file, if it has one, is closed: everything that was answered
    /// is in it, and it can be opened again.
    pub fn closed(&self) -> impl Future<Output = ()> + Send + use<> {
        self.0.closed.token().clone().cancelled_owned()
    }

    /// Forgets all events: watches and pages of earlier revisions are told that they are too old.
    pub fn forget_history(&self) {
        self.0.store.compact(self.0.store.revision());
    }

    fn furnish(&self) {
        for name in NAMESPACES {
            let namespace = json!({
                "metadata": {"name": name, "uid": new_uid(), "creationTimestamp": self.0.now(),
                    "labels": {"kubernetes.io/metadata.name": name}},
                "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
            });
            if let Value::Object(namespace) = namespace {
                let _ = self.0.store.put("namespaces", name, Expect::Absent, |revision| {
                    encode(namespace, revision)
                });
            }
        }
        crate::auth::policy::furnish(&self.0);
    }
}

impl Inner {
    /// The headers that name the flow schema and priority level of a request: the same two for all.
    pub(crate) fn fairness(&self) -> &[(&'static str, http::HeaderValue)] {
        &self.fairness
    }

    /// The kinds served now.
    #[must_use]
    pub fn kinds(&self) -> Arc<Kinds> {
        self.kinds.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the kinds by what `change` makes of them.
    pub fn change_kinds(&self, change: impl FnOnce(&mut Kinds)) {
        let mut kinds = self.kinds.write().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut kinds));
        drop(kinds);
        self.kinds_changes.send_modify(|count| *count += 1);
    }

    /// Tells when the kinds change; the value says how often they did.
    #[must_use]
    pub fn kinds_changes(&self) -> watch::Receiver<u64> {
        self.kinds_changes.subscribe()
    }

    /// The clock. One place, so that tests may set it.
    #[must_use]
    pub fn timestamp(&self) -> Timestamp {
        Timestamp::now()
    }
}

impl Surroundings for Inner {
    fn get(&self, collection: &str, key: &str) -> Option<Object> {
        self.store.get(collection, key).map(|entry| decode(&entry.object))
    }

    fn list(&self, collection: &str, prefix: &str) -> Vec<Object> {
        let page = self.store.list(collection, prefix, None, 0);
        page.entries.iter().map(|entry| decode(&entry.object)).collect()
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

/// A fresh UID (UUID version 4).
#[must_use]
pub fn new_uid() -> String {
    let bits = u128::from_be_bytes(random());
    let bits = bits & !(0xf << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{bits:032x}");
    format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}

/// Sixteen random bytes of the operating system: nobody can guess them.
#[must_use]
pub fn random() -> [u8; 16] {
    let mut bytes = [0; 16];
    SystemRandom::new()
        .fill(&mut bytes)
        .expect("an operating system has randomness");
    bytes
}

/// An object as it is stored: without apiVersion and kind (the resource knows them), with its resourceVersion.
#[must_use]
pub fn encode(mut object: Object, revision: u64) -> Bytes {
    object.remove("apiVersion");
    object.remove("kind");
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.insert("resourceVersion".to_owned(), revision.to_string().into());
    }
    Bytes::from(crate::http::json::compact_map(&object))
}

/// The same for an object in the form of a resource, whose stored form may differ.
#[must_use]
pub fn encode_as(resource: &Resource, mut object: Object, revision: u64) -> Bytes {
    resource.rules.to_stored(&mut object);
    if let Some(custom) = &resource.custom {
        custom.writes(revision);
    }
    encode(object, revision)
}

/// A stored object as a map, without apiVersion and kind.
#[must_use]
pub fn decode(bytes: &[u8]) -> Object {
    serde_json::from_slice(bytes).unwrap_or_default()
}

/// Whether [`shown`] adds nothing but apiVersion and kind to an entry, so that stored bytes may go out as they are.
#[must_use]
pub fn is_shown_as_stored(resource: &Resource, entry: &Entry) -> bool {
    match &resource.custom {
        Some(custom) => custom.is_as_stored(entry.revision),
        None => resource.group != "events.k8s.io" && resource.group != "autoscaling",
    }
}

/// A stored object as the resource shows it: apiVersion and kind in front.
#[must_use]
pub fn shown(resource: &Resource, bytes: &[u8]) -> Object {
    let mut object = decode(bytes);
    resource.rules.show_stored(&mut object);
    object.insert("apiVersion".to_owned(), resource.api_version().into());
    object.insert("kind".to_owned(), resource.kind.clone().into());
    if let Some(custom) = &resource.custom {
        custom.show(&mut object);
    }
    object
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

    #[test]
    fn random_bytes_differ() {
        let all: std::collections::BTreeSet<[u8; 16]> = (0..1000).map(|_| random()).collect();
        assert_eq!(all.len(), 1000);
    }
}

#[cfg(test)]
pub(crate) mod tests_support {
    //! Clusters for unit tests.

    use super::*;

    /// A cluster without controllers: it needs no runtime.
    pub(crate) fn bare() -> Arc<Inner> {
        Cluster::bare(Options::default()).0
    }

    /// The same whose admin has the token `admin`.
    pub(crate) fn admins() -> Options {
        Options {
            admin_token: "admin".to_owned(),
            ..Options::default()
        }
    }

    impl Cluster {
        /// The same with options.
        pub(crate) fn bare(options: Options) -> Self {
            Self::made(options, Store::new())
        }
    }
}

//! An embedded Kubernetes API server: a hub or a member cluster in a few megabytes, for tests, demos and laptops.
//!
//! It serves the wire protocol of a kube-apiserver 1.36 (the recorded exchanges in `conformance/` are its standard) and custom
//! resources by their CRDs, as any API server does; no kind of this project is built in. A request passes through these floors,
//! each of which depends only on those below it:
//!
//! `listener` → `cluster` → `http` (parse, authenticate, authorize, negotiate) → `endpoint` (resource and verb) → `delete`,
//! `registry`, `watch`, `list` (read, make the new state, admit, write) → `admission` → `auth`, `apply`, `decode` → `kinds`,
//! `crd` (the rules of each kind) → `resource` → `schema` → `store` (revisions, events). `controllers` are beside `endpoint`:
//! they change objects without a request.
//!
//! `server`, the whole state of a cluster, is right below `http`. The modules below `server` take the `Store`, or the view of
//! the cluster that they need: `Surroundings` (rules of kinds), `admission::Context`, `registry::Context`,
//! `controllers::Context`.
//!
//! It is not for production: no cluster of yours should depend on it.

mod admission;
mod auth;
mod authority;
mod call;
mod cluster;
mod connection;
mod controllers;
mod delete;
mod discovery;
mod endpoint;
mod hidden;
mod http;
mod json;
mod list;
mod names;
mod object;
mod openapi;
mod printer;
mod query;
mod random;
mod read;
mod registry;
mod scale;
mod server;
mod store;
mod table;
mod watch;
mod x509;

// Parts of the server that are used without one: for checks before anything is sent, and by fuzz targets.
pub mod apply;
pub mod crd;
pub mod decode;
pub mod kinds;
pub mod meta;
pub mod patch;
pub mod quantity;
pub mod resource;
pub mod schema;
pub mod selector;
pub mod status;

// Entry points beside the service.
pub mod listener;
pub mod workloads;

pub use auth::User;
pub use cluster::{Cluster, Service};
pub use connection::{Body, Connected, Connection, Connector, Incoming, Subresource};
pub use controllers::StandIns;
pub use object::Object;
pub use random::random;
pub use server::Options;
pub use store::{Entry, Store};

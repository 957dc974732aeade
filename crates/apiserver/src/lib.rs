//! An embedded Kubernetes API server: a hub or a member cluster in a few megabytes, for tests, demos and laptops.
//!
//! It speaks the wire protocol of a kube-apiserver 1.36 (the recorded exchanges in `conformance/` are its standard),
//! learns custom resources from CRDs as any API server does, and knows no kind of this project. One request goes
//! through these modules, in this order:
//!
//! `listener` → `http` (parse, authenticate, authorize, negotiate) → `endpoint` (which resource, which verb) →
//! `registry` (create, update, delete …: decode, defaults, ownership, validation) → `store` (revisions, watches).
//!
//! It is not for production: no cluster of yours should depend on it.

mod hidden;

pub mod status;

pub mod schema;

pub mod store;

pub mod resource;

pub mod kinds;

pub mod meta;

pub mod names;

pub mod quantity;

pub mod selector;

pub mod patch;

mod admission;

pub mod apply;

pub mod table;

pub mod crd;

pub mod scale;

pub mod registry;

pub mod endpoint;

pub mod auth;

pub mod discovery;

pub mod openapi;

pub mod http;

pub mod listener;

pub mod cluster;

pub mod controllers;

pub mod list;

pub mod watch;

pub mod delete;

pub mod workloads;

pub use cluster::{Cluster, Options, Service};

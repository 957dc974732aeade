//! The vocabulary of Entourage: the types of every API group it serves, the table of their CRDs, and every
//! label, annotation, finalizer, event reason and condition it reads or writes, each named once.
//!
//! The wire format is Karmada's: YAML written for Karmada 1.19 decodes and validates unchanged. What we add
//! to it lies under `entourage.dev/` or in optional status fields, and says so where it is defined.
//! Nothing here decides anything and nothing here talks to a server.

// The lint takes the like-named parts of two `printcolumn(...)` for one part given twice.
#![allow(clippy::duplicated_attributes)]

pub mod apps;
pub mod cluster;
pub mod config;
pub mod crds;
pub mod embedded;
pub mod keys;
pub mod kruise;
pub mod names;
pub mod policy;
mod schema;
pub mod scope;
pub mod work;

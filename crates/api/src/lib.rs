//! The vocabulary of Entourage: the types of every API group it serves, the table of their CRDs, and every label, annotation,
//! finalizer, event reason and condition it reads or writes, each defined once.
//!
//! The wire format is Karmada's: YAML written for Karmada 1.19 decodes and validates unchanged. Our additions lie under
//! `entourage.dev/` or in optional status fields, and their definitions say so. The crate contains no decisions and no client.

// The lint takes the equal parts of two `printcolumn(...)` for one part given twice.
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
pub mod services;
pub mod work;

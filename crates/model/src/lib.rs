//! The vocabulary of Entourage's decisions: the types that every crate above uses.
//!
//! Nothing here decides anything, and nothing here reads a clock, sends a request or draws a random number.
//!
//! | module | words |
//! |---|---|
//! | [`object`] | identities and metadata of objects, kinds, times |
//! | [`server`] | the hub and its members |
//! | [`kinds`] | the kinds of the control plane that are named below their planners |
//! | [`scope`] | what tells a kind from its cluster-scoped twin |
//! | [`selector`] | label selectors |
//! | [`condition`] | conditions of a status |
//! | [`problem`] | what is wrong with a field |
//! | [`rendered`] | an object that is ready to be sent |
//! | [`marks`] | labels and annotations that prove ownership |
//! | [`member_namespace`] | what a namespace of a member says of itself |
//! | [`places`] | where copies of distributions stand, and how each of them does |

pub mod condition;
pub mod kinds;
pub mod marks;
pub mod member_namespace;
pub mod object;
pub mod places;
pub mod problem;
pub mod rendered;
pub mod scope;
pub mod selector;
pub mod server;

//! The vocabulary of Entourage's decisions: the types that all crates above share.
//!
//! The crate contains no decisions; it reads no clock, sends no request and draws no random number.
//!
//! | module | content |
//! |---|---|
//! | [`object`] | identities and metadata of objects, kinds, times |
//! | [`server`] | the hub and its members |
//! | [`kinds`] | the kinds of the control plane that crates below the planners refer to |
//! | [`scope`] | the differences between a kind and its cluster-scoped counterpart |
//! | [`selector`] | label selectors |
//! | [`allowed_clusters`] | allow-lists of clusters |
//! | [`condition`] | conditions of a status |
//! | [`problem`] | an error in a field |
//! | [`quantity`] | Kubernetes quantities, by amount |
//! | [`rendered`] | an object that is ready to be sent |
//! | [`marks`] | labels and annotations that prove ownership |
//! | [`member_namespace`] | the ownership metadata and the content of a member's namespace |
//! | [`places`] | the targets of distributions and the status of the copy in each |

pub mod allowed_clusters;
pub mod condition;
pub mod kinds;
pub mod marks;
pub mod member_namespace;
pub mod object;
pub mod places;
pub mod problem;
pub mod quantity;
pub mod rendered;
pub mod scope;
pub mod selector;
pub mod server;

//! The `entourage` command as a library, which the binary and the end-to-end tests use.
//!
//! - [`command`]: `enum Command`, and one file per command.
//! - [`args`]: values of flags that several commands share.
//! - [`connect`]: clients from kubeconfigs; errors of servers, explained for the user.
//! - [`apply`]: create or update one object and report it, in kubectl's words.
//! - [`mod@bench`]: measuring a control plane on real API servers.
//! - [`fleet`]: a hub and members in this process.
//! - [`kinds`]: the kinds that a server serves, and their scopes.
//! - [`lists`]: the objects of a server, page by page.
//! - [`manifests`]: objects in files, and applying them.
//! - [`members`]: the members of a hub, and clients of them.
//! - [`observe`]: the copies on clusters over time.
//! - [`plain`]: texts of servers, without control characters.
//! - [`output`]: output formats for programs, as kubectl has them.
//! - [`progress`]: the progress of long lists, on a terminal.
//! - [`raw`]: requests by path.
//! - [`style`]: colours on a terminal.
//! - [`suggest`]: the name that was meant.
//! - [`simulate`]: simulations, offline or against a hub.
//! - [`traces`]: the flags of traces.
//! - [`wait`]: wait for a condition of one object by watching it.

pub mod apply;
pub mod args;
#[cfg(feature = "commands")]
pub mod bench;
pub mod command;
pub mod connect;
pub mod crds;
pub mod diff;
#[cfg(feature = "embedded")]
pub mod fleet;
#[cfg(feature = "commands")]
#[cfg(test)]
mod golden;
pub mod join;
pub mod kinds;
pub mod lists;
pub mod logging;
pub mod manifests;
pub mod members;
#[cfg_attr(
    not(feature = "commands"),
    allow(dead_code, reason = "most of it serves the tests of commands")
)]
#[cfg(test)]
mod mock;
#[cfg(feature = "embedded")]
pub mod observe;
pub mod output;
pub mod plain;
pub mod progress;
pub mod raw;
pub mod registration;
#[cfg(feature = "embedded")]
pub mod simulate;
pub mod style;
pub mod suggest;
pub mod traces;
pub mod wait;

/// Sets ring as the process's TLS provider. Call it first: with two providers compiled in, rustls panics at the first
/// connection if none was set. A second call changes nothing.
pub fn install_tls_provider() {
    // An error means that a provider is already installed, which is fine.
    drop(rustls::crypto::ring::default_provider().install_default());
}

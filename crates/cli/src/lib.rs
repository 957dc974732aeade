//! The `entourage` command as a library, which the binary and the end-to-end tests use.
//!
//! - [`command`]: `enum Command`, and one file per command.
//! - [`args`]: values of flags that several commands share.
//! - [`connect`]: from a kubeconfig to a client; what an error of a server means to the person at the keyboard.
//! - [`apply`]: create or update one object and say what happened, in kubectl's words.
//! - [`mod@bench`]: measuring a control plane on real API servers.
//! - [`fleet`]: a hub and members in this process.
//! - [`manifests`]: objects in files, and applying them.
//! - [`observe`]: what is on clusters over time.
//! - [`simulate`]: what would happen, offline or against a hub.
//! - [`wait`]: wait for a condition of one object by watching it.

pub mod apply;
pub mod args;
pub mod bench;
pub mod command;
pub mod connect;
pub mod crds;
pub mod diff;
pub mod fleet;
#[cfg(test)]
mod golden;
pub mod join;
pub mod logging;
pub mod manifests;
#[cfg(test)]
mod mock;
pub mod observe;
pub mod simulate;
pub mod wait;

/// Makes ring the process's TLS provider. Call it first: with two providers compiled in, rustls panics at the first
/// connection when none was chosen. A second call changes nothing.
pub fn install_tls_provider() {
    // An error means that a provider is installed already, which is what is wanted.
    drop(rustls::crypto::ring::default_provider().install_default());
}

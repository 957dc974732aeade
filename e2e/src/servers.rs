//! Clusters for the end-to-end tests: embedded ones, and real ones with etcd, kube-apiserver and kube-controller-manager as
//! child processes.
//!
//! Binaries come from a directory that follows the envtest convention (`KUBEBUILDER_ASSETS`); where nothing can be
//! downloaded, `hack/real-apiserver.sh` prepares one. Everything listens on 127.0.0.1, each cluster has its own etcd, its
//! own certificate authority and the real garbage collector, and nothing outlives the process that started it: not after
//! a panic, not after Ctrl-C, not after SIGKILL (see `guard`).
//!
//! ```no_run
//! # async fn example() -> anyhow::Result<()> {
//! use entourage_e2e::servers::{Assets, Fleet};
//! let Some(assets) = Assets::from_env() else { return Ok(()) };
//! let fleet = Fleet::start(&assets, 3, std::path::Path::new("/tmp/fleet")).await?;
//! let hub: kube::Client = fleet.hub.client();
//! fleet.members[0].pause()?; // a member that hangs
//! fleet.shutdown();
//! # Ok(()) }
//! ```

mod assets;
mod certificates;
mod cluster;
mod control;
mod embedded;
mod flags;
mod fleet;
mod guard;
mod hook;
mod kubeconfig;
#[cfg(test)]
mod live;
mod machine;
pub(crate) mod ports;
mod process;

/// The name of the cluster that is the hub.
const HUB: &str = "hub";

pub use assets::{Assets, CAPABILITIES, Capability, Version};
pub use cluster::{Pids, RealCluster};
pub use control::{CommandProcess, ControlProcess, command_script, play_command};
pub use embedded::EmbeddedCluster;
pub use fleet::Fleet;
pub use hook::{Certificate, Hook};
pub use machine::TestCluster;

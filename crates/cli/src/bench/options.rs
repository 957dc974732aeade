//! Options of a bench.

use std::{path::PathBuf, time::Duration};

use super::scenario::Scenario;

/// What is measured, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The scenarios.
    pub scenarios: Vec<Scenario>,
    /// SIGKILLs in a further run of S1; 0 for no such run.
    pub kills: usize,
    /// The hub; without it as kubectl finds it.
    pub hub: Option<PathBuf>,
    /// The members: name on the hub, kubeconfig.
    pub members: Vec<(String, PathBuf)>,
    /// The API servers of members, which S6 stops for a while: name on the hub, process.
    pub member_pids: Vec<(String, u32)>,
    /// Deployments in S1 to S5.
    pub workloads: usize,
    /// Deployments in each run of S6.
    pub failover_sizes: Vec<usize>,
    /// Namespaces that they lie in.
    pub namespaces: usize,
    /// How often each scenario runs.
    pub runs: usize,
    /// Requests in flight per server.
    pub in_flight: usize,
    /// First part of every namespace's name, and value of the label of every object.
    pub prefix: String,
    /// How long one step of a scenario may take.
    pub limit: Duration,
    /// How long S3 is.
    pub idle: Duration,
    /// Whether everything is left on the servers.
    pub keep: bool,
    /// For the report: how the control plane is started.
    pub controllers: Option<String>,
}

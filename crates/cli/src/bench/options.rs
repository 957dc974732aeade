//! The parameters of a bench.

use std::{path::PathBuf, time::Duration};

use super::scenario::Scenario;

/// The parameters of a bench.
#[derive(Clone, Debug)]
pub struct Options {
    /// The scenarios.
    pub scenarios: Vec<Scenario>,
    /// The number of SIGKILLs in a further run of S1; 0 for no such run.
    pub kills: usize,
    /// The kubeconfig of the hub; `None`: as kubectl finds it.
    pub hub: Option<PathBuf>,
    /// The members: name on the hub, kubeconfig.
    pub members: Vec<(String, PathBuf)>,
    /// The API servers of members, which S6 stops for a while: name on the hub, process.
    pub member_pids: Vec<(String, u32)>,
    /// Deployments in S1 to S5.
    pub workloads: usize,
    /// Deployments in each run of S6.
    pub failover_sizes: Vec<usize>,
    /// Their namespaces.
    pub namespaces: usize,
    /// The number of runs of each scenario.
    pub runs: usize,
    /// Requests in flight per server.
    pub in_flight: usize,
    /// First part of every namespace's name, and value of the label of every object.
    pub prefix: String,
    /// The time limit of one step of a scenario.
    pub limit: Duration,
    /// The duration of S3.
    pub idle: Duration,
    /// True if all objects are kept on the servers.
    pub keep: bool,
    /// For the report: the command that starts the control plane.
    pub controllers: Option<String>,
}

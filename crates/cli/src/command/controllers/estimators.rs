//! The flags of scheduler estimators, as those of Karmada's scheduler.

use std::{path::PathBuf, time::Duration};

use anyhow::{Result, ensure};
use clap::Args;
use entourage_controllers::estimators::{Options, Tls};

use crate::args;

/// The longest time-out of an estimator.
const LONGEST: Duration = Duration::from_secs(30);

/// Flags of scheduler estimators.
#[derive(Args, Clone, Debug)]
pub struct EstimatorArgs {
    /// Ask the karmada-scheduler-estimator of each member for the room of its nodes, before replicas are divided by room. It
    /// needs the capacity in the status of the Clusters, too
    #[arg(long, value_name = "BOOL", default_value_t = false, default_missing_value = "true", num_args = 0..=1,
        action = clap::ArgAction::Set)]
    pub enable_scheduler_estimator: bool,

    /// Do not ask the estimators of clusters in Pull mode
    #[arg(long, value_name = "BOOL", default_value_t = false, default_missing_value = "true", num_args = 0..=1,
        action = clap::ArgAction::Set)]
    pub disable_scheduler_estimator_in_pull_mode: bool,

    /// Maximum time for an answer of an estimator, up to 30s; without one the Cluster's status counts
    #[arg(long, value_name = "DURATION", value_parser = args::duration, default_value = "3s")]
    pub scheduler_estimator_timeout: Duration,

    /// Port of the Services of estimators
    #[arg(long, value_name = "PORT", default_value_t = 10_352, value_parser = clap::value_parser!(u16).range(1..))]
    pub scheduler_estimator_port: u16,

    /// Namespace of the Services of estimators: on the hub, or in the cluster that this process runs in
    #[arg(long, value_name = "NAMESPACE", default_value = "karmada-system")]
    pub scheduler_estimator_service_namespace: String,

    /// Prefix of the names of these Services; a hyphen and the name of the member follow
    #[arg(long, value_name = "PREFIX", default_value = "karmada-scheduler-estimator")]
    pub scheduler_estimator_service_prefix: String,

    /// File with the certificates that estimators are verified by, in PEM. Without it there is no TLS
    #[arg(long, value_name = "FILE")]
    pub scheduler_estimator_ca_file: Option<PathBuf>,

    /// File with the certificate that is shown to estimators, in PEM
    #[arg(long, value_name = "FILE", requires = "scheduler_estimator_key_file")]
    pub scheduler_estimator_cert_file: Option<PathBuf>,

    /// File with its private key, in PEM
    #[arg(long, value_name = "FILE", requires = "scheduler_estimator_cert_file")]
    pub scheduler_estimator_key_file: Option<PathBuf>,

    /// Use TLS with estimators, and trust any certificate
    #[arg(long, value_name = "BOOL", default_value_t = false, default_missing_value = "true", num_args = 0..=1,
        action = clap::ArgAction::Set)]
    pub insecure_skip_estimator_verify: bool,
}

impl EstimatorArgs {
    /// Flags that contradict each other.
    pub(super) fn check(&self) -> Result<()> {
        let is_plain = self.scheduler_estimator_ca_file.is_none() && !self.insecure_skip_estimator_verify;
        ensure!(
            !is_plain || self.scheduler_estimator_cert_file.is_none(),
            "--scheduler-estimator-cert-file has no effect without TLS: give --scheduler-estimator-ca-file, too"
        );
        ensure!(
            !self.scheduler_estimator_timeout.is_zero(),
            "--scheduler-estimator-timeout is 0: no estimator could answer; the default is 3s"
        );
        ensure!(
            self.scheduler_estimator_timeout <= LONGEST,
            "--scheduler-estimator-timeout is more than 30s: replicas wait for it, also those of workloads that leave a cluster"
        );
        Ok(())
    }

    /// The flags as options of the controllers; `None` asks no estimators.
    pub(super) fn options(&self) -> Option<Options> {
        let is_tls = self.scheduler_estimator_ca_file.is_some() || self.insecure_skip_estimator_verify;
        let tls = is_tls.then(|| Tls {
            ca_file: self.scheduler_estimator_ca_file.clone(),
            identity: self
                .scheduler_estimator_cert_file
                .clone()
                .zip(self.scheduler_estimator_key_file.clone()),
            skips_verification: self.insecure_skip_estimator_verify,
        });
        self.enable_scheduler_estimator.then(|| Options {
            timeout: self.scheduler_estimator_timeout,
            namespace: self.scheduler_estimator_service_namespace.clone(),
            prefix: self.scheduler_estimator_service_prefix.clone(),
            port: self.scheduler_estimator_port,
            in_pull_mode: !self.disable_scheduler_estimator_in_pull_mode,
            tls,
        })
    }
}

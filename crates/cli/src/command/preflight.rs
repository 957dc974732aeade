//! `entourage preflight`: checks whether a cluster can be a hub or a member.
//!
//! [`facts`] reads, [`checks`] decides, and here the findings are printed. Nothing is written, except with `--probe`.

use std::{io::Write, process::ExitCode};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use kube::Client;
use serde::Serialize;

use crate::{
    args::{Format, HubArgs},
    connect,
    plain::plain,
};

pub mod checks;
pub mod facts;
pub mod probe;
pub mod rights;
pub mod scrape;

use checks::{Finding, Level, findings};

/// The exit code if a check fails: 1 is for a command that cannot check.
const FAILED: u8 = 2;

/// The role that a cluster is checked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The API server with policies and templates
    #[default]
    Hub,
    /// A cluster that runs workloads
    Member,
}

/// The account whose rights are checked, which is always that of the kubeconfig.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum RightsOf {
    /// An administrator, who runs `entourage init` and `entourage join`
    #[default]
    Admin,
    /// The controllers, on the hub
    Controllers,
}

/// Flags of `entourage preflight`.
#[derive(Args, Clone, Debug)]
pub struct PreflightArgs {
    /// Role to check the cluster for
    #[arg(value_enum, default_value_t)]
    pub role: Role,

    /// The cluster.
    #[command(flatten)]
    pub cluster: HubArgs,

    /// Rights to check of the account in the kubeconfig
    #[arg(long, value_enum, default_value_t, value_name = "ACCOUNT")]
    pub rights_of: RightsOf,

    /// Create a namespace, try garbage collection, accounts and tokens in it, and delete it
    #[arg(long)]
    pub probe: bool,

    /// Size at which the store of the API server refuses writes: --quota-backend-bytes of etcd
    #[arg(long, value_name = "SIZE", value_parser = scrape::size, default_value = "2Gi")]
    pub store_quota: f64,

    /// Fail for warnings, too
    #[arg(long)]
    pub strict: bool,

    /// Output format (default: a table)
    #[arg(short = 'o', long, value_enum)]
    pub output: Option<Format>,
}

/// The findings, as `-o json` prints them.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The role that was checked.
    pub role: Role,
    /// True if no check failed.
    pub passed: bool,
    /// One or more for each check, in the order of the table of checks.
    pub findings: Vec<Finding>,
}

/// Runs the command; the findings go to `out`. Returns 2 if a check fails.
///
/// # Errors
/// The cluster cannot be reached, or the flags contradict each other.
pub async fn run(args: PreflightArgs, out: &mut (dyn Write + Send)) -> Result<ExitCode> {
    let config = connect::config(
        args.cluster.kubeconfig.as_deref(),
        args.cluster.context.as_deref(),
    )
    .await?;
    preflight(&args, &connect::client(config)?, out).await
}

/// Checks with the given client.
///
/// # Errors
/// As [`run`].
pub async fn preflight(
    args: &PreflightArgs,
    cluster: &Client,
    out: &mut (dyn Write + Send),
) -> Result<ExitCode> {
    let report = report(args, cluster).await?;
    match args.output {
        Some(format) => format.write(&report, out)?,
        None => table(&report, out)?,
    }
    Ok(if report.passed {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(FAILED)
    })
}

/// Reads the facts and decides on them.
///
/// # Errors
/// As [`run`].
pub async fn report(args: &PreflightArgs, cluster: &Client) -> Result<Report> {
    if args.role == Role::Member && args.rights_of == RightsOf::Controllers {
        // Those of `join` would be checked instead.
        bail!(
            "--rights-of controllers is for a hub: on a member the hub uses the account that `entourage join` makes"
        );
    }
    let mut facts = facts::read(cluster, args.role, args.rights_of, args.store_quota).await?;
    if args.probe {
        facts.probe = Some(probe::probe(cluster).await);
    }
    let findings = findings(&facts);
    let fails = |finding: &Finding| match finding.level {
        Level::Ok => false,
        Level::Warn => args.strict,
        Level::Fail => true,
    };
    Ok(Report {
        role: args.role,
        passed: !findings.iter().any(fails),
        findings,
    })
}

fn table(report: &Report, out: &mut (dyn Write + Send)) -> Result<()> {
    let width = report.findings.iter().map(|finding| finding.check.len()).max();
    let width = width.unwrap_or_default();
    for finding in &report.findings {
        let Finding {
            check,
            level,
            message,
            remedy,
        } = finding;
        writeln!(out, "{:<4}  {check:<width$}  {}", level.word(), plain(message))?;
        if let Some(remedy) = remedy {
            writeln!(out, "{}-> {}", " ".repeat(width + 8), plain(remedy))?;
        }
    }
    let count = |level: Level| report.findings.iter().filter(|each| each.level == level).count();
    writeln!(
        out,
        "{} ok, {} warnings, {} failed",
        count(Level::Ok),
        count(Level::Warn),
        count(Level::Fail)
    )?;
    Ok(())
}

#[cfg(test)]
mod tests;

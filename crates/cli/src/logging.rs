//! Structured logs to stderr, as text for people or as JSON for machines.

use std::str::FromStr as _;

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};
use tracing_subscriber::{EnvFilter, fmt};

use crate::style::Style;

/// The format of a log line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One line per record, for people.
    #[default]
    Text,
    /// One JSON object per record.
    Json,
}

/// The options of logging.
#[derive(Args, Clone, Debug)]
pub struct LogArgs {
    /// Format of a log line
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub log_format: LogFormat,

    /// Level (error, warn, info, debug, trace), or directives such as info,entourage_controllers=debug
    #[arg(long, default_value = "info", value_name = "LEVEL")]
    pub log_level: String,
}

/// Starts logging for the whole process; call it once.
///
/// # Errors
/// The level is invalid, or logging was started before.
pub fn init(args: &LogArgs) -> Result<()> {
    let builder = fmt()
        .with_env_filter(filter(&args.log_level)?)
        .with_writer(std::io::stderr);
    let started = match args.log_format {
        LogFormat::Text => builder.with_ansi(Style::of_stderr().has_colours()).try_init(),
        LogFormat::Json => builder
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .try_init(),
    };
    started.map_err(|error| anyhow::anyhow!("cannot start logging: {error}"))
}

/// The client library logs a response that it cannot parse as a whole, and that may be a list of Secrets; and every failed connection
/// without the server. The caller of the request logs both with the cluster's name and the cause. Directives that name the library
/// are not changed.
fn filter(level: &str) -> Result<EnvFilter> {
    let refused = || format!("--log-level {level:?}: give error, warn, info, debug or trace, or directives");
    let directives = level.contains(['=', ',']);
    if !directives {
        // A single word would be read as the name of a module, and silence all others.
        tracing::Level::from_str(level).with_context(refused)?;
    }
    let quiet = if level.contains("kube_client") {
        ""
    } else {
        ",kube_client::client=off,kube_client::client::tls=warn"
    };
    EnvFilter::try_new(format!("{level}{quiet}")).with_context(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_directives_are_understood() {
        for level in ["info", "info,x=debug"] {
            let shown = filter(level).unwrap().to_string();
            let all: Vec<&str> = shown.split(',').collect();
            for directive in level.split(',').chain(["kube_client::client=off"]) {
                assert!(all.contains(&directive), "{level}: {directive}: {shown}");
            }
        }
        assert_eq!(
            filter("info,kube_client=debug").unwrap().to_string(),
            "kube_client=debug,info"
        );
        assert!(filter("warn,entourage_core=trace").is_ok());
        assert!(filter("info,entourage=loud").is_err());
        assert!(filter("loud").is_err() && filter("").is_err());
    }
}

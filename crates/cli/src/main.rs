//! The `entourage` command. Everything is in the library of the same name.

use std::process::ExitCode;

use clap::Parser as _;
use entourage::command::Cli;

#[tokio::main]
async fn main() -> ExitCode {
    entourage::install_tls_provider();
    match Cli::parse().run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

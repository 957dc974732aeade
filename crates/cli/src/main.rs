//! The `entourage` command. Everything is in the library of the same name.

use std::process::ExitCode;

use clap::Parser as _;
use entourage::command::Cli;

#[tokio::main]
async fn main() -> ExitCode {
    entourage::install_tls_provider();
    match Cli::parse().run().await {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read our output has seen enough, as in `entourage crds | head`.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let mut causes = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    causes.any(|cause| cause.kind() == std::io::ErrorKind::BrokenPipe)
}

//! The `entourage` command. All code is in the library of the same name.

use std::{
    ffi::OsString,
    io::{ErrorKind, Write as _},
    process::ExitCode,
};

use entourage::command::help;

/// The exit code when the reader of our output closed it, as in `entourage crds | head`: that of kubectl, which SIGPIPE ends.
const OUTPUT_CLOSED: u8 = 128 + 13;

fn main() -> ExitCode {
    entourage::install_tls_provider();
    let line: Vec<OsString> = std::env::args_os().collect();
    let cli = match help::parse(line.clone()) {
        Ok(cli) => cli,
        Err(answer) => return answered(&answer, help::exit_code(&answer, &line)),
    };
    // One thread is a pool, too: a script that takes long leaves it to the other tasks.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cli.worker_threads())
        .enable_all()
        .build();
    let done = match runtime {
        Ok(runtime) => runtime.block_on(cli.run()),
        Err(error) => Err(error.into()),
    };
    match done {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::from(OUTPUT_CLOSED),
        Err(error) => {
            // Whoever closed standard error does not want it; the exit code is still that of a failure.
            let _ = writeln!(std::io::stderr(), "error: {}", words(&error));
            ExitCode::FAILURE
        }
    }
}

/// Prints the help, the version, or an error of usage.
fn answered(answer: &clap::Error, code: u8) -> ExitCode {
    let printed = answer.print().and_then(|()| std::io::stdout().flush());
    match printed {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::from(OUTPUT_CLOSED),
        _ => ExitCode::from(code),
    }
}

/// The error and its causes on one line; a cause that the text before already contains is left out.
fn words(error: &anyhow::Error) -> String {
    let mut words = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if words.is_empty() {
            words = cause;
        } else if !words.contains(&cause) {
            words = format!("{words}: {cause}");
        }
    }
    words
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let mut causes = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    causes.any(|cause| cause.kind() == ErrorKind::BrokenPipe)
}

//! One server process: started with its log in a file, killed with its handle.

use std::{
    fs::File,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context, bail};

use super::guard;

/// The number of log lines that an error message shows.
const TAIL_LINES: usize = 15;

/// A running server. Dropping it kills the process and waits until it is gone, so that its port and files are free.
#[derive(Debug)]
pub(super) struct Server {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Server {
    /// Starts `binary`; both outputs are appended to `log`. `name` is for messages.
    pub(super) fn spawn(
        name: &'static str,
        binary: &Path,
        arguments: &[String],
        log: PathBuf,
    ) -> anyhow::Result<Self> {
        Self::spawn_with(name, binary, arguments, &[], log)
    }

    /// As [`Self::spawn`], with environment variables.
    pub(super) fn spawn_with(
        name: &'static str,
        binary: &Path,
        arguments: &[String],
        variables: &[(&str, &str)],
        log: PathBuf,
    ) -> anyhow::Result<Self> {
        let output = File::options().create(true).append(true).open(&log);
        let output = output.with_context(|| format!("opening {}", log.display()))?;
        let child = Command::new(binary)
            .args(arguments)
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(
                output
                    .try_clone()
                    .context("sharing the log between both outputs")?,
            )
            .stderr(output)
            .process_group(0)
            .spawn()
            .with_context(|| format!("starting {}", binary.display()))?;
        let server = Self { name, child, log };
        guard::watch(server.pid()).context("starting the guard of the servers")?;
        Ok(server)
    }

    /// The process id, for accounting.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Fails when the process has ended, with the end of its log.
    pub(super) fn check(&mut self) -> anyhow::Result<()> {
        match self
            .child
            .try_wait()
            .with_context(|| format!("asking for the state of {}", self.name))?
        {
            None => Ok(()),
            Some(status) => bail!("{} ended with {status}; {}", self.name, self.log_tail()),
        }
    }

    /// Sends SIGKILL without waiting; a process that is gone already is fine.
    pub(super) fn kill(&mut self) {
        // Both fail only when the process or the guard is gone, and then there is nothing left to do.
        let _ = self.child.kill();
        let _ = guard::forget(self.child.id());
    }

    /// Sends a signal by its name (`STOP`, `CONT`). A shell does it: its `kill` is built in, while the command of that
    /// name is missing on slim images.
    pub(super) fn signal(&self, signal: &str) -> anyhow::Result<()> {
        let status = Command::new("sh")
            .args([
                "-c",
                r#"kill -s "$1" "$2""#,
                "sh",
                signal,
                &self.pid().to_string(),
            ])
            .status()
            .context("running a shell to send a signal")?;
        if !status.success() {
            bail!("sending {signal} to {} failed; {}", self.name, self.log_tail());
        }
        Ok(())
    }

    /// The last lines of the log, introduced by its path.
    pub(super) fn log_tail(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        format!(
            "the end of {}:\n{}",
            self.log.display(),
            tail(&String::from_utf8_lossy(&text), TAIL_LINES)
        )
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        // Fails only when somebody else reaped it.
        let _ = self.child.wait();
    }
}

/// The last `count` lines of a text.
fn tail(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, test: &str) -> Server {
        let log = std::env::temp_dir().join(format!("entourage-e2e-{}-{test}.log", std::process::id()));
        Server::spawn(
            "sh",
            Path::new("/bin/sh"),
            &["-c".to_owned(), script.to_owned()],
            log,
        )
        .unwrap()
    }

    #[test]
    fn the_tail_is_the_end_of_a_text() {
        assert_eq!(tail("", 2), "");
        assert_eq!(tail("a\nb\nc\n", 2), "b\nc");
        assert_eq!(tail("a", 2), "a");
    }

    #[test]
    fn a_server_that_ended_is_reported_with_its_log() {
        let mut server = shell("echo a reason; exit 3", "ended");
        let _ = server.child.wait();
        let error = server.check().unwrap_err().to_string();
        std::fs::remove_file(&server.log).unwrap();
        assert!(
            error.contains("sh ended with exit status: 3") && error.contains("a reason"),
            "{error}"
        );
    }

    #[test]
    fn a_dropped_server_is_gone_even_when_it_was_stopped() {
        let server = shell("exec sleep 60", "dropped");
        let server_pid = server.pid();
        std::fs::remove_file(&server.log).unwrap();
        server.signal("STOP").unwrap();
        drop(server);
        assert!(!Path::new(&format!("/proc/{server_pid}")).exists());
    }
}

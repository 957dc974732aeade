//! The control plane as a child process: start, readiness, termination and kill.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use http::{Request, Uri, uri::PathAndQuery};
use kube::{Client, Config, client::ClientBuilder};

/// The interval between checks of a child; they are local and cheap.
const LOOK: Duration = Duration::from_millis(10);

/// The command and the endpoint of a control plane.
#[derive(Clone, Debug)]
pub struct ChildConfig {
    /// A command line for `sh`.
    pub command: String,
    /// URL that responds with 200 once the control plane is ready.
    pub ready_url: String,
    /// The file for the child's output.
    pub log: PathBuf,
}

/// A running control plane. Dropping it kills it.
pub struct Controllers {
    child: Child,
    started: Instant,
    render_spec: ChildConfig,
    client: Client,
    path: String,
}

impl Controllers {
    /// Starts it; it is not ready yet.
    ///
    /// # Errors
    /// The command cannot be started, or the log cannot be written.
    pub fn start(render_spec: &ChildConfig) -> Result<Self> {
        let log = open(&render_spec.log)?;
        let url: Uri = render_spec
            .ready_url
            .parse()
            .context("--ready-url is not a URL")?;
        let path = url.path().to_owned();
        // A client's requests are relative to its base.
        let mut base = url.into_parts();
        base.path_and_query = Some(PathAndQuery::from_static("/"));
        let config = Config::new(Uri::from_parts(base).context("--ready-url needs http:// and an address")?);
        let mut command = Command::new("sh");
        // With exec the child is the program and not a shell around it.
        command
            .arg("-c")
            .arg(format!("exec {}", render_spec.command))
            .stdin(Stdio::null());
        command.stdout(log.try_clone()?).stderr(log);
        let started = Instant::now();
        let child = command
            .spawn()
            .with_context(|| format!("cannot start: {}", render_spec.command))?;
        let client = ClientBuilder::try_from(config)?.build();
        Ok(Self {
            child,
            started,
            render_spec: render_spec.clone(),
            client,
            path,
        })
    }

    /// The process's id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it reports that it is ready. Returns the time since its start.
    ///
    /// # Errors
    /// It exited, or the time is up; both with the end of its log.
    pub async fn ready(&mut self, limit: Duration) -> Result<Duration> {
        loop {
            if let Some(status) = self.child.try_wait()? {
                bail!("the control plane ended with {status}:\n{}", self.tail());
            }
            let request = Request::get(&self.path).body(Vec::new())?;
            if self.client.request_text(request).await.is_ok() {
                return Ok(self.started.elapsed());
            }
            if self.started.elapsed() > limit {
                let url = &self.render_spec.ready_url;
                bail!(
                    "{url} is not ready within {} s:\n{}",
                    limit.as_secs(),
                    self.tail()
                );
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Terminates it and waits until it has exited. Returns the time that took.
    ///
    /// # Errors
    /// It does not exit in time; then it is killed.
    pub async fn terminate(mut self, limit: Duration) -> Result<Duration> {
        let begin = Instant::now();
        let pid = self.pid().to_string();
        Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .context("cannot send SIGTERM with kill")?;
        while self.child.try_wait()?.is_none() {
            if begin.elapsed() > limit {
                bail!(
                    "the control plane is still running {} s after SIGTERM:\n{}",
                    limit.as_secs(),
                    self.tail()
                );
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(begin.elapsed())
    }

    /// Kills it.
    ///
    /// # Errors
    /// It had exited by itself.
    pub fn kill(mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!(
                "the control plane ended by itself with {status}:\n{}",
                self.tail()
            );
        }
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// The last lines of its log.
    fn tail(&self) -> String {
        let text = std::fs::read_to_string(&self.render_spec.log).unwrap_or_default();
        let mut lines: Vec<_> = text.lines().rev().take(15).collect();
        lines.reverse();
        format!(
            "{}\n(all of it: {})",
            lines.join("\n"),
            self.render_spec.log.display()
        )
    }
}

impl Drop for Controllers {
    fn drop(&mut self) {
        // An error means that it has exited already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn open(log: &Path) -> Result<File> {
    let file = File::options().create(true).append(true).open(log);
    file.with_context(|| format!("cannot write {}", log.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render_spec(command: &str) -> ChildConfig {
        let log = std::env::temp_dir().join(format!("entourage-bench-test-{}.log", std::process::id()));
        ChildConfig {
            command: command.into(),
            ready_url: "http://127.0.0.1:9/readyz".into(),
            log,
        }
    }

    #[tokio::test]
    async fn a_child_that_ends_by_itself_is_reported_with_its_last_words() {
        let mut child = Controllers::start(&render_spec("sh -c 'echo no such hub; exit 3'")).unwrap();
        let error = format!("{:#}", child.ready(Duration::from_secs(30)).await.unwrap_err());
        assert!(error.contains("no such hub") && error.contains('3'), "{error}");
    }

    #[tokio::test]
    async fn a_child_is_asked_to_end() {
        let child = Controllers::start(&render_spec("sleep 600")).unwrap();
        let pid = child.pid();
        child.terminate(Duration::from_secs(30)).await.unwrap();
        assert!(super::super::process::usage(pid).is_err());
    }
}

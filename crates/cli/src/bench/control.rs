//! The measured control plane: a child of the bench, or existing processes.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};

use super::child::{ChildConfig, Controllers};

/// The time that a control plane may take to exit.
const END: Duration = Duration::from_secs(30);

/// The measured control plane.
#[derive(Default)]
pub struct Control {
    render_spec: Option<ChildConfig>,
    child: Option<Controllers>,
    pids: Vec<u32>,
    restart: Option<String>,
}

impl Control {
    /// A child that is started with a [`ChildConfig`]; or, without one, processes and a command that restarts them.
    #[must_use]
    pub fn new(render_spec: Option<ChildConfig>, pids: Vec<u32>, restart: Option<String>) -> Self {
        Self {
            render_spec,
            child: None,
            pids,
            restart,
        }
    }

    /// The processes to measure.
    #[must_use]
    pub fn pids(&self) -> Vec<u32> {
        self.child
            .as_ref()
            .map_or_else(|| self.pids.clone(), |child| vec![child.pid()])
    }

    /// True if it is a child of the bench.
    #[must_use]
    pub fn is_child(&self) -> bool {
        self.render_spec.is_some()
    }

    /// True if it can be restarted.
    #[must_use]
    pub fn can_restart(&self) -> bool {
        self.is_child() || self.restart.is_some()
    }

    /// Restarts the child and waits until it is ready. Returns the time that took, from the start of the process. Does nothing
    /// if the control plane is not the bench's child.
    ///
    /// # Errors
    /// It does not start, exit or become ready.
    pub async fn start_fresh(&mut self, limit: Duration) -> Result<Duration> {
        self.stop().await?;
        self.spawn()?;
        self.ready(limit).await
    }

    /// Starts the child; it is not ready yet.
    ///
    /// # Errors
    /// It does not start.
    pub fn spawn(&mut self) -> Result<()> {
        if let Some(render_spec) = &self.render_spec {
            self.child = Some(Controllers::start(render_spec)?);
        }
        Ok(())
    }

    /// Waits until the child is ready. Returns the time since its start.
    ///
    /// # Errors
    /// It does not become ready.
    pub async fn ready(&mut self, limit: Duration) -> Result<Duration> {
        match &mut self.child {
            Some(child) => child.ready(limit).await,
            None => Ok(Duration::ZERO),
        }
    }

    /// Terminates the child. Returns the time that took.
    ///
    /// # Errors
    /// It does not exit.
    pub async fn stop(&mut self) -> Result<Duration> {
        match self.child.take() {
            Some(child) => child.terminate(END).await,
            None => Ok(Duration::ZERO),
        }
    }

    /// Kills the child.
    ///
    /// # Errors
    /// There is none, or it had exited by itself.
    pub fn kill(&mut self) -> Result<()> {
        self.child.take().context("no control plane is running")?.kill()
    }

    /// Runs the command that restarts existing processes. Returns the time it took.
    ///
    /// # Errors
    /// The command fails.
    pub fn restart_by_command(&mut self) -> Result<Duration> {
        let command = self.restart.as_ref().context("there is no --restart-command")?;
        let begin = Instant::now();
        let status = Command::new("sh").args(["-c", command]).status()?;
        if !status.success() {
            bail!("{command} ended with {status}");
        }
        // The named processes have exited.
        self.pids.clear();
        Ok(begin.elapsed())
    }
}

//! The control plane that is measured: a child of the bench, or processes that somebody else runs.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};

use super::child::{ChildConfig, Controllers};

/// How long a control plane may take to end.
const END: Duration = Duration::from_secs(30);

/// The control plane that is measured.
#[derive(Default)]
pub struct Control {
    render_spec: Option<ChildConfig>,
    child: Option<Controllers>,
    pids: Vec<u32>,
    restart: Option<String>,
}

impl Control {
    /// A child that is made by a recipe; or, without one, processes and a command that restarts them.
    #[must_use]
    pub fn new(render_spec: Option<ChildConfig>, pids: Vec<u32>, restart: Option<String>) -> Self {
        Self {
            render_spec,
            child: None,
            pids,
            restart,
        }
    }

    /// The processes to account for.
    #[must_use]
    pub fn pids(&self) -> Vec<u32> {
        self.child
            .as_ref()
            .map_or_else(|| self.pids.clone(), |child| vec![child.pid()])
    }

    /// Whether it is a child of the bench.
    #[must_use]
    pub fn is_child(&self) -> bool {
        self.render_spec.is_some()
    }

    /// Whether it can be restarted at all.
    #[must_use]
    pub fn can_restart(&self) -> bool {
        self.is_child() || self.restart.is_some()
    }

    /// Starts the child anew and waits until it is ready; gives the time that took, from the start of the process. Does
    /// nothing when the control plane is not the bench's child.
    ///
    /// # Errors
    /// It does not start, end or get ready.
    pub async fn start_fresh(&mut self, limit: Duration) -> Result<Duration> {
        self.stop().await?;
        self.spawn()?;
        self.ready(limit).await
    }

    /// Starts the child; it is not ready then.
    ///
    /// # Errors
    /// It does not start.
    pub fn spawn(&mut self) -> Result<()> {
        if let Some(render_spec) = &self.render_spec {
            self.child = Some(Controllers::start(render_spec)?);
        }
        Ok(())
    }

    /// Waits until the child is ready; gives the time since its start.
    ///
    /// # Errors
    /// It does not get ready.
    pub async fn ready(&mut self, limit: Duration) -> Result<Duration> {
        match &mut self.child {
            Some(child) => child.ready(limit).await,
            None => Ok(Duration::ZERO),
        }
    }

    /// Ends the child in an orderly way; gives the time that took.
    ///
    /// # Errors
    /// It does not end.
    pub async fn stop(&mut self) -> Result<Duration> {
        match self.child.take() {
            Some(child) => child.terminate(END).await,
            None => Ok(Duration::ZERO),
        }
    }

    /// Kills the child.
    ///
    /// # Errors
    /// There is none, or it had ended by itself.
    pub fn kill(&mut self) -> Result<()> {
        self.child.take().context("no control plane is running")?.kill()
    }

    /// Runs the command that restarts processes of somebody else; gives the time it took.
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
        // The processes that were named have ended.
        self.pids.clear();
        Ok(begin.elapsed())
    }
}

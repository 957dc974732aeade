//! Running the commands of a script.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow, bail};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    time::{sleep, timeout},
};

use super::{
    client::Client,
    golden::Transcript,
    normal::normalised,
    script::{Mode, Script, Step},
};

/// The longest time for a command on a machine that is busy with other things.
const LONGEST: Duration = Duration::from_secs(120);

/// The maximum number of repetitions of a command: half a minute of pauses, and the time that the machine takes for the commands.
const LOOKS: usize = 300;

/// Between two runs of a command that is repeated.
const PAUSE: Duration = Duration::from_millis(100);

/// The environment that commands run in.
#[derive(Clone, Debug)]
pub struct Seat {
    /// The kubectl.
    pub client: Client,
    /// The kubeconfig of the cluster, with the namespace that commands work in.
    pub kubeconfig: PathBuf,
    /// The address of the API server: `127.0.0.1:41233`.
    pub server: String,
    /// The folder that commands start in: their manifests.
    pub manifests: PathBuf,
    /// A folder of this script alone, for kubectl's caches and temporary files.
    pub scratch: PathBuf,
}

/// Plays a script; what each command printed, by label and in order.
///
/// # Errors
/// When a command cannot be run or does not end. One that fails is an answer like any other.
pub async fn play(script: &Script, seat: &Seat) -> Result<Vec<(String, Transcript)>> {
    seat.furnish()?;
    let mut beside: BTreeMap<&str, Beside> = BTreeMap::new();
    let mut played = Vec::new();
    for step in script.steps_for(seat.client.version.minor) {
        let label = step.label.as_str();
        let reported = async {
            Ok::<_, anyhow::Error>(match &step.mode {
                Mode::Once => Some(seat.run(step).await?),
                Mode::Until(text) => Some(seat.run_until(step, text).await?),
                Mode::Beside(lines) => {
                    beside.insert(label, seat.begin(step, *lines).await?);
                    None
                }
                Mode::End => Some(beside.remove(label).context("it does not run")?.end().await?),
            })
        };
        let reported = reported
            .await
            .with_context(|| format!("[{label}] {}", step.command))?;
        played.extend(reported.map(|reported| (label.to_owned(), reported.normalised(&seat.server))));
    }
    if let Some(label) = beside.keys().next() {
        bail!("[{label}] has no @end");
    }
    Ok(played)
}

impl Seat {
    fn furnish(&self) -> Result<()> {
        let bin = self.scratch.join("bin");
        std::fs::create_dir_all(&bin)?;
        let link = bin.join("kubectl");
        if !link.exists() {
            std::os::unix::fs::symlink(&self.client.path, link)?;
        }
        Ok(())
    }

    async fn run_until(&self, step: &Step, text: &str) -> Result<Transcript> {
        let mut looks = 0;
        loop {
            let reported = self.run(step).await?;
            if reported.stdout.contains(text) {
                return Ok(reported);
            }
            looks += 1;
            if looks > LOOKS {
                bail!("never printed {text:?}, last:\n{reported}");
            }
            sleep(PAUSE).await;
        }
    }

    async fn run(&self, step: &Step) -> Result<Transcript> {
        let mut child = self.shell(&step.command)?;
        let mut stdin = child.stdin.take().context("stdin is piped")?;
        // Not every command reads what it is offered.
        let _ = stdin.write_all(step.stdin.as_bytes()).await;
        drop(stdin);
        let pid = child.id();
        let Ok(output) = timeout(LONGEST, child.wait_with_output()).await else {
            end_group(pid).await;
            bail!("still running after {} s", LONGEST.as_secs());
        };
        let output = output?;
        Ok(Transcript {
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            code: output.status.code().unwrap_or(-1),
        })
    }

    /// Starts a command that others run beside, and waits for its first line.
    async fn begin(&self, step: &Step, lines: usize) -> Result<Beside> {
        // In place of the shell, so that ending the child ends the command.
        let mut child = self.shell(&format!("exec {}", step.command))?;
        let stdout = child.stdout.take().context("stdout is piped")?;
        let mut beside = Beside {
            child,
            stdout: BufReader::new(stdout).lines(),
            lines,
            reported: String::new(),
        };
        beside.read().await?;
        Ok(beside)
    }

    fn shell(&self, command: &str) -> Result<Child> {
        let path = std::env::var("PATH").unwrap_or_default();
        let bin = self.scratch.join("bin");
        Command::new("sh")
            .args(["-c", command])
            .current_dir(&self.manifests)
            .env_clear()
            .env("PATH", format!("{}:{path}", bin.display()))
            .env("HOME", &self.scratch)
            .env("TMPDIR", &self.scratch)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("TZ", "UTC")
            .env("LC_ALL", "C")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .context("starting a shell")
    }
}

/// A command that runs beside others.
struct Beside {
    child: Child,
    stdout: Lines<BufReader<ChildStdout>>,
    lines: usize,
    reported: String,
}

impl Beside {
    async fn read(&mut self) -> Result<()> {
        let line = timeout(LONGEST, self.stdout.next_line()).await;
        let line = line.map_err(|_| anyhow!("printed no further line after:\n{}", self.reported))??;
        let Some(line) = line else {
            let mut stderr = String::new();
            if let Some(mut pipe) = self.child.stderr.take() {
                pipe.read_to_string(&mut stderr).await?;
            }
            bail!("ended after:\n{}{stderr}", self.reported);
        };
        self.reported.push_str(&line);
        self.reported.push('\n');
        Ok(())
    }

    /// Waits for the lines it is to print, and ends it. Its exit code says nothing.
    async fn end(mut self) -> Result<Transcript> {
        while self.reported.lines().count() < self.lines {
            self.read().await?;
        }
        self.child.kill().await?;
        let mut stderr = String::new();
        if let Some(mut pipe) = self.child.stderr.take() {
            pipe.read_to_string(&mut stderr).await?;
        }
        Ok(Transcript {
            stdout: self.reported,
            stderr,
            code: 0,
        })
    }
}

impl Transcript {
    fn normalised(self, server: &str) -> Self {
        Self {
            stdout: normalised(&self.stdout, server),
            stderr: normalised(&self.stderr, server),
            code: self.code,
        }
    }
}

/// Ends a shell and what it started.
async fn end_group(leader: Option<u32>) {
    if let Some(leader) = leader {
        // The built-in kill of a shell: slim images lack the command. What is gone already is fine.
        let _ = Command::new("sh")
            .args(["-c", r#"kill -s KILL -- "-$1""#, "sh", &leader.to_string()])
            .stderr(Stdio::null())
            .status()
            .await;
    }
}

/// A kubeconfig whose context works in a namespace.
///
/// # Errors
/// When the kubeconfig has no context as those of this harness do.
pub(super) fn in_namespace(kubeconfig: &Path, namespace: &str) -> Result<String> {
    let text = std::fs::read_to_string(kubeconfig)?;
    let user = "    user: admin\n";
    if !text.contains(user) {
        bail!("{} has no context of admin", kubeconfig.display());
    }
    Ok(text.replace(user, &format!("{user}    namespace: {namespace}\n")))
}

impl Seat {
    /// A seat at a cluster of the harness: its kubeconfig is written into the scratch folder with the namespace.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn at(
        client: &Client,
        cluster: &crate::servers::TestCluster,
        namespace: &str,
        manifests: PathBuf,
        scratch: PathBuf,
    ) -> Result<Self> {
        std::fs::create_dir_all(&scratch)?;
        let kubeconfig = scratch.join("kubeconfig");
        std::fs::write(&kubeconfig, in_namespace(&cluster.kubeconfig_path(), namespace)?)?;
        Ok(Self {
            client: client.clone(),
            kubeconfig,
            server: cluster.endpoint().trim_start_matches("https://").to_owned(),
            manifests,
            scratch,
        })
    }
}

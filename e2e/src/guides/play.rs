//! Runs a page on a hub and members of its own.

use std::{
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use entourage::fleet::{Fleet, Place};
use entourage_controllers::Options;
use kube::{
    Api,
    api::{DynamicObject, Patch, PatchParams},
    core::{ApiResource, GroupVersionKind},
};
use serde_json::Value;
use tokio::{
    process::{Child, Command},
    time::timeout,
};

use super::{
    compare::is_shown,
    page::{Action, Page, Step},
};
use crate::{kubectl::Client, servers};

/// The members of `entourage up`.
const MEMBERS: usize = 3;

/// The longest time for what a page shows to become true, on a machine that is busy with other things.
const LONGEST: Duration = Duration::from_secs(120);

/// Between two runs of a command that is repeated.
const PAUSE: Duration = Duration::from_millis(200);

/// Commands that only read, as `kubectl VERB` and `entourage VERB`.
const READS: &[&str] = &[
    "audit",
    "describe",
    "events",
    "explain",
    "failover",
    "get",
    "graph",
    "history",
    "impact",
    "interpret",
    "logs",
    "plan",
    "preflight",
    "top",
    "tree",
    "version",
    "wait",
    "why",
];

/// The folders of the checkout that commands find where they start.
const FOLDERS: &[&str] = &["config", "crds", "hack"];

/// The environment of the commands.
struct Seat {
    bin: PathBuf,
    /// The folder that commands start in: the files of the page, and [`FOLDERS`] of the checkout.
    folder: PathBuf,
    kubeconfig: PathBuf,
    /// Commands that give variables their values, run before each further one.
    variables: String,
    /// Commands that run until the end of the page.
    running: Vec<Child>,
}

/// The output of a command, errors included, and its exit code.
struct Printed {
    text: String,
    code: Option<i32>,
}

/// Runs a page; its files are below `dir`, and `root` is the checkout.
///
/// # Errors
/// At the first command that does not do or print what the page shows, with its line.
pub async fn play(page: &Page, client: &Client, root: &Path, dir: &Path) -> Result<()> {
    let place = Place::Temporary("entourage-guide-");
    let mut fleet = Fleet::start(MEMBERS, &place, options(&[])?).await?;
    let mut seat = Seat::furnish(client, root, dir, fleet.kubeconfig().context("its kubeconfig")?)?;
    for step in &page.steps {
        let done = seat.take(step, &mut fleet).await;
        done.with_context(|| format!("{}.md:{}", page.name, step.line))?;
    }
    drop(seat);
    fleet.end().await
}

/// The options of the controllers, with these of the controllers that are off by default.
fn options(controllers: &[String]) -> Result<Options> {
    let mut options = Options {
        // Members respond without a network here: what is down for three seconds is down.
        cluster_failure_threshold: Duration::from_secs(3),
        probe_interval: Duration::from_millis(500),
        ..entourage::fleet::options()
    };
    for name in controllers {
        match name.as_str() {
            "agentcsrapproving" => options.approve_agents = true,
            "bootstrapsigner" => options.sign_cluster_info = true,
            "hpaScaleTargetMarker" => options.mark_scale_targets = true,
            "deploymentReplicasSyncer" => options.sync_replicas = true,
            // Three names of Karmada, one controller.
            "serviceExport" | "endpointSlice" | "serviceImport" => options.share_services = true,
            _ => bail!("{name:?} is no controller that is off by default"),
        }
    }
    Ok(options)
}

impl Seat {
    fn furnish(client: &Client, root: &Path, dir: &Path, kubeconfig: PathBuf) -> Result<Self> {
        let (bin, folder) = (dir.join("bin"), dir.join("files"));
        std::fs::create_dir_all(&bin)?;
        std::fs::create_dir_all(&folder)?;
        symlink(&client.path, bin.join("kubectl"))?;
        for each in FOLDERS {
            symlink(root.join(each), folder.join(each))?;
        }
        let entourage = bin.join("entourage");
        std::fs::write(&entourage, servers::command_script()?)?;
        std::fs::set_permissions(&entourage, std::fs::Permissions::from_mode(0o755))?;
        Ok(Self {
            bin,
            folder,
            kubeconfig,
            variables: String::new(),
            running: Vec::new(),
        })
    }

    async fn take(&mut self, step: &Step, fleet: &mut Fleet) -> Result<()> {
        match &step.action {
            Action::File(name, text) => Ok(std::fs::write(self.folder.join(name), text)?),
            Action::Stop(member) => fleet.disconnect(member),
            Action::Return(member) => fleet.reconnect(member),
            Action::Report(member, object) => report(&fleet.member(member)?.client(), object).await,
            Action::Controllers(names) => {
                fleet.stop_controllers().await?;
                fleet.start_controllers(options(names)?);
                Ok(())
            }
            Action::Command { command, shown } => match command.strip_suffix(" &") {
                Some(command) => {
                    self.running
                        .push(self.shell(&format!("exec {command} >>running.log 2>&1"))?);
                    Ok(())
                }
                None => self.command(command, shown).await,
            },
        }
    }

    async fn command(&mut self, command: &str, shown: &[String]) -> Result<()> {
        let fails = shown.iter().any(|line| line.to_lowercase().starts_with("error"));
        let ends = Instant::now() + LONGEST;
        loop {
            let printed = self.run(command).await?;
            let is_right = (printed.code == Some(0)) != fails;
            if is_right && (shown.is_empty() || is_shown(shown, &printed.text)) {
                if is_assignment(command) {
                    self.variables = format!("{}{command}\n", self.variables);
                }
                return Ok(());
            }
            if !only_reads(command) || ends < Instant::now() {
                bail!(
                    "$ {command}\nended with {:?} and printed:\n{}\nThe page shows:\n{}",
                    printed.code,
                    printed.text,
                    shown.join("\n")
                );
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn run(&self, command: &str) -> Result<Printed> {
        let child = self.shell(command)?;
        let output = timeout(LONGEST, child.wait_with_output()).await;
        let output =
            output.with_context(|| format!("$ {command}\nstill runs after {} s", LONGEST.as_secs()))??;
        Ok(Printed {
            text: String::from_utf8_lossy(&output.stdout).into_owned(),
            code: output.status.code(),
        })
    }

    /// Starts a shell with a command. Dropping it ends it.
    fn shell(&self, command: &str) -> Result<Child> {
        let path = std::env::var("PATH").unwrap_or_default();
        let child = Command::new("sh")
            .args(["-c", &format!("exec 2>&1\n{}{command}", self.variables)])
            .current_dir(&self.folder)
            .env_clear()
            .env("PATH", format!("{}:{path}", self.bin.display()))
            .env("HOME", &self.folder)
            .env("TMPDIR", &self.folder)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("TZ", "UTC")
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn();
        child.context("starting a shell")
    }
}

/// True for `NAME=VALUE` without a command behind it.
fn is_assignment(command: &str) -> bool {
    let Some((name, value)) = command.split_once('=') else {
        return false;
    };
    let is_name = |c: char| c.is_ascii_uppercase() || c == '_';
    let is_one_word = !value.contains(char::is_whitespace);
    let is_substitution = value.starts_with("$(") && value.ends_with(')');
    !name.is_empty() && name.chars().all(is_name) && (is_one_word || is_substitution)
}

/// True for a command that may be run any number of times. Flags before the verb have a value.
fn only_reads(command: &str) -> bool {
    let mut words = command.split_whitespace().skip(1);
    while let Some(word) = words.next() {
        if !word.starts_with('-') {
            return READS.contains(&word);
        }
        if !word.contains('=') {
            words.next();
        }
    }
    false
}

/// Writes the status of an object as its controller does.
async fn report(client: &kube::Client, object: &Value) -> Result<()> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
    let (group, version) = version.split_once('/').context("a group and a version")?;
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &kind));
    let (namespace, name) = (
        text(&object["metadata"]["namespace"]),
        text(&object["metadata"]["name"]),
    );
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace, &resource);
    let patch = serde_json::json!({ "status": object["status"] });
    let ends = Instant::now() + LONGEST;
    loop {
        let done = api
            .patch_status(&name, &PatchParams::default(), &Patch::Merge(&patch))
            .await;
        match done {
            Ok(_) => return Ok(()),
            Err(error) if ends < Instant::now() => return Err(error.into()),
            // The object is about to arrive.
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{is_assignment, only_reads};

    #[test]
    fn a_variable_is_told_from_the_environment_of_a_command() {
        for (command, is) in [
            ("PROXY=/apis/x", true),
            ("HUB=$(kubectl config view)", true),
            ("SECRET=x hack/hub-kubeconfig.sh", false),
            ("kubectl get x -l a=b", false),
            ("=x", false),
        ] {
            assert_eq!(is_assignment(command), is, "{command}");
        }
    }

    #[test]
    fn commands_that_write_are_run_once() {
        for (command, reads) in [
            ("kubectl get rb", true),
            ("kubectl --context member1 -n shop get pods", true),
            (
                "kubectl --context=member1 wait rb/x --for=condition=FullyApplied",
                true,
            ),
            ("entourage failover --dry-run member1", true),
            ("kubectl apply -f x", false),
            ("kubectl --context member1 delete pod x", false),
            ("entourage drain member1", false),
        ] {
            assert_eq!(only_reads(command), reads, "{command}");
        }
    }
}

//! `entourage resume`: resumes deletions on a member that the controllers have paused.

use std::{io::Write, time::Duration};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use entourage_api::keys::{annotation, condition, reason};
use kube::{
    Client,
    api::{DynamicObject, Patch},
};
use serde_json::{Value, json};

use crate::{
    apply::{CLUSTER, Target, patch},
    args::{self, HubArgs},
    connect,
    wait::{Waited, until},
};

/// Flags of `entourage resume`.
#[derive(Args, Clone, Debug)]
pub struct ResumeArgs {
    /// Name of the member on the hub
    #[arg(value_name = "CLUSTER", value_parser = args::cluster_name)]
    pub name: String,

    /// The hub.
    #[command(flatten)]
    pub hub: HubArgs,

    /// Time to wait for the controllers to resume; 0s does not wait
    #[arg(long, value_name = "DURATION", value_parser = args::duration, default_value = "30s")]
    pub wait: Duration,
}

/// Runs the command; lines go to `out`.
///
/// # Errors
/// The cause and the remedy.
pub async fn run(args: ResumeArgs, out: &mut (dyn Write + Send)) -> Result<()> {
    let hub = connect::config(args.hub.kubeconfig.as_deref(), args.hub.context.as_deref()).await?;
    resume(&args, connect::client(hub)?, out).await
}

/// Resumes with the given client. The annotation names the pause that was read, so that a later one is not ended with it.
///
/// # Errors
/// As [`run`].
pub async fn resume(args: &ResumeArgs, hub: Client, out: &mut (dyn Write + Send)) -> Result<()> {
    let name = args.name.as_str();
    let mut target = Target {
        client: hub,
        place: "hub",
        dry_run: false,
        out,
    };
    let api = target.api(CLUSTER, "");
    let cluster = match connect::within(api.get(name)).await {
        Ok(cluster) => cluster,
        Err(error) if connect::is_not_found(&error) => bail!("cluster {name:?} not found"),
        Err(error) => {
            return Err(connect::explain(error)).with_context(|| format!("cannot read cluster {name}"));
        }
    };
    let Some((since, message)) = pause(&cluster) else {
        return target.say(CLUSTER, name, "no deletions are paused");
    };
    let (since, message) = (since.to_owned(), message.to_owned());
    writeln!(target.out, "{message}")?;
    if is_blind(&cluster) {
        return target.say(CLUSTER, name, "nothing to release");
    }
    let body = json!({"metadata": {
        "uid": cluster.metadata.uid, "annotations": {annotation::RESUME_REMOVALS: since},
    }});
    connect::within(api.patch(name, &patch(), &Patch::Merge(&body)))
        .await
        .map_err(connect::explain)
        .with_context(|| format!("cannot annotate cluster {name}"))?;
    if args.wait.is_zero() {
        return target.say(CLUSTER, name, "released");
    }
    let over = |now: Option<&DynamicObject>| now.and_then(pause).is_none_or(|(now, _)| now != since);
    match until(&api, name, args.wait, over)
        .await
        .map_err(connect::explain)
        .with_context(|| format!("cannot watch cluster {name}"))?
    {
        Waited::Met(_) => target.say(CLUSTER, name, "deletions resumed"),
        Waited::TimedOut(_) => bail!(
            "the release of cluster {name} is recorded, but no controllers took it up within {:?}: are they \
             running? Deletions resume when they do",
            args.wait
        ),
    }
}

/// True if deletions wait for the hub, and not for a person.
fn is_blind(cluster: &DynamicObject) -> bool {
    let all = cluster
        .data
        .pointer("/status/conditions")
        .and_then(Value::as_array);
    all.into_iter()
        .flatten()
        .any(|each| each["type"] == condition::REMOVALS_PAUSED && each["reason"] == reason::HUB_NOT_SYNCED)
}

/// The start of the pause of deletions on a Cluster, as its condition reports it, and the reason; `None` if there is no pause.
fn pause(cluster: &DynamicObject) -> Option<(&str, &str)> {
    let mut all = cluster.data.pointer("/status/conditions")?.as_array()?.iter();
    let held = all.find(|each| each["type"] == condition::REMOVALS_PAUSED && each["status"] == "True")?;
    let message = held.get("message").and_then(Value::as_str).unwrap_or_default();
    Some((held["lastTransitionTime"].as_str()?, message))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::{
        command::{Cli, Command},
        mock::Server,
    };

    const CLUSTER_PATH: &str = "/apis/cluster.karmada.io/v1alpha1/clusters/m1";

    fn args(line: &str) -> ResumeArgs {
        let line = format!("entourage resume {line}");
        match Cli::try_parse_from(line.split(' ')).unwrap().command {
            Command::Resume(args) => args,
            other => panic!("{other:?}"),
        }
    }

    fn hub(status: &str) -> Server {
        let hub = Server::new("hub-id");
        let condition = json!({
            "type": "RemovalsPaused", "status": status, "reason": "UnexplainedRemovals",
            "message": "Deletions are paused.", "lastTransitionTime": "2026-11-23T02:00:00Z",
        });
        hub.put(
            CLUSTER_PATH,
            json!({"metadata": {"name": "m1", "uid": "u1"}, "status": {"conditions": [condition]}}),
        );
        hub
    }

    #[tokio::test]
    async fn a_pause_is_released_by_its_own_time() {
        let hub = hub("True");
        let mut out = Vec::new();
        resume(&args("m1 --wait 0s"), hub.client(), &mut out)
            .await
            .unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.contains("Deletions are paused.") && text.contains("released"),
            "{text}"
        );
        let annotations = &hub.object(CLUSTER_PATH).unwrap()["metadata"]["annotations"];
        assert_eq!(
            annotations["entourage.dev/resume-removals"],
            "2026-11-23T02:00:00Z"
        );
    }

    #[tokio::test]
    async fn what_is_not_paused_is_left_alone_and_what_is_not_there_is_an_error() {
        let hub = hub("False");
        let mut out = Vec::new();
        resume(&args("m1"), hub.client(), &mut out).await.unwrap();
        assert!(hub.object(CLUSTER_PATH).unwrap()["metadata"]["annotations"].is_null());
        let error = resume(&args("m2"), hub.client(), &mut out).await.unwrap_err();
        assert_eq!(error.to_string(), "cluster \"m2\" not found");
    }
}

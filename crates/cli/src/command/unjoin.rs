//! `entourage unjoin`: removes a member from a hub.
//!
//! An annotation of the Cluster requests that its copies are released or deleted, and the Cluster is deleted; the controllers
//! do that on the member and then remove their finalizer. Credentials are removed last, since that work needs them.

use std::{collections::BTreeSet, io::Write, path::PathBuf, time::Duration};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use entourage_api::keys::{ON_UNJOIN_RELEASE, ON_UNJOIN_REMOVE, annotation, condition, finalizer};
use kube::{
    Client,
    api::{DeleteParams, DynamicObject, Patch},
};
use serde_json::{Value, json};

use crate::join::{
    hub::{list_clusters, ready},
    impersonator, is_ours, rights, token,
};
use crate::{
    apply::{CLUSTER, RESOURCE_BINDING, SECRET, SERVICE_ACCOUNT, Target, patch},
    args::{self, CLUSTER_NAMESPACE, HubArgs},
    connect, registration,
    suggest::hint,
    wait::{Waited, until},
};

/// The number of orphaned copies that are named.
const NAMED: usize = 20;

/// Flags of `entourage unjoin`.
#[derive(Args, Clone, Debug)]
pub struct UnjoinArgs {
    /// Name of the member on the hub
    #[arg(value_parser = args::cluster_name)]
    pub name: String,

    /// The hub.
    #[command(flatten)]
    pub hub: HubArgs,

    /// Kubeconfig of the member: also remove the controllers' account and rights there
    #[arg(long, value_name = "FILE")]
    pub cluster_kubeconfig: Option<PathBuf>,

    /// Context in that kubeconfig (default: current context)
    #[arg(long, value_name = "NAME", requires = "cluster_kubeconfig")]
    pub cluster_context: Option<String>,

    /// Namespace of the account and the credentials, on the hub and on the member
    #[arg(long, value_name = "NAMESPACE", default_value = CLUSTER_NAMESPACE)]
    pub cluster_namespace: String,

    /// Delete the copies on the member (default: resources are kept; ownership metadata is removed)
    #[arg(long)]
    pub remove_copies: bool,

    /// Do not wait for the member, which is gone permanently: its copies are orphaned
    #[arg(long, conflicts_with = "remove_copies")]
    pub force: bool,

    /// Time to wait for the copies to be released or removed
    #[arg(long, value_name = "DURATION", value_parser = args::duration, default_value = "60s")]
    pub wait: Duration,
}

/// Runs the command; lines go to `out`.
///
/// # Errors
/// The cause and the remedy. The next run continues where this one stopped.
pub async fn run(args: UnjoinArgs, out: &mut (dyn Write + Send)) -> Result<()> {
    let hub = connect::config(args.hub.kubeconfig.as_deref(), args.hub.context.as_deref()).await?;
    let member = match &args.cluster_kubeconfig {
        Some(file) => Some(connect::client(
            connect::member_config(file, args.cluster_context.as_deref()).await?,
        )?),
        None => None,
    };
    unjoin(&args, connect::client(hub)?, member, out).await
}

/// Unjoins with the given clients.
///
/// # Errors
/// As [`run`].
pub async fn unjoin(
    args: &UnjoinArgs,
    hub: Client,
    member: Option<Client>,
    out: &mut (dyn Write + Send),
) -> Result<()> {
    let name = &args.name;
    let hub_id = connect::cluster_id(&hub, "the hub").await?;
    let mut target = Target {
        client: hub,
        place: "hub",
        dry_run: false,
        out: &mut *out,
    };
    let clusters = list_clusters(&target).await?;
    if let Some(member) = &member {
        check_member(member, &hub_id, &clusters, name).await?;
    }
    let account = rights::account_name(&hub_id);
    let named = |cluster: &&DynamicObject| cluster.metadata.name.as_deref() == Some(name);
    match clusters.iter().find(named) {
        Some(cluster) => remove_cluster(&mut target, args, cluster).await?,
        // An earlier run may have stopped here.
        None if is_left(&target, args, member.as_ref(), &account).await? => {
            target.say(CLUSTER, name, "not found")?;
        }
        None => {
            let names = clusters.iter().filter_map(|each| each.metadata.name.as_deref());
            let near = hint(name, names);
            bail!("cluster {name:?} not found{near}; {}", members(&clusters))
        }
    }
    remove_secret(&mut target, &args.cluster_namespace, name).await?;
    let is_pulled = |cluster: &DynamicObject| cluster.data.pointer("/spec/syncMode") == Some(&json!("Pull"));
    let found = clusters.iter().find(named);
    if found.is_none_or(is_pulled) {
        registration::hub::remove(&mut target, name).await?;
    }
    impersonator::remove_secret(&mut target, &args.cluster_namespace, name).await?;
    match member {
        Some(client) => {
            let mut target = Target {
                client,
                place: "member",
                dry_run: false,
                out,
            };
            target
                .delete(SECRET, &args.cluster_namespace, &token::secret_name(&account))
                .await?;
            impersonator::remove_if_present(&mut target, &args.cluster_namespace, &account).await?;
            rights::remove(&mut target, &args.cluster_namespace, &account).await
        }
        None if found.is_some_and(is_pulled) => {
            writeln!(
                target.out,
                "note: the cluster keeps its agent, which can do nothing on the hub any more; there: kubectl -n karmada-system delete \
                 deployment/{}",
                registration::member::NAME
            )?;
            Ok(())
        }
        None => {
            writeln!(
                target.out,
                "note: the member keeps the serviceaccount {0}/{account} and its clusterrole, and, if it was joined with \
                 --impersonate or --admin, {0}/{1}, which may impersonate users; with --cluster-kubeconfig they are removed",
                args.cluster_namespace,
                impersonator::account_name(&account)
            )?;
            Ok(())
        }
    }
}

/// True if objects of a member exist although its Cluster was deleted: a Secret of it on the hub, or an account of ours there.
async fn is_left(
    hub: &Target<'_>,
    args: &UnjoinArgs,
    member: Option<&Client>,
    account: &str,
) -> Result<bool> {
    let secret = hub.get(SECRET, &args.cluster_namespace, &args.name).await?;
    if secret.is_some_and(|secret| is_ours(&secret)) {
        return Ok(true);
    }
    if impersonator::is_on_hub(hub, &args.cluster_namespace, &args.name).await? {
        return Ok(true);
    }
    let Some(client) = member else { return Ok(false) };
    let member = Target {
        client: client.clone(),
        place: "member",
        dry_run: true,
        out: &mut std::io::sink(),
    };
    let controllers = member
        .get(SERVICE_ACCOUNT, &args.cluster_namespace, account)
        .await?;
    Ok(controllers.is_some() || impersonator::is_present(&member, &args.cluster_namespace, account).await?)
}

/// The existing members, for a message about an unknown name.
pub(super) fn members(clusters: &[DynamicObject]) -> String {
    let names: Vec<&str> = clusters
        .iter()
        .filter_map(|cluster| cluster.metadata.name.as_deref())
        .collect();
    if names.is_empty() {
        return "the hub has no members".to_owned();
    }
    let more = names.len().saturating_sub(NAMED);
    let more = if more == 0 {
        String::new()
    } else {
        format!(" and {more} more")
    };
    format!("members: {}{more}", names[..names.len().min(NAMED)].join(", "))
}

/// Fails unless the kubeconfig is for the cluster that the name represents, or did: the removal there would cut off another
/// cluster.
async fn check_member(member: &Client, hub_id: &str, clusters: &[DynamicObject], name: &str) -> Result<()> {
    let id = connect::cluster_id(member, "the member").await?;
    if id == hub_id {
        bail!("--cluster-kubeconfig leads to the hub");
    }
    for cluster in clusters {
        let held = cluster
            .data
            .pointer("/spec/id")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let other = cluster.metadata.name.as_deref().unwrap_or_default();
        if other == name && !held.is_empty() && held != id {
            bail!("--cluster-kubeconfig leads to another cluster (id {id}) than {name} (id {held})");
        }
        if other != name && held == id {
            bail!(
                "--cluster-kubeconfig leads to another cluster: the member {other} (id {id}), which would be cut off"
            );
        }
    }
    Ok(())
}

async fn remove_cluster(target: &mut Target<'_>, args: &UnjoinArgs, cluster: &DynamicObject) -> Result<()> {
    let name = args.name.as_str();
    let api = target.api(CLUSTER, "");
    let failed = || format!("cannot remove the cluster {name} from the hub");
    let on_unjoin = if args.remove_copies {
        ON_UNJOIN_REMOVE
    } else {
        ON_UNJOIN_RELEASE
    };
    // The uid prevents both writes from changing another Cluster that got this name meanwhile.
    let body =
        json!({"metadata": {"uid": cluster.metadata.uid, "annotations": {annotation::ON_UNJOIN: on_unjoin}}});
    match connect::within(api.patch(name, &patch(), &Patch::Merge(&body))).await {
        Ok(_) => {}
        Err(error) if connect::is_not_found(&error) => return target.say(CLUSTER, name, "not found"),
        Err(error) => return Err(connect::explain(error)).with_context(failed),
    }
    let preconditions = kube::api::Preconditions {
        uid: cluster.metadata.uid.clone(),
        ..Default::default()
    };
    let params = DeleteParams::background().preconditions(preconditions);
    match connect::within(api.delete(name, &params)).await {
        Ok(_) => {}
        Err(error) if connect::is_not_found(&error) => {}
        Err(error) => return Err(connect::explain(error)).with_context(failed),
    }
    let mut left = None;
    if args.force {
        // Before the finalizer is removed: then the controllers drop the record of the member's copies.
        left = copies_on(target, name).await;
        drop_finalizer(target, name).await?;
    }
    let uid = cluster.metadata.uid.as_deref();
    let gone = |now: Option<&DynamicObject>| now.is_none_or(|now| now.metadata.uid.as_deref() != uid);
    match until(&api, name, args.wait, gone)
        .await
        .map_err(connect::explain)
        .with_context(failed)?
    {
        Waited::Met(_) => {
            let what = match (args.force, args.remove_copies) {
                (true, _) => "deleted by force",
                (false, true) => "deleted: its copies are removed",
                (false, false) => "deleted: resources are kept; ownership metadata is removed",
            };
            target.say(CLUSTER, name, what)?;
            if args.force {
                report_left_behind(target, name, left)
            } else {
                Ok(())
            }
        }
        Waited::TimedOut(now) => {
            let now = now.unwrap_or_else(|| cluster.clone());
            let finalizers = now.metadata.finalizers.clone().unwrap_or_default().join(", ");
            let why = what_holds(target, name, &now.data).await;
            bail!(
                "{name} is still there after {} s, held by {finalizers}. {why}",
                args.wait.as_secs()
            )
        }
    }
}

/// The reason why a leaving member still exists, and the remedy: the controllers' report on its rights, else its readiness, and
/// the recorded copies.
async fn what_holds(target: &Target<'_>, name: &str, cluster: &Value) -> String {
    let again = "run this again to go on waiting, or with --force to orphan its copies";
    let conditions = cluster.pointer("/status/conditions").and_then(Value::as_array);
    let mut conditions = conditions.into_iter().flatten();
    let released = conditions.find(|each| each["type"] == condition::RELEASED && each["status"] == "False");
    if let Some(why) = released.and_then(|each| each["message"].as_str()) {
        return why.to_owned();
    }
    let mut why = match ready(cluster).filter(|(status, _)| *status != "True") {
        Some((_, why)) => format!("The member is not ready ({why}): {again}"),
        None => {
            format!("Either `entourage controllers` is not running or the member does not respond: {again}")
        }
    };
    if let Some(left) = copies_on(target, name).await.filter(|left| !left.is_empty()) {
        let named: Vec<&str> = left.iter().take(NAMED).map(String::as_str).collect();
        let more = left.len().saturating_sub(NAMED);
        let more = if more == 0 {
            String::new()
        } else {
            format!(" and {more} more")
        };
        why.push_str(&format!(
            ". Copies that may exist there: {}{more}",
            named.join(", ")
        ));
    }
    why
}

/// Removes our finalizer and no other.
async fn drop_finalizer(target: &Target<'_>, name: &str) -> Result<()> {
    let Some(cluster) = target.get(CLUSTER, "", name).await? else {
        return Ok(());
    };
    let mut left = cluster.metadata.finalizers.unwrap_or_default();
    left.retain(|each| each != finalizer::CLUSTER);
    // With the resourceVersion, another writer's change of the list is not lost.
    let body =
        json!({"metadata": {"finalizers": left, "resourceVersion": cluster.metadata.resource_version}});
    let api = target.api(CLUSTER, "");
    let done = connect::within(api.patch(name, &patch(), &Patch::Merge(&body))).await;
    match done {
        Err(error) if !connect::is_not_found(&error) => Err(connect::explain(error))
            .with_context(|| format!("cannot take the finalizer off the cluster {name}; run this again")),
        _ => Ok(()),
    }
}

/// The copies on a member according to the bindings; `None` if they cannot be listed.
async fn copies_on(target: &Target<'_>, name: &str) -> Option<BTreeSet<String>> {
    let bindings = target.list(RESOURCE_BINDING).await.ok()?;
    let there = bindings
        .iter()
        .map(|binding| &binding.data)
        .filter(|binding| is_on(binding, name));
    Some(there.map(resource).collect())
}

/// Reports the copies that are orphaned on a member.
fn report_left_behind(target: &mut Target<'_>, name: &str, left: Option<BTreeSet<String>>) -> Result<()> {
    let Some(left) = left else {
        writeln!(
            target.out,
            "note: the copies on {name} are kept; the bindings that name them cannot be listed"
        )?;
        return Ok(());
    };
    if left.is_empty() {
        writeln!(target.out, "note: no binding says that a copy is left on {name}")?;
        return Ok(());
    }
    writeln!(
        target.out,
        "note: copies that are kept on {name}, with ownership metadata: {}",
        left.len()
    )?;
    for each in left.iter().take(NAMED) {
        writeln!(target.out, "  {each}")?;
    }
    if left.len() > NAMED {
        writeln!(target.out, "  and {} more", left.len() - NAMED)?;
    }
    Ok(())
}

/// True if a binding has its copy on the cluster: scheduled, required by a referrer, or still recorded.
fn is_on(binding: &Value, cluster: &str) -> bool {
    let names = |value: &Value, list: &str, field: &str| {
        let entries = value.pointer(list).and_then(Value::as_array);
        entries.is_some_and(|entries| entries.iter().any(|entry| entry[field] == cluster))
    };
    let referrers = binding.pointer("/spec/requiredBy").and_then(Value::as_array);
    names(binding, "/spec/clusters", "name")
        || names(binding, "/status/aggregatedStatus", "clusterName")
        || referrers.is_some_and(|all| all.iter().any(|referrer| names(referrer, "/clusters", "name")))
}

/// The template of a binding.
fn resource(binding: &Value) -> String {
    let text = |field: &str| {
        binding["spec"]["resource"][field]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    format!("{} {}/{}", text("kind"), text("namespace"), text("name"))
}

/// Deletes the member's Secret on the hub, unless another tool created it.
async fn remove_secret(target: &mut Target<'_>, namespace: &str, name: &str) -> Result<()> {
    let Some(secret) = target.get(SECRET, namespace, name).await? else {
        return target.say(SECRET, name, "not found");
    };
    if is_ours(&secret) {
        return target.delete(SECRET, namespace, name).await;
    }
    target.say(SECRET, name, "kept: it was not made by `entourage join`")
}

#[cfg(test)]
mod tests;

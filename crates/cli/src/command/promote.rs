//! `entourage promote`: an object that exists on a member becomes a template on the hub, with a policy that keeps it there.
//!
//! Everything is checked before anything is written. The template goes last: until it exists the policy and the dependencies do
//! nothing, and an interrupted run is continued by the next one. The controllers then take the object on the member over, as it is:
//! the policy allows it on that member alone.

use std::{io::Write, path::PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use clap::Args;
use entourage_api::{
    cluster::Cluster,
    keys::{TRUE, label},
};
use entourage_core::{
    object::{Gvk, Meta, ResourceId, StrMap},
    promotion::{self, claims},
    rendered::Rendered,
};
use entourage_simulation::shown;
use kube::Client;
use serde_json::Value;

use super::resource;
use crate::{
    args::{self, CLUSTER_NAMESPACE, HubArgs},
    connect,
    kinds::{Kinds, Served},
    members,
    simulate::interpreters::{self, InterpreterSnapshot},
};

mod deps;
mod hub;
mod source;
mod write;

use source::{Promoted, Source};

/// Flags of `entourage promote`.
#[derive(Args, Clone, Debug)]
pub struct PromoteArgs {
    /// Kind of the object, as for kubectl: deployment, deploy, deployments.apps
    #[arg(value_name = "KIND")]
    pub kind: String,

    /// Name of the object
    #[arg(value_name = "NAME")]
    pub name: String,

    /// The hub.
    #[command(flatten)]
    pub hub: HubArgs,

    /// Namespace of the object (default: that of the context, else default)
    #[arg(short = 'n', long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,

    /// Member that has the object
    #[arg(short = 'C', long, value_name = "NAME", value_parser = args::cluster_name)]
    pub cluster: String,

    /// Kubeconfig of the member, instead of the credentials that the hub has for it: needed in Pull mode
    #[arg(long, value_name = "FILE")]
    pub cluster_kubeconfig: Option<PathBuf>,

    /// Context in that kubeconfig (default: current context)
    #[arg(long, value_name = "NAME", requires = "cluster_kubeconfig")]
    pub cluster_context: Option<String>,

    /// Namespace of the hub that holds the members' credentials
    #[arg(long, value_name = "NAMESPACE", default_value = CLUSTER_NAMESPACE)]
    pub cluster_namespace: String,

    /// Create a policy that takes the object over on that member, and places it there alone; without it an existing policy must
    /// select it
    #[arg(long, value_name = "BOOL", default_value_t = true, default_missing_value = "true", num_args = 0..=1,
        require_equals = true, action = clap::ArgAction::Set)]
    pub auto_create_policy: bool,

    /// Name of that policy (default: the name and kind of the object; give one if that is too long)
    #[arg(long, value_name = "NAME")]
    pub policy_name: Option<String>,

    /// Also promote what it refers to, and propagate dependencies
    #[arg(short = 'd', long, alias = "dependencies")]
    pub deps: bool,

    /// Have the hub check what would be created and print it, as YAML without values of Secrets; write nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Runs the command; lines or YAML go to `out`.
///
/// # Errors
/// The cause and the remedy.
pub async fn run(args: PromoteArgs, out: &mut (dyn Write + Send)) -> Result<()> {
    let config = connect::config(args.hub.kubeconfig.as_deref(), args.hub.context.as_deref()).await?;
    let namespace = args.namespace.clone().unwrap_or(config.default_namespace.clone());
    promote(&args, connect::client(config)?, &namespace, out).await
}

async fn promote(
    args: &PromoteArgs,
    hub: Client,
    namespace: &str,
    out: &mut (dyn Write + Send),
) -> Result<()> {
    let hub_id = connect::cluster_id(&hub, "the hub").await?;
    let clusters = members::clusters(&hub, std::slice::from_ref(&args.cluster)).await?;
    let cluster = clusters.first().context("the hub has no such member")?;
    let client = member(args, &hub, cluster).await?;
    let (gvk, kind) = resource::find(&client, &args.kind, &args.cluster).await?;
    let namespace = if kind.namespaced { namespace } else { "" };
    let id = ResourceId::new(gvk, namespace, &args.name);
    let mut source = Source {
        client,
        cluster: args.cluster.clone(),
        hub_id,
        kinds: Kinds::default(),
    };
    let live = deps::get(&source.client, &mut source.kinds, &id).await;
    let live = live
        .with_context(|| format!("cannot promote from {}", args.cluster))?
        .with_context(|| format!("{id} not found on {}", args.cluster))?;
    let live = Rendered(live);
    let root = Promoted::new(id.clone(), live.object(), &source.hub_id)
        .map_err(|why| source::refused(&id, &args.cluster, &why))?;
    let mut notes = Vec::new();
    let scalers = source.scalers(namespace, &mut notes).await?;
    let root = root.keep_replicas(&scalers, &mut notes)?;
    let mut kinds = Kinds::default();
    let mut remarks = Vec::new();
    let interpreters = interpreters::of_hub(&hub, &mut kinds, &mut remarks).await;
    let needed = if args.deps {
        if let Some(remark) = remarks.first() {
            bail!("cannot tell all dependencies: {remark}. Promote without --deps");
        }
        let all = deps::of(&interpreters, (&hub, &source.client), (&id, live), &mut notes).await?;
        // A hook may name further dependencies, which the policy would overwrite unseen.
        let gvks: Vec<&Gvk> = all.iter().map(|(id, _)| &id.gvk).chain([&id.gvk]).collect();
        if let Some(hook) = interpreters::hook_covering(&hub, &mut kinds, &gvks).await? {
            bail!("cannot tell all dependencies: {hook} is not called here. Promote without --deps");
        }
        deps::templates(&hub, all, &source.hub_id, &scalers, &mut notes).await?
    } else {
        notes.append(&mut remarks);
        Vec::new()
    };
    let policy = args.auto_create_policy.then(|| {
        let name = args.policy_name.clone();
        let name = name.unwrap_or_else(|| promotion::policy_name(&id.gvk, &id.name));
        promotion::policy(&id, &args.cluster, &name, args.deps)
    });
    let hub_kinds = on_hub(&hub, &id, &needed).await?;
    let write = write::Write {
        hub: &hub,
        kinds: &hub_kinds,
        out: &mut *out,
    };
    let present = write.check(policy.as_ref(), &needed, &root).await?;
    let is_new = |each: &&Promoted| present.iter().all(|(id, _)| *id != each.id);
    let new: Vec<&Promoted> = needed.iter().filter(is_new).collect();
    let templates = (&root, new.as_slice(), present.as_slice());
    notes.extend(where_to(args, &hub, &interpreters, policy.as_ref(), templates).await?);
    if id.gvk.is_namespace() {
        notes.push(format!(
            "{id} is created on every member that joins, as each namespace of the hub, unless the hub's has the label {}: \"{TRUE}\"",
            label::SKIP_AUTO_PROPAGATION
        ));
    }
    if args.dry_run {
        print(out, policy.as_ref(), &needed, &root)?;
    } else {
        write.all(policy.as_ref(), &needed, &root, &mut source).await?;
    }
    for note in notes {
        writeln!(out, "{}note: {note}", if args.dry_run { "# " } else { "" })?;
    }
    if !args.dry_run && args.auto_create_policy {
        let scope = if id.namespace.is_empty() {
            "-A".to_owned()
        } else {
            format!("-n {}", id.namespace)
        };
        writeln!(
            out,
            "{id} is taken over on {} as it is; entourage get copies {} {scope} shows when",
            args.cluster, id.name
        )?;
    }
    Ok(())
}

/// Evaluates where the hub's policies and referrers would take the object and the dependencies that the hub does not have yet, and
/// returns notes for the user. `present` are those that it has, with their labels.
///
/// # Errors
/// The created policy could not keep them on their member.
async fn where_to(
    args: &PromoteArgs,
    hub: &Client,
    interpreters: &InterpreterSnapshot,
    policy: Option<&Value>,
    (root, needed, present): (&Promoted, &[&Promoted], &[(ResourceId, StrMap)]),
) -> Result<Vec<String>> {
    let all = needed.iter().copied().chain([root]);
    let new: Vec<_> = all.map(|each| (&each.id, each.template.object())).collect();
    let facts = hub::facts(hub, interpreters, &args.cluster, &new).await?;
    let labels = |each: &Promoted| Meta::of(each.template.object()).labels;
    let (root_labels, policy) = (labels(root), policy.and_then(claims::Policy::of));
    let needed: Vec<_> = needed
        .iter()
        .copied()
        .map(|each| (each.id.clone(), labels(each)))
        .collect();
    let promoted = claims::Promoted {
        cluster: &args.cluster,
        root: (&root.id, &root_labels),
        needed: &needed,
        present,
        policy: policy.as_ref(),
    };
    claims::check(&facts, promoted).map_err(|why| anyhow!("nothing was written: {why}"))
}

async fn member(args: &PromoteArgs, hub: &Client, cluster: &Cluster) -> Result<Client> {
    let context = args.cluster_context.as_deref();
    let given = match args.cluster_kubeconfig.as_deref() {
        Some(file) => Some(connect::member_config(file, context).await?),
        None => None,
    };
    let client = members::client(
        hub,
        cluster,
        &args.cluster_namespace,
        given,
        "--cluster-kubeconfig FILE",
    )
    .await;
    client.map_err(|why| anyhow!("cannot read {}: {why}", args.cluster))
}

/// The kinds of the templates on the hub.
async fn on_hub(hub: &Client, id: &ResourceId, needed: &[Promoted]) -> Result<Kinds> {
    let mut kinds = Kinds::default();
    let wanted = needed.iter().map(|each| &each.id).chain([id]);
    let wanted: Vec<Gvk> = wanted.map(|id| id.gvk.clone()).collect();
    kinds
        .learn(hub, wanted.iter().cloned())
        .await
        .context("cannot ask the hub which kinds it serves")?;
    if let Some(missing) = wanted.iter().find(|gvk| kinds.get(gvk).is_none()) {
        bail!(
            "the hub does not serve {} {}: apply its CustomResourceDefinition there first",
            missing.api_version(),
            missing.kind
        );
    }
    Ok(kinds)
}

/// Prints what would be created, in that order.
fn print(
    out: &mut (dyn Write + Send),
    policy: Option<&Value>,
    needed: &[Promoted],
    root: &Promoted,
) -> Result<()> {
    let templates = needed.iter().chain([root]).map(|each| each.template.object());
    for object in policy.into_iter().chain(templates) {
        let (_, object) = shown::pair(None, Some(object));
        let text = serde_saphyr::to_string(&object).context("cannot write an object as YAML")?;
        write!(out, "---\n{text}")?;
    }
    Ok(())
}

/// The served form of a kind that the hub was asked for.
fn served<'a>(kinds: &'a Kinds, id: &ResourceId) -> Result<&'a Served> {
    kinds
        .get(&id.gvk)
        .with_context(|| format!("the hub does not serve the kind {}", id.gvk.kind))
}

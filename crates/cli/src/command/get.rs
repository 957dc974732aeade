//! `entourage get`: tables of bindings, copies, clusters, policies, overrides and distributions. Reads only the hub, on which the
//! copies of members in Pull mode are Works.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
};

use anyhow::{Context as _, Result, bail};
use clap::{Args, ValueEnum};
use entourage_core::{
    distribution,
    object::{Gvk, ResourceId, StrMap, Time},
    scope,
};
use kube::{
    Client,
    api::{ApiResource, ListParams},
};
use serde_json::{Value, json};

use crate::{
    args::{self, HubArgs, SelectArgs},
    connect::{self, explain, within},
    kinds::{Kinds, Served},
    lists::{PAGE, api, list},
    output::{Output, OutputArgs},
    style::Style,
    suggest::hint,
};

pub(super) mod bindings;
pub(super) mod clusters;
pub(super) mod copies;
mod distributed;
pub(super) mod distributions;
mod overrides;
mod policies;
mod pulled;
pub(super) mod select;
pub(super) mod table;
mod watch;

use table::{Row, View};

/// The kind of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Resource {
    /// The target clusters of each template, its policy, and its state
    #[value(aliases = ["binding", "rb", "crb", "resourcebinding", "resourcebindings", "clusterresourcebinding",
        "clusterresourcebindings"])]
    Bindings,
    /// Each object on each cluster: its state, its health, and its dependents there
    #[value(alias = "copy")]
    Copies,
    /// The members: ready since, version, copies, taints
    #[value(alias = "cluster")]
    Clusters,
    /// The templates that each policy selects, and its target clusters
    #[value(aliases = ["policy", "pp", "cpp", "propagationpolicy", "propagationpolicies", "clusterpropagationpolicy",
        "clusterpropagationpolicies"])]
    Policies,
    /// The templates that each override policy selects, and the number of copies it changes
    #[value(aliases = ["override", "op", "cop", "overridepolicy", "overridepolicies", "clusteroverridepolicy",
        "clusteroverridepolicies"])]
    Overrides,
    /// Each ConfigMap or Secret for many namespaces: the namespaces with and without it, and the causes
    #[value(aliases = ["distribution", "distributor", "rd", "resourcedistribution", "resourcedistributions"])]
    Distributions,
}

/// Flags of `entourage get`.
#[derive(Args, Clone, Debug)]
pub struct GetArgs {
    /// Kind of rows to show
    #[arg(value_enum)]
    pub what: Resource,

    /// Only the row with this name: of a binding, a template, a cluster, a policy, a distribution; of overrides KIND/NAME shows those of
    /// an object
    pub name: Option<String>,

    /// The hub.
    #[command(flatten)]
    pub hub: HubArgs,

    /// The rows to show.
    #[command(flatten)]
    pub select: SelectArgs,

    /// Only rows of this member
    #[arg(short = 'C', long, value_name = "NAME", value_parser = args::cluster_name)]
    pub cluster: Option<String>,

    /// The output.
    #[command(flatten)]
    pub output: OutputArgs,

    /// After the rows, print each one that changes, until you end it
    #[arg(short = 'w', long)]
    pub watch: bool,
}

/// Runs the command; the table goes to `out`.
///
/// # Errors
/// An object that cannot be read and the remedy; or that the name is not found.
pub async fn run(args: GetArgs, out: &mut (dyn Write + Send)) -> Result<()> {
    let config = connect::config(args.hub.kubeconfig.as_deref(), args.hub.context.as_deref()).await?;
    let namespace = &args.select.namespace(&config.default_namespace);
    let hub = connect::client(config)?;
    if args.watch {
        return watch::run(&args, &hub, namespace, out).await;
    }
    let seen = read(&hub, &args, namespace).await?;
    let now = entourage_controllers::clock::now();
    let text = shown(&args, namespace, &seen, now, Style::of_stdout())?;
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// The objects read from the hub.
#[derive(Debug, Default)]
pub struct Seen {
    /// ResourceBindings and ClusterResourceBindings.
    pub bindings: Vec<Value>,
    /// Clusters.
    pub clusters: Vec<Value>,
    /// PropagationPolicies and ClusterPropagationPolicies.
    pub policies: Vec<Value>,
    /// OverridePolicies and ClusterOverridePolicies.
    pub overrides: Vec<Value>,
    /// The labels of templates of kinds that override policies select by labels.
    pub labels: BTreeMap<ResourceId, StrMap>,
    /// ResourceDistributions.
    pub distributions: Vec<Value>,
    /// ConfigMaps and Secrets of the hub with the names that are distributed; only metadata.
    pub distributed: Vec<Value>,
    /// Kinds and names of those that cannot be read, with the causes: bindings are shown all the same.
    pub unread: Vec<(String, String, String)>,
    /// The Works of the members in Pull mode.
    works: pulled::Works,
    /// With `-l`, the templates whose copies are shown.
    chosen: Option<BTreeSet<ResourceId>>,
}

const BINDINGS: [&str; 2] = [scope::BINDING.kind, scope::CLUSTER_BINDING.kind];
const POLICIES: [&str; 2] = [scope::POLICY.kind, scope::CLUSTER_POLICY.kind];
const OVERRIDES: [&str; 2] = ["OverridePolicy", "ClusterOverridePolicy"];

async fn read(hub: &Client, args: &GetArgs, namespace: &str) -> Result<Seen> {
    let gvk = |api: &str, kind: &str| Gvk::new(api, kind);
    let bindings = BINDINGS.map(|kind| gvk(scope::BINDING_API, kind));
    let policies = POLICIES.map(|kind| gvk(scope::POLICY_API, kind));
    let overrides = OVERRIDES.map(|kind| gvk(scope::POLICY_API, kind));
    let cluster = gvk("cluster.karmada.io/v1alpha1", "Cluster");
    let mut kinds = Kinds::default();
    let distribution = distribution::gvk();
    let wanted: BTreeSet<Gvk> = bindings
        .iter()
        .chain(&policies)
        .chain(&overrides)
        .chain([&cluster, &distribution])
        .cloned()
        .collect();
    kinds
        .learn(hub, wanted)
        .await
        .context("cannot ask the hub which kinds it serves")?;
    if kinds.get(&bindings[0]).is_none() {
        bail!(
            "the hub does not serve ResourceBindings: is it a hub? `entourage crds --apply` installs the definitions"
        );
    }
    let all = ListParams::default().limit(PAGE);
    // What the rows are made of; the other lists explain them.
    let selected = match &args.select.rows.selector {
        Some(selector) => all.clone().labels(selector),
        None => all.clone(),
    };
    let read_by = async |params: &ListParams, all: &[Gvk], namespace: &str| -> Result<Vec<Value>> {
        let mut objects = Vec::new();
        for served in all.iter().filter_map(|gvk| kinds.get(gvk)) {
            if !served.namespaced && !namespace.is_empty() {
                continue;
            }
            let read = list(hub, served, namespace, params).await.map_err(explain);
            objects
                .extend(read.with_context(|| format!("cannot list {} on the hub", served.resource.plural))?);
        }
        Ok(objects)
    };
    let read = async |kinds: &[Gvk], namespace: &str| read_by(&all, kinds, namespace).await;
    let rows = async |kinds: &[Gvk], namespace: &str| read_by(&selected, kinds, namespace).await;
    let mut seen = Seen::default();
    if args.cluster.is_some() {
        seen.clusters = read(std::slice::from_ref(&cluster), "").await?;
    }
    match args.what {
        Resource::Bindings => {
            seen.bindings = rows(&bindings, namespace).await?;
            seen.policies = read(&policies, "").await?;
        }
        Resource::Copies => {
            seen.bindings = read(&bindings, namespace).await?;
            seen.clusters = read(&[cluster], "").await?;
            seen.distributions = read(&[distribution], "").await?;
            let sources = seen.distributions.iter().map(distributions::Source::of);
            let mut names: BTreeSet<(&str, &str)> = sources
                .map(|source| (source.kind, source.name))
                .filter(|(_, name)| !name.is_empty())
                .collect();
            if let Some(asked) = args.name.as_deref() {
                names.retain(|(_, name)| *name == asked);
            }
            let mut unread = Vec::new();
            for (kind, name) in names {
                match of_name(hub, kind, namespace, name).await.map_err(explain) {
                    Ok(copies) => seen.distributed.extend(copies),
                    Err(why) => unread.push((kind.to_owned(), name.to_owned(), why.to_string())),
                }
            }
            seen.unread = unread;
            seen.works = pulled::read(hub, &seen.clusters, namespace).await;
            if args.select.rows.selector.is_some() {
                let templates = seen.bindings.iter().map(|binding| copies::object_of(binding).gvk);
                seen.chosen = Some(selected_of(hub, templates.collect(), namespace, &selected).await?);
            }
        }
        Resource::Clusters => {
            seen.clusters = rows(&[cluster], "").await?;
            seen.bindings = read(&bindings, "").await?;
        }
        Resource::Policies => {
            seen.policies = rows(&policies[..1], namespace).await?;
            // These apply to every namespace.
            seen.policies.extend(rows(&policies[1..], "").await?);
            seen.bindings = read(&bindings, "").await?;
        }
        Resource::Overrides => {
            seen.overrides = rows(&overrides[..1], namespace).await?;
            // These apply to every namespace.
            seen.overrides.extend(rows(&overrides[1..], "").await?);
            seen.clusters = read(&[cluster], "").await?;
            seen.bindings = read(&bindings, "").await?;
            let labelled = overrides::selected_by_labels(&seen.overrides);
            kinds
                .learn(hub, labelled.clone())
                .await
                .context("cannot ask the hub which kinds it serves")?;
            for (gvk, served) in labelled.iter().filter_map(|gvk| Some((gvk, kinds.get(gvk)?))) {
                let read = metadata(hub, served, "", all.clone()).await.map_err(explain);
                let read =
                    read.with_context(|| format!("cannot list {} on the hub", served.resource.plural))?;
                seen.labels
                    .extend(read.iter().map(|object| overrides::labelled(gvk, object)));
            }
        }
        Resource::Distributions => {
            seen.distributions = rows(&[distribution], "").await?;
            seen.bindings = read(&bindings[1..], "").await?;
        }
    }
    Ok(seen)
}

/// The objects of these kinds in a namespace that are selected; in all namespaces when it is empty. Their metadata alone is read.
///
/// # Errors
/// The hub cannot be read, or refuses the selector.
pub(super) async fn selected_of(
    hub: &Client,
    gvks: BTreeSet<Gvk>,
    namespace: &str,
    selected: &ListParams,
) -> Result<BTreeSet<ResourceId>> {
    let mut kinds = Kinds::default();
    kinds
        .learn(hub, gvks.clone())
        .await
        .context("cannot ask the hub which kinds it serves")?;
    let mut chosen = BTreeSet::new();
    for (gvk, served) in gvks.iter().filter_map(|gvk| Some((gvk, kinds.get(gvk)?))) {
        let read = metadata(hub, served, namespace, selected.clone()).await;
        let read = read
            .map_err(explain)
            .with_context(|| format!("cannot list {} on the hub", served.resource.plural))?;
        chosen.extend(read.iter().map(|object| overrides::labelled(gvk, object).0));
    }
    Ok(chosen)
}

/// Metadata of the ConfigMaps or Secrets of one name: their content is not requested.
async fn of_name(hub: &Client, kind: &str, namespace: &str, name: &str) -> kube::Result<Vec<Value>> {
    let plural = match kind {
        "ConfigMap" => "configmaps",
        "Secret" => "secrets",
        _ => return Ok(Vec::new()),
    };
    let resource = ApiResource {
        group: String::new(),
        version: "v1".to_owned(),
        api_version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    };
    let served = Served {
        resource,
        namespaced: true,
    };
    let params = ListParams::default()
        .fields(&format!("metadata.name={name}"))
        .limit(PAGE);
    metadata(hub, &served, namespace, params).await
}

/// Metadata of objects of a kind.
async fn metadata(
    hub: &Client,
    served: &Served,
    namespace: &str,
    mut params: ListParams,
) -> kube::Result<Vec<Value>> {
    let api = api(hub, served, namespace);
    let (api_version, kind) = (&served.resource.api_version, &served.resource.kind);
    let mut all = Vec::new();
    loop {
        let page = within(api.list_metadata(&params)).await?;
        let next = page.metadata.continue_.clone().filter(|next| !next.is_empty());
        for object in page.items {
            all.push(json!({ "apiVersion": api_version, "kind": kind, "metadata": object.metadata }));
        }
        match next {
            Some(next) => params.continue_token = Some(next),
            None => return Ok(all),
        }
    }
}

/// The output; `namespace` is empty for all namespaces.
///
/// # Errors
/// The name, the cluster or a field is not found.
pub fn shown(args: &GetArgs, namespace: &str, seen: &Seen, now: Time, style: Style) -> Result<String> {
    let view = view(args, seen, now)?;
    let format = args.output.output.as_ref();
    if view.rows.is_empty() {
        let within = match args.what {
            Resource::Clusters | Resource::Distributions => "",
            _ => namespace,
        };
        let here = if within.is_empty() {
            String::new()
        } else {
            format!(" in namespace {within}")
        };
        let value = args.what.to_possible_value();
        let mut words = value.iter().flat_map(|value| value.get_name_and_aliases());
        let what = words.next().unwrap_or_default();
        // The first alias is the singular.
        let one = words.next().unwrap_or(what);
        let is_unknown = |name: &&String| all(args.what, Some(name), seen, now).rows.is_empty();
        return match args.name.as_ref().filter(is_unknown) {
            Some(name) => {
                let known = all(args.what, None, seen, now).rows;
                let near = hint(name, known.iter().flat_map(names));
                bail!("{one} {name:?} not found{here}{near}; entourage get {what} -A lists all")
            }
            // A program gets the same format, without rows.
            None if !matches!(format, None | Some(Output::Wide)) => {
                view.printed(&args.output, namespace.is_empty(), style)
            }
            None => Ok(format!("No {what} found{here}.\n")),
        };
    }
    view.printed(&args.output, namespace.is_empty(), style)
}

/// The rows that are asked for.
///
/// # Errors
/// The cluster or a field is not found.
fn view(args: &GetArgs, seen: &Seen, now: Time) -> Result<View> {
    let mut view = all(args.what, args.name.as_deref(), seen, now);
    if let Some(cluster) = &args.cluster {
        // With -l, Clusters are not all that there are.
        if args.what != Resource::Clusters || args.select.rows.selector.is_none() {
            select::check(cluster, seen)?;
        }
        view.rows
            .retain(|row| select::is_on(args.what, row, seen, cluster));
    }
    if let Some(fields) = &args.select.rows.field_selector {
        select::by_fields(&mut view.rows, |row| &row.item, fields)?;
    }
    Ok(view)
}

fn all(what: Resource, name: Option<&str>, seen: &Seen, now: Time) -> View {
    match what {
        Resource::Bindings => bindings::view(seen, name, now),
        Resource::Copies => copies::view(seen, name, now),
        Resource::Clusters => clusters::view(seen, name, now),
        Resource::Policies => policies::view(seen, name, now),
        Resource::Overrides => overrides::view(seen, name, now),
        Resource::Distributions => distributions::view(seen, name, now),
    }
}

/// The names by which a row is found.
fn names(row: &Row) -> impl Iterator<Item = &str> {
    let names = ["/name", "/template/name"];
    names.into_iter().map(|name| table::text(&row.item, name))
}

#[cfg(test)]
mod golden;

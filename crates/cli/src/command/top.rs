//! `entourage top`: the use of nodes or pods of members, as their metrics servers report it, through the hub and as the caller itself.

use std::io::Write;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use futures::{StreamExt as _, stream};
use kube::{Client, api::ListParams};
use serde_json::Value;

use super::{get::select, pods};
use crate::{
    args::{HubArgs, MemberArgs, SelectArgs},
    connect::{self, explain, is_not_found, through, within},
    output::OutputArgs,
    style::Style,
};

mod usage;

use usage::{Usage, nodes, pods_of, view};

/// The maximum number of members that are asked at a time.
const AT_ONCE: usize = 8;

/// The API of metrics servers.
const METRICS: &str = "/apis/metrics.k8s.io/v1beta1";

/// The objects that are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Measured {
    /// The nodes, with the share of what they have for pods
    #[value(alias = "node", alias = "no")]
    Nodes,
    /// The pods of a namespace, or of all
    #[value(alias = "pod", alias = "po")]
    Pods,
}

/// The order of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SortBy {
    /// The largest use of CPU first
    Cpu,
    /// The largest use of memory first
    Memory,
}

/// Flags of `entourage top`.
#[derive(Args, Clone, Debug)]
pub struct TopArgs {
    /// Objects to measure
    #[arg(value_enum)]
    pub what: Measured,

    /// The hub.
    #[command(flatten)]
    pub hub: HubArgs,

    /// The members.
    #[command(flatten)]
    pub members: MemberArgs,

    /// The pods; labels are those of pods or nodes on the members.
    #[command(flatten)]
    pub select: SelectArgs,

    /// Order of the rows (default: clusters, namespaces and names)
    #[arg(long, value_enum, value_name = "RESOURCE")]
    pub sort_by: Option<SortBy>,

    /// The output.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Runs the command; the table goes to `out`, members without metrics to `err`.
///
/// # Errors
/// The cause and the remedy; also if a member has no metrics: the table has those of the others.
pub async fn run(args: TopArgs, out: &mut (dyn Write + Send), err: &mut (dyn Write + Send)) -> Result<()> {
    let config = connect::config(args.hub.kubeconfig.as_deref(), args.hub.context.as_deref()).await?;
    let namespace = args.select.namespace(&config.default_namespace);
    top(&args, &connect::client(config)?, &namespace, (out, err)).await
}

/// `namespace` is empty for all.
async fn top(
    args: &TopArgs,
    hub: &Client,
    namespace: &str,
    (out, err): (&mut (dyn Write + Send), &mut (dyn Write + Send)),
) -> Result<()> {
    let clusters = if args.members.cluster.is_empty() {
        pods::all(hub).await?
    } else {
        pods::distinct(&args.members.cluster)
    };
    if clusters.is_empty() {
        bail!("the hub has no members: `entourage join` makes a cluster one");
    }
    let asked = clusters.len();
    let selector = args.select.rows.selector.as_deref();
    let measured: Vec<(String, Result<Vec<Usage>, String>)> = stream::iter(clusters)
        .map(|cluster| async move {
            let client = through(hub, &cluster);
            let measured = match args.what {
                Measured::Nodes => of_nodes(&client, &cluster, selector).await,
                Measured::Pods => of_pods(&client, &cluster, namespace, selector).await,
            };
            (cluster, measured)
        })
        .buffered(AT_ONCE)
        .collect()
        .await;
    let mut rows = Vec::new();
    let mut without = 0;
    for (cluster, measured) in measured {
        match measured {
            Ok(measured) => rows.extend(measured),
            Err(why) => {
                without += 1;
                writeln!(err, "note: {cluster}: {why}")?;
            }
        }
    }
    usage::sort(&mut rows, args.sort_by);
    let mut view = view(&rows, args.what);
    if let Some(fields) = &args.select.rows.field_selector {
        select::by_fields(&mut view.rows, |row| &row.item, fields)?;
    }
    if !view.rows.is_empty() {
        let all_namespaces = args.what == Measured::Pods && namespace.is_empty();
        let text = view.printed(&args.output, all_namespaces, Style::of_stdout())?;
        out.write_all(text.as_bytes())?;
        out.flush()?;
    } else if without < asked {
        writeln!(err, "no {} found", what(args.what))?;
    }
    if without > 0 {
        bail!("no metrics of {without}/{asked} clusters");
    }
    Ok(())
}

fn what(measured: Measured) -> &'static str {
    match measured {
        Measured::Nodes => "nodes",
        Measured::Pods => "pods",
    }
}

async fn of_nodes(client: &Client, cluster: &str, selector: Option<&str>) -> Result<Vec<Usage>, String> {
    let metrics = read(client, &format!("{METRICS}/nodes"), selector)
        .await
        .map_err(no_metrics)?;
    let all = read(client, "/api/v1/nodes", selector).await;
    let all = all.map_err(|error| format!("cannot list nodes: {}", explain(error)))?;
    Ok(nodes(cluster, &metrics, &all))
}

async fn of_pods(
    client: &Client,
    cluster: &str,
    namespace: &str,
    selector: Option<&str>,
) -> Result<Vec<Usage>, String> {
    let path = if namespace.is_empty() {
        format!("{METRICS}/pods")
    } else {
        format!("{METRICS}/namespaces/{namespace}/pods")
    };
    let metrics = read(client, &path, selector).await.map_err(no_metrics)?;
    Ok(pods_of(cluster, &metrics))
}

/// The list at a path; with a selector the server's choice by labels.
async fn read(client: &Client, path: &str, selector: Option<&str>) -> kube::Result<Value> {
    let params = ListParams {
        label_selector: selector.map(str::to_owned),
        ..ListParams::default()
    };
    let request = kube::core::Request::new(path);
    let request = request.list(&params).map_err(kube::Error::BuildRequest)?;
    within(client.request(request)).await
}

/// A member without a metrics server answers 404 about the path, one whose metrics server does not run 503; the hub says of both whether
/// it is about the Cluster.
fn no_metrics(error: kube::Error) -> String {
    let is_cluster =
        matches!(&error, kube::Error::Api(status) if status.message.contains("clusters.cluster.karmada.io"));
    if is_not_found(&error) && !is_cluster {
        return "metrics.k8s.io is not served there: install metrics-server on that cluster".to_owned();
    }
    format!("cannot read metrics.k8s.io: {}", explain(error))
}

#[cfg(test)]
mod tests;

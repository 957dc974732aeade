//! `entourage get -w`: the rows, and then each one that changes. Watches of the metadata tell when to read the hub again.

use std::{collections::BTreeMap, io::Write, time::Duration};

use anyhow::{Context as _, Result};
use entourage_core::{distribution, object::Gvk, scope};
use futures::StreamExt as _;
use kube::{
    Client,
    api::{ListParams, WatchParams},
};
use serde_json::Value;
use tokio::{sync::mpsc, time::sleep};
use tokio_util::task::AbortOnDropHandle;

use super::{BINDINGS, GetArgs, OVERRIDES, POLICIES, Resource, read, table::Look, view};
use crate::{
    connect::within,
    kinds::{Kinds, Served},
    lists::api,
    output::{Output, for_programs},
    style::Style,
};

/// The time in which changes are collected before the hub is read.
const COLLECTED: Duration = Duration::from_millis(200);

/// The pause before a watch that ended is opened again.
const PAUSE: Duration = Duration::from_secs(1);

/// Prints the rows, and each one that changes, until the process ends.
///
/// # Errors
/// The hub cannot be read, or the output cannot be written.
pub(super) async fn run(
    args: &GetArgs,
    hub: &Client,
    namespace: &str,
    out: &mut (dyn Write + Send),
) -> Result<()> {
    let mut kinds = Kinds::default();
    let watched = watched(args.what);
    kinds
        .learn(hub, watched.clone())
        .await
        .context("cannot ask the hub which kinds it serves")?;
    let (changed, mut changes) = mpsc::channel(1);
    let _watches: Vec<AbortOnDropHandle<()>> = watched
        .iter()
        .filter_map(|gvk| kinds.get(gvk))
        .map(|served| {
            let follow = follow(hub.clone(), served.clone(), changed.clone());
            AbortOnDropHandle::new(tokio::spawn(follow))
        })
        .collect();
    let mut printer = Printer::default();
    loop {
        let seen = read(hub, args, namespace).await?;
        let now = entourage_controllers::clock::now();
        let mut view = view(args, &seen, now)?;
        view.more.clear();
        view.rows.retain(|row| printer.is_new(&row.name, &row.item));
        if !view.rows.is_empty() {
            let text = match &args.output.output {
                None | Some(Output::Wide) => {
                    let look = Look {
                        wide: args.output.output.is_some(),
                        all_namespaces: namespace.is_empty(),
                        headers: !args.output.no_headers
                            && !std::mem::replace(&mut printer.has_headers, true),
                        style: Style::of_stdout(),
                    };
                    view.lines(look, &mut printer.widths)
                }
                Some(format) => {
                    let mut text = String::new();
                    for row in &view.rows {
                        let headers =
                            !args.output.no_headers && !std::mem::replace(&mut printer.has_headers, true);
                        let rows = [(row.name.as_str(), &row.item)];
                        if *format == Output::Yaml {
                            text.push_str("---\n");
                        }
                        text.push_str(&for_programs(format, &row.item, &rows, headers)?);
                    }
                    text
                }
            };
            out.write_all(text.as_bytes())?;
            out.flush()?;
        }
        // The channel stays open: `changed` is here.
        changes.recv().await;
        sleep(COLLECTED).await;
    }
}

/// The rows that were printed.
#[derive(Default)]
struct Printer {
    rows: BTreeMap<String, Value>,
    widths: Vec<usize>,
    has_headers: bool,
}

impl Printer {
    /// True if the row was not printed yet, or in another state.
    fn is_new(&mut self, name: &str, item: &Value) -> bool {
        let namespace = item["namespace"].as_str().unwrap_or_default();
        let before = self.rows.insert(format!("{namespace}/{name}"), item.clone());
        before.as_ref() != Some(item)
    }
}

/// The kinds that the rows depend on.
fn watched(what: Resource) -> Vec<Gvk> {
    let bindings = BINDINGS.map(|kind| Gvk::new(scope::BINDING_API, kind));
    let policies = |kinds: [&str; 2]| kinds.map(|kind| Gvk::new(scope::POLICY_API, kind));
    let cluster = [Gvk::new("cluster.karmada.io/v1alpha1", "Cluster")];
    let distribution = [distribution::gvk()];
    match what {
        Resource::Bindings => bindings.to_vec(),
        Resource::Copies => [bindings.as_slice(), &cluster, &distribution].concat(),
        Resource::Clusters => [cluster.as_slice(), &bindings].concat(),
        Resource::Policies => [policies(POLICIES).as_slice(), &bindings].concat(),
        Resource::Overrides => [policies(OVERRIDES).as_slice(), &bindings, &cluster].concat(),
        Resource::Distributions => distribution.to_vec(),
    }
}

/// Reports each event of a kind, for as long as somebody listens.
async fn follow(hub: Client, served: Served, changed: mpsc::Sender<()>) {
    let api = api(&hub, &served, "");
    while !changed.is_closed() {
        let first = within(api.list_metadata(&ListParams::default().limit(1))).await;
        let version = first.map(|list| list.metadata.resource_version.unwrap_or_default());
        if let Ok(version) = version {
            // What changed before the watch begins.
            let _ = changed.try_send(());
            if let Ok(events) = api.watch_metadata(&WatchParams::default(), &version).await {
                let mut events = std::pin::pin!(events);
                while let Some(Ok(_)) = events.next().await {
                    // A message that waits already is for this event, too.
                    let _ = changed.try_send(());
                }
            }
        }
        sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_row_is_printed_again_when_it_changes() {
        let mut printer = Printer::default();
        let item = |namespace: &str, applied: u32| json!({"namespace": namespace, "applied": applied});
        assert!(printer.is_new("web", &item("a", 1)));
        assert!(!printer.is_new("web", &item("a", 1)));
        assert!(printer.is_new("web", &item("b", 1)));
        assert!(printer.is_new("web", &item("a", 2)));
        assert!(!printer.is_new("web", &item("a", 2)));
    }
}

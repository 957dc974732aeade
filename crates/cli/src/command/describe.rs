//! `entourage describe`: an object of the hub with its policy, its clusters and its dependencies; or the object that a member has.
//!
//! Payloads of Secrets are neither read nor shown.

use std::io::Write;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use entourage_core::object::{Gvk, Time};
use k8s_openapi::api::core::v1::Event;
use kube::{Api, Client, api::ListParams};
use serde_json::{Value, json};

use super::{get::table::text, pods, resource};
use crate::{
    args::{self, HubArgs},
    connect::{self, explain, is_not_found, through, within},
    kinds::Served,
    lists::{PAGE, api},
};

mod hub;
mod member;
mod sections;

/// Flags of `entourage describe`.
#[derive(Args, Clone, Debug)]
pub struct DescribeArgs {
    /// Kind, as for kubectl, and name of the object: deploy/web, deployments.apps/web
    #[arg(value_name = "KIND/NAME")]
    pub target: String,

    /// The hub.
    #[command(flatten)]
    pub hub: HubArgs,

    /// Namespace (default: that of the context, else default)
    #[arg(short = 'n', long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,

    /// The object that this member has, instead of that of the hub
    #[arg(short = 'C', long, value_name = "NAME", value_parser = args::cluster_name)]
    pub cluster: Option<String>,
}

/// Runs the command; the description goes to `out`.
///
/// # Errors
/// The cause and the remedy.
pub async fn run(args: DescribeArgs, out: &mut (dyn Write + Send)) -> Result<()> {
    let config = connect::config(args.hub.kubeconfig.as_deref(), args.hub.context.as_deref()).await?;
    let namespace = args.namespace.clone().unwrap_or(config.default_namespace.clone());
    let hub = connect::client(config)?;
    let text = describe(&args, &hub, &namespace, entourage_controllers::clock::now()).await?;
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

async fn describe(args: &DescribeArgs, hub: &Client, namespace: &str, now: Time) -> Result<String> {
    let (Some(kind), name) = pods::named(&args.target)? else {
        bail!(
            "{:?} names no kind: give KIND/NAME, such as deploy/web",
            args.target
        );
    };
    let (server, place) = match &args.cluster {
        Some(cluster) => (through(hub, cluster), cluster.as_str()),
        None => (hub.clone(), "the hub"),
    };
    let (gvk, served) = resource::find(&server, kind, place).await?;
    let namespace = if served.namespaced { namespace } else { "" };
    let subject = Subject {
        server,
        place,
        is_hub: args.cluster.is_none(),
        gvk,
        served,
        namespace,
        name,
    };
    let object = subject.read().await?;
    if !subject.is_hub {
        let events = subject.events(&object).await;
        return Ok(member::text(place, &object, &events, now));
    }
    let seen = hub::read(&subject, &object).await?;
    Ok(hub::text(&object, &seen, now))
}

/// The object that is described.
pub(super) struct Subject<'a> {
    pub(super) server: Client,
    /// The name of the server in messages.
    pub(super) place: &'a str,
    pub(super) is_hub: bool,
    pub(super) gvk: Gvk,
    pub(super) served: Served,
    /// Empty for a cluster-scoped kind.
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
}

impl Subject<'_> {
    /// The object without the payload of a Secret, which is not requested.
    pub(super) async fn read(&self) -> Result<Value> {
        let (kind, name) = (&self.gvk.kind, self.name);
        let api = api(&self.server, &self.served, self.namespace);
        let read = if self.is_secret() {
            let object = within(api.get_metadata(name)).await;
            object.map(|object| json!({"apiVersion": "v1", "kind": "Secret", "metadata": object.metadata}))
        } else {
            within(api.get(name))
                .await
                .and_then(|object| serde_json::to_value(object).map_err(kube::Error::SerdeError))
        };
        match read {
            Ok(mut object) => {
                object["apiVersion"] = json!(self.served.resource.api_version);
                object["kind"] = json!(self.served.resource.kind);
                Ok(object)
            }
            Err(error) if is_not_found(&error) => {
                let within = if self.namespace.is_empty() {
                    String::new()
                } else {
                    format!(" in namespace {}", self.namespace)
                };
                let (place, why) = (self.place, explain(error));
                let remedy = if self.is_hub {
                    "; --cluster NAME describes that of a member"
                } else {
                    ""
                };
                bail!("{kind} {name} not found{within} on {place}: {why}{remedy}")
            }
            Err(error) => {
                Err(explain(error)).with_context(|| format!("cannot read {kind} {name} of {}", self.place))
            }
        }
    }

    fn is_secret(&self) -> bool {
        self.gvk.group.is_empty() && &*self.gvk.kind == "Secret"
    }

    /// The events about an object of this namespace, or why they cannot be read. Those about cluster-scoped objects are in `default`.
    pub(super) async fn events(&self, object: &Value) -> Result<Vec<Value>, String> {
        let (kind, name) = (text(object, "/kind"), text(object, "/metadata/name"));
        let namespace = if self.namespace.is_empty() {
            "default"
        } else {
            self.namespace
        };
        let events: Api<Event> = Api::namespaced(self.server.clone(), namespace);
        let fields = format!("involvedObject.kind={kind},involvedObject.name={name}");
        let mut params = ListParams::default().fields(&fields).limit(PAGE);
        let mut all = Vec::new();
        loop {
            let page = within(events.list(&params))
                .await
                .map_err(|error| explain(error).to_string())?;
            let events = page.items.iter();
            let events = events.filter_map(|event| serde_json::to_value(event).ok());
            all.extend(events.filter(|event| is_about(event, object)));
            match page.metadata.continue_.filter(|next| !next.is_empty()) {
                Some(next) => params.continue_token = Some(next),
                None => return Ok(all),
            }
        }
    }
}

/// True if an event is about this object, and not about a former one of its name. Some writers leave the uid out; that of a Node's kubelet
/// is the name. A server may select by less than was asked.
fn is_about(event: &Value, object: &Value) -> bool {
    let (involved, metadata) = (&event["involvedObject"], &object["metadata"]);
    let (uid, own) = (text(involved, "/uid"), text(metadata, "/uid"));
    involved["kind"] == object["kind"]
        && involved["name"] == metadata["name"]
        && (uid.is_empty() || own.is_empty() || uid == own || involved["uid"] == metadata["name"])
}

#[cfg(test)]
mod tests;

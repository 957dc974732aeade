//! Admission webhooks: whether those that a write falls under can be reached.
//!
//! They are not called yet. One that cannot be reached fails as it would with a kube-apiserver; one that can fails too,
//! saying why, so that nothing passes unseen. `failurePolicy: Ignore` lets both pass.
//!
//! Costs: one look at each of the two collections for each write; a connection for each webhook that matches.

use std::{io::ErrorKind, sync::Arc, time::Duration};

use serde_json::Value;
use tokio::net::TcpStream;

use super::{
    policies::{self, States},
    request::{Request, all},
};
use crate::{
    cluster::{self, Inner},
    delete,
    endpoint::{Call, Item, Reply},
    kinds::tree::{below, count, list, object, text},
    registry::field,
    resource::{Object, Surroundings as _},
    status::{Result, Status},
};

const MUTATING: &str = "mutatingwebhookconfigurations";

const VALIDATING: &str = "validatingwebhookconfigurations";

/// Asks the webhooks that `call`, a write, falls under; `dry` makes the same call without keeping anything, and answers
/// what it would. It is not asked about a DELETE, whose body decides whether anything is kept: that one is only checked.
pub(crate) async fn ask(
    cluster: &Arc<Inner>,
    call: &Call,
    dry: impl AsyncFnOnce(&Call) -> Result<Reply>,
) -> Result<()> {
    let operation = match (call.method.as_str(), call.name.is_empty()) {
        ("POST", _) => "CREATE",
        ("PUT" | "PATCH", _) => "UPDATE",
        ("DELETE", false) => "DELETE",
        _ => return Ok(()),
    };
    let (mutating, validating) = (webhooks(cluster, MUTATING), webhooks(cluster, VALIDATING));
    if mutating.is_empty() && validating.is_empty() {
        return Ok(());
    }
    let key = call.resource.key(&call.namespace, &call.name);
    let old = cluster.get(&call.resource.collection, &key);
    let request = Request {
        cluster,
        resource: &call.resource,
        subresource: &call.subresource,
        // PUT and apply create what is not there.
        operation: if operation == "UPDATE" && old.is_none() {
            "CREATE"
        } else {
            operation
        },
        namespace: &call.namespace,
        name: &call.name,
        user: &call.user,
        dry_run: if operation == "DELETE" {
            delete::DeleteOptions::of(call)?.dry_run
        } else {
            call.query.get("dryRun").is_some()
        },
    };
    let named = |webhook: &&Object| request.is_open() && request.is_among(webhook, "rules");
    let (mutating, validating): (Vec<&Object>, Vec<&Object>) = (
        mutating.iter().filter(named).collect(),
        validating.iter().filter(named).collect(),
    );
    if !mutating.is_empty() {
        let body = serde_json::from_slice::<Object>(&call.body).ok();
        let new = (operation != "DELETE").then(|| body.unwrap_or_default());
        let states = States {
            new: new.as_ref(),
            old: old.as_ref(),
        };
        reach(&request, &mutating, states).await?;
    }
    if validating.is_empty() {
        return Ok(());
    }
    // What is not valid is told first.
    let new = if operation == "DELETE" {
        delete::check(cluster, call)?;
        None
    } else {
        let mut trial = call.clone();
        trial.query.set("dryRun", "All");
        // The object as it would be stored.
        match dry(&trial).await? {
            Reply::Object { item, .. } => Some(match item {
                Item::Stored(entry) => cluster::shown(&call.resource, &entry.object),
                Item::Made(object) => object,
            }),
            _ => None,
        }
    };
    let states = States {
        new: new.as_ref(),
        old: old.as_ref(),
    };
    reach(&request, &validating, states).await
}

fn webhooks(cluster: &Inner, collection: &str) -> Vec<Object> {
    let mut webhooks = Vec::new();
    for configuration in all(cluster, collection) {
        let items = list(&configuration, "webhooks").iter();
        webhooks.extend(items.filter_map(Value::as_object).cloned());
    }
    webhooks
}

async fn reach(request: &Request<'_>, webhooks: &[&Object], states: States<'_>) -> Result<()> {
    for webhook in webhooks {
        if !request.is_selected(webhook, states.new, states.old) {
            continue;
        }
        let fails = text(webhook, "failurePolicy") != "Ignore";
        let met = if list(webhook, "matchConditions").is_empty() {
            Ok(true)
        } else {
            policies::conditions(webhook, &policies::of_webhooks(request, states))
        };
        let problem = match met {
            Ok(false) => continue,
            Ok(true) => called(request.cluster, webhook).await,
            Err(error) => error,
        };
        if fails {
            let name = text(webhook, "name");
            let message = format!("failed calling webhook {name:?}: failed to call webhook: {problem}");
            return Err(Status::internal(&message));
        }
    }
    Ok(())
}

/// What calling a webhook comes to.
async fn called(cluster: &Inner, webhook: &Object) -> String {
    let config = below(webhook, "clientConfig");
    let seconds = count(webhook, "timeoutSeconds").clamp(1, 30);
    let (url, host) = match object(config, "service") {
        Some(service) => {
            let (name, namespace) = (text(service, "name"), text(service, "namespace"));
            let path = text(service, "path");
            let path = if path.starts_with('/') {
                path.to_owned()
            } else {
                format!("/{path}")
            };
            let port = service.get("port").and_then(Value::as_i64).unwrap_or(443);
            let url = format!("https://{name}.{namespace}.svc:{port}{path}?timeout={seconds}s");
            let problem = match cluster.get("services", &format!("{namespace}/{name}")) {
                None => format!("service {name:?} not found"),
                Some(service) => format!("no endpoints available for service {:?}", field(&service, "name")),
            };
            return format!("Post {url:?}: {problem}");
        }
        None => {
            let url = text(config, "url");
            let rest = url.strip_prefix("https://").unwrap_or(url);
            let host = rest.split('/').next().unwrap_or_default().to_owned();
            (format!("{url}?timeout={seconds}s"), host)
        }
    };
    let address = if host
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok())
    {
        host
    } else {
        format!("{host}:443")
    };
    let limit = Duration::from_secs(seconds.unsigned_abs());
    let problem = match tokio::time::timeout(limit, TcpStream::connect(&address)).await {
        Err(_) => "context deadline exceeded".to_owned(),
        Ok(Ok(_)) => "this server does not call webhooks".to_owned(),
        Ok(Err(error)) if error.kind() == ErrorKind::ConnectionRefused => {
            format!("dial tcp {address}: connect: connection refused")
        }
        Ok(Err(error)) => format!("dial tcp {address}: {error}"),
    };
    format!("Post {url:?}: {problem}")
}

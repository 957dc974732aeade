//! The pods on members that a command line names: one by its name, those of a workload, or those with labels.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, bail};
use entourage_core::{object::Gvk, scope};
use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client, api::ListParams};
use serde_json::Value;

use super::{
    get::{
        bindings,
        table::{items, text},
    },
    resource,
};
use crate::{
    connect::{explain, is_not_found, through, within},
    kinds::{Kinds, Served},
    lists::{PAGE, api, list},
    members,
};

/// The maximum number of members that are asked at a time.
const AT_ONCE: usize = 8;

/// The pods that are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The name of a pod.
    Pod(String),
    /// All pods of an object with a selector: kind and name.
    Workload(String, String),
    /// A label selector.
    Labels(String),
}

impl Wanted {
    /// Reads `POD` or `KIND/NAME`.
    pub(super) fn of(target: &str) -> Result<Self> {
        let (kind, name) = named(target)?;
        Ok(match kind {
            None => Self::Pod(name.to_owned()),
            Some(kind) if ["pod", "pods", "po"].contains(&kind.to_lowercase().as_str()) => {
                Self::Pod(name.to_owned())
            }
            Some(kind) => Self::Workload(kind.to_owned(), name.to_owned()),
        })
    }
}

/// Kind and name of `KIND/NAME`, or a name alone. The name becomes a step of a path.
pub(super) fn named(target: &str) -> Result<(Option<&str>, &str)> {
    let (kind, name) = match target.split_once('/') {
        Some((kind, name)) => (Some(kind), name),
        None => (None, target),
    };
    let is_bad = |c: char| "/%?#\\".contains(c) || c.is_whitespace() || c.is_control();
    if name.is_empty() || name.starts_with('.') || name.contains(is_bad) || kind.is_some_and(str::is_empty) {
        bail!("{target:?} is not NAME or KIND/NAME");
    }
    Ok((kind, name))
}

/// The pods on one member, or the cause why they are not known.
pub(super) struct Found {
    pub(super) cluster: String,
    pub(super) client: Client,
    pub(super) pods: Result<Vec<Pod>, String>,
}

/// The pods in a namespace, in order of clusters and names. Without `clusters`, a workload is looked for where the hub has it, a pod
/// and labels on every member; only members that have one are returned then, and those that cannot be read.
///
/// # Errors
/// The hub cannot be read, the object is not on it, or it is scheduled to no member.
pub(super) async fn find(
    hub: &Client,
    wanted: &Wanted,
    namespace: &str,
    clusters: &[String],
) -> Result<Vec<Found>> {
    let mut served = None;
    let mut names = distinct(clusters);
    if clusters.is_empty() {
        names = match wanted {
            Wanted::Workload(kind, name) => {
                let (gvk, kind) = resource::find(hub, kind, "the hub").await?;
                let clusters = clusters_of(hub, (&gvk, &kind), namespace, name).await?;
                served = Some(kind);
                clusters.into_iter().collect()
            }
            Wanted::Pod(_) | Wanted::Labels(_) => all(hub).await?,
        };
    }
    let served = served.as_ref();
    let found: Vec<Found> = stream::iter(names)
        .map(|cluster| async move {
            let client = through(hub, &cluster);
            let pods = on_member(&client, &cluster, (wanted, served), namespace).await;
            Found {
                cluster,
                client,
                pods: pods.map_err(|error| format!("{error:#}")),
            }
        })
        .buffered(AT_ONCE)
        .collect()
        .await;
    let is_without = |found: &Found| matches!(&found.pods, Ok(all) if all.is_empty());
    let is_shown = |found: &Found| !clusters.is_empty() || !is_without(found);
    Ok(found.into_iter().filter(is_shown).collect())
}

/// The names in their order, each once.
pub(super) fn distinct(names: &[String]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    names.iter().filter(|name| seen.insert(*name)).cloned().collect()
}

/// The names of all members.
pub(super) async fn all(hub: &Client) -> Result<Vec<String>> {
    let all = members::clusters(hub, &[]).await?;
    let names = all.into_iter().filter_map(|cluster| cluster.metadata.name);
    Ok(names.collect())
}

/// The binding of a template; `None` if it has none.
pub(super) async fn binding_of(
    hub: &Client,
    (gvk, served): (&Gvk, &Served),
    namespace: &str,
    name: &str,
) -> Result<Option<Value>> {
    let kind = if served.namespaced {
        scope::BINDING.kind
    } else {
        scope::CLUSTER_BINDING.kind
    };
    let bindings = bindings_in(hub, kind, namespace).await?;
    let is_of = |binding: &Value| {
        let resource = &binding["spec"]["resource"];
        let group = Gvk::new(text(resource, "/apiVersion"), text(resource, "/kind"));
        (group.group, group.kind) == (gvk.group.clone(), gvk.kind.clone()) && text(resource, "/name") == name
    };
    Ok(bindings.into_iter().find(is_of))
}

/// All bindings of a kind in a namespace.
pub(super) async fn bindings_in(hub: &Client, kind: &str, namespace: &str) -> Result<Vec<Value>> {
    let gvk = Gvk::new(scope::BINDING_API, kind);
    let mut kinds = Kinds::default();
    kinds
        .learn(hub, [gvk.clone()])
        .await
        .context("cannot ask the hub which kinds it serves")?;
    let served = kinds.get(&gvk).with_context(|| {
        format!(
            "the hub does not serve {kind}s: is it a hub? `entourage crds --apply` installs the definitions"
        )
    })?;
    let params = ListParams::default().limit(PAGE);
    let all = list(hub, served, namespace, &params).await;
    all.map_err(explain)
        .with_context(|| format!("cannot list {} on the hub", served.resource.plural))
}

async fn clusters_of(
    hub: &Client,
    (gvk, served): (&Gvk, &Served),
    namespace: &str,
    name: &str,
) -> Result<BTreeSet<String>> {
    let kind = &gvk.kind;
    let binding = binding_of(hub, (gvk, served), namespace, name).await?;
    let Some(binding) = binding else {
        bail!(
            "{kind} {name} in namespace {namespace} has no binding on the hub: it does not exist, or no policy selects it; --cluster NAME \
             looks on a member all the same"
        );
    };
    let clusters = places(&binding);
    if clusters.is_empty() {
        bail!("{kind} {name} is scheduled to no cluster; `entourage describe {kind}/{name}` says why");
    }
    Ok(clusters)
}

/// The clusters that have the object, or shall have it.
fn places(binding: &Value) -> BTreeSet<String> {
    let applied = items(binding, "/status/aggregatedStatus")
        .iter()
        .filter(|item| item["applied"] == true)
        .map(|item| text(item, "/clusterName").to_owned());
    bindings::clusters(binding).into_iter().chain(applied).collect()
}

/// `kind`: of the workload, if the hub has it; else the member is asked for it.
async fn on_member(
    client: &Client,
    cluster: &str,
    (wanted, kind): (&Wanted, Option<&Served>),
    namespace: &str,
) -> Result<Vec<Pod>> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let labels = match wanted {
        Wanted::Pod(name) => {
            return match within(pods.get(name)).await {
                Ok(pod) => Ok(vec![pod]),
                // Also the hub's answer about a Cluster that does not exist, which names it.
                Err(error) if is_not_found(&error) && is_about_pods(&error) => Ok(Vec::new()),
                Err(error) => Err(explain(error)),
            };
        }
        Wanted::Labels(labels) => labels.clone(),
        Wanted::Workload(word, name) => {
            let asked;
            let kind = match kind {
                Some(kind) => kind,
                None => {
                    asked = resource::find(client, word, cluster).await?.1;
                    &asked
                }
            };
            let object = within(api(client, kind, namespace).get(name))
                .await
                .map_err(explain)?;
            let object = serde_json::to_value(object)?;
            selector(&object["spec"]["selector"]).with_context(|| {
                format!(
                    "{} {name} has no selector: name a pod, or give -l",
                    kind.resource.kind
                )
            })?
        }
    };
    let mut params = ListParams::default().labels(&labels).limit(PAGE);
    let mut all = Vec::new();
    loop {
        let page = within(pods.list(&params)).await.map_err(explain)?;
        all.extend(page.items);
        match page.metadata.continue_.filter(|next| !next.is_empty()) {
            Some(next) => params.continue_token = Some(next),
            None => break,
        }
    }
    all.sort_by(|one, other| one.metadata.name.cmp(&other.metadata.name));
    Ok(all)
}

fn is_about_pods(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.message.starts_with("pods \""))
}

/// The text of a selector: a LabelSelector, or the plain labels of a Service or a ReplicationController. `None` for one that is absent
/// or selects everything.
fn selector(selector: &Value) -> Option<String> {
    let plain = selector.as_object()?;
    let is_plain = !plain.contains_key("matchLabels") && !plain.contains_key("matchExpressions");
    let labels = if is_plain {
        Some(plain)
    } else {
        selector["matchLabels"].as_object()
    };
    let labels = labels.into_iter().flatten();
    let mut parts: Vec<String> = labels
        .map(|(key, value)| Some(format!("{key}={}", value.as_str()?)))
        .collect::<Option<_>>()?;
    for requirement in items(selector, "/matchExpressions") {
        let key = text(requirement, "/key");
        let values: Vec<&str> = items(requirement, "/values")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let values = values.join(",");
        parts.push(match text(requirement, "/operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => return None,
        });
    }
    (!parts.is_empty()).then(|| parts.join(","))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_target_is_a_pod_or_a_workload() {
        let workload = |kind: &str, name: &str| Wanted::Workload(kind.into(), name.into());
        for (target, wanted) in [
            ("web-1", Wanted::Pod("web-1".into())),
            ("pod/web-1", Wanted::Pod("web-1".into())),
            ("Po/web-1", Wanted::Pod("web-1".into())),
            ("deploy/web", workload("deploy", "web")),
            ("deployment.apps/web", workload("deployment.apps", "web")),
        ] {
            assert_eq!(Wanted::of(target).unwrap(), wanted, "{target}");
        }
        for wrong in [
            "", "/", "deploy/", "/web", "a/b/c", "..", "pod/..", "a b", "a?b", "a%2fb",
        ] {
            assert!(Wanted::of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_member_that_is_named_twice_is_asked_once() {
        let names = ["m2", "m1", "m2"].map(str::to_owned);
        assert_eq!(distinct(&names), ["m2", "m1"]);
    }

    #[test]
    fn a_selector_is_written_as_a_query_has_it() {
        for (given, wanted) in [
            (
                json!({"matchLabels": {"app": "web", "tier": "a"}}),
                Some("app=web,tier=a"),
            ),
            (json!({"app": "web"}), Some("app=web")),
            (
                json!({"matchLabels": {"app": "web"}, "matchExpressions": [
                    {"key": "a", "operator": "In", "values": ["x", "y"]}, {"key": "b", "operator": "NotIn", "values": ["z"]},
                    {"key": "c", "operator": "Exists"}, {"key": "d", "operator": "DoesNotExist"}]}),
                Some("app=web,a in (x,y),b notin (z),c,!d"),
            ),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "Near"}]}),
                None,
            ),
            (json!({}), None),
            (json!({"matchLabels": {}}), None),
            (json!(null), None),
        ] {
            assert_eq!(selector(&given).as_deref(), wanted, "{given}");
        }
    }

    #[test]
    fn a_workload_is_where_it_is_scheduled_needed_or_still_applied() {
        let binding = json!({
            "spec": {"clusters": [{"name": "m1"}], "requiredBy": [{"name": "web", "clusters": [{"name": "m2"}]}]},
            "status": {"aggregatedStatus": [{"clusterName": "m3", "applied": true}, {"clusterName": "m4", "applied": false}]},
        });
        assert_eq!(places(&binding), ["m1", "m2", "m3"].map(str::to_owned).into());
    }
}

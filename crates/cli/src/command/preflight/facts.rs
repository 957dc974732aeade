//! The facts that are read from a cluster for its checks. One that cannot be read is recorded with the reason: only a server that does
//! not respond at all ends the command.

use anyhow::{Context as _, Result};
use entourage_api::crds::{ServerVersion, crds};
use jiff::Timestamp;
use kube::{Client, api::ListParams};
use serde_json::Value;

use super::{RightsOf, Role, probe::Probe, rights, scrape};
use crate::{
    apply::{Kind, MUTATING_WEBHOOKS, NAMESPACE, VALIDATING_WEBHOOKS},
    connect::{explain, is_not_found, within},
    crds::{Stored, stored},
    kinds::Served,
    lists::{PAGE, list},
    raw,
};

const LEASE: Kind = Kind {
    api_version: "coordination.k8s.io/v1",
    kind: "Lease",
    plural: "leases",
    namespaced: true,
};

const LIMIT_RANGE: Kind = Kind {
    api_version: "v1",
    kind: "LimitRange",
    plural: "limitranges",
    namespaced: true,
};

/// A fact, or why it could not be read.
pub type Fact<T> = Result<T, String>;

/// The facts of a cluster.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The role to check it for.
    pub role: Role,
    /// The version of its API server, and the same in its own words.
    pub version: (Option<ServerVersion>, String),
    /// The time of this machine when the server was asked for its own: the middle of the request.
    pub now: Timestamp,
    /// The time of the server; `None` if its responses have no date.
    pub server_time: Fact<Option<Timestamp>>,
    /// The state of each definition, for a hub.
    pub definitions: Fact<Vec<(String, Stored)>>,
    /// The Leases of control planes.
    pub leases: Fact<Vec<Lease>>,
    /// The admission webhooks.
    pub webhooks: Fact<Vec<Webhook>>,
    /// The number of LimitRanges.
    pub limit_ranges: Fact<usize>,
    /// True if there is a Node.
    pub has_nodes: Fact<bool>,
    /// Namespaces that are being deleted, and since when.
    pub terminating: Fact<Vec<(String, Option<Timestamp>)>>,
    /// True if the namespace `default` has the ServiceAccount that a controller creates.
    pub has_default_account: Fact<bool>,
    /// The content of its metrics.
    pub metrics: Fact<scrape::Scrape>,
    /// The size at which the store refuses writes, in bytes.
    pub store_quota: f64,
    /// The number of rights that were asked for, and those that are missing, by resource.
    pub rights: Fact<(usize, Vec<String>)>,
    /// The result of the probe, if it ran.
    pub probe: Option<Fact<Probe>>,
}

/// A Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// `namespace/name`.
    pub name: String,
    /// Its holder.
    pub holder: String,
    /// The time of the last renewal.
    pub renewed: Option<Timestamp>,
    /// The seconds for which a renewal holds.
    pub seconds: i64,
}

/// An admission webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// The configuration's name.
    pub configuration: String,
    /// The webhook's name.
    pub name: String,
    /// True if it may change objects.
    pub mutates: bool,
    /// True if a write is refused when it does not respond.
    pub fails_closed: bool,
    /// Its timeout in seconds.
    pub timeout: i64,
    /// True if its rules name every kind, or every kind of a group that is propagated or ours.
    pub is_broad: bool,
}

/// Reads the facts.
///
/// # Errors
/// The server does not tell its version: it is down, or the kubeconfig is of no use.
pub async fn read(client: &Client, role: Role, rights_of: RightsOf, store_quota: f64) -> Result<Facts> {
    let version = within(client.apiserver_version()).await.map_err(explain);
    let version = version.context("cannot read the version of the cluster")?;
    let server = ServerVersion::parse(&version.major, &version.minor);
    let before = Timestamp::now();
    let server_time = raw::server_time(client).await.map_err(words);
    let now = middle(before, Timestamp::now());
    Ok(Facts {
        role,
        version: (server, version.git_version),
        now,
        server_time,
        definitions: match role {
            Role::Hub => stored(client, &crds(server))
                .await
                .map_err(|error| format!("{error:#}")),
            Role::Member => Ok(Vec::new()),
        },
        leases: items(client, LEASE)
            .await
            .map(|all| all.iter().map(lease).collect()),
        webhooks: webhooks(client).await,
        limit_ranges: items(client, LIMIT_RANGE).await.map(|all| all.len()),
        has_nodes: has_nodes(client).await,
        terminating: items(client, NAMESPACE)
            .await
            .map(|all| all.iter().filter_map(terminating).collect()),
        has_default_account: has_default_account(client).await,
        metrics: match raw::text(client, "/metrics").await {
            Ok(text) => Ok(scrape::parse(&text)),
            Err(error) => Err(words(error)),
        },
        store_quota,
        rights: denied(client, role, rights_of).await,
        probe: None,
    })
}

fn words(error: kube::Error) -> String {
    format!("{:#}", explain(error))
}

/// All objects of a kind: what is beyond the first page counts as much.
async fn items(client: &Client, kind: Kind) -> Fact<Vec<Value>> {
    let served = Served {
        resource: kind.resource(),
        namespaced: kind.namespaced,
    };
    let listed = list(client, &served, "", &ListParams::default().limit(PAGE)).await;
    listed.map_err(words)
}

fn middle(before: Timestamp, after: Timestamp) -> Timestamp {
    let sum = before.as_millisecond() + after.as_millisecond();
    Timestamp::from_millisecond(sum / 2).unwrap_or(after)
}

/// A server without the kind has none.
async fn has_nodes(client: &Client) -> Fact<bool> {
    match raw::get(client, "/api/v1/nodes?limit=1").await {
        Ok(list) => Ok(list["items"].as_array().is_some_and(|items| !items.is_empty())),
        Err(error) if is_not_found(&error) => Ok(false),
        Err(error) => Err(words(error)),
    }
}

async fn has_default_account(client: &Client) -> Fact<bool> {
    match raw::get(client, "/api/v1/namespaces/default/serviceaccounts/default").await {
        Ok(_) => Ok(true),
        Err(error) if is_not_found(&error) => Ok(false),
        Err(error) => Err(words(error)),
    }
}

async fn denied(client: &Client, role: Role, rights_of: RightsOf) -> Fact<(usize, Vec<String>)> {
    let wanted = rights::wanted(role, rights_of);
    let count = wanted.len();
    let denied = rights::denied(client, wanted).await.map_err(words)?;
    let mut by_resource: Vec<(String, Vec<&str>)> = Vec::new();
    for right in &denied {
        let resource = right.resource();
        match by_resource.iter_mut().find(|(known, _)| *known == resource) {
            Some((_, verbs)) => verbs.push(right.verb()),
            None => by_resource.push((resource, vec![right.verb()])),
        }
    }
    let lines = by_resource.into_iter();
    let lines = lines.map(|(resource, verbs)| format!("{} {resource}", verbs.join(",")));
    Ok((count, lines.collect()))
}

async fn webhooks(client: &Client) -> Fact<Vec<Webhook>> {
    let mut all = Vec::new();
    for (mutates, kind) in [(true, MUTATING_WEBHOOKS), (false, VALIDATING_WEBHOOKS)] {
        for configuration in items(client, kind).await? {
            let hooks = configuration["webhooks"].as_array();
            all.extend(
                hooks
                    .into_iter()
                    .flatten()
                    .map(|hook| webhook(&configuration, hook, mutates)),
            );
        }
    }
    Ok(all)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

fn webhook(configuration: &Value, hook: &Value, mutates: bool) -> Webhook {
    let rules = hook["rules"].as_array();
    Webhook {
        configuration: text(&configuration["metadata"]["name"]),
        name: text(&hook["name"]),
        mutates,
        fails_closed: hook["failurePolicy"] != "Ignore",
        timeout: hook["timeoutSeconds"].as_i64().unwrap_or(10),
        is_broad: rules.into_iter().flatten().any(is_broad),
    }
}

/// True for a rule for all resources of all groups, or of one of those that a control plane writes all the time.
fn is_broad(rule: &Value) -> bool {
    let names = |field: &str, wanted: &[&str]| {
        let all = rule[field].as_array().into_iter().flatten();
        all.filter_map(Value::as_str).any(|each| wanted.contains(&each))
    };
    let groups = [
        "*",
        "",
        "apps",
        "work.karmada.io",
        "policy.karmada.io",
        "cluster.karmada.io",
    ];
    names("apiGroups", &groups) && names("resources", &["*", "*/*"])
}

fn lease(object: &Value) -> Lease {
    let (metadata, spec) = (&object["metadata"], &object["spec"]);
    Lease {
        name: format!("{}/{}", text(&metadata["namespace"]), text(&metadata["name"])),
        holder: text(&spec["holderIdentity"]),
        renewed: time(&spec["renewTime"]),
        seconds: spec["leaseDurationSeconds"].as_i64().unwrap_or_default(),
    }
}

fn terminating(namespace: &Value) -> Option<(String, Option<Timestamp>)> {
    let deleted = &namespace["metadata"]["deletionTimestamp"];
    deleted
        .is_string()
        .then(|| (text(&namespace["metadata"]["name"]), time(deleted)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::mock::scripted;

    /// Karmada's Leases are behind those of many members.
    #[tokio::test]
    async fn a_lease_on_the_second_page_is_read() {
        let client = scripted(|call| {
            assert!(
                call.starts_with("GET /apis/coordination.k8s.io/v1/leases?"),
                "{call}"
            );
            let page = if call.contains("continue=more") {
                json!({"metadata": {}, "items": [{"metadata": {"namespace": "karmada-system", "name": "karmada-scheduler"}}]})
            } else {
                json!({"metadata": {"continue": "more"}, "items": [{"metadata": {"namespace": "karmada-cluster", "name": "m1"}}]})
            };
            (200, page.to_string())
        });
        let all = items(&client, LEASE).await.unwrap();
        let names: Vec<_> = all.iter().map(|each| lease(each).name).collect();
        assert_eq!(names, ["karmada-cluster/m1", "karmada-system/karmada-scheduler"]);
    }

    #[test]
    fn a_webhook_is_broad_by_its_rules() {
        for (rule, broad) in [
            (json!({"apiGroups": ["*"], "resources": ["*"]}), true),
            (json!({"apiGroups": ["apps"], "resources": ["*/*"]}), true),
            (
                json!({"apiGroups": ["apps"], "resources": ["deployments"]}),
                false,
            ),
            (json!({"apiGroups": ["example.com"], "resources": ["*"]}), false),
            (json!({}), false),
        ] {
            assert_eq!(is_broad(&rule), broad, "{rule}");
        }
        let hook = webhook(&json!({"metadata": {"name": "c"}}), &json!({"name": "h"}), true);
        assert!(hook.fails_closed && hook.timeout == 10, "the server's defaults");
    }

    #[test]
    fn a_lease_is_read() {
        let read = lease(&json!({"metadata": {"namespace": "kube-system", "name": "x"},
            "spec": {"holderIdentity": "me", "renewTime": "2026-11-27T06:00:00.000001Z", "leaseDurationSeconds": 15}}));
        assert_eq!(
            (read.name.as_str(), read.holder.as_str(), read.seconds),
            ("kube-system/x", "me", 15)
        );
        assert!(read.renewed.is_some());
    }
}

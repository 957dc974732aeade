//! The objects of the demo: templates and bindings on the hub, copies on the members.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context as _, Result, bail};
use http::Request;
use kube::Client;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::{connect, fleet::Fleet};

/// The time that a check may take to succeed.
const PATIENCE: Duration = Duration::from_secs(10);

/// A kind by the path of its collection.
pub(super) struct Kind {
    group_version: &'static str,
    plural: &'static str,
    /// Empty for kinds without namespaces.
    namespace: &'static str,
}

pub(super) const DEPLOYMENT: Kind = Kind {
    group_version: "apis/apps/v1",
    plural: "deployments",
    namespace: "/namespaces/default",
};
pub(super) const CONFIG_MAP: Kind = Kind {
    group_version: "api/v1",
    plural: "configmaps",
    namespace: "/namespaces/default",
};
pub(super) const POLICY: Kind = Kind {
    group_version: "apis/policy.karmada.io/v1alpha1",
    plural: "propagationpolicies",
    namespace: "/namespaces/default",
};
const BINDING: Kind = Kind {
    group_version: "apis/work.karmada.io/v1alpha2",
    plural: "resourcebindings",
    namespace: "/namespaces/default",
};
pub(super) const CLUSTER: Kind = Kind {
    group_version: "apis/cluster.karmada.io/v1alpha1",
    plural: "clusters",
    namespace: "",
};

impl Kind {
    fn path(&self, name: &str) -> String {
        format!("/{}{}/{}/{name}", self.group_version, self.namespace, self.plural)
    }
}

/// Clients of all clusters.
pub(super) struct Clients {
    hub: Client,
    members: Vec<(String, Client)>,
}

impl Clients {
    pub(super) fn new(fleet: &Fleet) -> Self {
        let members = fleet.members.iter();
        Self {
            hub: fleet.hub.client(),
            members: members
                .map(|member| (member.name.clone(), member.client()))
                .collect(),
        }
    }

    /// An object on the hub.
    pub(super) async fn template(&self, kind: &Kind, name: &str) -> Result<Option<Value>> {
        get(&self.hub, &kind.path(name)).await
    }

    /// A binding.
    pub(super) async fn binding(&self, name: &str) -> Result<Value> {
        let binding = self.template(&BINDING, name).await?;
        binding.with_context(|| format!("there is no binding {name}"))
    }

    /// An object on a member.
    pub(super) async fn copy(&self, member: &str, kind: &Kind, name: &str) -> Result<Option<Value>> {
        let found = self.members.iter().find(|(found, _)| found == member);
        let (_, client) = found.with_context(|| format!("there is no {member}"))?;
        get(client, &kind.path(name)).await
    }

    /// Succeeds if an object is on these members and on no other.
    pub(super) async fn is_exactly_on(&self, kind: &Kind, name: &str, wanted: &[&str]) -> Result<()> {
        let mut holders = Vec::new();
        for (member, client) in &self.members {
            if get(client, &kind.path(name)).await?.is_some() {
                holders.push(member.as_str());
            }
        }
        if holders != wanted {
            bail!("{name} is on {holders:?} instead of {wanted:?}");
        }
        Ok(())
    }

    /// Succeeds if the binding of the Deployment is applied on this number of members.
    pub(super) async fn is_settled(&self, members: usize) -> Result<()> {
        let binding = self.binding("myapp-deployment").await?;
        let entries = binding["status"]["aggregatedStatus"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let applied = entries.iter().filter(|entry| entry["applied"] == true).count();
        if applied != members || entries.len() != members {
            bail!("the binding's status has {entries:?}");
        }
        Ok(())
    }

    /// uid and resourceVersion of all objects that a change of the Deployment does not affect, and the uid of the Deployment's
    /// copies.
    pub(super) async fn versions(&self) -> Result<BTreeMap<String, Vec<Value>>> {
        let mut versions = BTreeMap::new();
        let mut add = |place: &str, object: Option<Value>, fields: &[&str]| {
            let object = object.with_context(|| format!("{place} is gone"))?;
            let fields = fields.iter().map(|field| object["metadata"][*field].clone());
            versions.insert(place.to_owned(), fields.collect());
            anyhow::Ok(())
        };
        let whole = ["uid", "resourceVersion"];
        for (kind, name) in [(&POLICY, "myapp-propagation"), (&CONFIG_MAP, "my-config")] {
            add(name, self.template(kind, name).await?, &whole)?;
        }
        for (member, _) in &self.members {
            add(member, self.template(&CLUSTER, member).await?, &whole)?;
        }
        for (member, client) in &self.members[1..] {
            let copy = get(client, &DEPLOYMENT.path("myapp")).await?;
            add(&format!("myapp on {member}"), copy, &["uid"])?;
        }
        Ok(versions)
    }

    /// Merges a patch into an object on the hub.
    pub(super) async fn patch(&self, kind: &Kind, name: &str, patch: &Value) -> Result<()> {
        let request = Request::patch(kind.path(name))
            .header(http::header::CONTENT_TYPE, "application/merge-patch+json")
            .body(patch.to_string().into_bytes())?;
        let done = self.hub.request::<Value>(request).await;
        done.map_err(connect::explain)
            .with_context(|| format!("cannot change {name} on the hub"))?;
        Ok(())
    }

    /// Deletes an object on a member.
    pub(super) async fn delete_copy(&self, member: &str, kind: &Kind, name: &str) -> Result<()> {
        let found = self.members.iter().find(|(found, _)| found == member);
        let (_, client) = found.with_context(|| format!("there is no {member}"))?;
        let request = Request::delete(kind.path(name)).body(Vec::new())?;
        let done = client.request::<Value>(request).await;
        done.map_err(connect::explain)
            .with_context(|| format!("cannot delete {name} on {member}"))?;
        Ok(())
    }
}

async fn get(client: &Client, path: &str) -> Result<Option<Value>> {
    match client
        .request::<Value>(Request::get(path).body(Vec::new())?)
        .await
    {
        Ok(object) => Ok(Some(object)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(connect::explain(error)),
    }
}

/// Retries a check until it succeeds.
pub(super) async fn eventually(probe: impl AsyncFn() -> Result<()>) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    loop {
        match probe().await {
            Ok(()) => return Ok(()),
            Err(error) if Instant::now() > until => return Err(error),
            Err(_) => sleep(Duration::from_millis(2)).await,
        }
    }
}

//! The Lease of the cluster on the hub. Karmada's protocol: named like the cluster, held by it, renewed four times in its
//! duration. A hub that misses renewals sets Ready of the Cluster to Unknown.

use std::time::Duration;

use entourage_core::object::{Gvk, ResourceId, Str};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::MicroTime, jiff::Timestamp};
use serde_json::{Value, json};
use tokio::{sync::watch as cell, time::sleep};
use tracing::{debug, warn};

use crate::{
    client::{Api, Form, path::Path},
    clock,
    error::{Class, Failure},
};

/// The share of the duration after which it is renewed.
const SHARE: f64 = 0.25;

/// The task that renews the Lease.
#[derive(Clone)]
pub(super) struct Renewal {
    pub(super) cluster: Str,
    pub(super) api: Api,
    /// The namespace of the Lease.
    pub(super) namespace: Str,
    pub(super) duration: Duration,
    /// True while the agent acts: one that may not does not claim to take care of the cluster.
    pub(super) acts: cell::Receiver<bool>,
}

impl Renewal {
    /// Renews until it is dropped.
    pub(super) async fn run(mut self) {
        let mut is_failing = false;
        loop {
            if self.acts.wait_for(|acts| *acts).await.is_err() {
                return;
            }
            match self.renew().await {
                Ok(()) => is_failing = false,
                Err(failure) => {
                    let error = failure.text(&lease());
                    if std::mem::replace(&mut is_failing, true) {
                        debug!(error, "the Lease cannot be renewed");
                    } else {
                        warn!(cluster = %self.cluster, error, "the Lease of the cluster on the hub cannot be renewed; retrying");
                    }
                }
            }
            sleep(self.duration.mul_f64(SHARE)).await;
        }
    }

    async fn renew(&self) -> Result<(), Failure> {
        let id = ResourceId::new(lease(), &self.namespace, &self.cluster);
        let body = self.body(&clock_now());
        match self.api.merge(&path(&id, true), &body, Form::Metadata).await {
            Err(failure) if failure.class() == Class::Missing => {}
            result => return result.map(drop),
        }
        let mut body = body;
        body["metadata"] = json!({"name": &*self.cluster, "namespace": &*self.namespace});
        if let Some(owner) = self.owner().await {
            body["metadata"]["ownerReferences"] = json!([owner]);
        }
        self.api
            .create(&path(&id, false), &body, Form::Metadata)
            .await
            .map(drop)
    }

    fn body(&self, now: &Value) -> Value {
        json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "spec": {
                "holderIdentity": &*self.cluster,
                "leaseDurationSeconds": self.duration.as_secs().max(1),
                "renewTime": now,
            },
        })
    }

    /// The Cluster, so that the Lease is deleted with it; `None` if it cannot be read.
    async fn owner(&self) -> Option<Value> {
        let path = Path::hub(&entourage_core::plan::HubObject::Cluster(self.cluster.clone()));
        let cluster = self.api.get(&path, Form::Metadata).await.ok()?;
        Some(json!({
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "name": &*self.cluster,
            "uid": cluster["metadata"]["uid"].as_str()?,
        }))
    }
}

fn lease() -> Gvk {
    Gvk::new("coordination.k8s.io/v1", "Lease")
}

/// The address of the Lease, or of its collection.
fn path(id: &ResourceId, one: bool) -> Path {
    let all = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", id.namespace);
    let uri = if one { format!("{all}/{}", id.name) } else { all };
    Path::raw(uri, "leases")
}

/// The current time, as the API writes it.
fn clock_now() -> Value {
    let now = Timestamp::from_millisecond(clock::now().0).unwrap_or_default();
    json!(MicroTime(now))
}

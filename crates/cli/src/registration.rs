//! Registration of clusters in Pull mode: `entourage token` prepares a hub, `entourage register` obtains the client certificate of the
//! agent and starts it, and the agent renews that certificate.
//!
//! | module | purpose |
//! |---|---|
//! | [`hub`] | the objects of one cluster on the hub: Cluster, namespaces, rights |
//! | [`bootstrap`] | bootstrap tokens, which are Secrets |
//! | [`cluster_info`] | the identity of the hub for those who have nothing but a token |
//! | [`discovery`] | finds a hub by that |
//! | [`certificate`] | asks the hub for a client certificate |
//! | [`kubeconfig`] | the kubeconfigs that carry these credentials |
//! | [`member`] | the objects of the agent on its cluster |

pub mod bootstrap;
pub mod certificate;
pub mod cluster_info;
pub mod discovery;
pub mod hub;
pub mod kubeconfig;
pub mod member;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::manifests::documents;

/// The objects of files in `config/agent`, for another cluster than the one that these name.
fn manifests(texts: &[&str], cluster: &str) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for text in texts {
        all.extend(documents(&text.replace("member1", cluster), "config/agent")?);
    }
    Ok(all)
}

/// A value of a Secret's `data`.
fn base64(bytes: &[u8]) -> Result<Value> {
    // ByteString is the base64 codec of the Kubernetes types.
    serde_json::to_value(k8s_openapi::ByteString(bytes.to_vec())).context("a value cannot be encoded")
}

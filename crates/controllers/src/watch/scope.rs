//! The owner of the objects that are watched: the controllers of a hub, or the agent of one cluster.

use entourage_api::keys::{self, label};
use entourage_core::{object::Str, observation::Watch};

use super::is_secret;
use crate::client::path::Path;

/// The owner of the objects that are watched.
#[derive(Clone, Debug)]
pub enum Scope {
    /// Those of the controllers of the hub with this id, which copies on members have as a label.
    Hub(Str),
    /// Those of the agent of a cluster: the Works of its namespace, its Cluster, and all objects on the cluster that some control
    /// plane manages. What its rights name, and no more.
    Agent {
        /// The cluster.
        cluster: Str,
        /// The namespace of its Works.
        namespace: Str,
    },
}

impl From<&str> for Scope {
    fn from(hub: &str) -> Self {
        Self::Hub(hub.into())
    }
}

impl Scope {
    /// The address and query of a watch.
    pub(super) fn listed(&self, watch: &Watch) -> Path {
        match self {
            Self::Hub(hub) => of_hub(watch, hub),
            Self::Agent { cluster, namespace } => match watch {
                Watch::Works => Path::works(namespace),
                Watch::Clusters => {
                    Path::watched(watch).query("fieldSelector", &format!("metadata.name={cluster}"))
                }
                Watch::Copies(..) => {
                    Path::watched(watch).query("labelSelector", &format!("{}={}", label::MANAGED, keys::TRUE))
                }
                _ => Path::watched(watch),
            },
        }
    }
}

fn of_hub(watch: &Watch, hub: &Str) -> Path {
    let all = Path::watched(watch);
    match watch {
        Watch::Templates(gvk) if is_secret(gvk) => {
            all.query("fieldSelector", "type!=kubernetes.io/service-account-token")
        }
        Watch::Copies(..) => all.query("labelSelector", &format!("{}={hub}", label::HUB)),
        Watch::QuotaCopies(_) => all.query("labelSelector", &format!("{}={hub}", label::FEDERATED_QUOTA)),
        Watch::Endpoints(_, service) => all.query(
            "labelSelector",
            &format!("{}={}", label::SERVICE_NAME, service.name),
        ),
        Watch::Distributed(_, _, name) => all.query("fieldSelector", &format!("metadata.name={name}")),
        _ => all,
    }
}

#[cfg(test)]
mod tests {
    use entourage_core::object::Gvk;

    use super::*;

    #[test]
    fn an_agent_watches_what_its_rights_name() {
        let scope = Scope::Agent {
            cluster: "m1".into(),
            namespace: "karmada-es-m1".into(),
        };
        let copies = Watch::Copies("m1".into(), Gvk::new("v1", "Secret"));
        for (watch, uri) in [
            (
                Watch::Works,
                "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-m1/works",
            ),
            (
                Watch::Clusters,
                "/apis/cluster.karmada.io/v1alpha1/clusters?fieldSelector=metadata.name%3Dm1",
            ),
            (
                copies,
                "/api/v1/secrets?labelSelector=karmada.io%2Fmanaged%3Dtrue",
            ),
        ] {
            assert_eq!(scope.listed(&watch).uri, uri);
        }
    }
}

//! `clusters/NAME/proxy` of the hub of a fleet: its API server hands such requests to the proxy of the controllers' crate.

use std::{sync::Arc, time::Duration};

use entourage_apiserver::{Cluster, Connected, Connection, Connector, Subresource};
use entourage_controllers::{
    ClientFactory,
    proxy::{Proxy, ProxyOptions, Requester},
};

use tokio_util::sync::CancellationToken;

use crate::args::CLUSTER_NAMESPACE;

/// The deadline of a call to the hub, which is in this process.
const DEADLINE: Duration = Duration::from_secs(10);

const PROXY: Subresource = Subresource {
    group: "cluster.karmada.io",
    version: "v1alpha1",
    resource: "clusters",
    subresource: "proxy",
};

struct ThroughHub(Proxy);

impl Connector for ThroughHub {
    fn connect(&self, connection: Connection) -> Connected<'_> {
        Box::pin(async move {
            let Connection {
                user,
                name,
                rest,
                request,
            } = connection;
            let requester = Requester {
                name: user.name,
                groups: user.groups,
                extra: user.extra,
            };
            self.0.send(&requester, &name, &rest, request).await
        })
    }
}

/// Has the hub serve the subresource as long as what is returned exists.
pub(super) fn serve(hub: &Cluster, clients: ClientFactory) -> Arc<dyn Connector> {
    let connector: Arc<dyn Connector> = Arc::new(ThroughHub(Proxy::new(ProxyOptions {
        hub: hub.client(),
        clients,
        cluster_namespace: CLUSTER_NAMESPACE.to_owned(),
        deadline: DEADLINE,
        // They end with the connector.
        stop: CancellationToken::new(),
    })));
    hub.connect(PROXY, &connector);
    connector
}

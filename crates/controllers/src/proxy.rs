//! `clusters/NAME/proxy`: a request of a user of the hub is sent on to a member, as that user.
//!
//! The hub authenticates and authorizes; this module finds the Cluster, the Secret of its `spec.impersonatorSecretRef` and the
//! address, and sends the request with the token of that Secret and the user in `Impersonate-*` headers: the member's own RBAC
//! decides. Responses are passed on as they arrive, so watches and logs are; a connection that changes its protocol (exec, attach,
//! port-forward) is spliced. Bodies of requests are read whole first, within bounds.

use std::{
    collections::{BTreeMap, HashMap},
    io,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use entourage_api::cluster::{Cluster, SyncMode};
use entourage_core::object::{Gvk, ResourceId, Str};
use http::{HeaderMap, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, combinators::UnsyncBoxBody};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::{
    client::{Api, ClientFactory, Form, path::Path},
    error::{Class, Failure},
    members::{ConnectionVersion, hub_api, impersonation},
};

mod body;
mod front;
mod headers;
mod refusal;
mod splice;
mod target;

use body::{Bodies, Limits};
pub use front::Front;
use headers::Protocol;
use refusal::Refusal;
use splice::{Placed, Splices};
use target::Misfit;

/// The body of a response.
pub type Body = UnsyncBoxBody<Bytes, io::Error>;

/// The time in which a member must begin its response: longer than an API server takes to give up by itself (60 s).
const BEGUN_WITHIN: Duration = Duration::from_secs(70);
/// The same for a log that is followed, which a node begins with the first line: as long as a node keeps a silent stream by itself.
const LOG_BEGUN_WITHIN: Duration = Duration::from_secs(4 * 3600);

/// The user whom the hub authenticated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requester {
    /// The name.
    pub name: String,
    /// The groups.
    pub groups: Vec<String>,
    /// `extra`.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The settings of a [`Proxy`].
pub struct ProxyOptions {
    /// The hub, with the right to read Clusters and their Secrets, and to annotate these.
    pub hub: kube::Client,
    /// Builds the clients of members. It adds no header that the caller sends, too.
    pub clients: ClientFactory,
    /// The only namespace for the Secrets of Clusters.
    pub cluster_namespace: String,
    /// The deadline of a call to the hub.
    pub deadline: Duration,
    /// Ends the connections that have changed their protocol. They also end with the proxy.
    pub stop: CancellationToken,
}

/// Sends requests on to members.
pub struct Proxy {
    hub: Api,
    clients: ClientFactory,
    cluster_namespace: Str,
    /// The client of each member, and the version of its connection.
    kept: Mutex<HashMap<String, (ConnectionVersion, kube::Client)>>,
    bodies: Bodies,
    splices: Splices,
}

impl Proxy {
    /// A proxy without connections.
    #[must_use]
    pub fn new(options: ProxyOptions) -> Self {
        Self {
            hub: hub_api(options.hub, options.deadline, true),
            clients: options.clients,
            cluster_namespace: options.cluster_namespace.as_str().into(),
            kept: Mutex::default(),
            bodies: Bodies::new(Limits::default()),
            splices: Splices::new(&options.stop),
        }
    }

    /// Sends a request on to a member as the requester, and returns the response. `rest` is the path behind `proxy`, as it came;
    /// the query is that of the request. Whether the requester may use the subresource is decided before.
    pub async fn send<B>(
        &self,
        requester: &Requester,
        cluster: &str,
        rest: &str,
        request: Request<B>,
    ) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        match self.sent(requester, cluster, rest, request).await {
            Ok(response) => response,
            Err(refusal) => {
                debug!(cluster, user = requester.name, ?refusal, "request not sent on");
                refusal.response(cluster)
            }
        }
    }

    async fn sent<B>(
        &self,
        requester: &Requester,
        cluster: &str,
        rest: &str,
        request: Request<B>,
    ) -> Result<Response<Body>, Refusal>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (mut parts, body) = request.into_parts();
        // The hub has authorized verbs, and other methods have none.
        if target::verb(&parts.method).is_none() {
            return Err(Refusal::Method);
        }
        let target = target::target(rest, parts.uri.query()).map_err(|misfit| match misfit {
            Misfit::DotSegment => Refusal::DotSegment,
            Misfit::Malformed => Refusal::Path,
        })?;
        let upgrade = splice::asked(&mut parts);
        let protocol = upgrade.as_ref().map(|upgrade| upgrade.protocol);
        let headers = headers::request(&parts.headers, requester, protocol).ok_or(Refusal::NoUser)?;
        let within = if target::is_followed_log(rest, parts.uri.query()) {
            LOG_BEGUN_WITHIN
        } else {
            BEGUN_WITHIN
        };
        let client = self.client(cluster).await?;
        let (body, _share) = self.bodies.read(body).await?;
        let upgrade = self.splices.placed(upgrade)?;

        let mut outgoing = Request::new(kube::client::Body::from(body));
        *outgoing.method_mut() = parts.method;
        *outgoing.uri_mut() = Uri::from(target);
        *outgoing.headers_mut() = headers;
        let response = tokio::time::timeout(within, client.send(outgoing))
            .await
            .map_err(|_| Refusal::Slow(within.as_secs()))?
            .map_err(|error| Refusal::NoResponse(words(&error)))?;
        // The caller would follow it with its credentials for the hub, to wherever the member says.
        if response.status().is_redirection() && response.headers().contains_key(header::LOCATION) {
            return Err(Refusal::Redirect);
        }
        // The member's API server refuses the token that was sent: the caller's own credentials were accepted by the hub. Behind `proxy`
        // the response is that of a pod, a service or a node, about credentials of its own.
        if response.status() == StatusCode::UNAUTHORIZED && !target::is_proxied(rest) {
            return Err(Refusal::TokenRefused);
        }
        self.returned(response, upgrade, headers::response)
    }

    /// The response for the caller, with the headers that `kept` keeps; if both ends change their protocol, they are spliced.
    fn returned(
        &self,
        mut response: Response<kube::client::Body>,
        upgrade: Option<Placed>,
        kept: fn(&HeaderMap, Option<Protocol>) -> HeaderMap,
    ) -> Result<Response<Body>, Refusal> {
        let mut changed = None;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let agreed = headers::upgrade(response.headers());
            let upgrade = upgrade.filter(|upgrade| agreed == Some(upgrade.protocol()));
            let upgrade = upgrade.ok_or(Refusal::Unasked)?;
            changed = Some(upgrade.protocol());
            self.splices.begin(upgrade, &mut response);
        }
        let (parts, body) = response.into_parts();
        let body = body
            .map_err(|error| io::Error::other(words(&error)))
            .boxed_unsync();
        let mut response = Response::new(body);
        *response.status_mut() = parts.status;
        *response.headers_mut() = kept(&parts.headers, changed);
        Ok(response)
    }

    /// The client of a member for the connection that its Cluster and Secret describe now.
    async fn client(&self, name: &str) -> Result<kube::Client, Refusal> {
        let cluster = self.cluster(name).await?;
        if cluster.spec.api_endpoint.is_empty() {
            let pull = cluster.spec.sync_mode == SyncMode::Pull;
            return Err(Refusal::NoEndpoint { pull });
        }
        if cluster.spec.impersonator_secret_ref.is_none() {
            return Err(Refusal::NoImpersonator);
        }
        let found = impersonation(&self.hub, &cluster, &self.cluster_namespace)
            .await
            .map_err(Refusal::NotConnected)?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((version, client)) = kept.get(name)
            && *version == found.version
        {
            return Ok(client.clone());
        }
        // The error's own text could quote the proxy's URL, with its password.
        let client = (self.clients)(name, found.config).map_err(|_| {
            Refusal::NotConnected(
                "a client cannot be built; check spec.apiEndpoint, spec.proxyURL and the key caBundle of its Secrets"
                    .to_owned(),
            )
        })?;
        kept.insert(name.to_owned(), (found.version, client.clone()));
        Ok(client)
    }

    async fn cluster(&self, name: &str) -> Result<Cluster, Refusal> {
        // It becomes a step of a path.
        let plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
        if name.starts_with('.') || !name.bytes().all(plain) {
            return Err(Refusal::NoCluster);
        }
        let id = ResourceId::new(Gvk::new("cluster.karmada.io/v1alpha1", "Cluster"), "", name);
        match self.hub.get(&Path::object(&id), Form::Whole).await {
            Ok(object) => serde_json::from_value(object)
                .map_err(|error| Refusal::Hub(format!("it is malformed: {error}"))),
            Err(failure) if failure.class() == Class::Missing => {
                let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.remove(name);
                Err(Refusal::NoCluster)
            }
            Err(failure) => Err(Refusal::Hub(failure.text(&id.gvk))),
        }
    }
}

/// The chain of causes of a request without a response.
fn words(error: &kube::Error) -> String {
    Failure::transport(error).text(&Gvk::new("cluster.karmada.io/v1alpha1", "Cluster"))
}

#[cfg(test)]
mod tests;

//! A server in front of the hub: its API, with `clusters/NAME/proxy` added. For hubs whose API server does not serve that itself.
//!
//! Requests for a member are authenticated and authorized by the hub (TokenReview, SubjectAccessReview) and sent on by [`Proxy`]. All
//! others go to the hub as they came, with the caller's own credentials: this server adds no right of its own to them.

use http::{HeaderMap, Method, Request, Response, Uri, header};
use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec},
    authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use kube::api::PostParams;

use super::{BEGUN_WITHIN, Body, LARGEST, OnUpgrade, Proxy, Refusal, Requester, headers, returned, words};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};

/// The resource, below which the paths of members are.
const CLUSTERS: &str = "/apis/cluster.karmada.io/v1alpha1/clusters/";

/// A server in front of the hub.
pub struct Front {
    /// With the right to review tokens and access.
    hub: kube::Client,
    /// Without credentials.
    passing: kube::Client,
    proxy: Proxy,
}

impl Front {
    /// `hub` may create TokenReviews and SubjectAccessReviews; `passing` is a client of the same hub without credentials.
    #[must_use]
    pub fn new(hub: kube::Client, passing: kube::Client, proxy: Proxy) -> Self {
        Self { hub, passing, proxy }
    }

    /// Answers one request.
    pub async fn answer<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let path = request.uri().path().to_owned();
        let Some((cluster, rest)) = of_member(&path) else {
            let passed = self.passed(request).await;
            return passed.unwrap_or_else(|refusal| refusal.response(""));
        };
        match self.admitted(request.method(), request.headers(), cluster).await {
            Ok(requester) => self.proxy.send(&requester, cluster, rest, request).await,
            Err(refusal) => refusal.response(cluster),
        }
    }

    /// The user of a request for a member, if the hub lets it use the subresource.
    async fn admitted(
        &self,
        method: &Method,
        headers: &HeaderMap,
        cluster: &str,
    ) -> Result<Requester, Refusal> {
        let token = bearer(headers).ok_or(Refusal::NoToken)?;
        // Who may be impersonated is for the hub to decide, and it does not see this request.
        if headers
            .keys()
            .any(|name| name.as_str().starts_with("impersonate-"))
        {
            return Err(Refusal::Impersonation);
        }
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: token.to_owned(),
                ..TokenReviewSpec::default()
            },
            ..TokenReview::default()
        };
        let reviews: kube::Api<TokenReview> = kube::Api::all(self.hub.clone());
        let reviewed = reviews.create(&PostParams::default(), &review).await;
        // An error's own text could quote the token.
        let reviewed = reviewed.map_err(|error| Refusal::Hub(outline("TokenReview", &error)))?;
        let status = reviewed.status.unwrap_or_default();
        let user = status.user.filter(|_| status.authenticated == Some(true));
        let user = user.ok_or(Refusal::NoToken)?;
        let requester = Requester {
            name: user.username.unwrap_or_default(),
            groups: user.groups.unwrap_or_default(),
            extra: user.extra.unwrap_or_default(),
        };
        let verb = verb(method).ok_or(Refusal::Path)?;
        self.authorize(&requester, user.uid, verb, cluster).await?;
        Ok(requester)
    }

    async fn authorize(
        &self,
        requester: &Requester,
        uid: Option<String>,
        verb: &'static str,
        cluster: &str,
    ) -> Result<(), Refusal> {
        let attributes = ResourceAttributes {
            group: Some("cluster.karmada.io".to_owned()),
            version: Some("v1alpha1".to_owned()),
            resource: Some("clusters".to_owned()),
            subresource: Some("proxy".to_owned()),
            name: Some(cluster.to_owned()),
            verb: Some(verb.to_owned()),
            ..ResourceAttributes::default()
        };
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: Some(requester.name.clone()),
                groups: Some(requester.groups.clone()),
                extra: Some(requester.extra.clone()),
                uid,
                resource_attributes: Some(attributes),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let reviews: kube::Api<SubjectAccessReview> = kube::Api::all(self.hub.clone());
        let reviewed = reviews.create(&PostParams::default(), &review).await;
        let reviewed = reviewed.map_err(|error| Refusal::Hub(outline("SubjectAccessReview", &error)))?;
        if reviewed.status.is_some_and(|status| status.allowed) {
            return Ok(());
        }
        Err(Refusal::Forbidden {
            user: requester.name.clone(),
            verb,
        })
    }

    /// The hub's response to a request that is not about a member.
    async fn passed<B>(&self, request: Request<B>) -> Result<Response<Body>, Refusal>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (mut parts, body) = request.into_parts();
        let caller = headers::upgrade(&parts.headers)
            .is_some()
            .then(|| parts.extensions.remove::<OnUpgrade>())
            .flatten();
        let body = Limited::new(body, LARGEST).collect().await;
        let body = body.map_err(|_| Refusal::Body(LARGEST))?.to_bytes();
        let target = parts.uri.path_and_query().cloned().ok_or(Refusal::Path)?;
        let mut outgoing = Request::new(kube::client::Body::from(body));
        *outgoing.method_mut() = parts.method;
        *outgoing.uri_mut() = Uri::from(target);
        *outgoing.headers_mut() = headers::passed(&parts.headers);
        let response = tokio::time::timeout(BEGUN_WITHIN, self.passing.send(outgoing))
            .await
            .map_err(|_| Refusal::HubSilent(format!("no response within {} s", BEGUN_WITHIN.as_secs())))?
            .map_err(|error| Refusal::HubSilent(words(&error)))?;
        Ok(returned(response, caller))
    }
}

/// The cluster of a path below `clusters/NAME/proxy`, and what follows. Names with escapes are the hub's to refuse.
fn of_member(path: &str) -> Option<(&str, &str)> {
    let (cluster, rest) = path.strip_prefix(CLUSTERS)?.split_once('/')?;
    let rest = rest.strip_prefix("proxy")?;
    let is_name = !cluster.is_empty() && !cluster.contains('%');
    (is_name && (rest.is_empty() || rest.starts_with('/'))).then_some((cluster, rest))
}

/// The token of the header Authorization.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers
        .get(header::AUTHORIZATION)?
        .to_str()
        .ok()?
        .split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// The verb of a method, as an API server authorizes it.
fn verb(method: &Method) -> Option<&'static str> {
    Some(match *method {
        Method::GET | Method::HEAD => "get",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => return None,
    })
}

/// An error of a review in words that quote nothing of it.
fn outline(review: &str, error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => {
            format!("the {review} was refused with {} {}", status.code, status.reason)
        }
        _ => format!("no response to the {review}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_members() {
        let cases = [
            (
                "/apis/cluster.karmada.io/v1alpha1/clusters/m1/proxy",
                Some(("m1", "")),
            ),
            (
                "/apis/cluster.karmada.io/v1alpha1/clusters/m1/proxy/api/v1/pods",
                Some(("m1", "/api/v1/pods")),
            ),
            ("/apis/cluster.karmada.io/v1alpha1/clusters/m1", None),
            ("/apis/cluster.karmada.io/v1alpha1/clusters/m1/status", None),
            ("/apis/cluster.karmada.io/v1alpha1/clusters/m1/proxyx", None),
            ("/apis/cluster.karmada.io/v1alpha1/clusters//proxy", None),
            ("/apis/cluster.karmada.io/v1alpha1/clusters/m%31/proxy", None),
            ("/api/v1/pods", None),
        ];
        for (path, expected) in cases {
            assert_eq!(of_member(path), expected, "{path}");
        }
    }

    #[test]
    fn only_bearer_tokens_are_credentials() {
        for (value, expected) in [
            ("Bearer t", Some("t")),
            ("bearer  t", Some("t")),
            ("Basic t", None),
            ("Bearer ", None),
            ("t", None),
        ] {
            let headers = HeaderMap::from_iter([(header::AUTHORIZATION, value.parse().unwrap())]);
            assert_eq!(bearer(&headers), expected, "{value}");
        }
    }
}

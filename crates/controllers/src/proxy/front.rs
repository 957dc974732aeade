//! A server in front of the hub: its API, with `clusters/NAME/proxy` added. For hubs whose API server does not serve that itself.
//!
//! Requests for a member are authenticated and authorized by the hub (TokenReview, SubjectAccessReview) and sent on by [`Proxy`]. All
//! others go to the hub as they came, with the caller's own credentials: this server adds no right of its own to them.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, Uri, header};
use http_body_util::{BodyExt as _, Limited};
use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec},
    authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio::{sync::Semaphore, time::Instant};

use super::{BEGUN_WITHIN, Body, Proxy, Refusal, Requester, headers, splice, target, words};
use crate::metrics::{ProxyMetrics, Target};

/// The resource, below which the paths of members are.
const CLUSTERS: &str = "/apis/cluster.karmada.io/v1alpha1/clusters/";

/// The number of reviews that the hub is asked for at a time, and the time in which it must respond. Anybody can cause them.
const REVIEWS: usize = 32;
const REVIEWED_WITHIN: Duration = Duration::from_secs(10);
/// The largest response to a review, in bytes.
const LARGEST_REVIEW: usize = 1 << 20;

/// A server in front of the hub.
pub struct Front {
    /// With the right to review tokens and access.
    hub: kube::Client,
    /// Without credentials.
    passing: kube::Client,
    proxy: Proxy,
    reviews: Semaphore,
    metrics: ProxyMetrics,
}

/// The part of a review that is read. Never its `spec`, which has the token.
#[derive(Deserialize)]
#[serde(bound = "S: DeserializeOwned")]
struct Reviewed<S> {
    status: Option<S>,
}

/// The status of a TokenReview.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Authenticated {
    authenticated: bool,
    user: Option<User>,
}

/// The user of a token. Servers write empty lists as null.
#[derive(Deserialize)]
struct User {
    username: Option<String>,
    uid: Option<String>,
    groups: Option<Vec<String>>,
    extra: Option<BTreeMap<String, Option<Vec<String>>>>,
}

/// The status of a SubjectAccessReview.
#[derive(Deserialize)]
struct Authorized {
    #[serde(default)]
    allowed: bool,
}

impl Front {
    /// `hub` may create TokenReviews and SubjectAccessReviews; `passing` is a client of the same hub without credentials.
    #[must_use]
    pub fn new(hub: kube::Client, passing: kube::Client, proxy: Proxy) -> Self {
        Self {
            hub,
            passing,
            proxy,
            reviews: Semaphore::new(REVIEWS),
            metrics: ProxyMetrics::new(),
        }
    }

    /// Its metrics.
    #[must_use]
    pub const fn metrics(&self) -> &ProxyMetrics {
        &self.metrics
    }

    /// Answers one request, and counts it.
    pub async fn answer<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let target = match of_member(request.uri().path()) {
            Some(_) => Target::Member,
            None => Target::Hub,
        };
        let began = Instant::now();
        let response = self.respond(request).await;
        let code = response.status().as_u16();
        self.metrics.request(target, code, began.elapsed());
        response
    }

    async fn respond<B>(&self, request: Request<B>) -> Response<Body>
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
        let verb = target::verb(method).ok_or(Refusal::Method)?;
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
        let group = "authentication.k8s.io";
        let status: Option<Authenticated> = self.reviewed(group, "tokenreviews", &review).await?;
        let status = status.unwrap_or_default();
        let user = status.user.filter(|_| status.authenticated);
        let user = user.ok_or(Refusal::NoToken)?;
        let extra = user.extra.unwrap_or_default();
        let requester = Requester {
            name: user.username.unwrap_or_default(),
            groups: user.groups.unwrap_or_default(),
            extra: extra
                .into_iter()
                .map(|(key, values)| (key, values.unwrap_or_default()))
                .collect(),
        };
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
        let group = "authorization.k8s.io";
        let status: Option<Authorized> = self.reviewed(group, "subjectaccessreviews", &review).await?;
        if status.is_some_and(|status| status.allowed) {
            return Ok(());
        }
        Err(Refusal::Forbidden {
            user: requester.name.clone(),
            verb,
        })
    }

    /// The status in the hub's response to a review. It is read here and not by the client library, which logs what it cannot read: a
    /// response to a TokenReview quotes the token.
    async fn reviewed<S: DeserializeOwned>(
        &self,
        group: &str,
        resource: &str,
        review: &impl Serialize,
    ) -> Result<Option<S>, Refusal> {
        let malformed = || Refusal::NotReviewed(format!("the hub's response to {resource} is malformed"));
        let body = serde_json::to_vec(review).map_err(|_| malformed())?;
        let request = Request::post(format!("/apis/{group}/v1/{resource}"))
            .header(header::CONTENT_TYPE, "application/json")
            .body(kube::client::Body::from(body))
            .map_err(|_| malformed())?;
        let asked = async {
            // It is never closed.
            let _turn = self.reviews.acquire().await;
            let response = self.hub.send(request).await?;
            let code = response.status();
            let body = Limited::new(response.into_body(), LARGEST_REVIEW).collect().await;
            Ok::<_, kube::Error>((code, body.ok().map(|body| body.to_bytes())))
        };
        let (code, body) = match tokio::time::timeout(REVIEWED_WITHIN, asked).await {
            Ok(Ok((code, Some(body)))) => (code, body),
            Ok(Ok((_, None))) => return Err(malformed()),
            Ok(Err(error)) => return Err(Refusal::NotReviewed(outline(resource, &error))),
            Err(_) => {
                return Err(Refusal::NotReviewed(format!(
                    "the hub did not respond to {resource} within {} s; try again",
                    REVIEWED_WITHIN.as_secs()
                )));
            }
        };
        if !code.is_success() {
            let status: kube::core::Status = serde_json::from_slice(&body).map_err(|_| malformed())?;
            let error = kube::Error::Api(Box::new(status.with_code(code.as_u16())));
            return Err(Refusal::NotReviewed(outline(resource, &error)));
        }
        let reviewed: Reviewed<S> = serde_json::from_slice(&body).map_err(|_| malformed())?;
        Ok(reviewed.status)
    }

    /// The hub's response to a request that is not about a member.
    async fn passed<B>(&self, request: Request<B>) -> Result<Response<Body>, Refusal>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (mut parts, body) = request.into_parts();
        let target = parts.uri.path_and_query().cloned().ok_or(Refusal::Path)?;
        let upgrade = splice::asked(&mut parts);
        let protocol = upgrade.as_ref().map(|upgrade| upgrade.protocol);
        let (body, _share) = self.proxy.bodies.read(body).await?;
        let upgrade = self.proxy.splices.placed(upgrade)?;
        let mut outgoing = Request::new(kube::client::Body::from(body));
        *outgoing.method_mut() = parts.method;
        *outgoing.uri_mut() = Uri::from(target);
        *outgoing.headers_mut() = headers::passed(&parts.headers, protocol);
        let response = tokio::time::timeout(BEGUN_WITHIN, self.passing.send(outgoing))
            .await
            .map_err(|_| Refusal::HubSilent(format!("no response within {} s", BEGUN_WITHIN.as_secs())))?
            .map_err(|error| Refusal::HubSilent(words(&error)))?;
        self.proxy.returned(response, upgrade, headers::response_of_hub)
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

/// An error of a review in words that quote nothing of it, with what to do: the user can only report it.
fn outline(resource: &str, error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.code == 403 => format!(
            "{} may not create {resource} on the hub; run `kubectl apply -k config/proxy` there, which grants it to the \
             serviceaccount karmada-system/entourage-proxy",
            account(&status.message)
        ),
        kube::Error::Api(status) if status.code == 401 => {
            "the hub refuses the credentials of this server itself; start it with a kubeconfig of the serviceaccount \
             karmada-system/entourage-proxy (`kubectl apply -k config/proxy`)"
                .to_owned()
        }
        kube::Error::Api(status) => {
            format!(
                "the hub refuses {resource} with {} {}; try again",
                status.code, status.reason
            )
        }
        _ => format!("the hub did not respond to {resource}; try again"),
    }
}

/// The account of this server, by the message of a 403: authorization comes before the body is read, so the message cannot quote that.
fn account(message: &str) -> String {
    let named = message
        .split_once("User \"")
        .and_then(|(_, rest)| rest.split_once('"'));
    match named {
        Some((name, _)) if !name.is_empty() => format!("the account of this server, {name},"),
        _ => "the account of this server".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::{Arc, Mutex},
    };

    use http::{HeaderValue, StatusCode};
    use http_body_util::Full;
    use serde_json::json;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::proxy::ProxyOptions;

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

    #[test]
    fn a_review_that_fails_says_whose_rights_are_missing_and_never_the_token() {
        let failed = |code: u16, message: &str| {
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
                "reason": "Reason", "code": code,
            });
            let status: kube::core::Status = serde_json::from_value(status).unwrap();
            outline("tokenreviews", &kube::Error::Api(Box::new(status)))
        };
        let forbidden = r#"tokenreviews.authentication.k8s.io is forbidden: User "system:serviceaccount:a:b" cannot create"#;
        let cases = [
            (
                403,
                forbidden,
                "server, system:serviceaccount:a:b, may not create tokenreviews",
            ),
            (403, forbidden, "kubectl apply -k config/proxy"),
            (403, "canary", "the account of this server may not"),
            (401, "canary", "refuses the credentials of this server itself"),
            (500, "canary", "500 Reason"),
        ];
        for (code, message, words) in cases {
            let text = failed(code, message);
            assert!(text.contains(words) && !text.contains("canary"), "{code}: {text}");
        }
    }

    /// A front before a hub that answers reviews with these codes, and notes what it is asked.
    fn front(reviews: u16, seen: &Arc<Mutex<Vec<String>>>) -> Front {
        let seen = seen.clone();
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let path = request.uri().path().to_owned();
            let head = format!("{} {path} {:?}", request.method(), request.headers());
            let seen = seen.clone();
            let (code, object) = if path.ends_with("/tokenreviews") {
                // A webhook may return a list as null.
                let user = json!({"username": "jane", "groups": ["devs"], "extra": {"k": null}});
                (
                    reviews,
                    json!({
                        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "metadata": {},
                        "spec": {"token": ""}, "status": {"authenticated": true, "user": user},
                    }),
                )
            } else if path.ends_with("/subjectaccessreviews") {
                (
                    reviews,
                    json!({
                        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {},
                        "spec": {}, "status": {"allowed": true},
                    }),
                )
            } else {
                (404, json!({}))
            };
            let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "no", "reason": "NotFound", "code": code});
            let body = if code < 400 { object } else { status };
            let mut response = Response::new(Full::new(Bytes::from(body.to_string())));
            *response.status_mut() = StatusCode::from_u16(code).unwrap();
            response
                .headers_mut()
                .insert(header::LOCATION, HeaderValue::from_static("/x"));
            async move {
                let body = request.into_body().collect().await.unwrap().to_bytes();
                let line = format!("{head} {}", String::from_utf8_lossy(&body));
                seen.lock().unwrap().push(line);
                Ok::<_, Infallible>(response)
            }
        });
        let hub = kube::Client::new(service, "default");
        let proxy = Proxy::new(ProxyOptions {
            hub: hub.clone(),
            clients: crate::passing_clients(),
            cluster_namespace: "karmada-cluster".to_owned(),
            deadline: Duration::from_secs(5),
            stop: CancellationToken::new(),
        });
        Front::new(hub.clone(), hub, proxy)
    }

    fn asked(method: &str, path: &str) -> Request<Full<Bytes>> {
        let request = Request::builder().method(method).uri(path);
        let request = request.header("authorization", "Bearer canary");
        request.body(Full::new(Bytes::new())).unwrap()
    }

    #[tokio::test]
    async fn what_is_for_a_member_is_reviewed_first_and_all_else_is_the_hubs() {
        let path = format!("{CLUSTERS}m1/proxy/api/v1/pods");
        let path = path.as_str();
        // method, path, code of reviews, code of the response, words of it, number of requests to the hub
        let cases = [
            ("OPTIONS", path, 201, 405, "GET, HEAD", 0),
            ("TRACE", path, 201, 405, "GET, HEAD", 0),
            ("GET", path, 403, 503, "kubectl apply -k config/proxy", 1),
            ("GET", path, 500, 503, "500", 1),
            // Then the Cluster is read.
            (
                "GET",
                path,
                201,
                404,
                "clusters.cluster.karmada.io \"m1\" not found",
                3,
            ),
            ("OPTIONS", "/api/v1/pods", 201, 404, "no", 1),
        ];
        for (method, path, reviews, code, words, requests) in cases {
            let seen = Arc::default();
            let response = front(reviews, &seen).answer(asked(method, path)).await;
            assert_eq!(response.status().as_u16(), code, "{method} {path}");
            let body = response.into_body().collect().await.unwrap().to_bytes();
            let status: serde_json::Value = serde_json::from_slice(&body).unwrap();
            let message = status["message"].as_str().unwrap();
            assert!(message.contains(words), "{method} {path}: {message}");
            assert!(!status.to_string().contains("canary"), "{status}");
            assert_eq!(seen.lock().unwrap().len(), requests, "{method} {path}");
        }
    }

    #[tokio::test]
    async fn the_hub_is_asked_about_this_user_this_cluster_and_this_verb() {
        for (method, cluster, verb) in [("GET", "m1", "get"), ("POST", "m2", "create")] {
            let seen = Arc::default();
            let path = format!("{CLUSTERS}{cluster}/proxy/api/v1/pods");
            front(201, &seen).answer(asked(method, &path)).await;
            let seen = seen.lock().unwrap();
            let review = seen
                .iter()
                .find(|line| line.contains("subjectaccessreviews"))
                .unwrap();
            for part in [
                r#""user":"jane""#.to_owned(),
                r#""groups":["devs"]"#.to_owned(),
                format!(r#""name":"{cluster}""#),
                format!(r#""verb":"{verb}""#),
                r#""resource":"clusters""#.to_owned(),
                r#""subresource":"proxy""#.to_owned(),
            ] {
                assert!(review.contains(&part), "{part}: {review}");
            }
        }
    }

    #[tokio::test]
    async fn the_hubs_own_response_keeps_its_headers() {
        let seen = Arc::default();
        let response = front(201, &seen).answer(asked("GET", "/api/v1/pods")).await;
        assert_eq!(response.headers()[header::LOCATION], "/x");
        let seen = seen.lock().unwrap();
        assert!(seen[0].contains("canary"), "with the caller's own credentials");
    }

    #[tokio::test(start_paused = true)]
    async fn a_hub_that_does_not_review_is_given_up() {
        let service = tower::service_fn(|_: Request<kube::client::Body>| {
            std::future::pending::<Result<Response<Full<Bytes>>, Infallible>>()
        });
        let hub = kube::Client::new(service, "default");
        let seen = Arc::default();
        let front = Front {
            hub,
            ..front(201, &seen)
        };
        let path = format!("{CLUSTERS}m1/proxy/api");
        let response = front.answer(asked("GET", &path)).await;
        assert_eq!(response.status(), 503);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert!(String::from_utf8_lossy(&body).contains("within 10 s"), "{body:?}");
    }

    /// The reviews that a hub is asked for: now, and the most at a time.
    #[derive(Default)]
    struct Asked(Mutex<(usize, usize)>);

    impl Asked {
        fn begin(self: &Arc<Self>) -> Turn {
            let mut counts = self.0.lock().unwrap();
            counts.0 += 1;
            counts.1 = counts.1.max(counts.0);
            Turn(self.clone())
        }
    }

    struct Turn(Arc<Asked>);

    impl Drop for Turn {
        fn drop(&mut self) {
            self.0.0.lock().unwrap().0 -= 1;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_hub_is_asked_for_so_many_reviews_at_a_time() {
        let reviews: Arc<Asked> = Arc::default();
        let service = {
            let reviews = reviews.clone();
            tower::service_fn(move |_: Request<kube::client::Body>| {
                let turn = reviews.begin();
                async move {
                    let response = std::future::pending::<Result<Response<Full<Bytes>>, Infallible>>().await;
                    drop(turn);
                    response
                }
            })
        };
        let hub = kube::Client::new(service, "default");
        let seen = Arc::default();
        let front = Front {
            hub,
            ..front(201, &seen)
        };
        let path = format!("{CLUSTERS}m1/proxy/api");
        let all = (0..REVIEWS * 2).map(|_| front.answer(asked("GET", &path)));
        for response in futures::future::join_all(all).await {
            assert_eq!(response.status(), 503);
        }
        assert_eq!(reviews.0.lock().unwrap().1, REVIEWS);
    }
}

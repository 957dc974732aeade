//! The requests that are not sent on, as `Status` objects: object, cluster, cause, remedy.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use serde_json::json;

use super::Body;

/// The reason why a request was not answered by the member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The hub has no such Cluster.
    NoCluster,
    /// The hub's own failure, in its words.
    Hub(String),
    /// The Cluster has no `spec.apiEndpoint`. In Pull mode that is usual.
    NoEndpoint { pull: bool },
    /// The Cluster has no `spec.impersonatorSecretRef`.
    NoImpersonator,
    /// There is no client, for this reason.
    NotConnected(String),
    /// The member gave no response.
    NoResponse(String),
    /// The member began no response for so many seconds.
    Slow(u64),
    /// The member refuses the token of the impersonator.
    TokenRefused,
    /// The member leads somewhere else.
    Redirect,
    /// The member or the hub changes to a protocol that was not asked for.
    Unasked,
    /// The user has a name, a group or an extra that no header can carry as it is.
    NoUser,
    /// There is no bearer token, or the hub does not know it.
    NoToken,
    /// The request asks to be done as another user.
    Impersonation,
    /// The hub does not let the user use the subresource.
    Forbidden { user: String, verb: &'static str },
    /// The hub did not say who the user is, or what it may do.
    NotReviewed(String),
    /// The hub gave no response to a request of its own.
    HubSilent(String),
    /// The method has no verb that could be authorized.
    Method,
    /// The path has a step `.` or `..`.
    DotSegment,
    /// The path is not valid.
    Path,
    /// The request's body is larger than this number of bytes.
    Body(usize),
    /// The request's body did not arrive whole within so many seconds.
    BodySlow(u64),
    /// The request's body broke off.
    BodyBroken,
    /// There are too many bodies, or connections with another protocol, at this time.
    Busy,
}

/// The seconds after which a request that there was no room for is sent again.
const RETRY_AFTER: &str = "1";

/// The methods that are sent on.
const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE";

impl Refusal {
    /// The code, the reason and the message for a request about this cluster; about the hub itself if that is empty.
    pub(super) fn parts(&self, cluster: &str) -> (u16, &'static str, String) {
        let unavailable = |message: String| (503, "ServiceUnavailable", message);
        let bad = |message: String| (400, "BadRequest", message);
        let gateway = |message: String| (502, "BadGateway", message);
        let server = if cluster.is_empty() {
            "the hub".to_owned()
        } else {
            format!("cluster {cluster}")
        };
        match self {
            Self::NoCluster => (
                404,
                "NotFound",
                format!("clusters.cluster.karmada.io {cluster:?} not found"),
            ),
            Self::Hub(cause) => unavailable(format!(
                "cluster {cluster} cannot be read on the hub: {cause}; try again"
            )),
            Self::NoEndpoint { pull: true } => unavailable(format!(
                "cluster {cluster} is in Pull mode, and the hub has no connection to it: spec.apiEndpoint is empty; ask the \
                 cluster itself"
            )),
            Self::NoEndpoint { pull: false } => unavailable(format!(
                "cluster {cluster} has no spec.apiEndpoint; run `entourage join {cluster}`"
            )),
            Self::NoImpersonator => unavailable(format!(
                "cluster {cluster} has no spec.impersonatorSecretRef, so no request can be sent to it as a user of the hub; run \
                 `entourage join {cluster}` with --impersonate everyone, or with the users and groups that may"
            )),
            Self::NotConnected(cause) => unavailable(format!("no connection to cluster {cluster}: {cause}")),
            Self::NoResponse(cause) => unavailable(format!(
                "cluster {cluster} did not respond: {cause}; its condition Ready shows whether the controllers reach it"
            )),
            Self::Slow(seconds) => (
                504,
                "Timeout",
                format!("cluster {cluster} began no response within {seconds} s; try again"),
            ),
            Self::TokenRefused => unavailable(format!(
                "cluster {cluster} refuses the token of its Secret of spec.impersonatorSecretRef; run `entourage join {cluster}` \
                 again"
            )),
            Self::Redirect => gateway(format!(
                "cluster {cluster} responded with a redirect, which is not passed on: a client would follow it with its \
                 credentials for the hub; ask for the path that it leads to, which often is the same with a slash at its end"
            )),
            Self::Unasked => gateway(format!(
                "{server} changed to a protocol that was not asked for; websocket and SPDY/3.1 are passed on"
            )),
            Self::NoUser => (
                403,
                "Forbidden",
                format!(
                    "the user's name, groups or extra cannot be sent to cluster {cluster}: a header cannot carry line breaks, nor \
                     blanks at an end"
                ),
            ),
            Self::NoToken => (
                401,
                "Unauthorized",
                "give a bearer token of the hub; client certificates do not reach through this server"
                    .to_owned(),
            ),
            Self::Impersonation => (
                403,
                "Forbidden",
                format!(
                    "a request for cluster {cluster} cannot impersonate here; use the credentials of that user"
                ),
            ),
            Self::Forbidden { user, verb } => (
                403,
                "Forbidden",
                format!(
                    "clusters.cluster.karmada.io {cluster:?} is forbidden: User {user:?} cannot {verb} resource \
                     \"clusters/proxy\" in API group \"cluster.karmada.io\" at the cluster scope"
                ),
            ),
            Self::NotReviewed(cause) => unavailable(format!(
                "the request for cluster {cluster} is not authorized: {cause}"
            )),
            Self::Method => (
                405,
                "MethodNotAllowed",
                format!("the method is not served for {server}; use {METHODS}"),
            ),
            Self::HubSilent(cause) => unavailable(format!("the hub did not respond: {cause}")),
            Self::DotSegment => bad(format!(
                "the path for cluster {cluster} has a step \".\" or \"..\"; write the path without it"
            )),
            Self::Path => bad(format!("the path for {server} is not valid")),
            Self::Body(limit) => (
                413,
                "RequestEntityTooLarge",
                format!("the body for {server} is larger than {limit} bytes"),
            ),
            Self::BodySlow(seconds) => (
                408,
                "Timeout",
                format!("the body for {server} did not arrive within {seconds} s; try again"),
            ),
            Self::BodyBroken => bad(format!("the body for {server} did not arrive whole; try again")),
            Self::Busy => (
                429,
                "TooManyRequests",
                format!("too many requests for {server} are on their way; try again in {RETRY_AFTER} s"),
            ),
        }
    }

    /// The response.
    pub(super) fn response(&self, cluster: &str) -> Response<Body> {
        let (code, reason, message) = self.parts(cluster);
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "reason": reason,
            "code": code,
        });
        if !cluster.is_empty() {
            status["details"] = json!({"name": cluster, "group": "cluster.karmada.io", "kind": "clusters"});
        }
        let body = Full::new(Bytes::from(status.to_string()))
            .map_err(|never| match never {})
            .boxed_unsync();
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::BAD_GATEWAY);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        match self {
            Self::Method => {
                headers.insert(header::ALLOW, HeaderValue::from_static(METHODS));
            }
            Self::Busy => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER));
            }
            _ => {}
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    #[test]
    fn a_refusal_names_the_cluster_and_what_to_do() {
        let cases = [
            (
                Refusal::NoCluster,
                404,
                "clusters.cluster.karmada.io \"m1\" not found",
            ),
            (Refusal::NoEndpoint { pull: true }, 503, "is in Pull mode"),
            (Refusal::NoEndpoint { pull: false }, 503, "entourage join m1"),
            (Refusal::NoImpersonator, 503, "spec.impersonatorSecretRef"),
            (
                Refusal::NoImpersonator,
                503,
                "`entourage join m1` with --impersonate",
            ),
            (
                Refusal::NotConnected("Secret a/b: gone".into()),
                503,
                "Secret a/b: gone",
            ),
            (Refusal::NoResponse("refused".into()), 503, "refused"),
            (Refusal::Slow(70), 504, "70 s"),
            (Refusal::TokenRefused, 503, "entourage join m1"),
            (Refusal::Redirect, 502, "redirect"),
            (Refusal::Unasked, 502, "SPDY/3.1"),
            (Refusal::NoUser, 403, "groups"),
            (Refusal::Impersonation, 403, "cannot impersonate"),
            (
                Refusal::Forbidden {
                    user: "jane".into(),
                    verb: "get",
                },
                403,
                "User \"jane\" cannot get resource \"clusters/proxy\"",
            ),
            (Refusal::DotSegment, 400, "\"..\""),
            (
                Refusal::NotReviewed("no response".into()),
                503,
                "is not authorized: no response",
            ),
            (Refusal::Method, 405, "GET, HEAD"),
            (Refusal::Body(5), 413, "5 bytes"),
            (Refusal::BodySlow(30), 408, "30 s"),
            (Refusal::BodyBroken, 400, "did not arrive whole"),
            (Refusal::Busy, 429, "try again"),
            (Refusal::Hub("no".into()), 503, "on the hub: no"),
        ];
        for (refusal, code, words) in cases {
            let (given, _, message) = refusal.parts("m1");
            assert_eq!(given, code, "{refusal:?}");
            assert!(message.contains(words) && message.contains("m1"), "{message}");
            assert_eq!(refusal.response("m1").status().as_u16(), code);
        }
    }

    #[test]
    fn a_refusal_of_the_hubs_own_requests_names_no_cluster() {
        for refusal in [
            Refusal::Unasked,
            Refusal::Method,
            Refusal::Path,
            Refusal::Body(5),
            Refusal::BodySlow(30),
            Refusal::BodyBroken,
            Refusal::Busy,
            Refusal::HubSilent("refused".into()),
        ] {
            let (_, _, message) = refusal.parts("");
            assert!(
                message.contains("the hub") && !message.contains("cluster"),
                "{message}"
            );
        }
    }

    #[test]
    fn headers_say_what_else_to_do() {
        let of = |refusal: &Refusal, name: HeaderName| refusal.response("m1").headers().get(name).cloned();
        assert_eq!(of(&Refusal::Method, header::ALLOW).unwrap(), METHODS);
        assert_eq!(of(&Refusal::Busy, header::RETRY_AFTER).unwrap(), RETRY_AFTER);
        assert_eq!(of(&Refusal::NoCluster, header::ALLOW), None);
    }
}

//! Errors of servers, explained to the user: with the server, the context, and the flags that name another one.

use std::{error::Error as _, time::Duration};

use anyhow::anyhow;
use bytes::Bytes;
use http::{Response, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use kube::client::Body;
use serde_json::{Value, json};

use super::Origin;
use crate::plain::plain;

/// The longest error response that is read, in bytes.
const LARGEST_ERROR: usize = 64 << 10;

/// A short form of a server's error: the server's message without control characters, or the innermost cause of a failed connection.
/// The output of an exec plugin is left out: it may be a token.
#[must_use]
pub fn explain(error: kube::Error) -> anyhow::Error {
    match error {
        kube::Error::Api(status) if status.message.is_empty() => {
            anyhow!("{} ({})", plain(&status.reason), status.code)
        }
        kube::Error::Api(status) => anyhow!("{}", plain(&status.message)),
        kube::Error::Auth(_) => {
            anyhow!("the kubeconfig's credentials cannot be obtained (token file or exec plugin)")
        }
        kube::Error::Service(error) if error.is::<NoAnswer>() || error.is::<Unreachable>() => {
            anyhow!("{error}")
        }
        kube::Error::Service(error) => anyhow!("cannot connect: {}", innermost(&*error)),
        kube::Error::RustlsTls(error) => anyhow!("its certificates cannot be used: {}", innermost(&error)),
        kube::Error::HyperError(error) => {
            let cause = error
                .source()
                .map_or_else(String::new, |source| format!(": {source}"));
            anyhow!("the connection broke: {error}{cause}")
        }
        // A text: a connection that breaks must not look like an output of this process that is closed.
        other => anyhow!("{}", plain(&with_causes(&other))),
    }
}

/// The error and its causes; a cause that the text before already contains is left out.
fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = cause.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        next = cause.source();
    }
    text
}

/// True if a server responded with 404.
#[must_use]
pub fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// The message of a server about a right that the caller lacks: it names the user, the verb and the resource, and quotes no value
/// of an object.
#[must_use]
pub(crate) fn missing_right(error: &kube::Error) -> Option<&str> {
    match error {
        kube::Error::Api(status) if status.code == 403 && is_missing_right(&status.message) => {
            Some(&status.message)
        }
        _ => None,
    }
}

/// True for RBAC's own messages; others that forbid, such as admission, do so for any caller.
fn is_missing_right(message: &str) -> bool {
    message.contains(" is forbidden: User \"") && message.contains("\" cannot ")
}

/// Adds the server and the context to the error if there was no connection.
pub(super) fn unreachable(error: kube::Error, origin: &Origin) -> kube::Error {
    match error {
        kube::Error::Service(cause) => kube::Error::Service(Box::new(Unreachable {
            server: origin.named(),
            cause: innermost(&*cause),
            remedy: origin.remedy(),
        })),
        other => other,
    }
}

/// A server that cannot be reached.
#[derive(Debug)]
struct Unreachable {
    server: String,
    cause: String,
    remedy: String,
}

impl std::fmt::Display for Unreachable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "cannot connect to {}: {}{}",
            self.server, self.cause, self.remedy
        )
    }
}

impl std::error::Error for Unreachable {}

fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// Adds the server and the context to a response that refuses the caller, and the remedy to one for a hub without `clusters/proxy`; any
/// other is not changed. `member`: the request was one to that member, through this server.
pub(super) async fn naming(answer: Response<Body>, origin: &Origin, member: Option<&str>) -> Response<Body> {
    let code = answer.status();
    let may_lack_proxy = code == StatusCode::NOT_FOUND && member.is_some();
    if code != StatusCode::UNAUTHORIZED && code != StatusCode::FORBIDDEN && !may_lack_proxy {
        return answer;
    }
    let (mut parts, body) = answer.into_parts();
    let text = match Limited::new(body, LARGEST_ERROR).collect().await {
        Ok(text) => text.to_bytes(),
        Err(_) => Bytes::new(),
    };
    let explained = serde_json::from_slice::<Value>(&text)
        .ok()
        .and_then(|mut status| {
            let message = status["message"].as_str()?;
            let (server, remedy) = (origin.named(), origin.remedy_of_rights());
            let message = if code == StatusCode::NOT_FOUND {
                not_found_through(message, member?)?
            } else if code == StatusCode::UNAUTHORIZED {
                format!("the credentials are not accepted by {server}{remedy}")
            } else if let Some(member) = member {
                refused_through(message, member)?
            } else if is_missing_right(message) {
                format!("{message} on {server}{remedy}")
            } else {
                return None;
            };
            status["message"] = json!(message);
            serde_json::to_vec(&status).ok()
        });
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(explained.map_or(text, Bytes::from)))
}

/// A refusal of a request to a member through the hub: the hub decides first, by `clusters/proxy`, and then the member.
fn refused_through(message: &str, member: &str) -> Option<String> {
    if !is_missing_right(message) {
        return None;
    }
    Some(if message.contains("\"clusters/proxy\"") {
        format!("{message} on the hub; grant clusters/proxy of {member} there")
    } else if message.contains("cannot impersonate") {
        format!(
            "{message} on {member}; `entourage join {member} --impersonate` says who may be impersonated there"
        )
    } else {
        format!(
            "{message} on {member}; the rights of this user of the hub are those that it has on the member: bind it there"
        )
    })
}

/// A 404 of the hub itself. A kube-apiserver that does not know the path below a Cluster says that there is no such Cluster.
fn not_found_through(message: &str, member: &str) -> Option<String> {
    let is_cluster = message == format!("clusters.cluster.karmada.io \"{member}\" not found");
    is_cluster.then(|| {
        format!(
            "{message}; if `kubectl get clusters` shows it, this hub does not serve clusters/proxy: use the address of `entourage proxy`"
        )
    })
}

/// A call without a response.
#[derive(Debug)]
pub(super) struct NoAnswer(pub(super) Duration);

impl std::fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no response within {} s", self.0.as_secs())
    }
}

impl std::error::Error for NoAnswer {}

#[cfg(test)]
mod tests {
    use super::{super::HUB, *};

    #[test]
    fn what_an_exec_plugin_printed_is_not_shown() {
        let error = kube::Error::Auth(kube::client::AuthError::AuthExec("canary".into()));
        let error = format!("{:#}", explain(error));
        assert!(
            error.contains("credentials") && !error.contains("canary"),
            "{error}"
        );
    }

    #[test]
    fn what_a_server_says_is_one_line_without_control_characters() {
        let status = kube::core::Status::failure("no\u{1b}[2J\nnote: fine", "Invalid").boxed();
        let error = explain(kube::Error::Api(status)).to_string();
        assert_eq!(error, "no\\u{1b}[2J\\nnote: fine");
    }

    #[test]
    fn a_connection_that_breaks_is_no_closed_output() {
        let broken = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        let error = explain(kube::Error::ReadEvents(broken));
        assert_eq!(error.chain().count(), 1, "{error:?}");
        assert!(error.to_string().contains("broken pipe"), "{error}");
    }

    #[test]
    fn a_refusal_through_the_hub_says_which_of_the_two_refuses() {
        for (what, needed) in [
            (
                "get resource \"clusters/proxy\" in API group \"cluster.karmada.io\"",
                "on the hub; grant clusters/proxy of m1",
            ),
            (
                "list resource \"pods\" in API group \"\"",
                "on m1; the rights of this user",
            ),
            (
                "impersonate resource \"users\"",
                "entourage join m1 --impersonate",
            ),
        ] {
            let message = format!("x is forbidden: User \"jane\" cannot {what}");
            let explained = refused_through(&message, "m1").unwrap();
            assert!(
                explained.starts_with(&message) && explained.contains(needed),
                "{explained}"
            );
        }
        assert_eq!(
            refused_through("admission webhook \"x\" denied the request: no", "m1"),
            None
        );
    }

    #[tokio::test]
    async fn who_is_refused_sees_by_which_server_and_as_which_context() {
        let origin = Origin {
            url: "https://hub:6443".into(),
            context: Some(("hub".into(), "file".into())),
            flags: HUB,
            member: None,
        };
        let rbac = "namespaces \"kube-system\" is forbidden: User \"jane\" cannot get resource";
        let cases = [
            (
                403,
                rbac,
                vec![rbac, "https://hub:6443", "context \"hub\" of file", "--context"],
            ),
            (
                401,
                "Unauthorized",
                vec!["credentials", "https://hub:6443", "--context"],
            ),
        ];
        let answer = |code: u16, message: &str| {
            let body = json!({"kind": "Status", "code": code, "message": message}).to_string();
            Response::builder()
                .status(code)
                .body(Body::from(body.into_bytes()))
                .unwrap()
        };
        let message_by = async |code, message, origin: &Origin| {
            let named = naming(answer(code, message), origin, None).await;
            let bytes = named.into_body().collect().await.unwrap().to_bytes();
            let status: Value = serde_json::from_slice(&bytes).unwrap();
            status["message"].as_str().unwrap().to_owned()
        };
        let message_of = async |code, message| message_by(code, message, &origin).await;
        for (code, message, needed) in cases {
            let message = message_of(code, message).await;
            for each in needed {
                assert!(message.contains(each), "{each}: {message}");
            }
        }
        // A denial by admission does not depend on the caller.
        let denied = "admission webhook \"x\" denied the request: no";
        assert_eq!(message_of(403, denied).await, denied);

        // A hub without clusters/proxy denies the Cluster; a member's own 404 stays.
        let missing = "clusters.cluster.karmada.io \"m1\" not found";
        for (message, member, is_explained) in [
            (missing, Some("m1"), true),
            (missing, Some("m2"), false),
            (missing, None, false),
            ("pods \"web\" not found", Some("m1"), false),
        ] {
            let named = naming(answer(404, message), &origin, member).await;
            let bytes = named.into_body().collect().await.unwrap().to_bytes();
            let status: Value = serde_json::from_slice(&bytes).unwrap();
            let shown = status["message"].as_str().unwrap();
            assert!(shown.starts_with(message), "{shown}");
            assert_eq!(shown.contains("entourage proxy"), is_explained, "{shown}");
        }

        let of_hub = Origin {
            url: "https://m1:6443".into(),
            member: Some("m1".into()),
            ..Origin::default()
        };
        for (code, message) in [(403, rbac), (401, "Unauthorized")] {
            let message = message_by(code, message, &of_hub).await;
            for each in ["https://m1:6443", "entourage join m1", "--allow"] {
                assert!(message.contains(each), "{each}: {message}");
            }
        }
    }
}

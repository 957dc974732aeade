//! The failures of calls to an API server, and their classification.
//!
//! API servers repeat values of the object in their refusals ("Invalid value: ..."). A [`Failure`] therefore has no `Display`,
//! its `Debug` shows no server text, and a caller that needs the text names the kind ([`Failure::text`]): for Secrets and
//! ConfigMaps only reasons and field paths are returned.

use std::{error::Error as _, fmt, time::Duration};

use entourage_core::object::Gvk;
use serde_json::Value;

mod right;

/// The maximum length of a server's message that is passed on, in characters.
const LONGEST_TEXT: usize = 512;
/// The maximum time that a Retry-After is followed, in seconds.
const LONGEST_REST: u64 = 60;

/// The reason why the control plane as a whole stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The hub's client could not be built.
    #[error("cannot build the client of the hub: {0}")]
    Client(String),
    /// The health and metrics endpoint could not be served.
    #[error("cannot serve health and metrics: {0}")]
    Serve(#[from] std::io::Error),
    /// The process runs without leader election, and another one leads.
    #[error(
        "lease {lease} is held by {holder}: another process runs against this hub; stop it, or start this one with --leader-elect=true to stand by"
    )]
    Held {
        /// Namespace and name of the Lease.
        lease: String,
        /// The holder.
        holder: String,
    },
    /// The durations of the lease do not fit together.
    #[error("{0}")]
    Timing(&'static str),
    /// The scheduler estimators cannot be asked with these settings.
    #[error("the scheduler estimators cannot be asked: {0}")]
    Estimators(String),
    /// A task that must run as long as the process ended.
    #[error("the {0} ended unexpectedly")]
    Ended(&'static str),
}

/// The failure of one call to an API server.
#[derive(Clone)]
pub enum Failure {
    /// No response: connection refused, reset, TLS. The outcome of a write is unknown.
    Transport(String),
    /// No response before the deadline. The outcome of a write is unknown.
    Timeout(Duration),
    /// The server answered with an error.
    Answer(Box<Answer>),
    /// The server's response could not be read. The outcome of a write is unknown.
    Garbled(String),
    /// Nothing was sent: this process may no longer write.
    Abandoned,
}

/// An error returned by an API server.
#[derive(Clone, Default)]
pub struct Answer {
    /// HTTP status code.
    pub code: u16,
    /// `Status.reason`, e.g. `AlreadyExists`.
    pub reason: String,
    /// `Status.details.kind`, e.g. `namespaces`.
    pub kind: String,
    /// `Status.details.causes`: field path and reason.
    pub fields: Vec<(String, String)>,
    /// The Retry-After header or `Status.details.retryAfterSeconds`, at most a minute.
    pub retry_after: Option<Duration>,
    /// `Status.message`; may hold content of the object, so it is private.
    message: String,
}

/// The consequence of a failure for the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// 404: the object, its namespace or its kind does not exist.
    Missing,
    /// 409 because the name is taken.
    Exists,
    /// 409 because the object changed.
    Conflict,
    /// 410: the resourceVersion is too old.
    Expired,
    /// 401: the credentials are refused.
    Unauthorized,
    /// 429 or 5xx: the server asks to retry later.
    Busy,
    /// No response, or one that cannot be read: the outcome is unknown.
    Unknown,
    /// Nothing was sent, for a reason of this process.
    Abandoned,
    /// Any other 4xx: only a user can fix it.
    Refused,
}

impl Answer {
    /// From an HTTP status, the Retry-After header in seconds, and the body, which is a `Status` or anything else.
    #[must_use]
    pub fn read(code: u16, retry_after: Option<u64>, body: &[u8]) -> Self {
        let status: Value = serde_json::from_slice(body).unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let details = &status["details"];
        let seconds = retry_after.or_else(|| details["retryAfterSeconds"].as_u64().filter(|each| *each > 0));
        Self {
            code,
            reason: text(&status["reason"]),
            kind: text(&details["kind"]),
            fields: details["causes"]
                .as_array()
                .map(|all| {
                    all.iter()
                        .map(|each| (text(&each["field"]), text(&each["reason"])))
                        .collect()
                })
                .unwrap_or_default(),
            retry_after: seconds.map(|each| Duration::from_secs(each.min(LONGEST_REST))),
            message: text(&status["message"]),
        }
    }
}

impl Failure {
    /// Converts an error of kube's client without a response. The text has the chain of causes, except for credentials that
    /// cannot be obtained: an exec plugin's output is among those causes.
    #[must_use]
    pub fn transport(error: &kube::Error) -> Self {
        if is_about_credentials(error) {
            return Self::Transport(
                "the credentials cannot be obtained (token file or exec plugin)".to_owned(),
            );
        }
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(each) = cause {
            let words = each.to_string();
            if !text.contains(&words) {
                text.push_str(": ");
                text.push_str(&words);
            }
            cause = each.source();
        }
        Self::Transport(cut(&text))
    }

    /// A body that is not the requested one. serde's message is omitted: it may quote the body.
    #[must_use]
    pub fn garbled(error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        Self::Garbled(format!(
            "the answer is not JSON of the expected shape (line {line}, column {column})"
        ))
    }

    /// True if a refusal names an object of this resource. An address that is not served at all is refused without one, and a
    /// proxy that does not know the server behind it may name an object of its own.
    #[must_use]
    pub fn is_about(&self, resource: &str) -> bool {
        matches!(self, Self::Answer(answer) if answer.kind == resource)
    }

    /// The server does not serve a kind.
    #[must_use]
    pub fn not_served(gvk: &Gvk) -> Self {
        let what = format!("{} {}", gvk.api_version(), gvk.kind);
        Self::Answer(Box::new(Answer {
            code: 404,
            reason: "NotFound".to_owned(),
            message: format!("{what} is not served there: install its CustomResourceDefinition"),
            ..Answer::default()
        }))
    }

    /// The server serves a kind in another version only.
    #[must_use]
    pub fn served_in(gvk: &Gvk, version: &str) -> Self {
        let what = format!("{} {}", gvk.api_version(), gvk.kind);
        Self::Answer(Box::new(Answer {
            code: 404,
            reason: "NotFound".to_owned(),
            message: format!(
                "{what} is not served there, only version {version} of it: have it serve {} too",
                gvk.version
            ),
            ..Answer::default()
        }))
    }

    /// The server serves a kind in no version now, and may store objects of it.
    #[must_use]
    pub fn withheld(gvk: &Gvk) -> Self {
        let what = format!("{} {}", gvk.api_version(), gvk.kind);
        Self::Answer(Box::new(Answer {
            code: 404,
            reason: "NotFound".to_owned(),
            message: format!(
                "{what} is served there in no version now, and objects of it may be stored: have it serve {} again, or let the joined \
                 account list customresourcedefinitions there, so that it can see whether the definition is gone",
                gvk.version
            ),
            ..Answer::default()
        }))
    }

    /// The agent of a member in Pull mode does not report that its cluster serves a kind.
    #[must_use]
    pub fn not_reported(gvk: &Gvk, cluster: &str) -> Self {
        let what = format!("{} {}", gvk.api_version(), gvk.kind);
        Self::Answer(Box::new(Answer {
            code: 404,
            reason: "NotFound".to_owned(),
            message: not_reported(&what, cluster),
            ..Answer::default()
        }))
    }

    /// The class of the failure.
    #[must_use]
    pub fn class(&self) -> Class {
        let answer = match self {
            Self::Answer(answer) => answer,
            Self::Abandoned => return Class::Abandoned,
            Self::Transport(_) | Self::Timeout(_) | Self::Garbled(_) => return Class::Unknown,
        };
        match (answer.code, answer.reason.as_str()) {
            (401, _) => Class::Unauthorized,
            (404, _) => Class::Missing,
            (409, "AlreadyExists") => Class::Exists,
            (409, _) => Class::Conflict,
            (410, _) => Class::Expired,
            (429 | 500..=599, _) => Class::Busy,
            _ => Class::Refused,
        }
    }

    /// True if there was no response at all: the server may be gone.
    #[must_use]
    pub const fn has_no_response(&self) -> bool {
        matches!(self, Self::Transport(_) | Self::Timeout(_))
    }

    /// True if the server is overloaded or unreachable: fewer concurrent requests may help. A 500 is about one request.
    #[must_use]
    pub const fn is_overload(&self) -> bool {
        self.has_no_response() || matches!(self.code(), 429 | 502..=504)
    }

    /// True if a write failed because its namespace does not exist.
    #[must_use]
    pub fn is_namespace_missing(&self) -> bool {
        matches!(self, Self::Answer(answer) if answer.code == 404 && answer.kind == "namespaces")
    }

    /// The time after which the server asks to retry, or `None`.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        if let Self::Answer(answer) = self {
            answer.retry_after
        } else {
            None
        }
    }

    /// The right whose want the server names as the reason of its refusal: `patch deployments.apps/status`.
    #[must_use]
    pub fn denied_right(&self) -> Option<String> {
        match self {
            Self::Answer(answer) if answer.code == 403 => right::right(&answer.message),
            _ => None,
        }
    }

    /// The HTTP status code, 0 without a response; for metrics.
    #[must_use]
    pub const fn code(&self) -> u16 {
        if let Self::Answer(answer) = self {
            answer.code
        } else {
            0
        }
    }

    /// The text of the failure that may leave the process, given the kind of the object that was sent.
    ///
    /// For a kind with data (Secret, ConfigMap) the server's own message is withheld, because it may quote the data; the reason
    /// and the field paths remain.
    #[must_use]
    pub fn text(&self, gvk: &Gvk) -> String {
        match self {
            Self::Transport(text) | Self::Garbled(text) => text.clone(),
            Self::Timeout(after) => format!("no response within {} s", after.as_secs()),
            Self::Abandoned => "this process is not the leader any more".to_owned(),
            Self::Answer(answer) if holds_data(gvk) || answer.message.is_empty() => answer.outline(),
            Self::Answer(answer) => cut(&answer.message),
        }
    }
}

impl Answer {
    /// The quoted name that follows these words in the server's message, or `None` if it is no DNS name: it identifies the
    /// webhook, and is no content of an object.
    fn named_after(&self, words: &str) -> Option<&str> {
        let rest = self.message.split_once(words)?.1.strip_prefix(" \"")?;
        let name = rest.split_once('"')?.0;
        let is_dns = |each: char| each.is_ascii_lowercase() || each.is_ascii_digit() || ".-".contains(each);
        (name.len() <= 253 && name.chars().all(is_dns)).then_some(name)
    }

    fn outline(&self) -> String {
        let mut text = format!("{} {}", self.code, self.reason);
        for (field, reason) in &self.fields {
            text.push_str(&format!("; {field}: {reason}"));
        }
        for words in ["failed calling webhook", "admission webhook"] {
            if let Some(name) = self.named_after(words) {
                text.push_str(&format!("; {words} {name:?}"));
            }
        }
        cut(text.trim_end())
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Transport(text) => write!(f, "Transport({text})"),
            Self::Garbled(text) => write!(f, "Garbled({text})"),
            Self::Timeout(after) => write!(f, "Timeout({after:?})"),
            Self::Abandoned => f.write_str("Abandoned"),
            Self::Answer(answer) => write!(f, "Answer({} {})", answer.code, answer.reason),
        }
    }
}

/// True if refusals of a kind may quote data that must not be shown.
#[must_use]
pub fn holds_data(gvk: &Gvk) -> bool {
    (gvk.group.is_empty() && matches!(&*gvk.kind, "Secret" | "ConfigMap"))
        // A distribution contains one.
        || (&*gvk.group == "apps.kruise.io" && &*gvk.kind == "ResourceDistribution")
        // A Work may carry one.
        || (&*gvk.group == "work.karmada.io" && &*gvk.kind == "Work")
}

/// The message about a kind that the agent of a member in Pull mode does not report.
pub(crate) fn not_reported(what: &str, cluster: &str) -> String {
    format!(
        "{what} is not among the APIs that the agent of {cluster} reports in status.apiEnablements of its Cluster: install its \
         CustomResourceDefinition there, or let the agent discover it; it reports within 5 minutes"
    )
}

fn is_about_credentials(error: &kube::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(each) = cause {
        if each.is::<kube::client::AuthError>() || matches!(each.downcast_ref(), Some(kube::Error::Auth(_))) {
            return true;
        }
        cause = each.source();
    }
    false
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(code: u16, status: &Value) -> Failure {
        Failure::Answer(Box::new(Answer::read(code, None, status.to_string().as_bytes())))
    }

    #[test]
    fn a_refused_secret_is_described_without_the_servers_sentence() {
        let failure = answer(
            422,
            &json!({"reason": "Invalid", "message": "data[k]: Invalid value: \"canary\"",
                "details": {"causes": [{"field": "data[k]", "reason": "FieldValueInvalid", "message": "canary"}]}}),
        );
        for kind in ["Secret", "ConfigMap"] {
            assert_eq!(
                failure.text(&Gvk::new("v1", kind)),
                "422 Invalid; data[k]: FieldValueInvalid"
            );
        }
        assert!(!format!("{failure:?}").contains("canary"));
        assert!(
            failure
                .text(&Gvk::new("apps/v1", "Deployment"))
                .contains("Invalid value")
        );
    }

    #[test]
    fn a_webhook_that_fails_is_named_also_of_a_secret_and_without_the_rest_of_the_sentence() {
        for (words, reported) in [
            (
                "Internal error occurred: failed calling webhook \"guard.example.com\": canary",
                "failed calling webhook",
            ),
            (
                "admission webhook \"guard.example.com\" denied the request: canary",
                "admission webhook",
            ),
        ] {
            let failure = answer(500, &json!({"reason": "InternalError", "message": words}));
            let text = failure.text(&Gvk::new("v1", "Secret"));
            assert_eq!(
                text,
                format!("500 InternalError; {reported} \"guard.example.com\"")
            );
        }
        let odd = json!({"reason": "InternalError", "message": "failed calling webhook \"a canary\": x"});
        assert_eq!(
            answer(500, &odd).text(&Gvk::new("v1", "Secret")),
            "500 InternalError"
        );
    }

    #[test]
    fn what_an_exec_plugin_printed_is_not_passed_on() {
        let reported = kube::client::AuthError::AuthExec("canary".into());
        for error in [
            kube::Error::Auth(reported),
            kube::Error::Service(Box::new(kube::client::AuthError::AuthExec("canary".into()))),
        ] {
            let text = Failure::transport(&error).text(&Gvk::new("v1", "Cluster"));
            assert!(text.contains("credentials") && !text.contains("canary"), "{text}");
        }
    }

    #[test]
    fn only_what_fewer_requests_may_help_is_overload() {
        for code in [429, 502, 503, 504] {
            assert!(answer(code, &json!({})).is_overload(), "{code}");
        }
        for code in [400, 404, 409, 500] {
            assert!(!answer(code, &json!({})).is_overload(), "{code}");
        }
        assert!(Failure::Timeout(Duration::from_secs(1)).is_overload());
        assert!(!Failure::Abandoned.is_overload());
    }

    #[test]
    fn nobody_is_left_alone_for_more_than_a_minute() {
        let failure = Failure::Answer(Box::new(Answer::read(503, Some(86_400), b"")));
        assert_eq!(failure.retry_after(), Some(Duration::from_secs(60)));
    }

    #[test]
    fn a_long_message_is_cut_at_a_character() {
        let failure = answer(400, &json!({"message": "ä".repeat(600)}));
        assert_eq!(
            failure.text(&Gvk::new("v1", "Service")).chars().count(),
            LONGEST_TEXT + 1
        );
    }

    #[test]
    fn every_status_code_has_its_class() {
        let cases = [
            (401, "Unauthorized", Class::Unauthorized),
            (403, "Forbidden", Class::Refused),
            (404, "NotFound", Class::Missing),
            (409, "AlreadyExists", Class::Exists),
            (409, "Conflict", Class::Conflict),
            (410, "Expired", Class::Expired),
            (413, "", Class::Refused),
            (422, "Invalid", Class::Refused),
            (429, "TooManyRequests", Class::Busy),
            (500, "InternalError", Class::Busy),
            (503, "", Class::Busy),
        ];
        for (code, reason, class) in cases {
            assert_eq!(
                answer(code, &json!({"reason": reason})).class(),
                class,
                "{code} {reason}"
            );
        }
        assert_eq!(Failure::Timeout(Duration::from_secs(1)).class(), Class::Unknown);
    }

    #[test]
    fn a_body_that_is_no_status_still_gives_an_answer() {
        let failure = Failure::Answer(Box::new(Answer::read(502, Some(7), b"<html>")));
        assert_eq!(failure.class(), Class::Busy);
        assert_eq!(failure.retry_after(), Some(Duration::from_secs(7)));
    }
}

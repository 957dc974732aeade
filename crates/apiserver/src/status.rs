//! The error of a failed request: the `Status` object, and the list of field errors it is made of.
//!
//! Texts and codes are those of a kube-apiserver: clients and people match on them.

use serde_json::{Map, Value, json};

pub mod field;

pub use field::{FieldError, Problem};

/// The answer to a request that failed, ready to be sent as a `Status`.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// The HTTP status code, which is also in the body.
    pub code: u16,
    /// The machine-readable reason; empty where the server gives none.
    pub reason: String,
    /// The message for people.
    pub message: String,
    /// `details`; `None` leaves the field out, an empty map is sent as `{}`.
    pub details: Option<Map<String, Value>>,
    /// Seconds for the Retry-After header.
    pub retry_after: Option<u32>,
    /// `metadata.continue` and the like; empty as a rule.
    pub metadata: Map<String, Value>,
    /// Texts for the Warning header: those from before the request failed.
    pub warnings: Vec<String>,
}

/// The result of whatever may be refused. The error is boxed: it is rare and large.
pub type Result<T> = std::result::Result<T, Box<Status>>;

/// The resource an error is about: `deployments` of group `apps`; for field errors the kind takes its place.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// API group, empty for the core group.
    pub group: &'a str,
    /// Plural resource name, or the kind for errors that speak of kinds.
    pub resource: &'a str,
    /// Name of the object.
    pub name: &'a str,
}

impl About<'_> {
    /// `deployments.apps`, or `configmaps` in the core group.
    fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.resource.to_owned()
        } else {
            format!("{}.{}", self.resource, self.group)
        }
    }

    fn details(&self) -> Map<String, Value> {
        let mut details = Map::new();
        for (key, value) in [
            ("name", self.name),
            ("group", self.group),
            ("kind", self.resource),
        ] {
            if !value.is_empty() {
                details.insert(key.to_owned(), value.into());
            }
        }
        details
    }
}

impl Status {
    /// A status without details. The other constructors are this one with a fixed code and reason.
    #[must_use]
    pub fn new(code: u16, reason: &str, message: impl Into<String>) -> Box<Self> {
        Box::new(Self {
            code,
            reason: reason.to_owned(),
            message: message.into(),
            details: None,
            retry_after: None,
            metadata: Map::new(),
            warnings: Vec::new(),
        })
    }

    /// 404 for an object that is not there.
    #[must_use]
    pub fn not_found(about: About<'_>) -> Box<Self> {
        let message = format!("{} {:?} not found", about.qualified(), about.name);
        Self::new(404, "NotFound", message).with_details(about.details())
    }

    /// 404 for a path below a known group that leads nowhere.
    #[must_use]
    pub fn no_such_path() -> Box<Self> {
        Self::new(
            404,
            "NotFound",
            "the server could not find the requested resource",
        )
        .with_details(Map::new())
    }

    /// 409 for a name that is taken.
    #[must_use]
    pub fn already_exists(about: About<'_>) -> Box<Self> {
        let message = format!("{} {:?} already exists", about.qualified(), about.name);
        Self::new(409, "AlreadyExists", message).with_details(about.details())
    }

    /// 409: another write was faster, or a precondition does not hold.
    #[must_use]
    pub fn conflict(about: About<'_>, why: &str) -> Box<Self> {
        let message = format!(
            "Operation cannot be fulfilled on {} {:?}: {why}",
            about.qualified(),
            about.name
        );
        Self::new(409, "Conflict", message).with_details(about.details())
    }

    /// 400.
    #[must_use]
    pub fn bad_request(message: impl Into<String>) -> Box<Self> {
        Self::new(400, "BadRequest", message)
    }

    /// 403 for a verb on an object.
    #[must_use]
    pub fn forbidden(about: About<'_>, why: &str) -> Box<Self> {
        let message = if about.name.is_empty() {
            format!("{} is forbidden: {why}", about.qualified())
        } else {
            format!("{} {:?} is forbidden: {why}", about.qualified(), about.name)
        };
        Self::new(403, "Forbidden", message).with_details(about.details())
    }

    /// 405: the path exists, the verb does not.
    #[must_use]
    pub fn method_not_allowed() -> Box<Self> {
        Self::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )
        .with_details(Map::new())
    }

    /// 410: the resourceVersion is older than what the server remembers.
    #[must_use]
    pub fn expired(message: impl Into<String>) -> Box<Self> {
        Self::new(410, "Expired", message)
    }

    /// 422: `about.resource` is the KIND here. The message lists every error as the server does: one alone, or several in brackets.
    #[must_use]
    pub fn invalid(about: About<'_>, errors: &[FieldError]) -> Box<Self> {
        let message = format!(
            "{} {:?} is invalid: {}",
            about.qualified(),
            about.name,
            field::summary(errors)
        );
        let mut details = about.details();
        if !errors.is_empty() {
            let causes = errors.iter().map(FieldError::cause).collect();
            details.insert("causes".to_owned(), Value::Array(causes));
        }
        Self::new(422, "Invalid", message).with_details(details)
    }

    /// 500 with the reason InternalError, as the server's own errors are reported.
    #[must_use]
    pub fn internal(message: &str) -> Box<Self> {
        let mut details = Map::new();
        details.insert("causes".to_owned(), json!([{"message": message}]));
        Self::new(
            500,
            "InternalError",
            format!("Internal error occurred: {message}"),
        )
        .with_details(details)
    }

    /// 500 without a reason: what the server answers where it did not foresee an error.
    #[must_use]
    pub fn unforeseen(message: impl Into<String>) -> Box<Self> {
        Self::new(500, "", message)
    }

    /// The same with these details.
    #[must_use]
    pub fn with_details(mut self: Box<Self>, details: Map<String, Value>) -> Box<Self> {
        self.details = Some(details);
        self
    }

    /// The same with these texts for the Warning header.
    #[must_use]
    pub fn with_warnings(mut self: Box<Self>, warnings: Vec<String>) -> Box<Self> {
        self.warnings = warnings;
        self
    }

    /// The same with a Retry-After of `seconds`, in the header and in the details.
    #[must_use]
    pub fn with_retry_after(mut self: Box<Self>, seconds: u32) -> Box<Self> {
        self.retry_after = Some(seconds);
        self.details
            .get_or_insert_with(Map::new)
            .insert("retryAfterSeconds".to_owned(), seconds.into());
        self
    }

    /// The `Status` object of `meta/v1`.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": self.metadata, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.as_str().into();
        }
        if let Some(details) = &self.details {
            status["details"] = Value::Object(details.clone());
        }
        status
    }
}

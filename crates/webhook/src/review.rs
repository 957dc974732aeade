//! Converts the JSON of a review to the JSON of its response. Reads only the fields that rules need, and logs nothing.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use entourage_admission::{
    self as admission, Around, Operation, Refusal, Request, Settings, configuration,
    inquiry::{self, Inquiry},
};
use serde::Deserialize;
use serde_json::{Value, json};

/// The supported versions of reviews.
const VERSIONS: [&str; 2] = ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"];

/// A review as received.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Review {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    request: Option<Asked>,
}

/// Debug output omits the content: it may be about a Secret.
impl std::fmt::Debug for Review {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Review")
            .field("api_version", &self.api_version)
            .finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    uid: String,
    kind: Kind,
    #[serde(default)]
    sub_resource: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    name: String,
    operation: String,
    #[serde(default)]
    user_info: Author,
    object: Option<Value>,
    old_object: Option<Value>,
}

/// The user who requests a write.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct Author {
    /// The name of the user.
    pub username: String,
    /// Distinguishes users of the same name; often empty.
    pub uid: String,
    /// The user's groups.
    pub groups: Vec<String>,
    /// Further attributes of the authentication.
    pub extra: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
struct Kind {
    #[serde(default)]
    group: String,
    #[serde(default)]
    version: String,
    kind: String,
}

/// Objects that a write is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Others<'a> {
    /// API group of their kind.
    pub group: &'a str,
    /// Its version.
    pub version: &'a str,
    /// Their kind.
    pub kind: &'a str,
    /// Their namespace; `None`: all namespaces.
    pub namespace: Option<&'a str>,
}

/// The type of a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Mutation: defaults are filled in.
    Mutate,
    /// Validation: the write is allowed or denied.
    Validate,
}

impl Question {
    /// The type of the reviews at a path, or `None` for other paths.
    #[must_use]
    pub fn at(path: &str) -> Option<Self> {
        match path {
            configuration::MUTATE_PATH => Some(Self::Mutate),
            configuration::VALIDATE_PATH => Some(Self::Validate),
            _ => None,
        }
    }
}

impl Review {
    /// Reads a review.
    ///
    /// # Errors
    /// The error in the body, for the sender, without any of its content.
    pub fn read(body: &[u8]) -> Result<Self, String> {
        // The parser's own message may quote the body.
        let review: Self = serde_json::from_slice(body).map_err(|error| {
            format!(
                "the body is not an AdmissionReview: {:?} error at line {} column {}",
                error.classify(),
                error.line(),
                error.column()
            )
        })?;
        if review.kind != "AdmissionReview" || !VERSIONS.contains(&review.api_version.as_str()) {
            return Err(format!("send an AdmissionReview of {}", VERSIONS.join(" or ")));
        }
        if review.request.is_none() {
            return Err("the review has no request".to_owned());
        }
        Ok(review)
    }

    /// The objects that the rules compare it with, or `None` if they need none.
    #[must_use]
    pub fn looks_around(&self) -> Option<Others<'_>> {
        let asked = self.request.as_ref()?;
        let request = asked.request(&[], Settings::default())?;
        let namespace = match admission::looks_around(&request)? {
            Around::Everywhere => None,
            Around::Namespace => Some(asked.namespace.as_str()),
        };
        Some(Others {
            group: &asked.kind.group,
            version: &asked.kind.version,
            kind: &asked.kind.kind,
            namespace,
        })
    }

    /// Returns the response. `others`: the objects of [`looks_around`](Self::looks_around).
    #[must_use]
    pub fn answered(&self, question: Question, others: &[Value], settings: Settings) -> Value {
        let request = self
            .request
            .as_ref()
            .and_then(|asked| asked.request(others, settings));
        let Some(request) = request else {
            // Subresources and operations without rules.
            return self.answer(&json!({"allowed": true}));
        };
        let response = match question {
            Question::Mutate => {
                let patch = admission::mutate(&request);
                if patch.is_empty() {
                    json!({"allowed": true})
                } else {
                    let patch = STANDARD.encode(Value::Array(patch).to_string());
                    json!({"allowed": true, "patchType": "JSONPatch", "patch": patch})
                }
            }
            Question::Validate => match admission::validate(&request) {
                Ok(()) => return self.allowed(&[]),
                Err(refusal) => refused(&refusal, &request),
            },
        };
        self.answer(&response)
    }

    /// The requests to the hub for a write that the rules allow, its author, and true if it is an update; `None` if no request
    /// is needed.
    #[must_use]
    pub fn inquiry(&self) -> Option<(Inquiry, &Author, bool)> {
        let asked = self.request.as_ref()?;
        let request = asked.request(&[], Settings::default())?;
        let is_change = request.operation == Operation::Update;
        Some((inquiry::inquiry(&request)?, &asked.user_info, is_change))
    }

    /// The response to an allowed write, with the warnings of the rules and further ones for its author.
    #[must_use]
    pub fn allowed(&self, more: &[String]) -> Value {
        let mut response = json!({"allowed": true});
        let asked = self.request.as_ref();
        let request = asked.and_then(|asked| asked.request(&[], Settings::default()));
        let noted = request.as_ref().map(admission::warnings).unwrap_or_default();
        let warnings: Vec<String> = noted
            .iter()
            .map(ToString::to_string)
            .chain(more.to_vec())
            .collect();
        if !warnings.is_empty() {
            response["warnings"] = warnings.into();
        }
        self.answer(&response)
    }

    /// The response to a denied write.
    #[must_use]
    pub fn denied(&self, refusal: &Refusal) -> Value {
        let asked = self.request.as_ref();
        let request = asked.and_then(|asked| asked.request(&[], Settings::default()));
        match request {
            Some(request) => self.answer(&refused(refusal, &request)),
            None => self.unanswerable(&refusal.to_string()),
        }
    }

    /// The response to a review that cannot be decided now.
    #[must_use]
    pub fn unanswerable(&self, why: &str) -> Value {
        self.answer(&json!({"allowed": false, "status": {"code": 503, "reason": "ServiceUnavailable", "message": why}}))
    }

    fn answer(&self, response: &Value) -> Value {
        let mut response = response.clone();
        response["uid"] = self.request.as_ref().map_or("", |asked| &asked.uid).into();
        json!({"apiVersion": self.api_version, "kind": "AdmissionReview", "response": response})
    }
}

impl Asked {
    /// The request in the form for the rules; `None` if no rule applies.
    fn request<'a>(&'a self, others: &'a [Value], settings: Settings) -> Option<Request<'a>> {
        if !self.sub_resource.is_empty() {
            return None;
        }
        Some(Request {
            group: &self.kind.group,
            kind: &self.kind.kind,
            namespace: &self.namespace,
            name: &self.name,
            operation: match self.operation.as_str() {
                "CREATE" => Operation::Create,
                "UPDATE" => Operation::Update,
                "DELETE" => Operation::Delete,
                _ => return None,
            },
            object: self.object.as_ref(),
            old: self.old_object.as_ref(),
            others,
            settings,
        })
    }
}

fn refused(refusal: &Refusal, request: &Request<'_>) -> Value {
    let causes: Vec<Value> = refusal
        .problems
        .iter()
        .map(|problem| {
            json!({"field": problem.field, "message": format!("{}; {}", problem.cause, problem.remedy)})
        })
        .collect();
    json!({"allowed": false, "status": {
        "code": refusal.code, "reason": refusal.reason, "message": refusal.to_string(),
        "details": {"group": request.group, "kind": request.kind, "name": request.name, "causes": causes}}})
}

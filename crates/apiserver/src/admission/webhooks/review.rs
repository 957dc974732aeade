//! `AdmissionReview`: the question, and what an answer must be to count.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};

use super::{Hook, Request, States, name_of};
use crate::{object::tree::list, random::new_uid, status::Status};

/// The versions of reviews that this server speaks; a webhook gets the first of its own list that is among them.
const VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// A review as it is sent.
pub(super) struct Question {
    uid: String,
    version: &'static str,
    /// The whole review.
    pub(super) body: Value,
}

/// An answer that counts.
pub(super) struct AdmissionResponse {
    pub(super) allowed: bool,
    /// The JSON patch, not yet read.
    pub(super) patch: Option<Vec<u8>>,
    pub(super) warnings: Vec<String>,
    /// The reason why it is not allowed.
    pub(super) result: Option<Map<String, Value>>,
}

/// The review of a write, its states in the form that the webhook wants.
pub(super) fn question(request: &Request<'_>, hook: &Hook, states: States<'_>) -> Question {
    let accepted = list(&hook.webhook, "admissionReviewVersions");
    let version = accepted
        .iter()
        .find_map(|wanted| VERSIONS.into_iter().find(|known| wanted == known))
        .unwrap_or(VERSIONS[0]);
    let uid = new_uid();
    let (kind, resource) = hook.form.named(request);
    let mut asked = request.to_value();
    let is_namespace = request.resource.group.is_empty() && request.resource.kind == "Namespace";
    if let Value::Object(asked) = &mut asked {
        if kind["kind"] == "Scale" {
            asked.insert("requestKind".to_owned(), kind.clone());
        }
        asked.insert("kind".to_owned(), kind);
        asked.insert("resource".to_owned(), resource);
        asked.insert("uid".to_owned(), uid.clone().into());
        asked.insert("object".to_owned(), json!(states.new));
        asked.insert("oldObject".to_owned(), json!(states.old));
        let name = name_of(request, states);
        if is_namespace && request.operation != "CREATE" {
            asked.insert("namespace".to_owned(), name.clone().into());
        }
        asked.insert("name".to_owned(), name.into());
        asked.insert("options".to_owned(), options(request));
        for key in ["namespace", "subResource", "requestSubResource", "name"] {
            if asked.get(key).is_some_and(|value| value == "") {
                asked.remove(key);
            }
        }
    }
    let api_version = format!("admission.k8s.io/{version}");
    let body = json!({"kind": "AdmissionReview", "apiVersion": api_version, "request": asked});
    Question { uid, version, body }
}

fn options(request: &Request<'_>) -> Value {
    let kind = match request.operation {
        "CREATE" => "CreateOptions",
        "DELETE" => "DeleteOptions",
        _ => "UpdateOptions",
    };
    let mut options = json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"});
    if request.dry_run {
        options["dryRun"] = json!(["All"]);
    }
    options
}

/// The response in the answer of a webhook; an error if it is to another review. The texts are those of a kube-apiserver.
pub(super) fn response(
    question: &Question,
    mutating: bool,
    answer: &Value,
) -> Result<AdmissionResponse, String> {
    let Some(response) = answer.get("response").and_then(Value::as_object) else {
        return Err("webhook response was absent".to_owned());
    };
    let text = |key: &str| response.get(key).and_then(Value::as_str).unwrap_or_default();
    // Reviews of the old version may leave out what they are.
    if question.version == "v1" {
        if text("uid") != question.uid {
            return Err(format!(
                "expected response.uid={:?}, got {:?}",
                question.uid,
                text("uid")
            ));
        }
        let word = |key: &str| answer.get(key).and_then(Value::as_str).unwrap_or_default();
        let got = (word("apiVersion"), word("kind"));
        if got != ("admission.k8s.io/v1", "AdmissionReview") {
            return Err(format!(
                "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {}, Kind={}",
                got.0, got.1
            ));
        }
    }
    let (patch, kind) = (text("patch"), response.get("patchType").and_then(Value::as_str));
    match (mutating, patch.is_empty(), kind) {
        (false, false, _) => return Err("validating webhook may not return response.patch".to_owned()),
        (false, true, Some(_)) => {
            return Err("validating webhook may not return response.patchType".to_owned());
        }
        (true, false, None) if question.version == "v1" => {
            return Err("webhook returned response.patch but not response.patchType".to_owned());
        }
        (true, true, Some(_)) if question.version == "v1" => {
            return Err("webhook returned response.patchType but not response.patch".to_owned());
        }
        (true, false, Some(kind)) if kind != "JSONPatch" => {
            return Err(format!("unsupported patch type {kind:?}"));
        }
        _ => {}
    }
    let patch = if patch.is_empty() {
        None
    } else {
        let bytes = STANDARD.decode(patch);
        Some(bytes.map_err(|error| format!("response.patch is not base64: {error}"))?)
    };
    let warnings = list(response, "warnings").iter().filter_map(Value::as_str);
    Ok(AdmissionResponse {
        allowed: response.get("allowed") == Some(&Value::Bool(true)),
        patch,
        warnings: warnings.map(str::to_owned).collect(),
        result: response.get("status").and_then(Value::as_object).cloned(),
    })
}

/// The error of the request when a webhook denies it: the webhook's code, reason and details, and its message behind its name.
pub(super) fn denied(webhook: &str, result: Option<&Map<String, Value>>) -> Box<Status> {
    let text = |key: &str| {
        let value = result.and_then(|result| result.get(key));
        value.and_then(Value::as_str).unwrap_or_default()
    };
    let code = result
        .and_then(|result| result.get("code"))
        .and_then(Value::as_u64)
        .and_then(|code| u16::try_from(code).ok())
        .filter(|code| (400..600).contains(code))
        .unwrap_or(400);
    let by = format!("admission webhook {webhook:?} denied the request");
    let message = match (text("message"), text("reason")) {
        ("", "") => format!("{by} without explanation"),
        ("", reason) => format!("{by}: {reason}"),
        (message, _) => format!("{by}: {message}"),
    };
    let mut status = Status::new(code, text("reason"), message);
    let details = result.and_then(|result| result.get("details"));
    status.details = details.and_then(Value::as_object).cloned();
    status
}

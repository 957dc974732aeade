//! The requests of the stand-in, and how they are sent.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tower::ServiceExt as _;

use super::parts::text;
use crate::{cluster, object::Object};

/// A request about one object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    /// POST to a collection.
    Create {
        /// Path of the collection.
        path: String,
        /// The object.
        object: Value,
    },
    /// A merge patch.
    Patch {
        /// Path of the object or of its status.
        path: String,
        /// The patch.
        patch: Value,
    },
    /// DELETE, with these options.
    Delete {
        /// Path of the object.
        path: String,
        /// DeleteOptions.
        options: Value,
    },
}

/// Sends the request. Returns the error when it was refused for a reason that may pass without an event.
pub(super) async fn carry_out(service: cluster::Service, action: Action) -> Option<String> {
    let (method, path, content_type, body) = match action {
        Action::Create { path, object } => ("POST", path, "application/json", object),
        Action::Patch { path, patch } => ("PATCH", path, "application/merge-patch+json", patch),
        Action::Delete { path, options } => ("DELETE", path, "application/json", options),
    };
    let request = Request::builder()
        .method(method)
        .uri(&path)
        .header(http::header::CONTENT_TYPE, content_type)
        .header(http::header::USER_AGENT, "kube-controller-manager/stand-in")
        .body(Full::new(Bytes::from(body.to_string())));
    let Ok(request) = request else { return None };
    let Ok(response) = service.oneshot(request).await;
    let status = response.status();
    // Another writer was faster: its event is on its way.
    if status.is_success() || matches!(status.as_u16(), 404 | 409) {
        return None;
    }
    let body = response.into_body().collect().await;
    let reported = body.map(|body| body.to_bytes()).unwrap_or_default();
    let reported = serde_json::from_slice::<Value>(&reported).unwrap_or_default();
    let message = text(&reported["message"]);
    tracing::warn!(
        method,
        path,
        status = status.as_u16(),
        message,
        "the workload stand-in was refused"
    );
    Some(message.to_owned())
}

/// Gives a pod that starts an address of its own, in a range that is not routed.
pub(super) fn address(pod: &Object, action: &mut Action) {
    let Action::Patch { patch, .. } = action else {
        return;
    };
    let status = &mut patch["status"];
    if status["podIP"].is_string() {
        let digest = Sha256::digest(text(&pod["metadata"]["uid"]));
        let ip = format!(
            "198.{}.{}.{}",
            18 + digest[0] % 2,
            digest[1],
            digest[2].clamp(1, 254)
        );
        status["podIPs"] = json!([{"ip": ip}]);
        status["podIP"] = ip.into();
    }
}

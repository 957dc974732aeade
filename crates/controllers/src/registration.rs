//! Approves the CertificateSigningRequests of agents that register or renew their certificate: a list and a watch, one review of the
//! sender's rights for each request, and one write. The decision is [`entourage_core::registration`]; the certificate is signed by the
//! hub's controller manager.
//!
//! A request whose sender lacks the right stays as it is, for an administrator to approve or deny. A failure ends the watch, so that
//! the list brings each request again.

use std::time::Duration;

use entourage_core::{
    object::Gvk,
    registration::{Right, SIGNER, review},
};
use http_body_util::BodyExt as _;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use serde_json::{Value, json};
use tokio::{
    sync::watch as cell,
    time::{sleep, timeout},
};
use tracing::{debug, info, warn};

use crate::{
    client::{Api, Call, Form, lines::Lines, path::Path, read},
    clock,
    error::Failure,
    metrics::Verb,
};

mod signing_request;

/// The time that the server is asked to keep the watch open, in seconds.
const OPEN_FOR: &str = "290";
/// The idle timeout of the watch: longer than the server keeps it open.
const IDLE: Duration = Duration::from_secs(320);
/// The time limit for a request.
const DEADLINE: Duration = Duration::from_secs(10);
/// The shortest pause between two lists.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest one, after failures.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The task that approves.
#[derive(Clone)]
pub(crate) struct Approver {
    pub(crate) hub: Api,
    /// True while this process may write.
    pub(crate) leading: cell::Receiver<bool>,
}

impl Approver {
    /// Approves until it is dropped.
    pub(crate) async fn run(mut self) {
        let mut pause = PAUSE;
        while self.leading.wait_for(|leads| *leads).await.is_ok() {
            match self.round().await {
                Ok(()) => pause = PAUSE,
                Err(failure) => {
                    let error = failure.text(&kind());
                    if pause == PAUSE {
                        warn!(
                            error,
                            "CertificateSigningRequests of agents cannot be approved; retrying. The controllers need the \
                             rights of config/rbac-registration on the hub"
                        );
                    } else {
                        debug!(error, "CertificateSigningRequests of agents cannot be approved");
                    }
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
            sleep(pause.mul_f64(1.0 + clock::jitter() / 2.0)).await;
        }
    }

    /// One list and one watch.
    async fn round(&self) -> Result<(), Failure> {
        let all = requests("").query("fieldSelector", &format!("spec.signerName={SIGNER}"));
        let call = Call {
            verb: Verb::Get,
            path: &all,
            accept: Form::Whole.accept_list(),
            body: None,
            deadline: Some(DEADLINE),
        };
        let bytes = self.hub.bytes(call).await?;
        let mut found = Vec::new();
        let meta =
            read::list(&bytes, &mut |each| found.push(each)).map_err(|error| Failure::garbled(&error))?;
        drop(bytes);
        for object in found {
            self.review(object).await?;
        }
        let watch = all
            .query("watch", "true")
            .query("timeoutSeconds", OPEN_FOR)
            .query("resourceVersion", &meta.resource_version);
        let mut body = self.hub.open(&watch, Form::Whole.accept()).await?;
        let mut lines = Lines::default();
        while let Ok(Some(Ok(frame))) = timeout(IDLE, body.frame()).await {
            let Ok(data) = frame.into_data() else { continue };
            lines.push(&data);
            while let Some(line) = lines.next() {
                let (event, object) = read::event(line).map_err(|error| Failure::garbled(&error))?;
                match event.as_str() {
                    "ADDED" | "MODIFIED" => self.review(object).await?,
                    "DELETED" => {}
                    // The revision is too old: the next round lists.
                    _ => return Ok(()),
                }
            }
            if lines.is_too_long() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Approves one request if its sender has the right.
    async fn review(&self, object: Value) -> Result<(), Failure> {
        let Ok(request) = serde_json::from_value::<CertificateSigningRequest>(object.clone()) else {
            return Ok(());
        };
        let name = request.metadata.name.as_deref().unwrap_or_default();
        let Some(asked) = signing_request::read(&request) else {
            debug!(name, "the CertificateSigningRequest cannot be parsed");
            return Ok(());
        };
        let Some((cluster, rights)) = review(&asked) else {
            return Ok(());
        };
        for right in rights {
            if self.is_permitted(&request, cluster, *right).await? {
                self.approve(name, object, *right).await?;
                info!(
                    name,
                    cluster,
                    ?right,
                    sender = asked.username,
                    "the agent's CertificateSigningRequest is approved"
                );
                return Ok(());
            }
        }
        info!(
            name,
            cluster,
            sender = asked.username,
            "the CertificateSigningRequest for an agent is left to an administrator: its sender may not create \
             certificatesigningrequests/clusteragent of this name. To accept it: kubectl certificate approve"
        );
        Ok(())
    }

    async fn is_permitted(
        &self,
        request: &CertificateSigningRequest,
        cluster: &str,
        right: Right,
    ) -> Result<bool, Failure> {
        let spec = &request.spec;
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {
                "user": spec.username, "uid": spec.uid, "groups": spec.groups, "extra": spec.extra,
                "resourceAttributes": {
                    "group": "certificates.k8s.io", "version": "*", "resource": "certificatesigningrequests",
                    "subresource": right.subresource(), "verb": "create", "name": cluster,
                },
            },
        });
        let path = Path::raw(
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            "subjectaccessreviews",
        );
        let answer = self.hub.create(&path, &review, Form::Whole).await?;
        Ok(answer["status"]["allowed"] == true)
    }

    /// Sets the condition. The revision that was reviewed is written: one that changed since is reviewed again.
    async fn approve(&self, name: &str, mut object: Value, right: Right) -> Result<(), Failure> {
        let message = match right {
            Right::Renewal => "The agent renews its certificate.",
            Right::Registration => "The sender may register this cluster.",
        };
        let approved =
            json!({"type": "Approved", "status": "True", "reason": "AutoApproved", "message": message});
        match object["status"]["conditions"].as_array_mut() {
            Some(conditions) => conditions.push(approved),
            None => object["status"]["conditions"] = json!([approved]),
        }
        // A list has no kinds in its items.
        object["apiVersion"] = json!("certificates.k8s.io/v1");
        object["kind"] = json!("CertificateSigningRequest");
        self.hub
            .replace(&requests(&format!("/{name}/approval")), &object, Form::Metadata)
            .await
            .map(drop)
    }
}

fn kind() -> Gvk {
    Gvk::new("certificates.k8s.io/v1", "CertificateSigningRequest")
}

/// The address of a request, or of all with an empty `rest`.
fn requests(rest: &str) -> Path {
    Path::raw(
        format!("/apis/certificates.k8s.io/v1/certificatesigningrequests{rest}"),
        "certificatesigningrequests",
    )
}

#[cfg(test)]
mod tests;

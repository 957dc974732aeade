//! Approves the CertificateSigningRequests of agents that register or renew their certificate: a list and a watch, one review of the
//! sender's rights for each request, and one write. The decision is [`entourage_core::registration`]; the certificate is signed by the
//! hub's controller manager.
//!
//! A request whose sender lacks the right stays as it is, for an administrator to approve or deny. One whose review fails is
//! reviewed again with the next list, which is not far, and holds up no other.

use std::{collections::BTreeSet, time::Duration};

use entourage_core::{
    object::Gvk,
    registration::{Right, SIGNER, review},
};
use http_body_util::BodyExt as _;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use serde::Deserialize as _;
use serde_json::{Value, json};
use tokio::{
    sync::watch as cell,
    time::{Instant, sleep, timeout_at},
};
use tracing::{debug, info, warn};

use crate::{
    client::{Api, Call, Form, lines::Lines, path::Path, read},
    clock,
    error::{Class, Failure},
    metrics::Verb,
};

mod signing_request;

/// The time that the server is asked to keep the watch open, in seconds.
const OPEN_FOR: &str = "290";
/// The idle timeout of the watch: longer than the server keeps it open.
const IDLE: Duration = Duration::from_secs(320);
/// The number of requests in a page of the list.
const PAGE: &str = "100";
/// The shortest pause between two lists, and the time until a review that failed is repeated.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest one, after failures.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The task that approves.
#[derive(Clone)]
pub(crate) struct Approver {
    pub(crate) hub: Api,
    /// True while this process may write.
    pub(crate) leading: cell::Receiver<bool>,
    /// The requests that are left to an administrator, by uid, of those that the last list had: the log names each once.
    left: BTreeSet<String>,
}

/// The end of a review.
#[derive(Debug, PartialEq, Eq)]
enum Reviewed {
    /// Nothing is left to do.
    Done,
    /// It failed, and is repeated.
    Again,
}

impl Approver {
    pub(crate) fn new(hub: Api, leading: cell::Receiver<bool>) -> Self {
        Self {
            hub,
            leading,
            left: BTreeSet::new(),
        }
    }

    /// Approves until it is dropped.
    pub(crate) async fn run(mut self) {
        let mut pause = PAUSE;
        let mut is_failing = false;
        while self.leading.wait_for(|leads| *leads).await.is_ok() {
            let again = match self.round(pause).await {
                Ok(reviewed) => {
                    is_failing = false;
                    reviewed == Reviewed::Again
                }
                Err(failure) => {
                    report(&failure, std::mem::replace(&mut is_failing, true));
                    true
                }
            };
            pause = if again {
                (pause * 2).min(LONGEST_PAUSE)
            } else {
                PAUSE
            };
            let rest = if is_failing { pause } else { PAUSE };
            sleep(rest.mul_f64(1.0 + clock::jitter() / 2.0)).await;
        }
    }

    /// One list and one watch. A review that failed ends the watch after `pause`, and is repeated with the next list; the others go on.
    ///
    /// Errors: the requests cannot be listed or watched.
    async fn round(&mut self, pause: Duration) -> Result<Reviewed, Failure> {
        let all = requests("").query("fieldSelector", &format!("spec.signerName={SIGNER}"));
        let (mut next, mut again, mut left) = (String::new(), None, BTreeSet::new());
        let version = loop {
            let mut page = all.clone().query("limit", PAGE);
            if !next.is_empty() {
                page = page.query("continue", &next);
            }
            let (objects, meta) = self.page(&page).await?;
            for object in objects {
                if self.review(object, &mut left).await == Reviewed::Again {
                    again = Some(Instant::now() + pause);
                }
            }
            next = meta.next;
            if next.is_empty() {
                break meta.resource_version;
            }
        };
        self.left = left;
        let watch = all
            .query("watch", "true")
            .query("timeoutSeconds", OPEN_FOR)
            .query("resourceVersion", &version);
        let mut body = self.hub.open(&watch, Form::Whole.accept()).await?;
        let (mut lines, mut left) = (Lines::default(), std::mem::take(&mut self.left));
        'watch: loop {
            let until = again.unwrap_or_else(|| Instant::now() + IDLE);
            let Ok(Some(Ok(frame))) = timeout_at(until, body.frame()).await else {
                break;
            };
            let Ok(data) = frame.into_data() else { continue };
            lines.push(&data);
            while let Some(line) = lines.next() {
                let Ok((event, object)) = read::event(line) else {
                    break 'watch;
                };
                match event.as_str() {
                    "ADDED" | "MODIFIED" => {
                        if self.review(object, &mut left).await == Reviewed::Again {
                            again = again.or_else(|| Some(Instant::now() + pause));
                        }
                    }
                    "DELETED" => {}
                    // The revision is too old: the next round lists.
                    _ => break 'watch,
                }
            }
            if lines.is_too_long() {
                break;
            }
        }
        self.left = left;
        Ok(if again.is_some() {
            Reviewed::Again
        } else {
            Reviewed::Done
        })
    }

    /// One page of the list.
    async fn page(&self, path: &Path) -> Result<(Vec<Value>, read::ListMeta), Failure> {
        let turn = self.hub.list_turn().await;
        let call = Call {
            verb: Verb::List,
            path,
            accept: Form::Whole.accept_list(),
            body: None,
            deadline: None,
        };
        let bytes = self.hub.bytes(call).await?;
        drop(turn);
        let mut objects = Vec::new();
        let meta =
            read::list(&bytes, &mut |each| objects.push(each)).map_err(|error| Failure::garbled(&error))?;
        Ok((objects, meta))
    }

    /// Approves one request if its sender has the right. `left` gets those that are left to an administrator.
    async fn review(&self, object: Value, left: &mut BTreeSet<String>) -> Reviewed {
        let Ok(request) = CertificateSigningRequest::deserialize(&object) else {
            return Reviewed::Done;
        };
        let name = request.metadata.name.as_deref().unwrap_or_default();
        // Names are not validated by API servers, and this one becomes part of an address.
        let is_safe = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'.' | b':');
        let Some(asked) = Some(&request)
            .filter(|_| name.bytes().all(is_safe))
            .and_then(signing_request::read)
        else {
            debug!(
                ?name,
                "the CertificateSigningRequest is not one that an agent sends"
            );
            return Reviewed::Done;
        };
        let Some((cluster, rights)) = review(&asked) else {
            return Reviewed::Done;
        };
        match self.approve_if_permitted(&request, object, cluster, rights).await {
            Ok(true) => {
                info!(
                    name,
                    cluster,
                    sender = asked.username,
                    "the agent's CertificateSigningRequest is approved"
                );
                Reviewed::Done
            }
            Ok(false) => {
                let uid = request.metadata.uid.clone().unwrap_or_default();
                if left.insert(uid.clone()) && !self.left.contains(&uid) {
                    info!(
                        name,
                        cluster,
                        sender = asked.username,
                        "the CertificateSigningRequest for an agent is left to an administrator: its sender may not create \
                         certificatesigningrequests/clusteragent of this name. To accept it: kubectl certificate approve"
                    );
                }
                Reviewed::Done
            }
            // It is gone, or another one approved it: the watch says so.
            Err(failure) if matches!(failure.class(), Class::Missing | Class::Conflict) => Reviewed::Done,
            Err(failure) => {
                report(&failure, false);
                Reviewed::Again
            }
        }
    }

    /// True if it was approved by one of the rights.
    async fn approve_if_permitted(
        &self,
        request: &CertificateSigningRequest,
        object: Value,
        cluster: &str,
        rights: &[Right],
    ) -> Result<bool, Failure> {
        for right in rights {
            if self.is_permitted(request, cluster, *right).await? {
                let name = request.metadata.name.as_deref().unwrap_or_default();
                self.approve(name, object, *right).await?;
                return Ok(true);
            }
        }
        Ok(false)
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

/// Logs a failure, and what to do about a missing right.
fn report(failure: &Failure, again: bool) {
    let error = failure.text(&kind());
    let remedy = match failure.class() {
        Class::Refused => "grant the rights of config/rbac-registration on the hub",
        _ => "retrying",
    };
    if again {
        debug!(error, "CertificateSigningRequests of agents cannot be approved");
    } else {
        warn!(
            error,
            remedy, "CertificateSigningRequests of agents cannot be approved"
        );
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

//! Signs the ConfigMap `cluster-info` of the hub with its bootstrap tokens, so that who has a token finds the hub by it: a list of both,
//! one write where a signature differs, and a watch of each, whose first event ends the round. The decision is
//! [`entourage_core::cluster_info`].
//!
//! The tokens are read whole, wiped, and not kept, and none is read without the ConfigMap; what is watched is metadata
//! alone. A token that expires is found with the next list, which is minutes away: by itself its signature opens nothing.

use std::time::Duration;

use entourage_core::{
    cluster_info::{NAME, NAMESPACE, SigningToken, TOKEN_TYPE, TOKENS, signed, token},
    object::Gvk,
};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tokio::{
    sync::watch as cell,
    time::{sleep, timeout},
};
use tracing::{debug, info, warn};

use crate::{
    client::{Api, Call, Form, path::Path, read},
    clock,
    error::{Class, Failure},
    metrics::Verb,
};

/// The time that the server is asked to keep the watches open, in seconds.
const OPEN_FOR: &str = "290";
/// The idle timeout of the watches: longer than the server keeps them open.
const IDLE: Duration = Duration::from_secs(320);
/// The shortest pause between two rounds.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest one, after failures.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The task that signs.
#[derive(Clone)]
pub(crate) struct Signer {
    pub(crate) hub: Api,
    /// True while this process may write.
    pub(crate) leading: cell::Receiver<bool>,
}

impl Signer {
    /// Signs until it is dropped.
    pub(crate) async fn run(mut self) {
        let (mut pause, mut is_failing) = (PAUSE, false);
        while self.leading.wait_for(|leads| *leads).await.is_ok() {
            match self.round().await {
                Ok(()) => (pause, is_failing) = (PAUSE, false),
                Err(failure) => {
                    report(&failure, std::mem::replace(&mut is_failing, true));
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
            sleep(pause.mul_f64(1.0 + clock::jitter() / 2.0)).await;
        }
    }

    /// Lists, signs, and waits until something changes.
    ///
    /// Errors: what is signed cannot be read, or the signatures cannot be written.
    async fn round(&self) -> Result<(), Failure> {
        let (found, found_at) = self.list(&config_maps()).await?;
        let Some(found) = found.first() else {
            return self.changed(config_maps(), &found_at).await;
        };
        let (secrets, tokens_at) = self.list(&tokens()).await?;
        let now = clock::now();
        let signing: Vec<SigningToken> = secrets
            .into_iter()
            .filter_map(|secret| token(secret, now))
            .collect();
        let patch = signed(found, &signing);
        let count = signing.len();
        drop(signing);
        if let Some(patch) = patch {
            let path = Path::raw(
                format!("/api/v1/namespaces/{NAMESPACE}/configmaps/{NAME}"),
                "configmaps",
            );
            match self.hub.merge(&path, &patch, Form::Metadata).await {
                Ok(_) => info!(tokens = count, "{NAMESPACE}/{NAME} is signed"),
                // It is another one by now, which the next round reads.
                Err(failure) if matches!(failure.class(), Class::Missing | Class::Conflict) => return Ok(()),
                Err(failure) => return Err(failure),
            }
        }
        tokio::select! {
            changed = self.changed(tokens(), &tokens_at) => changed,
            changed = self.changed(config_maps(), &found_at) => changed,
        }
    }

    /// The objects at an address, and the version to watch from.
    async fn list(&self, path: &Path) -> Result<(Vec<Value>, String), Failure> {
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
        Ok((objects, meta.resource_version))
    }

    /// Returns at the first event after a version, and when the server ends the watch: what happened is in the next list.
    async fn changed(&self, path: Path, version: &str) -> Result<(), Failure> {
        let watch = path
            .query("watch", "true")
            .query("timeoutSeconds", OPEN_FOR)
            .query("resourceVersion", version);
        let mut body = self.hub.open(&watch, Form::Metadata.accept()).await?;
        let ended = timeout(IDLE, body.frame()).await;
        debug!(in_time = ended.is_ok(), "bootstrap tokens are read again");
        Ok(())
    }
}

/// Logs a failure, and what to do about a missing right.
fn report(failure: &Failure, again: bool) {
    let error = failure.text(&Gvk::new("v1", "Secret"));
    let remedy = match failure.class() {
        Class::Refused => "grant the rights of config/rbac-discovery on the hub",
        _ => "retrying",
    };
    if again {
        debug!(
            error,
            "{NAMESPACE}/{NAME} cannot be signed with the bootstrap tokens"
        );
    } else {
        warn!(
            error,
            remedy, "{NAMESPACE}/{NAME} cannot be signed with the bootstrap tokens"
        );
    }
}

fn tokens() -> Path {
    Path::raw(format!("/api/v1/namespaces/{TOKENS}/secrets"), "secrets")
        .query("fieldSelector", &format!("type={TOKEN_TYPE}"))
}

fn config_maps() -> Path {
    Path::raw(format!("/api/v1/namespaces/{NAMESPACE}/configmaps"), "configmaps")
        .query("fieldSelector", &format!("metadata.name={NAME}"))
}

#[cfg(test)]
mod tests {
    use entourage_core::{cluster_info::verified, server::Server};
    use serde_json::json;

    use super::*;
    use crate::client::tests::{Log, Reply, api, status};

    const SECRETS: &str =
        "GET /api/v1/namespaces/kube-system/secrets?fieldSelector=type%3Dbootstrap.kubernetes.io%2Ftoken";
    const FOUND: &str =
        "GET /api/v1/namespaces/kube-public/configmaps?fieldSelector=metadata.name%3Dcluster-info";
    const PATCH: &str = "PATCH /api/v1/namespaces/kube-public/configmaps/cluster-info";

    /// A token `abcdef.0123456789abcdef`, as a list has it: in base64, and without its kind.
    fn secret() -> Value {
        json!({"metadata": {"name": "bootstrap-token-abcdef"}, "type": "bootstrap.kubernetes.io/token", "data": {
            "token-id": "YWJjZGVm", "token-secret": "MDEyMzQ1Njc4OWFiY2RlZg==", "usage-bootstrap-signing": "dHJ1ZQ=="}})
    }

    fn hub(tokens: Vec<Value>, found: Vec<Value>, code: u16) -> (Signer, Log) {
        let (hub, log) = api(Server::Hub, move |asked| {
            let line = asked.line.as_str();
            let list = |items: &[Value]| {
                let meta = json!({"resourceVersion": "7"});
                Reply::Json(200, json!({"kind": "List", "metadata": meta, "items": items}))
            };
            match line {
                _ if line.contains("watch=true") => {
                    assert!(line.contains("resourceVersion=7"), "{line}");
                    assert!(
                        asked.accept.contains("PartialObjectMetadata"),
                        "no payload is watched"
                    );
                    Reply::Lines(Vec::new(), false)
                }
                _ if line.starts_with(SECRETS) => list(&tokens),
                _ if line.starts_with(FOUND) => list(&found),
                _ if line.starts_with(PATCH) && code == 200 => {
                    Reply::Json(200, json!({"metadata": {"name": NAME}}))
                }
                _ if line.starts_with(PATCH) => status(code, "Refused"),
                _ => status(404, "NotFound"),
            }
        });
        let (_, leading) = cell::channel(true);
        (Signer { hub, leading }, log)
    }

    fn config_map(data: &Value) -> Value {
        json!({"metadata": {"name": NAME, "namespace": NAMESPACE, "uid": "u", "resourceVersion": "5"}, "data": data})
    }

    fn patches(log: &Log) -> Vec<Value> {
        let all = log
            .all()
            .into_iter()
            .filter(|asked| asked.line.starts_with(PATCH));
        all.map(|asked| asked.body).collect()
    }

    #[tokio::test]
    async fn what_is_not_signed_is_signed_once() {
        let kubeconfig = "apiVersion: v1\n";
        let unsigned = config_map(&json!({"kubeconfig": kubeconfig}));
        let (signer, log) = hub(vec![secret()], vec![unsigned], 200);
        signer.round().await.unwrap();
        let patch = patches(&log).remove(0);
        assert_eq!(patch["metadata"], json!({"uid": "u", "resourceVersion": "5"}));
        assert!(!patch.to_string().contains("0123456789abcdef"));
        let mut data = patch["data"].clone();
        data["kubeconfig"] = json!(kubeconfig);
        let stored = config_map(&data);
        assert_eq!(verified(&stored, "abcdef", "0123456789abcdef"), Ok(kubeconfig));
        let (signer, log) = hub(vec![secret()], vec![stored.clone()], 200);
        signer.round().await.unwrap();
        assert!(patches(&log).is_empty(), "{:?}", log.lines());
        // The token is gone.
        let (signer, log) = hub(Vec::new(), vec![stored], 200);
        signer.round().await.unwrap();
        assert_eq!(patches(&log)[0]["data"], json!({"jws-kubeconfig-abcdef": null}));
    }

    #[tokio::test]
    async fn a_hub_without_cluster_info_is_left_as_it_is() {
        let (signer, log) = hub(vec![secret()], Vec::new(), 200);
        signer.round().await.unwrap();
        assert!(patches(&log).is_empty());
        let lines = log.lines();
        assert!(lines.iter().all(|line| line.starts_with(FOUND)), "{lines:?}");
    }

    #[tokio::test]
    async fn a_change_in_between_is_no_failure_and_a_refusal_is_one() {
        for (code, fails) in [(409, false), (404, false), (403, true)] {
            let unsigned = config_map(&json!({"kubeconfig": "x"}));
            let (signer, _) = hub(vec![secret()], vec![unsigned], code);
            assert_eq!(signer.round().await.is_err(), fails, "{code}");
        }
    }
}

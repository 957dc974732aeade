//! The probe: objects in a namespace of its own, by which the controllers beside an API server show themselves.

use std::time::Duration;

use entourage_api::keys::{TRUE, label::SKIP_AUTO_PROPAGATION};
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, ObjectMeta},
};
use serde_json::{Value, json};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::{Instant, sleep},
};

use crate::{
    apply::{Kind, NAMESPACE, SECRET, SERVICE_ACCOUNT},
    connect::{explain, is_not_found, within},
    raw,
};

/// The time that the garbage collector and the namespace controller may take.
const LIMIT: Duration = Duration::from_secs(30);

/// The time that the controllers of accounts and tokens may take, which act on one object at once.
const LIMIT_OF_ACCOUNTS: Duration = Duration::from_secs(10);

/// The pause between two requests for an object that is waited for.
const PAUSE: Duration = Duration::from_millis(500);

/// Set by the controller of tokens on the Secrets that it fills.
const FILLED: &str = "kubernetes.io/service-account.uid";

const CONFIG_MAP: Kind = Kind {
    api_version: "v1",
    kind: "ConfigMap",
    plural: "configmaps",
    namespaced: true,
};

/// The result of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The namespace of the probe.
    pub namespace: String,
    /// True if an object whose owner was deleted is deleted.
    pub collects: bool,
    /// True if the namespace got its ServiceAccount.
    pub makes_accounts: bool,
    /// True if a Secret got the token of a ServiceAccount.
    pub makes_tokens: bool,
    /// True if the namespace ended when it was deleted.
    pub ends_namespaces: bool,
}

/// Probes a cluster. The namespace is deleted in any case, also after SIGINT or SIGTERM.
///
/// # Errors
/// An object cannot be written or read, for the user.
pub async fn probe(client: &Client) -> Result<Probe, String> {
    let caught = |kind| signal(kind).map_err(|error| format!("signals cannot be caught: {error}"));
    let mut signals = (caught(SignalKind::interrupt())?, caught(SignalKind::terminate())?);
    // A control plane that runs would make the namespace on every member.
    let metadata = json!({"generateName": "entourage-preflight-",
        "labels": {"app.kubernetes.io/managed-by": "entourage", SKIP_AUTO_PROPAGATION: TRUE}});
    let made = create(client, "/api/v1/namespaces", NAMESPACE, metadata, json!({})).await?;
    let namespace = made["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let found = tokio::select! {
        found = inside(client, &namespace) => found,
        why = interrupted(&mut signals) => Err(why),
    };
    remove_objects(client, &namespace).await;
    let namespaces = api(client, NAMESPACE, "");
    let deleted = within(namespaces.delete(&namespace, &DeleteParams::default())).await;
    deleted.map_err(|error| {
        words(
            &format!("the namespace {namespace} of the probe cannot be deleted, delete it by hand"),
            error,
        )
    })?;
    let (makes_accounts, makes_tokens, collects) = found?;
    let ends_namespaces = tokio::select! {
        ended = until(&namespaces, &namespace, LIMIT, |seen| seen.is_none()) => ended?,
        why = interrupted(&mut signals) => return Err(why),
    };
    Ok(Probe {
        namespace,
        collects,
        makes_accounts,
        makes_tokens,
        ends_namespaces,
    })
}

/// The reason, once a signal to end was caught.
async fn interrupted((interrupt, terminate): &mut (Signal, Signal)) -> String {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    "interrupted".to_owned()
}

/// Without a namespace controller the objects of the namespace would stay, and a token among them. What cannot be deleted here, or is
/// deleted already, goes with the namespace.
async fn remove_objects(client: &Client, namespace: &str) {
    for (kind, name) in [
        (SECRET, "probe"),
        (SERVICE_ACCOUNT, "probe"),
        (CONFIG_MAP, "owned"),
        (CONFIG_MAP, "owner"),
    ] {
        let objects = api(client, kind, namespace);
        drop(within(objects.delete(name, &DeleteParams::background())).await);
    }
}

/// Accounts, tokens and garbage collection in a namespace.
async fn inside(client: &Client, namespace: &str) -> Result<(bool, bool, bool), String> {
    let accounts = api(client, SERVICE_ACCOUNT, namespace);
    let makes_accounts = until(&accounts, "default", LIMIT_OF_ACCOUNTS, |seen| seen.is_some()).await?;

    let base = format!("/api/v1/namespaces/{namespace}");
    let path = format!("{base}/serviceaccounts");
    create(
        client,
        &path,
        SERVICE_ACCOUNT,
        json!({"name": "probe"}),
        json!({}),
    )
    .await?;
    let metadata = json!({"name": "probe", "annotations": {"kubernetes.io/service-account.name": "probe"}});
    let of_tokens = json!({"type": "kubernetes.io/service-account-token"});
    create(client, &format!("{base}/secrets"), SECRET, metadata, of_tokens).await?;
    // Only metadata is read: the token stays on the server.
    let makes_tokens = until(
        &api(client, SECRET, namespace),
        "probe",
        LIMIT_OF_ACCOUNTS,
        |seen| {
            let annotations = seen.and_then(|seen| seen.annotations.as_ref());
            annotations.is_some_and(|annotations| annotations.contains_key(FILLED))
        },
    )
    .await?;

    let path = format!("{base}/configmaps");
    let owner = create(client, &path, CONFIG_MAP, json!({"name": "owner"}), json!({})).await?;
    let references =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}]);
    let metadata = json!({"name": "owned", "ownerReferences": references});
    create(client, &path, CONFIG_MAP, metadata, json!({})).await?;
    let maps = api(client, CONFIG_MAP, namespace);
    let deleted = within(maps.delete("owner", &DeleteParams::background())).await;
    deleted.map_err(|error| words("the owner of the probe cannot be deleted", error))?;
    let collects = until(&maps, "owned", LIMIT, |seen| seen.is_none()).await?;
    Ok((makes_accounts, makes_tokens, collects))
}

fn api(client: &Client, kind: Kind, namespace: &str) -> Api<DynamicObject> {
    if kind.namespaced {
        Api::namespaced_with(client.clone(), namespace, &kind.resource())
    } else {
        Api::all_with(client.clone(), &kind.resource())
    }
}

async fn create(
    client: &Client,
    path: &str,
    kind: Kind,
    metadata: Value,
    mut object: Value,
) -> Result<Value, String> {
    object["apiVersion"] = json!(kind.api_version);
    object["kind"] = json!(kind.kind);
    object["metadata"] = metadata;
    let created = raw::post(client, path, &object).await;
    created.map_err(|error| {
        words(
            &format!("the {} of the probe cannot be created", kind.kind),
            error,
        )
    })
}

fn words(what: &str, error: kube::Error) -> String {
    format!("{what}: {:#}", explain(error))
}

/// True if `met` holds for the metadata of an object (`None`: it does not exist) in time.
async fn until(
    api: &Api<DynamicObject>,
    name: &str,
    limit: Duration,
    met: impl Fn(Option<&ObjectMeta>) -> bool,
) -> Result<bool, String> {
    let start = Instant::now();
    loop {
        let seen = match within(api.get_metadata(name)).await {
            Ok(seen) => Some(seen.metadata),
            Err(error) if is_not_found(&error) => None,
            Err(error) => return Err(words(&format!("{name} cannot be read"), error)),
        };
        if met(seen.as_ref()) {
            return Ok(true);
        }
        if start.elapsed() >= limit {
            return Ok(false);
        }
        sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock::Server;

    /// A server with the controllers that a hub needs.
    fn controlled() -> Server {
        Server::new("hub").reacting(|method, path, objects| {
            let segments: Vec<&str> = path.split('/').collect();
            match (method, segments.as_slice()) {
                ("POST", ["", "api", "v1", "namespaces", namespace]) => {
                    let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/default");
                    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
                    objects.insert(path, account);
                }
                ("POST", [.., "secrets", "probe"]) => {
                    objects.get_mut(path).unwrap()["metadata"]["annotations"][FILLED] = json!("uid");
                }
                ("DELETE", [.., "configmaps", "owner"]) => {
                    objects.remove(&path.replace("owner", "owned"));
                }
                _ => {}
            }
        })
    }

    #[tokio::test(start_paused = true)]
    async fn controllers_show_themselves_and_nothing_is_left() {
        let server = controlled();
        let found = probe(&server.client()).await.unwrap();
        assert!(found.namespace.starts_with("entourage-preflight-"));
        assert!(found.collects && found.makes_accounts && found.makes_tokens && found.ends_namespaces);
        let namespace = format!("/api/v1/namespaces/{}", found.namespace);
        assert_eq!(server.object(&namespace), None);
    }

    #[tokio::test(start_paused = true)]
    async fn without_controllers_nothing_happens() {
        // The namespace has a finalizer, as on a real server.
        let server = Server::new("hub").reacting(|method, path, objects| {
            if method == "POST"
                && path.starts_with("/api/v1/namespaces/entourage-preflight-")
                && path.split('/').count() == 5
            {
                objects.get_mut(path).unwrap()["metadata"]["finalizers"] = json!(["kubernetes"]);
            }
        });
        let found = probe(&server.client()).await.unwrap();
        assert!(!found.collects && !found.makes_accounts && !found.makes_tokens && !found.ends_namespaces);
        let namespace = format!("/api/v1/namespaces/{}", found.namespace);
        let left: Vec<String> = server
            .objects()
            .into_keys()
            .filter(|path| path.starts_with(&namespace))
            .collect();
        assert_eq!(
            left,
            std::slice::from_ref(&namespace),
            "only the namespace itself"
        );
        assert!(server.object(&namespace).unwrap()["metadata"]["deletionTimestamp"].is_string());
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_that_fails_leaves_nothing_either_and_is_not_propagated() {
        let server = controlled().forbidding("POST", "/api/v1/namespaces/entourage-preflight-");
        let error = probe(&server.client()).await.unwrap_err();
        assert!(
            error.contains("ServiceAccount of the probe cannot be created"),
            "{error}"
        );
        let namespaces = |path: &String| path.contains("entourage-preflight") && path.split('/').count() == 5;
        assert!(!server.objects().keys().any(namespaces), "{:?}", server.objects());

        let server = controlled().forbidding("DELETE", "/api/v1/namespaces/entourage-preflight-");
        let error = probe(&server.client()).await.unwrap_err();
        let objects = server.objects();
        let (path, left) = objects.iter().find(|(path, _)| namespaces(path)).unwrap();
        let name = path.rsplit('/').next().unwrap();
        assert!(
            error.contains(name) && error.contains("delete it by hand"),
            "{error}"
        );
        assert_eq!(
            left["metadata"]["labels"]["namespace.karmada.io/skip-auto-propagation"],
            "true"
        );
    }
}

//! Secrets of the type `kubernetes.io/service-account-token`: filled with a token of their service account, and deleted
//! with it. Source: the tokens controller of kube-controller-manager.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use super::{Controller, Queue, Seen};
use crate::{
    auth::token::{Claims, ISSUER, issue},
    cluster::Inner,
    registry::{field, metadata, metadata_mut, rewrite},
    resource::{Object, Surroundings as _},
    store::Happened,
};

const SECRETS: &str = "secrets";
const ACCOUNTS: &str = "serviceaccounts";
const TYPE: &str = "kubernetes.io/service-account-token";
const NAME: &str = "kubernetes.io/service-account.name";
const UID: &str = "kubernetes.io/service-account.uid";

/// A hundred years: such a token ends with its Secret.
const FOR_EVER: i64 = 100 * 365 * 24 * 3600;

/// Secrets that may lack their token, and which Secrets name an account.
#[derive(Default)]
pub(super) struct Tokens {
    queue: Queue<String>,
    /// Key of the account → keys of Secrets.
    of_account: BTreeMap<String, BTreeSet<String>>,
}

impl Controller for Tokens {
    fn reset(&mut self) {
        self.queue.clear();
        self.of_account.clear();
    }

    fn see(&mut self, seen: &Seen) {
        let gone = seen.happened == Happened::Deleted;
        match seen.place.collection.as_str() {
            SECRETS if !gone => {
                self.queue.insert(seen.place.key.clone());
            }
            ACCOUNTS => {
                let named = self.of_account.get(&seen.place.key);
                self.queue.extend(named.into_iter().flatten().cloned());
            }
            _ => {}
        }
    }

    fn work(&mut self, cluster: &Arc<Inner>) -> bool {
        let Some(key) = self.queue.pop_first() else {
            return false;
        };
        let Some(secret) = cluster.get(SECRETS, &key) else {
            return true;
        };
        if secret.get("type").and_then(Value::as_str) != Some(TYPE) {
            return true;
        }
        let namespace = field(&secret, "namespace").to_owned();
        let name = annotation(&secret, NAME).to_owned();
        let account_key = format!("{namespace}/{name}");
        self.of_account
            .entry(account_key.clone())
            .or_default()
            .insert(key.clone());
        let account = cluster.get(ACCOUNTS, &account_key);
        let uid = account.as_ref().map_or("", |account| field(account, "uid"));
        let named = annotation(&secret, UID);
        if account.is_none() || !named.is_empty() && named != uid {
            delete(cluster, &key);
        } else if named.is_empty() || secret.get("data").and_then(|data| data.get("token")).is_none() {
            fill(cluster, &key, &secret, &namespace, &name, uid);
        }
        true
    }
}

fn annotation<'a>(object: &'a Object, name: &str) -> &'a str {
    let annotations = metadata(object).get("annotations");
    annotations
        .and_then(|all| all.get(name))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn fill(cluster: &Arc<Inner>, key: &str, secret: &Object, namespace: &str, name: &str, uid: &str) {
    let audience = [ISSUER.to_owned()];
    let claims = Claims {
        namespace,
        name,
        uid,
        audiences: &audience,
        now: cluster.timestamp().as_second(),
        expires_in: FOR_EVER,
        bound: Some(("secret", field(secret, "name"), field(secret, "uid"))),
    };
    let Some(token) = issue(cluster.auth.key(&cluster.store), &claims) else {
        return;
    };
    let kinds = cluster.kinds();
    let Some(resource) = kinds.find("", "v1", SECRETS) else {
        return;
    };
    rewrite(cluster, resource, key, "", &mut |secret| {
        let data = secret.entry("data").or_insert_with(|| json!({}));
        data["token"] = BASE64_STANDARD.encode(&token).into();
        data["namespace"] = BASE64_STANDARD.encode(namespace).into();
        if let Some(authority) = &cluster.options.authority {
            data["ca.crt"] = BASE64_STANDARD.encode(authority).into();
        }
        let annotations = metadata_mut(secret)
            .entry("annotations")
            .or_insert_with(|| json!({}));
        annotations[UID] = uid.into();
        true
    });
}

fn delete(cluster: &Inner, key: &str) {
    let kinds = cluster.kinds();
    if let Some(resource) = kinds.find("", "v1", SECRETS)
        && let Some(entry) = cluster.store.get(SECRETS, key)
    {
        // Whoever was faster will be seen.
        let _ = crate::delete::remove(cluster, resource, &entry);
    }
}

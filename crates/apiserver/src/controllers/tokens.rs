//! Secrets of the type `kubernetes.io/service-account-token`: filled with a token of their service account, and deleted
//! with it. Source: the tokens controller of kube-controller-manager.

use std::collections::{BTreeMap, BTreeSet};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use super::{Context, Controller, Queue, Seen, objects::change};
use crate::{
    auth::token::{Bound, Claims, ISSUER, issue},
    delete::{self, DeleteOptions},
    object::{Object, field, metadata, metadata_mut},
    store::Happened,
};

const SECRETS: &str = "secrets";
const ACCOUNTS: &str = "serviceaccounts";
const TYPE: &str = "kubernetes.io/service-account-token";
const NAME: &str = "kubernetes.io/service-account.name";
const UID: &str = "kubernetes.io/service-account.uid";
const TOKEN: &str = "token";
const AUTHORITY: &str = "ca.crt";

/// A hundred years: such a token ends with its Secret.
const FOR_EVER: i64 = 100 * 365 * 24 * 3600;

/// Secrets that may lack their token, and which Secrets name an account.
#[derive(Default)]
pub(super) struct Tokens {
    queue: Queue<String>,
    /// Key of the account → keys of Secrets.
    of_account: BTreeMap<String, BTreeSet<String>>,
    /// The other way round.
    account_of: BTreeMap<String, String>,
}

impl Tokens {
    /// Notes which account a Secret names.
    fn note(&mut self, secret: &str, account: Option<&str>) {
        if self.account_of.get(secret).map(String::as_str) == account {
            return;
        }
        if let Some(former) = self.account_of.remove(secret)
            && let Some(named) = self.of_account.get_mut(&former)
        {
            named.remove(secret);
            if named.is_empty() {
                self.of_account.remove(&former);
            }
        }
        if let Some(account) = account {
            self.account_of.insert(secret.to_owned(), account.to_owned());
            let named = self.of_account.entry(account.to_owned()).or_default();
            named.insert(secret.to_owned());
        }
    }
}

impl Controller for Tokens {
    fn reset(&mut self) {
        *self = Self::default();
    }

    fn see(&mut self, seen: &Seen) {
        let gone = seen.happened == Happened::Deleted;
        match seen.place.collection.as_str() {
            SECRETS if gone => self.note(&seen.place.key, None),
            SECRETS => {
                self.queue.insert(seen.place.key.clone());
            }
            ACCOUNTS => {
                let named = self.of_account.get(&seen.place.key);
                self.queue.extend(named.into_iter().flatten().cloned());
            }
            _ => {}
        }
    }

    fn work(&mut self, cluster: &dyn Context) -> bool {
        let Some(key) = self.queue.pop_first() else {
            return false;
        };
        let secret = cluster.get(SECRETS, &key);
        let of_type = |secret: &Object| secret.get("type").and_then(Value::as_str) == Some(TYPE);
        let Some(secret) = secret.filter(of_type) else {
            self.note(&key, None);
            return true;
        };
        let namespace = field(&secret, "namespace").to_owned();
        let name = annotation(&secret, NAME).to_owned();
        let account_key = format!("{namespace}/{name}");
        self.note(&key, Some(&account_key));
        let account = cluster.get(ACCOUNTS, &account_key);
        let uid = account.as_ref().map_or("", |account| field(account, "uid"));
        let named = annotation(&secret, UID);
        if account.is_none() || !named.is_empty() && named != uid {
            delete(cluster, &secret);
        } else if named.is_empty() || datum(&secret, TOKEN).is_none() || !has_authority(cluster, &secret) {
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

fn datum<'a>(secret: &'a Object, key: &str) -> Option<&'a str> {
    secret.get("data")?.get(key)?.as_str()
}

/// True if the Secret has the cluster's current authority: that may be newer than the Secret's content.
fn has_authority(cluster: &dyn Context, secret: &Object) -> bool {
    let wanted = cluster.authority();
    wanted.is_none_or(|wanted| datum(secret, AUTHORITY) == Some(&BASE64_STANDARD.encode(&wanted.certificate)))
}

fn fill(cluster: &dyn Context, key: &str, secret: &Object, namespace: &str, name: &str, uid: &str) {
    let audience = [ISSUER.to_owned()];
    let bound = [Bound {
        kind: "secret",
        name: field(secret, "name").to_owned(),
        uid: field(secret, "uid").to_owned(),
    }];
    let claims = Claims {
        namespace,
        name,
        uid,
        audiences: &audience,
        now: cluster.timestamp().as_second(),
        expires_in: FOR_EVER,
        bound: &bound,
    };
    let Some(token) = issue(cluster.token_key(), &claims) else {
        return;
    };
    change(cluster, SECRETS, key, "", |secret| {
        // A token that is there may be in use.
        let changed = annotation(secret, UID) != uid;
        let data = secret.entry("data").or_insert_with(|| json!({}));
        if data[TOKEN].is_null() || changed {
            data[TOKEN] = BASE64_STANDARD.encode(&token).into();
        }
        data["namespace"] = BASE64_STANDARD.encode(namespace).into();
        if let Some(authority) = cluster.authority() {
            data[AUTHORITY] = BASE64_STANDARD.encode(&authority.certificate).into();
        }
        let annotations = metadata_mut(secret)
            .entry("annotations")
            .or_insert_with(|| json!({}));
        annotations[UID] = uid.into();
        true
    });
}

/// Deletes a Secret if it is still this one.
pub(super) fn delete(cluster: &dyn Context, secret: &Object) {
    let kinds = cluster.kinds();
    let Some(resource) = kinds.find("", "v1", SECRETS) else {
        return;
    };
    let options = DeleteOptions {
        uid: Some(field(secret, "uid").to_owned()),
        ..DeleteOptions::default()
    };
    let (namespace, name) = (field(secret, "namespace"), field(secret, "name"));
    // If another write was faster, its event follows.
    let _ = delete::object(cluster, resource, namespace, name, &options);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        controllers::{Head, Place},
        resource::stored::encode,
        server::tests_support::bare,
        store::Expect,
    };

    #[test]
    fn a_secret_that_is_gone_is_forgotten() {
        let cluster = bare();
        let mut tokens = Tokens::default();
        let Value::Object(secret) = json!({"type": TYPE, "metadata": {"namespace": "a", "name": "s", "uid": "1",
            "annotations": {NAME: "robot"}}})
        else {
            panic!("an object")
        };
        let put = cluster.store.put(SECRETS, "a/s", Expect::Absent, |revision| {
            encode(secret, revision)
        });
        let entry = put.expect("written");
        for happened in [Happened::Added, Happened::Deleted] {
            tokens.see(&Seen {
                place: Place {
                    collection: SECRETS.to_owned(),
                    key: entry.key.clone(),
                },
                happened,
                head: Head::of(&entry),
                revision: entry.revision,
            });
            if happened == Happened::Added {
                while tokens.work(&*cluster) {}
                assert_eq!(tokens.of_account.len(), 1);
            }
        }
        assert!(tokens.of_account.is_empty() && tokens.account_of.is_empty());
    }
}

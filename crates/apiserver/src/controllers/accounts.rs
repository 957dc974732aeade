//! The service account `default`, in every namespace that stays.

use serde_json::{Value, json};

use super::{Context, Controller, Queue, Seen};
use crate::{
    random,
    resource::stored,
    store::{Expect, Happened},
};

const NAMESPACES: &str = "namespaces";
const ACCOUNTS: &str = "serviceaccounts";
const DEFAULT: &str = "default";

/// Namespaces that may lack their service account.
#[derive(Default)]
pub(super) struct Accounts {
    queue: Queue<String>,
}

impl Controller for Accounts {
    fn reset(&mut self) {
        self.queue.clear();
    }

    fn see(&mut self, seen: &Seen) {
        let gone = seen.happened == Happened::Deleted;
        match seen.place.collection.as_str() {
            NAMESPACES if !gone => self.queue.insert(seen.place.key.clone()),
            ACCOUNTS if gone && seen.place.name() == DEFAULT => {
                self.queue.insert(seen.place.namespace().to_owned())
            }
            _ => false,
        };
    }

    fn work(&mut self, cluster: &dyn Context) -> bool {
        let Some(namespace) = self.queue.pop_first() else {
            return false;
        };
        let stays = cluster
            .get(NAMESPACES, &namespace)
            .is_some_and(|object| crate::kinds::core::namespace::phase(&object) != "Terminating");
        if stays {
            let account = json!({"metadata": {"name": DEFAULT, "namespace": namespace, "uid": random::new_uid(),
                "creationTimestamp": cluster.now()}});
            if let Value::Object(account) = account {
                // When there is one already, all is well.
                let _ = cluster.store().put(
                    ACCOUNTS,
                    &format!("{namespace}/{DEFAULT}"),
                    Expect::Absent,
                    |revision| stored::encode(account, revision),
                );
            }
        }
        true
    }
}

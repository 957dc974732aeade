//! The service account `default`, in every namespace that stays.

use serde_json::json;

use super::{Context, Controller, Queue, Seen, create};
use crate::store::Happened;

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
            let key = format!("{namespace}/{DEFAULT}");
            create(cluster.store(), &cluster.now(), ACCOUNTS, &key, json!({}));
        }
        true
    }
}

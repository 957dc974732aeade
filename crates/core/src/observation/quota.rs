//! The ResourceQuotas of members that FederatedResourceQuotas made.

use entourage_api::{
    keys::{annotation, label},
    work::Resources,
};
use serde_json::Value;

use crate::object::{NamespacedName, Str, revision};

/// The fields of a ResourceQuota on a member that decisions need.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AssignedQuota {
    /// Its uid.
    pub uid: Str,
    /// Its resourceVersion.
    pub resource_version: Str,
    /// True if it is being deleted.
    pub deleting: bool,
    /// The id of the hub that made it; empty if it carries none.
    pub hub: Str,
    /// The assignment that it was made for; empty if it carries none.
    pub made_for: Str,
    /// Its limits, or `None` if it limits less than all objects of its namespace.
    pub limits: Option<Resources>,
    /// The limits that the member enforces.
    pub hard: Resources,
    /// The amounts of them that are used on the cluster.
    pub used: Resources,
}

/// The outcome of one attempt to write or delete such a ResourceQuota.
#[derive(Clone, Debug, PartialEq)]
pub enum QuotaOutcome {
    /// Written, or found equal: the object as it is now, and the path at which the one that was read differed, empty if it did
    /// not exist.
    Applied(AssignedQuota, Option<&'static str>),
    /// Another object has its name, and is not managed by the quota.
    Foreign,
    /// None that is managed by the quota is left: the uid of the object that was there.
    Gone(Str),
    /// The attempt failed: the cause for a user.
    Failed(String),
    /// Nothing was sent, or the object changed meanwhile: the key is planned again.
    Abandoned,
}

impl AssignedQuota {
    /// Projects a ResourceQuota as served. Cost: O(size of the object).
    #[must_use]
    pub fn of(object: &Value) -> Self {
        let (meta, spec, status) = (&object["metadata"], &object["spec"], &object["status"]);
        let text = |value: &Value| -> Str { value.as_str().unwrap_or_default().into() };
        let is_whole = ["scopes", "scopeSelector"]
            .iter()
            .all(|field| spec[*field].is_null());
        Self {
            uid: text(&meta["uid"]),
            resource_version: text(&meta["resourceVersion"]),
            deleting: !meta["deletionTimestamp"].is_null(),
            hub: text(&meta["labels"][label::FEDERATED_QUOTA]),
            made_for: text(&meta["annotations"][annotation::FEDERATED_QUOTA_FOR]),
            limits: is_whole.then(|| list(&spec["hard"])),
            hard: list(&status["hard"]),
            used: list(&status["used"]),
        }
    }

    /// True if it is managed by a quota of this hub: it carries the id of the hub and the name of exactly this assignment, so
    /// that one that was copied from another member is not.
    #[must_use]
    pub fn is_managed(&self, hub: &str, cluster: &str, quota: &NamespacedName) -> bool {
        *self.hub == *hub && *self.made_for == *assignment(cluster, quota)
    }

    /// Its resourceVersion as a number.
    pub(crate) fn revision(&self) -> u64 {
        revision(&self.resource_version)
    }
}

/// The name of an assignment, as its ResourceQuota carries it.
#[must_use]
pub fn assignment(cluster: &str, quota: &NamespacedName) -> String {
    format!("{cluster}/{}/{}", quota.namespace, quota.name)
}

fn list(value: &Value) -> Resources {
    serde_json::from_value(value.clone()).unwrap_or_default()
}

//! The Lease of an agent: what decisions need of it.

use serde_json::Value;

use crate::object::{Str, revision};

/// The Lease that the agent of a cluster in Pull mode renews.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lease {
    /// Its uid.
    pub uid: Str,
    /// Its resourceVersion.
    pub resource_version: Str,
    /// `spec.renewTime` as the agent wrote it. Its clock may be wrong: only a change of it counts.
    pub renewed: Str,
}

impl Lease {
    /// Projects a Lease.
    #[must_use]
    pub fn of(object: &Value) -> Self {
        let text = |value: &Value| -> Str { value.as_str().unwrap_or_default().into() };
        Self {
            uid: text(&object["metadata"]["uid"]),
            resource_version: text(&object["metadata"]["resourceVersion"]),
            renewed: text(&object["spec"]["renewTime"]),
        }
    }

    /// The resourceVersion as a number.
    #[must_use]
    pub fn revision(&self) -> u64 {
        revision(&self.resource_version)
    }
}

/// The response to a GET of the Lease of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseAnswer {
    /// It exists.
    Found(Lease),
    /// It does not exist.
    Absent,
    /// The hub refused the request to our account, with this message.
    Refused(String),
}

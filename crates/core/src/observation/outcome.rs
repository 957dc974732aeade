//! The outcomes of requests that write or remove a copy.

use entourage_api::keys::{TRUE, annotation, label};
use serde_json::Value;

use super::Copy;
use crate::{
    distributed::observed::ObservedObject,
    interpreter::question::InterpretError,
    object::{Meta, Str},
    ownership::names_cluster,
    places::Step,
};

/// The outcome of one attempt to write a copy.
#[derive(Clone, Debug, PartialEq)]
pub enum Delivered {
    /// Written, or found equal: the copy as it is now, and the template version it was rendered from.
    Applied {
        /// The copy as the member returned it.
        copy: Copy,
        /// The version of the template that was rendered, in the form of [`crate::delivery::source_version`].
        source: String,
        /// The path, without values, at which the copy that was read differed from the one then written; `None` when no write
        /// was needed, or the copy was not read before.
        differed: Option<Box<str>>,
    },
    /// An object exists that is not managed by this hub, and the policy says Abort.
    Foreign(Holder),
    /// The template no longer exists, or must never be propagated; nothing was written.
    NoSource(String),
    /// A rule of an override policy cannot be applied to the object: the rule, the cause, and what to do. Nothing was written.
    BadOverride(String),
    /// The interpretation of the kind failed, so the copy cannot be rendered. Nothing was written.
    Uninterpreted(InterpretError),
    /// The member refused the object: its message, without any of the object's content.
    Rejected(String),
    /// The member returned an error that may pass, such as a webhook of its own that cannot be called: its message, without any
    /// of the object's content. The outcome is unknown.
    Failed(String),
    /// The member could not be reached: the transport's error. The outcome is unknown.
    Unreachable(String),
    /// Nothing was sent, for a reason of this process (it lost leadership, or stops): the key is planned again.
    Abandoned,
}

/// The control plane that an object belongs to by its metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    /// None, as far as its metadata says.
    Unknown,
    /// The hub with this id.
    Hub(Str),
    /// A Karmada: it names a Work of this cluster, and no hub.
    Karmada,
}

impl Holder {
    /// The one that the metadata of an object in `cluster` names.
    #[must_use]
    pub fn of(live: &Value, cluster: &str) -> Self {
        let meta = Meta::of(live);
        if let Some(hub) = meta.label(label::HUB) {
            return Self::Hub(hub.into());
        }
        let is_managed = meta.label(label::MANAGED) == Some(TRUE) && names_cluster(&meta, cluster);
        if is_managed && meta.annotation(annotation::WORK_NAME).is_some() {
            return Self::Karmada;
        }
        Self::Unknown
    }
}

/// The outcome of one attempt to remove or release a copy.
#[derive(Clone, Debug, PartialEq)]
pub enum Removed {
    /// The DELETE was accepted; the copy is gone when the watch reports it.
    Accepted,
    /// 404, another uid, or no longer managed by this hub: no managed copy is left.
    Gone,
    /// The ownership metadata was removed; the object is kept.
    Released,
    /// The member refused.
    Rejected(String),
    /// The member responded with an error that may be temporary, or the copy keeps changing there.
    Failed(String),
    /// The member gave no response: the outcome is unknown.
    Unreachable(String),
}

/// The outcome of one attempt to write or remove a copy of a distribution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrote {
    /// Written, or found equal.
    Applied {
        /// The copy as it is now.
        part: ObservedObject,
        /// The hash of its content; see [`crate::distributed::observed::Spec::content`].
        content: u64,
        /// The path, without values, at which the copy that was read differed from the one then written; `None` when no write
        /// was needed, or the copy was not read before.
        differed: Option<String>,
        /// True if it was created.
        created: bool,
    },
    /// Read, and found to differ; it was not to be written.
    Unequal {
        /// The copy as it is.
        part: ObservedObject,
        /// The hash of the content it was compared with.
        content: u64,
    },
    /// The attempt failed.
    Failed {
        /// The step that failed.
        step: Step,
        /// The cause for a user, without any content.
        message: String,
        /// True if a copy may have been created, or be created yet.
        may_exist: bool,
    },
    /// No copy managed by this hub is left.
    Gone {
        /// The uid of the object that was there.
        uid: Str,
    },
    /// Nothing was written: nothing was sent, the object at the target is reported by a watch, or the removal was decided from what
    /// is over. The key is planned again.
    Abandoned,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_karmada_is_told_from_a_hub_and_from_nobody() {
        let marks = json!({annotation::WORK_NAMESPACE: "karmada-es-m1", annotation::WORK_NAME: "web-1"});
        let elsewhere = json!({annotation::WORK_NAMESPACE: "karmada-es-m2", annotation::WORK_NAME: "web-1"});
        let managed = json!({label::MANAGED: "true"});
        for (labels, annotations, expected) in [
            (json!({}), json!({}), Holder::Unknown),
            (json!({}), marks.clone(), Holder::Unknown),
            (managed.clone(), json!({}), Holder::Unknown),
            (managed.clone(), elsewhere, Holder::Unknown),
            (managed, marks.clone(), Holder::Karmada),
            (
                json!({label::MANAGED: "true", label::HUB: "h"}),
                marks,
                Holder::Hub("h".into()),
            ),
        ] {
            let live = json!({"metadata": {"labels": labels, "annotations": annotations}});
            assert_eq!(Holder::of(&live, "m1"), expected, "{live}");
        }
    }
}

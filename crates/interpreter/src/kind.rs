//! The operations of a kind in code: one trait, whose defaults say what "not available" means.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    declarative::Declared,
    gvk::NativeGvk,
    health::Health,
    json::{at, remove_keys},
    operations::Operation,
};

/// How a native kind is served, and where the controllers may manage it by default.
///
/// By default are granted the kinds that lie in a namespace, which are what workloads consist of. A kind that reaches over a
/// whole cluster, or decides who may do what there, is granted by its administrator, one kind at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The plural in lower case.
    pub plural: &'static str,
    /// Whether its objects lie in namespaces.
    pub namespaced: bool,
    /// Granted on the hub. A kind that is not comes with `config/rbac-kinds/<plural>`.
    pub on_hub: bool,
    /// Granted on members. A kind that is not comes with `entourage join --allow`.
    pub on_members: bool,
}

impl Resource {
    /// A kind in namespaces, granted.
    pub(crate) const fn namespaced(plural: &'static str) -> Self {
        Self {
            plural,
            namespaced: true,
            on_hub: true,
            on_members: true,
        }
    }

    /// A cluster-scoped kind, granted on request.
    pub(crate) const fn cluster_scoped(plural: &'static str) -> Self {
        let resource = Self::namespaced(plural);
        Self {
            namespaced: false,
            ..resource.granted(false, false)
        }
    }

    /// An exception from what its scope says; its reason stands at the kind.
    pub(crate) const fn granted(self, on_hub: bool, on_members: bool) -> Self {
        Self {
            on_hub,
            on_members,
            ..self
        }
    }
}

/// A kind understood without configuration. Every function takes the whole object as an API server serves it.
pub trait NativeKind: Sync {
    /// Group, version and kind.
    fn gvk(&self) -> NativeGvk<'static>;

    /// What the kind is to us, in one line.
    fn summary(&self) -> &'static str;

    /// How the kind is served and granted; `None` for a third-party kind, which is granted by those who propagate it.
    fn resource(&self) -> Option<Resource>;

    /// The operations that differ from the defaults below, in the order of [`Operation::ALL`]. Documentation and rights are
    /// made of them.
    fn operations(&self) -> &'static [Operation];

    /// Whether a copy holds data that nothing else holds, so that it is not deleted but for a user's own word. Default: no.
    fn holds_data(&self, _live: &Value) -> bool {
        false
    }

    /// Where the pod spec lies in the object; `None` for a kind without one.
    fn pod_spec_path(&self) -> Option<&'static [&'static str]> {
        None
    }

    /// Whether the status of its copies is reported to the hub. Default: that of workloads is.
    fn reports_status(&self) -> bool {
        self.pod_spec_path().is_some()
    }

    /// The pod spec in the object; `None` if the kind has none or it is not an object.
    fn pod_template_spec<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        Some(at(object, self.pod_spec_path()?)).filter(|spec| spec.is_object())
    }

    /// The rules that say what the object names, for a kind that has rules instead of code.
    fn declared(&self) -> Option<&Declared> {
        None
    }

    /// Names of claims that the workload makes itself and which are therefore no references. Default: none.
    fn own_claims<'a>(&self, _object: &'a Value) -> BTreeSet<&'a str> {
        BTreeSet::new()
    }

    /// Whether an object that this one names is made for it by controllers of the cluster where it is, and is therefore no
    /// reference. Asked of rows of its own, not of those of a pod spec. Default: none is.
    fn is_made_there(&self, _object: &Value, _name: &str) -> bool {
        false
    }

    /// How many replicas the object asks for (1 where an API server would fill that in); `None` for a kind that
    /// is not divided into replicas.
    fn replicas(&self, _object: &Value) -> Option<i64> {
        None
    }

    /// Makes the object ask for this many replicas. Default: nothing changes.
    fn revise_replicas(&self, _object: &mut Value, _replicas: i64) {}

    /// Whether an API server raises `metadata.generation` for a change of annotations, as it does for one of the spec.
    fn annotations_count_as_content(&self) -> bool {
        false
    }

    /// Labels that the hub's own machinery put on a template and that do not travel.
    fn hub_only_labels(&self, _template: &Value) -> &'static [&'static str] {
        &[]
    }

    /// Annotations that the hub's own machinery put on a template and that do not travel.
    fn hub_only_annotations(&self) -> &'static [&'static str] {
        &[]
    }

    /// Removes what the hub's own machinery set in the template: what is sent to a member must be what the user
    /// wrote. Runs after [`common_prune`](crate::native::common_prune).
    fn prune(&self, template: &mut Value) {
        prune_metadata(
            template,
            self.hub_only_labels(template),
            self.hub_only_annotations(),
        );
    }

    /// Whether [`retain`](Self::retain) does anything for this rendered object, so that an update needs the live
    /// copy first. Looks at `metadata.labels` only: an object with nothing but that is enough to ask.
    fn needs_live(&self, _desired: &Value) -> bool {
        false
    }

    /// Takes over into the rendered object what belongs to the member: fields that its API server or controllers
    /// set and that a PUT without them would be refused for, or fight over. Never touches metadata.
    fn retain(&self, _desired: &mut Value, _live: &Value) {}

    /// What of a live copy's status is reported to the hub; `None` for a kind without status, or when there is
    /// none yet.
    fn reflect(&self, _live: &Value) -> Option<Value> {
        None
    }

    /// How a live copy is doing. Default: it exists, so it is healthy (Karmada reference 1.6).
    fn health(&self, _live: &Value) -> Health {
        Health::Healthy
    }

    /// Whether [`reflect`](Self::reflect) answers a status of any size, so that a binding may have no room for it.
    fn reflects_all(&self) -> bool {
        false
    }

    /// Paths in the template that [`aggregate`](Self::aggregate) looks at, besides its generation, replicas and status.
    fn aggregate_reads(&self) -> &'static [&'static [&'static str]] {
        &[]
    }

    /// The template's status as a whole, from what each cluster reported (name of the cluster, reflected status
    /// or `None` when it has not reported). `template` is asked for its generation and its status as stored.
    /// `None` when the status would not change, and for kinds without one. Answers an object that an API server
    /// accepts as the next status after the stored one.
    fn aggregate(&self, _template: &Value, _items: &[(&str, Option<&Value>)]) -> Option<Value> {
        None
    }
}

/// The default of [`NativeKind::prune`], for kinds that remove more than that.
pub(crate) fn prune_metadata(template: &mut Value, labels: &[&str], annotations: &[&str]) {
    remove_keys(template, &["metadata", "labels"], labels);
    remove_keys(template, &["metadata", "annotations"], annotations);
}

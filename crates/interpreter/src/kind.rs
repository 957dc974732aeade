//! The interface of a natively interpreted kind: one trait, whose defaults mean "not available".

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    declarative::Declared,
    gvk::NativeGvk,
    health::Health,
    json::{at, remove_keys},
    operations::Operation,
};

/// The resource of a native kind, and the clusters on which the controllers may manage it by default.
///
/// By default, namespaced kinds are granted, which workloads consist of. A kind that affects a whole cluster, or grants rights
/// there, is granted by its administrator, one kind at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The plural in lower case.
    pub plural: &'static str,
    /// True if its objects live in namespaces.
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

    /// An exception from its scope; the reason is stated at the kind.
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

    /// The role of the kind, in one line.
    fn summary(&self) -> &'static str;

    /// The resource of the kind; `None` for a third-party kind, which is granted by the users who propagate it.
    fn resource(&self) -> Option<Resource>;

    /// The operations that differ from the defaults below, in the order of [`Operation::ALL`]. Documentation and rights are
    /// generated from them.
    fn operations(&self) -> &'static [Operation];

    /// True if a copy holds data that exists nowhere else, so that it is deleted only on a user's explicit request. Default: false.
    fn holds_data(&self, _live: &Value) -> bool {
        false
    }

    /// The path of the pod spec in the object; `None` for a kind without one.
    fn pod_spec_path(&self) -> Option<&'static [&'static str]> {
        None
    }

    /// True if the status of its copies is reported to the hub. Default: true for workloads.
    fn reports_status(&self) -> bool {
        self.pod_spec_path().is_some()
    }

    /// The pod spec in the object; `None` if the kind has none or it is not an object.
    fn pod_template_spec<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        Some(at(object, self.pod_spec_path()?)).filter(|spec| spec.is_object())
    }

    /// The declarative rules of a kind that has rules instead of code.
    fn declared(&self) -> Option<&Declared> {
        None
    }

    /// The names of claims that the workload creates itself and which are therefore no references. Default: none.
    fn own_claims<'a>(&self, _object: &'a Value) -> BTreeSet<&'a str> {
        BTreeSet::new()
    }

    /// True if controllers of the cluster create an object that this one names, so that it is no reference. Called for the rows
    /// of this kind, not for those of a pod spec. Default: false.
    fn is_made_there(&self, _object: &Value, _name: &str) -> bool {
        false
    }

    /// The number of replicas that the object requests (1 where an API server would fill that in); `None` for a kind without
    /// replicas.
    fn replicas(&self, _object: &Value) -> Option<i64> {
        None
    }

    /// Sets the number of replicas in the object. Default: no change.
    fn revise_replicas(&self, _object: &mut Value, _replicas: i64) {}

    /// The group, version, kind and name of the workload in its own namespace that an object of this kind scales; `None` for other
    /// kinds.
    fn scale_target<'a>(&self, _object: &'a Value) -> Option<(NativeGvk<'a>, &'a str)> {
        None
    }

    /// True if an object of this kind is a workload that autoscalers of its cluster scale by `spec.replicas`, so that the
    /// retain-replicas label counts.
    fn is_scaled(&self) -> bool {
        false
    }

    /// True if an API server increments `metadata.generation` for a change of annotations, as it does for one of the spec.
    fn annotations_count_as_content(&self) -> bool {
        false
    }

    /// Labels that the hub's own controllers set on a template and that are not propagated.
    fn hub_only_labels(&self, _template: &Value) -> &'static [&'static str] {
        &[]
    }

    /// Annotations that the hub's own controllers set on a template and that are not propagated.
    fn hub_only_annotations(&self) -> &'static [&'static str] {
        &[]
    }

    /// Removes the fields that the hub's own controllers set in the template: a member must get what the user wrote. Runs after
    /// [`common_prune`](crate::native::common_prune).
    fn prune(&self, template: &mut Value) {
        prune_metadata(
            template,
            self.hub_only_labels(template),
            self.hub_only_annotations(),
        );
    }

    /// True if [`retain`](Self::retain) changes this rendered object, so that an update needs the live copy first. Reads
    /// `metadata.labels` only: an object with nothing else is enough.
    fn needs_live(&self, _desired: &Value) -> bool {
        false
    }

    /// Retains in the rendered object the fields that belong to the member: fields that its API server or controllers set and
    /// without which a PUT would be refused, or contended. Never changes metadata.
    fn retain(&self, _desired: &mut Value, _live: &Value) {}

    /// The status of a live copy to report to the hub; `None` for a kind without status, or if there is none yet.
    fn reflect(&self, _live: &Value) -> Option<Value> {
        None
    }

    /// The health of a live copy. Default: it exists, so it is healthy (Karmada reference 1.6).
    fn health(&self, _live: &Value) -> Health {
        Health::Healthy
    }

    /// True if [`reflect`](Self::reflect) returns a status of any size, so that a binding may have no room for it.
    fn reflects_all(&self) -> bool {
        false
    }

    /// The paths in the template that [`aggregate`](Self::aggregate) reads, besides its generation, replicas and status.
    fn aggregate_reads(&self) -> &'static [&'static [&'static str]] {
        &[]
    }

    /// The template's status as a whole, from the reports of the clusters (name of the cluster, reflected status or `None` if it
    /// has not reported). Of `template` only its generation and its stored status are read. `None` if the status would not
    /// change, and for kinds without one. Returns an object that an API server accepts as the next status after the stored one.
    fn aggregate(&self, _template: &Value, _items: &[(&str, Option<&Value>)]) -> Option<Value> {
        None
    }
}

/// The default of [`NativeKind::prune`], for kinds that remove further fields.
pub(crate) fn prune_metadata(template: &mut Value, labels: &[&str], annotations: &[&str]) {
    remove_keys(template, &["metadata", "labels"], labels);
    remove_keys(template, &["metadata", "annotations"], annotations);
}

//! Ingress.

use serde_json::Value;

use super::{Health, NativeGvk, NativeKind, Operation, Resource, load_balancer, whole_status};
use crate::json::{at, set};

/// networking.k8s.io/v1 Ingress.
///
/// Retained: `spec.ingressClassName`, if the template names no class: the member's admission fills in its default class
/// when the Ingress is made, and without it no controller would serve it.
pub(super) struct Ingress;

const CLASS: &[&str] = &["spec", "ingressClassName"];

/// The annotation that named the class before there was a field; an API server refuses both together at creation.
const CLASS_ANNOTATION: &[&str] = &["metadata", "annotations", "kubernetes.io/ingress.class"];

impl NativeKind for Ingress {
    fn gvk(&self) -> NativeGvk<'static> {
        NativeGvk {
            group: "networking.k8s.io",
            version: "v1",
            kind: "Ingress",
        }
    }

    fn summary(&self) -> &'static str {
        "traffic: hosts and paths, with the Secrets of their certificates"
    }

    fn resource(&self) -> Option<Resource> {
        Some(Resource::namespaced("ingresses"))
    }

    fn operations(&self) -> &'static [Operation] {
        &[
            Operation::References,
            Operation::Retain,
            Operation::Reflect,
            Operation::Aggregate,
            Operation::Health,
        ]
    }

    fn reports_status(&self) -> bool {
        true
    }

    fn needs_live(&self, _desired: &Value) -> bool {
        true
    }

    fn retain(&self, desired: &mut Value, live: &Value) {
        let class = at(live, CLASS);
        if desired["spec"].is_object()
            && class.is_string()
            && at(desired, CLASS).is_null()
            && at(desired, CLASS_ANNOTATION).is_null()
        {
            set(desired, CLASS, class.clone());
        }
    }

    fn reflect(&self, live: &Value) -> Option<Value> {
        whole_status(live)
    }

    fn health(&self, live: &Value) -> Health {
        load_balancer::health(live)
    }

    fn aggregate(&self, template: &Value, items: &[(&str, Option<&Value>)]) -> Option<Value> {
        load_balancer::aggregate(template, items)
    }
}

//! Services of other clusters: ServiceImports, the Services and EndpointSlices of the hub that stand for them, and the EndpointSlices of
//! members, reduced to the fields that [`crate::services`] reads.

use entourage_api::{
    keys::{self, annotation, label},
    names,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{
    kinds,
    object::{Gvk, Meta, NamespacedName, Str},
};

/// The objects of the hub that a Service of other clusters consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum ServicePart {
    /// ServiceImports.
    Import,
    /// The Services that stand for ServiceImports.
    Derived,
    /// The EndpointSlices that stand for those of members.
    Imported,
}

/// An object of the hub that belongs to a Service of other clusters.
#[derive(Clone, Debug, PartialEq)]
pub enum ServiceObject {
    /// A ServiceImport.
    Import(ServiceImport),
    /// A Service.
    Derived(DerivedService),
    /// An EndpointSlice.
    Imported(Slice),
}

/// A ServiceImport.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceImport {
    /// Its metadata.
    pub meta: Meta,
    /// Its ports.
    pub ports: Vec<Port>,
}

/// A Service of the hub whose name is that of one for a ServiceImport.
#[derive(Clone, Debug, PartialEq)]
pub struct DerivedService {
    /// Its metadata.
    pub meta: Meta,
    /// Its ports.
    pub ports: Vec<Port>,
    /// True if it selects pods: then it stands for no ServiceImport.
    pub selects_pods: bool,
    /// Its owners.
    pub owners: Vec<Owner>,
}

/// An ownerReference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The API group of the owner.
    pub group: Str,
    /// Its kind.
    pub kind: Str,
    /// Its name.
    pub name: Str,
    /// Its uid.
    pub uid: Str,
}

/// A port of a ServiceImport or of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its name; may be empty.
    pub name: Str,
    /// Its protocol.
    pub protocol: Str,
    /// Its number.
    pub port: i64,
    /// The application protocol, if there is one.
    pub app_protocol: Option<Str>,
}

/// An EndpointSlice, of a member or of the hub.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    /// Its metadata.
    pub meta: Meta,
    /// Its endpoints.
    pub content: Endpoints,
}

/// The content of an EndpointSlice: the fields that an importing cluster needs, in the form in which API servers store them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Endpoints {
    /// The type of all addresses.
    pub address_type: Str,
    /// The ports: name, protocol, port and application protocol.
    pub ports: Vec<Value>,
    /// The endpoints: addresses, conditions, host name, node and zone.
    pub endpoints: Vec<Value>,
}

/// The EndpointSlice of a member that one of the hub stands for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SliceSource {
    /// The member.
    pub cluster: Str,
    /// The Service of the member.
    pub service: NamespacedName,
    /// The name of the EndpointSlice there.
    pub slice: Str,
}

impl ServicePart {
    /// The kind of these objects.
    #[must_use]
    pub fn gvk(self) -> Gvk {
        match self {
            Self::Import => kinds::service_import(),
            Self::Derived => kinds::service(),
            Self::Imported => kinds::endpoint_slice(),
        }
    }

    /// The name of their kind.
    pub(super) const fn kind(self) -> &'static str {
        match self {
            Self::Import => "ServiceImport",
            Self::Derived => "Service",
            Self::Imported => "EndpointSlice",
        }
    }

    /// True if an object of this name can be one: other Services and EndpointSlices of the hub are not cached.
    #[must_use]
    pub fn may_be(self, name: &str) -> bool {
        match self {
            Self::Import => true,
            Self::Derived => name.starts_with(names::DERIVED_PREFIX),
            Self::Imported => name.starts_with(names::IMPORTED_PREFIX),
        }
    }
}

impl ServiceObject {
    /// Projects an object as served. Cost: O(size of the object).
    #[must_use]
    pub fn of(part: ServicePart, object: &Value) -> Self {
        match part {
            ServicePart::Import => Self::Import(ServiceImport {
                meta: Meta::of(object),
                ports: ports(object),
            }),
            ServicePart::Derived => Self::Derived(DerivedService::of(object)),
            ServicePart::Imported => Self::Imported(Slice::of(object)),
        }
    }

    /// The part that it is.
    #[must_use]
    pub const fn part(&self) -> ServicePart {
        match self {
            Self::Import(_) => ServicePart::Import,
            Self::Derived(_) => ServicePart::Derived,
            Self::Imported(_) => ServicePart::Imported,
        }
    }

    /// Its metadata.
    #[must_use]
    pub const fn meta(&self) -> &Meta {
        match self {
            Self::Import(import) => &import.meta,
            Self::Derived(service) => &service.meta,
            Self::Imported(slice) => &slice.meta,
        }
    }
}

impl DerivedService {
    fn of(object: &Value) -> Self {
        let text = |value: &Value| -> Str { value.as_str().unwrap_or_default().into() };
        let owners = object["metadata"]["ownerReferences"].as_array();
        let owner = |owner: &Value| {
            let version = owner["apiVersion"].as_str().unwrap_or_default();
            Owner {
                group: version.split_once('/').map_or("", |(group, _)| group).into(),
                kind: text(&owner["kind"]),
                name: text(&owner["name"]),
                uid: text(&owner["uid"]),
            }
        };
        Self {
            meta: Meta::of(object),
            ports: ports(object),
            selects_pods: object["spec"]["selector"]
                .as_object()
                .is_some_and(|all| !all.is_empty()),
            owners: owners.into_iter().flatten().map(owner).collect(),
        }
    }
}

impl Port {
    /// The port as it is written.
    #[must_use]
    pub fn body(&self) -> Value {
        let mut body = json!({ "port": self.port, "protocol": &*self.protocol });
        if !self.name.is_empty() {
            body["name"] = json!(&*self.name);
        }
        if let Some(protocol) = &self.app_protocol {
            body["appProtocol"] = json!(&**protocol);
        }
        body
    }
}

fn ports(object: &Value) -> Vec<Port> {
    let all = object["spec"]["ports"].as_array().into_iter().flatten();
    let port = |port: &Value| Port {
        name: port["name"].as_str().unwrap_or_default().into(),
        protocol: port["protocol"].as_str().unwrap_or("TCP").into(),
        port: port["port"].as_i64().unwrap_or_default(),
        app_protocol: port["appProtocol"].as_str().map(Into::into),
    };
    all.map(port).collect()
}

impl Slice {
    /// Projects an EndpointSlice as served. Cost: O(size of the object).
    #[must_use]
    pub fn of(object: &Value) -> Self {
        Self {
            meta: Meta::of(object),
            content: Endpoints::of(object),
        }
    }

    /// Projects an EndpointSlice of a member. Of its labels and annotations only those are kept that [`Self::is_dispatched`] reads: a member
    /// may have any number of slices. The endpoints of a dispatched one are not read.
    #[must_use]
    pub fn of_member(object: &Value) -> Self {
        let mut slice = Self::of(object);
        let meta = &mut slice.meta;
        meta.labels.retain(|key, _| **key == *label::ENDPOINTS_MANAGED_BY);
        meta.annotations
            .retain(|key, _| **key == *annotation::PROVISION_CLUSTER);
        meta.finalizers = Vec::new();
        if slice.is_dispatched() {
            slice.content = Endpoints::default();
        }
        slice
    }

    /// True if an importer wrote it on a member: its endpoints are those of other clusters.
    #[must_use]
    pub fn is_dispatched(&self) -> bool {
        let managed_by = self.meta.label(label::ENDPOINTS_MANAGED_BY).unwrap_or_default();
        managed_by.ends_with(".karmada.io") || self.meta.annotation(annotation::PROVISION_CLUSTER).is_some()
    }

    /// The slice of a member that an EndpointSlice of the hub stands for, as recorded in its metadata; `None` if neither this control plane nor Karmada wrote it.
    /// One without the name on the member has it in its own name, after that of the member.
    #[must_use]
    pub fn source(&self, id: &NamespacedName) -> Option<SliceSource> {
        // A copy that another hub propagated here.
        if self.meta.label(label::MANAGED).is_some() {
            return None;
        }
        let cluster = match self.meta.label(label::ENDPOINTS_MANAGED_BY) {
            Some(keys::ENDPOINTS_DISPATCHED) => self.meta.annotation(annotation::PROVISION_CLUSTER)?,
            Some(_) => return None,
            None => self.cluster_by_work()?,
        };
        let service = self.meta.label(label::SERVICE_NAME)?;
        let service = service.strip_prefix(names::DERIVED_PREFIX)?;
        let recorded = self.meta.annotation(annotation::COLLECTED_SLICE);
        let named = || {
            let rest = id.name.strip_prefix(names::IMPORTED_PREFIX)?;
            rest.strip_prefix(cluster)?.strip_prefix('-')
        };
        Some(SliceSource {
            cluster: cluster.into(),
            service: NamespacedName::new(&id.namespace, service),
            slice: recorded.or_else(named)?.into(),
        })
    }

    /// The member whose slice Karmada made this one of: it names the Work that it was collected in, in annotations since Karmada 1.9, before
    /// in labels.
    fn cluster_by_work(&self) -> Option<&str> {
        let meta = &self.meta;
        let read = |key: &str| meta.annotation(key).or_else(|| meta.label(key));
        read(annotation::WORK_NAME)?;
        names::cluster_of_execution_namespace(read(annotation::WORK_NAMESPACE)?)
    }
}

impl Endpoints {
    /// Reads a served EndpointSlice. Defaults of API servers are filled in, so that the same content is equal.
    fn of(object: &Value) -> Self {
        let items = |field: &str| object[field].as_array().into_iter().flatten();
        Self {
            address_type: object["addressType"].as_str().unwrap_or_default().into(),
            ports: items("ports").map(port).collect(),
            endpoints: items("endpoints").map(endpoint).collect(),
        }
    }

    /// Its weight for the limit of a member: one for the slice, one for each port, and one for each address.
    #[must_use]
    pub fn weight(&self) -> usize {
        let addresses = |endpoint: &Value| endpoint["addresses"].as_array().map_or(1, Vec::len);
        1 + self.ports.len() + self.endpoints.iter().map(addresses).sum::<usize>()
    }

    /// The same endpoints, none of which is to be used while there are others that are ready: kube-proxy falls back to those that
    /// serve and terminate.
    #[must_use]
    pub fn unready(&self) -> Self {
        let mark = |endpoint: &Value| {
            let mut endpoint = endpoint.clone();
            let conditions = &endpoint["conditions"];
            let ready = conditions["ready"].as_bool().unwrap_or(true);
            let serving = conditions["serving"].as_bool().unwrap_or(ready);
            endpoint["conditions"] = json!({ "ready": false, "serving": serving, "terminating": true });
            endpoint
        };
        Self {
            endpoints: self.endpoints.iter().map(mark).collect(),
            ..self.clone()
        }
    }

    /// The same slice without endpoints.
    #[must_use]
    pub fn emptied(&self) -> Self {
        Self {
            endpoints: Vec::new(),
            ..self.clone()
        }
    }
}

fn port(port: &Value) -> Value {
    let mut kept = pick(port, &["port", "appProtocol"]);
    kept.insert("name".into(), json!(port["name"].as_str().unwrap_or_default()));
    kept.insert(
        "protocol".into(),
        json!(port["protocol"].as_str().unwrap_or("TCP")),
    );
    Value::Object(kept)
}

fn endpoint(endpoint: &Value) -> Value {
    let mut kept = pick(endpoint, &["addresses", "hostname", "nodeName", "zone"]);
    let conditions = pick(&endpoint["conditions"], &["ready", "serving", "terminating"]);
    if !conditions.is_empty() {
        kept.insert("conditions".into(), Value::Object(conditions));
    }
    Value::Object(kept)
}

/// These fields of a value, as far as it has them.
fn pick(value: &Value, fields: &[&str]) -> Map<String, Value> {
    let held = fields.iter().map(|field| (*field, &value[*field]));
    let held = held.filter(|(_, value)| !value.is_null());
    held.map(|(field, value)| (field.to_owned(), value.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_is_reduced_to_what_importers_need_and_is_equal_with_and_without_defaults() {
        let bare = Slice::of(&json!({
            "metadata": {"name": "web-x", "resourceVersion": "7"}, "addressType": "IPv4",
            "ports": [{"port": 80}],
            "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {}, "targetRef": {"kind": "Pod"}, "hints": {}}],
        }));
        let filled = Slice::of(&json!({
            "metadata": {"name": "web-x", "resourceVersion": "7"}, "addressType": "IPv4",
            "ports": [{"port": 80, "name": "", "protocol": "TCP", "appProtocol": null}],
            "endpoints": [{"addresses": ["10.0.0.1"]}],
        }));
        assert_eq!(bare, filled);
        assert_eq!(
            bare.content.ports,
            [json!({"port": 80, "name": "", "protocol": "TCP"})]
        );
    }

    #[test]
    fn a_slice_of_a_member_counts_with_all_that_it_takes_up() {
        for (object, weight) in [
            (json!({"addressType": "IPv4"}), 1),
            (json!({"ports": [{"port": 80}, {"port": 81}]}), 3),
            (
                json!({"ports": [{"port": 80}], "endpoints": [{"addresses": ["10.0.0.1", "10.0.0.2"]}, {"addresses": ["10.0.0.3"]}]}),
                5,
            ),
        ] {
            assert_eq!(Slice::of_member(&object).content.weight(), weight, "{object}");
        }
        let slice = Slice::of_member(&json!({"metadata": {
            "uid": "u", "labels": {"a": "b", label::ENDPOINTS_MANAGED_BY: "x.karmada.io"}, "annotations": {"c": "d"}, "finalizers": ["e"],
        }}));
        assert!(slice.is_dispatched());
        assert_eq!((slice.meta.labels.len(), slice.meta.annotations.len()), (1, 0));
    }

    #[test]
    fn endpoints_of_a_cluster_that_is_not_ready_serve_only_where_no_others_do() {
        let of = |conditions: Value| Endpoints {
            endpoints: vec![json!({"addresses": ["10.0.0.1"], "conditions": conditions})],
            ..Endpoints::default()
        };
        for (before, serving) in [
            (json!({}), true),
            (json!({"ready": true}), true),
            (json!({"ready": false}), false),
            (
                json!({"ready": false, "serving": true, "terminating": true}),
                true,
            ),
        ] {
            let marked = of(before.clone()).unready();
            assert_eq!(
                marked.endpoints[0]["conditions"],
                json!({"ready": false, "serving": serving, "terminating": true}),
                "{before}"
            );
            // What is read back after a restart changes nothing.
            assert_eq!(marked.unready(), marked);
        }
    }

    #[test]
    fn the_source_of_a_slice_is_read_from_its_metadata() {
        let slice = |labels: Value, annotations: Value| {
            Slice::of(&json!({"metadata": {"labels": labels, "annotations": annotations}}))
        };
        let id = NamespacedName::new("shop", "imported-a-b-c");
        let labels = json!({label::SERVICE_NAME: "derived-web", label::ENDPOINTS_MANAGED_BY: keys::ENDPOINTS_DISPATCHED});
        let source = |cluster: &str, slice: &str| {
            Some(SliceSource {
                cluster: cluster.into(),
                service: NamespacedName::new("shop", "web"),
                slice: slice.into(),
            })
        };
        let from = |cluster: &str| json!({annotation::PROVISION_CLUSTER: cluster});
        assert_eq!(slice(labels.clone(), from("a")).source(&id), source("a", "b-c"));
        assert_eq!(slice(labels.clone(), from("a-b")).source(&id), source("a-b", "c"));
        let mut recorded = from("a");
        recorded[annotation::COLLECTED_SLICE] = json!("d");
        assert_eq!(slice(labels.clone(), recorded).source(&id), source("a", "d"));
        // Karmada's: the Work that it was collected in.
        let work =
            json!({annotation::WORK_NAMESPACE: "karmada-es-a-b", annotation::WORK_NAME: "endpointslice-c-x"});
        let of_service = json!({label::SERVICE_NAME: "derived-web"});
        assert_eq!(
            slice(of_service.clone(), work.clone()).source(&id),
            source("a-b", "c")
        );
        let mut as_labels = work.clone();
        as_labels[label::SERVICE_NAME] = json!("derived-web");
        assert_eq!(slice(as_labels, json!({})).source(&id), source("a-b", "c"));
        let mut managed = labels.clone();
        managed[label::MANAGED] = json!("true");
        for (labels, annotations) in [
            (managed, from("a")),
            (labels.clone(), work),
            (
                of_service.clone(),
                json!({annotation::WORK_NAMESPACE: "karmada-es-a-b"}),
            ),
            (
                of_service.clone(),
                json!({annotation::WORK_NAMESPACE: "shop", annotation::WORK_NAME: "x"}),
            ),
            (labels.clone(), json!({})),
            (of_service, from("a")),
            (
                json!({label::SERVICE_NAME: "web", label::ENDPOINTS_MANAGED_BY: keys::ENDPOINTS_DISPATCHED}),
                from("a"),
            ),
            (labels, from("x")),
        ] {
            assert_eq!(slice(labels, annotations).source(&id), None);
        }
    }
}

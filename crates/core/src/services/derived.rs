//! The Service of the hub that stands for a ServiceImport.
//!
//! Invariant: a Service is written or deleted only if its metadata proves that it stands for the ServiceImport: the ownerReference with
//! which it was created, or the annotation of a user that hands it over. A name proves nothing.

use entourage_api::{keys::annotation, names};
use serde_json::{Value, json};

use crate::{
    fleet::{
        Fleet,
        exports::{LONGEST_NAME, is_derivable},
    },
    kinds,
    object::NamespacedName,
    observation::{DerivedService, Owner, Port, ServiceImport, ServicePart, Watch},
    plan::{Change, HubObject, Plan, Preconditions, Verb},
};

/// Plans the Service of a ServiceImport. Cost: O(ports).
#[must_use]
pub(crate) fn plan(fleet: &Fleet, import: &NamespacedName) -> Plan {
    if !fleet.config.share_services {
        return Plan::nothing();
    }
    let [imports, derived] = [ServicePart::Import, ServicePart::Derived].map(Watch::ServiceParts);
    let watches = &fleet.cache.watches;
    if !watches.is_listed(&imports) || !watches.is_listed(&derived) {
        return Plan::wait("ServiceImports or Services are not synced yet");
    }
    let name = NamespacedName::new(&import.namespace, &names::derived_service(&import.name));
    let services = &fleet.cache.services;
    match (services.imports.get(import), services.derived.get(&name)) {
        (Some(object), _) if object.meta.deleting.is_some() => Plan::wait("it is being deleted"),
        (Some(object), held) => write((import, object), (&name, held)),
        (None, Some(held)) if watches.is_synced(&imports) => remove(import, (&name, held)),
        (None, Some(_)) => Plan::wait("ServiceImports are not synced"),
        (None, None) => Plan::nothing(),
    }
}

fn write(
    (import, object): (&NamespacedName, &ServiceImport),
    (name, held): (&NamespacedName, Option<&DerivedService>),
) -> Plan {
    if !is_derivable(&import.name) {
        let why = format!(
            "no Service can be named {}: give the ServiceImport a name of at most {} characters",
            name.name,
            LONGEST_NAME - names::DERIVED_PREFIX.len()
        );
        return Plan::one(Change::Refuse(why), "its name is too long");
    }
    if object.ports.is_empty() {
        let why = format!("ServiceImport {import} has no ports: a Service needs one");
        return Plan::one(Change::Refuse(why), "it has no ports");
    }
    let owner = json!({
        "apiVersion": kinds::SERVICES_API, "kind": "ServiceImport", "name": &*import.name, "uid": &*object.meta.uid,
    });
    let ports: Vec<Value> = object.ports.iter().map(Port::body).collect();
    let Some(held) = held else {
        let body = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"namespace": &*name.namespace, "name": &*name.name, "ownerReferences": [owner]},
            "spec": {"type": "ClusterIP", "ports": ports},
        });
        return change(name, Verb::Create(body), "it is missing");
    };
    if let Some(why) = objection(import, held) {
        let why = format!(
            "Service {name} exists and {why}: it does not stand for ServiceImport {import}; delete or rename one of them{}",
            hand_over(import, held)
        );
        return Plan::one(Change::Refuse(why), "another Service has its name");
    }
    if held.meta.deleting.is_some() {
        return Plan::wait("its Service is being deleted, and made again when it is gone");
    }
    let is_owned = held.owners.iter().any(|owner| owner.uid == object.meta.uid);
    if is_owned && held.ports == object.ports {
        return Plan::nothing();
    }
    let body = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "uid": &*held.meta.uid, "resourceVersion": &*held.meta.resource_version, "ownerReferences": [owner],
        },
        "spec": {"ports": ports},
    });
    change(name, Verb::Merge(body), "its ports or its owner differ")
}

/// Deletes the Service of a ServiceImport that is gone. One without an owner stays: it was orphaned, or never written.
fn remove(import: &NamespacedName, (name, held): (&NamespacedName, &DerivedService)) -> Plan {
    if held.owners.is_empty() || objection(import, held).is_some() || held.meta.deleting.is_some() {
        return Plan::nothing();
    }
    let preconditions = Preconditions {
        uid: held.meta.uid.clone(),
        resource_version: held.meta.resource_version.clone(),
    };
    change(name, Verb::delete(preconditions), "its ServiceImport was deleted")
}

/// The reason why a Service does not stand for a ServiceImport of this name.
fn objection(import: &NamespacedName, held: &DerivedService) -> Option<&'static str> {
    let is_its = |owner: &Owner| {
        *owner.group == *kinds::service_import().group
            && *owner.kind == *"ServiceImport"
            && owner.name == import.name
    };
    match () {
        () if held.selects_pods => Some("selects pods"),
        () if !held.owners.iter().all(is_its) => Some("belongs to another object"),
        () if held.owners.is_empty() && !is_handed_over(import, held) => Some("was not created for it"),
        () => None,
    }
}

fn is_handed_over(import: &NamespacedName, held: &DerivedService) -> bool {
    held.meta.annotation(annotation::DERIVED_FROM) == Some(&*import.name)
}

/// The remedy if the Service is meant to stand for the ServiceImport; the end of a sentence.
fn hand_over(import: &NamespacedName, held: &DerivedService) -> String {
    if held.selects_pods || !held.owners.is_empty() {
        return String::new();
    }
    format!(
        ". If it is the Service that Karmada made of the ServiceImport, annotate it with {}: {}; its ports and its end are then those of \
         the ServiceImport",
        annotation::DERIVED_FROM,
        import.name
    )
}

fn change(name: &NamespacedName, verb: Verb, why: &str) -> Plan {
    let object = HubObject::ServicePart(ServicePart::Derived, name.clone());
    Plan::one(Change::Hub { object, verb }, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::ServiceObject;

    fn import(ports: &Value) -> ServiceImport {
        let object = json!({"metadata": {"uid": "u"}, "spec": {"ports": ports}});
        match ServiceObject::of(ServicePart::Import, &object) {
            ServiceObject::Import(import) => import,
            other => panic!("{other:?}"),
        }
    }

    fn service(object: &Value) -> DerivedService {
        match ServiceObject::of(ServicePart::Derived, object) {
            ServiceObject::Derived(service) => service,
            other => panic!("{other:?}"),
        }
    }

    fn verb(plan: &Plan) -> Value {
        match plan.changes.as_slice() {
            [Change::Hub { verb, .. }] => serde_json::to_value(verb).unwrap(),
            [Change::Refuse(why)] => json!(why),
            [] => Value::Null,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_service_of_an_import_has_its_ports_and_nothing_else_is_written() {
        let name = NamespacedName::new("shop", "web");
        let derived = NamespacedName::new("shop", "derived-web");
        let owner = |name: &str, uid: &str| json!([{"apiVersion": kinds::SERVICES_API, "kind": "ServiceImport", "name": name, "uid": uid}]);
        let ports = json!([{"port": 80, "protocol": "TCP", "name": "http"}]);
        let held = |owners: Value, ports: &Value, selector: Value| {
            json!({"metadata": {"uid": "s", "resourceVersion": "3", "ownerReferences": owners},
                "spec": {"ports": ports, "selector": selector, "clusterIP": "10.0.0.9"}})
        };
        let of = |object: Option<Value>, import: ServiceImport| {
            let service = object.as_ref().map(service);
            verb(&write((&name, &import), (&derived, service.as_ref())))
        };
        let created = of(None, import(&ports));
        assert_eq!(
            created["Create"]["spec"],
            json!({"type": "ClusterIP", "ports": ports})
        );
        assert_eq!(created["Create"]["metadata"]["ownerReferences"][0]["uid"], "u");
        let same = json!([{"port": 80, "name": "http", "targetPort": 80, "protocol": "TCP"}]);
        let none = Value::Null;
        assert_eq!(
            of(Some(held(owner("web", "u"), &same, none.clone())), import(&ports)),
            none
        );
        for (case, owners, found) in [
            ("other ports", owner("web", "u"), json!([{"port": 81}])),
            (
                "a former import of the name",
                owner("web", "former"),
                same.clone(),
            ),
        ] {
            let merged = of(Some(held(owners, &found, none.clone())), import(&ports));
            assert_eq!(merged["Merge"]["spec"], json!({"ports": ports}), "{case}");
            assert_eq!(merged["Merge"]["metadata"]["resourceVersion"], "3", "{case}");
        }
        // What a Karmada made, and a user handed over.
        let handed_over = |to: &str| {
            let mut held = held(json!(null), &json!([{"port": 81}]), none.clone());
            held["metadata"]["annotations"] = json!({annotation::DERIVED_FROM: to});
            held
        };
        let merged = of(Some(handed_over("web")), import(&ports));
        assert_eq!(merged["Merge"]["spec"], json!({"ports": ports}));
        assert_eq!(merged["Merge"]["metadata"]["ownerReferences"][0]["uid"], "u");
        let of_gateway =
            json!([{"apiVersion": "net.gke.io/v1", "kind": "ServiceImport", "name": "web", "uid": "u"}]);
        for (object, says) in [
            (held(json!(null), &same, none.clone()), "was not created for it"),
            (
                held(json!(null), &same, none.clone()),
                "entourage.dev/derived-from: web",
            ),
            (handed_over("other"), "was not created for it"),
            (held(of_gateway, &same, none.clone()), "belongs to another object"),
            (held(json!(null), &same, json!({"app": "web"})), "selects pods"),
            (
                held(owner("other", "x"), &same, none.clone()),
                "belongs to another object",
            ),
        ] {
            let refused = of(Some(object), import(&ports));
            assert!(refused.as_str().unwrap().contains(says), "{refused}");
        }
        assert!(
            of(None, import(&json!([])))
                .as_str()
                .unwrap()
                .contains("has no ports")
        );
    }

    #[test]
    fn only_the_service_of_the_import_ends_with_it() {
        let name = NamespacedName::new("shop", "web");
        let derived = NamespacedName::new("shop", "derived-web");
        for (owners, selector, ends) in [
            (
                json!([{"apiVersion": kinds::SERVICES_API, "kind": "ServiceImport", "name": "web", "uid": "u"}]),
                Value::Null,
                true,
            ),
            (
                json!([{"apiVersion": kinds::SERVICES_API, "kind": "ServiceImport", "name": "web", "uid": "u"}]),
                json!({"app": "web"}),
                false,
            ),
            (
                json!([{"kind": "Gateway", "name": "web", "uid": "u"}]),
                Value::Null,
                false,
            ),
            (
                json!([{"apiVersion": "net.gke.io/v1", "kind": "ServiceImport", "name": "web", "uid": "u"}]),
                Value::Null,
                false,
            ),
            (Value::Null, Value::Null, false),
        ] {
            let object = json!({"metadata": {"uid": "s", "resourceVersion": "3", "ownerReferences": owners}, "spec": {"selector": selector}});
            let plan = remove(&name, (&derived, &service(&object)));
            assert_eq!(!plan.changes.is_empty(), ends, "{object}");
        }
    }
}

//! Messages written and read again.

use super::*;
use crate::openapi::protobuf::Message;
use proptest::prelude::*;
use serde_json::json;

fn envelope(api_version: &str, kind: &str, raw: &Message) -> Vec<u8> {
    let mut meta = Message::default();
    meta.text(1, api_version);
    meta.text(2, kind);
    let mut unknown = Message::default();
    unknown.message(1, &meta);
    unknown.message(2, raw);
    [MAGIC, &unknown.into_bytes()].concat()
}

fn of(build: impl FnOnce(&mut Message)) -> Message {
    let mut message = Message::default();
    build(&mut message);
    message
}

#[test]
fn a_pod_is_read_with_maps_inlined_messages_and_leaves() {
    let port = of(|port| port.number(3, 80));
    let limit = of(|entry| {
        entry.text(1, "cpu");
        entry.message(2, &of(|quantity| quantity.text(1, "100m")));
    });
    let probe = of(|probe| {
        let get = of(|get| {
            get.message(
                2,
                &of(|port| {
                    port.number(1, 1);
                    port.text(3, "http");
                }),
            )
        });
        probe.message(1, &of(|handler| handler.message(2, &get)));
    });
    let container = of(|container| {
        container.text(1, "app");
        container.message(6, &port);
        container.message(8, &of(|resources| resources.message(1, &limit)));
        container.message(10, &probe);
    });
    let volume = of(|volume| {
        volume.text(1, "v");
        volume.message(2, &of(|source| source.message(2, &Message::default())));
    });
    let pod = of(|pod| {
        pod.message(
            1,
            &of(|meta| {
                meta.text(1, "a");
                meta.bytes(8, b"");
            }),
        );
        pod.message(
            2,
            &of(|spec| {
                spec.message(1, &volume);
                spec.message(2, &container);
            }),
        );
    });
    let value = to_json(&envelope("v1", "Pod", &pod))
        .expect("valid")
        .expect("known");
    let expected = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "creationTimestamp": null},
        "spec": {"volumes": [{"name": "v", "emptyDir": {}}], "containers": [{"name": "app", "ports": [{"containerPort": 80}],
            "resources": {"limits": {"cpu": "100m"}}, "livenessProbe": {"httpGet": {"port": "http"}}}]}});
    assert_eq!(value, expected);
}

#[test]
fn a_definition_is_read_with_what_may_stand_for_a_schema() {
    let typed = |kind: &str| of(|schema| schema.text(5, kind));
    let property = |name: &str, schema: &Message| {
        of(|entry| {
            entry.text(1, name);
            entry.message(2, schema);
        })
    };
    let list = of(|schema| {
        schema.text(5, "array");
        schema.message(24, &of(|items| items.message(1, &typed("string"))));
        schema.text(42, "set");
    });
    let map = of(|schema| {
        schema.text(5, "object");
        schema.message(30, &of(|any| any.message(2, &typed("integer"))));
    });
    let open = of(|schema| schema.message(30, &of(|any| any.number(1, 1))));
    let bounded = of(|schema| {
        schema.message(8, &of(|json| json.text(1, "{\"a\":[1,2.5]}")));
        schema.double(9, 10.0);
        schema.double(11, 0.5);
        schema.number(38, 1);
        schema.message(20, &of(|json| json.text(1, "null")));
        schema.message(44, &of(|rule| rule.text(1, "self > 1")));
    });
    let dependent = of(|schema| {
        schema.message(32, &property("a", &of(|either| either.text(2, "b"))));
    });
    let root = of(|schema| {
        for (name, inner) in [
            ("list", &list),
            ("map", &map),
            ("open", &open),
            ("bounded", &bounded),
            ("dependent", &dependent),
        ] {
            schema.message(29, &property(name, inner));
        }
    });
    let version = of(|version| {
        version.text(1, "v1");
        version.number(2, 1);
        version.number(3, 1);
        version.message(4, &of(|validation| validation.message(1, &root)));
        version.message(5, &of(|subresources| subresources.bytes(1, b"")));
        version.message(9, &of(|field| field.text(1, ".spec.a")));
    });
    let crd = of(|crd| {
        crd.message(
            2,
            &of(|spec| {
                spec.text(1, "example.com");
                spec.text(4, "Namespaced");
                spec.message(7, &version);
            }),
        );
    });
    let value = to_json(&envelope(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        &crd,
    ))
    .expect("valid")
    .expect("known");
    let properties = json!({
        "list": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "map": {"type": "object", "additionalProperties": {"type": "integer"}},
        "open": {"additionalProperties": true},
        "bounded": {"default": {"a": [1, 2.5]}, "maximum": 10, "minimum": 0.5, "enum": [null],
            "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-validations": [{"rule": "self > 1"}]},
        "dependent": {"dependencies": {"a": ["b"]}},
    });
    let expected = json!([{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"properties": properties}}, "selectableFields": [{"jsonPath": ".spec.a"}]}]);
    assert_eq!(value["spec"]["versions"], expected);
}

#[test]
fn a_policy_that_mutates_is_read() {
    let mutation = of(|mutation| {
        mutation.text(2, "ApplyConfiguration");
        mutation.message(3, &of(|apply| apply.text(1, "Object{}")));
    });
    let policy = of(|policy| {
        policy.message(
            2,
            &of(|spec| {
                spec.message(4, &mutation);
                spec.text(5, "Fail");
                spec.text(7, "Never");
            }),
        );
    });
    let value = to_json(&envelope(
        "admissionregistration.k8s.io/v1",
        "MutatingAdmissionPolicy",
        &policy,
    ))
    .expect("valid")
    .expect("known");
    let expected = json!({"failurePolicy": "Fail", "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}]});
    assert_eq!(value["spec"], expected);
}

#[test]
fn a_newer_field_is_let_be_when_empty_and_makes_the_body_unknown_otherwise() {
    let empty = of(|map| map.number(99, 0));
    assert!(
        to_json(&envelope("v1", "ConfigMap", &empty))
            .expect("valid")
            .is_some()
    );
    let full = of(|map| map.number(99, 1));
    assert!(
        to_json(&envelope("v1", "ConfigMap", &full))
            .expect("valid")
            .is_none()
    );
}

#[test]
fn every_kind_has_numbers_for_its_fields() {
    for root in crate::kinds::roots() {
        let name = (root.name)();
        assert!(
            numbers(&name).is_some(),
            "{name}: its message in src/http/protobuf/fields.txt"
        );
    }
}

#[test]
fn every_message_of_the_table_is_a_definition_with_those_fields() {
    for resource in crate::kinds::builtin().all() {
        let _ = resource.schema.get();
    }
    for (name, fields) in TABLE.iter() {
        let long = match name.split('.').next() {
            Some("meta") => format!("io.k8s.apimachinery.pkg.apis.{name}"),
            Some("apiextensions") => format!("{EXTENSIONS}{name}"),
            Some("apiregistration") => format!("{AGGREGATOR}{name}"),
            _ => format!("io.k8s.api.{name}"),
        };
        let schema = crate::kinds::definition(&long);
        for field in fields.values() {
            match field {
                Field::Inlined(inner) => assert!(TABLE.contains_key(inner), "{name}: {inner}"),
                Field::Named(field) => assert!(
                    schema.properties.is_empty() || schema.properties.contains_key(*field),
                    "{name}: {field}"
                ),
            }
        }
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut raw = Message::default();
        raw.bytes(2, &bytes);
        let _ = to_json(&envelope("v1", "Pod", &raw));
        let _ = to_json(&[MAGIC, &bytes].concat());
    }
}

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
    // These come as JSON only.
    let exceptions = [
        "CustomResourceDefinition",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
    ];
    for root in crate::kinds::roots() {
        let name = (root.name)();
        let is_exception = exceptions.contains(&name.rsplit('.').next().unwrap());
        assert!(
            numbers(&name).is_some() != is_exception,
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
        let long = match name.strip_prefix("meta.v1.") {
            Some(rest) => format!("io.k8s.apimachinery.pkg.apis.meta.v1.{rest}"),
            None => format!("io.k8s.api.{name}"),
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

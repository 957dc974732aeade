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
            "{name}: its message in src/schema/builtin/fields.txt"
        );
    }
}

#[test]
fn every_message_of_the_table_is_a_definition_with_those_fields() {
    for resource in crate::kinds::builtin().all() {
        let _ = resource.schema.get();
    }
    for (name, fields) in TABLE.iter() {
        let schema = crate::kinds::definition(&full(name));
        for field in fields.values() {
            match field {
                Field::Inlined(inner) => assert!(TABLE.contains_key(inner), "{name}: {inner}"),
                Field::Named(field) | Field::Wrapped(field) => assert!(
                    schema.properties.is_empty() || schema.properties.contains_key(*field),
                    "{name}: {field}"
                ),
            }
        }
    }
}

/// Fields whose numbers are not known: features of one release that are off there.
const UNNUMBERED: [&str; 9] = [
    "core.v1.PodSpec.schedulingGroup",
    "core.v1.PodStatus.nodeAllocatableResourceClaimStatuses",
    "core.v1.ResourceHealth.message",
    "meta.v1.ListMeta.shardInfo",
    "resource.v1.Device.nodeAllocatableResourceMappings",
    "resource.v1.DeviceAttribute.bools",
    "resource.v1.DeviceAttribute.ints",
    "resource.v1.DeviceAttribute.strings",
    "resource.v1.DeviceAttribute.versions",
];

#[test]
fn every_field_of_a_message_has_a_number() {
    let mut missing = Vec::new();
    for (name, fields) in TABLE.iter() {
        let schema = crate::kinds::definition(&full(name));
        let without = schema.properties.keys().map(|field| &**field);
        let without =
            without.filter(|field| !matches!(*field, "apiVersion" | "kind") && !encode::has(fields, field));
        missing.extend(without.map(|field| format!("{name}.{field}")));
    }
    missing.sort_unstable();
    assert_eq!(missing, UNNUMBERED);
}

/// The whole name of a definition.
fn full(name: &str) -> String {
    match name.split('.').next() {
        Some("meta") => format!("io.k8s.apimachinery.pkg.apis.{name}"),
        Some("apiextensions") => format!("{EXTENSIONS}{name}"),
        Some("apiregistration") => format!("{AGGREGATOR}{name}"),
        _ => format!("io.k8s.api.{name}"),
    }
}

/// A value that was written, read again.
fn there_and_back(value: &Value) -> Value {
    let encoded = from_json(value).expect("known");
    assert!(encoded.is_whole, "{value}");
    to_json(&encoded.bytes).expect("valid").expect("known")
}

#[test]
fn what_is_written_is_read_again() {
    let schema = json!({"type": "object", "default": {"a": null}, "required": ["a"], "nullable": true,
        "properties": {"a": {"type": "array", "items": {"type": "number", "minimum": 0.5, "maximum": 3}},
            "b": {"additionalProperties": true}, "c": {"additionalProperties": {"type": "string"}},
            "d": {"dependencies": {"x": ["y"]}, "enum": ["a", 1, null], "x-kubernetes-int-or-string": true}}});
    let cases = [
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "creationTimestamp": "2026-01-02T03:04:05Z",
                "labels": {"app": "a"}, "managedFields": [{"manager": "m", "fieldsV1": {"f:spec": {}}}]},
            "spec": {"volumes": [{"name": "v", "emptyDir": {}}], "containers": [{"name": "app",
                "ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": "100m"}},
                "livenessProbe": {"initialDelaySeconds": 5, "httpGet": {"port": "http"}},
                "readinessProbe": {"tcpSocket": {"port": 80}}, "tty": true}], "priority": -3}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": "AAEC/w=="}, "type": "Opaque"}),
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"},
            "spec": {"renewTime": "2026-01-02T03:04:05.678901Z"}}),
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {"user": "u", "extra": {"scopes": ["a", "b"]}}, "status": {"allowed": true}}),
        json!({"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "r"}, "data": {"a": [1]},
            "revision": 3}),
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "c"},
            "spec": {"group": "example.com", "versions": [{"name": "v1", "served": true, "storage": false,
                "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}}]}}),
        json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.apps"},
            "spec": {"group": "apps", "version": "v1", "groupPriorityMinimum": 17_800, "versionPriority": 15}}),
    ];
    for case in cases {
        assert_eq!(there_and_back(&case), case);
    }
}

#[test]
fn lists_metadata_and_statuses_are_written() {
    let list = json!({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": "7"},
        "items": [{"metadata": {"name": "a"}, "data": {"k": "v"}}]});
    let map = of(|map| {
        map.message(1, &of(|meta| meta.text(1, "a")));
        map.message(
            2,
            &of(|entry| {
                entry.text(1, "k");
                entry.text(2, "v");
            }),
        );
    });
    let expected = of(|list| {
        list.message(1, &of(|meta| meta.text(2, "7")));
        list.message(2, &map);
    });
    let written = |value: &Value| from_json(value).expect("known").bytes;
    let as_sent = |api_version: &str, kind: &str, raw: &Message| {
        let mut bytes = envelope(api_version, kind, raw);
        // Encoding and media type, both empty.
        bytes.extend([3 << 3 | 2, 0, 4 << 3 | 2, 0]);
        bytes
    };
    assert_eq!(written(&list), as_sent("v1", "ConfigMapList", &expected));
    let partial =
        json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name": "a"}});
    let expected = of(|partial| partial.message(1, &of(|meta| meta.text(1, "a"))));
    assert_eq!(
        written(&partial),
        as_sent("meta.k8s.io/v1", "PartialObjectMetadata", &expected)
    );
    let status =
        json!({"apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Success", "code": 200});
    let expected = of(|status| {
        status.bytes(1, b"");
        status.text(2, "Success");
        status.number(6, 200);
    });
    assert_eq!(written(&status), as_sent("v1", "Status", &expected));
}

#[test]
fn an_event_says_its_length() {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    let event = event("ADDED", &object).expect("known");
    let (length, rest) = event.split_at(4);
    assert_eq!(
        u32::from_be_bytes(length.try_into().unwrap()) as usize,
        rest.len()
    );
    let inner = from_json(&object).expect("known").bytes;
    let expected = of(|event| {
        event.text(1, "ADDED");
        event.message(2, &of(|raw| raw.bytes(1, &inner)));
    });
    assert_eq!(rest, expected.into_bytes());
}

#[test]
fn a_broken_message_is_reported_by_how_far_it_was_read() {
    let error = |body: &[u8]| to_json(body).err();
    let prefix = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]";
    assert_eq!(error(b"\n\x02v1"), Some(Unread::Envelope(prefix.to_owned())));
    assert_eq!(
        error(b"k8s\0\xff\xff\xff"),
        Some(Unread::Envelope(UNEXPECTED.to_owned()))
    );
    let mut cut = Message::default();
    cut.bytes(1, b"\xff");
    assert_eq!(
        error(&envelope("v1", "ConfigMap", &cut)),
        Some(Unread::Object("v1".to_owned(), "ConfigMap".to_owned()))
    );
}

#[test]
fn discovery_is_written_with_a_message_around_its_verbs() {
    let list = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": [
        {"name": "a", "singularName": "", "namespaced": true, "kind": "A", "verbs": ["get", "list"]}]});
    let encoded = from_json(&list).expect("a message");
    assert!(encoded.is_whole);
    let verbs = of(|verbs| {
        verbs.bytes(1, b"get");
        verbs.bytes(1, b"list");
    });
    let mut wanted = Message::default();
    wanted.message(4, &verbs);
    let wanted = wanted.into_bytes();
    assert!(encoded.bytes.windows(wanted.len()).any(|part| part == wanted));
}

#[test]
fn what_is_nested_too_deep_or_no_json_is_no_body() {
    let bad = |body: &[u8]| to_json(body).is_err();
    let mut schema = Message::default();
    for _ in 0..5000 {
        schema = of(|outer| outer.message(25, &schema));
    }
    let crd = |schema: &Message| {
        let validation = of(|validation| validation.message(1, schema));
        let version = of(|version| version.message(4, &validation));
        let crd = of(|crd| crd.message(2, &of(|spec| spec.message(7, &version))));
        envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", &crd)
    };
    assert!(bad(&crd(&schema)));
    for (json, is_bad) in [("{", true), ("", false), ("[1.5]", false)] {
        let default = of(|schema| schema.message(8, &of(|value| value.text(1, json))));
        assert_eq!(bad(&crd(&default)), is_bad, "{json}");
    }
    let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
    let default = of(|schema| schema.message(8, &of(|value| value.text(1, &deep))));
    assert!(bad(&crd(&default)));
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

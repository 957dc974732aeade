//! Properties for any resource and any live object.

use std::{collections::BTreeMap, fmt::Write as _};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use entourage_api::keys::{annotation, label};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{
    hash::resource_hash,
    render::{
        DistributionRenderSpec, Mark, Standing, difference, must_be_recreated, release, render, standing,
    },
    template::{read, sanitised},
};

/// Names that rendering reads, so that generated JSON reaches them.
const FIELDS: &[&str] = &[
    "apiVersion",
    "kind",
    "metadata",
    "name",
    "generateName",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
    "uid",
    "controller",
    "resourceVersion",
    "items",
    "data",
    "binaryData",
    "stringData",
    "type",
    "immutable",
    label::DISTRIBUTED_BY,
    annotation::DISTRIBUTED_FROM,
    annotation::DISTRIBUTED_IN,
    annotation::DISTRIBUTED_KEYS,
    "service.beta.openshift.io/inject-cabundle",
];

const WORDS: &[&str] = &[
    "",
    "v1",
    "Secret",
    "ConfigMap",
    "dist",
    "uid-of-dist",
    "hub",
    "YQ==",
    "Y Q==\n",
    "YQ",
    "true",
    "l:labels,a:data,l:",
    "kubernetes.io/service-account-token",
    "ü",
];

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(WORDS).prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 96, 6, |inner| {
        let field = prop_oneof![
            4 => prop::sample::select(FIELDS).prop_map(str::to_owned),
            1 => ".{0,3}",
        ];
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            3 => prop::collection::btree_map(field, inner, 0..6).prop_map(|map| json!(map)),
        ]
    })
}

/// An object with the correct outline, so that the generated parts are where rendering reads.
fn any_object() -> impl Strategy<Value = Value> {
    let kind = prop::sample::select(vec!["Secret", "ConfigMap", "Pod"]);
    let parts = (any_json(), any_json(), any_json(), any_json(), any_json());
    let outline = (kind, parts).prop_map(|(kind, (labels, annotations, owners, data, other))| {
        json!({
            "apiVersion": "v1",
            "kind": kind,
            "metadata": {
                "name": "n", "labels": labels, "annotations": annotations,
                "ownerReferences": [owners], "finalizers": other,
            },
            "type": other,
            "data": data,
            "binaryData": {"a": data},
            "stringData": other,
            "immutable": true,
        })
    });
    prop_oneof![any_json(), outline]
}

fn render_specs() -> [DistributionRenderSpec; 2] {
    let on_hub = DistributionRenderSpec {
        distribution: "dist".into(),
        uid: "uid-of-dist".into(),
        namespace: "ns-1".into(),
        mark: Mark::Owner,
        take_over: false,
    };
    let mut on_member = on_hub.clone();
    on_member.mark = Mark::Member {
        hub: "hub".into(),
        cluster: "m1".into(),
    };
    [on_hub, on_member]
}

type Texts = BTreeMap<String, String>;

/// A resource as users write it, and the base64 of its Secrets as tools do.
#[derive(Clone, Debug)]
struct Written {
    is_secret: bool,
    labels: Texts,
    annotations: Texts,
    data: Texts,
    plain: Texts,
    kind_of_secret: Option<&'static str>,
    immutable: Option<bool>,
    wrapped: bool,
}

fn texts(keys: &'static [&'static str]) -> impl Strategy<Value = Texts> {
    let key = prop::sample::select(keys).prop_map(str::to_owned);
    prop::collection::btree_map(key, ".{0,60}", 0..4)
}

const LABELS: &[&str] = &["app", "a.b/c", "tier", "x"];
const ANNOTATIONS: &[&str] = &["note", "d.e/f", "x"];
const DATA: &[&str] = &["a", "b.conf", "C_D", "tls.crt"];

fn written() -> impl Strategy<Value = Written> {
    (
        any::<bool>(),
        texts(LABELS),
        texts(ANNOTATIONS),
        texts(DATA),
        texts(DATA),
        prop::option::of(prop::sample::select(vec!["", "Opaque", "example.com/t"])),
        prop::option::of(any::<bool>()),
        any::<bool>(),
    )
        .prop_map(
            |(is_secret, labels, annotations, data, plain, kind_of_secret, immutable, wrapped)| Written {
                is_secret,
                labels,
                annotations,
                data,
                plain,
                kind_of_secret,
                immutable,
                wrapped,
            },
        )
}

impl Written {
    fn resource(&self) -> Value {
        let mut resource = json!({
            "apiVersion": "v1",
            "kind": if self.is_secret { "Secret" } else { "ConfigMap" },
            "metadata": {"name": "n", "labels": self.labels, "annotations": self.annotations},
        });
        let encoded = |map: &Texts| -> Map<String, Value> {
            let of = |text: &String| {
                if self.wrapped {
                    wrapped(text)
                } else {
                    STANDARD.encode(text)
                }
            };
            map.iter()
                .map(|(key, text)| (key.clone(), json!(of(text))))
                .collect()
        };
        if self.is_secret {
            resource["data"] = json!(encoded(&self.data));
            resource["stringData"] = json!(self.plain);
            resource["type"] = json!(self.kind_of_secret);
        } else {
            resource["data"] = json!(self.data);
            let binary: Texts = self
                .plain
                .iter()
                .map(|(key, text)| (format!("bin-{key}"), text.clone()))
                .collect();
            resource["binaryData"] = json!(encoded(&binary));
        }
        resource["immutable"] = json!(self.immutable);
        resource
    }

    /// The object that a server stores of it, written independently of the rendering code.
    fn stored(&self) -> Value {
        let base64 = |text: &String| STANDARD.encode(text);
        let mut object = Map::new();
        if self.is_secret {
            let data: Texts = self
                .data
                .iter()
                .chain(&self.plain)
                .map(|(key, text)| (key.clone(), base64(text)))
                .collect();
            if !data.is_empty() {
                object.insert("data".to_owned(), json!(data));
            }
            let named = self.kind_of_secret.filter(|name| !name.is_empty());
            object.insert("type".to_owned(), json!(named.unwrap_or("Opaque")));
        } else {
            if !self.data.is_empty() {
                object.insert("data".to_owned(), json!(self.data));
            }
            let binary: Texts = self
                .plain
                .iter()
                .map(|(key, text)| (format!("bin-{key}"), base64(text)))
                .collect();
            if !binary.is_empty() {
                object.insert("binaryData".to_owned(), json!(binary));
            }
        }
        if let Some(immutable) = self.immutable {
            object.insert("immutable".to_owned(), json!(immutable));
        }
        object.insert("apiVersion".to_owned(), json!("v1"));
        object.insert(
            "kind".to_owned(),
            json!(if self.is_secret { "Secret" } else { "ConfigMap" }),
        );
        Value::Object(object)
    }
}

/// Base64 with line breaks, as some tools write it.
fn wrapped(text: &str) -> String {
    let encoded = STANDARD.encode(text);
    let mut lines = String::new();
    for line in encoded.as_bytes().chunks(16) {
        writeln!(lines, "{}", String::from_utf8_lossy(line)).unwrap();
    }
    lines
}

/// The live object that a server returns for a copy.
fn served(sent: &Value) -> Value {
    let mut live = sent.clone();
    live["metadata"]["uid"] = json!("uid-of-copy");
    live["metadata"]["resourceVersion"] = json!("7");
    live["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
    live
}

/// A copy as OpenKruise writes it.
fn by_openkruise(written: &Written, version: &str) -> Value {
    let resource = written.resource();
    let mut live = written.stored();
    live["metadata"] = resource["metadata"].clone();
    live["metadata"]["namespace"] = json!("ns-1");
    live["metadata"]["annotations"][annotation::DISTRIBUTED_FROM] = json!("dist");
    live["metadata"]["annotations"][annotation::DISTRIBUTED_HASH] = json!(resource_hash(&resource));
    live["metadata"]["ownerReferences"] = json!([{
        "apiVersion": format!("apps.kruise.io/{version}"), "kind": "ResourceDistribution", "name": "dist",
        "uid": "uid-of-dist", "controller": true, "blockOwnerDeletion": true,
    }]);
    served(&live)
}

fn strings<'a>(object: &'a Value, field: &str) -> Vec<(&'a str, &'a str)> {
    let map = object["metadata"][field].as_object();
    map.into_iter()
        .flatten()
        .map(|(key, value)| (key.as_str(), value.as_str().unwrap()))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn nothing_panics_whatever_the_json(resource in any_object(), live in any_object()) {
        let _ = (read(&resource), resource_hash(&resource));
        let once = sanitised(&resource);
        prop_assert_eq!(&sanitised(&once), &once, "sanitised twice is sanitised no more");
        if let Ok(subject) = read(&resource) {
            let again = read(&once).unwrap();
            prop_assert_eq!((subject.gvk, subject.name), (again.gvk, again.name));
        }
        for render_spec in render_specs() {
            let first = render(&render_spec, &resource, None);
            let copy = render(&render_spec, &resource, Some(&live));
            let again = render(&render_spec, &resource, Some(copy.object()));
            prop_assert_eq!(copy.object(), again.object(), "rendered on itself it stays");
            prop_assert_eq!(difference(&again, copy.object()), None);
            prop_assert_eq!(must_be_recreated(&copy, copy.object()), None);
            let _ = (difference(&first, &live), difference(&copy, &live), must_be_recreated(&copy, &live));
            let is_ours = standing(&render_spec, &live) == Standing::Ours;
            prop_assert!(!is_ours || release(&render_spec, &live).is_some());
            prop_assert_eq!(standing(&render_spec, copy.object()), Standing::Ours);
        }
    }

    #[test]
    fn what_a_server_made_of_a_copy_is_not_written_again(written in written()) {
        let resource = written.resource();
        prop_assert!(read(&resource).is_ok() && read(&sanitised(&resource)).is_ok());
        for render_spec in render_specs() {
            let sent = render(&render_spec, &resource, None);
            let live = served(sent.object());
            let copy = render(&render_spec, &resource, Some(&live));
            prop_assert_eq!(difference(&sent, &live), None);
            prop_assert_eq!(difference(&copy, &live), None);
            prop_assert_eq!(must_be_recreated(&copy, &live), None);
            prop_assert_eq!(standing(&render_spec, &live), Standing::Ours);
        }
    }

    #[test]
    fn copies_of_openkruise_are_ours_as_they_are(written in written(), is_beta in any::<bool>()) {
        let live = by_openkruise(&written, if is_beta { "v1beta1" } else { "v1alpha1" });
        let [render_spec, _] = render_specs();
        let copy = render(&render_spec, &written.resource(), Some(&live));
        prop_assert_eq!(standing(&render_spec, &live), Standing::Ours);
        prop_assert_eq!(difference(&copy, &live), None);
        prop_assert_eq!(must_be_recreated(&copy, &live), None);
        prop_assert_eq!(&copy.object()["metadata"]["ownerReferences"], &live["metadata"]["ownerReferences"]);
    }

    #[test]
    fn labels_of_others_stay_and_ours_come_and_go(
        before in written(), after in written(), labels in texts(LABELS), annotations in texts(ANNOTATIONS),
    ) {
        for render_spec in render_specs() {
            let mut live = served(render(&render_spec, &before.resource(), None).object());
            let theirs = |field: &str| if field == "labels" { &labels } else { &annotations };
            let set = |written: &Written, field: &str| {
                if field == "labels" { written.labels.clone() } else { written.annotations.clone() }
            };
            for field in ["labels", "annotations"] {
                for (key, value) in theirs(field) {
                    live["metadata"][field][key] = json!(value);
                }
            }
            live["metadata"]["labels"][label::PROPAGATION_POLICY_ID] = json!("claim");
            live["metadata"]["finalizers"] = json!(["example.com/theirs"]);
            let copy = render(&render_spec, &after.resource(), Some(&live));
            prop_assert_eq!(&copy.object()["metadata"]["finalizers"], &json!(["example.com/theirs"]));
            prop_assert_eq!(&copy.object()["metadata"]["labels"][label::PROPAGATION_POLICY_ID], &json!("claim"));
            for field in ["labels", "annotations"] {
                let (was, is) = (set(&before, field), set(&after, field));
                let found: BTreeMap<&str, &str> = strings(copy.object(), field).into_iter().collect();
                for (key, value) in &is {
                    prop_assert_eq!(found.get(key.as_str()), Some(&value.as_str()), "ours wins");
                }
                for key in was.keys().filter(|key| !is.contains_key(*key)) {
                    prop_assert!(!found.contains_key(key.as_str()), "it was taken out of the resource");
                }
                for (key, value) in theirs(field) {
                    if !was.contains_key(key) && !is.contains_key(key) {
                        prop_assert_eq!(found.get(key.as_str()), Some(&value.as_str()), "it is theirs");
                    }
                }
            }
            prop_assert_eq!(difference(&render(&render_spec, &after.resource(), Some(copy.object())), copy.object()), None);
        }
    }

    #[test]
    fn a_released_copy_has_its_content_and_none_of_our_marks(written in written()) {
        for render_spec in render_specs() {
            let live = served(render(&render_spec, &written.resource(), None).object());
            let released = release(&render_spec, &live).unwrap();
            prop_assert_eq!(standing(&render_spec, &released), Standing::Free);
            prop_assert_eq!(release(&render_spec, &released), None);
            prop_assert!(!released.to_string().contains("distribut"), "{released}");
            for field in ["data", "binaryData", "type", "immutable"] {
                prop_assert_eq!(&released[field], &live[field]);
            }
            for (key, value) in &written.labels {
                prop_assert_eq!(&released["metadata"]["labels"][key], &json!(value));
            }
        }
    }

    #[test]
    fn nothing_of_the_content_is_shown(object in hostile(), live in hostile()) {
        let mut shown = String::new();
        match read(&object) {
            Ok(subject) => write!(shown, "{subject:?}").unwrap(),
            Err(problems) => {
                for problem in problems {
                    write!(shown, "{problem} {problem:?}").unwrap();
                }
            }
        }
        for render_spec in render_specs() {
            let copy = render(&render_spec, &object, Some(&live));
            let texts = (difference(&copy, &live), must_be_recreated(&copy, &live), standing(&render_spec, &live));
            write!(shown, "{render_spec:?} {texts:?}").unwrap();
        }
        prop_assert!(!shown.contains("canary"), "{shown}");
    }
}

/// A Secret or ConfigMap with a canary in all fields except group, kind and type, valid or invalid in many ways.
fn hostile() -> impl Strategy<Value = Value> {
    let value = || {
        prop::sample::select(vec![
            json!("canary"),
            json!("Y2FuYXJ5"),
            json!("Y2FuYXJ5 canary"),
            json!({"canary": "canary"}),
            json!(["canary"]),
            json!({"canary/": 1}),
            json!({"..canary": "canary"}),
            json!({"a": "canary"}),
            json!(3),
            Value::Null,
        ])
    };
    let head = (
        prop::sample::select(vec!["v1", "v2", "apps/v1", ""]),
        prop::sample::select(vec!["Secret", "ConfigMap", "Pod", "", "the canary is here"]),
        prop::sample::select(vec!["n", "the canary", ""]),
    );
    let body = (value(), value(), value(), value(), value(), value(), value());
    (head, body).prop_map(|((api_version, kind, name), (data, binary, plain, labels, annotations, other, more))| {
        json!({
            "apiVersion": api_version,
            "kind": kind,
            "metadata": {"name": name, "labels": labels, "annotations": annotations, "generateName": more},
            "type": other,
            "data": data,
            "binaryData": binary,
            "stringData": plain,
            "immutable": more,
            "canary": other,
        })
    })
}

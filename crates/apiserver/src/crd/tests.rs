//! Tests of custom resources: from the CRD to its objects, and what no client should be able to break.

use std::{sync::Arc, time::Duration};

use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};

use super::{COLLECTION, names::FINALIZER};
use crate::{
    Cluster, Options,
    resource::Surroundings as _,
    schema::{
        Schema,
        cel::{self, Which},
        declared, prune, validate,
    },
    server::Server,
};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

#[expect(clippy::needless_pass_by_value, reason = "literals read best as they are")]
fn crd(plural: &str, kind: &str, schema: Value) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.t.example.com")},
        "spec": {"group": "t.example.com", "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema}}]}})
}

async fn send(cluster: &Cluster, method: Method, path: &str, body: &Value) -> (u16, Value) {
    let media = if method == Method::PATCH {
        "application/merge-patch+json"
    } else {
        "application/json"
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("authorization", "Bearer admin")
        .header("content-type", media)
        .body(Full::new(bytes::Bytes::from(body.to_string())))
        .unwrap();
    let response = crate::http::answer(cluster.inner(), request).await;
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or_default())
}

/// Waits until the cluster is as wanted, with every write.
async fn until(cluster: &Arc<Server>, wanted: impl Fn(&Server) -> bool) {
    let mut ticks = cluster.store.ticks();
    let wait = async {
        while !wanted(cluster) {
            ticks.changed().await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(10), wait).await.unwrap();
}

fn is_served(cluster: &Server, plural: &str) -> bool {
    cluster.kinds().find("t.example.com", "v1", plural).is_some()
}

fn is_established(cluster: &Server, plural: &str) -> bool {
    let crd = cluster
        .get(COLLECTION, &format!("{plural}.t.example.com"))
        .unwrap_or_default();
    Value::Object(crd)["status"]["conditions"][1]["status"] == "True"
}

#[expect(clippy::needless_pass_by_value, reason = "literals read best as they are")]
fn understood(declared: Value) -> Arc<Schema> {
    Arc::new(declared::understand(&declared, 0))
}

#[tokio::test]
async fn a_crd_is_served_when_it_is_established_and_gone_when_it_is_deleted() {
    let cluster = Cluster::new(crate::server::tests_support::admins());
    let inner = cluster.inner().clone();
    let definition = crd(
        "cups",
        "Cup",
        json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "size": {"type": "string", "default": "medium"}}}}}),
    );
    assert_eq!(send(&cluster, Method::POST, CRDS, &definition).await.0, 201);
    until(&inner, |cluster| is_established(cluster, "cups")).await;
    assert!(is_served(&inner, "cups"));
    let path = "/apis/t.example.com/v1/namespaces/default/cups";
    let cup = json!({"apiVersion": "t.example.com/v1", "kind": "Cup", "metadata": {"name": "a"},
        "spec": {"unknown": 1}});
    let (code, made) = send(&cluster, Method::POST, path, &cup).await;
    assert_eq!((code, &made["spec"]), (201, &json!({"size": "medium"})));
    let name = format!("{CRDS}/cups.t.example.com");
    let (_, leaving) = send(&cluster, Method::DELETE, &name, &json!({})).await;
    assert_eq!(leaving["metadata"]["finalizers"], json!([FINALIZER]));
    until(&inner, |cluster| {
        cluster.get(COLLECTION, "cups.t.example.com").is_none()
    })
    .await;
    assert!(!is_served(&inner, "cups"));
    assert!(
        inner
            .store
            .list("t.example.com/cups", "", None, 0)
            .entries
            .is_empty()
    );
}

#[tokio::test]
async fn an_object_with_a_finalizer_holds_its_crd_and_nothing_new_is_made_meanwhile() {
    let cluster = Cluster::new(crate::server::tests_support::admins());
    let inner = cluster.inner().clone();
    let definition = crd("pins", "Pin", json!({"type": "object"}));
    send(&cluster, Method::POST, CRDS, &definition).await;
    until(&inner, |cluster| is_established(cluster, "pins")).await;
    let path = "/apis/t.example.com/v1/namespaces/default/pins";
    let pin = json!({"apiVersion": "t.example.com/v1", "kind": "Pin",
        "metadata": {"name": "held", "finalizers": ["example.com/x"]}});
    assert_eq!(send(&cluster, Method::POST, path, &pin).await.0, 201);
    send(
        &cluster,
        Method::DELETE,
        &format!("{CRDS}/pins.t.example.com"),
        &json!({}),
    )
    .await;
    until(&inner, |cluster| {
        let crd = Value::Object(cluster.get(COLLECTION, "pins.t.example.com").unwrap_or_default());
        crd["status"]["conditions"][2]["reason"] == "InstanceDeletionInProgress"
    })
    .await;
    let late = json!({"apiVersion": "t.example.com/v1", "kind": "Pin", "metadata": {"name": "late"}});
    assert_eq!(send(&cluster, Method::POST, path, &late).await.0, 403);
    let release = json!({"metadata": {"finalizers": null}});
    assert_eq!(
        send(&cluster, Method::PATCH, &format!("{path}/held"), &release)
            .await
            .0,
        200
    );
    until(&inner, |cluster| {
        cluster.get(COLLECTION, "pins.t.example.com").is_none()
    })
    .await;
}

#[tokio::test]
async fn crds_that_are_stored_already_are_served_from_the_start() {
    let file = std::env::temp_dir().join(format!("crds-{}.redb", crate::random::new_uid()));
    let options = || Options {
        data: Some(file.clone()),
        ..crate::server::tests_support::admins()
    };
    {
        let cluster = Cluster::open(options()).unwrap();
        let inner = cluster.inner().clone();
        send(
            &cluster,
            Method::POST,
            CRDS,
            &crd("maps", "Map", json!({"type": "object"})),
        )
        .await;
        until(&inner, |cluster| is_established(cluster, "maps")).await;
        inner.store.committed(inner.store.revision()).await.unwrap();
    }
    let mut again = Cluster::open(options());
    for _ in 0..100 {
        if again.is_ok() {
            break;
        }
        // The file is free when the last task of the first cluster has ended.
        tokio::task::yield_now().await;
        again = Cluster::open(options());
    }
    let again = again.unwrap();
    assert!(is_served(again.inner(), "maps"));
    drop(again);
    let _ = std::fs::remove_file(file);
}

#[test]
fn rules_end_within_their_steps() {
    let schema = understood(
        json!({"type": "object", "properties": {"l": {"type": "array", "items": {"type": "integer"}}},
        "x-kubernetes-validations": [
            {"rule": "self.l.all(a, self.l.all(b, self.l.all(c, a + b + c >= 0)))", "message": "never reported"}]}),
    );
    let details = |list: Vec<i64>, schema: &Schema| {
        let errors = cel::evaluate(Some("spec"), &json!({"l": list}), None, schema, Which::Deciding);
        errors.into_iter().map(|error| error.detail).collect::<Vec<_>>()
    };
    assert_eq!(
        details((0..2000).collect(), &schema),
        [
            "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: never reported"
        ]
    );
    let rule = json!({"rule": "self.l.all(a, self.l.all(b, a + b >= 0))"});
    let many = understood(
        json!({"type": "object", "properties": {"l": {"type": "array", "items": {"type": "integer"}}},
        "x-kubernetes-validations": vec![rule; 40]}),
    );
    assert_eq!(details((0..200).collect(), &many), [cel::OUT_OF_BUDGET]);
    let message = understood(
        json!({"type": "object", "properties": {"l": {"type": "array", "items": {"type": "integer"}}},
        "x-kubernetes-validations": [{"rule": "false",
            "messageExpression": "self.l.all(a, self.l.all(b, self.l.all(c, true))) ? 'a' : 'b'"}]}),
    );
    assert_eq!(
        details((0..2000).collect(), &message),
        [
            "no further validation rules will be run due to call cost exceeds limit for messageExpression: \"self.l.all(a, self.l.all(b, self.l.all(c, true))) ? 'a' : 'b'\""
        ]
    );
}

#[test]
fn a_rule_that_cannot_be_evaluated_is_an_error_with_its_cause() {
    for (rule, detail) in [
        (
            json!({"rule": "self.a == self.l[0]"}),
            "index out of bounds: 0 evaluating rule: self.a == self.l[0]",
        ),
        (
            json!({"rule": "self.a / self.a == 1", "message": "no ratio"}),
            "division by zero evaluating rule: no ratio",
        ),
        (
            json!({"rule": "self.either < 5"}),
            "'no such overload': call arguments did not match a supported operator, function or macro signature for rule: self.either < 5",
        ),
    ] {
        let schema = understood(json!({"type": "object", "properties": {
            "a": {"type": "integer"}, "either": {"x-kubernetes-int-or-string": true},
            "l": {"type": "array", "items": {"type": "integer"}}}, "x-kubernetes-validations": [rule]}));
        let object = json!({"a": 0, "either": "x", "l": []});
        let errors = cel::evaluate(None, &object, None, &schema, Which::Deciding);
        let details: Vec<String> = errors.into_iter().map(|error| error.detail).collect();
        assert_eq!(details, [detail]);
    }
}

#[test]
fn rules_see_names_with_underscores_and_loops_over_two_variables() {
    let schema = understood(json!({"type": "object", "properties": {
            "my_field": {"type": "integer"}, "a-b": {"type": "string"},
            "l": {"type": "array", "items": {"type": "integer"}},
            "m": {"type": "object", "additionalProperties": {"type": "string"}}},
        "x-kubernetes-validations": [
            {"rule": "self.my_field == 1"}, {"rule": "self.a__dash__b == 'x'"},
            {"rule": "self.l.all(i, v, v > i)"}, {"rule": "self.l.exists(i, v, i == 1 && v == 5)"},
            {"rule": "self.m.all(k, v, k == v)"}, {"rule": "self.l.transformList(i, v, i * v) == [0, 5]"}]}));
    let good = json!({"my_field": 1, "a-b": "x", "l": [3, 5], "m": {"k": "k"}});
    assert_eq!(cel::evaluate(None, &good, None, &schema, Which::Deciding), []);
    let bad = json!({"my_field": 2, "a-b": "y", "l": [0, 1], "m": {"k": "v"}});
    assert_eq!(cel::evaluate(None, &bad, None, &schema, Which::Deciding).len(), 6);
}

#[test]
fn expressions_that_would_break_the_interpreter_are_refused() {
    let deep = format!("{}1{} == 1", "(".repeat(5000), ")".repeat(5000));
    let long = format!("self == {}", vec!["1"; 4000].join(" + "));
    let negated = format!("{}true", "!".repeat(3000));
    for rule in [
        deep.as_str(),
        long.as_str(),
        negated.as_str(),
        "Foo{a: 1}.a == 1",
        "self.",
        "'",
        "\u{0}",
        "a ? b",
    ] {
        let declared = json!({"type": "object", "properties": {"a": {"type": "integer",
            "x-kubernetes-validations": [{"rule": rule}]}}});
        let errors = cel::admit::errors(declared.as_object().unwrap(), "p", true);
        assert!(!errors.is_empty(), "{}", &rule[..rule.len().min(40)]);
        // Stored by an earlier server: reported, not enforced.
        let schema = understood(declared);
        assert!(!cel::evaluate(None, &json!({"a": 1}), None, &schema, Which::Deciding).is_empty());
    }
}

#[test]
fn the_deepest_rule_that_is_taken_fits_on_the_stack_of_a_request() {
    let sum = vec!["self"; 90].join(" + ");
    let rules = [
        format!("{sum} == 90"),
        format!("{}{sum}{} == 90", "(".repeat(95), ")".repeat(95)),
    ];
    for rule in rules {
        let declared = json!({"type": "object", "properties": {"a": {"type": "integer",
            "x-kubernetes-validations": [{"rule": rule}]}}});
        assert_eq!(cel::admit::errors(declared.as_object().unwrap(), "p", true), []);
        let schema = understood(declared["properties"]["a"].clone());
        assert_eq!(cel::evaluate(None, &json!(1), None, &schema, Which::Deciding), []);
    }
}

#[test]
fn usual_rules_are_taken() {
    let declared = json!({"type": "object", "properties": {
        "a": {"type": "string", "maxLength": 10}, "n": {"type": "integer"}, "d": {"type": "string", "format": "date-time"},
        "l": {"type": "array", "maxItems": 5, "items": {"type": "object", "properties": {"k": {"type": "string"}}}},
        "m": {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 5},
        "p": {"x-kubernetes-int-or-string": true}, "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
        "x-kubernetes-validations": [
            {"rule": "has(self.a) && self.a.startsWith('x') || self.n > 1"},
            {"rule": "self.l.exists_one(x, x.k == self.a) ? self.n == 1 : true"},
            {"rule": "self.l.map(x, x.k).filter(k, k != '').size() <= 3"},
            {"rule": "'k' in self.m && self.m['k'] + self.n < 10 && self.m.k >= 0"},
            {"rule": "type(self.p) == int ? self.p > 1 : self.p.endsWith('%')"},
            {"rule": "has(self.free)"},
            {"rule": "self.d < timestamp('2030-01-01T00:00:00Z')"},
            {"rule": "quantity(self.a).compareTo(quantity('1')) >= 0 && ip.isCanonical(self.a)"},
            {"rule": "sets.contains([1, 2], [self.n]) && self.a.split(',').all(x, x.matches('^[a-z]+$'))"},
            {"rule": "self.?a.orValue('') != 'y'"},
            {"rule": "self.metadata.name.size() < 9", "messageExpression": "'name ' + self.metadata.name"},
            {"rule": "self.n == oldSelf.n || [1, 2].exists(x, x == self.n)"}]});
    let errors = cel::admit::errors(declared.as_object().unwrap(), "p", true);
    assert_eq!(
        errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
        Vec::<String>::new()
    );
}

#[test]
fn unchanged_faults_are_let_through_and_items_are_found_again_by_their_keys() {
    let schema = understood(json!({"type": "object", "properties": {
        "l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"],
            "items": {"type": "object", "properties": {"n": {"type": "string"}, "v": {"type": "integer", "maximum": 5}}}},
        "m": {"type": "object", "additionalProperties": {"type": "integer", "maximum": 5}}}}));
    let old = json!({"l": [{"n": "a", "v": 9}, {"n": "b", "v": 1}], "m": {"x": 9}});
    let moved = json!({"l": [{"n": "c", "v": 1}, {"n": "a", "v": 9}], "m": {"x": 9, "y": 1}});
    assert_eq!(validate::value(None, &moved, Some(&old), &schema), []);
    let worse = json!({"l": [{"n": "a", "v": 8}, {"n": "b", "v": 1}], "m": {"x": 9, "y": 6}});
    let fields: Vec<String> = validate::value(None, &worse, Some(&old), &schema)
        .into_iter()
        .map(|error| error.field)
        .collect();
    assert_eq!(fields, ["l[0].v", "m.y"]);
}

#[test]
fn numbers_of_defaults_are_written_as_those_of_bodies() {
    let schema = understood(json!({"type": "object", "properties": {
        "a": {"type": "number", "default": 1.0}, "b": {"type": "object", "default": {"c": [2.0, 0.5]}}}}));
    let mut value = json!({});
    prune::fill(&mut value, &schema);
    assert_eq!(value.to_string(), r#"{"a":1,"b":{"c":[2,0.5]}}"#);
}

#[test]
fn a_schema_without_end_is_understood_to_a_depth() {
    let mut declared = json!({"type": "object"});
    for _ in 0..120 {
        declared = json!({"type": "object", "properties": {"a": declared}});
    }
    assert!(declared::understand(&declared, 0).properties.contains_key("a"));
    let mut value = json!({});
    for _ in 0..120 {
        value = json!({"a": value});
    }
    prune::prune(&mut value, Some(&declared::understand(&declared, 0)));
}

mod properties {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use crate::schema::{declared::understand, prune, validate};

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "[a-c]{0,3}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-d]", inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    fn declared() -> Value {
        json!({"type": "object", "properties": {
            "a": {"type": "string", "default": "x", "pattern": "^a"}, "b": {"type": "integer", "maximum": 3},
            "c": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object", "properties": {
                "a": {"type": "number", "default": 1, "multipleOf": 0.5}}}},
            "d": {"type": "object", "nullable": true, "additionalProperties": {"type": "boolean", "nullable": true}}}})
    }

    proptest! {
        #[test]
        fn what_was_shaped_once_stays_as_it_is(value in any_value()) {
            let schema = understand(&declared(), 0);
            let shape = |value: &mut Value| {
                prune::normalize_numbers(value);
                prune::prune(value, Some(&schema));
                prune::drop_nulls(value, &schema);
                prune::fill(value, &schema);
            };
            let mut once = value;
            shape(&mut once);
            let mut twice = once.clone();
            shape(&mut twice);
            prop_assert_eq!(&once, &twice);
            // Any object can be validated; against itself there are no errors.
            let _ = validate::value(None, &once, None, &schema);
            prop_assert!(validate::value(None, &once, Some(&twice), &schema).is_empty());
        }
    }
}

#[test]
fn what_a_replaced_definition_still_writes_is_not_taken_for_stored_by_the_new_one() {
    let Value::Object(mut crd) = crd("cups", "Cup", json!({"type": "object"})) else {
        panic!("an object")
    };
    crd.insert(
        "status".to_owned(),
        json!({"acceptedNames": {"plural": "cups", "kind": "Cup"}}),
    );
    let late = Arc::default();
    let made = || {
        super::resources(&crd, None, &late)[0]
            .custom
            .clone()
            .expect("custom")
    };
    let (old, new) = (made(), made());
    old.writes(4);
    old.replaced.cancel();
    new.served_since(5);
    assert!(new.is_as_stored(6));
    old.writes(6);
    new.writes(7);
    assert!(!new.is_as_stored(5) && !new.is_as_stored(6));
    assert!(new.is_as_stored(7));
}

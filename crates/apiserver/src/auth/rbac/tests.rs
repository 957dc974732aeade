//! Rules, bindings and what they allow.

use super::*;
use crate::store::Expect;
use bytes::Bytes;
use serde_json::json;

fn put(store: &Store, which: usize, key: &str, object: &Value) {
    let expect = store
        .get(COLLECTIONS[which], key)
        .map_or(Expect::Absent, |entry| Expect::At(entry.revision));
    store
        .put(COLLECTIONS[which], key, expect, |_| {
            Bytes::from(object.to_string())
        })
        .expect("written");
}

fn get_configmaps() -> Value {
    json!({"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"]}]})
}

fn wanted<'a>(verb: &'a str, namespace: &'a str) -> Wanted<'a> {
    Wanted {
        verb,
        resource: "configmaps",
        namespace,
        name: "a",
        ..Wanted::default()
    }
}

#[test]
fn a_rule_about_every_resource_says_nothing_of_paths_not_even_of_an_empty_one() {
    let everything = |what: Value| -> Rule { serde_json::from_value(what).expect("a rule") };
    let resources = everything(json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}));
    let paths = everything(json!({"verbs": ["*"], "nonResourceURLs": ["*"]}));
    for path in ["", "/", "/metrics"] {
        let wanted = Wanted {
            verb: "get",
            path: Some(path),
            ..Wanted::default()
        };
        assert!(!resources.allows(&wanted), "{path:?}");
        assert!(paths.allows(&wanted), "{path:?}");
    }
    assert!(!paths.allows(&wanted("get", "n")));
}

#[test]
fn a_binding_gives_what_its_role_grants_in_its_namespace() {
    let (store, cache) = (Store::new(), Cache::default());
    put(&store, 0, "n/reader", &get_configmaps());
    let reader = User::new("system:serviceaccount:n:robot", &[]);
    assert_eq!(cache.current(&store).allows(&reader, &wanted("get", "n")), None);
    put(
        &store,
        2,
        "n/b",
        &json!({"roleRef": {"kind": "Role", "name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": "n"}]}),
    );
    let index = cache.current(&store);
    assert_eq!(
        index.allows(&reader, &wanted("get", "n")).as_deref(),
        Some(r#"RBAC: allowed by RoleBinding "b/n" of Role "reader" to ServiceAccount "robot/n""#)
    );
    assert_eq!(index.allows(&reader, &wanted("list", "n")), None);
    assert_eq!(index.allows(&reader, &wanted("get", "m")), None);
    assert_eq!(index.allows(&reader, &wanted("get", "")), None);
}

#[test]
fn the_index_follows_changes_and_deletions() {
    let (store, cache) = (Store::new(), Cache::default());
    put(&store, 1, "reader", &get_configmaps());
    let bound = |group: &str| json!({"roleRef": {"kind": "ClusterRole", "name": "reader"}, "subjects": [{"kind": "Group", "name": group}]});
    put(&store, 3, "b", &bound("devs"));
    let dev = User::new("jane", &["devs"]);
    assert!(
        cache
            .current(&store)
            .allows(&dev, &wanted("get", "any"))
            .is_some()
    );
    put(&store, 3, "b", &bound("ops"));
    assert!(
        cache
            .current(&store)
            .allows(&dev, &wanted("get", "any"))
            .is_none()
    );
    put(&store, 3, "b", &bound("devs"));
    let entry = store.get(COLLECTIONS[1], "reader").expect("there");
    store
        .delete(COLLECTIONS[1], "reader", entry.revision, |_| entry.object.clone())
        .expect("deleted");
    assert!(
        cache
            .current(&store)
            .allows(&dev, &wanted("get", "any"))
            .is_none()
    );
}

#[test]
fn rules_match_as_documented() {
    let rule = |resources: &[&str], names: &[&str]| Rule {
        verbs: vec!["get".into()],
        api_groups: vec!["apps".into()],
        resources: resources.iter().map(|&r| r.into()).collect(),
        resource_names: names.iter().map(|&r| r.into()).collect(),
        ..Rule::default()
    };
    let scale = Wanted {
        verb: "get",
        group: "apps",
        resource: "deployments",
        subresource: "scale",
        name: "a",
        ..Wanted::default()
    };
    let cases = [
        (rule(&["deployments/scale"], &[]), true),
        (rule(&["*/scale"], &[]), true),
        (rule(&["*"], &[]), true),
        (rule(&["deployments"], &[]), false),
        (rule(&["deployments/status"], &[]), false),
        (rule(&["*"], &["a"]), true),
        (rule(&["*"], &["b"]), false),
    ];
    for (rule, expected) in cases {
        assert_eq!(rule.allows(&scale), expected, "{rule:?}");
    }
    assert!(covers("/api/*", "/api/v1"));
    assert!(!covers("/api/", "/api/v1"));
}

//! Selectors: what is parsed, what is selected, what is refused.

use serde_json::json;

use super::*;

fn resource(group: &str, plural: &str) -> std::sync::Arc<Resource> {
    crate::kinds::builtin().find(group, "v1", plural).unwrap().clone()
}

fn entry(key: &str, object: &Value) -> Entry {
    Entry {
        key: key.to_owned(),
        revision: 3,
        created: 3,
        object: serde_json::to_vec(object).unwrap().into(),
    }
}

/// True if the selectors select the object, as stored and as shown.
fn selects(resource: &Resource, labels: &str, fields: &str, object: &Value) -> bool {
    let selection = Selection::parse(resource, Some(labels), Some(fields)).unwrap();
    let metadata = &object["metadata"];
    let key = resource.key(
        metadata["namespace"].as_str().unwrap_or_default(),
        metadata["name"].as_str().unwrap_or_default(),
    );
    let stored = selection.matches_stored(resource, &entry(&key, object));
    let Value::Object(object) = object else { panic!() };
    assert_eq!(selection.matches(resource, object), stored, "{labels} {fields}");
    stored
}

#[test]
fn labels_are_compared_as_the_server_does() {
    let resource = resource("", "configmaps");
    let object = json!({"metadata": {"namespace": "n", "name": "x", "labels": {"a": "b", "n": "7", "e": "", "in": "notin"}}});
    let cases = [
        ("a=b", true),
        ("a==b,n=7", true),
        ("a!=b", false),
        ("z!=b", true),
        ("z notin (b)", true),
        ("a notin (b,c)", false),
        ("a in (c,b)", true),
        ("e in ()", true),
        ("a in (,)", false),
        ("e in (x,,y)", true),
        ("!z", true),
        ("!a", false),
        ("a", true),
        ("n>6,n<8", true),
        ("n>7", false),
        ("a>1", false),
        ("z<1", false),
        ("e=", true),
        ("a=b,a!=b", false),
        ("in=notin", true),
        ("in in (notin,in)", true),
        ("\ta\nin\r( b )", true),
    ];
    for (labels, expected) in cases {
        assert_eq!(selects(&resource, labels, "", &object), expected, "{labels}");
    }
}

#[test]
fn bad_selectors_are_reported_in_the_servers_words() {
    let resource = resource("", "configmaps");
    let cases = [
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        (
            "a in (b",
            "unable to parse requirement: found '', expected: ',' or ')'",
        ),
        (
            "a in (!",
            "unable to parse requirement: found '!', expected: ',', ')' or identifier",
        ),
        (
            "a in (,!",
            "unable to parse requirement: found '!', expected: ',', or identifier",
        ),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        (
            "!!a",
            "unable to parse requirement: found '!', expected: identifier",
        ),
        (
            "a (b)",
            "unable to parse requirement: found '(', expected: in, notin, =, ==, !=, gt, lt",
        ),
        (
            "a !b",
            "unable to parse requirement: found '!', expected: in, notin, =, ==, !=, gt, lt",
        ),
        (")", "found ')', expected: !, identifier, or 'end of string'"),
        (
            "a>=1",
            "unable to parse requirement: found '=', expected: identifier",
        ),
    ];
    for (labels, expected) in cases {
        let error = Selection::parse(&resource, Some(labels), None).unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (400, expected), "{labels}");
    }
    let long = Selection::parse(&resource, Some(&"a,".repeat(LONGEST)), None).unwrap_err();
    assert_eq!(long.code, 400);
    let many = |count: usize| {
        (0..count)
            .map(|at| format!("k{at}"))
            .collect::<Vec<_>>()
            .join(",")
    };
    assert!(Selection::parse(&resource, Some(&many(MOST)), None).is_ok());
    let refused = Selection::parse(&resource, Some(&many(MOST + 1)), None).unwrap_err();
    assert_eq!(refused.code, 400);
}

#[test]
fn fields_of_each_kind_are_selected_by() {
    let pod = json!({"metadata": {"namespace": "n", "name": "x"}, "spec": {"nodeName": "m", "hostNetwork": true},
        "status": {"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}});
    let secret = json!({"metadata": {"namespace": "n", "name": "x"}, "type": "Opaque"});
    let job = json!({"metadata": {"namespace": "n", "name": "x"}, "status": {"succeeded": 2}});
    let node = json!({"metadata": {"name": "x"}, "spec": {}});
    let event = json!({"metadata": {"namespace": "n", "name": "x"}, "reportingComponent": "r",
        "involvedObject": {"kind": "Pod"}});
    let cases = [
        (
            "",
            "pods",
            "spec.nodeName=m,status.phase!=Failed,spec.hostNetwork=true",
            &pod,
            true,
        ),
        (
            "",
            "pods",
            "spec.host=m,status.podIP=10.0.0.1,metadata.namespace=n",
            &pod,
            true,
        ),
        ("", "pods", "spec.nodeName=", &pod, false),
        ("", "secrets", "type!=Opaque", &secret, false),
        ("batch", "jobs", "status.successful=2", &job, true),
        ("", "nodes", "spec.unschedulable=false", &node, true),
        ("", "events", "source=r,involvedObject.kind=Pod", &event, true),
        (
            "events.k8s.io",
            "events",
            "regarding.kind=Pod,reportingController=r",
            &event,
            true,
        ),
        ("apps", "deployments", "metadata.name!=y", &job, true),
    ];
    for (group, plural, fields, object, expected) in cases {
        assert_eq!(
            selects(&resource(group, plural), "", fields, object),
            expected,
            "{fields}"
        );
    }
}

#[test]
fn fields_that_a_kind_does_not_know_are_refused_in_its_own_words() {
    let known = "is not a known field selector: only \"metadata.name\", \"metadata.namespace\"";
    let cases = [
        ("", "configmaps", "data.a=b", format!("\"data.a\" {known}")),
        (
            "",
            "nodes",
            "metadata.namespace=b",
            "field label not supported: metadata.namespace".to_owned(),
        ),
        (
            "batch",
            "jobs",
            "spec.x=b",
            "field label \"spec.x\" not supported for Job".to_owned(),
        ),
        (
            "",
            "pods",
            "a=b=c",
            "invalid field selector: unescaped character in value: 61".to_owned(),
        ),
        (
            "",
            "pods",
            "a=b\\",
            "invalid field selector: invalid escape sequence: \\".to_owned(),
        ),
        (
            "",
            "pods",
            "x,metadata.name=a",
            "invalid selector: 'x,metadata.name=a'; can't understand 'x'".to_owned(),
        ),
    ];
    for (group, plural, fields, expected) in cases {
        let error = Selection::parse(&resource(group, plural), None, Some(fields)).unwrap_err();
        assert_eq!((error.code, error.message), (400, expected), "{fields}");
    }
}

#[test]
fn a_pinned_name_is_known() {
    let resource = resource("", "configmaps");
    let of = |fields| Selection::parse(&resource, None, Some(fields)).unwrap();
    assert_eq!(of("metadata.name=a\\,b").name(), Some("a,b"));
    assert_eq!(of("metadata.name!=a").name(), None);
    let one = |fields| Selection::of_one(fields, "a").map_err(|refused| refused.message);
    assert_eq!(one("").unwrap(), "metadata.name=a");
    assert_eq!(
        one("metadata.name=a,metadata.namespace=n").unwrap(),
        "metadata.name=a,metadata.namespace=n"
    );
    for other in ["metadata.namespace=n", "metadata.name=b", "metadata.name!=a"] {
        let refused = one(other).unwrap_err();
        assert_eq!(
            refused, "fieldSelector metadata.name doesn't match requested name",
            "{other}"
        );
    }
}

proptest::proptest! {
    #[test]
    fn no_selector_makes_the_parser_panic(labels in "[a-c=!(),<> \\\\\u{0}é]{0,24}", fields in "[a.=!,\\\\é]{0,24}") {
        let resource = resource("", "pods");
        let _ = Selection::parse(&resource, Some(&labels), Some(&fields));
    }
}

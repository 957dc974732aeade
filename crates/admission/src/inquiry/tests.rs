//! The checks of each write, and the consequences of the responses.

use serde_json::json;

use super::*;
use crate::Settings;

const CANARY: &str = "YzRuNHJ5";

fn distribution(targets: &Value) -> Value {
    json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "ResourceDistribution", "metadata": {"name": "d"},
        "spec": {"targets": targets, "resource": {"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": "registry", "namespace": "elsewhere"}, "data": {"token": CANARY}}}})
}

fn distribution_from(targets: &Value) -> Value {
    let mut object = distribution(targets);
    object["spec"]["resource"] = Value::Null;
    object["spec"]["resourceFrom"] = json!({"kind": "ConfigMap", "namespace": "base", "name": "settings"});
    object
}

fn asked(object: &Value, old: Option<&Value>) -> Option<Inquiry> {
    inquiry(&Request {
        group: "apps.kruise.io",
        kind: "ResourceDistribution",
        namespace: "",
        name: "d",
        operation: if old.is_some() {
            Operation::Update
        } else {
            Operation::Create
        },
        object: Some(object),
        old,
        others: &[],
        settings: Settings::default(),
    })
}

fn words(all: &[Access]) -> Vec<String> {
    let each = all.iter();
    each.map(|one| format!("{} {} {}/{}", one.verb, one.plural, one.namespace, one.name))
        .collect()
}

#[test]
fn writing_by_name_is_asked_about_everywhere_or_there() {
    let object = distribution(&json!({"namespaces": [{"name": "b"}, {"name": "a"}]}));
    let rights = asked(&object, None).unwrap().rights;
    assert_eq!(words(&rights.needed), [""; 0]);
    assert_eq!(
        words(&rights.everywhere),
        ["create secrets /", "update secrets /registry"]
    );
    assert_eq!(
        words(&rights.by_name.unwrap()),
        [
            "create secrets a/",
            "update secrets a/registry",
            "create secrets b/",
            "update secrets b/registry"
        ]
    );
}

#[test]
fn namespaces_that_come_and_go_need_rights_everywhere() {
    for targets in [
        json!({"all": [{"exception": "a"}]}),
        json!({"allNamespaces": true}),
        json!({"namespaceSelector": {"a": "b"}, "namespaces": [{"name": "a"}]}),
        json!({"workloadLabelSelector": {"a": "b"}}),
    ] {
        let rights = asked(&distribution(&targets), None).unwrap().rights;
        assert_eq!((rights.everywhere.len(), rights.by_name), (2, None), "{targets}");
    }
    let many: Vec<Value> = (0..=MOST_NAMESPACES)
        .map(|at| json!({"name": format!("n-{at}")}))
        .collect();
    let rights = asked(&distribution(&json!({"namespaces": many[1..]})), None)
        .unwrap()
        .rights;
    assert_eq!(rights.by_name.map(|all| all.len()), Some(2 * MOST_NAMESPACES));
    let rights = asked(&distribution(&json!({"namespaces": many})), None)
        .unwrap()
        .rights;
    assert_eq!(rights.by_name, None);
    let message = rights.refusal("jane", &rights.everywhere).to_string();
    assert!(
        message.contains("at most 100 namespaces instead of 101"),
        "{message}"
    );
}

#[test]
fn a_source_must_be_readable_even_if_nothing_is_written() {
    let rights = asked(&distribution_from(&json!({})), None).unwrap().rights;
    assert_eq!(words(&rights.needed), ["get configmaps base/settings"]);
    assert!(rights.everywhere.is_empty() && !rights.are_none());
    assert!(asked(&distribution(&json!({})), None).unwrap().rights.are_none());
}

#[test]
fn what_does_not_change_the_spec_is_nobodys_question() {
    let old = distribution(&json!({"all": []}));
    let mut new = old.clone();
    new["metadata"]["finalizers"] = json!(["f"]);
    new["status"] = json!({"desired": 3});
    assert!(asked(&new, Some(&old)).is_none());
    // Other targets: the rights are checked, but not the object, which was tried before.
    new["spec"]["targets"] = json!({"namespaces": [{"name": "a"}]});
    let inquiry = asked(&new, Some(&old)).unwrap();
    assert!(!inquiry.rights.are_none() && inquiry.trial.is_none());
    new["spec"]["resource"]["data"] = json!({});
    assert!(asked(&new, Some(&old)).unwrap().trial.is_some());
    new["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    assert!(asked(&new, Some(&old)).is_none());
}

#[test]
fn an_author_without_rights_learns_which_where_and_what_to_do() {
    let object = distribution(&json!({"namespaces": [{"name": "a"}]}));
    let rights = asked(&object, None).unwrap().rights;
    let refusal = rights.refusal("jane", &rights.by_name.clone().unwrap()[1..]);
    assert_eq!((refusal.code, refusal.reason), (403, "Forbidden"));
    assert_eq!(
        refusal.to_string(),
        "spec.targets: \"jane\" may not update secrets \"registry\" in namespace \"a\", and this would do it for them; \
         grant it with a Role there, or remove the namespace from the targets"
    );
    let rights = asked(&distribution_from(&json!({"all": []})), None)
        .unwrap()
        .rights;
    let message = rights.refusal("jane", &rights.needed).to_string();
    assert!(
        message.starts_with(
            "spec.resourceFrom: \"jane\" may not get configmaps \"settings\" in namespace \"base\""
        ),
        "{message}"
    );
    let message = rights.refusal("jane", &rights.everywhere).to_string();
    assert!(
        message.contains("may not create configmaps in all namespaces") && message.contains("ClusterRole"),
        "{message}"
    );
}

#[test]
fn a_long_list_of_what_is_missing_is_cut() {
    let many: Vec<Value> = (0..20).map(|at| json!({"name": format!("n-{at}")})).collect();
    let rights = asked(&distribution(&json!({"namespaces": many})), None)
        .unwrap()
        .rights;
    let refusal = rights.refusal("jane", rights.by_name.as_deref().unwrap());
    assert_eq!(refusal.problems.len(), MAX_REPORTED + 1);
    assert!(
        refusal.to_string().contains("35 more rights are missing"),
        "{refusal}"
    );
}

#[test]
fn a_trial_has_no_namespace_and_is_never_shown() {
    let inquiry = asked(&distribution(&json!({})), None).unwrap();
    let trial = inquiry.trial.as_ref().unwrap();
    assert_eq!(trial.plural, "secrets");
    assert_eq!(trial.object.object()["metadata"], json!({"name": "registry"}));
    assert_eq!(trial.object.object()["data"]["token"], CANARY);
    assert!(!format!("{inquiry:?} {trial:?}").contains(CANARY));
    assert!(
        asked(&distribution_from(&json!({})), None)
            .unwrap()
            .trial
            .is_none()
    );
}

#[test]
fn a_server_that_refuses_is_observed_and_one_that_cannot_say_is_not() {
    let error = |code, reason: &str, fields: &[(&str, &str)]| {
        let fields = fields
            .iter()
            .map(|(field, reason)| ((*field).to_owned(), (*reason).to_owned()));
        tried(&Answer::Error(code, reason.to_owned(), fields.collect()))
    };
    assert_eq!(tried(&Answer::Taken), Ok(None));
    for (answer, words) in [
        (error(403, "Forbidden", &[]), "403 Forbidden"),
        (error(404, "NotFound", &[]), "404 NotFound"),
        (error(500, CANARY, &[]), "500 YzRuNHJ5"),
        (tried(&Answer::Silence), "no response in time"),
    ] {
        let warning = answer.unwrap().unwrap();
        assert!(warning.ends_with(words), "{warning}");
    }
    let refusal = error(422, "Invalid", &[]).unwrap_err();
    assert!(
        refusal
            .to_string()
            .starts_with("spec.resource: a server refuses it: 422 Invalid;"),
        "{refusal}"
    );
    assert!(error(400, "BadRequest", &[]).is_err());
}

#[test]
fn of_a_refusal_only_places_are_reported_and_of_keys_only_those_that_a_type_demands() {
    let message = |field: &str, reason: &str| {
        let fields = vec![(field.to_owned(), reason.to_owned())];
        let refusal = tried(&Answer::Error(422, "Invalid".to_owned(), fields)).unwrap_err();
        refusal.problems[0].field.clone() + ": " + &refusal.problems[0].cause
    };
    assert_eq!(
        message("data[tls.crt]", "FieldValueRequired"),
        "spec.resource.data[tls.crt]: a server refuses it: FieldValueRequired"
    );
    assert_eq!(
        message("data[canary]", "FieldValueInvalid"),
        "spec.resource.data: a server refuses it: FieldValueInvalid"
    );
    for field in ["", "a canary", "data canary[x]"] {
        assert!(
            message(field, "FieldValueInvalid").starts_with("spec.resource: "),
            "{field}"
        );
    }
    assert!(!message("data", "a sentence with a canary").contains("canary"));
}

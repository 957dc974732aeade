//! ResourceDistributions: rules, rights and dry runs, over HTTPS.

use super::*;

const CANARY: &str = "YzRuNHJ5";
const TRIED: &str = "/tried/api/v1/namespaces/karmada-system/secrets";

fn distribution(targets: &Value) -> Value {
    json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "ResourceDistribution", "metadata": {"name": "d"},
        "spec": {"targets": targets, "resource": {"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": "registry", "namespace": "elsewhere", "uid": "u"}, "data": {"token": CANARY}}}})
}

fn named(names: &[&str]) -> Value {
    let names: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
    json!({"includedNamespaces": {"list": names}})
}

/// A review of a user's write.
fn written_by(author: &str, object: &Value, old: Option<&Value>) -> Value {
    let operation = if old.is_some() { "UPDATE" } else { "CREATE" };
    let mut review = review("ResourceDistribution", operation, object);
    review["request"]["userInfo"] = json!({"username": author, "uid": "7", "groups": ["devs", "system:authenticated"],
        "extra": {"scopes": ["a", "b"]}});
    review["request"]["oldObject"] = old.cloned().unwrap_or_default();
    review
}

async fn response_to(hub: &Hub, review: &Value) -> Value {
    let response = reviewed(&server(hub), "/validate", review).await;
    assert!(!response.to_string().contains(CANARY), "{response}");
    response
}

/// A hub on which jane has some rights.
fn hub_where_jane_may(rights: &[&str]) -> Hub {
    let hub = Hub::default();
    hub.put("/rights/jane", json!(rights));
    hub
}

const EVERYWHERE: [&str; 2] = ["create secrets /", "update secrets /registry"];

#[tokio::test]
async fn whoever_may_write_everywhere_may_distribute_everywhere() {
    let hub = hub_where_jane_may(&EVERYWHERE);
    for targets in [
        json!({"allNamespaces": true}),
        json!({"all": []}),
        named(&["a"]),
        json!({"namespaceSelector": {"matchLabels": {"a": "b"}}}),
    ] {
        let response = response_to(&hub, &written_by("jane", &distribution(&targets), None)).await;
        assert_eq!(response, json!({"allowed": true, "uid": "u1"}), "{targets}");
    }
    // The author's attributes are complete, and nothing is stored.
    let asked = hub.get("/asked");
    assert_eq!(
        asked[0],
        json!({"user": "jane", "uid": "7", "groups": ["devs", "system:authenticated"], "extra": {"scopes": ["a", "b"]},
            "resourceAttributes": asked[0]["resourceAttributes"]})
    );
    assert_eq!((hub.noted("/asked"), hub.writes()), (8, 0));
    // The dry run is in the webhook's namespace, without metadata that is not propagated.
    assert_eq!(hub.noted(TRIED), 4);
    assert_eq!(hub.get(TRIED)[0]["metadata"], json!({"name": "registry"}));
}

#[tokio::test]
async fn what_may_not_be_meant_is_allowed_with_a_warning_beside_that_of_a_trial() {
    let hub = hub_where_jane_may(&EVERYWHERE);
    let flat = distribution(&json!({"namespaceSelector": {"a": "b"}}));
    let warning = "spec.targets.namespaceSelector: labels beside matchLabels are read as matchLabels; write them \
                   under matchLabels: OpenKruise drops them where they are";
    let response = response_to(&hub, &written_by("jane", &flat, None)).await;
    assert_eq!(
        (&response["allowed"], &response["warnings"]),
        (&json!(true), &json!([warning]))
    );
    hub.put(
        "/trial",
        json!([403, {"kind": "Status", "code": 403, "reason": "Forbidden", "message": CANARY}]),
    );
    let response = response_to(&hub, &written_by("jane", &flat, None)).await;
    let warnings = response["warnings"].as_array().expect("warnings");
    assert_eq!((warnings.len(), &warnings[0]), (2, &json!(warning)));
    // No rights are checked for targets without namespaces: the warning is still returned.
    let response = response_to(&hub, &written_by("joe", &distribution(&json!({})), None)).await;
    assert!(
        response["warnings"][0]
            .as_str()
            .expect("text")
            .contains("no namespace is selected"),
        "{response}"
    );
    // An unchanged write has no warning, and a refused one only its cause.
    let mut finalized = flat.clone();
    finalized["metadata"]["finalizers"] = json!(["entourage.dev/distribution"]);
    let response = response_to(&hub, &written_by("entourage", &finalized, Some(&flat))).await;
    assert_eq!(response, json!({"allowed": true, "uid": "u1"}));
    let mut refused = flat;
    refused["spec"]["resource"]["kind"] = json!("Pod");
    let response = response_to(&hub, &written_by("jane", &refused, None)).await;
    assert_eq!(
        (&response["allowed"], &response["warnings"]),
        (&json!(false), &Value::Null)
    );
}

#[tokio::test]
async fn whoever_may_write_in_some_namespaces_names_them() {
    let some = [
        "create secrets a/",
        "update secrets a/registry",
        "create secrets b/",
    ];
    let hub = hub_where_jane_may(&some);
    let allowed = response_to(&hub, &written_by("jane", &distribution(&named(&["a"])), None)).await;
    assert_eq!(allowed["allowed"], true, "{allowed}");
    let response = response_to(
        &hub,
        &written_by("jane", &distribution(&named(&["a", "b"])), None),
    )
    .await;
    assert_eq!(
        (&response["status"]["code"], &response["status"]["reason"]),
        (&json!(403), &json!("Forbidden"))
    );
    assert_eq!(
        response["status"]["message"],
        "spec.targets: \"jane\" may not update secrets \"registry\" in namespace \"b\", and this would do it for them; \
         grant it with a Role there, or remove the namespace from the targets"
    );
    let response = response_to(
        &hub,
        &written_by("jane", &distribution(&json!({"all": []})), None),
    )
    .await;
    let message = response["status"]["message"].as_str().expect("text");
    assert!(
        message.contains("may not create secrets in all namespaces")
            && message.contains("name the namespaces"),
        "{message}"
    );
}

#[tokio::test]
async fn as_many_namespaces_as_are_asked_about_one_by_one_are_asked_about_in_time() {
    let names: Vec<String> = (0..=100).map(|at| format!("n-{at}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let rights = names.iter().flat_map(|name| {
        [
            format!("create secrets {name}/"),
            format!("update secrets {name}/registry"),
        ]
    });
    let rights: Vec<String> = rights.collect();
    let hub = hub_where_jane_may(&rights.iter().map(String::as_str).collect::<Vec<_>>());
    let response = response_to(
        &hub,
        &written_by("jane", &distribution(&named(&names[..100])), None),
    )
    .await;
    assert_eq!(response["allowed"], true, "{response}");
    assert_eq!(hub.noted("/asked"), 202);
    let response = response_to(&hub, &written_by("jane", &distribution(&named(&names)), None)).await;
    let message = response["status"]["message"].as_str().expect("text");
    assert!(
        message.contains("at most 100 namespaces instead of 101"),
        "{message}"
    );
}

#[tokio::test]
async fn what_stands_elsewhere_must_be_readable_for_the_author() {
    let mut object = distribution(&named(&["a"]));
    object["spec"]["resource"] = Value::Null;
    object["spec"]["resourceFrom"] = json!({"kind": "Secret", "namespace": "base", "name": "registry"});
    let hub = hub_where_jane_may(&EVERYWHERE);
    let response = response_to(&hub, &written_by("jane", &object, None)).await;
    assert_eq!(
        response["status"]["message"],
        "spec.resourceFrom: \"jane\" may not get secrets \"registry\" in namespace \"base\", and this would do it for them; \
         grant it with a Role there, or distribute what the author may read"
    );
    let hub = hub_where_jane_may(&[&EVERYWHERE[..], &["get secrets base/registry"]].concat());
    let response = response_to(&hub, &written_by("jane", &object, None)).await;
    assert_eq!((&response["allowed"], hub.noted(TRIED)), (&json!(true), 0));
}

#[tokio::test]
async fn what_leaves_the_spec_alone_is_not_validated() {
    let hub = Hub::default();
    let old = distribution(&json!({"allNamespaces": true}));
    let mut new = old.clone();
    new["metadata"]["finalizers"] = json!(["f"]);
    new["status"] = json!({"desired": 4});
    let response = response_to(
        &hub,
        &written_by("system:serviceaccount:karmada-system:entourage", &new, Some(&old)),
    )
    .await;
    assert_eq!(response, json!({"allowed": true, "uid": "u1"}));
    assert_eq!(hub.noted(TRIED), 0);
    // An object that is being deleted may change, too.
    new["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    new["spec"]["targets"] = json!({});
    let response = response_to(&hub, &written_by("jane", &new, Some(&old))).await;
    assert_eq!(response["allowed"], true);
    let removed = review("ResourceDistribution", "DELETE", &old);
    assert_eq!(response_to(&hub, &removed).await["allowed"], true);
}

#[tokio::test]
async fn a_change_of_targets_is_validated_without_trying_the_copy_again() {
    let hub = hub_where_jane_may(&["create secrets a/", "update secrets a/registry"]);
    let (old, new) = (distribution(&named(&["b"])), distribution(&named(&["a"])));
    assert_eq!(
        response_to(&hub, &written_by("jane", &new, Some(&old))).await["allowed"],
        true
    );
    assert_eq!(
        response_to(&hub, &written_by("jane", &old, Some(&new))).await["status"]["code"],
        403
    );
    assert_eq!(hub.noted(TRIED), 0);
}

#[tokio::test]
async fn where_nobody_can_say_what_an_author_may_do_nothing_is_taken() {
    let hub = Hub::default();
    let (old, new) = (distribution(&named(&["b"])), distribution(&named(&["a"])));
    for old in [None, Some(&old)] {
        let response = response_to(&hub, &written_by("jane", &new, old)).await;
        assert_eq!(
            (&response["allowed"], &response["status"]["code"]),
            (&json!(false), &json!(503))
        );
        let message = response["status"]["message"].as_str().expect("text");
        assert!(
            message.contains("whether \"jane\" may write the copies cannot be asked: 500 InternalError")
                && message.contains("--authorize-distributions=false"),
            "{message}"
        );
    }
    let answer = reviewed(
        &server_that(&hub, false),
        "/validate",
        &written_by("jane", &new, None),
    )
    .await;
    assert_eq!(answer["allowed"], true, "{answer}");
    assert_eq!(hub.noted("/asked"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_hub_that_hangs_is_waited_for_no_longer_than_the_hub_waits_for_us() {
    let hangs = tower::service_fn(|_: Request<kube::client::Body>| async {
        std::future::pending::<()>().await;
        Ok::<_, Infallible>(Response::new(Full::new(Bytes::new())))
    });
    let client = || kube::Client::new(hangs, "default");
    let (_, tls) = watch::channel(None);
    let (_, ready) = watch::channel(true);
    let distributions = Distributions::new(client(), "karmada-system".to_owned(), true);
    let server = Server::new(client(), Settings::default(), distributions, tls, ready);
    let (old, new) = (distribution(&named(&["b"])), distribution(&named(&["a"])));
    let began = tokio::time::Instant::now();
    let response = reviewed(&server, "/validate", &written_by("jane", &new, Some(&old))).await;
    assert_eq!(response["status"]["code"], 503);
    let message = response["status"]["message"].as_str().expect("text");
    assert!(message.contains("the hub does not respond in time"), "{message}");
    assert!(
        began.elapsed() < Duration::from_millis(990),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test]
async fn a_copy_that_a_server_would_refuse_is_refused_in_words_without_its_content() {
    let hub = hub_where_jane_may(&EVERYWHERE);
    let write = written_by("jane", &distribution(&named(&["a"])), None);
    let refused = |causes: Value| {
        json!([422, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 422, "reason": "Invalid",
            "message": format!("Secret \"registry\" is invalid: data[token]: Invalid value: \"{CANARY}\""),
            "details": {"name": "registry", "kind": "Secret", "causes": causes}}])
    };
    hub.put(
        "/trial",
        refused(json!([
            {"reason": "FieldValueInvalid", "field": format!("data[{CANARY}]"), "message": CANARY},
            {"reason": "FieldValueRequired", "field": "data[.dockerconfigjson]", "message": CANARY},
        ])),
    );
    let response = response_to(&hub, &write).await;
    let status = &response["status"];
    assert_eq!(
        (&status["code"], &status["reason"]),
        (&json!(422), &json!("Invalid"))
    );
    let fields: Vec<&Value> = status["details"]["causes"]
        .as_array()
        .expect("causes")
        .iter()
        .map(|cause| &cause["field"])
        .collect();
    assert_eq!(
        fields,
        ["spec.resource.data", "spec.resource.data[.dockerconfigjson]"]
    );
    hub.put("/trial", refused(json!([])));
    let response = response_to(&hub, &write).await;
    let message = response["status"]["message"].as_str().expect("text");
    assert!(
        message.starts_with("spec.resource: a server refuses it: 422 Invalid;"),
        "{message}"
    );
}

#[tokio::test]
async fn a_server_that_may_not_be_asked_about_a_copy_gives_a_warning() {
    let hub = hub_where_jane_may(&EVERYWHERE);
    let write = written_by("jane", &distribution(&named(&["a"])), None);
    for (code, reason, warns) in [
        (403, "Forbidden", true),
        (404, "NotFound", true),
        (500, "InternalError", true),
        (409, "AlreadyExists", false),
    ] {
        let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
            "message": format!("secrets \"registry\": {CANARY}")});
        hub.put("/trial", json!([code, status]));
        let response = response_to(&hub, &write).await;
        assert_eq!(response["allowed"], true);
        let warning = response["warnings"][0].as_str().unwrap_or_default();
        assert_eq!(warning.contains(&format!("{code} {reason}")), warns, "{response}");
    }
}

#[tokio::test]
async fn what_the_rules_refuse_is_not_asked_about() {
    let hub = Hub::default();
    let mut object = distribution(&named(&["a", "B"]));
    object["spec"]["resource"]["apiVersion"] = "apps/v1".into();
    let response = response_to(&hub, &written_by("jane", &object, None)).await;
    assert_eq!(response["status"]["code"], 422);
    assert_eq!(
        response["status"]["details"]["causes"].as_array().map(Vec::len),
        Some(2)
    );
    assert_eq!((hub.noted("/asked"), hub.noted(TRIED)), (0, 0));
}

//! Works and the objects that they carry.

use super::*;

fn id(kind: &str) -> ResourceId {
    let api = if kind == "Deployment" { "apps/v1" } else { "v1" };
    ResourceId::new(Gvk::new(api, kind), "shop", "web")
}

fn copy(kind: &str) -> Value {
    json!({
        "apiVersion": id(kind).gvk.api_version(), "kind": kind,
        "metadata": {"namespace": "shop", "name": "web",
            "labels": {label::HUB: "hub", label::MANAGED: "true", label::RESOURCE_BINDING_ID: "p", "app": "web"},
            "annotations": {annotation::WORK_NAMESPACE: "karmada-es-m1", annotation::CONFLICT_RESOLUTION: "abort"}},
        "spec": {"paused": true},
    })
}

/// A Work as a server stores it.
fn stored(mut work: Value, status: Value) -> Value {
    work["metadata"]["uid"] = json!("u");
    work["metadata"]["resourceVersion"] = json!("7");
    work["metadata"]["generation"] = json!(2);
    work["status"] = status;
    work
}

#[test]
fn a_copy_comes_back_from_its_work_with_the_identity_of_the_work() {
    let id = id("Deployment");
    let work = work(&id, "m1", &copy("Deployment"));
    let name = names::work_name("shop", "web", "Deployment");
    assert_eq!(work["metadata"]["name"], name);
    assert_eq!(work["metadata"]["namespace"], "karmada-es-m1");
    assert_eq!(work["metadata"]["finalizers"], json!([finalizer::EXECUTION]));
    assert_eq!(work["metadata"]["labels"][label::HUB], "hub");
    assert_eq!(work["metadata"]["labels"][label::WORK_KIND], "Deployment.apps");
    assert_eq!(work["metadata"]["labels"][label::RESOURCE_BINDING_ID], "p");
    assert_eq!(
        work["metadata"]["annotations"][annotation::CONFLICT_RESOLUTION],
        "abort"
    );
    let read = object(&id.gvk, stored(work, Value::Null), true).unwrap();
    let mut wanted = copy("Deployment");
    for (field, value) in [
        ("uid", json!("u")),
        ("resourceVersion", json!("7")),
        ("generation", json!(2)),
    ] {
        wanted["metadata"][field] = value;
    }
    assert_eq!(applied(&read), Some((Applied::Awaited, "")));
    wanted[REPORT] = read[REPORT].clone();
    assert_eq!(read, wanted);
}

#[test]
fn what_the_agent_reports_is_read_with_the_object() {
    let condition = |status: &str, more: Value| {
        let mut condition =
            json!({"type": "Applied", "status": status, "reason": "AppliedFailed", "message": "no room"});
        condition
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!({"conditions": [condition], "manifestStatuses": [{"status": {"replicas": 2}, "health": "Unhealthy"}]})
    };
    let table = [
        (
            "Deployment",
            condition("True", json!({})),
            (Applied::Done, "AppliedFailed: no room"),
        ),
        (
            "Deployment",
            condition("False", json!({})),
            (Applied::Failed, "AppliedFailed: no room"),
        ),
        // It may quote the data.
        (
            "Secret",
            condition("False", json!({})),
            (Applied::Failed, "AppliedFailed"),
        ),
        (
            "Deployment",
            condition("False", json!({"message": ""})),
            (Applied::Failed, "AppliedFailed"),
        ),
        // Of the generation before.
        (
            "Deployment",
            condition("True", json!({"observedGeneration": 1})),
            (Applied::Awaited, ""),
        ),
        (
            "Deployment",
            condition("True", json!({"observedGeneration": 2})),
            (Applied::Done, "AppliedFailed: no room"),
        ),
        ("Deployment", json!({}), (Applied::Awaited, "")),
    ];
    for (kind, status, wanted) in table {
        let id = id(kind);
        let work = stored(work(&id, "m1", &copy(kind)), status.clone());
        let whole = object(&id.gvk, work.clone(), true).unwrap();
        assert_eq!(applied(&whole), Some(wanted), "{kind} {status}");
        assert_eq!(whole["status"], status["manifestStatuses"][0]["status"]);
        let part = object(&id.gvk, work, false).unwrap();
        assert_eq!(applied(&part), Some(wanted), "{kind} {status}");
        assert!(part.get("spec").is_none() && part.get("status").is_none());
    }
    assert_eq!(
        applied(&copy("Deployment")),
        None,
        "it is of a member in Push mode"
    );
}

#[test]
fn a_work_that_is_released_keeps_its_marks_until_it_is_deleted() {
    let id = id("Deployment");
    let read = |work: &Value| object(&id.gvk, work.clone(), true).unwrap();
    let owned = stored(work(&id, "m1", &copy("Deployment")), Value::Null);
    let kept = patch(&id, "m1", &read(&owned));
    assert_eq!(kept["metadata"]["resourceVersion"], "7");
    assert_eq!(kept["metadata"]["labels"][label::HUB], "hub");
    assert_eq!(
        kept["spec"].get("preserveResourcesOnDeletion"),
        None,
        "a user may have set it"
    );
    let mut stripped = read(&owned);
    for field in ["labels", "annotations"] {
        stripped["metadata"][field] = json!({});
    }
    assert!(is_owned(&read(&owned)) && !is_owned(&stripped));
    let released = json!({
        "metadata": {"uid": "u", "resourceVersion": "7", "annotations": {annotation::WORK_RELEASED: "true"}},
        "spec": {"preserveResourcesOnDeletion": true},
    });
    assert_eq!(release(&id.gvk, &stripped), released);
    // It was interrupted: the object is managed, and may be released or managed again.
    let mut interrupted = owned.clone();
    interrupted["metadata"]["annotations"][annotation::WORK_RELEASED] = json!("true");
    interrupted["spec"]["preserveResourcesOnDeletion"] = json!(true);
    assert!(is_owned(&read(&interrupted)));
    assert_eq!(release(&id.gvk, &read(&interrupted)), released);
    let again = unreleased(&interrupted).unwrap();
    assert_eq!(again["spec"]["preserveResourcesOnDeletion"], Value::Null);
    assert_eq!(again["metadata"]["resourceVersion"], "7");
    // A user set it.
    let mut users = owned;
    users["spec"]["preserveResourcesOnDeletion"] = json!(true);
    assert_eq!(unreleased(&users), None);
    assert_eq!(
        release(&id.gvk, &read(&users))["metadata"].get("annotations"),
        None
    );
}

#[test]
fn a_namespace_gets_what_an_agent_needs_and_is_read_without_it() {
    let id = ResourceId::new(Gvk::new("v1", "Namespace"), "", "shop");
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop",
        "labels": {"team": "a"}, "annotations": {annotation::CREATED_BY: "hub/m1"}}});
    let work = work(&id, "m1", &namespace);
    assert_eq!(
        work["spec"]["preserveResourcesOnDeletion"], true,
        "whoever deletes it"
    );
    let again = patch(&id, "m1", &namespace);
    assert_eq!(again["spec"]["preserveResourcesOnDeletion"], true);
    let manifest = work["spec"]["workload"]["manifests"][0].clone();
    assert_eq!(manifest["metadata"]["labels"][label::MANAGED], "true");
    assert_eq!(
        manifest["metadata"]["annotations"][annotation::WORK_NAME],
        work["metadata"]["name"]
    );
    assert_eq!(
        manifest["metadata"]["annotations"][annotation::CONFLICT_RESOLUTION],
        "overwrite"
    );
    let listed = |key: &str| {
        manifest["metadata"]["annotations"][key]
            .as_str()
            .unwrap_or_default()
    };
    assert_eq!(
        listed(annotation::MANAGED_LABELS),
        format!("{},team", label::MANAGED)
    );
    let annotations: Vec<&str> = listed(annotation::MANAGED_ANNOTATIONS).split(',').collect();
    assert!(annotations.is_sorted() && annotations.contains(&annotation::MANAGED_ANNOTATIONS));
    assert_eq!(
        annotations.len(),
        manifest["metadata"]["annotations"].as_object().unwrap().len()
    );
    let mut read = object(&id.gvk, stored(work, Value::Null), true).unwrap();
    assert_eq!(read["metadata"]["labels"], json!({"team": "a"}));
    assert_eq!(
        read["metadata"]["annotations"],
        namespace["metadata"]["annotations"]
    );
    assert!(is_owned(&read));
    read["metadata"]["annotations"] = json!({});
    assert!(!is_owned(&read));
}

#[test]
fn a_work_that_ends_holds_its_object_until_the_agent_is_done() {
    let id = id("Deployment");
    let mut ending = stored(work(&id, "m1", &copy("Deployment")), Value::Null);
    ending["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let read = object(&id.gvk, ending.clone(), false).unwrap();
    assert!(crate::object::is_held(&read["metadata"]));
    let again = patch(&id, "m1", &read);
    let manifest = &again["spec"]["workload"]["manifests"][0]["metadata"];
    assert!(manifest.get("finalizers").is_none() && manifest.get("deletionTimestamp").is_none());
}

#[test]
fn a_work_without_the_finalizer_of_an_agent_gets_it_and_keeps_those_of_others() {
    let id = id("Deployment");
    let mut held = stored(work(&id, "m1", &copy("Deployment")), Value::Null);
    assert_eq!(lacking(&held), None);
    held["metadata"]["finalizers"] = json!(["example.com/backup"]);
    let patch = json!({"metadata": {
        "uid": "u", "resourceVersion": "7", "finalizers": ["example.com/backup", finalizer::EXECUTION],
    }});
    assert_eq!(lacking(&held), Some(patch));
    held["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(lacking(&held), None);
}

#[test]
fn a_work_of_another_object_is_none_of_this_kind() {
    let gvk = Gvk::new("apps/v1", "Deployment");
    let mut other = work(&id("Deployment"), "m1", &copy("Deployment"));
    assert!(object(&Gvk::new("example.com/v1", "Deployment"), other.clone(), true).is_none());
    let first = other["spec"]["workload"]["manifests"][0].clone();
    other["spec"]["workload"]["manifests"] = json!([first.clone(), first]);
    assert!(object(&gvk, other, true).is_none());
    assert!(object(&gvk, json!({}), true).is_none());
    for field in ["namespace", "name"] {
        let mut moved = work(&id("Deployment"), "m1", &copy("Deployment"));
        moved["spec"]["workload"]["manifests"][0]["metadata"][field] = json!("other");
        assert!(object(&gvk, moved, true).is_none(), "{field}");
    }
}

#[test]
fn a_label_of_a_kind_is_always_valid() {
    assert_eq!(kind_label(&Gvk::new("v1", "Secret")), "Secret");
    let long = Gvk::new(&format!("{}.example.com/v1", "x".repeat(70)), "Widget");
    assert!(kind_label(&long).len() <= 63);
}

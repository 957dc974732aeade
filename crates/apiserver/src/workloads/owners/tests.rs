//! Tests of the children and the statuses of workloads.

use super::*;

fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        other => panic!("{other}"),
    }
}

fn replica_set_of(replicas: i64) -> Object {
    object(json!({
        "metadata": {"name": "web", "namespace": "d", "uid": "u", "generation": 1},
        "spec": {"replicas": replicas, "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}}},
    }))
}

fn created(actions: &[Action]) -> Vec<Object> {
    let created = actions.iter().filter_map(|action| match action {
        Action::Create { object: made, .. } => Some(object(made.clone())),
        _ => None,
    });
    created
        .map(|mut pod| {
            pod["metadata"]["namespace"] = json!("d");
            pod
        })
        .collect()
}

#[test]
fn a_replica_set_grows_and_shrinks() {
    let pods = created(&replica_set(&replica_set_of(3), &[]));
    assert_eq!(pods.len(), 3);
    assert_eq!(created(&replica_set(&replica_set_of(3), &pods)).len(), 0);
    let actions = replica_set(&replica_set_of(1), &pods);
    let removed = actions
        .iter()
        .filter(|action| matches!(action, Action::Delete { .. }))
        .count();
    assert_eq!(removed, 2);
}

#[test]
fn templates_are_numbered_and_one_that_is_back_is_the_newest() {
    let of = |image: &str, revision: &str| {
        object(json!({
            "metadata": {"name": "web", "namespace": "d", "uid": "u", "generation": 1,
                "annotations": {REVISION: revision}},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"image": image}]}}},
        }))
    };
    let annotated = |actions: &[Action]| -> Vec<String> {
        let patches = actions.iter().filter_map(|action| match action {
            Action::Patch { patch, .. } => patch["metadata"]["annotations"][REVISION].as_str(),
            _ => None,
        });
        patches.map(str::to_owned).collect()
    };
    let first = created(&deployment(&of("1", ""), &[], "now"));
    assert_eq!(revision_of(&first[0]["metadata"]), 1);
    let second = created(&deployment(&of("2", "1"), &first, "now"));
    assert_eq!(revision_of(&second[0]["metadata"]), 2);
    let mut both = first;
    both.extend(second);
    assert_eq!(annotated(&deployment(&of("2", "2"), &both, "now")), [""; 0]);
    // The Deployment and the ReplicaSet of the first template.
    assert_eq!(annotated(&deployment(&of("1", "2"), &both, "now")), ["3", "3"]);
}

#[test]
fn a_status_that_says_it_already_is_not_written() {
    let mut set = replica_set_of(1);
    let mut pods = created(&replica_set(&set, &[]));
    pods[0].insert(
        "status".to_owned(),
        json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}),
    );
    let actions = replica_set(&set, &pods);
    let [Action::Patch { patch, .. }] = actions.as_slice() else {
        panic!("{actions:?}")
    };
    assert_eq!(patch["status"]["readyReplicas"], 1);
    set.insert("status".to_owned(), patch["status"].clone());
    assert_eq!(replica_set(&set, &pods), []);
}

#[test]
fn a_stateful_set_waits_for_each_pod() {
    let mut set = replica_set_of(2);
    set["metadata"]["name"] = json!("db");
    let mut pods = created(&stateful_set(&set, &[]));
    assert_eq!(pods.len(), 1);
    assert_eq!(
        created(&stateful_set(&set, &pods)).len(),
        0,
        "the first is not ready"
    );
    pods[0].insert(
        "status".to_owned(),
        json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}),
    );
    assert_eq!(created(&stateful_set(&set, &pods))[0]["metadata"]["name"], "db-1");
}

#[test]
fn a_workload_of_billions_gets_its_pods_in_parts() {
    let most = |actions: &[Action]| assert!((MOST..MOST + 5).contains(&actions.len()), "{}", actions.len());
    let mut set = replica_set_of(2_000_000_000);
    most(&replica_set(&set, &[]));
    set["spec"]["podManagementPolicy"] = json!("Parallel");
    most(&stateful_set(&set, &[]));
    set["spec"]["completions"] = json!(2_000_000_000);
    set["spec"]["parallelism"] = json!(2_000_000_000);
    most(&job(&set, &[], "now"));
}

#[test]
fn a_pod_of_a_job_that_was_deleted_is_followed_by_one_of_a_free_name() {
    let job_object = object(json!({
        "metadata": {"name": "j", "namespace": "d", "uid": "u"},
        "spec": {"completions": 3, "parallelism": 3, "template": {"spec": {"containers": []}}},
    }));
    let mut pods = created(&job(&job_object, &[], "now"));
    pods.remove(0);
    let more = created(&job(&job_object, &pods, "now"));
    assert_eq!(more.len(), 1);
    assert!(
        !pods
            .iter()
            .any(|pod| pod["metadata"]["name"] == more[0]["metadata"]["name"])
    );
}

#[test]
fn a_job_ends_when_enough_pods_succeeded() {
    let job_object = object(json!({
        "metadata": {"name": "j", "namespace": "d", "uid": "u"},
        "spec": {"completions": 1, "parallelism": 1, "template": {"spec": {"containers": []}}},
    }));
    let mut pods = created(&job(&job_object, &[], "now"));
    pods[0].insert("status".to_owned(), json!({"phase": "Succeeded"}));
    let actions = job(&job_object, &pods, "now");
    let [Action::Patch { patch, .. }] = actions.as_slice() else {
        panic!("{actions:?}")
    };
    let kinds: BTreeMap<&str, &str> = patch["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|each| (text(&each["type"]), text(&each["status"])))
        .collect();
    assert_eq!(kinds["Complete"], "True");
}

#[test]
fn a_suspended_job_loses_its_pods() {
    let of = |suspend: bool| {
        object(json!({
            "metadata": {"name": "j", "namespace": "d", "uid": "u"}, "status": {"active": 1},
            "spec": {"completions": 1, "parallelism": 1, "suspend": suspend, "template": {"spec": {"containers": []}}},
        }))
    };
    assert!(created(&job(&of(true), &[], "now")).is_empty());
    let pods = created(&job(&of(false), &[], "now"));
    let actions = job(&of(true), &pods, "now");
    let [Action::Delete { .. }, Action::Patch { patch, .. }] = actions.as_slice() else {
        panic!("{actions:?}")
    };
    assert_eq!(patch["status"]["active"], Value::Null);
}

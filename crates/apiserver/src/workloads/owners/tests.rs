//! Tests of the children and the statuses of workloads.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::workloads::{
    daemon::daemon_set,
    deployment::deployment,
    jobs::{TRACKED, job},
    node::Node,
    parts::{Around, condition_of, text},
    replicas::{FAILURE, SETS, replica_set},
    stateful::stateful_set,
};

const REVISION: &str = "deployment.kubernetes.io/revision";

fn around(time: &str) -> Around {
    Around {
        now: time.to_owned(),
        time: time.parse().expect("a time"),
        node: Node::default(),
        refusal: None,
    }
}

fn now() -> Around {
    around("2026-01-01T00:10:00Z")
}

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

fn pods_of(set: &Object, pods: &[Object]) -> Vec<Action> {
    replica_set(set, SETS, pods, &now()).0
}

/// The objects of a kind that are created, as they are stored.
fn created_of(actions: &[Action], kind: &str) -> Vec<Object> {
    let created = actions.iter().filter_map(|action| match action {
        Action::Create { object: made, .. } if made["kind"] == kind => Some(object(made.clone())),
        _ => None,
    });
    created
        .map(|mut one| {
            if let Some(prefix) = one["metadata"]["generateName"].as_str() {
                static NUMBER: AtomicUsize = AtomicUsize::new(0);
                let number = NUMBER.fetch_add(1, Ordering::Relaxed);
                one["metadata"]["name"] = json!(format!("{prefix}{number}"));
            }
            one["metadata"]["namespace"] = json!("d");
            one["metadata"]["uid"] = one["metadata"]["name"].clone();
            one
        })
        .collect()
}

fn created(actions: &[Action]) -> Vec<Object> {
    created_of(actions, "Pod")
}

fn deleted(actions: &[Action]) -> Vec<&str> {
    let deleted = actions.iter().filter_map(|action| match action {
        Action::Delete { path, .. } => path.rsplit('/').next(),
        _ => None,
    });
    deleted.collect()
}

/// The status that is written.
fn status(actions: &[Action]) -> Value {
    let patch = actions.iter().find_map(|action| match action {
        Action::Patch { path, patch } if path.ends_with("/status") => Some(&patch["status"]),
        _ => None,
    });
    patch.cloned().unwrap_or_default()
}

/// Gives an object the status that is written.
fn store(owner: &mut Object, actions: &[Action]) {
    fn merge(into: &mut Value, patch: &Value) {
        match (into, patch) {
            (Value::Object(into), Value::Object(patch)) => {
                for (key, value) in patch {
                    if value.is_null() {
                        into.remove(key);
                    } else {
                        merge(into.entry(key).or_insert_with(|| json!({})), value);
                    }
                }
            }
            (into, patch) => *into = patch.clone(),
        }
    }
    let written = status(actions);
    if !written.is_null() {
        merge(owner.entry("status").or_insert_with(|| json!({})), &written);
    }
}

fn ready(pod: &mut Object) {
    let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    pod.insert(
        "status".to_owned(),
        json!({"phase": "Running", "conditions": [ready]}),
    );
}

#[test]
fn a_replica_set_grows_and_shrinks() {
    let pods = created(&pods_of(&replica_set_of(3), &[]));
    assert_eq!(pods.len(), 3);
    assert_eq!(created(&pods_of(&replica_set_of(3), &pods)).len(), 0);
    assert_eq!(deleted(&pods_of(&replica_set_of(1), &pods)).len(), 2);
}

#[test]
fn the_pods_that_are_missed_least_go_first() {
    let mut pods = created(&pods_of(&replica_set_of(4), &[]));
    pods.iter_mut().for_each(ready);
    let cost = json!({"controller.kubernetes.io/pod-deletion-cost": "-5"});
    pods[2]["metadata"]["annotations"] = cost;
    pods[3]["status"]["conditions"][0]["status"] = json!("False");
    let actions = pods_of(&replica_set_of(2), &pods);
    let names = |at: usize| text(&pods[at]["metadata"]["name"]);
    assert_eq!(deleted(&actions), [names(3), names(2)]);
}

#[test]
fn a_pod_counts_as_available_after_its_time() {
    let mut set = replica_set_of(1);
    set["spec"]["minReadySeconds"] = json!(30);
    let mut pods = created(&pods_of(&set, &[]));
    ready(&mut pods[0]);
    let (actions, again) = replica_set(&set, SETS, &pods, &around("2026-01-01T00:00:10Z"));
    assert_eq!(status(&actions)["readyReplicas"], 1);
    assert_eq!(status(&actions)["availableReplicas"], Value::Null);
    assert_eq!(again, Some(std::time::Duration::from_secs(20)));
    let (actions, again) = replica_set(&set, SETS, &pods, &around("2026-01-01T00:00:30Z"));
    assert_eq!((&status(&actions)["availableReplicas"], again), (&json!(1), None));
}

fn deployment_of(image: &str, revision: &str, replicas: i64) -> Object {
    object(json!({
        "metadata": {"name": "web", "namespace": "d", "uid": "u", "generation": 1,
            "annotations": {REVISION: revision}},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "progressDeadlineSeconds": 600,
            "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"image": image}]}}},
    }))
}

#[test]
fn templates_are_numbered_and_one_that_is_back_is_the_newest() {
    let deployed = |deployment_of: &Object, sets: &[Object]| deployment(deployment_of, sets, &now()).0;
    let sets_of = |actions: &[Action]| created_of(actions, "ReplicaSet");
    let annotated = |actions: &[Action]| -> Vec<String> {
        let patches = actions.iter().filter_map(|action| match action {
            Action::Patch { patch, .. } => patch["metadata"]["annotations"][REVISION].as_str(),
            _ => None,
        });
        patches.map(str::to_owned).collect()
    };
    let revision = |set: &Object| text(&set["metadata"]["annotations"][REVISION]).to_owned();
    let first = sets_of(&deployed(&deployment_of("1", "", 1), &[]));
    assert_eq!(revision(&first[0]), "1");
    let second = sets_of(&deployed(&deployment_of("2", "1", 1), &first));
    assert_eq!(revision(&second[0]), "2");
    let mut both = first;
    both.extend(second);
    assert_eq!(annotated(&deployed(&deployment_of("2", "2", 1), &both)), [""; 0]);
    // The Deployment and the ReplicaSet of the first template.
    assert_eq!(
        annotated(&deployed(&deployment_of("1", "2", 1), &both)),
        ["3", "3"]
    );
}

/// A ReplicaSet of the Deployment with an image, its size, its available pods, and the size of the Deployment that it knows.
fn set_of(image: &str, size: i64, available: i64, desired: i64) -> Object {
    let actions = deployment(&deployment_of(image, "", desired), &[], &now()).0;
    let mut set = created_of(&actions, "ReplicaSet").remove(0);
    set["spec"]["replicas"] = json!(size);
    set["metadata"]["creationTimestamp"] = json!(format!("2026-01-01T00:00:0{image}Z"));
    set.insert(
        "status".to_owned(),
        json!({"replicas": size, "availableReplicas": available}),
    );
    set
}

/// The sizes that ReplicaSets get, by name; those that keep theirs are not among them.
fn sizes(actions: &[Action]) -> std::collections::BTreeMap<String, i64> {
    let patches = actions.iter().filter_map(|action| match action {
        Action::Patch { path, patch } if path.contains("/replicasets/") => Some((
            path.rsplit('/').next()?.to_owned(),
            patch["spec"]["replicas"].as_i64()?,
        )),
        _ => None,
    });
    patches.collect()
}

#[test]
fn a_rolling_update_keeps_to_surge_and_unavailability() {
    // Old size and available, new size and available, then the sizes of both.
    let cases = [
        ((10, 10), (3, 0), (Some(8), None)),
        ((8, 8), (3, 0), (None, Some(5))),
        ((8, 8), (5, 3), (Some(5), None)),
        // Those that are not available are no loss.
        ((10, 4), (3, 0), (Some(8), None)),
        ((0, 0), (10, 10), (None, None)),
    ];
    for (old, new, wanted) in cases {
        let sets = [set_of("1", old.0, old.1, 10), set_of("2", new.0, new.1, 10)];
        let found = sizes(&deployment(&deployment_of("2", "2", 10), &sets, &now()).0);
        let names = sets.each_ref().map(|set| text(&set["metadata"]["name"]));
        let found = (found.get(names[0]).copied(), found.get(names[1]).copied());
        assert_eq!(found, wanted, "{old:?} {new:?}");
    }
}

#[test]
fn a_deployment_that_is_resized_during_a_rollout_grows_in_proportion() {
    let sets = [set_of("1", 8, 8, 10), set_of("2", 5, 3, 10)];
    let found = sizes(&deployment(&deployment_of("2", "2", 20), &sets, &now()).0);
    let names = sets.each_ref().map(|set| text(&set["metadata"]["name"]));
    assert_eq!((found[names[0]], found[names[1]]), (15, 10));
}

#[test]
fn a_deployment_that_recreates_has_its_old_pods_go_first() {
    let mut new = deployment_of("2", "1", 3);
    new["spec"]["strategy"] = json!({"type": "Recreate"});
    for (size, left, made) in [(3, 3, 0), (0, 3, 0), (0, 0, 1)] {
        let mut old = set_of("1", size, left, 3);
        old["status"]["replicas"] = json!(left);
        let (actions, _) = deployment(&new, &[old], &now());
        let sets = created_of(&actions, "ReplicaSet");
        assert_eq!(sets.len(), made, "{size} {left}");
        assert!(sets.iter().all(|set| set["spec"]["replicas"] == 3));
        assert_eq!(
            sizes(&actions).into_values().collect::<Vec<_>>(),
            vec![0; usize::from(size > 0)]
        );
    }
}

#[test]
fn a_deployment_keeps_as_many_old_sets_as_it_says() {
    let mut web = deployment_of("4", "4", 2);
    let mut sets = ["1", "2", "3"].map(|image| set_of(image, 0, 0, 2)).to_vec();
    sets.push(set_of("4", 2, 2, 2));
    for (at, set) in sets.iter_mut().enumerate() {
        set["metadata"]["annotations"][REVISION] = json!((at + 1).to_string());
    }
    let status =
        json!({"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2, "observedGeneration": 1});
    web.insert("status".to_owned(), status);
    for (limit, gone) in [(3, 0), (1, 2), (0, 3)] {
        web["spec"]["revisionHistoryLimit"] = json!(limit);
        let (actions, _) = deployment(&web, &sets, &now());
        assert_eq!(deleted(&actions), names(&sets)[..gone], "{limit}");
    }
}

#[test]
fn a_deployment_that_is_paused_makes_no_set_and_says_so() {
    let mut paused = deployment_of("2", "1", 3);
    paused["spec"]["paused"] = json!(true);
    let (actions, _) = deployment(&paused, &[set_of("1", 3, 3, 3)], &now());
    assert!(created_of(&actions, "ReplicaSet").is_empty() && sizes(&actions).is_empty());
    let written = status(&actions);
    let progressing = condition_of(&written, "Progressing");
    assert_eq!(
        (&progressing["status"], &progressing["reason"]),
        (&json!("Unknown"), &json!("DeploymentPaused"))
    );
}

#[test]
fn a_rollout_that_makes_no_progress_misses_its_deadline() {
    let mut stuck = deployment_of("1", "1", 2);
    let sets = [set_of("1", 2, 1, 2)];
    let progressing = json!({"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated",
        "lastUpdateTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    stuck.insert(
        "status".to_owned(),
        json!({"replicas": 2, "updatedReplicas": 2, "availableReplicas": 1, "conditions": [progressing]}),
    );
    let (_, again) = deployment(&stuck, &sets, &around("2026-01-01T00:09:00Z"));
    assert_eq!(again, Some(std::time::Duration::from_secs(60)));
    let (actions, _) = deployment(&stuck, &sets, &now());
    let written = status(&actions);
    assert_eq!(
        condition_of(&written, "Progressing")["reason"],
        "ProgressDeadlineExceeded"
    );
}

#[test]
fn a_status_that_says_it_already_is_not_written() {
    let mut set = replica_set_of(1);
    let mut pods = created(&pods_of(&set, &[]));
    ready(&mut pods[0]);
    let actions = pods_of(&set, &pods);
    assert_eq!(status(&actions)["readyReplicas"], 1);
    store(&mut set, &actions);
    assert_eq!(pods_of(&set, &pods), []);
}

fn stateful(replicas: i64, more: &Value) -> Object {
    let mut set = replica_set_of(replicas);
    set["metadata"]["name"] = json!("db");
    for (key, value) in more.as_object().into_iter().flatten() {
        set["spec"][key] = value.clone();
    }
    set
}

fn stateful_actions(set: &Object, pods: &[Object], revisions: &[Object]) -> Vec<Action> {
    stateful_set(set, pods, revisions, &|_| None, &now()).0
}

fn names(objects: &[Object]) -> Vec<&str> {
    objects.iter().map(|one| text(&one["metadata"]["name"])).collect()
}

#[test]
fn a_stateful_set_waits_for_each_pod() {
    let set = stateful(2, &json!({}));
    let mut pods = created(&stateful_actions(&set, &[], &[]));
    assert_eq!(pods.len(), 1);
    let more = stateful_actions(&set, &pods, &[]);
    assert_eq!(created(&more).len(), 0, "the first is not ready");
    ready(&mut pods[0]);
    assert_eq!(names(&created(&stateful_actions(&set, &pods, &[]))), ["db-1"]);
}

#[test]
fn the_pods_of_a_stateful_set_begin_where_it_says_and_have_their_claims() {
    let template = json!({"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}});
    let set = stateful(
        2,
        &json!({"ordinals": {"start": 5}, "podManagementPolicy": "Parallel", "volumeClaimTemplates": [template],
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Retain"}}),
    );
    let actions = stateful_actions(&set, &[], &[]);
    let pods = created(&actions);
    assert_eq!(names(&pods), ["db-5", "db-6"]);
    let claims = created_of(&actions, "PersistentVolumeClaim");
    assert_eq!(names(&claims), ["data-db-5", "data-db-6"]);
    assert_eq!(claims[0]["metadata"]["ownerReferences"][0]["kind"], "StatefulSet");
    let claim = &pods[1]["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"];
    assert_eq!(claim, "data-db-6");
    assert!(pods[1]["spec"]["nodeName"].is_null(), "it waits for its claim");
}

#[test]
fn an_update_of_a_stateful_set_goes_from_the_last_pod_to_the_partition() {
    let old = stateful(3, &json!({"podManagementPolicy": "Parallel"}));
    let actions = stateful_actions(&old, &[], &[]);
    let (mut pods, mut revisions) = (created(&actions), created_of(&actions, "ControllerRevision"));
    pods.iter_mut().for_each(ready);
    let current = text(&revisions[0]["metadata"]["name"]).to_owned();
    for (strategy, gone) in [
        (json!({"type": "RollingUpdate"}), vec!["db-2"]),
        (
            json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}),
            vec!["db-2"],
        ),
        (
            json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 3}}),
            vec![],
        ),
        (
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}),
            vec!["db-2", "db-1"],
        ),
        (
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "50%"}}),
            vec!["db-2"],
        ),
        (json!({"type": "OnDelete"}), vec![]),
    ] {
        let mut new = stateful(3, &json!({"updateStrategy": strategy}));
        new["spec"]["template"]["spec"]["hostNetwork"] = json!(true);
        new.insert(
            "status".to_owned(),
            json!({"currentRevision": current, "currentReplicas": 3}),
        );
        let actions = stateful_actions(&new, &pods, &revisions);
        assert_eq!(deleted(&actions), gone, "{strategy}");
        let written = status(&actions);
        assert_eq!(written["currentRevision"], current.as_str());
        assert_ne!(written["updateRevision"], current.as_str());
        assert_eq!(
            (&written["currentReplicas"], &written["updatedReplicas"]),
            (&json!(3), &Value::Null)
        );
    }
    // A pod below the partition that was deleted comes back as it was.
    let mut new = stateful(3, &json!({"updateStrategy": {"rollingUpdate": {"partition": 2}}}));
    new["spec"]["template"]["spec"]["hostNetwork"] = json!(true);
    new.insert("status".to_owned(), json!({"currentRevision": current}));
    pods.remove(0);
    revisions.extend(created_of(
        &stateful_actions(&new, &pods, &revisions),
        "ControllerRevision",
    ));
    let again = created(&stateful_actions(&new, &pods, &revisions));
    assert_eq!(
        again[0]["metadata"]["labels"]["controller-revision-hash"],
        current.as_str()
    );
    assert!(again[0]["spec"]["hostNetwork"].is_null());
}

#[test]
fn a_parallel_stateful_set_that_shrinks_loses_its_pods_at_once() {
    for (policy, gone) in [("Parallel", vec!["db-3", "db-2"]), ("OrderedReady", vec!["db-3"])] {
        let of = |replicas| stateful(replicas, &json!({"podManagementPolicy": policy}));
        let (mut pods, mut revisions) = (Vec::new(), Vec::new());
        for _ in 0..4 {
            let actions = stateful_actions(&of(4), &pods, &revisions);
            pods.extend(created(&actions));
            revisions.extend(created_of(&actions, "ControllerRevision"));
            pods.iter_mut().for_each(ready);
        }
        assert_eq!(pods.len(), 4);
        assert_eq!(
            deleted(&stateful_actions(&of(2), &pods, &revisions)),
            gone,
            "{policy}"
        );
    }
}

#[test]
fn a_set_that_is_made_again_knows_the_revisions_that_were_left() {
    let mut set = stateful(1, &json!({"selector": {"matchLabels": {"app": "web"}}}));
    let mut revision = created_of(&stateful_actions(&set, &[], &[]), "ControllerRevision").remove(0);
    revision["metadata"]["ownerReferences"] = Value::Null;
    let labels = revision["metadata"]["labels"]
        .as_object()
        .cloned()
        .expect("labels");
    let adopted = |kind: &str, set: &Object| {
        let kind = KINDS.iter().find(|one| one.kind == kind).expect("a kind");
        let orphans = std::iter::once((&revision, &labels));
        adopt(kind, REVISIONS, set, orphans, |one| Some(one.clone()))
    };
    for kind in ["StatefulSet", "DaemonSet"] {
        let adopted = adopted(kind, &set);
        let [(known, Action::Patch { path, patch })] = &adopted[..] else {
            panic!("{kind}");
        };
        assert!(path.contains("/controllerrevisions/db-"), "{path}");
        assert_eq!(patch["metadata"]["ownerReferences"][0]["kind"], kind);
        let again = stateful_actions(&set, &[], std::slice::from_ref(known));
        assert!(created_of(&again, "ControllerRevision").is_empty());
    }
    assert!(adopted("ReplicaSet", &set).is_empty());
    set["spec"]["selector"] = json!({"matchLabels": {"app": "other"}});
    assert!(adopted("StatefulSet", &set).is_empty());
}

#[test]
fn a_taint_keeps_a_daemon_from_the_node_and_only_one_that_executes_has_it_leave() {
    let set = replica_set_of(1);
    let tainted = |effect: &str| {
        let node =
            json!({"metadata": {}, "spec": {"taints": [{"key": "a", "value": "b", "effect": effect}]}});
        Around {
            node: Node::of(&object(node)),
            ..now()
        }
    };
    let pods = created(&daemon_set(&set, &[], &[], &now()).0);
    for (effect, gone) in [("NoSchedule", 0), ("NoExecute", 1)] {
        let (actions, _) = daemon_set(&set, &pods, &[], &tainted(effect));
        assert_eq!(deleted(&actions).len(), gone, "{effect}");
        let written = status(&actions);
        assert_eq!(
            (&written["desiredNumberScheduled"], &written["numberMisscheduled"]),
            (&json!(0), &json!(1)),
            "{effect}"
        );
        assert!(created(&daemon_set(&set, &[], &[], &tainted(effect)).0).is_empty());
    }
}

#[test]
fn the_pod_of_a_daemon_set_tolerates_what_only_the_scheduler_minds() {
    let mut set = replica_set_of(1);
    let own = json!({"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"});
    set["spec"]["template"]["spec"]["tolerations"] = json!([own]);
    let mut cordoned = now();
    cordoned.node = Node::of(&object(json!({"metadata": {}, "spec": {"unschedulable": true}})));
    for (of_host, number) in [(false, 6), (true, 7)] {
        set["spec"]["template"]["spec"]["hostNetwork"] = json!(of_host);
        let pods = created(&daemon_set(&set, &[], &[], &cordoned).0);
        assert_eq!(
            pods[0]["spec"]["tolerations"].as_array().map(Vec::len),
            Some(number)
        );
        assert_eq!(pods[0]["spec"]["nodeName"], "stand-in");
    }
}

#[test]
fn a_daemon_set_replaces_its_pod_when_its_strategy_permits() {
    let old = replica_set_of(1);
    let (actions, _) = daemon_set(&old, &[], &[], &now());
    let (mut pods, revisions) = (created(&actions), created_of(&actions, "ControllerRevision"));
    assert_eq!((pods.len(), revisions.len()), (1, 1));
    ready(&mut pods[0]);
    let mut new = old;
    new["spec"]["template"]["spec"]["hostNetwork"] = json!(true);
    assert_eq!(deleted(&daemon_set(&new, &pods, &revisions, &now()).0).len(), 1);
    new["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
    assert_eq!(deleted(&daemon_set(&new, &pods, &revisions, &now()).0).len(), 0);
    new["spec"]["updateStrategy"] = json!({"rollingUpdate": {"maxSurge": 1}});
    let (actions, _) = daemon_set(&new, &pods, &revisions, &now());
    assert_eq!((created(&actions).len(), deleted(&actions).len()), (1, 0));
}

#[test]
fn a_workload_of_billions_gets_its_pods_in_parts() {
    let most = |actions: &[Action]| assert!((MOST..MOST + 5).contains(&actions.len()), "{}", actions.len());
    let mut set = replica_set_of(2_000_000_000);
    most(&pods_of(&set, &[]));
    set["spec"]["podManagementPolicy"] = json!("Parallel");
    most(&stateful_actions(&set, &[], &[]));
    set["spec"]["completions"] = json!(2_000_000_000);
    set["spec"]["parallelism"] = json!(2_000_000_000);
    most(&job(&set, &[], &now()).0);
}

fn job_of(more: &Value) -> Object {
    let mut job = object(json!({
        "metadata": {"name": "j", "namespace": "d", "uid": "u"},
        "spec": {"completions": 3, "parallelism": 3, "template": {"spec": {"containers": [{"name": "a"}]}}},
    }));
    for (key, value) in more.as_object().into_iter().flatten() {
        job["spec"][key] = value.clone();
    }
    job
}

fn job_actions(of: &Object, pods: &[Object]) -> Vec<Action> {
    job(of, pods, &now()).0
}

/// Has the Job and its pods go on until nothing is asked for; pods that run end in a phase.
fn run(of: &mut Object, pods: &mut Vec<Object>, end: impl Fn(&Object) -> Value) {
    for _ in 0..50 {
        let actions = job_actions(of, pods);
        if actions.is_empty() {
            return;
        }
        store(of, &actions);
        let gone: Vec<String> = deleted(&actions).iter().map(|name| (*name).to_owned()).collect();
        pods.retain(|pod| !gone.iter().any(|name| pod["metadata"]["name"] == name.as_str()));
        for action in &actions {
            if let Action::Patch { path, patch } = action
                && let Some(pod) = pods
                    .iter_mut()
                    .find(|pod| path.ends_with(&format!("/pods/{}", text(&pod["metadata"]["name"]))))
            {
                pod["metadata"]["finalizers"] = patch["metadata"]["finalizers"].clone();
            }
        }
        for mut pod in created(&actions) {
            let status = end(&pod);
            pod.insert("status".to_owned(), status);
            pods.push(pod);
        }
    }
    panic!("it does not come to an end: {of:?}");
}

fn holds(of: &Object, kind: &str) -> [String; 2] {
    let one = condition_of(part(of, "status"), kind);
    ["status", "reason"].map(|key| text(&one[key]).to_owned())
}

#[test]
fn a_pod_that_is_deleted_counts_as_failed_and_the_job_goes_on_whatever_its_policy() {
    for policy in ["Failed", "TerminatingOrFailed"] {
        let mut job = job_of(&json!({"podReplacementPolicy": policy}));
        let actions = job_actions(&job, &[]);
        store(&mut job, &actions);
        let mut pods = created(&actions);
        ready(&mut pods[0]);
        pods[0]["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        let actions = job_actions(&job, &pods);
        store(&mut job, &actions);
        let failed = &part(&job, "status")["uncountedTerminatedPods"]["failed"];
        assert_eq!(*failed, json!([pods[0]["metadata"]["uid"]]), "{policy}");
        let released = job_actions(&job, &pods).iter().any(|action| {
            matches!(action, Action::Patch { patch, .. } if patch["metadata"]["finalizers"] == json!([]))
        });
        assert!(released, "{policy}");
    }
}

#[test]
fn pods_that_are_refused_are_a_condition_of_their_set_and_of_its_deployment() {
    let mut set = replica_set_of(2);
    let mut refused = now();
    refused.refusal = Some("exceeded quota".to_owned());
    let foreign = json!({"type": "Other", "status": "True"});
    set.insert("status".to_owned(), json!({"conditions": [foreign]}));
    let (actions, _) = replica_set(&set, SETS, &[], &refused);
    store(&mut set, &actions);
    let failure = condition_of(part(&set, "status"), FAILURE).clone();
    assert_eq!(failure["reason"], "FailedCreate");
    assert_eq!(failure["message"], "exceeded quota");
    // Another pod that is refused is no news.
    refused.refusal = Some("exceeded quota again".to_owned());
    assert_eq!(status(&replica_set(&set, SETS, &[], &refused).0), Value::Null);
    let mut of_deployment = set_of("1", 2, 0, 2);
    of_deployment["status"]["conditions"] = json!([failure]);
    let (actions, _) = deployment(&deployment_of("1", "1", 2), &[of_deployment], &now());
    assert_eq!(
        condition_of(&status(&actions), FAILURE)["message"],
        "exceeded quota"
    );
    let (actions, _) = replica_set(&set, SETS, &[], &now());
    store(&mut set, &actions);
    assert_eq!(part(&set, "status")["conditions"], json!([foreign]));
}

#[test]
fn a_set_follows_the_annotations_of_its_deployment() {
    let mut changed = deployment_of("1", "1", 2);
    changed["metadata"]["annotations"]["kubernetes.io/change-cause"] = json!("a reason");
    changed["spec"]["minReadySeconds"] = json!(7);
    let (actions, _) = deployment(&changed, &[set_of("1", 2, 2, 2)], &now());
    let patches = actions.iter().filter_map(|action| match action {
        Action::Patch { path, patch } if path.contains("/replicasets/") => Some(patch),
        _ => None,
    });
    let wanted = json!({"metadata": {"annotations": {"kubernetes.io/change-cause": "a reason"}},
        "spec": {"minReadySeconds": 7}});
    assert_eq!(patches.collect::<Vec<_>>(), [&wanted]);
}

#[test]
fn a_job_ends_when_enough_pods_succeeded() {
    let (mut job, mut pods) = (job_of(&json!({"completions": 5})), Vec::new());
    run(&mut job, &mut pods, |_| json!({"phase": "Succeeded"}));
    let status = part(&job, "status");
    assert_eq!(
        (&status["succeeded"], &status["active"]),
        (&json!(5), &Value::Null)
    );
    assert_eq!(status["uncountedTerminatedPods"], json!({}));
    assert_eq!(holds(&job, "Complete"), ["True", "CompletionsReached"]);
    assert!(status["completionTime"].is_string());
    assert_eq!(pods.len(), 5);
    let held = |pod: &Object| {
        pod["metadata"]["finalizers"]
            .as_array()
            .is_some_and(|all| !all.is_empty())
    };
    assert!(!pods.iter().any(held), "{TRACKED}");
}

#[test]
fn an_indexed_job_has_a_pod_for_each_index() {
    let more = json!({"completionMode": "Indexed", "completions": 4, "parallelism": 2});
    let (mut job, mut pods) = (job_of(&more), Vec::new());
    let first = created(&job_actions(&job, &[]));
    assert_eq!(first.len(), 2);
    assert!(names(&first)[1].starts_with("j-1-"));
    assert_eq!(first[1]["spec"]["hostname"], "j-1");
    assert_eq!(
        first[1]["spec"]["containers"][0]["env"][0]["name"],
        "JOB_COMPLETION_INDEX"
    );
    run(&mut job, &mut pods, |_| json!({"phase": "Succeeded"}));
    let status = part(&job, "status");
    assert_eq!(
        (&status["completedIndexes"], &status["succeeded"]),
        (&json!("0-3"), &json!(4))
    );
    assert_eq!(holds(&job, "Complete"), ["True", "CompletionsReached"]);
}

#[test]
fn jobs_end_as_their_policies_say() {
    let failed = |code: i64| json!({"phase": "Failed", "containerStatuses": [{"name": "a", "state": {"terminated": {"exitCode": code}}}]});
    let fails = json!({"podFailurePolicy": {"rules": [
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]}});
    let by_index = json!({"completionMode": "Indexed", "backoffLimitPerIndex": 0, "backoffLimit": 99});
    let succeeds = json!({"completionMode": "Indexed", "parallelism": 1,
        "successPolicy": {"rules": [{"succeededIndexes": "0"}]}});
    let cases = [
        (json!({"backoffLimit": 1}), 1, "Failed", "BackoffLimitExceeded"),
        (fails, 42, "Failed", "PodFailurePolicy"),
        (by_index, 1, "Failed", "FailedIndexes"),
        (succeeds, 0, "Complete", "SuccessPolicy"),
    ];
    for (spec, code, kind, reason) in cases {
        let (mut job, mut pods) = (job_of(&spec), Vec::new());
        run(&mut job, &mut pods, |_| {
            if code == 0 {
                json!({"phase": "Succeeded"})
            } else {
                failed(code)
            }
        });
        assert_eq!(holds(&job, kind), ["True", reason], "{spec}");
    }
}

/// The pods of a Job, those in `ended` failed at a time with an exit code.
fn failed_at(mut pods: Vec<Object>, ended: &[usize], time: &str, code: i64) -> Vec<Object> {
    for at in ended {
        let terminated = json!({"exitCode": code, "finishedAt": time});
        let status = json!({"phase": "Failed", "containerStatuses": [{"name": "a", "state": {"terminated": terminated}}]});
        pods[*at].insert("status".to_owned(), status);
    }
    pods
}

#[test]
fn an_index_that_failed_delays_no_other() {
    let by_index =
        json!({"completionMode": "Indexed", "completions": 3, "parallelism": 2, "backoffLimitPerIndex": 5});
    let seconds = |seconds| Some(std::time::Duration::from_secs(seconds));
    for (spec, made, again) in [
        (by_index, vec!["j-1-"], seconds(10)),
        (
            json!({"completionMode": "Indexed", "parallelism": 2}),
            vec![],
            seconds(20),
        ),
    ] {
        let mut job = job_of(&spec);
        let mut pods = failed_at(
            created(&job_actions(&job, &[])),
            &[0, 1],
            "2026-01-01T00:10:00Z",
            1,
        );
        pods[1]["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"] =
            json!("2026-01-01T00:09:00Z");
        let (actions, waits) = crate::workloads::jobs::job(&job, &pods, &now());
        store(&mut job, &actions);
        let names: Vec<&str> = actions
            .iter()
            .filter_map(|action| match action {
                Action::Create { object, .. } => object["metadata"]["generateName"].as_str(),
                _ => None,
            })
            .collect();
        assert_eq!((names, waits), (made, again), "{spec}");
    }
}

#[test]
fn a_failure_that_a_policy_ignores_does_not_use_up_its_index() {
    let rules = json!([{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [42]}}]);
    let mut job = job_of(
        &json!({"completionMode": "Indexed", "completions": 1, "backoffLimitPerIndex": 0,
        "podFailurePolicy": {"rules": rules}}),
    );
    let mut pods = created(&job_actions(&job, &[]));
    for ignored in ["1", "2"] {
        pods = failed_at(pods, &[0], "2026-01-01T00:00:00Z", 42);
        let actions = job_actions(&job, &pods);
        store(&mut job, &actions);
        pods = created(&actions);
        let annotations = &pods[0]["metadata"]["annotations"];
        assert_eq!(annotations["batch.kubernetes.io/job-index-failure-count"], "0");
        assert_eq!(
            annotations["batch.kubernetes.io/job-index-ignored-failure-count"],
            ignored
        );
    }
    let actions = job_actions(&job, &failed_at(pods, &[0], "2026-01-01T00:00:00Z", 1));
    assert_eq!(status(&actions)["failedIndexes"], "0");
}

#[test]
fn an_indexed_job_that_shrinks_loses_the_indexes_that_are_too_many() {
    let mut job = job_of(&json!({"completionMode": "Indexed", "completions": 12, "parallelism": 12}));
    let actions = job_actions(&job, &[]);
    store(&mut job, &actions);
    let mut pods = created(&actions);
    pods.iter_mut().for_each(ready);
    // By name, the pod of index 10 is before that of index 2.
    pods.sort_by_key(|pod| text(&pod["metadata"]["name"]).to_owned());
    let index = |pod: &Object| -> i64 {
        let index = text(&pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]);
        index.parse().expect("an index")
    };
    job["spec"]["completions"] = json!(3);
    job["spec"]["parallelism"] = json!(3);
    let actions = job_actions(&job, &pods);
    let gone = deleted(&actions);
    let mut kept: Vec<i64> = pods
        .iter()
        .filter(|pod| !gone.contains(&text(&pod["metadata"]["name"])))
        .map(index)
        .collect();
    kept.sort_unstable();
    assert_eq!(kept, [0, 1, 2]);
    // One of them that succeeded all the same is released and does not count.
    let mut late: Vec<Object> = pods.into_iter().filter(|pod| index(pod) == 7).collect();
    late[0]["status"] = json!({"phase": "Succeeded"});
    job["status"]["completedIndexes"] = json!("5");
    let actions = job_actions(&job, &late);
    assert!(actions.iter().any(|action| {
        matches!(action, Action::Patch { patch, .. } if patch["metadata"]["finalizers"] == json!([]))
    }));
    let written = status(&actions);
    assert_eq!(
        (&written["completedIndexes"], &written["succeeded"]),
        (&Value::Null, &Value::Null)
    );
}

#[test]
fn a_job_fails_with_too_many_of_its_indexes() {
    let spec = json!({"completionMode": "Indexed", "parallelism": 1, "backoffLimitPerIndex": 0, "maxFailedIndexes": 1});
    let (mut job, mut pods) = (job_of(&spec), Vec::new());
    run(&mut job, &mut pods, |_| json!({"phase": "Failed"}));
    assert_eq!(holds(&job, "Failed"), ["True", "MaxFailedIndexesExceeded"]);
    assert_eq!(part(&job, "status")["failedIndexes"], "0,1");
}

#[test]
fn a_pod_that_is_leaving_is_replaced_as_the_policy_says() {
    for (policy, number) in [("Failed", 0), ("TerminatingOrFailed", 1)] {
        let mut job = job_of(&json!({"podReplacementPolicy": policy}));
        let mut pods = created(&job_actions(&job, &[]));
        pods[0]["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        let actions = job_actions(&job, &pods);
        store(&mut job, &actions);
        assert_eq!(created(&actions).len(), number, "{policy}");
        assert_eq!(part(&job, "status")["terminating"], 1);
    }
}

#[test]
fn a_job_of_another_manager_is_left_alone_until_it_is_old() {
    let mut job = job_of(&json!({"managedBy": "example.com/queue", "ttlSecondsAfterFinished": 30}));
    assert_eq!(job_actions(&job, &[]), []);
    let complete =
        json!({"type": "Complete", "status": "True", "lastTransitionTime": "2026-01-01T00:09:40Z"});
    job.insert("status".to_owned(), json!({"conditions": [complete]}));
    let of_other = created(&job_actions(&job_of(&json!({})), &[]));
    let (actions, again) = crate::workloads::jobs::job(&job, &of_other, &now());
    assert_eq!(
        (actions, again),
        (vec![], Some(std::time::Duration::from_secs(10)))
    );
    job["spec"]["ttlSecondsAfterFinished"] = json!(20);
    assert_eq!(deleted(&job_actions(&job, &of_other)), ["j"]);
}

#[test]
fn a_job_has_so_much_time_and_is_deleted_some_time_after_its_end() {
    let mut job = job_of(&json!({"activeDeadlineSeconds": 60, "ttlSecondsAfterFinished": 30}));
    let at = |job: &Object, pods: &[Object], time| crate::workloads::jobs::job(job, pods, &around(time));
    let (actions, _) = at(&job, &[], "2026-01-01T00:00:00Z");
    store(&mut job, &actions);
    let pods = created(&actions);
    let (_, again) = at(&job, &pods, "2026-01-01T00:00:40Z");
    assert_eq!(again, Some(std::time::Duration::from_secs(20)));
    let (actions, _) = at(&job, &pods, "2026-01-01T00:01:00Z");
    assert_eq!(deleted(&actions).len(), 3);
    store(&mut job, &actions);
    let (actions, _) = at(&job, &[], "2026-01-01T00:01:00Z");
    store(&mut job, &actions);
    assert_eq!(holds(&job, "Failed"), ["True", "DeadlineExceeded"]);
    let (actions, again) = at(&job, &[], "2026-01-01T00:01:10Z");
    assert_eq!(
        (actions.len(), again),
        (0, Some(std::time::Duration::from_secs(20)))
    );
    let (actions, _) = at(&job, &[], "2026-01-01T00:01:30Z");
    assert_eq!(deleted(&actions), ["j"]);
}

#[test]
fn a_suspended_job_loses_its_pods_and_goes_on_later() {
    let mut job = job_of(&json!({}));
    let pods = created(&job_actions(&job, &[]));
    job["spec"]["suspend"] = json!(true);
    let actions = job_actions(&job, &pods);
    assert_eq!(deleted(&actions).len(), 3);
    store(&mut job, &actions);
    assert_eq!(holds(&job, "Suspended"), ["True", "JobSuspended"]);
    assert!(created(&job_actions(&job, &[])).is_empty());
    job["spec"]["suspend"] = json!(false);
    let actions = job_actions(&job, &[]);
    assert_eq!(created(&actions).len(), 3);
    store(&mut job, &actions);
    assert_eq!(holds(&job, "Suspended"), ["False", "JobResumed"]);
    assert!(part(&job, "status")["startTime"].is_string());
}

#[test]
fn an_owner_adopts_what_it_selects_and_releases_what_it_does_not() {
    let mut set = replica_set_of(2);
    set["spec"]["selector"] = json!({"matchLabels": {"app": "web"}});
    let mut pods = created(&pods_of(&set, &[]));
    pods[1]["metadata"]["labels"]["app"] = json!("other");
    let mut orphan = pods[0].clone();
    orphan["metadata"]["name"] = json!("orphan");
    orphan["metadata"]["ownerReferences"] = Value::Null;
    let labels = orphan["metadata"]["labels"].as_object().cloned().expect("labels");
    let orphans = std::iter::once((&orphan, &labels));
    let (kept, actions) = claim(&KINDS[1], &set, pods, orphans, |orphan| Some(orphan.clone()));
    assert_eq!(kept.len(), 1);
    let owners: Vec<usize> = actions
        .iter()
        .filter_map(|action| match action {
            Action::Patch { patch, .. } => patch["metadata"]["ownerReferences"].as_array().map(Vec::len),
            _ => None,
        })
        .collect();
    assert_eq!(owners, [0, 1], "one is released, one is adopted");
}

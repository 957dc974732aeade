//! Conditions tell the truth (I9): they are computed from what each place has recorded against what is wanted now, whether
//! or not the member responds, and carry the generation that was taken in.

use serde_json::json;

use crate::{condition, config_map, deployment, policy, settled, world::World};

/// Status, reason and message of a condition, and whether it is of the binding's generation.
fn reported(world: &World, name: &str, type_: &str) -> (String, bool) {
    let condition = condition(world, name, type_);
    let text = |field: &str| condition[field].as_str().unwrap_or_default();
    let generation = &crate::binding(world, name)["metadata"]["generation"];
    (
        format!("{} {}: {}", text("status"), text("reason"), text("message")),
        condition["observedGeneration"] == *generation,
    )
}

fn scaled(replicas: i64) -> serde_json::Value {
    let mut workload = deployment("myapp", &["my-config"]);
    workload["spec"]["replicas"] = json!(replicas);
    workload
}

#[test]
fn what_is_as_it_should_be_is_reported_in_counts_that_a_restart_does_not_write_again() {
    let mut world = settled();
    world.apply(scaled(3));
    let words = [
        (
            "Scheduled",
            "True Success: Scheduled to member1 (3), member2 (3).",
        ),
        (
            "FullyApplied",
            "True FullyAppliedSuccess: Applied on 2/2 clusters.",
        ),
        (
            "DependenciesReady",
            "True DependenciesDelivered: 1 dependency is present on every target cluster.",
        ),
    ];
    for restarts in [false, true] {
        let wrote = world.writes.len();
        if restarts {
            world.restart();
        }
        assert!(world.settle_for(60_000));
        for (type_, wanted) in words {
            assert_eq!(
                reported(&world, "myapp-deployment", type_),
                (wanted.to_owned(), true)
            );
        }
        assert!(
            !restarts || world.writes[wrote..].is_empty(),
            "{:?}",
            &world.writes[wrote..]
        );
    }
}

#[test]
fn a_member_that_is_down_is_not_reported_to_be_applied_after_its_template_changed() {
    for restarts in [false, true] {
        let mut world = settled();
        world.set_down("member2", true);
        assert!(world.settle());
        if restarts {
            world.restart();
            assert!(world.settle());
        }
        world.apply(scaled(3));
        assert!(world.settle_for(60_000));
        let (words, is_current) = reported(&world, "myapp-deployment", "FullyApplied");
        assert!(
            words.starts_with("False ") && words.contains("member2"),
            "{restarts} {words}"
        );
        assert!(!words.contains("member1"), "{words}");
        assert!(is_current, "{restarts}");
        let status = &crate::binding(&world, "myapp-deployment")["status"]["aggregatedStatus"];
        assert_eq!(status[0]["applied"], json!(true), "{status:#}");
        assert_ne!(status[1]["applied"], json!(true), "{status:#}");
        // Told by a process that starts now, too.
        let wrote = world.writes.len();
        world.restart();
        assert!(world.settle_for(60_000));
        assert_eq!(reported(&world, "myapp-deployment", "FullyApplied").0, words);
        assert_eq!(world.writes[wrote..], [""; 0]);
        world.set_down("member2", false);
        assert!(world.settle_for(60_000));
        let (words, is_current) = reported(&world, "myapp-deployment", "FullyApplied");
        assert!(words.starts_with("True ") && is_current, "{words}");
    }
}

#[test]
fn a_member_that_is_down_and_holds_the_current_version_stays_applied() {
    let mut world = settled();
    world.set_down("member2", true);
    world.restart();
    assert!(world.settle_for(60_000));
    let (words, is_current) = reported(&world, "myapp-deployment", "FullyApplied");
    assert!(words.starts_with("True ") && is_current, "{words}");
}

#[test]
fn a_dependency_that_changed_while_a_member_is_down_is_reported_on_it_and_on_the_workload() {
    let mut world = settled();
    world.set_down("member2", true);
    world.restart();
    assert!(world.settle());
    world.apply(config_map("my-config", "two"));
    assert!(world.settle_for(60_000));
    for (name, type_) in [
        ("my-config-configmap", "FullyApplied"),
        ("myapp-deployment", "DependenciesReady"),
    ] {
        let (words, is_current) = reported(&world, name, type_);
        assert!(
            words.starts_with("False ") && words.contains("member2"),
            "{type_} {words}"
        );
        assert!(!words.contains("member1") && is_current, "{type_} {words}");
    }
    world.set_down("member2", false);
    assert!(world.settle_for(60_000));
    let (words, _) = reported(&world, "myapp-deployment", "DependenciesReady");
    assert!(words.starts_with("True "), "{words}");
}

#[test]
fn an_edit_that_changes_no_condition_is_reported_as_taken_in_by_one_write() {
    let mut world = settled();
    let mut edited = policy(&["member1", "member2"]);
    edited["spec"]["priority"] = json!(7);
    let wrote = world.writes.len();
    world.apply(edited);
    assert!(world.settle());
    world.assert_generations_are_taken_in();
    let writes = &world.writes[wrote..];
    assert_eq!(writes, ["hub PUT PropagationPolicy default/myapp-propagation"]);
    let mut cluster = world.hub_object("Cluster", "member1").expect("cluster").clone();
    cluster["spec"]["region"] = json!("north");
    world.replace(cluster);
    assert!(world.settle());
    world.assert_generations_are_taken_in();
}

#[test]
fn a_template_that_changes_is_reported_without_a_word_of_failure_in_between() {
    let mut world = settled();
    world.now = world.now.plus(600_000);
    let (wrote, reported) = (world.writes.len(), world.events.len());
    world.apply(scaled(3));
    assert!(world.settle());
    world.assert_generations_are_taken_in();
    let status = "hub PUT ResourceBinding default/myapp-deployment".to_owned();
    let writes = &world.writes[wrote..];
    // What it asks for, and how it went.
    assert_eq!(
        writes.iter().filter(|each| **each == status).count(),
        2,
        "{writes:#?}"
    );
    assert_eq!(world.events[reported..], [""; 0]);
}

#[test]
fn the_words_of_a_member_whose_webhook_is_down_reach_the_condition_and_are_reported_once() {
    let words = |port: usize| {
        format!(
            "Internal error occurred: failed calling webhook \"guard.example.com\": dial tcp 10.0.0.1:{port}: refused"
        )
    };
    let mut world = settled();
    world.breaks = Some(words(1));
    world.apply(scaled(3));
    assert!(world.settle_for(10_000));
    let (reported_first, is_current) = reported(&world, "myapp-deployment", "FullyApplied");
    assert!(
        reported_first.contains("failed calling webhook \"guard.example.com\"") && is_current,
        "{reported_first}"
    );
    assert!(
        reported_first.contains("apply of ") && reported_first.contains(" on member1 failed: "),
        "{reported_first}"
    );
    let wrote = world.writes.len();
    for port in 2..6 {
        world.breaks = Some(words(port));
        assert!(world.settle_for(20_000));
    }
    world.restart();
    assert!(world.settle_for(20_000));
    assert_eq!(
        reported(&world, "myapp-deployment", "FullyApplied").0,
        reported_first
    );
    assert_eq!(world.writes[wrote..], [""; 0], "ports differ from try to try");
    world.breaks = None;
    assert!(world.settle_for(60_000));
    assert!(
        reported(&world, "myapp-deployment", "FullyApplied")
            .0
            .starts_with("True ")
    );
}

#[test]
fn every_class_of_problem_of_dependencies_is_reported() {
    let mut world = settled();
    world.set_down("member2", true);
    world.restart();
    assert!(world.settle());
    world.apply(config_map("my-config", "two"));
    world.apply(deployment("myapp", &["my-config", "nowhere"]));
    assert!(world.settle_for(60_000));
    let (words, _) = reported(&world, "myapp-deployment", "DependenciesReady");
    assert!(words.starts_with("False DependencyMissing"), "{words}");
    assert!(
        words.contains("nowhere") && words.contains("not on member2"),
        "{words}"
    );
}

#[test]
fn a_copy_that_does_not_become_ready_is_reported_with_counts_and_with_its_own_reason() {
    let mut world = settled();
    let status = |ready: i64| {
        move |mut copy: serde_json::Value| {
            copy["status"] = json!({
                "observedGeneration": copy["metadata"]["generation"], "replicas": 1, "updatedReplicas": 1,
                "readyReplicas": ready, "availableReplicas": ready,
                "conditions": [{"type": "Progressing", "status": if ready > 0 { "True" } else { "False" },
                    "reason": "ProgressDeadlineExceeded", "message": "timed out"}],
            });
            Some(copy)
        }
    };
    world.meddle("member1", "Deployment", "myapp", status(1));
    world.meddle("member2", "Deployment", "myapp", status(0));
    assert!(world.settle());
    let (words, is_current) = reported(&world, "myapp-deployment", "Healthy");
    assert_eq!(
        words,
        "False Unhealthy: Healthy on 1/2 clusters. member2: 0/1 ready, ProgressDeadlineExceeded: timed out"
    );
    assert!(is_current);
    world.meddle("member2", "Deployment", "myapp", status(1));
    assert!(world.settle());
    assert_eq!(
        reported(&world, "myapp-deployment", "Healthy").0,
        "True AllHealthy: Healthy on 2/2 clusters."
    );
}

#[test]
fn health_stays_as_last_reported_while_no_member_answers_also_after_a_restart() {
    let mut world = settled();
    let status = |mut copy: serde_json::Value| {
        copy["status"] = json!({
            "observedGeneration": copy["metadata"]["generation"], "replicas": 1, "updatedReplicas": 1,
            "readyReplicas": 1, "availableReplicas": 1,
        });
        Some(copy)
    };
    for member in ["member1", "member2"] {
        world.meddle(member, "Deployment", "myapp", status);
    }
    assert!(world.settle());
    let healthy = "True AllHealthy: Healthy on 2/2 clusters.";
    assert_eq!(reported(&world, "myapp-deployment", "Healthy").0, healthy);
    for member in ["member1", "member2"] {
        world.set_down(member, true);
    }
    world.restart();
    assert!(world.settle_for(120_000));
    assert_eq!(reported(&world, "myapp-deployment", "Healthy").0, healthy);
    for member in ["member1", "member2"] {
        world.set_down(member, false);
    }
    assert!(world.settle_for(120_000));
    assert_eq!(reported(&world, "myapp-deployment", "Healthy").0, healthy);
}

/// `settled` with copies that are healthy, as is reported.
fn healthy() -> World {
    let mut world = settled();
    for member in ["member1", "member2"] {
        world.meddle(member, "Deployment", "myapp", |mut copy| {
            copy["status"] = json!({
                "observedGeneration": copy["metadata"]["generation"], "replicas": 1, "updatedReplicas": 1,
                "readyReplicas": 1, "availableReplicas": 1,
            });
            Some(copy)
        });
    }
    assert!(world.settle());
    assert!(is_healthy(&world));
    world
}

fn is_healthy(world: &World) -> bool {
    let binding = world
        .hub_object("ResourceBinding", "myapp-deployment")
        .expect("binding");
    let mut all = binding["status"]["conditions"].as_array().into_iter().flatten();
    all.any(|each| each["type"] == "Healthy" && each["status"] == "True")
}

#[test]
fn nobody_is_called_healthy_who_was_changed_out_of_sight() {
    let mut world = healthy();
    for member in ["member1", "member2"] {
        world.set_down(member, true);
    }
    world.restart();
    assert!(world.settle_for(120_000));
    assert!(is_healthy(&world), "what was seen stays");
    world.apply(scaled(3));
    assert!(world.settle_for(120_000));
    assert!(!is_healthy(&world));
}

#[test]
fn nobody_is_called_healthy_where_nothing_was_ever_delivered() {
    let mut world = healthy();
    world.apply(policy(&["member1"]));
    assert!(world.settle());
    assert!(is_healthy(&world));
    assert_eq!(world.holders("Deployment", "myapp"), ["member1"]);
    world.apply(policy(&["member2"]));
    world.set_down("member2", true);
    assert!(world.settle_for(120_000));
    assert!(!is_healthy(&world));
}

#[test]
fn what_a_policy_says_without_effect_is_reported_until_it_has_one() {
    let mut world = settled();
    let effective = |world: &World| {
        let policy = world
            .hub_object("PropagationPolicy", "myapp-propagation")
            .expect("policy");
        let all = policy["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let reported = all.into_iter().find(|each| each["type"] == "Effective");
        reported.map(|each| format!("{} {}", each["status"], each["message"]))
    };
    assert_eq!(effective(&world), None);
    let mut odd = policy(&["member1", "nope"]);
    odd["spec"]["schedulePriority"] =
        json!({"priorityClassSource": "KubePriorityClass", "priorityClassName": "high"});
    odd["spec"]["placement"]["clusterAffinity"]["exclude"] = json!(["member1"]);
    world.apply(odd);
    assert!(world.settle());
    let events = |world: &World| {
        let reported = world.events.iter();
        reported
            .filter(|event| event.starts_with("PartsWithoutEffect PropagationPolicy"))
            .count()
    };
    assert_eq!(events(&world), 1, "{:?}", world.events);
    let words = effective(&world).expect("reported");
    for part in [
        "schedulePriority",
        "cluster \\\"nope\\\" not found",
        "exclude excludes every selected cluster",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }
    let mut weighted = policy(&["member1", "member2"]);
    weighted["spec"]["schedulePriority"] = json!(null);
    weighted["spec"]["placement"]["replicaScheduling"] = json!({
        "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
        "weightPreference": {"staticWeightList": [{"targetCluster": {"clusterNames": ["member1"]}, "weight": 1}]},
    });
    world.apply(weighted);
    assert!(world.settle());
    let words = effective(&world).expect("reported");
    assert!(words.contains("cluster \\\"member2\\\" no weight"), "{words}");
    assert_eq!(
        events(&world),
        1,
        "it is reported when it turns: {:?}",
        world.events
    );
    world.apply(policy(&["member1", "member2"]));
    assert!(world.settle());
    assert_eq!(effective(&world), None);
    world.assert_generations_are_taken_in();
}

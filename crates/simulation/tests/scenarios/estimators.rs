//! Estimators: who asks them, what their answers change, and what counts without an answer.

use entourage_core::config::Estimators;
use serde_json::{Value, json};

use super::{
    binding, condition,
    failover::{no_execute, taint},
    policy_of,
    pull::pass,
    room::{aggregated, dynamic, named, policy, priority_class, probe, propagate_with, shares, workload},
    world::World,
};

/// Members with one node each, whose estimators are asked and have these answers; one without an answer has none.
fn world(members: &[(&str, i64, Option<i64>)]) -> World {
    let nodes: Vec<(&str, i64)> = members.iter().map(|(name, cpu, _)| (*name, *cpu)).collect();
    let mut world = super::room::world(&nodes);
    world.process.engine.config_mut().estimators = Some(Estimators {
        timeout: 3_000,
        in_pull_mode: true,
    });
    for (name, _, answer) in members {
        if let Some(answer) = answer {
            world.estimators.answers.insert((*name).into(), *answer);
        }
    }
    world
}

fn apply(world: &mut World, name: &str, replicas: i64) {
    world.apply(workload(name, replicas));
    world.apply(policy(name, &dynamic()));
}

/// The questions since the last call: the members of each.
fn asked(world: &mut World) -> Vec<String> {
    std::mem::take(&mut world.estimators.asked)
}

#[test]
fn replicas_go_where_the_estimators_say_that_there_is_room_in_one_write() {
    let mut world = world(&[
        ("member1", 12, Some(2)),
        ("member2", 12, Some(100)),
        ("member3", 12, None),
    ]);
    let writes = |world: &mut World, name: &str| {
        let from = world.writes.len();
        apply(world, name, 13);
        assert!(world.settle_for(1_000));
        let of_binding = |write: &&String| write.contains("ResourceBinding");
        world.writes[from..].iter().filter(of_binding).count()
    };
    let estimated = writes(&mut world, "web");
    assert_eq!(
        shares(&world, "web"),
        named(&[("member1", 1), ("member2", 6), ("member3", 6)])
    );
    assert_eq!(asked(&mut world), ["member1 member2 member3"]);
    world.process.engine.config_mut().estimators = None;
    assert_eq!(
        estimated,
        writes(&mut world, "api"),
        "no write more than without them"
    );
}

#[test]
fn nothing_is_asked_for_a_result_that_stands_or_shrinks_nor_without_the_setting() {
    let mut world = world(&[("member1", 8, Some(6)), ("member2", 8, Some(6))]);
    apply(&mut world, "web", 12);
    assert!(world.settle());
    assert_eq!(shares(&world, "web"), named(&[("member1", 6), ("member2", 6)]));
    assert_eq!(asked(&mut world).len(), 1);
    world.estimators.answers.clear();
    let mut labelled = workload("web", 12);
    labelled["spec"]["template"]["metadata"]["labels"] = json!({"app": "web", "version": "2"});
    world.apply(labelled);
    assert!(world.settle());
    probe(&mut world, "member1");
    world.restart();
    assert!(world.settle());
    world.apply(workload("web", 4));
    assert!(world.settle());
    assert_eq!(shares(&world, "web"), named(&[("member1", 2), ("member2", 2)]));
    assert_eq!(asked(&mut world), <[&str; 0]>::default());
    world.apply(workload("web", 6));
    assert!(world.settle());
    assert_eq!(asked(&mut world), ["member1 member2"]);
    world.process.engine.config_mut().estimators = None;
    apply(&mut world, "api", 2);
    assert!(world.settle());
    assert_eq!(shares(&world, "api").len(), 2);
    assert_eq!(asked(&mut world), <[&str; 0]>::default());
}

#[test]
fn without_an_answer_the_reports_count_at_once_if_it_fails_and_after_the_time_out_if_it_is_lost() {
    for loses in [false, true] {
        let mut world = world(&[("member1", 4, None), ("member2", 12, None)]);
        world.estimators.loses = loses;
        apply(&mut world, "web", 8);
        assert!(world.settle_for(1_000));
        assert_eq!(is_bound(&world, "web"), !loses);
        assert_eq!(asked(&mut world), ["member1 member2"]);
        if loses {
            // It asks once more when the first question is over, and waits no longer than for both.
            assert!(world.settle_for(12_000));
            assert!(!is_bound(&world, "web"));
            assert_eq!(asked(&mut world), ["member1 member2"]);
            assert!(world.settle_for(8_000));
        }
        assert_eq!(shares(&world, "web"), named(&[("member1", 2), ("member2", 6)]));
        assert_eq!(asked(&mut world), <[&str; 0]>::default());
    }
}

/// A policy with a group of clusters for member1, and one for member2.
fn grouped(name: &str) -> Value {
    let mut grouped = policy(name, &dynamic());
    grouped["spec"]["placement"]["clusterAffinities"] = json!([
        {"affinityName": "first", "clusterNames": ["member1"]},
        {"affinityName": "second", "clusterNames": ["member2"]},
    ]);
    grouped
}

/// True if there is a binding of a workload.
fn is_bound(world: &World, name: &str) -> bool {
    let binding = format!("{name}-deployment");
    world.hub_object("ResourceBinding", &binding).is_some()
}

#[test]
fn who_was_refused_is_not_placed_because_its_estimator_fails_or_cannot_be_asked() {
    for is_overloaded in [false, true] {
        let mut world = world(&[("member1", 20, Some(2))]);
        apply(&mut world, "web", 4);
        assert!(world.settle_for(1_000));
        assert_eq!(shares(&world, "web"), []);
        assert_eq!(asked(&mut world).len(), 1);
        world.estimators.answers.clear();
        if is_overloaded {
            world.estimators.overloaded.insert("member1".into());
        }
        assert!(world.settle_for(40_000));
        assert_eq!(shares(&world, "web"), [], "{is_overloaded}");
        assert!(!asked(&mut world).is_empty(), "{is_overloaded}");
    }
}

#[test]
fn who_scales_up_just_after_it_was_placed_stays_where_the_estimator_counts_its_pods() {
    let mut world = world(&[("member1", 10, Some(10)), ("member2", 20, Some(20))]);
    world.apply(workload("web", 5));
    world.apply(grouped("web"));
    assert!(world.settle_for(1_000));
    assert_eq!(shares(&world, "web"), named(&[("member1", 5)]));
    // Its pods run; no report of the member contains them yet.
    world.estimators.answers.insert("member1".into(), 5);
    world.now = world.now.plus(6_000);
    world.apply(workload("web", 8));
    assert!(world.settle_for(1_000));
    assert_eq!(shares(&world, "web"), named(&[("member1", 8)]));
}

#[test]
fn a_lower_priority_waits_behind_a_higher_one_that_waits_for_the_same_room() {
    let mut world = world(&[("member1", 20, Some(4)), ("member2", 6, None)]);
    world.estimators.hanging.insert("member2".into());
    world.apply(priority_class("high", 1_000));
    assert!(world.settle_for(10));
    propagate_with(&mut world, "high", "high");
    assert!(world.settle_for(10));
    assert_eq!(asked(&mut world), ["member1 member2"]);
    // Its estimator answers at once.
    let mut low = workload("low", 4);
    low["spec"]["template"]["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "2"}});
    world.apply(low);
    let mut alone = policy("low", &aggregated());
    alone["spec"]["placement"]["clusterAffinity"] = json!({"clusterNames": ["member1"]});
    world.apply(alone);
    assert!(world.settle_for(2_000));
    assert_eq!(asked(&mut world), ["member1"]);
    assert_eq!(["high", "low"].map(|name| is_bound(&world, name)), [false, false]);
    assert!(world.settle_for(15_000));
    assert_eq!(shares(&world, "high"), named(&[("member1", 4)]));
    assert_eq!(shares(&world, "low"), []);
}

#[test]
fn a_wait_ends_with_a_restart_and_one_that_joins_asks_nothing_again() {
    let mut world = world(&[("member1", 20, Some(9))]);
    world.estimators.loses = true;
    apply(&mut world, "web", 4);
    assert!(world.settle_for(1_000));
    apply(&mut world, "api", 2);
    assert!(world.settle_for(1_000));
    assert_eq!(asked(&mut world), ["member1"]);
    assert_eq!(["web", "api"].map(|name| is_bound(&world, name)), [false, false]);
    world.estimators.loses = false;
    world.restart();
    assert!(world.settle());
    assert_eq!(shares(&world, "web"), named(&[("member1", 4)]));
    assert_eq!(shares(&world, "api"), named(&[("member1", 2)]));
    assert_eq!(asked(&mut world), ["member1"]);
}

#[test]
fn a_burst_asks_once_and_no_estimate_is_used_up_twice() {
    let mut world = world(&[("member1", 100, Some(5)), ("member2", 100, Some(4))]);
    for name in ["a", "b", "c", "d"] {
        world.apply(workload(name, 3));
        world.apply(policy(name, &aggregated()));
    }
    let begun = world.now;
    assert!(world.settle_for(5_000));
    let all: Vec<(String, i64)> = ["a", "b", "c", "d"]
        .iter()
        .flat_map(|name| shares(&world, name))
        .collect();
    for (member, most) in [("member1", 5), ("member2", 4)] {
        let sum: i64 = all
            .iter()
            .filter(|(name, _)| name == member)
            .map(|(_, share)| share)
            .sum();
        assert!(sum <= most, "{member}: {all:?}");
    }
    assert_eq!(all.iter().map(|(_, share)| share).sum::<i64>(), 9, "{all:?}");
    // Once, and once more if a time to try again is in between.
    let tries = world.now.0.div_euclid(15_000) - begun.0.div_euclid(15_000) + 1;
    let asked = asked(&mut world);
    assert_eq!(asked[0], "member1 member2");
    assert!(i64::try_from(asked.len()).expect("few") <= tries, "{asked:?}");
}

#[test]
fn who_finds_no_room_by_the_estimators_asks_again_with_the_next_try() {
    let mut world = world(&[("member1", 20, Some(2))]);
    apply(&mut world, "web", 4);
    assert!(world.settle_for(5_000));
    assert_eq!(shares(&world, "web"), []);
    let scheduled = condition(&world, "web-deployment", "Scheduled");
    assert_eq!(scheduled["reason"], "Unschedulable");
    let message = scheduled["message"].as_str().expect("message");
    assert!(
        message.contains("available replicas 2 are not enough"),
        "{message}"
    );
    world.estimators.answers.insert("member1".into(), 9);
    assert!(world.settle());
    assert_eq!(shares(&world, "web"), named(&[("member1", 4)]));
    assert!(asked(&mut world).len() >= 2);
}

#[test]
fn who_is_refused_again_and_again_asks_less_and_less_often() {
    let mut world = world(&[("member1", 20, Some(2))]);
    apply(&mut world, "web", 4);
    pass(&mut world, 300_000);
    assert_eq!(shares(&world, "web"), []);
    // It is tried twenty times.
    let asked = asked(&mut world).len();
    assert!((3..=8).contains(&asked), "{asked}");
    world.estimators.answers.insert("member1".into(), 9);
    pass(&mut world, 150_000);
    assert_eq!(shares(&world, "web"), named(&[("member1", 4)]));
}

#[test]
fn edits_of_the_requirements_do_not_prolong_a_wait() {
    let mut world = world(&[("member1", 20, Some(9))]);
    world.estimators.loses = true;
    world.apply(policy("web", &dynamic()));
    for cpu in 1..=8 {
        let mut web = workload("web", 4);
        let request = json!({"requests": {"cpu": format!("{cpu}00m")}});
        web["spec"]["template"]["spec"]["containers"][0]["resources"] = request;
        world.apply(web);
        pass(&mut world, 3_000);
    }
    assert_eq!(shares(&world, "web"), named(&[("member1", 4)]));
}

#[test]
fn other_requirements_are_another_question() {
    let mut world = world(&[("member1", 20, Some(9)), ("member2", 20, Some(9))]);
    apply(&mut world, "web", 4);
    assert!(world.settle_for(1_000));
    let mut large = workload("large", 4);
    large["spec"]["template"]["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "2"}});
    world.apply(large);
    world.apply(policy("large", &dynamic()));
    assert!(world.settle_for(1_000));
    assert_eq!(asked(&mut world), ["member1 member2", "member1 member2"]);
    assert_eq!(world.estimators.requests, ["1", "2"]);
}

#[test]
fn the_status_waits_for_the_estimators_as_the_result_does() {
    let mut world = world(&[("member1", 20, Some(4))]);
    apply(&mut world, "web", 4);
    assert!(world.settle_for(1_000));
    world.estimators.answers.insert("member1".into(), 0);
    pass(&mut world, 40_000);
    let of_status = |world: &World| condition(world, "web-deployment", "Scheduled")["status"].clone();
    assert_eq!(of_status(&world), "True");
    let from = world.events.len();
    world.apply(workload("web", 8));
    for step in 0..30 {
        // Each second a copy reports, whether answers count or not.
        world.meddle("member1", "Deployment", "web", |held| {
            let mut held = held;
            held["status"] = json!({"replicas": 4, "readyReplicas": step % 2});
            Some(held)
        });
        pass(&mut world, 1_000);
        if step > 0 {
            assert_eq!(of_status(&world), "False", "after {step} s");
        }
    }
    let events = world.events[from..].iter();
    let events =
        events.filter(|event| event.starts_with("ScheduleBinding") && event.contains(" ResourceBinding "));
    assert_eq!(events.count(), 1, "{:?}", &world.events[from..]);
}

#[test]
fn a_rescheduling_trigger_is_used_with_the_answers() {
    for loses in [false, true] {
        let mut world = world(&[("member1", 20, Some(20)), ("member2", 20, Some(20))]);
        apply(&mut world, "web", 8);
        assert!(world.settle_for(1_000));
        assert_eq!(shares(&world, "web"), named(&[("member1", 4), ("member2", 4)]));
        pass(&mut world, 60_000);
        world.estimators.answers.insert("member1".into(), 2);
        world.estimators.loses = loses;
        let asked = world.now.plus(1_000).to_k8s();
        let mut object = binding(&world, "web-deployment").clone();
        object["spec"]["rescheduleTriggeredAt"] = json!(asked);
        world.apply(object);
        pass(&mut world, 5_000);
        let scheduled_at =
            |world: &World| binding(world, "web-deployment")["status"]["lastScheduledTime"].clone();
        if loses {
            assert_ne!(scheduled_at(&world), json!(asked), "it still waits");
            pass(&mut world, 20_000);
            assert_eq!(shares(&world, "web"), named(&[("member1", 4), ("member2", 4)]));
        } else {
            assert_eq!(shares(&world, "web"), named(&[("member1", 1), ("member2", 7)]));
        }
        assert!(scheduled_at(&world).as_str() >= json!(asked).as_str());
    }
}

#[test]
fn who_scales_down_and_up_again_stays_where_its_pods_may_still_be_ending() {
    let mut world = world(&[("member1", 20, Some(8)), ("member2", 20, Some(20))]);
    world.apply(workload("web", 8));
    world.apply(grouped("web"));
    assert!(world.settle_for(1_000));
    pass(&mut world, 60_000);
    world.estimators.answers.insert("member1".into(), 0);
    // Soon its pods still run; a minute later others have their place.
    for (pause, want) in [(3_000, ("member1", 8)), (60_000, ("member2", 8))] {
        world.apply(workload("web", 4));
        pass(&mut world, pause);
        assert_eq!(shares(&world, "web"), named(&[("member1", 4)]));
        world.apply(workload("web", 8));
        pass(&mut world, 2_000);
        assert_eq!(shares(&world, "web"), named(&[want]), "{pause}");
    }
}

#[test]
fn a_number_counts_less_what_was_scheduled_since_whatever_was_reported_meanwhile() {
    let mut world = world(&[("member1", 40, Some(10))]);
    apply(&mut world, "web", 8);
    assert!(world.settle_for(1_000));
    assert_eq!(shares(&world, "web"), named(&[("member1", 8)]));
    pass(&mut world, 16_000);
    // A report that contains its pods.
    world.meddle("member1", "Pod", "web", |_| {
        Some(json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
            "spec": {"nodeName": "n", "containers": [{"name": "a", "resources": {"requests": {"cpu": "8"}}}]},
        }))
    });
    probe(&mut world, "member1");
    world.estimators.answers.clear();
    world.apply(workload("web", 16));
    apply(&mut world, "api", 4);
    assert!(world.settle_for(1_000));
    assert_eq!(shares(&world, "web"), named(&[("member1", 8)]));
    assert_eq!(shares(&world, "api"), []);
    assert_eq!(
        condition(&world, "web-deployment", "Scheduled")["status"],
        "False"
    );
}

/// All replicas of a workload on a member are ready.
fn healthy(world: &mut World, member: &str, replicas: i64) {
    world.meddle(member, "Deployment", "web", |mut object| {
        object["status"] = json!({
            "observedGeneration": object["metadata"]["generation"], "replicas": replicas, "updatedReplicas": replicas,
            "readyReplicas": replicas, "availableReplicas": replicas,
        });
        Some(object)
    });
}

#[test]
fn a_move_whose_question_was_not_asked_is_asked_for_again() {
    let mut world = world(&[("member1", 30, Some(30)), ("member2", 20, Some(20))]);
    let mut returning = policy("web", &aggregated());
    returning["metadata"]["annotations"] = json!({"entourage.dev/fail-back": "0s"});
    world.apply(workload("web", 4));
    world.apply(returning);
    assert!(world.settle_for(1_000));
    assert_eq!(shares(&world, "web"), named(&[("member1", 4)]));
    healthy(&mut world, "member1", 4);
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    pass(&mut world, 1_000);
    healthy(&mut world, "member2", 4);
    pass(&mut world, 60_000);
    world.apply(workload("web", 6));
    pass(&mut world, 1_000);
    healthy(&mut world, "member2", 6);
    pass(&mut world, 60_000);
    assert_eq!(world.holders("Deployment", "web"), ["member2"]);
    assert_eq!(shares(&world, "web"), named(&[("member2", 6)]));
    world.estimators.answers.clear();
    world.estimators.overloaded.insert("member1".into());
    taint(&mut world, "member1", &json!([]));
    asked(&mut world);
    pass(&mut world, 2_000);
    assert_eq!(shares(&world, "web"), named(&[("member2", 6)]));
    assert!(!asked(&mut world).is_empty());
    world.estimators.answers.insert("member1".into(), 30);
    pass(&mut world, 10_000);
    assert_eq!(shares(&world, "web"), named(&[("member1", 6)]));
}

/// Members whose namespace has a quota for four CPUs.
fn limited(members: &[(&str, i64, Option<i64>)]) -> World {
    let mut world = world(members);
    world.process.engine.config_mut().enforce_quotas = true;
    world.restart();
    world.apply(json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "FederatedResourceQuota",
        "metadata": {"name": "team"}, "spec": {"overall": {"cpu": "4"}},
    }));
    assert!(world.settle());
    world
}

#[test]
fn who_waits_for_estimators_gets_the_quota_before_those_that_are_planned_later() {
    let mut world = limited(&[("member1", 20, Some(9)), ("member2", 20, None)]);
    world.estimators.hanging.insert("member2".into());
    apply(&mut world, "web", 4);
    assert!(world.settle_for(1_000));
    world.apply(workload("copied", 4));
    world.apply(policy_of(
        "copied",
        "apps/v1",
        "Deployment",
        "copied",
        &["member1"],
    ));
    assert!(world.settle_for(2_000));
    assert!(!is_bound(&world, "web"));
    assert_eq!(shares(&world, "copied"), []);
    pass(&mut world, 20_000);
    let sum = |name| shares(&world, name).iter().map(|(_, share)| share).sum::<i64>();
    assert_eq!(["web", "copied"].map(sum), [4, 0]);
}

#[test]
fn a_binding_that_is_deleted_by_hand_is_made_again_whoever_waits_for_its_room() {
    let mut world = world(&[("member1", 20, Some(8)), ("member2", 6, Some(6))]);
    world.apply(priority_class("high", 1_000));
    world.apply(workload("low", 4));
    let mut alone = policy("low", &aggregated());
    alone["spec"]["placement"]["clusterAffinity"] = json!({"clusterNames": ["member1"]});
    world.apply(alone);
    assert!(world.settle_for(1_000));
    pass(&mut world, 60_000);
    world.estimators.hanging.insert("member2".into());
    propagate_with(&mut world, "high", "high");
    assert!(world.settle_for(1_000));
    assert!(!is_bound(&world, "high"));
    world.delete("ResourceBinding", "low-deployment");
    assert!(world.settle_for(2_000));
    assert!(!is_bound(&world, "high"));
    assert_eq!(shares(&world, "low"), named(&[("member1", 4)]));
}

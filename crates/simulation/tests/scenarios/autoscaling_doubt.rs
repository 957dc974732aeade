//! Autoscalers on members, where what is known of them, or of the replicas, is in doubt: no running replica is lost.

use entourage_api::keys::{annotation, label};
use entourage_core::{
    observation::{Delivered, Server, Watch},
    plan::Key,
    pulled::REPORT,
};
use serde_json::{Value, json};

use crate::{
    autoscaling::{
        BOTH, NONE, autoscaler, autoscaler_policy, dividing, marks, on, replicas, reported, rest, scale,
        scaled, scaling, set, shares, shares_are, template, workload,
    },
    config_map, deployment,
    failover::{no_execute, taint},
    policy_of,
    pull::{pass, renew},
    world::{World, id},
};

/// Another writer of the hub replaces the template: without the label, and with these replicas.
fn strip(world: &mut World, to: i64, image: &str) {
    let mut edited = template(world, "web").clone();
    for (field, key) in [
        ("labels", label::RETAIN_REPLICAS),
        ("annotations", annotation::SCALED_BY),
    ] {
        if let Some(held) = edited["metadata"][field].as_object_mut() {
            held.remove(key);
        }
    }
    edited["spec"]["replicas"] = json!(to);
    edited["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
    world.replace(edited);
}

/// The replicas on the members.
fn live(world: &World) -> (i64, i64) {
    (on(world, "member1"), on(world, "member2"))
}

#[test]
fn a_template_that_loses_the_label_lowers_no_replicas_however_often() {
    let mut world = scaled(2, &[1, 1]);
    scale(&mut world, "member1", 7);
    scale(&mut world, "member2", 3);
    rest(&mut world);
    assert_eq!(replicas(template(&world, "web")), 10);
    for round in 1..6 {
        let image = format!("nginx:{round}");
        strip(&mut world, 2, &image);
        if round % 2 == 0 {
            world.restart();
        }
        // The label is set again with back-off; its copies have it all the time, and the rest of the edit reaches them.
        assert!(world.settle());
        assert_eq!(live(&world), (7, 3), "{round}");
        for member in BOTH {
            let copy = world.on(member, "Deployment", "web").expect("a copy");
            assert_eq!(
                copy["metadata"]["labels"][label::RETAIN_REPLICAS],
                "true",
                "{round}"
            );
            let container = &copy["spec"]["template"]["spec"]["containers"][0];
            assert_eq!(container["image"], json!(image), "{round}");
        }
        rest(&mut world);
        assert!(world.settle_for(60_000));
        assert_eq!(live(&world), (7, 3), "{round}");
        assert_eq!(marks(&world, "web"), set("by-load"), "{round}");
        assert_eq!(replicas(template(&world, "web")), 10, "{round}");
        shares_are(&world, &[("member1", 7), ("member2", 3)]);
    }
}

#[test]
fn the_label_goes_when_none_of_its_autoscalers_scales_on_any_member() {
    let mut world = scaled(2, &[1, 1]);
    let mut other = autoscaler("web");
    other["metadata"]["name"] = json!("a-second");
    world.apply(other);
    world.apply(policy_of(
        "second",
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        "a-second",
        BOTH,
    ));
    rest(&mut world);
    assert_eq!(marks(&world, "web"), set("a-second,by-load"));
    // The one that is not the first by name is deleted while member2 does not respond.
    world.set_down("member2", true);
    world.delete("HorizontalPodAutoscaler", "by-load");
    rest(&mut world);
    world.restart();
    rest(&mut world);
    assert_eq!(marks(&world, "web"), set("a-second,by-load"));
    world.delete("HorizontalPodAutoscaler", "a-second");
    rest(&mut world);
    assert_eq!(marks(&world, "web"), set("a-second,by-load"));
    assert!(reported(&world, "may still scale it on member2, which does not respond") > 0);
    world.set_down("member2", false);
    assert!(world.settle_for(90_000));
    assert_eq!(marks(&world, "web"), NONE);
    assert_eq!(live(&world), (1, 1));
}

#[test]
fn the_label_stays_while_a_cluster_has_no_replica_beside_others() {
    for weights in [[1, 1], [9, 1]] {
        let mut world = scaled(20, &weights);
        scale(&mut world, "member1", 5);
        scale(&mut world, "member2", 0);
        rest(&mut world);
        shares_are(&world, &[("member1", 5), ("member2", 0)]);
        // By their weights they would have others, or member2 no copy at all.
        world.delete("HorizontalPodAutoscaler", "by-load");
        assert!(world.settle_for(90_000));
        assert_eq!(marks(&world, "web"), set("by-load"), "{weights:?}");
        assert_eq!(live(&world), (5, 0), "{weights:?}");
        assert!(reported(&world, "member2 has no replica") > 0, "{weights:?}");
        // A user gives it one.
        scale(&mut world, "member2", 1);
        assert!(world.settle_for(90_000));
        assert_eq!(marks(&world, "web"), NONE, "{weights:?}");
        assert_eq!(live(&world), (5, 1), "{weights:?}");
        assert_eq!(replicas(template(&world, "web")), 6, "{weights:?}");
    }
}

/// A workload with its autoscaler on member1 and member2, that has these replicas there, and what happens to it in failovers.
fn failing(mode: &str, (one, two): (i64, i64)) -> World {
    let mut world = scaling(BOTH);
    let mut policy = dividing("web", &[1, 1]);
    policy["spec"]["failover"] = json!({"cluster": {"purgeMode": mode}});
    for object in [workload("web", 2), policy, autoscaler("web"), autoscaler_policy()] {
        world.apply(object);
    }
    rest(&mut world);
    scale(&mut world, "member1", one);
    scale(&mut world, "member2", two);
    rest(&mut world);
    world
}

fn edit_image(world: &mut World, image: &str) {
    let mut edited = template(world, "web").clone();
    edited["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
    world.replace(edited);
}

#[test]
fn a_share_is_delivered_once_whatever_is_edited_while_it_waits_for_a_user() {
    let mut world = failing("Never", (5, 3));
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    rest(&mut world);
    shares_are(&world, &[("member2", 8)]);
    assert_eq!(on(&world, "member2"), 8);
    // Nobody confirms the deletion on member1. The autoscaler of member2 decides, down to none.
    for (to, image) in [(2, "nginx:2"), (0, "nginx:3"), (4, "nginx:4")] {
        scale(&mut world, "member2", to);
        rest(&mut world);
        shares_are(&world, &[("member2", to)]);
        edit_image(&mut world, image);
        rest(&mut world);
        world.restart();
        rest(&mut world);
        assert_eq!(on(&world, "member2"), to, "{image}");
        let copy = world.on("member2", "Deployment", "web").expect("a copy");
        assert_eq!(
            copy["spec"]["template"]["spec"]["containers"][0]["image"],
            json!(image)
        );
    }
    // The label stays, and a user hears why.
    world.delete("HorizontalPodAutoscaler", "by-load");
    rest(&mut world);
    assert_eq!(marks(&world, "web"), set("by-load"));
}

#[test]
fn shares_follow_while_nothing_is_scheduled() {
    let suspended = |world: &mut World| {
        let mut binding = crate::binding(world, "web-deployment").clone();
        binding["spec"]["suspension"] = json!({"scheduling": true});
        world.replace(binding);
    };
    let impossible = |world: &mut World| {
        let mut policy = dividing("web", &[1, 1]);
        policy["spec"]["placement"]["spreadConstraints"] =
            json!([{"spreadByField": "cluster", "minGroups": 3, "maxGroups": 3}]);
        world.apply(policy);
    };
    let orphaned = |world: &mut World| {
        world.delete("PropagationPolicy", "web");
        rest(world);
        world.apply(json!({
            "apiVersion": "apps.karmada.io/v1alpha1", "kind": "WorkloadRebalancer", "metadata": {"name": "all"},
            "spec": {"workloads": [
                {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web"},
            ]},
        }));
    };
    type Begin = fn(&mut World);
    let cases: [(&str, Begin); 3] = [
        ("suspended", suspended),
        ("no cluster fits", impossible),
        ("its policy is gone, and a choice is asked for", orphaned),
    ];
    for (case, begin) in cases {
        let mut world = scaled(2, &[1, 1]);
        scale(&mut world, "member1", 8);
        rest(&mut world);
        begin(&mut world);
        rest(&mut world);
        scale(&mut world, "member1", 2);
        rest(&mut world);
        assert_eq!(
            shares(&world),
            [("member1".to_owned(), 2), ("member2".to_owned(), 1)],
            "{case}"
        );
        edit_image(&mut world, "nginx:2");
        assert!(world.settle_for(90_000));
        assert_eq!(live(&world), (2, 1), "{case}");
    }
}

/// The controllers of a member report that all replicas are there, or none of the latest spec.
fn report(world: &mut World, member: &str, is_ready: bool) {
    world.meddle(member, "Deployment", "web", |mut object| {
        let count = if is_ready { replicas(&object) } else { 0 };
        object["status"] = json!({
            "observedGeneration": object["metadata"]["generation"], "replicas": count, "updatedReplicas": count,
            "readyReplicas": count, "availableReplicas": count,
        });
        Some(object)
    });
}

#[test]
fn evictions_that_end_with_a_return_do_not_make_replicas_more_and_more() {
    let mut world = failing("Gracefully", (5, 3));
    for flap in 0..10 {
        let taints = no_execute(&world);
        taint(&mut world, "member1", &taints);
        assert!(world.settle());
        report(&mut world, "member1", true);
        report(&mut world, "member2", false);
        assert!(world.settle());
        assert_eq!(shares(&world).len(), 1, "{flap}");
        // It recovers before the replacement is healthy.
        taint(&mut world, "member1", &json!([]));
        rest(&mut world);
        assert_eq!(shares(&world).len(), 2, "{flap}");
        let (one, two) = live(&world);
        assert!(one >= 5 && two >= 8 && one + two <= 16, "{flap}: {one} {two}");
    }
    // The autoscalers decide: then the shares, and the template, are theirs.
    scale(&mut world, "member2", 4);
    assert!(world.settle_for(90_000));
    let (one, two) = live(&world);
    shares_are(&world, &[("member1", one), ("member2", two)]);
    assert_eq!(two, 4);
    assert_eq!(replicas(template(&world, "web")), one + two);
}

#[test]
fn a_direct_purge_starts_its_replacements_when_it_is_over_also_if_the_template_lags() {
    let mut world = failing("Directly", (10, 10));
    assert_eq!(replicas(template(&world, "web")), 20);
    // member1 does not respond; meanwhile the autoscaler of member2 takes most of its replicas away.
    world.set_down("member1", true);
    scale(&mut world, "member2", 3);
    rest(&mut world);
    assert_eq!(replicas(template(&world, "web")), 20);
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    rest(&mut world);
    shares_are(&world, &[("member2", 13)]);
    assert_eq!(on(&world, "member2"), 3, "the copy on member1 may run still");
    world.set_down("member1", false);
    assert!(world.settle_for(90_000));
    assert_eq!(on(&world, "member2"), 13);
}

#[test]
fn a_cluster_that_is_new_while_a_workload_sleeps_has_a_copy_that_may_wake() {
    let mut world = scaled(3, &[1, 1, 1]);
    let mut narrow = dividing("web", &[1, 1, 1]);
    narrow["spec"]["placement"]["clusterAffinity"]["clusterNames"] = json!(BOTH);
    world.apply(narrow);
    rest(&mut world);
    for member in BOTH {
        scale(&mut world, member, 0);
    }
    rest(&mut world);
    world.apply(dividing("web", &[1, 1, 1]));
    rest(&mut world);
    shares_are(&world, &[("member1", 0), ("member2", 0), ("member3", 0)]);
    assert_eq!(on(&world, "member3"), 0);
    scale(&mut world, "member3", 4);
    rest(&mut world);
    shares_are(&world, &[("member1", 0), ("member2", 0), ("member3", 4)]);
    assert_eq!(replicas(template(&world, "web")), 4);
}

/// The agent of member2 reports so many replicas, in good health or not, and renews its Lease. It reports again after each write of its
/// Work, which has no report here.
fn agent_reports(world: &mut World, count: i64, health: &str) {
    for _ in 0..7 {
        renew(world);
        world.meddle("member2", "Deployment", "web", |mut copy| {
            copy[REPORT] = json!({"applied": "True", "health": health});
            copy["status"] = json!({
                "replicas": count, "updatedReplicas": count, "readyReplicas": count, "availableReplicas": count,
                "observedGeneration": 1, "generation": 1,
            });
            Some(copy)
        });
        pass(world, 10_000);
    }
}

#[test]
fn what_an_eviction_gives_to_a_member_in_pull_mode_is_not_forgotten() {
    let mut world = failing("Gracefully", (5, 3));
    let mut cluster = world.hub_object("Cluster", "member2").expect("a Cluster").clone();
    cluster["spec"]["syncMode"] = json!("Pull");
    renew(&mut world);
    world.replace(cluster);
    assert!(world.settle());
    agent_reports(&mut world, 3, "Healthy");
    shares_are(&world, &[("member1", 5), ("member2", 3)]);
    // Numbers of a rollout are no decision.
    agent_reports(&mut world, 1, "Unhealthy");
    shares_are(&world, &[("member1", 5), ("member2", 3)]);
    agent_reports(&mut world, 3, "Healthy");
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    assert!(world.settle());
    // The agent keeps what is there.
    for _ in 0..3 {
        agent_reports(&mut world, 3, "Healthy");
    }
    shares_are(&world, &[("member2", 8)]);
    assert_eq!(replicas(template(&world, "web")), 8);
    world.restart();
    agent_reports(&mut world, 3, "Healthy");
    shares_are(&world, &[("member2", 8)]);
    // It arrives there, and then its autoscaler decides.
    agent_reports(&mut world, 8, "Healthy");
    agent_reports(&mut world, 4, "Healthy");
    shares_are(&world, &[("member2", 4)]);
}

#[test]
fn a_number_that_this_process_wrote_once_wakes_a_workload_when_a_user_writes_it() {
    let mut world = scaled(2, &[1, 1]);
    scale(&mut world, "member1", 7);
    rest(&mut world);
    assert_eq!(replicas(template(&world, "web")), 8);
    for (asked, each) in [(6, 3), (8, 4)] {
        for member in BOTH {
            scale(&mut world, member, 0);
        }
        rest(&mut world);
        assert_eq!(live(&world), (0, 0), "{asked}");
        let mut edited = template(&world, "web").clone();
        edited["spec"]["replicas"] = json!(asked);
        world.replace(edited);
        rest(&mut world);
        assert_eq!(live(&world), (each, each), "{asked}");
        shares_are(&world, &[("member1", each), ("member2", each)]);
    }
}

#[test]
fn a_crash_around_a_write_of_the_template_wakes_no_workload_that_sleeps() {
    let mut crashes = 0;
    for crash_in in 1..12 {
        let mut world = scaled(2, &[1, 1]);
        scale(&mut world, "member1", 8);
        world.crash_in = Some(crash_in);
        let is_done = world.settle_for(60_000);
        world.crash_in = None;
        crashes += usize::from(!is_done);
        world.restart();
        for member in BOTH {
            scale(&mut world, member, 0);
        }
        rest(&mut world);
        assert_eq!(live(&world), (0, 0), "crash {crash_in}");
        shares_are(&world, &[("member1", 0), ("member2", 0)]);
        if is_done {
            break;
        }
    }
    assert!(crashes > 1, "{crashes}");
}

#[test]
fn a_write_of_ours_does_not_forget_where_the_application_failed() {
    let mut world = scaling(&["member1", "member2", "member3"]);
    let mut policy = dividing("web", &[1, 1, 1]);
    policy["spec"]["failover"] = json!({"application": {
        "decisionConditions": {"tolerationSeconds": 30}, "purgeMode": "Gracefully", "gracePeriodSeconds": 60,
    }});
    let mut scaling = autoscaler_policy();
    scaling["spec"]["placement"]["clusterAffinity"]["clusterNames"] =
        json!(["member1", "member2", "member3"]);
    for object in [workload("web", 3), policy, autoscaler("web"), scaling] {
        world.apply(object);
    }
    rest(&mut world);
    for member in ["member1", "member2", "member3"] {
        report(&mut world, member, true);
    }
    assert!(world.settle());
    report(&mut world, "member1", false);
    assert!(world.settle_for(40_000));
    for member in ["member2", "member3"] {
        report(&mut world, member, true);
    }
    assert!(world.settle_for(120_000));
    assert_eq!(failed_clusters(&world), "member1");
    // An autoscaler steps, and the template follows.
    let before = replicas(template(&world, "web"));
    scale(&mut world, "member2", 9);
    for _ in 0..9 {
        assert!(world.settle_for(10_000));
        // A Deployment's controller reports each new generation, and there is one with each write of an annotation.
        for member in ["member2", "member3"] {
            report(&mut world, member, true);
        }
    }
    assert_ne!(replicas(template(&world, "web")), before);
    assert_eq!(failed_clusters(&world), "member1");
    // A user's change makes it forget.
    edit_image(&mut world, "nginx:2");
    assert!(world.settle());
    assert_eq!(failed_clusters(&world), "");
}

/// The clusters that the binding remembers because the application failed there.
fn failed_clusters(world: &World) -> &str {
    let annotations = &crate::binding(world, "web-deployment")["metadata"]["annotations"];
    annotations[annotation::FAILED_CLUSTERS]
        .as_str()
        .unwrap_or_default()
}

#[test]
fn without_the_syncer_a_label_keeps_the_members_numbers_and_nothing_follows() {
    for is_marking in [false, true] {
        let mut world = World::new(BOTH);
        world.process.engine.config_mut().mark_scale_targets = is_marking;
        world.restart();
        let mut own = workload("web", 6);
        own["metadata"]["labels"][label::RETAIN_REPLICAS] = json!("true");
        for object in [
            own,
            dividing("web", &[1, 1]),
            autoscaler("web"),
            autoscaler_policy(),
        ] {
            world.apply(object);
        }
        assert!(world.settle_for(60_000));
        scale(&mut world, "member1", 9);
        scale(&mut world, "member2", 0);
        assert!(world.settle_for(60_000));
        edit_image(&mut world, "nginx:2");
        assert!(world.settle_for(60_000));
        assert_eq!(live(&world), (9, 0), "no share is delivered");
        shares_are(&world, &[("member1", 3), ("member2", 3)]);
        assert_eq!(replicas(template(&world, "web")), 6);
        let binding = crate::binding(&world, "web-deployment");
        for item in binding["status"]["aggregatedStatus"].as_array().expect("items") {
            let record = &item["copy"];
            assert!(
                record["share"].is_null() && record["raisedTo"].is_null(),
                "{item}"
            );
        }
        let mut edited = template(&world, "web").clone();
        let labels = edited["metadata"]["labels"].as_object_mut().expect("labels");
        labels.remove(label::RETAIN_REPLICAS).expect("the label");
        world.replace(edited);
        assert!(world.settle_for(60_000));
        // The marker sets its own; otherwise the hub decides.
        let want = if is_marking { (9, 0) } else { (3, 3) };
        assert_eq!(live(&world), want, "{is_marking}");
    }
}

#[test]
fn a_workload_that_nothing_scales_costs_nothing_more() {
    let mut plain = World::new(BOTH);
    let mut marking = scaling(BOTH);
    for world in [&mut plain, &mut marking] {
        world.apply(workload("web", 6));
        world.apply(dividing("web", &[1, 1]));
        rest(world);
        scale(world, "member1", 9);
        rest(world);
        assert_eq!(live(world), (3, 3));
    }
    assert_eq!(plain.writes, marking.writes);
}

#[test]
fn a_write_of_ours_activates_no_lazy_policy() {
    let mut lazy = dividing("web", &[1, 1]);
    lazy["spec"]["activationPreference"] = json!("Lazy");
    let mut world = scaling(BOTH);
    for object in [
        lazy.clone(),
        workload("web", 2),
        autoscaler("web"),
        autoscaler_policy(),
    ] {
        world.apply(object);
        rest(&mut world);
    }
    assert_eq!(marks(&world, "web"), set("by-load"));
    // The policy is edited, and that is observed after a write of the template that came later.
    world.hold_back("PropagationPolicy");
    lazy["spec"]["placement"]["clusterAffinity"]["clusterNames"] = json!(["member1"]);
    world.apply(lazy);
    scale(&mut world, "member1", 7);
    rest(&mut world);
    assert_eq!(replicas(template(&world, "web")), 8);
    world.tell_all_late();
    rest(&mut world);
    assert_eq!(world.holders("Deployment", "web"), BOTH);
    shares_are(&world, &[("member1", 7), ("member2", 1)]);
    // A user's change activates it.
    edit_image(&mut world, "nginx:2");
    assert!(world.settle_for(90_000));
    assert_eq!(world.holders("Deployment", "web"), ["member1"]);
    assert_eq!(on(&world, "member1"), 8);
}

/// As [`failing`], with these weights and more of the policy.
fn failing_with(mode: &str, has: (i64, i64), weights: &[i64], more: &Value) -> (World, Value) {
    let mut world = failing(mode, has);
    let mut policy = dividing("web", weights);
    policy["spec"]["failover"] = json!({"cluster": {"purgeMode": mode}});
    for (field, value) in more.as_object().expect("fields") {
        policy["spec"][field] = value.clone();
    }
    world.apply(policy.clone());
    rest(&mut world);
    (world, policy)
}

#[test]
fn what_moves_to_a_cluster_that_was_left_asleep_arrives_there() {
    let mut world = failing("Gracefully", (3, 5));
    scale(&mut world, "member1", 0);
    rest(&mut world);
    shares_are(&world, &[("member1", 0), ("member2", 5)]);
    let taints = no_execute(&world);
    for member in BOTH {
        world.set_down(member, true);
        taint(&mut world, member, &taints);
        rest(&mut world);
        shares_are(&world, &[("member2", 5)]);
    }
    // The one that was left first comes back, and takes over.
    report(&mut world, "member1", true);
    world.set_down("member1", false);
    taint(&mut world, "member1", &json!([]));
    rest(&mut world);
    shares_are(&world, &[("member1", 5)]);
    assert_eq!(on(&world, "member1"), 5);
    world.set_down("member2", false);
    rest(&mut world);
    assert_eq!(on(&world, "member1"), 5);
}

#[test]
fn what_moves_to_a_cluster_arrives_there_whatever_it_has_and_once_had() {
    // Its copy was scaled down while it did not respond, and it gets back exactly what it had.
    let (mut world, _) = failing_with("Gracefully", (5, 3), &[5, 3], &json!({}));
    world.set_down("member1", true);
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    assert!(world.settle());
    report(&mut world, "member2", false);
    rest(&mut world);
    shares_are(&world, &[("member2", 8)]);
    scale(&mut world, "member1", 1);
    report(&mut world, "member1", true);
    report(&mut world, "member2", false);
    taint(&mut world, "member1", &json!([]));
    world.set_down("member1", false);
    rest(&mut world);
    assert_eq!(live(&world), (5, 8));

    // An object that is taken over.
    let mut world = scaling(BOTH);
    for object in [
        workload("web", 6),
        dividing("web", &[1]),
        autoscaler("web"),
        autoscaler_policy(),
    ] {
        world.apply(object);
    }
    rest(&mut world);
    world.meddle("member2", "Deployment", "web", |_| Some(workload("web", 1)));
    let mut policy = dividing("web", &[1, 1]);
    policy["spec"]["conflictResolution"] = json!("Overwrite");
    world.apply(policy);
    rest(&mut world);
    assert_eq!(live(&world), (6, 3));
}

#[test]
fn a_raise_to_the_share_that_was_delivered_last_arrives_too() {
    let held_back = json!({"suspension": {"dispatchingOnClusters": {"clusterNames": ["member2"]}}});
    let (mut world, mut policy) = failing_with("Gracefully", (5, 8), &[1, 1], &held_back);
    scale(&mut world, "member2", 3);
    rest(&mut world);
    shares_are(&world, &[("member1", 5), ("member2", 3)]);
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    rest(&mut world);
    shares_are(&world, &[("member2", 8)]);
    assert_eq!(live(&world), (5, 3));
    policy["spec"]
        .as_object_mut()
        .expect("a spec")
        .remove("suspension");
    world.apply(policy);
    rest(&mut world);
    assert_eq!(on(&world, "member2"), 8);
    // Once: then its autoscaler decides.
    scale(&mut world, "member2", 4);
    rest(&mut world);
    edit_image(&mut world, "nginx:2");
    rest(&mut world);
    assert_eq!(on(&world, "member2"), 4);
}

#[test]
fn after_a_restart_nothing_is_divided_by_a_template_that_lost_the_label_meanwhile() {
    let all = ["member1", "member2", "member3"];
    let mut world = scaled(3, &[1, 1, 1]);
    let mut scaling = autoscaler_policy();
    scaling["spec"]["placement"]["clusterAffinity"]["clusterNames"] = json!(all);
    world.apply(scaling);
    for (member, count) in all.iter().zip([7, 3, 2]) {
        scale(&mut world, member, count);
    }
    rest(&mut world);
    let want = [("member1", 7), ("member2", 3), ("member3", 2)];
    shares_are(&world, &want);
    // The process is down; then neither the autoscalers nor the members can be listed at first.
    let is_late = |watch: &&Watch| {
        matches!(watch, Watch::Templates(gvk) if *gvk.kind == *"HorizontalPodAutoscaler")
            || watch.server() != Server::Hub
    };
    let late: Vec<Watch> = world.process.open.iter().filter(is_late).cloned().collect();
    assert!(late.len() > 3, "{late:?}");
    world.restart();
    world.shut.extend(late);
    strip(&mut world, 2, "nginx:2");
    assert!(world.settle_for(60_000));
    shares_are(&world, &want);
    world.shut.clear();
    assert!(world.settle_for(90_000));
    shares_are(&world, &want);
    for (member, count) in want {
        assert_eq!(on(&world, member), count);
    }
    assert_eq!(marks(&world, "web"), set("by-load"));
}

#[test]
fn the_steps_of_an_autoscaler_rewrite_no_binding_of_a_dependency() {
    let mut world = scaling(BOTH);
    let mut own = deployment("web", &["conf"]);
    own["spec"]["replicas"] = json!(2);
    let mut policy = dividing("web", &[1, 1]);
    policy["spec"]["propagateDeps"] = json!(true);
    for object in [
        config_map("conf", "1"),
        own,
        policy.clone(),
        autoscaler("web"),
        autoscaler_policy(),
    ] {
        world.apply(object);
    }
    rest(&mut world);
    let named = |world: &World| {
        let required = crate::binding(world, "conf-configmap")["spec"]["requiredBy"].clone();
        let clusters = required[0]["clusters"].as_array().expect("clusters").len();
        (required.as_array().expect("an entry").len(), clusters)
    };
    assert_eq!(named(&world), (1, 2));
    let wrote = world.writes.len();
    for to in 2..12 {
        scale(&mut world, "member1", to);
        pass(&mut world, 2_000);
    }
    rest(&mut world);
    shares_are(&world, &[("member1", 11), ("member2", 1)]);
    let of_it = world.writes[wrote..]
        .iter()
        .filter(|write| write.contains("conf"));
    assert_eq!(of_it.collect::<Vec<_>>(), [""; 0]);
    // Its clusters are shown as ever.
    policy["spec"]["placement"]["clusterAffinity"]["clusterNames"] = json!(["member1"]);
    world.apply(policy);
    rest(&mut world);
    assert_eq!(named(&world), (1, 1));
    assert_eq!(world.holders("ConfigMap", "conf"), ["member1"]);
}

#[test]
fn a_raise_whose_answer_is_lost_is_no_decision_of_the_member() {
    let mut world = failing("Gracefully", (5, 3));
    for flap in 0..5 {
        let taints = no_execute(&world);
        taint(&mut world, "member1", &taints);
        // member2 carries it out, and its answer times out.
        let key = Key::Copy(id("Deployment", "default", "web"), "member2".into());
        let flight = world.settle_until_delivery(&key);
        let share = shares(&world)[0].1;
        let more = share.max(on(&world, "member2"));
        scale(&mut world, "member2", more);
        world.land_failed(flight, &Delivered::Unreachable("timed out".into()));
        assert!(world.settle());
        report(&mut world, "member1", true);
        report(&mut world, "member2", false);
        assert!(world.settle());
        taint(&mut world, "member1", &json!([]));
        rest(&mut world);
        let (one, two) = live(&world);
        assert!(one >= 5 && two >= 8 && one + two <= 16, "{flap}: {one} {two}");
    }
}

#[test]
fn a_user_hears_why_the_label_stays_where_no_share_follows() {
    let other_scheduler = |world: &mut World| {
        let mut policy = dividing("web", &[1, 1]);
        policy["spec"]["schedulerName"] = json!("another");
        world.apply(policy);
        rest(world);
        scale(world, "member1", 7);
    };
    let held_back = |world: &mut World| {
        let mut policy = dividing("web", &[1, 1]);
        policy["spec"]["suspension"] = json!({"dispatchingOnClusters": {"clusterNames": ["member2"]}});
        world.apply(policy);
        rest(world);
        edit_image(world, "nginx:2");
    };
    type Begin = fn(&mut World);
    let cases: [(&str, Begin); 2] = [
        ("member1 reports 7 replicas and has a share of 1", other_scheduler),
        ("delivery to member2 is suspended", held_back),
    ];
    for (words, begin) in cases {
        let mut world = scaled(2, &[1, 1]);
        begin(&mut world);
        rest(&mut world);
        world.delete("HorizontalPodAutoscaler", "by-load");
        assert!(world.settle_for(90_000));
        assert_eq!(marks(&world, "web"), set("by-load"), "{words}");
        assert!(reported(&world, words) > 0, "{words}");
    }
}

#[test]
fn shares_follow_also_where_nothing_was_delivered_since_the_syncer_was_turned_on() {
    let mut world = World::new(&["member1", "member2", "member3"]);
    world.process.engine.config_mut().mark_scale_targets = true;
    world.restart();
    let mut policy = dividing("web", &[1, 3, 3]);
    policy["spec"]["failover"] = json!({"cluster": {"purgeMode": "Never"}});
    for object in [workload("web", 7), policy, autoscaler("web"), autoscaler_policy()] {
        world.apply(object);
    }
    rest(&mut world);
    shares_are(&world, &[("member1", 1), ("member2", 3), ("member3", 3)]);
    world.process.engine.config_mut().sync_replicas = true;
    world.restart();
    rest(&mut world);
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    rest(&mut world);
    let same: Vec<(String, i64)> = shares(&world).into_iter().filter(|each| each.1 == 3).collect();
    assert_eq!(same.len(), 1);
    scale(&mut world, &same[0].0, 9);
    rest(&mut world);
    assert!(
        shares(&world).contains(&(same[0].0.clone(), 9)),
        "{:?}",
        shares(&world)
    );
}

#[test]
fn a_template_that_is_made_again_and_again_contests_nothing() {
    let mut world = scaled(2, &[1, 1]);
    for round in 0..5 {
        for member in BOTH {
            scale(&mut world, member, 3);
        }
        rest(&mut world);
        assert_eq!(replicas(template(&world, "web")), 6, "{round}");
        world.delete("Deployment", "web");
        world.apply(workload("web", 2));
        assert!(world.settle());
        assert_eq!(marks(&world, "web"), set("by-load"), "{round}");
    }
    assert_eq!(reported(&world, "keeps changing"), 0, "{:?}", world.events);
}

#[test]
fn a_manifest_with_a_number_of_its_own_that_is_applied_again_wakes_a_workload_that_sleeps() {
    let mut world = scaled(2, &[1, 1]);
    scale(&mut world, "member1", 7);
    rest(&mut world);
    for member in BOTH {
        scale(&mut world, member, 0);
    }
    rest(&mut world);
    // Without a number an edit wakes nothing.
    edit_image(&mut world, "nginx:2");
    rest(&mut world);
    assert_eq!(live(&world), (0, 0));
    world.apply(workload("web", 2));
    rest(&mut world);
    assert_eq!(live(&world), (1, 1));
}

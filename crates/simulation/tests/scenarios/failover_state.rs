//! The state of the replaced copy that its replacement gets: `statePreservation`.

use serde_json::{Value, json};

use crate::{
    binding, condition,
    failover::{
        BINDING, application, clusters, evicted, no_execute, policy, purging, report, settled, taint, write,
    },
    policy_of,
    world::World,
};

const ALIAS: &str = "app.example.com/ready-before";

fn rules() -> Value {
    json!({"rules": [{"aliasLabelName": ALIAS, "jsonPath": "{.readyReplicas}"}]})
}

fn preserving(mut policy: Value, part: &str) -> Value {
    policy["spec"]["failover"][part]["statePreservation"] = rules();
    policy
}

fn label<'a>(world: &'a World, member: &str) -> &'a Value {
    let copy = world.on(member, "Deployment", "web").expect("copy");
    &copy["metadata"]["labels"][ALIAS]
}

fn stored(world: &World) -> Value {
    let annotations = &binding(world, BINDING)["metadata"]["annotations"];
    let text = annotations["entourage.dev/preserved-labels"].as_str();
    text.map_or(Value::Null, |text| serde_json::from_str(text).expect("JSON"))
}

/// Leaves member1 by a taint, for a replacement that becomes healthy.
fn evict(world: &mut World) {
    let taints = no_execute(world);
    taint(world, "member1", &taints);
    assert!(world.settle());
    assert_eq!(clusters(world), ["member2"]);
}

#[test]
fn a_replacement_is_reported_from_its_first_write_on_whatever_the_purge_mode() {
    for mode in ["Directly", "Gracefully"] {
        let mut world = settled(&preserving(purging(mode), "cluster"));
        let wrote = world.writes.len();
        evict(&mut world);
        assert_eq!(label(&world, "member2"), "1", "{mode}");
        report(&mut world, "member2", 1);
        assert!(world.settle());
        assert!(evicted(&world).is_empty(), "{mode}");
        assert_eq!(
            label(&world, "member2"),
            "1",
            "{mode}: it stays when its task is over"
        );
        write(&world, wrote, "member2 POST Deployment");
        let again = |each: &&String| each.contains("member2 PUT Deployment");
        assert_eq!(world.writes[wrote..].iter().filter(again).count(), 0, "{mode}");
        let wrote = world.writes.len();
        world.restart();
        assert!(world.settle_for(120_000));
        assert_eq!(world.writes.len(), wrote, "{mode}: {:#?}", &world.writes[wrote..]);
    }
}

#[test]
fn a_copy_on_a_dead_member_hands_on_what_it_reported_last_also_after_a_restart() {
    for restart in [false, true] {
        let mut world = settled(&preserving(policy(), "cluster"));
        world.set_down("member1", true);
        assert!(world.settle_for(60_000));
        if restart {
            world.restart();
            assert!(world.settle_for(60_000));
        }
        evict(&mut world);
        assert_eq!(label(&world, "member2"), "1", "restart {restart}");
    }
}

#[test]
fn a_failed_application_hands_on_what_it_reported_last() {
    let mut policy = preserving(application("Directly", 600), "application");
    policy["spec"]["failover"]["application"]["statePreservation"]["rules"][0]["jsonPath"] =
        json!("{.updatedReplicas}");
    let mut world = settled(&policy);
    report(&mut world, "member1", 0);
    assert!(world.settle_for(60_000));
    assert_eq!(clusters(&world), ["member2"]);
    assert_eq!(label(&world, "member2"), "1");
    // The next one says nothing of itself yet: what was reported is reported again.
    world.meddle("member2", "Deployment", "web", |mut object| {
        object["status"] = json!({"observedGeneration": 1, "replicas": 1, "unavailableReplicas": 1});
        Some(object)
    });
    assert!(world.settle_for(60_000));
    assert_eq!(clusters(&world), ["member3"]);
    assert_eq!(label(&world, "member3"), "1");
    assert_eq!(stored(&world), json!({"member3": {ALIAS: "1"}}));
}

#[test]
fn what_cannot_be_handed_on_is_reported_and_keeps_nothing_in_place() {
    let mut policy = preserving(policy(), "cluster");
    policy["spec"]["failover"]["cluster"]["statePreservation"]["rules"] = json!([
        {"aliasLabelName": "missing", "jsonPath": "{.checkpoint}"},
        {"aliasLabelName": ALIAS, "jsonPath": "{.readyReplicas}"},
        {"aliasLabelName": "odd", "jsonPath": "{..x}"},
    ]);
    let mut world = settled(&policy);
    evict(&mut world);
    assert_eq!(label(&world, "member2"), "1");
    let reported = condition(&world, BINDING, "Evicting")["message"]
        .as_str()
        .expect("text");
    for lack in [
        "missing is not preserved, because {.checkpoint} was not found in the status",
        "odd is not preserved, because {..x} is not a supported path",
    ] {
        assert!(reported.contains(lack), "{reported}");
    }
    let event = |each: &&String| each.contains("EvictWorkloadFromClusterSucceed") && each.contains("missing");
    assert!(
        world.events.iter().any(|each| event(&each)),
        "{:#?}",
        world.events
    );
}

#[test]
fn a_workload_that_goes_back_or_elsewhere_takes_no_label_along() {
    let mut world = settled(&preserving(policy(), "cluster"));
    evict(&mut world);
    assert_eq!(label(&world, "member2"), "1");
    taint(&mut world, "member1", &json!([]));
    assert!(world.settle());
    assert_eq!(clusters(&world), ["member1"]);
    assert_eq!(label(&world, "member1"), &Value::Null);
    assert_eq!(stored(&world), Value::Null);
    evict(&mut world);
    report(&mut world, "member2", 1);
    assert!(world.settle());
    let mut moved = preserving(policy(), "cluster");
    moved["spec"]["placement"]["clusterAffinity"]["clusterNames"] = json!(["member3"]);
    world.apply(moved);
    assert!(world.settle());
    assert_eq!(clusters(&world), ["member3"]);
    assert_eq!(label(&world, "member3"), &Value::Null);
    assert_eq!(stored(&world), Value::Null);
}

#[test]
fn one_of_several_clusters_hands_on_to_the_one_that_takes_its_place() {
    let mut policy = preserving(policy(), "cluster");
    policy["spec"]["placement"]["spreadConstraints"] =
        json!([{"spreadByField": "cluster", "minGroups": 2, "maxGroups": 2}]);
    let mut world = settled_on_two(&policy);
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    assert!(world.settle());
    assert_eq!(clusters(&world), ["member2", "member3"]);
    assert_eq!(label(&world, "member3"), "1");
    assert_eq!(
        label(&world, "member2"),
        &Value::Null,
        "it was there before, and runs on"
    );
}

fn settled_on_two(policy: &Value) -> World {
    let mut world = World::new(&crate::failover::MEMBERS);
    assert!(world.settle());
    world.apply(crate::config_map("settings", "one"));
    world.apply(crate::deployment("web", &["settings"]));
    world.apply(policy.clone());
    assert!(world.settle());
    assert_eq!(clusters(&world), ["member1", "member2"]);
    for member in ["member1", "member2"] {
        report(&mut world, member, 1);
    }
    assert!(world.settle());
    world
}

#[test]
fn a_template_keeps_its_own_marks_and_an_override_has_the_last_word() {
    let mut policy = policy_of("web", "apps/v1", "Deployment", "web", &crate::failover::MEMBERS);
    policy["spec"]["placement"]["spreadConstraints"] =
        json!([{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]);
    policy["spec"]["failover"] = json!({"cluster": {"purgeMode": "Gracefully", "statePreservation": {"rules": [
        {"aliasLabelName": "karmada.io/managed", "jsonPath": "{.readyReplicas}"},
        {"aliasLabelName": ALIAS, "jsonPath": "{.readyReplicas}"},
    ]}}});
    let mut world = settled(&policy);
    world.apply(json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy",
        "metadata": {"name": "o", "namespace": "default"},
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}],
            "overrideRules": [{"overriders": {"labelsOverrider": [
                {"operator": "replace", "value": {ALIAS: "overridden"}},
            ]}}],
        },
    }));
    assert!(world.settle());
    report(&mut world, "member1", 1);
    assert!(world.settle());
    evict(&mut world);
    assert_eq!(label(&world, "member2"), "overridden");
    let copy = world.on("member2", "Deployment", "web").expect("copy");
    assert_eq!(copy["metadata"]["labels"]["karmada.io/managed"], "true");
}

#[test]
fn what_is_handed_on_survives_a_crash_after_any_write() {
    let mut crashes = 0;
    for after in 1.. {
        let mut world = settled(&preserving(purging("Directly"), "cluster"));
        let taints = no_execute(&world);
        taint(&mut world, "member1", &taints);
        world.crash_in = Some(after);
        let crashed = !world.settle();
        if crashed {
            world.restart();
            assert!(world.settle_for(120_000));
        }
        world.crash_in = None;
        assert_eq!(clusters(&world), ["member2"], "after {after}");
        assert_eq!(label(&world, "member2"), "1", "after {after}");
        if !crashed {
            break;
        }
        crashes += 1;
    }
    assert!(crashes > 3, "{crashes}");
}

#[test]
fn a_binding_that_is_made_again_keeps_the_label_of_its_copy() {
    for orphaned in [false, true] {
        let mut world = settled(&preserving(policy(), "cluster"));
        evict(&mut world);
        report(&mut world, "member2", 1);
        assert!(world.settle());
        if orphaned {
            world.delete("PropagationPolicy", "web");
            assert!(world.settle());
        }
        let wrote = world.writes.len();
        world.delete("ResourceBinding", BINDING);
        assert!(world.settle());
        assert_eq!(label(&world, "member2"), "1", "orphaned: {orphaned}");
        let touched = |each: &&String| each.contains("member2 PUT Deployment");
        assert_eq!(world.writes[wrote..].iter().filter(touched).count(), 0);
    }
}

#[test]
fn two_clusters_that_fail_together_hand_on_one_for_one() {
    let members = ["member1", "member2", "member3", "member4"];
    let mut policy = preserving(policy(), "cluster");
    policy["spec"]["placement"]["clusterAffinity"]["clusterNames"] = json!(members);
    policy["spec"]["placement"]["spreadConstraints"] =
        json!([{"spreadByField": "cluster", "minGroups": 2, "maxGroups": 2}]);
    let mut world = World::new(&members);
    assert!(world.settle());
    world.apply(crate::config_map("settings", "one"));
    world.apply(crate::deployment("web", &["settings"]));
    world.apply(policy);
    assert!(world.settle());
    assert_eq!(clusters(&world), ["member1", "member2"]);
    for (member, ready) in [("member1", 1), ("member2", 2)] {
        report(&mut world, member, ready);
    }
    assert!(world.settle());
    let taints = no_execute(&world);
    // Both are known at once.
    world.hold_back("ResourceBinding");
    taint(&mut world, "member1", &taints);
    taint(&mut world, "member2", &taints);
    world.tell_all_late();
    assert!(world.settle());
    assert_eq!(clusters(&world), ["member3", "member4"]);
    assert_eq!(label(&world, "member3"), "1");
    assert_eq!(label(&world, "member4"), "2");
}

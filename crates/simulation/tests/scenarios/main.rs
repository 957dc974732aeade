//! The scenarios of the main job, decided in memory: what the plans make of a hub and its members, and that a crash
//! after any change leads to the same end.

mod affinity;
mod autoscaling;
mod autoscaling_doubt;
mod chaos;
mod chaos_chains;
mod chaos_distributions;
mod chaos_failover;
mod chaos_policies;
mod checks;
mod closure;
mod conditions;
mod counts;
mod customizations;
mod descheduler;
mod distributions;
mod distributions_claimed;
mod distributions_crash;
mod distributions_fights;
mod distributions_members;
mod distributions_stuck;
mod estimators;
mod events;
mod execution_namespaces;
mod failover;
mod failover_budgets;
mod failover_data;
mod failover_home;
mod failover_state;
mod given;
mod gone;
mod governor;
mod groups;
mod half_working;
mod hooks;
mod identity;
mod kinds;
mod late_writes;
mod namespaces;
mod natives;
mod orphaned;
mod overrides;
mod ownership;
mod placement;
mod policies;
mod problems;
mod proof;
mod pull;
mod quotas;
mod rebalancer;
mod restored;
mod rights;
mod room;
mod secret_lists;
mod services;
mod sets;
mod shipped;
mod taints;
mod takeover;
mod upgrade;
mod upkeep;
mod volumes;
mod watches;
mod works;
mod world;

use given::{config_map, deployment, policy_of};
use serde_json::{Value, json};
use world::World;

fn policy(clusters: &[&str]) -> Value {
    policy_of("myapp-propagation", "apps/v1", "Deployment", "myapp", clusters)
}

fn example() -> [Value; 3] {
    [
        deployment("myapp", &["my-config"]),
        policy(&["member1", "member2"]),
        config_map("my-config", "one"),
    ]
}

fn settled() -> World {
    let mut world = World::new(&["member1", "member2", "member3"]);
    assert!(world.settle());
    for object in example() {
        world.apply(object);
    }
    assert!(world.settle());
    world
}

fn binding<'a>(world: &'a World, name: &str) -> &'a Value {
    world
        .hub_object("ResourceBinding", name)
        .unwrap_or_else(|| panic!("no binding {name}"))
}

fn condition<'a>(world: &'a World, name: &str, type_: &str) -> &'a Value {
    binding(world, name)["status"]["conditions"]
        .as_array()
        .and_then(|all| all.iter().find(|each| each["type"] == type_))
        .unwrap_or(&Value::Null)
}

#[test]
fn the_seeds_example_reaches_its_members_in_any_order_of_arrival() {
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    for order in orders {
        for together in [true, false] {
            let mut world = World::new(&["member1", "member2", "member3"]);
            for at in order {
                world.apply(example()[at].clone());
                assert!(together || world.settle());
            }
            assert!(world.settle());
            assert_eq!(
                world.holders("Deployment", "myapp"),
                ["member1", "member2"],
                "{order:?}"
            );
            assert_eq!(
                world.holders("ConfigMap", "my-config"),
                ["member1", "member2"],
                "{order:?}"
            );
            let attached = binding(&world, "my-config-configmap");
            let clusters = json!([{"name": "member1", "replicas": 1}, {"name": "member2", "replicas": 1}]);
            assert_eq!(
                attached["spec"]["requiredBy"],
                json!([{"namespace": "default", "name": "myapp-deployment", "clusters": clusters}])
            );
            let resource = &attached["spec"]["resource"];
            let template = world.hub_object("ConfigMap", "my-config").expect("template");
            assert_eq!(resource["uid"], template["metadata"]["uid"]);
            assert_eq!(
                resource["resourceVersion"],
                template["metadata"]["resourceVersion"]
            );
            assert_eq!(
                attached["metadata"]["finalizers"],
                json!(["karmada.io/binding-controller"])
            );
            assert_eq!(attached["metadata"]["ownerReferences"][0]["kind"], "ConfigMap");
            assert_eq!(
                condition(&world, "myapp-deployment", "DependenciesReady")["status"],
                "True"
            );
            assert_eq!(
                condition(&world, "myapp-deployment", "Scheduled")["status"],
                "True"
            );
            assert_eq!(
                condition(&world, "my-config-configmap", "FullyApplied")["status"],
                "True"
            );
        }
    }
}

#[test]
fn dependencies_go_first() {
    let world = settled();
    let at = |what: &str| world.wrote_at(0, what);
    for member in ["member1", "member2"] {
        assert!(
            at(&format!("{member} POST ConfigMap default/my-config"))
                < at(&format!("{member} POST Deployment default/myapp"))
        );
    }
}

#[test]
fn nothing_is_written_when_nothing_changes_and_after_a_restart() {
    let mut world = settled();
    let wrote = world.writes.len();
    assert!(world.settle_for(120_000));
    assert_eq!(world.writes.len(), wrote, "{:#?}", &world.writes[wrote..]);
    world.restart();
    assert!(world.settle_for(120_000));
    assert_eq!(world.writes.len(), wrote, "{:#?}", &world.writes[wrote..]);
}

#[test]
fn the_example_takes_few_writes() {
    let world = settled();
    let on_hub: Vec<&String> = world
        .writes
        .iter()
        .filter(|each| each.starts_with("hub") && !each.contains("Cluster") && !each.contains("Policy"))
        .filter(|each| !each.contains("Namespace /karmada-es-"))
        .collect();
    assert!(on_hub.len() <= 5, "{on_hub:#?}");
}

#[test]
fn a_crash_after_any_change_leads_to_the_same_end() {
    let undisturbed = settled();
    let total = undisturbed.writes.len();
    for k in 1..=total {
        let mut world = World::new(&["member1", "member2", "member3"]);
        for object in example() {
            world.apply(object);
        }
        world.crash_in = Some(k);
        if !world.settle() {
            world.restart();
            assert!(world.settle());
        }
        let (want, got) = (undisturbed.outline(), world.outline());
        for key in want.keys().chain(got.keys()) {
            assert_eq!(want.get(key), got.get(key), "crash after {k}: {key}");
        }
    }
}

#[test]
fn a_shared_dependency_has_one_binding_with_sorted_snapshots() {
    let mut world = settled();
    world.apply(deployment("another", &["my-config"]));
    world.apply(policy_of(
        "another",
        "apps/v1",
        "Deployment",
        "another",
        &["member2", "member3"],
    ));
    assert!(world.settle());
    assert_eq!(
        world.holders("ConfigMap", "my-config"),
        ["member1", "member2", "member3"]
    );
    let required = &binding(&world, "my-config-configmap")["spec"]["requiredBy"];
    assert_eq!(required[0]["name"], "another-deployment");
    assert_eq!(required[1]["name"], "myapp-deployment");
    world.apply(deployment("myapp", &[]));
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "my-config"), ["member2", "member3"]);
    assert_eq!(
        binding(&world, "my-config-configmap")["spec"]["requiredBy"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
}

#[test]
fn a_dropped_reference_takes_the_copy_and_the_binding_along() {
    let mut world = settled();
    world.apply(deployment("myapp", &[]));
    assert!(world.settle());
    assert!(world.holders("ConfigMap", "my-config").is_empty());
    assert_eq!(world.hub_object("ResourceBinding", "my-config-configmap"), None);
    assert_eq!(world.holders("Deployment", "myapp"), ["member1", "member2"]);
    // The workload's copies stopped needing it before it went.
    let at = |what: &str| world.wrote_at(0, what);
    assert!(at("member1 PUT Deployment default/myapp") < at("member1 Delete ConfigMap default/my-config"));
}

#[test]
fn a_moved_policy_brings_dependencies_first_and_takes_the_workload_first() {
    let mut world = settled();
    let wrote = world.writes.len();
    world.apply(policy(&["member2", "member3"]));
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "myapp"), ["member2", "member3"]);
    assert_eq!(world.holders("ConfigMap", "my-config"), ["member2", "member3"]);
    let at = |what: &str| world.wrote_at(wrote, what);
    assert!(at("member3 POST ConfigMap default/my-config") < at("member3 POST Deployment default/myapp"));
    assert!(at("member1 Delete Deployment default/myapp") < at("member1 Delete ConfigMap default/my-config"));
    let entries = &binding(&world, "myapp-deployment")["status"]["aggregatedStatus"];
    assert_eq!(entries.as_array().map(Vec::len), Some(2), "{entries}");
}

#[test]
fn a_deleted_workload_takes_everything_along_and_leaves_nothing() {
    let mut world = settled();
    world.delete("Deployment", "myapp");
    assert!(world.settle());
    assert!(world.members.values().all(|member| member.is_empty()));
    assert!(!world.hub.keys().any(|id| &*id.gvk.kind == "ResourceBinding"));
    let at = |what: &str| world.wrote_at(0, what);
    assert!(at("member1 Delete Deployment default/myapp") < at("member1 Delete ConfigMap default/my-config"));
}

#[test]
fn a_workload_whose_last_events_are_late_leaves_nothing_wherever_we_crash() {
    for crash in 1..30 {
        let mut world = settled();
        world.hold_back("Deployment");
        world.apply(deployment("myapp", &["my-config", "second"]));
        world.delete("Deployment", "myapp");
        // That it was changed is reported when its binding is known to end, that it is gone not before the crash.
        world.tell_late();
        world.crash_in = Some(crash);
        let crashed = !world.settle();
        world.restart();
        assert!(world.settle());
        assert!(world.holders("Deployment", "myapp").is_empty(), "crash {crash}");
        assert!(
            world.holders("ConfigMap", "my-config").is_empty(),
            "crash {crash}"
        );
        if !crashed {
            return;
        }
    }
    panic!("it never ended without a crash");
}

#[test]
fn an_edited_config_map_is_written_once_to_each_member() {
    let mut world = settled();
    let wrote = world.writes.len();
    world.apply(config_map("my-config", "two"));
    assert!(world.settle());
    assert_eq!(
        world.on("member2", "ConfigMap", "my-config").expect("copy")["data"]["key"],
        "two"
    );
    let puts = world.writes[wrote..]
        .iter()
        .filter(|each| each.contains("PUT ConfigMap"))
        .count();
    assert_eq!(puts, 2, "{:#?}", &world.writes[wrote..]);
}

#[test]
fn turning_propagate_deps_off_and_on_takes_the_dependency_away_and_back() {
    let mut world = settled();
    let mut off = policy(&["member1", "member2"]);
    off["spec"]["propagateDeps"] = json!(false);
    world.apply(off);
    assert!(world.settle());
    assert!(world.holders("ConfigMap", "my-config").is_empty());
    assert_eq!(
        binding(&world, "myapp-deployment")["metadata"]["finalizers"],
        json!(["karmada.io/binding-controller"])
    );
    world.apply(policy(&["member1", "member2"]));
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "my-config"), ["member1", "member2"]);
}

#[test]
fn two_reasons_hold_a_dependency_and_each_ends_without_the_other() {
    let mut world = settled();
    world.apply(policy_of("config", "v1", "ConfigMap", "my-config", &["member3"]));
    assert!(world.settle());
    assert_eq!(
        world.holders("ConfigMap", "my-config"),
        ["member1", "member2", "member3"]
    );
    world.apply(deployment("myapp", &[]));
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "my-config"), ["member3"]);
    world.apply(deployment("myapp", &["my-config"]));
    assert!(world.settle());
    assert_eq!(
        world.holders("ConfigMap", "my-config"),
        ["member1", "member2", "member3"]
    );
    world.apply(policy_of("config", "v1", "ConfigMap", "my-config", &["member1"]));
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "my-config"), ["member1", "member2"]);
}

#[test]
fn a_deleted_policy_leaves_copies_and_dependencies_keep_following() {
    let mut world = settled();
    world.delete("PropagationPolicy", "myapp-propagation");
    assert!(world.settle());
    assert_eq!(world.hub_object("PropagationPolicy", "myapp-propagation"), None);
    assert_eq!(world.holders("Deployment", "myapp"), ["member1", "member2"]);
    assert_eq!(world.holders("ConfigMap", "my-config"), ["member1", "member2"]);
    world.apply(deployment("myapp", &["my-config", "second"]));
    world.apply(config_map("second", "x"));
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "second"), ["member1", "member2"]);
}

#[test]
fn a_revoked_dependency_goes_after_the_grace_and_every_workload_is_reported() {
    let mut world = settled();
    world.delete("ConfigMap", "my-config");
    assert!(world.settle_for(2_000));
    assert_eq!(
        world.holders("ConfigMap", "my-config"),
        ["member1", "member2"],
        "within the grace"
    );
    assert!(world.settle());
    assert!(world.holders("ConfigMap", "my-config").is_empty());
    assert_eq!(world.hub_object("ResourceBinding", "my-config-configmap"), None);
    let reported = condition(&world, "myapp-deployment", "DependenciesReady");
    assert_eq!(
        (&reported["status"], &reported["reason"]),
        (&json!("False"), &json!("DependencyMissing"))
    );
    assert!(
        reported["message"]
            .as_str()
            .is_some_and(|text| text.contains("default/my-config"))
    );
    assert!(
        world
            .events
            .iter()
            .any(|each| each.starts_with("SyncScheduleResultToDependenciesFailed Deployment myapp"))
    );
}

#[test]
fn a_dependency_that_is_back_in_time_never_leaves_its_members() {
    let mut world = settled();
    let id = binding(&world, "my-config-configmap")["metadata"]["labels"]["resourcebinding.karmada.io/permanent-id"].clone();
    world.delete("ConfigMap", "my-config");
    assert!(world.settle_for(1_000));
    world.apply(config_map("my-config", "one"));
    let wrote = world.writes.len();
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "my-config"), ["member1", "member2"]);
    assert!(
        !world.writes[wrote..].iter().any(|each| each.contains("Delete")),
        "{:#?}",
        &world.writes[wrote..]
    );
    let again = &binding(&world, "my-config-configmap")["metadata"]["labels"]["resourcebinding.karmada.io/permanent-id"];
    assert_eq!(*again, id);
}

#[test]
fn preserved_resources_stay_without_our_marks() {
    let mut world = World::new(&["member1", "member2", "member3"]);
    let mut keep = policy(&["member1", "member2"]);
    keep["spec"]["preserveResourcesOnDeletion"] = json!(true);
    for object in [
        deployment("myapp", &["my-config"]),
        keep,
        config_map("my-config", "one"),
    ] {
        world.apply(object);
    }
    assert!(world.settle());
    world.delete("Deployment", "myapp");
    assert!(world.settle());
    for (kind, name) in [("Deployment", "myapp"), ("ConfigMap", "my-config")] {
        let copy = world
            .on("member1", kind, name)
            .unwrap_or_else(|| panic!("{kind} stays"));
        assert!(!copy.to_string().contains("karmada.io"), "{copy}");
        assert!(!copy.to_string().contains("entourage.dev"), "{copy}");
    }
    assert!(!world.hub.keys().any(|id| &*id.gvk.kind == "ResourceBinding"));
}

#[test]
fn a_move_never_preserves() {
    let mut world = World::new(&["member1", "member2", "member3"]);
    let mut keep = policy(&["member1", "member2"]);
    keep["spec"]["preserveResourcesOnDeletion"] = json!(true);
    world.apply(deployment("myapp", &["my-config"]));
    world.apply(keep.clone());
    world.apply(config_map("my-config", "one"));
    assert!(world.settle());
    keep["spec"]["placement"]["clusterAffinity"]["clusterNames"] = json!(["member3"]);
    world.apply(keep);
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "myapp"), ["member3"]);
    assert_eq!(world.holders("ConfigMap", "my-config"), ["member3"]);
}

#[test]
fn a_missing_dependency_is_named_and_blocks_nothing() {
    let mut world = World::new(&["member1"]);
    world.apply(deployment("myapp", &["absent"]));
    world.apply(policy(&["member1"]));
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "myapp"), ["member1"]);
    let reported = condition(&world, "myapp-deployment", "DependenciesReady");
    assert_eq!(reported["reason"], "DependencyMissing");
    assert!(
        reported["message"]
            .as_str()
            .is_some_and(|text| text.contains("ConfigMap default/absent")),
        "{reported}"
    );
    world.apply(config_map("absent", "here"));
    assert!(world.settle());
    assert_eq!(
        condition(&world, "myapp-deployment", "DependenciesReady")["status"],
        "True"
    );
    assert_eq!(world.holders("ConfigMap", "absent"), ["member1"]);
}

#[test]
fn abort_leaves_a_foreign_object_alone_and_overwrite_adopts_it() {
    let mut world = World::new(&["member1", "member2"]);
    world.meddle("member1", "ConfigMap", "my-config", |_| {
        Some(config_map("my-config", "theirs"))
    });
    for object in example() {
        world.apply(object);
    }
    assert!(world.settle());
    assert_eq!(
        world.on("member1", "ConfigMap", "my-config").expect("theirs")["data"]["key"],
        "theirs"
    );
    assert_eq!(
        world.holders("Deployment", "myapp"),
        ["member1", "member2"],
        "it is not held back"
    );
    let reported = condition(&world, "my-config-configmap", "FullyApplied");
    assert_eq!(reported["status"], "False");
    assert!(
        reported["message"]
            .as_str()
            .is_some_and(|text| text.contains("member1") && text.contains("Overwrite")),
        "{reported}"
    );
    let mut overwrite = policy(&["member1", "member2"]);
    overwrite["spec"]["conflictResolution"] = json!("Overwrite");
    world.apply(overwrite);
    assert!(world.settle());
    assert_eq!(
        world.on("member1", "ConfigMap", "my-config").expect("ours")["data"]["key"],
        "one"
    );
    assert_eq!(
        condition(&world, "my-config-configmap", "FullyApplied")["status"],
        "True"
    );
}

#[test]
fn a_foreign_object_is_never_deleted() {
    let mut world = World::new(&["member1", "member2"]);
    world.meddle("member1", "ConfigMap", "my-config", |_| {
        Some(config_map("my-config", "theirs"))
    });
    for object in example() {
        world.apply(object);
    }
    assert!(world.settle());
    world.delete("Deployment", "myapp");
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "my-config"), ["member1"]);
}

#[test]
fn a_copy_edited_deleted_or_unmarked_by_hand_is_restored_also_after_we_were_down() {
    for down in [false, true] {
        let edits: [fn(Value) -> Option<Value>; 3] = [
            |mut copy| {
                copy["data"]["key"] = json!("edited");
                Some(copy)
            },
            |_| None,
            |mut copy| {
                copy["metadata"]["labels"]
                    .as_object_mut()
                    .expect("labels")
                    .clear();
                Some(copy)
            },
        ];
        for (at, edit) in edits.into_iter().enumerate() {
            let mut world = settled();
            let before = world
                .on("member1", "ConfigMap", "my-config")
                .expect("copy")
                .clone();
            if down {
                world.restart();
            }
            world.meddle("member1", "ConfigMap", "my-config", edit);
            assert!(world.settle());
            let copy = world
                .on("member1", "ConfigMap", "my-config")
                .unwrap_or_else(|| panic!("edit {at}, down {down}"));
            assert_eq!(copy["data"], before["data"], "edit {at}, down {down}");
            assert_eq!(
                copy["metadata"]["labels"], before["metadata"]["labels"],
                "edit {at}, down {down}"
            );
        }
    }
}

#[test]
fn a_foreign_label_on_a_copy_stays() {
    let mut world = settled();
    world.meddle("member1", "ConfigMap", "my-config", |mut copy| {
        copy["metadata"]["labels"]["theirs"] = json!("yes");
        Some(copy)
    });
    world.apply(config_map("my-config", "two"));
    assert!(world.settle());
    let copy = world.on("member1", "ConfigMap", "my-config").expect("copy");
    assert_eq!(copy["metadata"]["labels"]["theirs"], "yes");
    assert_eq!(copy["data"]["key"], "two");
}

#[test]
fn a_member_that_was_down_catches_up() {
    let mut world = settled();
    world.set_down("member1", true);
    world.apply(config_map("my-config", "two"));
    assert!(world.settle_for(60_000));
    assert_eq!(
        world.on("member2", "ConfigMap", "my-config").expect("copy")["data"]["key"],
        "two"
    );
    assert_eq!(
        world.on("member1", "ConfigMap", "my-config").expect("copy")["data"]["key"],
        "one"
    );
    world.set_down("member1", false);
    assert!(world.settle());
    assert_eq!(
        world.on("member1", "ConfigMap", "my-config").expect("copy")["data"]["key"],
        "two"
    );
}

#[test]
fn a_workload_deleted_while_a_member_is_down_goes_when_it_is_back() {
    let mut world = settled();
    world.set_down("member1", true);
    world.delete("Deployment", "myapp");
    assert!(world.settle_for(60_000));
    assert!(world.holders("Deployment", "myapp") == ["member1"]);
    assert!(
        world.hub_object("ResourceBinding", "myapp-deployment").is_some(),
        "the record of the place stays"
    );
    world.restart();
    assert!(world.settle_for(60_000));
    world.set_down("member1", false);
    assert!(world.settle());
    assert!(world.members.values().all(|member| member.is_empty()));
    assert!(!world.hub.keys().any(|id| &*id.gvk.kind == "ResourceBinding"));
}

#[test]
fn a_dependency_leaves_the_members_that_answer_also_when_the_end_of_its_workload_is_reported_late() {
    let mut world = settled();
    world.set_down("member1", true);
    world.hold_back("Deployment");
    world.delete("Deployment", "myapp");
    // The garbage collector was faster: that the binding ends is known before that the workload is gone.
    assert!(world.settle_for(60_000));
    world.tell_late();
    assert!(world.settle_for(60_000));
    assert_eq!(world.holders("Deployment", "myapp"), ["member1"]);
    assert_eq!(world.holders("ConfigMap", "my-config"), ["member1"]);
}

#[test]
fn a_binding_deleted_by_hand_is_made_again_with_its_permanent_id_and_touches_nothing() {
    for name in ["myapp-deployment", "my-config-configmap"] {
        let mut world = settled();
        let id =
            binding(&world, name)["metadata"]["labels"]["resourcebinding.karmada.io/permanent-id"].clone();
        let wrote = world.writes.len();
        world.delete("ResourceBinding", name);
        assert!(world.settle());
        let again = &binding(&world, name)["metadata"]["labels"]["resourcebinding.karmada.io/permanent-id"];
        assert_eq!(*again, id);
        let touched: Vec<&String> = world.writes[wrote..]
            .iter()
            .filter(|each| !each.starts_with("hub"))
            .collect();
        assert!(touched.is_empty(), "{touched:#?}");
    }
}

#[test]
fn a_workload_whose_binding_goes_before_it_leaves_nothing() {
    let mut world = settled();
    world.delete("ResourceBinding", "myapp-deployment");
    assert!(world.settle_for(0));
    world.delete("Deployment", "myapp");
    assert!(world.settle());
    assert!(world.members.values().all(|member| member.is_empty()));
}

#[test]
fn a_token_secret_is_never_propagated() {
    let mut world = World::new(&["member1"]);
    let mut workload = deployment("myapp", &[]);
    workload["spec"]["template"]["spec"]["volumes"] =
        json!([{"name": "s", "secret": {"secretName": "token"}}]);
    world.apply(workload);
    world.apply(policy(&["member1"]));
    world.apply(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"},
        "type": "kubernetes.io/service-account-token", "data": {"token": "Y2FuYXJ5"},
    }));
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "myapp"), ["member1"]);
    assert!(world.holders("Secret", "token").is_empty());
    assert_eq!(
        condition(&world, "myapp-deployment", "DependenciesReady")["status"],
        "False"
    );
}

#[test]
fn switching_the_gate_off_releases_the_finalizer_and_keeps_the_copies() {
    let mut world = settled();
    world.process.engine.config_mut().propagate_deps = false;
    world.restart();
    assert!(world.settle());
    assert_eq!(
        binding(&world, "myapp-deployment")["metadata"]["finalizers"],
        json!(["karmada.io/binding-controller"])
    );
    assert_eq!(world.holders("ConfigMap", "my-config"), ["member1", "member2"]);
}

#[test]
fn a_crash_after_any_change_of_a_move_a_drop_and_a_deletion_leads_to_the_same_end() {
    type Act = fn(&mut World);
    let acts: [Act; 4] = [
        |world| world.apply(policy(&["member2", "member3"])),
        |world| world.apply(deployment("myapp", &[])),
        |world| world.delete("Deployment", "myapp"),
        |world| world.delete("ConfigMap", "my-config"),
    ];
    for (at, act) in acts.into_iter().enumerate() {
        let mut undisturbed = settled();
        let wrote = undisturbed.writes.len();
        act(&mut undisturbed);
        assert!(undisturbed.settle());
        let total = undisturbed.writes.len() - wrote;
        for k in 1..=total {
            let mut world = settled();
            act(&mut world);
            world.crash_in = Some(k);
            if !world.settle() {
                world.restart();
                assert!(world.settle());
            }
            let (want, got) = (undisturbed.outline(), world.outline());
            for key in want.keys().chain(got.keys()) {
                assert_eq!(want.get(key), got.get(key), "act {at}, crash after {k}: {key}");
            }
        }
    }
}

#[test]
fn a_workload_deleted_in_the_foreground_takes_everything_along() {
    let mut world = settled();
    world.delete_in_foreground("Deployment", "myapp");
    assert!(world.settle());
    assert!(world.members.values().all(|member| member.is_empty()));
    assert_eq!(world.hub_object("ResourceBinding", "myapp-deployment"), None);
}

#[test]
fn a_deleted_namespace_leaves_nothing_on_members_in_whatever_order_it_ends() {
    let mut world = settled();
    world.delete_namespace();
    assert!(world.settle());
    assert!(world.members.values().all(|member| member.is_empty()));
}

#[test]
fn a_manifest_copied_on_a_member_with_our_marks_is_not_ours() {
    let mut world = settled();
    let mut copied = world
        .on("member1", "ConfigMap", "my-config")
        .expect("copy")
        .clone();
    copied["metadata"]["name"] = json!("other");
    world.meddle("member1", "ConfigMap", "other", |_| Some(copied));
    world.apply(config_map("other", "x"));
    world.apply(policy_of("other", "v1", "ConfigMap", "other", &["member3"]));
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "other"), ["member1", "member3"]);
    world.delete("ConfigMap", "other");
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "other"), ["member1"]);
}

#[test]
fn a_dropped_reference_of_a_preserving_policy_leaves_its_copies_also_where_a_member_is_down() {
    let mut world = World::new(&["member1", "member2", "member3"]);
    assert!(world.settle());
    let mut keep = policy(&["member1", "member2"]);
    keep["spec"]["preserveResourcesOnDeletion"] = json!(true);
    for object in [
        deployment("myapp", &["my-config"]),
        keep,
        config_map("my-config", "one"),
    ] {
        world.apply(object);
    }
    assert!(world.settle());
    world.set_down("member2", true);
    world.apply(deployment("myapp", &[]));
    assert!(world.settle());
    world.set_down("member2", false);
    assert!(world.settle());
    for member in ["member1", "member2"] {
        let copy = world
            .on(member, "ConfigMap", "my-config")
            .unwrap_or_else(|| panic!("{member} keeps it"));
        assert!(!copy.to_string().contains("entourage.dev"), "{copy}");
    }
    assert_eq!(world.hub_object("ResourceBinding", "my-config-configmap"), None);
}

#[test]
fn an_orphaned_binding_deleted_by_hand_keeps_its_copies_and_its_places() {
    let mut world = settled();
    world.delete("PropagationPolicy", "myapp-propagation");
    assert!(world.settle());
    world.delete("ResourceBinding", "myapp-deployment");
    assert!(world.settle());
    assert_eq!(world.holders("Deployment", "myapp"), ["member1", "member2"]);
    assert_eq!(world.holders("ConfigMap", "my-config"), ["member1", "member2"]);
    assert_eq!(
        binding(&world, "myapp-deployment")["spec"]["clusters"]
            .as_array()
            .map(Vec::len),
        Some(2)
    );
}

#[test]
fn a_secret_that_becomes_a_token_leaves_its_members() {
    let mut world = World::new(&["member1"]);
    assert!(world.settle());
    let mut workload = deployment("myapp", &[]);
    workload["spec"]["template"]["spec"]["volumes"] =
        json!([{"name": "s", "secret": {"secretName": "token"}}]);
    let secret = |kind: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}, "type": kind, "data": {"token": "Y2FuYXJ5"}});
    world.apply(workload);
    world.apply(policy(&["member1"]));
    world.apply(secret("Opaque"));
    assert!(world.settle());
    assert_eq!(world.holders("Secret", "token"), ["member1"]);
    world.delete("Secret", "token");
    world.apply(secret("kubernetes.io/service-account-token"));
    assert!(world.settle());
    assert!(world.holders("Secret", "token").is_empty());
    let reported = condition(&world, "myapp-deployment", "DependenciesReady");
    assert!(
        reported["message"]
            .as_str()
            .is_some_and(|text| text.contains("is never propagated")),
        "{reported}"
    );
}

#[test]
fn what_was_written_before_a_restart_and_deleted_after_it_does_not_leak() {
    let mut world = World::new(&["member1"]);
    assert!(world.settle());
    world.apply(config_map("my-config", "one"));
    world.apply(policy_of("config", "v1", "ConfigMap", "my-config", &["member1"]));
    for k in 1..20 {
        world.crash_in = Some(k);
        let done = world.settle();
        world.restart();
        if done || !world.holders("ConfigMap", "my-config").is_empty() {
            break;
        }
    }
    world.set_down("member1", true);
    world.delete("ConfigMap", "my-config");
    assert!(world.settle());
    world.set_down("member1", false);
    assert!(world.settle());
    assert!(world.holders("ConfigMap", "my-config").is_empty());
    assert_eq!(world.hub_object("ResourceBinding", "my-config-configmap"), None);
}

#[test]
fn a_list_that_is_older_than_what_is_known_takes_nothing_away() {
    let mut world = settled();
    let wrote = world.writes.len();
    world.end_old_lists();
    assert!(world.settle());
    assert_eq!(world.writes.len(), wrote, "{:#?}", &world.writes[wrote..]);
}

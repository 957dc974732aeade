//! The counts for metrics: they rise with a problem, are the same after a restart, and return to what they were. That they agree with a
//! recount at any time is asserted by the world whenever it settles (`world/counts.rs`), under chaos, too.

use serde_json::json;

use crate::{
    config_map, deployment, failover, policy, settled,
    world::{Random, World, disorder::Ends},
};

/// True if one of the lines begins like this.
fn has(problems: &[String], start: &str) -> bool {
    problems.iter().any(|line| line.starts_with(start))
}

#[test]
fn a_member_that_is_down_is_counted_and_forgotten_when_it_is_back() {
    let mut world = settled();
    let quiet = world.problems();
    assert!(!has(&quiet, "FullyApplied"), "{quiet:?}");
    world.set_down("member1", true);
    assert!(world.settle_for(60_000));
    world.apply(config_map("my-config", "two"));
    assert!(world.settle_for(60_000));
    let down = world.problems();
    for start in ["member1 Ready ", "FullyApplied ", "member1 Unknown "] {
        assert!(has(&down, start), "{start}: {down:?}");
    }
    let of_others = |lines: &[String]| -> Vec<String> {
        let others = lines.iter().filter(|line| line.starts_with("member2 "));
        others.cloned().collect()
    };
    assert_eq!(of_others(&down), of_others(&quiet));
    world.restart();
    assert!(world.settle_for(60_000));
    assert_eq!(world.problems(), down, "after a restart");
    world.set_down("member1", false);
    assert!(world.settle_for(60_000));
    assert_eq!(world.problems(), quiet);
}

#[test]
fn a_missing_dependency_and_a_template_without_a_cluster_are_counted_until_they_end() {
    let mut world = settled();
    let quiet = world.problems();
    world.apply(deployment("myapp", &["my-config", "other"]));
    assert!(world.settle());
    let lacks = world.problems();
    assert!(has(&lacks, "DependenciesReady DependencyMissing 1"), "{lacks:?}");
    world.apply(deployment("myapp", &["my-config"]));
    assert!(world.settle());
    assert_eq!(world.problems(), quiet);
    world.apply(policy(&["nowhere"]));
    assert!(world.settle());
    let nowhere = world.problems();
    assert!(has(&nowhere, "Scheduled NoClusterFit 1"), "{nowhere:?}");
    world.apply(policy(&["member1", "member2"]));
    assert!(world.settle());
    assert_eq!(world.problems(), quiet);
}

#[test]
fn an_eviction_is_counted_by_the_process_that_begins_it_and_until_it_ends() {
    let mut world = failover::settled(&failover::policy());
    world.stand_by();
    let quiet = world.problems();
    assert!(!has(&quiet, "member1 evicting"), "{quiet:?}");
    assert!(world.process.engine.take_evictions().is_empty());
    let taints = failover::no_execute(&world);
    failover::taint(&mut world, "member1", &taints);
    assert!(world.settle());
    let evicting = world.problems();
    assert!(has(&evicting, "member1 evicting 1"), "{evicting:?}");
    let begun = world.process.engine.take_evictions().into_iter();
    let begun: Vec<String> = begun
        .map(|(each, count)| format!("{} {} {count}", each.from, each.reason))
        .collect();
    assert_eq!(begun, ["member1 TaintUntolerated 1"]);

    // The process that stood by saw it begin, and did not begin it; one that is new finds it.
    let ends: [fn(&mut World); 2] = [World::take_over, World::restart];
    for end in ends {
        end(&mut world);
        assert!(world.settle());
        assert!(has(&world.problems(), "member1 evicting 1"));
        assert!(world.process.engine.take_evictions().is_empty());
    }
    failover::report(&mut world, "member2", 1);
    assert!(world.settle());
    assert!(!has(&world.problems(), "member1 evicting"));
    assert!(world.process.engine.take_evictions().is_empty());
}

#[test]
fn nothing_is_counted_of_what_is_deleted() {
    let mut world = settled();
    world.apply(deployment("myapp", &["my-config", "other"]));
    assert!(world.settle());
    world.delete("Deployment", "myapp");
    world.delete("ConfigMap", "my-config");
    assert!(world.settle_for(120_000));
    let counts = world.process.engine.problem_counts();
    assert_eq!(
        (
            counts.bindings().count(),
            counts.copies().count(),
            counts.evicting().count()
        ),
        (0, 0, 0),
        "{counts:?}"
    );
}

#[test]
fn a_change_is_reported_once_when_the_last_member_has_it() {
    let mut world = settled();
    world.process.engine.take_propagated();
    world.apply(config_map("my-config", "two"));
    assert!(world.settle());
    let took = world.process.engine.take_propagated();
    assert_eq!(took.len(), 1, "{took:?}");
    assert!(took.iter().all(|each| each.millis() < 20_000), "{took:?}");
    assert_eq!(world.process.engine.stats().outdated, 0);

    world.set_down("member2", true);
    assert!(world.settle_for(60_000));
    let changed = world.now;
    world.apply(config_map("my-config", "three"));
    assert!(world.settle_for(60_000));
    assert!(world.process.engine.take_propagated().is_empty());
    assert_eq!(world.process.engine.stats().outdated, 1);
    world.set_down("member2", false);
    let back = world.now;
    assert!(world.settle_for(60_000));
    let took = world.process.engine.take_propagated();
    assert_eq!(took.len(), 1, "{took:?}");
    assert!(took[0].millis() >= back.0 - changed.0, "{took:?}");
    assert_eq!(world.process.engine.stats().outdated, 0);
}

#[test]
fn a_change_of_a_template_that_is_deleted_took_until_the_last_copy_that_had_it() {
    let mut world = settled();
    world.set_down("member2", true);
    assert!(world.settle_for(60_000));
    world.process.engine.take_propagated();
    world.apply(config_map("my-config", "two"));
    assert!(world.settle_for(60_000));
    assert_eq!(world.process.engine.stats().outdated, 1);
    world.delete("Deployment", "myapp");
    world.delete("ConfigMap", "my-config");
    world.set_down("member2", false);
    assert!(world.settle_for(120_000));
    assert_eq!(world.process.engine.stats().outdated, 0);
    // On member1 alone; until member2 is back it is on its way.
    let took = world.process.engine.take_propagated();
    assert!(took.iter().all(|each| each.millis() < 20_000), "{took:?}");
}

#[test]
fn a_change_is_not_on_its_way_to_where_delivery_is_suspended() {
    let mut world = settled();
    world.process.engine.take_propagated();
    let mut suspended = policy(&["member1", "member2"]);
    suspended["spec"]["suspension"] = json!({"dispatching": true});
    world.apply(suspended);
    assert!(world.settle());
    let mut changed = deployment("myapp", &["my-config"]);
    changed["spec"]["replicas"] = json!(7);
    world.apply(changed);
    assert!(world.settle());
    let waits = world.problems();
    assert!(has(&waits, "member1 Suspended 1"), "{waits:?}");
    assert_eq!(world.process.engine.stats().outdated, 0);
    world.apply(policy(&["member1", "member2"]));
    assert!(world.settle());
    let waits = world.problems();
    assert!(!has(&waits, "member1 Suspended"), "{waits:?}");
    assert!(world.process.engine.take_propagated().is_empty());
}

#[test]
fn the_counts_agree_with_a_recount_after_random_events_crashes_and_takeovers() {
    const MEMBERS: [&str; 3] = ["member1", "member2", "member3"];
    for (seed, ends) in [(11, Ends::Crashes), (12, Ends::Crashes), (13, Ends::Takeovers)] {
        let mut world = World::new(&MEMBERS);
        assert!(world.settle());
        world.disturb(Random::new(seed), 50);
        let mut random = Random::new(seed ^ 0xffff);
        for _ in 0..20 {
            world.begin_round(&mut random, ends.into());
            match random.below(5) {
                0 => world.apply(deployment("myapp", &["my-config"])),
                1 => world.apply(config_map("my-config", ["one", "two"][random.below(2)])),
                2 => world.apply(policy(&MEMBERS[..=random.below(3)])),
                3 => world.set_down(MEMBERS[random.below(3)], random.below(2) == 0),
                _ => world.delete("ConfigMap", "my-config"),
            }
            world.end_round(&mut random, ends.into());
        }
        world.calm();
        // Settling asserts it.
        assert!(world.settle_for(120_000), "{seed}");
    }
}

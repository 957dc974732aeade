//! A process that stands by takes over: it writes nothing in a quiet system, and loses nothing in a busy one.

use serde_json::json;

use crate::{
    binding, chaos, config_map, deployment, example, policy, settled,
    world::{
        Random, World,
        disorder::{Ends, seeds},
    },
};

const MEMBERS: [&str; 3] = ["member1", "member2", "member3"];

/// A world whose every write was made while another process stood by.
fn watched() -> World {
    let mut world = World::new(&MEMBERS);
    world.stand_by();
    for object in example() {
        world.apply(object);
        assert!(world.settle());
    }
    world
}

/// The new leader neither writes nor looks at a copy, for as long as nothing changes.
fn nothing_happens(world: &mut World) {
    let before = (world.writes.len(), world.deliveries);
    assert!(world.settle_for(120_000));
    assert_eq!(
        (world.writes.len(), world.deliveries),
        before,
        "{:#?}",
        &world.writes[before.0..]
    );
}

#[test]
fn a_standby_that_saw_everything_take_place_takes_over_and_does_nothing() {
    let mut world = watched();
    world.take_over();
    nothing_happens(&mut world);
    assert_eq!(world.outline(), settled().outline());
}

#[test]
fn a_standby_follows_edits_moves_and_drops_that_the_leader_carried_out() {
    let mut world = watched();
    world.apply(config_map("my-config", "two"));
    assert!(world.settle());
    world.apply(policy(&["member2", "member3"]));
    assert!(world.settle());
    world.apply(deployment("myapp", &[]));
    assert!(world.settle());
    let outline = world.outline();
    world.take_over();
    nothing_happens(&mut world);
    assert_eq!(world.outline(), outline);
}

/// The time of a scheduling result is the one that the leader reported, not that at which the other process observed it.
#[test]
fn a_standby_that_observes_everything_late_takes_over_and_does_nothing() {
    let mut world = World::new(&MEMBERS);
    world.stand_by();
    world.standby_late = 1_500;
    for object in example() {
        world.apply(object);
        assert!(world.settle());
    }
    world.apply(policy(&["member2", "member3"]));
    assert!(world.settle());
    world.take_over();
    nothing_happens(&mut world);
}

#[test]
fn what_was_delivered_before_a_takeover_is_reported_as_delivered_also_where_a_member_does_not_answer() {
    let mut world = watched();
    world.set_down("member1", true);
    assert!(world.settle_for(1_000));
    world.take_over();
    assert!(world.settle());
    let items = &binding(&world, "myapp-deployment")["status"]["aggregatedStatus"];
    for at in 0..2 {
        assert_eq!(items[at]["applied"], true, "{items:#}");
    }
}

#[test]
fn a_reference_that_was_dropped_before_a_takeover_is_not_held_after_it() {
    let mut world = watched();
    world.apply(deployment("myapp", &[]));
    // The leader dies before it wrote anything.
    world.take_over();
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "my-config"), Vec::<&str>::new());
    assert_eq!(world.holders("Deployment", "myapp"), ["member1", "member2"]);
}

#[test]
fn two_processes_that_change_places_again_and_again_write_nothing_in_a_quiet_system() {
    let mut world = watched();
    for round in 0..6 {
        world.change_places();
        nothing_happens(&mut world);
        world.apply(config_map("my-config", &format!("round {round}")));
        assert!(world.settle());
        for member in ["member1", "member2"] {
            let copy = world.on(member, "ConfigMap", "my-config").expect("a copy");
            assert_eq!(copy["data"]["key"], json!(format!("round {round}")));
        }
    }
}

#[test]
fn a_takeover_after_any_change_leads_to_the_same_end() {
    let undisturbed = settled();
    for k in 1..=undisturbed.writes.len() {
        let mut world = World::new(&MEMBERS);
        world.stand_by();
        for object in example() {
            world.apply(object);
        }
        world.crash_in = Some(k);
        if !world.settle() {
            world.take_over();
            assert!(world.settle());
        }
        assert_eq!(world.outline(), undisturbed.outline(), "takeover after {k}");
    }
}

#[test]
fn a_takeover_after_any_change_of_a_drop_holds_nothing_that_nobody_needs() {
    let dropped = |crash_in: Option<usize>| {
        let mut world = watched();
        let wrote = world.writes.len();
        world.crash_in = crash_in;
        world.apply(deployment("myapp", &[]));
        if !world.settle() {
            world.take_over();
            assert!(world.settle());
        }
        (world.writes.len() - wrote, world)
    };
    let (total, undisturbed) = dropped(None);
    assert_eq!(undisturbed.holders("ConfigMap", "my-config"), Vec::<&str>::new());
    for k in 1..=total {
        let (_, world) = dropped(Some(k));
        assert_eq!(world.outline(), undisturbed.outline(), "takeover after {k}");
    }
}

#[test]
fn chaos_with_takeovers_ends_in_what_the_hub_asks_for() {
    for seed in seeds(60, &chaos::FOUND) {
        chaos::run(seed, Ends::Takeovers);
    }
}

#[test]
fn twenty_takeovers_in_a_row_under_way_lose_nothing() {
    let mut random = Random::new(7);
    let mut world = World::new(&MEMBERS);
    world.stand_by();
    for round in 0..20 {
        for object in example() {
            world.apply(object);
        }
        world.apply(config_map("my-config", &format!("round {round}")));
        world.crash_in = Some(1 + random.below(6));
        if !world.settle() {
            world.take_over();
            world.stand_by();
        }
    }
    world.crash_in = None;
    assert!(world.settle());
    world.apply(config_map("my-config", "last"));
    assert!(world.settle());
    for member in ["member1", "member2"] {
        let copy = world.on(member, "ConfigMap", "my-config").expect("a copy");
        assert_eq!(copy["data"]["key"], "last");
    }
    world.take_over();
    nothing_happens(&mut world);
}

#[test]
fn the_status_that_another_leader_wrote_is_not_taken_for_that_of_another_controller() {
    let mut world = watched();
    for round in 1..=8 {
        for member in ["member1", "member2"] {
            world.meddle(member, "Deployment", "myapp", |mut object| {
                object["status"] = json!({
                    "observedGeneration": object["metadata"]["generation"], "replicas": 1, "readyReplicas": round % 2,
                });
                Some(object)
            });
        }
        assert!(world.settle());
        let template = world.hub_object("Deployment", "myapp").expect("template");
        let ready = template["status"]["readyReplicas"].as_i64().unwrap_or_default();
        assert_eq!(ready, 2 * (round % 2), "round {round}");
        world.change_places();
        assert!(world.settle());
    }
}

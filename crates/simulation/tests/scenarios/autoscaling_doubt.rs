//! Autoscalers on members, where what is known of them, or of the replicas, is in doubt: no running replica is lost.

use entourage_api::keys::{annotation, label};
use serde_json::json;

use crate::{
    autoscaling::{
        BOTH, NONE, autoscaler, marks, on, replicas, reported, rest, scale, scaled, set, shares_are, template,
    },
    policy_of,
    world::World,
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

/// What the members have.
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
        assert_eq!(reported(&world, "member2 has no replica"), 1, "{weights:?}");
        // A user gives it one.
        scale(&mut world, "member2", 1);
        assert!(world.settle_for(90_000));
        assert_eq!(marks(&world, "web"), NONE, "{weights:?}");
        assert_eq!(live(&world), (5, 1), "{weights:?}");
        assert_eq!(replicas(template(&world, "web")), 6, "{weights:?}");
    }
}

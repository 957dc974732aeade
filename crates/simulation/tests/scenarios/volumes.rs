//! Claims that hold data stay on their members, whatever ends them but a user's own word.

use entourage_api::keys::{ON_UNJOIN_REMOVE, annotation};
use serde_json::{Value, json};

use crate::{binding, deployment, policy_of, world::World};

const RELEASED_FROM: &str = "entourage.dev/released-from";
const RETENTION: &str = "entourage.dev/volume-retention";

pub(crate) fn claim() -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    })
}

pub(crate) fn workload(claims: &[&str]) -> Value {
    let mut object = deployment("web", &[]);
    let volumes = claims
        .iter()
        .map(|each| json!({"name": each, "persistentVolumeClaim": {"claimName": each}}));
    object["spec"]["template"]["spec"]["volumes"] = volumes.collect();
    object
}

fn policy(members: &[&str]) -> Value {
    policy_of("web", "apps/v1", "Deployment", "web", members)
}

/// As the binder of a member does.
pub(crate) fn bind(world: &mut World, member: &str) {
    world.meddle(member, "PersistentVolumeClaim", "data", |mut claim| {
        claim["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] = json!("yes");
        claim["spec"]["volumeName"] = json!(format!("volume-of-{member}"));
        claim["status"] = json!({"phase": "Bound"});
        Some(claim)
    });
}

fn is_bound(world: &World, member: &str) -> bool {
    let claim = world.on(member, "PersistentVolumeClaim", "data");
    claim.is_some_and(|claim| claim["spec"]["volumeName"] == format!("volume-of-{member}"))
}

/// True if there is an unmanaged claim that says whose it was.
fn is_released(world: &World, member: &str) -> bool {
    let Some(claim) = world.on(member, "PersistentVolumeClaim", "data") else {
        return false;
    };
    let meta = &claim["metadata"];
    let text = meta.to_string();
    meta["annotations"][RELEASED_FROM] == format!("hub-id/{member}/default/data-persistentvolumeclaim")
        && !text.contains("karmada.io")
        && !text.contains("entourage.dev/hub")
}

/// A workload with a claim on member1, bound there or not.
fn settled(bound: bool) -> World {
    let mut world = World::new(&["member1", "member2"]);
    world.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}));
    world.apply(claim());
    world.apply(workload(&["data"]));
    world.apply(policy(&["member1"]));
    assert!(world.settle());
    assert_eq!(world.holders("PersistentVolumeClaim", "data"), ["member1"]);
    if bound {
        bind(&mut world, "member1");
        assert!(world.settle());
    }
    world
}

fn annotate(world: &mut World, kind: &str, name: &str, value: &str) {
    let mut object = world.hub_object(kind, name).cloned().expect("object");
    object["metadata"]["annotations"][RETENTION] = json!(value);
    world.replace(object);
    assert!(world.settle());
}

type Act = fn(&mut World);

/// Everything but a user's word about the claim that ends a copy of it.
const ENDS: [(&str, Act); 4] = [
    ("a move", |world| world.apply(policy(&["member2"]))),
    ("a dropped reference", |world| world.apply(workload(&[]))),
    ("the end of the workload", |world| {
        world.delete("Deployment", "web")
    }),
    ("the end of the namespace", |world| {
        world.delete("Namespace", "default");
        world.delete_namespace();
    }),
];

#[test]
fn a_claim_that_was_bound_is_kept_and_one_that_never_was_is_deleted() {
    for (what, act) in ENDS {
        for bound in [true, false] {
            let mut world = settled(bound);
            act(&mut world);
            assert!(world.settle_for(600_000));
            assert!(world.on("member1", "Deployment", "web").is_none() || what == "a dropped reference");
            if !bound {
                let stands = world.on("member1", "PersistentVolumeClaim", "data").is_some();
                assert!(!stands, "{what}");
                continue;
            }
            assert!(is_bound(&world, "member1"), "{what}");
            assert!(is_released(&world, "member1"), "{what}");
            let wrote = world.writes.len();
            world.restart();
            assert!(world.settle_for(600_000));
            assert_eq!(world.writes[wrote..], [""; 0], "{what}");
        }
    }
}

#[test]
fn the_workload_and_the_claim_say_that_a_claim_is_kept() {
    let mut world = settled(true);
    world.apply(policy(&["member2"]));
    assert!(world.settle_for(600_000));
    let reported: Vec<&String> = world
        .events
        .iter()
        .filter(|each| each.starts_with("VolumeRetained"))
        .collect();
    assert_eq!(reported.len(), 2, "{reported:?}");
    assert!(
        reported[0].starts_with("VolumeRetained Deployment web"),
        "{reported:?}"
    );
    assert!(
        reported[1].starts_with("VolumeRetained PersistentVolumeClaim data"),
        "{reported:?}"
    );
    assert!(
        reported[0].contains("holds data on member1 and is kept there"),
        "{reported:?}"
    );
}

#[test]
fn a_claim_that_its_user_deletes_is_deleted_everywhere() {
    let mut world = settled(true);
    world.delete("PersistentVolumeClaim", "data");
    assert!(world.settle_for(600_000));
    assert_eq!(world.holders("PersistentVolumeClaim", "data"), [""; 0]);
}

#[test]
fn a_claim_whose_namespace_is_reported_to_go_after_it_is_kept() {
    let mut world = settled(true);
    world.delete("PersistentVolumeClaim", "data");
    assert!(world.settle_for(1_000));
    world.delete("Namespace", "default");
    assert!(world.settle_for(600_000));
    assert!(is_bound(&world, "member1"));
}

#[test]
fn a_claim_goes_with_its_workload_where_it_or_its_policy_says_so() {
    for (kind, name) in [("PersistentVolumeClaim", "data"), ("PropagationPolicy", "web")] {
        for restart in [false, true] {
            for (what, act) in ENDS {
                let mut world = settled(true);
                annotate(&mut world, kind, name, "Delete");
                let stored = &binding(&world, "data-persistentvolumeclaim")["metadata"]["annotations"];
                assert_eq!(stored[RETENTION], "Delete", "{kind}");
                if restart {
                    world.restart();
                    assert!(world.settle());
                }
                act(&mut world);
                assert!(world.settle_for(600_000));
                let stands = world.on("member1", "PersistentVolumeClaim", "data").is_some();
                assert!(!stands, "{kind}, {what}");
            }
        }
    }
}

#[test]
fn the_claim_is_asked_before_its_policy() {
    let mut world = settled(true);
    annotate(&mut world, "PropagationPolicy", "web", "Delete");
    annotate(&mut world, "PersistentVolumeClaim", "data", "Retain");
    world.delete("Deployment", "web");
    assert!(world.settle_for(600_000));
    assert!(is_released(&world, "member1"));
}

#[test]
fn a_released_claim_is_managed_again_when_its_workload_returns() {
    for restart in [false, true] {
        let mut world = settled(true);
        let uid = world
            .on("member1", "PersistentVolumeClaim", "data")
            .expect("claim")["metadata"]["uid"]
            .clone();
        world.apply(policy(&["member2"]));
        assert!(world.settle_for(600_000));
        if restart {
            world.restart();
            assert!(world.settle());
        }
        world.apply(policy(&["member1"]));
        assert!(world.settle_for(600_000));
        let claim = world
            .on("member1", "PersistentVolumeClaim", "data")
            .expect("claim");
        assert_eq!(claim["metadata"]["uid"], uid);
        assert_eq!(claim["metadata"]["labels"]["entourage.dev/hub"], "hub-id");
        assert!(claim["metadata"]["annotations"][RELEASED_FROM].is_null());
        assert!(is_bound(&world, "member1"));
        // The one on member2 was never bound.
        assert_eq!(world.holders("PersistentVolumeClaim", "data"), ["member1"]);
        let applied = crate::condition(&world, "data-persistentvolumeclaim", "FullyApplied");
        assert_eq!(applied["status"], "True", "{applied}");
    }
}

#[test]
fn a_claim_that_another_hub_or_somebody_else_holds_is_not_taken_over_for_its_trace() {
    for (label, value) in [("entourage.dev/hub", "another-hub"), ("", "")] {
        let mut world = settled(true);
        world.apply(policy(&["member2"]));
        assert!(world.settle_for(600_000));
        world.meddle("member1", "PersistentVolumeClaim", "data", |mut claim| {
            if label.is_empty() {
                claim["metadata"]["annotations"][RELEASED_FROM] = json!("another-hub/default/x");
            } else {
                claim["metadata"]["labels"] = json!({label: value});
            }
            Some(claim)
        });
        world.apply(policy(&["member1"]));
        assert!(world.settle_for(600_000));
        let claim = world
            .on("member1", "PersistentVolumeClaim", "data")
            .expect("claim");
        assert_ne!(claim["metadata"]["labels"]["entourage.dev/hub"], "hub-id");
    }
}

#[test]
fn a_cluster_that_leaves_with_its_copies_keeps_the_claims_that_hold_data() {
    let mut world = settled(true);
    let mut cluster = world.hub_object("Cluster", "member1").cloned().expect("cluster");
    cluster["metadata"]["annotations"][annotation::ON_UNJOIN] = json!(ON_UNJOIN_REMOVE);
    world.replace(cluster);
    world.delete("Cluster", "member1");
    assert!(world.settle_for(600_000));
    assert!(world.hub_object("Cluster", "member1").is_none());
    assert!(world.on("member1", "Deployment", "web").is_none());
    assert!(is_released(&world, "member1"));
}

#[test]
fn a_crash_after_any_change_of_a_move_there_and_back_leads_to_the_same_end() {
    let there: Act = |world| world.apply(policy(&["member2"]));
    let back: Act = |world| world.apply(policy(&["member1"]));
    for (at, act) in [there, back].into_iter().enumerate() {
        let begin = || {
            let mut world = settled(true);
            if at == 1 {
                there(&mut world);
                assert!(world.settle_for(600_000));
            }
            world
        };
        let mut undisturbed = begin();
        let wrote = undisturbed.writes.len();
        act(&mut undisturbed);
        assert!(undisturbed.settle_for(600_000));
        let total = undisturbed.writes.len() - wrote;
        for k in 1..=total {
            let mut world = begin();
            act(&mut world);
            world.crash_in = Some(k);
            if !world.settle_for(600_000) {
                world.restart();
                assert!(world.settle_for(600_000));
            }
            assert!(is_bound(&world, "member1"), "act {at}, crash after {k}");
            let (want, got) = (undisturbed.outline(), world.outline());
            for key in want.keys().chain(got.keys()) {
                assert_eq!(want.get(key), got.get(key), "act {at}, crash after {k}: {key}");
            }
        }
    }
}

#[test]
fn a_claim_that_the_hub_does_not_let_go_is_reported_once_with_the_flag_that_helps() {
    let mut world = settled(false);
    let mut protected = world
        .hub_object("PersistentVolumeClaim", "data")
        .cloned()
        .expect("claim");
    protected["metadata"]["finalizers"] = json!(["kubernetes.io/pvc-protection"]);
    world.replace(protected);
    world.delete("PersistentVolumeClaim", "data");
    assert!(world.settle_for(20_000));
    let refused = |world: &World| {
        let words = world.events.iter().filter(|each| each.starts_with("refused: "));
        words.cloned().collect::<Vec<_>>()
    };
    assert_eq!(refused(&world), [""; 0]);
    assert!(world.settle_for(600_000));
    let reported = refused(&world);
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert!(
        reported[0].contains("pvc-protection,pv-protection"),
        "{reported:?}"
    );
}

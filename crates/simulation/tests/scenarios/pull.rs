//! Clusters in Pull mode: what follows from the Lease of the agent, and from what it reports of copies.

use entourage_core::{observation::Watch, pulled::REPORT};
use serde_json::{Value, json};

use crate::{
    condition, config_map, policy, settled,
    world::{World, id},
};

const UNREACHABLE: &str = "cluster.karmada.io/unreachable";

/// The example, with member2 in Pull mode: its agent has reported, and renewed its Lease.
fn pulled() -> World {
    let mut world = settled();
    let mut cluster = cluster(&world).clone();
    cluster["spec"]["syncMode"] = json!("Pull");
    renew(&mut world);
    world.replace(cluster);
    assert!(world.settle());
    world
}

fn cluster(world: &World) -> &Value {
    world.hub_object("Cluster", "member2").expect("Cluster")
}

fn ready(world: &World) -> String {
    let all = cluster(world)["status"]["conditions"].as_array();
    let found = all.and_then(|all| all.iter().find(|each| each["type"] == "Ready"));
    let text = |field: &str| found.and_then(|each| each[field].as_str()).unwrap_or_default();
    format!("{} {}", text("status"), text("reason"))
}

fn is_tainted(world: &World) -> bool {
    has_taint(world, UNREACHABLE)
}

fn has_taint(world: &World, key: &str) -> bool {
    let taints = cluster(world)["spec"]["taints"].as_array();
    taints.is_some_and(|all| all.iter().any(|each| each["key"] == key))
}

/// The agent renews its Lease.
pub(crate) fn renew(world: &mut World) {
    let spec = json!({"holderIdentity": "member2", "renewTime": format!("at {}", world.now.0)});
    world.apply(json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"namespace": "karmada-cluster", "name": "member2"}, "spec": spec,
    }));
}

/// The agent writes that its cluster is ready.
fn tell_ready(world: &mut World) {
    tell(world, ("True", "ClusterReady"));
}

/// The agent writes the status and the reason of Ready.
fn tell(world: &mut World, (status, reason): (&str, &str)) {
    let mut reported = cluster(world).clone();
    for each in reported["status"]["conditions"]
        .as_array_mut()
        .expect("conditions")
    {
        if each["type"] == "Ready" {
            (each["status"], each["reason"]) = (json!(status), json!(reason));
        }
    }
    world.replace(reported);
}

/// So many milliseconds pass, also when nothing is to be done in them.
pub(crate) fn pass(world: &mut World, millis: i64) {
    let until = world.now.plus(millis);
    assert!(world.settle_for(millis));
    world.now = world.now.max(until);
}

#[test]
fn an_agent_that_does_not_renew_its_lease_is_absent_after_the_grace_and_not_before() {
    let mut world = pulled();
    for _ in 0..12 {
        renew(&mut world);
        let wrote = world.writes.len();
        pass(&mut world, 10_000);
        assert_eq!(world.writes[wrote..], [""; 0], "a renewal is no reason to write");
    }
    assert_eq!(ready(&world), "True ClusterReady");
    pass(&mut world, 28_000);
    assert_eq!(ready(&world), "True ClusterReady", "38 s after the last renewal");
    pass(&mut world, 10_000);
    assert_eq!(ready(&world), "Unknown ClusterStatusUnknown");
    assert!(is_tainted(&world));
    let reported = world.events.iter();
    let reported =
        reported.filter(|event| event.starts_with("ClusterNotReady Cluster member2: the agent of member2"));
    assert_eq!(reported.count(), 1, "{:?}", world.events);
    let wrote = world.writes.len();
    pass(&mut world, 120_000);
    world.restart();
    pass(&mut world, 120_000);
    assert_eq!(world.writes[wrote..], [""; 0]);
    renew(&mut world);
    tell_ready(&mut world);
    pass(&mut world, 20_000);
    assert_eq!(ready(&world), "True ClusterReady");
    assert!(!is_tainted(&world));
}

#[test]
fn what_happened_while_leases_were_not_watched_is_held_against_nobody() {
    let mut world = pulled();
    world.lose(Watch::Leases);
    pass(&mut world, 120_000);
    assert_eq!(ready(&world), "True ClusterReady");
    world.shut.remove(&Watch::Leases);
    world.restart();
    pass(&mut world, 30_000);
    assert_eq!(ready(&world), "True ClusterReady", "the grace begins anew");
    pass(&mut world, 20_000);
    assert_eq!(ready(&world), "Unknown ClusterStatusUnknown");
}

#[test]
fn an_agent_that_renews_is_present_also_while_no_event_reports_it() {
    let mut world = pulled();
    world.hold_back("Lease");
    for _ in 0..30 {
        renew(&mut world);
        let wrote = world.writes.len();
        pass(&mut world, 10_000);
        assert_eq!(world.writes[wrote..], [""; 0]);
    }
    assert_eq!(ready(&world), "True ClusterReady");
    assert!(!is_tainted(&world));
    // One GET for each grace of 40 s, and none while the watch reports.
    assert!(
        (6..=8).contains(&world.asked_for_lease),
        "{}",
        world.asked_for_lease
    );
    pass(&mut world, 90_000);
    assert_eq!(
        ready(&world),
        "Unknown ClusterStatusUnknown",
        "no GET shows a renewal"
    );
    let asked = world.asked_for_lease;
    pass(&mut world, 600_000);
    assert_eq!(world.asked_for_lease, asked, "nothing is left to decide");
}

#[test]
fn what_old_events_of_the_lease_report_late_is_no_renewal() {
    let mut world = pulled();
    world.hold_back("Lease");
    for _ in 0..6 {
        renew(&mut world);
        pass(&mut world, 10_000);
    }
    world.tell_all_late();
    pass(&mut world, 90_000);
    assert_eq!(ready(&world), "Unknown ClusterStatusUnknown");
}

/// The condition about the Leases: its status, its reason and its message.
fn watched(world: &World) -> String {
    let all = cluster(world)["status"]["conditions"].as_array();
    let found = all.and_then(|all| all.iter().find(|each| each["type"] == "AgentWatched"));
    let text = |field: &str| found.and_then(|each| each[field].as_str()).unwrap_or_default();
    format!("{} {} {}", text("status"), text("reason"), text("message"))
}

#[test]
fn leases_that_the_hub_refuses_are_reported_and_nobody_is_absent_because_of_it() {
    for (sentence, verb) in [
        ("the watch is refused", "list and watch"),
        ("the GET is refused", "get"),
    ] {
        let mut world = pulled();
        let refuse = |world: &mut World, is_refused: bool| {
            if verb == "get" {
                world.forbids_lease = is_refused;
            } else if is_refused {
                world.forbidden.insert(Watch::Leases);
            } else {
                world.forbidden.remove(&Watch::Leases);
            }
        };
        refuse(&mut world, true);
        pass(&mut world, 300_000);
        let reported = watched(&world);
        let wanted = format!(
            "does not let the controllers {verb} leases.coordination.k8s.io in namespace karmada-cluster (forbidden). Grant that"
        );
        assert!(
            reported.starts_with("False RightsMissing") && reported.contains(&wanted),
            "{sentence}: {reported}"
        );
        assert_eq!(ready(&world), "True ClusterReady", "{sentence}");
        assert!(!is_tainted(&world), "{sentence}");
        let wrote = world.writes.len();
        world.restart();
        renew(&mut world);
        pass(&mut world, 30_000);
        assert_eq!(
            watched(&world),
            reported,
            "{sentence}: a restart takes nothing back"
        );
        assert_eq!(world.writes[wrote..], [""; 0], "{sentence}");
        refuse(&mut world, false);
        for _ in 0..6 {
            renew(&mut world);
            pass(&mut world, 10_000);
        }
        assert_eq!(watched(&world), "  ", "{sentence}");
        assert_eq!(ready(&world), "True ClusterReady", "{sentence}");
        pass(&mut world, 60_000);
        assert_eq!(ready(&world), "Unknown ClusterStatusUnknown", "{sentence}");
    }
}

#[test]
fn a_lease_that_cannot_be_read_holds_nothing_else_up() {
    let mut world = pulled();
    world.hold_back("Lease");
    world.mute_lease = true;
    pass(&mut world, 120_000);
    assert_eq!(ready(&world), "True ClusterReady", "nothing is proven");
    assert!(world.asked_for_lease > 1, "it is requested again");
    tell(&mut world, ("False", "ClusterNotReachable"));
    pass(&mut world, 60_000);
    assert!(has_taint(&world, "cluster.karmada.io/not-ready"));
    world.mute_lease = false;
    pass(&mut world, 90_000);
    assert_eq!(ready(&world), "Unknown ClusterStatusUnknown");
}

#[test]
fn an_agent_that_reports_and_cannot_renew_its_lease_is_no_reason_for_a_write_each_moment() {
    let mut world = pulled();
    let wrote = world.writes.len();
    for _ in 0..12 {
        pass(&mut world, 10_000);
        if ready(&world) != "True ClusterReady" {
            tell_ready(&mut world);
        }
    }
    // Ready and the taint, each turned once in 40 s.
    assert!(world.writes.len() - wrote <= 12, "{:#?}", &world.writes[wrote..]);
}

#[test]
fn a_cluster_without_a_lease_has_the_longer_grace() {
    let mut world = pulled();
    world.delete_at(&id("Lease", "karmada-cluster", "member2"));
    pass(&mut world, 55_000);
    assert_eq!(ready(&world), "True ClusterReady");
    pass(&mut world, 10_000);
    assert_eq!(ready(&world), "Unknown ClusterStatusUnknown");
}

#[test]
fn a_cluster_about_which_no_agent_ever_reported_says_so_and_how_to_start_one() {
    let mut world = settled();
    let mut new = cluster(&world).clone();
    new["spec"]["syncMode"] = json!("Pull");
    new["spec"].as_object_mut().expect("a spec").remove("id");
    new["status"] = json!({});
    world.replace(new);
    pass(&mut world, 200_000);
    // The agent fills in the id of a Cluster with this reason, whenever it starts: see the tests of the agent.
    assert_eq!(ready(&world), "Unknown ClusterStatusNeverUpdated");
    let message = cluster(&world)["status"]["conditions"].to_string();
    assert!(
        message.contains("no agent has reported about member2 yet")
            && message.contains("entourage token create member2"),
        "{message}"
    );
    assert!(is_tainted(&world));
    let wrote = world.writes.len();
    world.restart();
    pass(&mut world, 120_000);
    assert_eq!(world.writes[wrote..], [""; 0]);
    renew(&mut world);
    tell_ready(&mut world);
    pass(&mut world, 90_000);
    assert_eq!(
        ready(&world),
        "Unknown ClusterStatusUnknown",
        "an agent has reported once"
    );
}

#[test]
fn in_push_mode_again_the_lease_does_not_matter() {
    let mut world = pulled();
    let mut pushed = cluster(&world).clone();
    pushed["spec"]["syncMode"] = json!("Push");
    world.replace(pushed);
    pass(&mut world, 120_000);
    assert_eq!(ready(&world), "True ClusterReady");
}

/// The agent reports what became of a copy.
fn report(world: &mut World, kind: &str, name: &str, report: &Value) {
    renew(world);
    world.meddle("member2", kind, name, |mut copy| {
        copy[REPORT] = report.clone();
        Some(copy)
    });
    assert!(world.settle());
}

#[test]
fn a_copy_that_the_agent_did_not_apply_is_not_applied_and_says_why() {
    let mut world = pulled();
    let reported = |world: &World| {
        let condition = condition(world, "myapp-deployment", "FullyApplied");
        let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
        format!("{} {}: {}", text("status"), text("reason"), text("message"))
    };
    let item = |world: &World| {
        let binding = world
            .hub_object("ResourceBinding", "myapp-deployment")
            .expect("it");
        binding["status"]["aggregatedStatus"][1].clone()
    };
    let failed = json!({"applied": "False", "message": "AppliedFailed: no room"});
    report(&mut world, "Deployment", "myapp", &failed);
    let words = reported(&world);
    assert!(words.starts_with("False FullyAppliedFailed"), "{words}");
    assert!(
        words.contains("member2: the agent of member2 could not apply it: AppliedFailed: no room"),
        "{words}"
    );
    assert_eq!(item(&world)["applied"], json!(null), "false is left out");
    assert_eq!(item(&world)["health"], "Unknown");
    let wrote = world.writes.len();
    renew(&mut world);
    world.restart();
    assert!(world.settle());
    assert_eq!(world.writes[wrote..], [""; 0]);
    report(&mut world, "Deployment", "myapp", &json!({"health": null}));
    assert!(
        reported(&world).starts_with("False Delivering"),
        "{}",
        reported(&world)
    );
    let done = json!({"applied": "True", "health": "Unhealthy"});
    report(&mut world, "Deployment", "myapp", &done);
    assert!(reported(&world).starts_with("True "), "{}", reported(&world));
    assert_eq!(item(&world)["health"], "Unhealthy");
    // A dependency that is not applied there is not present.
    report(&mut world, "ConfigMap", "my-config", &failed);
    let ready = condition(&world, "myapp-deployment", "DependenciesReady");
    assert_eq!(ready["status"], "False", "{ready}");
}

#[test]
fn copies_leave_with_their_cluster_and_namespaces_are_handed_over() {
    let mut world = pulled();
    world.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}));
    assert!(world.settle());
    let namespace = id("Namespace", "", "shop");
    let held = world.at("member2", &namespace).expect("it is there");
    assert!(held["metadata"]["annotations"]["entourage.dev/created-by"].is_string());
    world.apply(policy(&["member1"]));
    world.apply(config_map("my-config", "two"));
    assert!(world.settle());
    world.delete("Cluster", "member2");
    assert!(world.settle());
    assert!(world.hub_object("Cluster", "member2").is_none());
    assert!(world.on("member2", "Deployment", "myapp").is_none());
    assert!(world.at("member2", &namespace).is_none(), "its Work is deleted");
    let handed_over = world
        .writes
        .iter()
        .filter(|write| write.contains("HandOver") && write.contains("shop"));
    assert_eq!(handed_over.count(), 1, "{:?}", world.writes);
}

//! The replicas that count of the results of a binding and of others, by the time of a question.

use entourage_api::work::TargetComponent;

use super::*;
use crate::object::Gvk;

fn id(name: &str) -> ResourceId {
    ResourceId::new(Gvk::new("apps/v1", "Deployment"), "shop", name)
}

fn on_a(replicas: i32) -> Vec<TargetCluster> {
    vec![TargetCluster {
        name: "a".into(),
        replicas,
        components: Vec::new(),
    }]
}

fn plan(placed: &mut Placed, name: &str, replicas: Option<i32>, stored: i32) {
    let used = RoomUse {
        demand: Demand::default(),
        clusters: replicas.map(on_a),
        priority: 0,
    };
    placed.planned(&id(name), Some(&used), &on_a(stored));
}

fn store(placed: &mut Placed, name: &str, (before, after): (i32, i32), at: i64) {
    let spec = |replicas| ResourceBindingSpec {
        clusters: on_a(replicas),
        ..ResourceBindingSpec::default()
    };
    placed.stored(&id(name), Some(&spec(before)), &spec(after), Time(at));
}

/// The replicas that count of the binding, the most that it had, and those of others.
fn counted(placed: &Placed, name: &str, stored: i32, asked: i64) -> (i64, i64, i128) {
    let counted = placed.counted_at(&id(name), &"a".into(), &on_a(stored), Time(asked));
    let pods = counted.others.get("pods").copied().unwrap_or(0);
    (counted.own, counted.had, pods / 1_000_000_000)
}

fn is_empty(placed: &Placed) -> bool {
    placed.bindings.is_empty() && placed.clusters.is_empty() && placed.changes.is_empty()
}

#[test]
fn an_estimator_counts_the_results_that_were_there_when_it_was_asked() {
    let mut placed = Placed::default();
    store(&mut placed, "x", (1, 5), 999);
    store(&mut placed, "x", (5, 8), 6_999);
    for (asked, own, unknown) in [
        (-1, 1, 7),
        (999, 5, 7),
        (998 + STARTS, 5, 7),
        (1_000 + STARTS, 5, 3),
        (6_998, 5, 3),
        (6_999, 8, 3),
        (6_999 + STARTS, 8, 3),
        (7_000 + STARTS, 8, 0),
    ] {
        assert_eq!(counted(&placed, "x", 8, asked), (own, own, 0), "{asked}");
        assert_eq!(counted(&placed, "y", 2, asked), (2, 2, unknown), "{asked}");
    }
}

#[test]
fn a_result_is_pending_until_it_is_stored_and_never_on_the_nodes_before() {
    let mut placed = Placed::default();
    plan(&mut placed, "x", Some(5), 2);
    let late = 1_000_000;
    assert_eq!(counted(&placed, "x", 2, late), (2, 2, 0));
    assert_eq!(counted(&placed, "y", 0, late), (0, 0, 3));
    // Another plan, and none.
    plan(&mut placed, "x", Some(4), 2);
    assert_eq!(counted(&placed, "y", 0, late), (0, 0, 2));
    plan(&mut placed, "x", None, 2);
    assert!(is_empty(&placed));
    // A part of it is stored; it counts with its increase, and the rest is pending.
    plan(&mut placed, "x", Some(6), 2);
    store(&mut placed, "x", (2, 5), 0);
    assert_eq!(counted(&placed, "y", 0, 0), (0, 0, 4));
    assert_eq!(counted(&placed, "y", 0, 10_000), (0, 0, 1));
    assert_eq!(counted(&placed, "x", 5, 0), (5, 5, 0));
    plan(&mut placed, "x", Some(5), 5);
    assert_eq!(counted(&placed, "y", 0, 10_000), (0, 0, 0));
    // Not what another process stored before this one.
    let spec = ResourceBindingSpec {
        clusters: on_a(7),
        ..ResourceBindingSpec::default()
    };
    placed.stored(&id("z"), None, &spec, Time(0));
    assert_eq!(counted(&placed, "y", 0, 0), (0, 0, 3));
    plan(&mut placed, "new", Some(7), 0);
    placed.stored(&id("new"), None, &spec, Time(0));
    assert_eq!(counted(&placed, "y", 0, 0), (0, 0, 10));
}

#[test]
fn a_set_that_was_stored_by_its_cluster_alone_does_not_grow() {
    let mut placed = Placed::default();
    let head = TargetComponent {
        name: "head".into(),
        replicas: 1,
    };
    let mut whole = on_a(0);
    whole[0].components.push(head);
    let spec = |clusters| ResourceBindingSpec {
        clusters,
        ..ResourceBindingSpec::default()
    };
    placed.stored(&id("x"), Some(&spec(on_a(0))), &spec(whole), Time(0));
    assert!(is_empty(&placed));
}

#[test]
fn where_it_had_more_lately_its_pods_may_still_be_there() {
    let mut placed = Placed::default();
    store(&mut placed, "x", (8, 4), 0);
    store(&mut placed, "x", (4, 3), 10_000);
    for (asked, own, had) in [
        (-1, 8, 8),
        (0, 4, 8),
        (10_000, 3, 8),
        (ENDS, 3, 4),
        (10_000 + ENDS, 3, 3),
    ] {
        assert_eq!(counted(&placed, "x", 3, asked), (own, had, 0), "{asked}");
    }
}

#[test]
fn it_is_kept_for_longer_than_any_answer_counts_and_then_nothing_is() {
    let mut placed = Placed::default();
    plan(&mut placed, "x", Some(5), 0);
    store(&mut placed, "x", (0, 5), 0);
    placed.expire(Time(KEPT - 1));
    assert_eq!(counted(&placed, "y", 0, 0), (0, 0, 5));
    assert_eq!(counted(&placed, "x", 5, -1), (0, 0, 0));
    placed.expire(Time(KEPT + STEP));
    store(&mut placed, "y", (1, 0), KEPT + STEP);
    placed.expire(Time(3 * KEPT));
    assert!(is_empty(&placed), "{placed:?}");
    plan(&mut placed, "x", Some(5), 0);
    placed.forget_member(&"a".into());
    assert!(placed.bindings.is_empty() && placed.clusters.is_empty());
}

#[test]
fn so_many_changes_are_kept_and_the_increases_of_older_ones_count_as_those_of_others() {
    let mut placed = Placed::default();
    for replicas in 0..10 {
        store(&mut placed, "x", (replicas, replicas + 1), i64::from(replicas));
    }
    assert_eq!(counted(&placed, "x", 10, -1), (2, 2, 2));
    assert_eq!(counted(&placed, "y", 0, -1), (0, 0, 10));
}

#[test]
fn a_burst_keeps_one_sum_for_each_second_of_a_cluster() {
    let mut placed = Placed::default();
    for number in 0..2_000 {
        let name = format!("x{number}");
        plan(&mut placed, &name, Some(20), 0);
        store(&mut placed, &name, (0, 20), number);
    }
    assert_eq!(placed.clusters["a"].before.len(), 2);
    assert_eq!(counted(&placed, "y", 0, 0), (0, 0, 40_000));
    assert_eq!(counted(&placed, "x0", 20, 0), (20, 20, 39_980));
    assert_eq!(counted(&placed, "y", 0, 1_000 + STARTS), (0, 0, 20_000));
    assert_eq!(counted(&placed, "y", 0, 2_000 + STARTS), (0, 0, 0));
}

//! The answers of estimators: when they count, who is planned again, and that all of it ends.

use EstimatorAnswer::{Failed, NotAsked, Room};

use super::*;
use crate::object::Gvk;

const TIMEOUT: i64 = 3_000;
const NEEDS: &str = "needs";

fn id(name: &str) -> ResourceId {
    ResourceId::new(Gvk::new("apps/v1", "Deployment"), "shop", name)
}

fn ids(names: &[&str]) -> BTreeSet<ResourceId> {
    names.iter().map(|name| id(name)).collect()
}

fn strs(all: &[&str]) -> Vec<Str> {
    all.iter().map(|name| Str::from(*name)).collect()
}

fn uses(key: &str, priority: i32, clusters: &[&str]) -> EstimateUse {
    EstimateUse {
        key: key.into(),
        waits: true,
        clusters: strs(clusters).into_iter().collect(),
        priority,
        behind: None,
        wanted: None,
    }
}

/// The binding waits, and asks the estimators of these clusters.
fn asks(estimates: &mut Estimates, name: &str, clusters: &[&str], at: i64) {
    asks_for(estimates, name, &uses(NEEDS, 0, clusters), clusters, at);
}

fn asks_for(estimates: &mut Estimates, name: &str, used: &EstimateUse, clusters: &[&str], at: i64) {
    let asked = strs(clusters);
    let plan = Planned {
        used: Some(used),
        asked: &asked,
        ..Planned::default()
    };
    let ended = estimates.planned(&id(name), &plan, TIMEOUT, Time(at));
    assert_eq!(ended, Ended::default(), "{name} waits");
}

/// The binding waits no more: its result is to be stored, or is stored. Returns those that waited behind it.
fn ends(estimates: &mut Estimates, name: &str, is_pending: bool, at: i64) -> BTreeSet<ResourceId> {
    let plan = Planned {
        is_pending,
        ..Planned::default()
    };
    estimates.planned(&id(name), &plan, TIMEOUT, Time(at)).behind
}

/// Too little room was found for the binding.
fn lacks(estimates: &mut Estimates, name: &str, at: i64) {
    let plan = Planned {
        lacks_room: true,
        ..Planned::default()
    };
    estimates.planned(&id(name), &plan, TIMEOUT, Time(at));
}

/// Answers to the questions that are open.
fn answer(estimates: &mut Estimates, all: &[(&str, EstimatorAnswer)], at: i64) -> BTreeSet<ResourceId> {
    let asked = |name: &str| estimates.known.get(NEEDS)?.clusters.get(name)?.asked;
    let all: Vec<(Time, Str, EstimatorAnswer)> = all
        .iter()
        .map(|(name, answer)| (asked(name).unwrap_or(Time(-1)), Str::from(*name), *answer))
        .collect();
    let each = all.into_iter().map(|(asked, name, answer)| {
        estimates.answered(&NEEDS.into(), (asked, vec![(name, answer)]), Time(at))
    });
    each.flatten().collect()
}

/// The numbers that count for a binding; no cluster has a report.
fn known(estimates: &Estimates, name: &str, at: i64) -> Vec<(String, Option<i64>)> {
    known_after(estimates, name, None, at)
}

/// The same after a report of each cluster.
fn known_after(
    estimates: &Estimates,
    name: &str,
    report: Option<i64>,
    at: i64,
) -> Vec<(String, Option<i64>)> {
    let reported = |_: &Str| report.map(Time);
    let all = estimates.answers(&id(name), &NEEDS.into(), reported, TIMEOUT, Time(at));
    let number = |(cluster, number): (Str, Option<Number>)| {
        (cluster.to_string(), number.map(|number| number.replicas))
    };
    all.into_iter().map(number).collect()
}

fn numbers(all: &[(&str, Option<i64>)]) -> Vec<(String, Option<i64>)> {
    let each = |(name, number): &(&str, Option<i64>)| ((*name).to_owned(), *number);
    all.iter().map(each).collect()
}

fn is_open(estimates: &Estimates, cluster: &str, at: i64) -> bool {
    let until = estimates.asked_until(&NEEDS.into(), &cluster.into(), Time(at));
    until.is_some()
}

fn is_empty(estimates: &Estimates) -> bool {
    estimates.known.is_empty()
        && estimates.waiting.is_empty()
        && estimates.by_priority.is_empty()
        && estimates.refused.is_empty()
        && estimates.ends.is_empty()
        && estimates.open == 0
}

#[test]
fn an_answer_counts_for_a_while_and_for_who_waits_until_its_turn() {
    let mut estimates = Estimates::default();
    asks(&mut estimates, "x", &["a", "b"], 0);
    assert_eq!(known(&estimates, "x", 1), []);
    let waiting = answer(&mut estimates, &[("a", Room(4)), ("b", Failed)], 1_000);
    assert_eq!(waiting, ids(&["x"]));
    let reported = numbers(&[("a", Some(4)), ("b", None)]);
    for (name, at, want) in [
        ("x", 1_000, reported.clone()),
        ("x", 1_000 + FRESH + 1, reported.clone()),
        ("y", 1_000 + FRESH, reported.clone()),
        ("y", 1_000 + FRESH + 1, vec![]),
    ] {
        assert_eq!(known(&estimates, name, at), want, "{name} at {at}");
    }
    let reported_at = |_: &Str| None;
    let others = estimates.answers(&id("x"), &"other".into(), reported_at, TIMEOUT, Time(1_000));
    assert_eq!(others, BTreeMap::new());
    let number = estimates.answers(&id("x"), &NEEDS.into(), reported_at, TIMEOUT, Time(1_000));
    assert_eq!(number[&Str::from("a")].map(|number| number.asked), Some(Time(0)));
    // It is planned and stored, and waits no more.
    ends(&mut estimates, "x", true, 2_000);
    assert_eq!(known(&estimates, "x", 1_000 + FRESH + 1), reported);
    ends(&mut estimates, "x", false, 2_100);
    assert_eq!(known(&estimates, "x", 1_000 + FRESH + 1), []);
}

#[test]
fn an_estimator_that_does_not_answer_again_counts_with_its_last_number_and_not_as_one_without_any() {
    for other in [Failed, NotAsked] {
        let mut estimates = Estimates::default();
        asks(&mut estimates, "x", &["a", "b"], 0);
        answer(&mut estimates, &[("a", Room(4)), ("b", Failed)], 1);
        ends(&mut estimates, "x", false, 2);
        asks(&mut estimates, "x", &["a", "b"], 15_000);
        answer(&mut estimates, &[("a", other), ("b", other)], 15_001);
        // Where it was not asked, it is asked again; at the end of the wait its last number counts all the same.
        let at = if other == Failed {
            15_002
        } else {
            15_000 + limit(TIMEOUT)
        };
        let found = known(&estimates, "x", at);
        assert!(found.contains(&("a".to_owned(), Some(4))), "{other:?}: {found:?}");
        assert!(
            !found.contains(&("b".to_owned(), Some(4))),
            "{other:?}: {found:?}"
        );
    }
    let mut estimates = Estimates::default();
    asks(&mut estimates, "x", &["a"], 0);
    answer(&mut estimates, &[("a", Room(4))], 1);
    asks(&mut estimates, "x", &["a"], LAST);
    answer(&mut estimates, &[("a", Failed)], LAST + 2);
    assert_eq!(
        known(&estimates, "x", LAST + 2),
        numbers(&[("a", None)]),
        "a minute later it has none"
    );
}

#[test]
fn who_could_not_be_asked_is_unknown_and_asked_again_a_little_later() {
    let mut estimates = Estimates::default();
    asks(&mut estimates, "x", &["a", "b"], 0);
    let waiting = answer(&mut estimates, &[("a", NotAsked), ("b", Room(1))], 100);
    assert_eq!(waiting, ids(&["x"]));
    assert_eq!(known(&estimates, "x", 100), numbers(&[("b", Some(1))]));
    assert!(is_open(&estimates, "a", 100 + AGAIN - 1) && !is_open(&estimates, "a", 100 + AGAIN));
    assert_eq!(estimates.open, 0);
}

#[test]
fn a_question_is_open_until_its_answer_or_its_time_is_over() {
    let mut estimates = Estimates::default();
    asks(&mut estimates, "x", &["a", "b"], 0);
    assert!(is_open(&estimates, "a", 0) && !is_open(&estimates, "c", 0));
    answer(&mut estimates, &[("a", Room(1))], 10);
    assert!(!is_open(&estimates, "a", 10) && is_open(&estimates, "b", question(TIMEOUT) - 1));
    assert!(!is_open(&estimates, "b", question(TIMEOUT)));
    // Another one waits for the same, and the first asks once more.
    asks(&mut estimates, "y", &[], 100);
    asks(&mut estimates, "x", &["c"], 200);
    let until = |name: &str| estimates.waits_until(&id(name), TIMEOUT, Time(300));
    assert_eq!(until("x"), Time(limit(TIMEOUT)));
    assert_eq!(until("y"), Time(100 + limit(TIMEOUT)));
    assert_eq!(until("z"), Time(300 + limit(TIMEOUT)));
    let waiting = answer(&mut estimates, &[("b", Failed), ("c", Failed)], 400);
    assert_eq!(waiting, ids(&["x", "y"]));
}

#[test]
fn a_wait_begins_anew_neither_with_other_requirements_nor_with_a_write_that_may_fail() {
    let mut estimates = Estimates::default();
    asks(&mut estimates, "x", &["a"], 0);
    asks_for(&mut estimates, "x", &uses("other", 0, &["a"]), &["a"], 2_000);
    let until = |estimates: &Estimates, at: i64| estimates.waits_until(&id("x"), TIMEOUT, Time(at));
    assert_eq!(until(&estimates, 2_000), Time(limit(TIMEOUT)));
    assert_eq!(
        answer(&mut estimates, &[("a", Room(1))], 2_001),
        BTreeSet::new(),
        "for the former ones"
    );
    // The write fails, and it is planned again.
    ends(&mut estimates, "x", true, 3_000);
    assert_eq!(until(&estimates, 9_000), Time(limit(TIMEOUT)));
    asks_for(&mut estimates, "x", &uses("other", 0, &["a"]), &["a"], 9_000);
    assert_eq!(until(&estimates, 9_000), Time(limit(TIMEOUT)));
    // It is stored: the next wait is another one. So is one that much later.
    ends(&mut estimates, "x", false, 10_000);
    assert_eq!(until(&estimates, 10_000), Time(10_000 + limit(TIMEOUT)));
    asks(&mut estimates, "x", &["a"], 20_000);
    let late = 20_000 + limit(TIMEOUT) + LAST;
    assert_eq!(until(&estimates, late - 1), Time(20_000 + limit(TIMEOUT)));
    assert_eq!(until(&estimates, late), Time(late + limit(TIMEOUT)));
}

#[test]
fn who_waited_in_vain_waits_not_again_for_a_minute_and_is_told_once() {
    let mut estimates = Estimates::default();
    asks(&mut estimates, "x", &["a"], 0);
    let standing = Planned {
        is_by_room: true,
        ..Planned::default()
    };
    let until = |estimates: &Estimates, at: i64| estimates.waits_until(&id("x"), TIMEOUT, Time(at));
    for (at, has_waited) in [(limit(TIMEOUT), true), (limit(TIMEOUT) + LAST - 1, false)] {
        let ended = estimates.planned(&id("x"), &standing, TIMEOUT, Time(at));
        assert_eq!(ended.has_waited, has_waited);
        assert_eq!(until(&estimates, at), Time(limit(TIMEOUT)));
    }
    let over = limit(TIMEOUT) + LAST;
    assert_eq!(until(&estimates, over), Time(over + limit(TIMEOUT)));
    estimates.planned(&id("x"), &standing, TIMEOUT, Time(over));
    assert!(estimates.waiting.is_empty());
    // One that is gone leaves nothing.
    asks(&mut estimates, "y", &["a"], over);
    ends(&mut estimates, "y", false, over + limit(TIMEOUT));
    assert!(estimates.waiting.is_empty());
}

#[test]
fn of_those_that_wait_for_the_same_room_the_highest_priority_goes_first_and_wakes_those_behind() {
    let mut estimates = Estimates::default();
    asks_for(&mut estimates, "high", &uses(NEEDS, 100, &["a", "b"]), &["a"], 0);
    asks_for(&mut estimates, "higher", &uses(NEEDS, 200, &["b"]), &["b"], 5);
    let first = |estimates: &Estimates, name: &str, priority: i32, cluster: &str, at: i64| {
        let clusters: BTreeSet<Str> = [Str::from(cluster)].into();
        let first = estimates.goes_first(&id(name), (&clusters, priority), TIMEOUT, Time(at));
        first.map(|(id, until)| (id.name.to_string(), until))
    };
    let (high, higher) = (Time(limit(TIMEOUT)), Time(5 + limit(TIMEOUT)));
    for (name, priority, cluster, at, want) in [
        ("low", 0, "a", 10, Some(("high".to_owned(), high))),
        ("low", 0, "b", 10, Some(("higher".to_owned(), higher))),
        ("low", 0, "c", 10, None),
        ("equal", 100, "a", 10, None),
        ("low", 0, "a", limit(TIMEOUT), None),
        // Its own former priority.
        ("high", 0, "a", 10, None),
    ] {
        assert_eq!(
            first(&estimates, name, priority, cluster, at),
            want,
            "{name} {cluster}"
        );
    }
    let mut behind = uses(NEEDS, 0, &["a"]);
    behind.behind = Some(id("high"));
    asks_for(&mut estimates, "low", &behind, &[], 10);
    // It waits on, with another priority.
    asks_for(&mut estimates, "high", &uses(NEEDS, 90, &["a"]), &[], 20);
    assert_eq!(ends(&mut estimates, "higher", false, 30), BTreeSet::new());
    assert_eq!(ends(&mut estimates, "high", true, 40), ids(&["low"]));
    assert_eq!(first(&estimates, "low", 0, "a", 50), None);
    ends(&mut estimates, "high", false, 60);
    ends(&mut estimates, "low", false, 60);
    assert!(estimates.by_priority.is_empty() && estimates.waiting.is_empty());
}

#[test]
fn those_behind_one_whose_wait_ends_wait_behind_the_next_and_are_raised_once() {
    let mut estimates = Estimates::default();
    for (name, priority, clusters) in [
        ("first", 300, &["a", "b"][..]),
        ("second", 200, &["a"]),
        ("third", 100, &["b"]),
    ] {
        asks_for(&mut estimates, name, &uses(NEEDS, priority, clusters), &[], 0);
    }
    for (name, clusters) in [
        ("x", &["a"][..]),
        ("y", &["b"]),
        ("z", &["a", "b"]),
        ("over", &["a"]),
    ] {
        let mut behind = uses(NEEDS, 0, clusters);
        behind.behind = Some(id("first"));
        asks_for(&mut estimates, name, &behind, &[], 1);
    }
    ends(&mut estimates, "over", false, 2);
    assert_eq!(ends(&mut estimates, "first", false, 3), ids(&["over"]));
    assert_eq!(ends(&mut estimates, "second", false, 4), ids(&["x"]));
    assert_eq!(ends(&mut estimates, "third", false, 5), ids(&["y", "z"]));
}

#[test]
fn who_is_refused_again_and_again_asks_with_growing_pauses_and_where_there_is_a_new_report() {
    let mut estimates = Estimates::default();
    let mut at = 0;
    for pause in [0, 30_000, 60_000, 120_000, 120_000] {
        asks(&mut estimates, "x", &["a", "b"], at);
        answer(&mut estimates, &[("a", Room(0)), ("b", Failed)], at + 10);
        lacks(&mut estimates, "x", at + 20);
        let refused = numbers(&[("a", Some(0))]);
        if pause > 0 {
            // What failed is asked again with the next try.
            assert_eq!(known(&estimates, "x", at + 9 + pause), refused, "{pause}");
            let report = Some(at + 11);
            assert_eq!(
                known_after(&estimates, "x", report, at + 9 + pause),
                [],
                "{pause}"
            );
            assert_eq!(known(&estimates, "y", at + 9 + pause), [], "{pause}");
        }
        let over = at + 10 + pause.max(FRESH + 1);
        assert_eq!(known(&estimates, "x", over), [], "{pause}");
        at = over + 1;
    }
    // Once there is room it is as any other.
    asks(&mut estimates, "x", &["a"], at);
    answer(&mut estimates, &[("a", Room(9))], at + 10);
    ends(&mut estimates, "x", false, at + 20);
    assert!(estimates.refused.is_empty());
}

#[test]
fn who_only_asks_is_planned_again_with_the_answers_and_does_not_wait() {
    let mut estimates = Estimates::default();
    let curious = EstimateUse {
        waits: false,
        ..uses(NEEDS, 0, &[])
    };
    asks_for(&mut estimates, "x", &curious, &["a"], 0);
    assert!(estimates.waiting.is_empty());
    assert_eq!(answer(&mut estimates, &[("a", Room(1))], 10), ids(&["x"]));
    assert_eq!(known(&estimates, "x", 20), numbers(&[("a", Some(1))]));
    assert_eq!(answer(&mut estimates, &[("a", Room(2))], 30), BTreeSet::new());
}

#[test]
fn nothing_is_kept_for_long_nor_of_a_cluster_that_was_deleted() {
    let mut estimates = Estimates::default();
    asks(&mut estimates, "x", &["a", "b"], 0);
    answer(&mut estimates, &[("a", Room(3))], 1);
    ends(&mut estimates, "x", false, 2);
    estimates.forget_member(&"b".into());
    answer(&mut estimates, &[("b", Room(3))], 3);
    assert_eq!((estimates.ends.len(), estimates.open), (1, 0));
    asks(&mut estimates, "y", &[], 1 + KEPT);
    assert!(estimates.ends.is_empty());
    ends(&mut estimates, "y", false, 2 + KEPT);
    assert!(is_empty(&estimates), "{estimates:?}");
    // A late answer that nobody waits for.
    assert_eq!(
        answer(&mut estimates, &[("a", Room(3))], 3 + KEPT),
        BTreeSet::new()
    );
    assert!(is_empty(&estimates), "{estimates:?}");
}

#[test]
fn an_answer_counts_for_its_own_question_alone() {
    let mut estimates = Estimates::default();
    asks(&mut estimates, "x", &["a"], 0);
    estimates.forget_member(&"a".into());
    asks(&mut estimates, "x", &["a"], 1_300);
    let mut answered = |asked: i64, room: i64, at: i64| {
        let answers = vec![("a".into(), Room(room))];
        estimates.answered(&NEEDS.into(), (Time(asked), answers), Time(at));
        known(&estimates, "x", at)
    };
    assert_eq!(answered(0, 9, 2_000), []);
    assert_eq!(answered(1_300, 2, 2_100), numbers(&[("a", Some(2))]));
    assert_eq!(answered(1_300, 7, 2_200), numbers(&[("a", Some(2))]));
}

#[test]
fn no_more_than_so_many_answers_are_kept_and_no_open_question_is_dropped() {
    let mut estimates = Estimates::default();
    let many: Vec<String> = (0..MOST).map(|number| format!("m{number:06}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let (first, second) = many.split_at(MOST_OPEN);
    asks(&mut estimates, "x", first, 0);
    assert_eq!(estimates.places(), 0);
    let all: Vec<(&str, EstimatorAnswer)> = first.iter().map(|name| (*name, Room(1))).collect();
    answer(&mut estimates, &all, 1);
    assert_eq!(estimates.places(), MOST_OPEN);
    asks(&mut estimates, "x", second, 2);
    asks_for(&mut estimates, "y", &uses("other", 0, &[]), &["more"], 3);
    let kept: usize = estimates.known.values().map(|known| known.clusters.len()).sum();
    assert_eq!(
        (kept, estimates.ends.len(), estimates.open),
        (MOST, MOST, MOST_OPEN + 1)
    );
    assert!(second.iter().all(|name| is_open(&estimates, name, 4)));
    let all: Vec<(&str, EstimatorAnswer)> = second.iter().map(|name| (*name, Room(1))).collect();
    answer(&mut estimates, &all, 5);
    assert_eq!((estimates.ends.len(), estimates.open), (MOST, 1));
}

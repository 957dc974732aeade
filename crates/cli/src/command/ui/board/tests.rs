//! Rows, removals, counts of members and the revisions that pages continue from.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::*;

/// A page as it is after messages.
#[derive(Debug, Default, PartialEq)]
struct Page {
    rows: BTreeMap<String, Value>,
    revision: u64,
    messages: usize,
}

impl Page {
    /// Takes messages until it has everything.
    fn follow(&mut self, board: &Board) {
        loop {
            let delta = board.delta(self.revision);
            let message: Value = serde_json::from_str(&delta.json).unwrap();
            self.messages += 1;
            if message["reset"] == true {
                self.rows.clear();
            }
            for (key, row) in message["rows"].as_object().unwrap() {
                self.rows.insert(key.clone(), row.clone());
            }
            for key in message["gone"].as_array().unwrap() {
                self.rows.remove(key.as_str().unwrap());
            }
            // Only the part that reaches what is known of removed rows may be longer.
            let catches_up = self.revision < board.known_from;
            assert!(catches_up || message["rows"].as_object().unwrap().len() <= CHUNK);
            assert!(delta.revision >= board.known_from, "it would begin anew for ever");
            self.revision = delta.revision;
            if delta.is_complete {
                return;
            }
        }
    }

    fn tally(&self, member: &str) -> [i64; 4] {
        let tally = &self.rows[&format!("m/{member}")]["tally"];
        ["copies", "applied", "failing", "evicting"].map(|class| tally[class].as_i64().unwrap())
    }
}

fn workload(clusters: &[(&str, bool)]) -> Row {
    let names: Vec<Value> = clusters.iter().map(|(name, _)| json!({"name": name})).collect();
    let items: Vec<Value> = clusters
        .iter()
        .map(|(name, applied)| {
            json!({"clusterName": name, "applied": applied, "appliedReason": if *applied { "" } else { "Refused" }})
        })
        .collect();
    Row::Workload(Workload::of(&json!({
        "spec": {"resource": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "name": "x"}, "clusters": names},
        "status": {"aggregatedStatus": items}})))
}

fn member(name: &str) -> Row {
    Row::Member(Member::of(&json!({"metadata": {"name": name}})))
}

#[test]
fn a_page_that_follows_has_the_rows_of_one_that_begins() {
    let mut board = Board::default();
    let mut follower = Page::default();
    follower.follow(&board);
    board.observe("clusters", "m/m1", member("m1"));
    board.observe("bindings", "b/a/x", workload(&[("m1", true)]));
    follower.follow(&board);
    assert_eq!(follower.tally("m1"), [1, 1, 0, 0]);
    board.observe("bindings", "b/a/x", workload(&[("m1", false)]));
    board.observe("bindings", "b/a/y", workload(&[("m1", true), ("m2", true)]));
    board.observe("clusters", "m/m2", member("m2"));
    board.remove("b/a/z");
    follower.follow(&board);
    assert_eq!(follower.tally("m1"), [2, 1, 1, 0]);
    assert_eq!(follower.tally("m2"), [1, 1, 0, 0]);
    board.remove("b/a/x");
    follower.follow(&board);
    assert_eq!(follower.tally("m1"), [1, 1, 0, 0]);
    let mut beginner = Page::default();
    beginner.follow(&board);
    assert_eq!(beginner.rows, follower.rows);
    assert_eq!(
        beginner.rows.keys().map(String::as_str).collect::<BTreeSet<_>>(),
        ["b/a/y", "m/m1", "m/m2"].into()
    );
}

#[test]
fn a_row_that_is_seen_again_and_is_the_same_changes_nothing() {
    let mut board = Board::default();
    board.observe("bindings", "b/a/x", workload(&[("m1", true)]));
    board.set_source("bindings", None);
    let revision = board.revision();
    board.observe("bindings", "b/a/x", workload(&[("m1", true)]));
    board.set_source("bindings", None);
    assert_eq!(board.revision(), revision);
    assert!(board.delta(revision).is_empty);
}

#[test]
fn rows_that_a_new_list_does_not_have_are_gone_and_those_of_other_watches_stay() {
    let mut board = Board::default();
    for key in ["b/a/x", "b/a/y"] {
        board.observe("bindings", key, workload(&[("m1", true)]));
    }
    board.observe("others", "b//z", workload(&[("m1", true)]));
    board.observe("clusters", "m/m1", member("m1"));
    let mut page = Page::default();
    page.follow(&board);
    board.retain("bindings", &["b/a/y".to_owned()].into());
    page.follow(&board);
    assert_eq!(page.rows.keys().collect::<Vec<_>>(), ["b//z", "b/a/y", "m/m1"]);
    assert_eq!(page.tally("m1"), [2, 2, 0, 0]);
    board.observe("bindings", "b/a/x", workload(&[("m1", true)]));
    page.follow(&board);
    assert_eq!(page.tally("m1"), [3, 3, 0, 0], "a row may come back");
}

#[test]
fn many_rows_come_in_parts_and_a_page_that_is_far_behind_begins_anew() {
    let mut board = Board::default();
    for number in 0..5_000 {
        board.observe("bindings", &format!("b/a/{number}"), workload(&[("m1", true)]));
    }
    let mut page = Page::default();
    page.follow(&board);
    assert_eq!((page.rows.len(), page.messages), (5_000, 3));
    for number in 0..REMOVED + 10 {
        let key = format!("b/b/{number}");
        board.observe("bindings", &key, workload(&[("m1", true)]));
        board.remove(&key);
    }
    assert!(board.slots.len() <= 5_000 + REMOVED, "removed rows are forgotten");
    assert_eq!(board.slots.len(), board.by_revision.len());
    board.remove("b/a/0");
    page.follow(&board);
    assert_eq!(page.rows.len(), 4_999);
}

#[test]
fn an_error_of_reading_is_shown_until_it_is_over() {
    let mut board = Board::default();
    board.expect_source("events");
    let sources = |since: u64, board: &Board| -> Value {
        serde_json::from_str::<Value>(&board.delta(since).json).unwrap()["sources"].clone()
    };
    assert_eq!(
        sources(0, &board),
        json!({"events": {"synced": false, "error": null}})
    );
    board.set_source("events", Some("forbidden".into()));
    assert_eq!(
        sources(0, &board),
        json!({"events": {"synced": false, "error": "forbidden"}})
    );
    let revision = board.revision();
    board.set_source("events", None);
    assert_eq!(
        sources(revision, &board),
        json!({"events": {"synced": true, "error": null}})
    );
    assert_eq!(sources(board.revision(), &board), Value::Null);
}

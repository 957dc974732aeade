//! The reports of a drill that went as predicted, and of one that did not.

use super::*;
use crate::command::failover::Move;

fn predicted() -> Forecast {
    Forecast {
        cluster: "member1".into(),
        moves: vec![Move {
            object: "Deployment shop/web".into(),
            to: vec![("member2".into(), 2), ("member3".into(), 0)],
            new: vec!["member3".into()],
            dependencies: vec!["ConfigMap shop/settings".into()],
        }],
        data: vec!["PersistentVolumeClaim shop/data".into()],
        ..Forecast::default()
    }
}

fn report() -> Report {
    Report {
        cluster: "member1".into(),
        members: 3,
        forecast: predicted(),
        not_ready_after_ms: Some(500),
        moved: vec![Moved {
            object: "Deployment shop/web".into(),
            from: "member1".into(),
            to: BTreeMap::from([("member3".into(), 0)]),
            dependencies: vec!["ConfigMap shop/settings".into()],
            dependencies_after_ms: 520,
            replacement_after_ms: 540,
            gap_ms: Some(540),
        }],
        data: vec!["PersistentVolumeClaim shop/data".into()],
        healed: Some(Healed {
            ready_after_ms: 200,
            cleaned: vec![Cleaned {
                object: "Deployment shop/web".into(),
                how: "deleted",
                after_ms: 230,
            }],
            settled_after_ms: 260,
        }),
        changes: 7,
        ..Report::default()
    }
}

#[test]
fn a_drill_that_went_as_foretold_reads_so() {
    let mut report = report();
    report.compare();
    assert_eq!(report.differences, [] as [String; 0]);
    assert_eq!(
        report.failure().unwrap(),
        "  Ready is False after 500 ms.

WORKLOAD             FROM     TO       DEPENDENCIES     REPLACEMENT   GAP
Deployment shop/web  member1  member3  1, after 520 ms  after 540 ms  540 ms
Data that remains on member1:
  PersistentVolumeClaim shop/data
Everything was predicted.
"
    );
    assert_eq!(
        report.healing().unwrap(),
        "  Ready is True after 200 ms.
  deleted   Deployment shop/web  after 230 ms
  Nothing is left to do after 260 ms.

Held in all 7 changes of copies: no running copy lacked what it refers to, and nothing is orphaned.
"
    );
}

#[test]
fn each_way_to_differ_from_the_forecast_is_reported() {
    let mut report = report();
    report.moved[0].to = BTreeMap::from([("member2".into(), 4)]);
    report.moved.push(Moved {
        object: "Deployment shop/other".into(),
        ..Moved::default()
    });
    report.data.clear();
    report.tolerate.push("DaemonSet shop/agent".into());
    report.forecast.blocked.push(Stays {
        object: "StatefulSet shop/db".into(),
        why: "0 of 3 clusters fit".into(),
    });
    report.compare();
    assert_eq!(
        report.differences,
        [
            "Deployment shop/web moved to member2 (4); predicted was member2 (2), member3",
            "Deployment shop/other moved, and was predicted to stay",
            "StatefulSet shop/db was predicted to have no other cluster, and was not",
            "DaemonSet shop/agent was found to tolerate it, which was not predicted",
            "PersistentVolumeClaim shop/data was predicted to leave its data there, and was not",
        ]
    );
    report.moved.clear();
    report.compare();
    assert!(report.differences[0].contains("was predicted to move, and did not"));
}

#[test]
fn what_did_not_hold_is_the_verdict() {
    let mut report = report();
    report
        .problems
        .push("Secret shop/token is orphaned on member1".into());
    report.moved[0].gap_ms = None;
    let text = report.healing().unwrap();
    assert!(
        text.ends_with("Did not hold:\n  Secret shop/token is orphaned on member1\n"),
        "{text}"
    );
    assert!(report.failure().unwrap().contains("not closed"));
}

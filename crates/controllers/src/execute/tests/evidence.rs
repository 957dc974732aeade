//! The objects that a removal was decided from are read once more right before it.

use entourage_core::{
    distribution::{Place, Step, WithdrawalOrder},
    object::Meta,
    observation::Wrote,
    plan::{Evidence, EvidenceObject, EvidenceState},
};

use super::*;

const NAMESPACE: &str = "GET /api/v1/namespaces/ns";
const RD: &str = "GET /apis/apps.kruise.io/v1alpha1/resourcedistributions/d";
const CLUSTER: &str = "GET /apis/cluster.karmada.io/v1alpha1/clusters/m1";

fn namespace(version: &str) -> Value {
    json!({"metadata": {"name": "ns", "uid": "n", "resourceVersion": version}})
}

/// A distribution after so many writes, the last of its status, with this generation.
fn distribution(version: &str, generation: i64) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "ResourceDistribution",
        "metadata": {"name": "d", "uid": "rd", "resourceVersion": version, "generation": generation},
        "spec": {"resource": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}},
            "targets": {"allNamespaces": true}},
    })
}

fn cluster(version: &str, labels: &Value) -> Value {
    json!({
        "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "spec": {"syncMode": "Push"},
        "metadata": {"name": "m1", "uid": "c", "resourceVersion": version, "generation": 1, "labels": labels},
    })
}

fn content(live: &Value) -> EvidenceState {
    EvidenceState::of_content(&Meta::of(live))
}

/// Removes a copy on the hub, or on the member, that was decided from the distribution, the namespace and the Cluster of above.
async fn withdraw(bench: &mut Bench, member: Option<&str>) -> (Vec<Subject>, Wrote) {
    let held = EvidenceState::Exactly(Preconditions {
        uid: "n".into(),
        resource_version: "3".into(),
    });
    withdraw_from(bench, member, held).await
}

/// As [`withdraw`]; the namespace was observed in this state.
async fn withdraw_from(
    bench: &mut Bench,
    member: Option<&str>,
    held: EvidenceState,
) -> (Vec<Subject>, Wrote) {
    let place = Place {
        cluster: member.map(Into::into),
        namespace: "ns".into(),
    };
    let mut evidence = vec![
        Evidence {
            object: EvidenceObject::Distribution("d".into()),
            state: content(&distribution("5", 2)),
        },
        Evidence {
            object: EvidenceObject::Namespace(place.clone()),
            state: held,
        },
    ];
    evidence.extend(member.map(|name| Evidence {
        object: EvidenceObject::Cluster(name.into()),
        state: content(&cluster("8", &json!({"zone": "a"}))),
    }));
    let order = WithdrawalOrder {
        distribution: "d".into(),
        uid: "rd".into(),
        place,
        id: id("ConfigMap"),
        preconditions: preconditions("7"),
        mode: RemovalMode::Delete,
        evidence,
    };
    let (outcome, observed) = bench.carry_out(Change::Withdraw(Box::new(order))).await;
    assert_eq!(outcome, Outcome::Done, "the core decides when to try again");
    let (mut seen, mut end) = (Vec::new(), None);
    for each in observed {
        match each {
            Observation::Seen(subject) => seen.push(subject),
            Observation::Distributed(_, _, wrote) => end = Some(wrote),
            other => panic!("{other:?}"),
        }
    }
    (seen, end.expect("the outcome is reported"))
}

fn deleted() -> (&'static str, Reply) {
    (DELETE, ok(json!({"kind": "Status"})))
}

#[tokio::test]
async fn what_is_as_it_was_observed_is_read_and_the_copy_is_removed() {
    let mut bench = bench(
        vec![
            (RD, ok(distribution("6", 2))),
            (NAMESPACE, ok(namespace("3"))),
            deleted(),
        ],
        vec![],
    );
    let (seen, wrote) = withdraw(&mut bench, None).await;
    assert_eq!((seen.len(), wrote), (0, Wrote::Gone { uid: "copy".into() }));
    let asked = bench.hub.all();
    let metadata = asked[..2].iter().map(|each| &each.accept);
    assert!(
        metadata
            .into_iter()
            .all(|accept| accept.contains("PartialObjectMetadata")),
        "no spec and no data come back"
    );
}

#[tokio::test]
async fn a_namespace_that_changed_is_observed_and_the_copy_stays() {
    let mut bench = bench(
        vec![(RD, ok(distribution("5", 2))), (NAMESPACE, ok(namespace("4")))],
        vec![],
    );
    let (seen, wrote) = withdraw(&mut bench, None).await;
    assert_eq!(wrote, Wrote::Abandoned);
    assert!(
        matches!(&seen[..], [Subject::Namespace(name, meta)] if &**name == "ns" && &*meta.resource_version == "4"),
        "{seen:?}"
    );
    assert_eq!(bench.hub.lines(), [RD, NAMESPACE]);
}

#[tokio::test]
async fn a_distribution_whose_spec_changed_is_observed_whole_and_the_copy_stays() {
    let changed = || (RD, ok(distribution("9", 3)));
    let mut bench = bench(vec![changed(), changed()], vec![]);
    let (seen, wrote) = withdraw(&mut bench, None).await;
    assert_eq!(wrote, Wrote::Abandoned);
    assert!(
        matches!(&seen[..], [Subject::Distribution(name, held)] if &**name == "d" && held.spec.is_ok()),
        "{seen:?}"
    );
    assert_eq!(bench.hub.lines(), [RD, RD]);
}

#[tokio::test]
async fn on_a_member_its_namespace_and_its_cluster_are_read_too() {
    let labels = [json!({"zone": "a"}), json!({"zone": "b"})];
    for (now, stays) in labels.iter().zip([false, true]) {
        let mut hub = vec![(RD, ok(distribution("5", 2))), (CLUSTER, ok(cluster("99", now)))];
        let mut member = vec![(NAMESPACE, ok(namespace("3")))];
        if stays {
            hub.push((CLUSTER, ok(cluster("99", now))));
        } else {
            member.push(deleted());
        }
        let mut bench = bench(hub, member);
        let (seen, wrote) = withdraw(&mut bench, Some("m1")).await;
        let expected = if stays {
            Wrote::Abandoned
        } else {
            Wrote::Gone { uid: "copy".into() }
        };
        assert_eq!((seen.len(), wrote), (usize::from(stays), expected));
        assert_eq!(bench.on_member.lines().len(), if stays { 1 } else { 2 });
    }
}

#[tokio::test]
async fn a_namespace_that_was_absent_is_looked_for() {
    let gone_copy = || Wrote::Gone { uid: "copy".into() };
    let cases = [
        (gone("namespaces"), true, 0, gone_copy()),
        (ok(namespace("3")), false, 1, Wrote::Abandoned),
        // It names no namespace: it proves nothing.
        (status(404, "NotFound"), false, 0, Wrote::Abandoned),
    ];
    for (reply, is_removed, observed, expected) in cases {
        let mut script = vec![(RD, ok(distribution("5", 2))), (NAMESPACE, reply)];
        script.extend(is_removed.then(deleted));
        let requests = script.len();
        let mut bench = bench(script, vec![]);
        let (seen, wrote) = withdraw_from(&mut bench, None, EvidenceState::Absent).await;
        assert_eq!((seen.len(), wrote), (observed, expected));
        assert_eq!(bench.hub.lines().len(), requests);
    }
}

#[tokio::test]
async fn what_is_gone_or_cannot_be_read_removes_nothing() {
    let denied = Wrote::Failed {
        step: Step::Delete,
        message: "ResourceDistribution d cannot be read again before the removal: 403 Forbidden".into(),
        may_exist: false,
    };
    let absent = || (RD, gone("resourcedistributions"));
    let cases = [
        (vec![absent()], Wrote::Abandoned),
        // It goes while it is read again.
        (vec![(RD, ok(distribution("9", 3))), absent()], Wrote::Abandoned),
        (vec![(RD, status(503, "ServiceUnavailable"))], Wrote::Abandoned),
        (vec![(RD, Reply::Broken)], Wrote::Abandoned),
        (vec![(RD, status(403, "Forbidden"))], denied),
    ];
    for (script, expected) in cases {
        let requests = script.len();
        let mut bench = bench(script, vec![]);
        let (seen, wrote) = withdraw(&mut bench, None).await;
        assert_eq!((seen.len(), wrote), (0, expected));
        assert_eq!(bench.hub.lines().len(), requests);
    }
}

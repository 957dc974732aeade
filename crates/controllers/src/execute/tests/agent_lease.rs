//! The Lease of an agent is read, and only a response about it decides.

use entourage_core::observation::{Lease, LeaseAnswer};

use super::*;

const LEASE: &str = "GET /apis/coordination.k8s.io/v1/namespaces/karmada-cluster/leases/m1";

#[tokio::test]
async fn only_a_response_about_the_lease_says_anything_of_it() {
    let lease =
        json!({"metadata": {"name": "m1", "uid": "u", "resourceVersion": "7"}, "spec": {"renewTime": "now"}});
    let found = Lease::of(&lease);
    let (busy, mute) = (FailureKind::Busy, FailureKind::NoResponse);
    for (reply, expected) in [
        (ok(lease), Ok(LeaseAnswer::Found(found))),
        (gone("leases"), Ok(LeaseAnswer::Absent)),
        (
            status(403, "Forbidden"),
            Ok(LeaseAnswer::Refused("Forbidden it is".into())),
        ),
        // The address is not served, or a proxy responds.
        (status(404, "NotFound"), Err(busy)),
        (status(503, "ServiceUnavailable"), Err(busy)),
        (Reply::Broken, Err(mute)),
    ] {
        let mut bench = bench(vec![(LEASE, reply.clone())], vec![]);
        let (outcome, observed) = bench.carry_out(Change::GetLease("m1".into())).await;
        match expected {
            Ok(answer) => {
                assert_eq!(outcome, Outcome::Done, "{reply:?}");
                let is_it = matches!(observed.as_slice(), [Observation::LeaseRead(name, seen)]
                    if &**name == "m1" && *seen == answer);
                assert!(is_it, "{reply:?}: {observed:?}");
            }
            Err(kind) => {
                let is_it = matches!(outcome, Outcome::Failed { failure_kind, .. } if failure_kind == kind);
                assert!(is_it, "{reply:?}: {outcome:?}");
                assert!(observed.is_empty(), "{reply:?}: {observed:?}");
            }
        }
    }
}

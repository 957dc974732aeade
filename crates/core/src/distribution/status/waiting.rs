//! The requirements of a report, and its maximum size.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{LOOKS, PROGRESS, plan};
use crate::{
    config::Config,
    distribution::{Place, TargetStatus},
    fleet::Fleet,
    object::{Gvk, Time},
    observation::{Observation, Probe, Watch, project, which},
    plan::{Change, Key, Verb},
};

const MEMBER: &str = "m1";

fn listed(fleet: &mut Fleet, watch: &Watch, objects: &[Value]) {
    let mut present = BTreeSet::new();
    for object in objects {
        present.extend(which(watch, object));
        let subject = project(watch, &Default::default(), object).expect("readable");
        fleet.observe(Observation::Seen(subject), Time(0));
    }
    let (watch, revision) = (watch.clone(), 1);
    let listed = Observation::Listed {
        watch,
        present,
        revision,
    };
    fleet.observe(listed, Time(0));
}

/// A distribution into a namespace of a member, right after a start: whether there are members is unknown.
fn started() -> Fleet {
    let mut config = Config::new("hub");
    config.distribute = true;
    let mut fleet = Fleet::new(config);
    listed(&mut fleet, &Watch::Namespaces, &[]);
    let resource = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}});
    let targets = json!({
        "includedNamespaces": {"list": [{"name": "app"}]}, "clusters": {"clusterNames": [MEMBER]},
    });
    let distribution = json!({"metadata": meta("d"), "spec": {"resource": resource, "targets": targets}});
    listed(&mut fleet, &Watch::Distributions, &[distribution]);
    listed(&mut fleet, &objects(None), &[]);
    fleet
}

/// The objects of its name.
fn objects(cluster: Option<&str>) -> Watch {
    Watch::Distributed(cluster.map(Into::into), Gvk::new("v1", "ConfigMap"), "c".into())
}

fn meta(name: &str) -> Value {
    json!({"name": name, "uid": name, "resourceVersion": "1", "generation": 1})
}

fn joined(fleet: &mut Fleet) {
    let cluster = json!({"metadata": meta(MEMBER), "spec": {"syncMode": "Push"}});
    listed(fleet, &Watch::Clusters, &[cluster]);
}

fn probed(fleet: &mut Fleet, healthy: bool) -> Vec<Key> {
    let probe = Probe {
        healthy,
        ..Probe::default()
    };
    fleet.observe(Observation::Probed(MEMBER.into(), probe), Time(0))
}

/// True if a status is reported, however long a change was pending.
fn reports(fleet: &Fleet) -> bool {
    let late = Time(0).plus(PROGRESS).plus(PROGRESS);
    !plan(fleet, &"d".into(), late).changes.is_empty()
}

#[test]
fn a_report_waits_for_members_that_answer_and_were_not_looked_at_yet() {
    let mut fleet = started();
    assert!(!reports(&fleet), "which members there are is not known");
    joined(&mut fleet);
    assert!(!reports(&fleet), "whether the member answers is not known");
    let keys = probed(&mut fleet, true);
    assert!(keys.contains(&Key::DistributionStatus("d".into())));
    assert!(!reports(&fleet));
    listed(&mut fleet, &objects(Some(MEMBER)), &[]);
    assert!(!reports(&fleet), "its namespaces are not known");
    listed(&mut fleet, &Watch::MemberNamespaces(MEMBER.into()), &[]);
    assert!(reports(&fleet));
}

#[test]
fn a_member_that_does_not_answer_holds_no_report_up() {
    let mut fleet = started();
    joined(&mut fleet);
    let keys = probed(&mut fleet, false);
    assert!(keys.contains(&Key::DistributionStatus("d".into())));
    assert!(reports(&fleet));
}

#[test]
fn what_is_stored_stands_until_every_copy_was_looked_at_since_the_start() {
    let mut fleet = started();
    listed(&mut fleet, &Watch::Clusters, &[]);
    let place = |namespace: &str| Place {
        cluster: None,
        namespace: namespace.into(),
    };
    let mut stored = fleet.memory.distributions.held["d"].object.as_ref().clone();
    stored.status =
        json!({"observedGeneration": 1, "conditions": [], "desired": 1, "succeeded": 1, "failed": 0});
    let held = fleet.memory.distributions.held.get_mut("d").expect("it is held");
    held.object = stored.clone().into();
    held.set(&place("a"), Some(TargetStatus::Pending), Time(0));
    assert!(!reports(&fleet), "less is known than is stored");
    let late = plan(&fleet, &"d".into(), Time(0).plus(LOOKS));
    assert!(!late.changes.is_empty(), "not for ever");
    stored.status["observedGeneration"] = json!(0);
    let held = fleet.memory.distributions.held.get_mut("d").expect("it is held");
    held.object = stored.clone().into();
    assert!(reports(&fleet), "it was edited: how far that is, is reported");
    stored.status["observedGeneration"] = json!(1);
    let held = fleet.memory.distributions.held.get_mut("d").expect("it is held");
    held.object = stored.into();
    held.set(&place("a"), Some(TargetStatus::Done), Time(0));
    held.set(&place("b"), Some(TargetStatus::Pending), Time(0));
    assert!(reports(&fleet), "everything was looked at once");
}

#[test]
fn a_status_in_which_everything_fails_everywhere_is_small_enough_to_be_stored() {
    let mut fleet = started();
    listed(&mut fleet, &Watch::Clusters, &[]);
    let held = fleet.memory.distributions.held.get_mut("d").expect("it is held");
    for (_, target_statuses) in super::CONDITIONS {
        for (target_status, number) in target_statuses
            .iter()
            .flat_map(|target_status| (0..1_000).map(move |number| (target_status, number)))
        {
            let place = Place {
                cluster: None,
                namespace: format!("{:n<63}", format!("{target_status:?}-{number:04}-")).into(),
            };
            held.set(&place, Some(*target_status), Time(0));
        }
    }
    let late = Time(0).plus(PROGRESS).plus(PROGRESS);
    let plan = plan(&fleet, &"d".into(), late);
    let Some(Change::Hub {
        verb: Verb::MergeStatus(body),
        ..
    }) = plan.changes.first()
    else {
        panic!("{plan:?}")
    };
    let status = &body["status"];
    let size = status.to_string().len();
    assert!((32 << 10..64 << 10).contains(&size), "{size} bytes");
    for condition in status["conditions"].as_array().expect("conditions") {
        assert_eq!(condition["count"], 1_000, "{condition}");
    }
    assert!(
        !status["conflictingNamespaces"]
            .as_array()
            .expect("conflicts")
            .is_empty()
    );
}

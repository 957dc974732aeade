//! What a report on members waits for.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{PROGRESS, plan};
use crate::{
    index::{Config, Index},
    object::{Gvk, Time},
    observation::{Observation, Probe, Watch, project, which},
    plan::Key,
};

const MEMBER: &str = "m1";

fn listed(index: &mut Index, watch: &Watch, objects: &[Value]) {
    let mut present = BTreeSet::new();
    for object in objects {
        present.extend(which(watch, object));
        let subject = project(watch, object).expect("readable");
        index.observe(Observation::Seen(subject), Time(0));
    }
    let (watch, revision) = (watch.clone(), 1);
    let listed = Observation::Listed {
        watch,
        present,
        revision,
    };
    index.observe(listed, Time(0));
}

/// A distribution into a namespace of a member, right after a start: whether there are members is not known.
fn started() -> Index {
    let mut config = Config::new("hub");
    config.distribute = true;
    let mut index = Index::new(config);
    listed(&mut index, &Watch::Namespaces, &[]);
    let resource = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}});
    let targets = json!({
        "includedNamespaces": {"list": [{"name": "app"}]}, "clusters": {"clusterNames": [MEMBER]},
    });
    let distribution = json!({"metadata": meta("d"), "spec": {"resource": resource, "targets": targets}});
    listed(&mut index, &Watch::Distributions, &[distribution]);
    listed(&mut index, &objects(None), &[]);
    index
}

/// Those of its name.
fn objects(cluster: Option<&str>) -> Watch {
    Watch::Distributed(cluster.map(Into::into), Gvk::new("v1", "ConfigMap"), "c".into())
}

fn meta(name: &str) -> Value {
    json!({"name": name, "uid": name, "resourceVersion": "1", "generation": 1})
}

fn joined(index: &mut Index) {
    let cluster = json!({"metadata": meta(MEMBER), "spec": {"syncMode": "Push"}});
    listed(index, &Watch::Clusters, &[cluster]);
}

fn probed(index: &mut Index, healthy: bool) -> Vec<Key> {
    let probe = Probe {
        healthy,
        ..Probe::default()
    };
    index.observe(Observation::Probed(MEMBER.into(), probe), Time(0))
}

/// Whether something is reported, however long it was under way.
fn reports(index: &Index) -> bool {
    let late = Time(0).plus(PROGRESS).plus(PROGRESS);
    !plan(index, &"d".into(), late).changes.is_empty()
}

#[test]
fn a_report_waits_for_members_that_answer_and_were_not_looked_at_yet() {
    let mut index = started();
    assert!(!reports(&index), "which members there are is not known");
    joined(&mut index);
    assert!(!reports(&index), "whether the member answers is not known");
    let keys = probed(&mut index, true);
    assert!(keys.contains(&Key::DistributionStatus("d".into())));
    assert!(!reports(&index));
    listed(&mut index, &objects(Some(MEMBER)), &[]);
    assert!(!reports(&index), "its namespaces are not known");
    listed(&mut index, &Watch::MemberNamespaces(MEMBER.into()), &[]);
    assert!(reports(&index));
}

#[test]
fn a_member_that_does_not_answer_holds_no_report_up() {
    let mut index = started();
    joined(&mut index);
    let keys = probed(&mut index, false);
    assert!(keys.contains(&Key::DistributionStatus("d".into())));
    assert!(reports(&index));
}

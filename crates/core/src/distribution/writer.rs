//! The executor of a distribution, and the writer of its status.

use std::collections::BTreeSet;

use entourage_api::keys::label;
use serde_json::{Value, json};

use crate::{
    config::Config,
    distribution::{API_VERSION, KIND, Place, gvk},
    engine::plan as plan_key,
    fleet::Fleet,
    object::{Gvk, ResourceId, Time},
    observation::{Observation, Watch, project},
    plan::{Change, Key, Plan, Verb},
};

const NOW: Time = Time(1_700_000_000_000);

fn list(fleet: &mut Fleet, watch: &Watch, object: Option<&Value>) {
    let mut present = BTreeSet::new();
    if let Some(object) = object {
        present.extend(crate::observation::which(watch, object));
        fleet.observe(
            Observation::Seen(project(watch, &Default::default(), object).expect("readable")),
            NOW,
        );
    }
    let listed = Observation::Listed {
        watch: watch.clone(),
        present,
        revision: 9,
    };
    fleet.observe(listed, NOW);
}

/// A distribution with a binding, claimed by a policy or not, with all lists synced.
fn index(claimed: bool) -> Fleet {
    let mut config = Config::new("hub");
    config.distribute = true;
    let mut fleet = Fleet::new(config);
    let mut distribution = json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": "settings", "uid": "u", "resourceVersion": "3", "generation": 1},
        "spec": {
            "resource": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}},
            "targets": {"allNamespaces": true},
        },
    });
    if claimed {
        distribution["metadata"]["labels"] = json!({label::CLUSTER_PROPAGATION_POLICY_ID: "p"});
    }
    let binding = json!({
        "metadata": {"name": "settings-resourcedistribution", "uid": "b", "resourceVersion": "4"},
        "spec": {"resource": {"apiVersion": API_VERSION, "kind": KIND, "name": "settings"}},
    });
    list(&mut fleet, &Watch::Clusters, None);
    list(&mut fleet, &Watch::Namespaces, None);
    list(&mut fleet, &Watch::ClusterBindings, Some(&binding));
    list(&mut fleet, &Watch::Templates(gvk()), Some(&distribution));
    list(&mut fleet, &Watch::Distributions, Some(&distribution));
    let copies = Watch::Distributed(None, Gvk::new("v1", "ConfigMap"), "settings".into());
    list(&mut fleet, &copies, None);
    fleet
}

/// The description that each of the two planners writes.
fn written(claimed: bool) -> [Option<String>; 2] {
    let mut fleet = index(claimed);
    for watch in [
        Watch::Policies,
        Watch::ClusterPolicies,
        Watch::Bindings,
        Watch::Overrides,
    ] {
        list(&mut fleet, &watch, None);
    }
    list(&mut fleet, &Watch::ClusterOverrides, None);
    for watch in crate::fleet::INTERPRETER_WATCHES {
        list(&mut fleet, &watch, None);
    }
    let described = |plan: Plan| {
        plan.changes.iter().find_map(|change| match change {
            Change::Hub {
                verb: Verb::MergeStatus(body),
                ..
            } => body["status"]["description"].as_str().map(str::to_owned),
            _ => None,
        })
    };
    let template = ResourceId::new(gvk(), "", "settings");
    [
        Key::DistributionStatus("settings".into()),
        Key::TemplateStatus(template),
    ]
    .map(|key| described(plan_key(&fleet, &key, NOW)))
}

#[test]
fn who_carries_a_distribution_out_is_the_one_writer_of_its_status() {
    let [here, members] = written(false);
    assert_eq!(here.as_deref(), Some("The targets select no namespace"));
    assert_eq!(members, None, "a policy that took it there once has let it go");
    let [here, members] = written(true);
    assert_eq!(here, None, "the members carry it out");
    assert_eq!(
        members.as_deref(),
        Some("Propagated to 0 clusters: present in 0/0 namespaces there")
    );
}

/// The reason why nothing is written into a namespace yet; `None` when it is. `policies`: synced, or not yet.
fn waits(policies: Option<&[&str]>) -> Option<String> {
    let mut fleet = index(false);
    let namespace = json!({"metadata": {"name": "a", "uid": "n", "resourceVersion": "5"}});
    list(&mut fleet, &Watch::Namespaces, Some(&namespace));
    for selected in policies.into_iter().flatten() {
        let policy = json!({
            "metadata": {"name": "p", "uid": "p", "resourceVersion": "6"},
            "spec": {
                "resourceSelectors": [{"apiVersion": API_VERSION, "kind": KIND, "name": selected}],
                "placement": {},
            },
        });
        list(&mut fleet, &Watch::ClusterPolicies, Some(&policy));
    }
    if policies == Some(&[]) {
        list(&mut fleet, &Watch::ClusterPolicies, None);
    }
    let place = Place {
        cluster: None,
        namespace: "a".into(),
    };
    let plan = plan_key(&fleet, &Key::Distributed("settings".into(), place), NOW);
    let writes = plan
        .changes
        .iter()
        .any(|change| matches!(change, Change::Distribute(_)));
    assert_eq!(writes, plan.again_at.is_none(), "it is looked at again: {plan:?}");
    (!writes).then(|| format!("{:?}", plan.why))
}

#[test]
fn nothing_is_written_here_of_a_distribution_that_a_policy_is_about_to_claim() {
    assert_eq!(waits(Some(&[])), None);
    assert_eq!(waits(Some(&["another"])), None);
    for policies in [Some(&["settings"][..]), None] {
        let why = waits(policies).unwrap_or_default();
        assert!(why.contains("about to claim it"), "{policies:?}: {why}");
    }
}

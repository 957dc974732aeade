//! Every kind of watch, followed to a revision that its server then goes back behind.

use std::collections::BTreeSet;

use entourage_api::{keys::annotation, keys::label, names};
use serde_json::{Value, json};

use super::*;
use crate::{
    index::{Config, meta_of},
    object::{Gvk, Time},
    observation::{Observation, Server, project, which},
};

const NOW: Time = Time(1);

fn watches() -> Vec<Watch> {
    let gvk = || Gvk::new("v1", "ConfigMap");
    vec![
        Watch::Policies,
        Watch::ClusterPolicies,
        Watch::Overrides,
        Watch::ClusterOverrides,
        Watch::Bindings,
        Watch::ClusterBindings,
        Watch::Clusters,
        Watch::Customizations,
        Watch::TaintPolicies,
        Watch::Namespaces,
        Watch::MemberNamespaces("m1".into()),
        Watch::Templates(gvk()),
        Watch::Copies("m1".into(), gvk()),
        Watch::Distributions,
        Watch::Rebalancers,
    ]
}

/// An object as the server of a watch has it.
fn object(watch: &Watch, name: &str, version: u64) -> Value {
    let mut object = json!({
        "metadata": {"name": name, "uid": name, "resourceVersion": version.to_string(), "generation": 1},
        "spec": {},
    });
    let resource = |kind: &str, namespace: &str| json!({"resource": {"apiVersion": "v1", "kind": kind, "namespace": namespace, "name": name}});
    match watch {
        Watch::Policies | Watch::Overrides | Watch::Templates(_) => {
            object["metadata"]["namespace"] = json!("ns");
        }
        Watch::Bindings => {
            object["metadata"]["namespace"] = json!("ns");
            object["spec"] = resource("ConfigMap", "ns");
        }
        Watch::ClusterBindings => object["spec"] = resource("PersistentVolume", ""),
        Watch::Customizations => {
            object["spec"] =
                json!({"target": {"apiVersion": "v1", "kind": "ConfigMap"}, "customizations": {}});
        }
        Watch::Clusters => object["spec"] = json!({"syncMode": "Push"}),
        Watch::TaintPolicies => object["spec"] = json!({"taints": []}),
        Watch::Rebalancers => object["spec"] = json!({"workloads": []}),
        Watch::Copies(..) => {
            object["metadata"]["namespace"] = json!("ns");
            object["metadata"]["labels"] = json!({label::HUB: "hub"});
            object["metadata"]["annotations"] = json!({
                annotation::RESOURCE_BINDING_NAMESPACE: "ns",
                annotation::RESOURCE_BINDING_NAME: names::binding_names("", "ConfigMap", name)[0],
            });
        }
        _ => {}
    }
    if matches!(watch, Watch::Policies | Watch::ClusterPolicies) {
        object["spec"] = json!({"resourceSelectors": [], "placement": {}});
    }
    if matches!(watch, Watch::Overrides | Watch::ClusterOverrides) {
        object["spec"] = json!({"overrideRules": []});
    }
    object
}

fn index(watch: &Watch) -> Index {
    let mut index = Index::new(Config::new("hub"));
    if let Server::Member(name) = watch.server() {
        see(&mut index, &Watch::Clusters, &name, 1);
    }
    index
}

fn see(index: &mut Index, watch: &Watch, name: &str, version: u64) {
    let subject = project(watch, &Default::default(), &object(watch, name, version)).expect("readable");
    index.observe(Observation::Seen(subject), NOW);
}

fn delete(index: &mut Index, watch: &Watch, name: &str, version: u64) {
    let gone = Observation::Gone {
        which: which(watch, &object(watch, name, version)).expect("named"),
        uid: Some(name.into()),
        revision: Some(version),
    };
    index.observe(gone, NOW);
}

fn list(index: &mut Index, watch: &Watch, revision: u64, items: &[(&str, u64)]) {
    let watch = watch.clone();
    index.observe(
        Observation::Listing {
            watch: watch.clone(),
            revision,
        },
        NOW,
    );
    let mut present = BTreeSet::new();
    for (name, version) in items {
        present.extend(which(&watch, &object(&watch, name, *version)));
        see(index, &watch, name, *version);
    }
    let listed = Observation::Listed {
        watch,
        present,
        revision,
    };
    index.observe(listed, NOW);
}

fn reach(index: &mut Index, watch: &Watch, revision: u64) {
    let watch = watch.clone();
    index.observe(Observation::Reached { watch, revision }, NOW);
}

/// Everything held under a watch, each with its revision.
fn held(index: &Index, watch: &Watch) -> Vec<(String, u64)> {
    let revision = |which: &ObjectRef| match which {
        ObjectRef::Policy(name) => (name.name.to_string(), index.policies[name].meta.revision()),
        ObjectRef::Customization(name) => {
            let meta = meta_of(&index.customizations[name].metadata);
            (name.to_string(), meta.revision())
        }
        ObjectRef::Hooks(contract, name) => {
            let meta = &index.hooks[&(*contract, name.clone())].meta;
            (name.to_string(), meta.revision())
        }
        ObjectRef::TaintPolicy(name) => (name.to_string(), index.taint_policies[name].meta.revision()),
        ObjectRef::Override(name) => {
            let meta = index.override_index.meta(name).expect("held");
            (name.name.to_string(), meta.revision())
        }
        ObjectRef::Binding(name) => {
            let binding = index.resources[&index.by_binding[name]].binding.as_ref();
            (name.name.to_string(), binding.expect("held").meta.revision())
        }
        ObjectRef::Cluster(name) => (name.to_string(), index.members[name].meta.revision()),
        ObjectRef::Template(id) => {
            let template = index.resources[id].template.as_ref();
            (id.name.to_string(), template.expect("held").meta.revision())
        }
        ObjectRef::Copy(cluster, id) => {
            // Without a binding none is managed; what is old news of it is decided in the same way.
            let copy = index.resources[id].copies[cluster].copied.as_ref();
            (id.name.to_string(), copy.expect("held").meta.revision())
        }
        ObjectRef::Namespace(None, name) => (name.to_string(), index.namespaces.hub[name].revision()),
        ObjectRef::Namespace(Some(cluster), name) => {
            let seen = index.namespaces.on(cluster, name).expect("held");
            (name.to_string(), seen.revision)
        }
        ObjectRef::Distribution(name) => {
            let held = &index.distributions.held[name];
            (name.to_string(), held.object.meta.revision())
        }
        ObjectRef::Distributed(cluster, id) => {
            let at = crate::index::distributions::DistributionServer {
                cluster: cluster.clone(),
                gvk: id.gvk.clone(),
                name: id.name.clone(),
            };
            let part = index.distributions.part(&at, &id.namespace);
            (id.name.to_string(), part.expect("held").revision())
        }
        ObjectRef::Rebalancer(name) => {
            let held = index.rebalancers.get(name).expect("held");
            (name.to_string(), held.meta().revision())
        }
    };
    index.held(watch).iter().map(revision).collect()
}

/// An index that has followed a watch up to revision 5000.
fn followed(watch: &Watch) -> Index {
    let mut index = index(watch);
    let items = [("deleted", 80), ("edited", 70), ("same", 90)];
    list(&mut index, watch, 100, &items);
    see(&mut index, watch, "edited", 4000);
    see(&mut index, watch, "made", 4100);
    delete(&mut index, watch, "deleted", 5000);
    reach(&mut index, watch, 5000);
    index
}

#[test]
fn what_a_restored_server_lists_counts_as_after_a_restart_and_so_does_what_follows() {
    for watch in watches() {
        let mut restored = followed(&watch);
        let mut restarted = index(&watch);
        for index in [&mut restored, &mut restarted] {
            let items = [("deleted", 80), ("edited", 2900), ("new", 2950), ("same", 90)];
            list(index, &watch, 3000, &items);
        }
        assert_eq!(held(&restored, &watch), held(&restarted, &watch), "{watch:?}");
        assert_eq!(held(&restored, &watch).len(), 4, "{watch:?}");
        assert!(restored.watches.is_synced(&watch));
        see(&mut restored, &watch, "edited", 3001);
        see(&mut restored, &watch, "edited", 2900);
        delete(&mut restored, &watch, "same", 3002);
        see(&mut restored, &watch, "same", 90);
        // What the list lacked was gone at its revision.
        see(&mut restored, &watch, "made", 2999);
        let versions: Vec<u64> = held(&restored, &watch).into_iter().map(|each| each.1).collect();
        assert_eq!(versions, [80, 3001, 2950], "{watch:?}");
        see(&mut restored, &watch, "made", 3003);
        assert_eq!(held(&restored, &watch).len(), 4, "{watch:?}");
    }
}

#[test]
fn until_the_list_of_a_restored_server_is_complete_what_is_held_counts_and_proves_nothing() {
    for watch in watches() {
        let mut index = followed(&watch);
        let before = held(&index, &watch);
        let begun = Observation::Listing {
            watch: watch.clone(),
            revision: 3000,
        };
        index.observe(begun, NOW);
        assert_eq!(held(&index, &watch), before, "{watch:?}");
        assert!(!index.watches.is_synced(&watch), "{watch:?}");
        // The list breaks off and begins once more.
        list(&mut index, &watch, 3001, &[("edited", 2900)]);
        let versions: Vec<u64> = held(&index, &watch).into_iter().map(|each| each.1).collect();
        assert_eq!(versions, [2900], "{watch:?}");
        assert!(index.watches.is_synced(&watch), "{watch:?}");
    }
}

#[test]
fn a_list_that_is_not_behind_what_its_watch_told_makes_nothing_old_new() {
    for watch in watches() {
        let mut index = followed(&watch);
        let items = [("edited", 70), ("made", 4100), ("same", 90)];
        // An answer to a write that overtakes the list.
        see(&mut index, &watch, "written", 5002);
        list(&mut index, &watch, 5000, &items);
        see(&mut index, &watch, "deleted", 80);
        let versions: Vec<u64> = held(&index, &watch).into_iter().map(|each| each.1).collect();
        assert_eq!(versions, [4000, 4100, 90, 5002], "{watch:?}");
    }
}

#[test]
fn a_server_that_was_restored_says_nothing_of_the_others() {
    let (one, two) = (
        Watch::MemberNamespaces("m1".into()),
        Watch::MemberNamespaces("m2".into()),
    );
    let mut index = followed(&one);
    see(&mut index, &Watch::Clusters, "m2", 2);
    list(&mut index, &two, 100, &[("deleted", 80), ("edited", 70)]);
    see(&mut index, &two, "edited", 4000);
    delete(&mut index, &two, "deleted", 5000);
    list(&mut index, &one, 3000, &[]);
    see(&mut index, &two, "edited", 2900);
    see(&mut index, &two, "deleted", 80);
    assert_eq!(held(&index, &two), [("edited".into(), 4000)]);
}

#[test]
fn a_version_that_a_restored_server_counts_twice_is_not_taken_for_what_is_known() {
    let watch = Watch::Templates(Gvk::new("v1", "ConfigMap"));
    let mut index = followed(&watch);
    let mut other = object(&watch, "edited", 4000);
    other["metadata"]["labels"] = json!({"content": "other"});
    let begun = Observation::Listing {
        watch: watch.clone(),
        revision: 4500,
    };
    index.observe(begun, NOW);
    let subject = project(&watch, &Default::default(), &other).expect("readable");
    index.observe(Observation::Seen(subject), NOW);
    let id = crate::object::ResourceId::new(Gvk::new("v1", "ConfigMap"), "ns", "edited");
    let template = index.resources[&id].template.as_ref().expect("held");
    assert_eq!(template.meta.label("content"), Some("other"));
    assert_eq!(index.resources[&id].touched, None, "a restore is nobody's touch");
}

//! Tests of every kind of watch, followed to a revision below which its server then goes back.

use std::collections::BTreeSet;

use entourage_api::{keys::annotation, keys::label, names};
use serde_json::{Value, json};

use super::*;
use crate::{
    cache::meta_of,
    config::Config,
    object::{Gvk, NamespacedName, Time},
    observation::{ObjectRef, Observation, Server, ServicePart, project, which},
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
        Watch::Quotas,
        Watch::QuotaCopies("m1".into()),
        Watch::PriorityClasses,
        Watch::Works,
        Watch::Leases,
        Watch::ServiceParts(ServicePart::Import),
        Watch::ServiceParts(ServicePart::Derived),
        Watch::ServiceParts(ServicePart::Imported),
        Watch::Endpoints("m1".into(), NamespacedName::new("ns", "web")),
    ]
}

/// An object on the server of a watch.
fn object(watch: &Watch, name: &str, version: u64) -> Value {
    let mut object = json!({
        "metadata": {"name": name, "uid": name, "resourceVersion": version.to_string(), "generation": 1},
        "spec": {},
    });
    let resource = |kind: &str, namespace: &str| json!({"resource": {"apiVersion": "v1", "kind": kind, "namespace": namespace, "name": name}});
    match watch {
        Watch::Policies | Watch::Overrides | Watch::Templates(_) | Watch::QuotaCopies(_) | Watch::Works => {
            object["metadata"]["namespace"] = json!("ns");
        }
        Watch::Quotas => {
            object["metadata"]["namespace"] = json!("ns");
            object["spec"] = json!({"overall": {}});
        }
        Watch::ServiceParts(part) => {
            let prefix = match part {
                ServicePart::Import => "",
                ServicePart::Derived => names::DERIVED_PREFIX,
                ServicePart::Imported => names::IMPORTED_PREFIX,
            };
            object["metadata"]["namespace"] = json!("ns");
            object["metadata"]["name"] = json!(format!("{prefix}{name}"));
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

fn index(watch: &Watch) -> Fleet {
    let mut fleet = Fleet::new(Config::new("hub"));
    if let Server::Member(name) = watch.server() {
        see(&mut fleet, &Watch::Clusters, &name, 1);
    }
    if matches!(watch, Watch::Endpoints(..)) {
        fleet.cache.watches.demand(watch.clone());
    }
    fleet
}

fn see(fleet: &mut Fleet, watch: &Watch, name: &str, version: u64) {
    let subject = project(watch, &Default::default(), &object(watch, name, version)).expect("readable");
    fleet.observe(Observation::Seen(subject), NOW);
}

fn delete(fleet: &mut Fleet, watch: &Watch, name: &str, version: u64) {
    let gone = Observation::Gone {
        which: which(watch, &object(watch, name, version)).expect("named"),
        uid: Some(name.into()),
        revision: Some(version),
    };
    fleet.observe(gone, NOW);
}

fn list(fleet: &mut Fleet, watch: &Watch, revision: u64, items: &[(&str, u64)]) {
    let watch = watch.clone();
    fleet.observe(
        Observation::Listing {
            watch: watch.clone(),
            revision,
        },
        NOW,
    );
    let mut present = BTreeSet::new();
    for (name, version) in items {
        present.extend(which(&watch, &object(&watch, name, *version)));
        see(fleet, &watch, name, *version);
    }
    let listed = Observation::Listed {
        watch,
        present,
        revision,
    };
    fleet.observe(listed, NOW);
}

fn reach(fleet: &mut Fleet, watch: &Watch, revision: u64) {
    let watch = watch.clone();
    fleet.observe(Observation::Reached { watch, revision }, NOW);
}

/// Every cached object of a watch, each with its revision.
fn held(fleet: &Fleet, watch: &Watch) -> Vec<(String, u64)> {
    let revision = |which: &ObjectRef| match which {
        ObjectRef::Policy(name) => (name.name.to_string(), fleet.cache.policies[name].meta.revision()),
        ObjectRef::Customization(name) => {
            let meta = meta_of(&fleet.cache.customizations[name].metadata);
            (name.to_string(), meta.revision())
        }
        ObjectRef::Hooks(contract, name) => {
            let meta = &fleet.cache.hooks[&(*contract, name.clone())].meta;
            (name.to_string(), meta.revision())
        }
        ObjectRef::TaintPolicy(name) => (name.to_string(), fleet.cache.taint_policies[name].meta.revision()),
        ObjectRef::Override(name) => {
            let meta = fleet.graph.override_index.meta(name).expect("held");
            (name.name.to_string(), meta.revision())
        }
        ObjectRef::Binding(name) => {
            let binding = fleet.cache.resources[&fleet.graph.by_binding[name]]
                .binding
                .as_ref();
            (name.name.to_string(), binding.expect("held").meta.revision())
        }
        ObjectRef::Cluster(name) => (name.to_string(), fleet.cache.members[name].meta.revision()),
        ObjectRef::Template(id) => {
            let template = fleet.cache.resources[id].template.as_ref();
            (id.name.to_string(), template.expect("held").meta.revision())
        }
        ObjectRef::Copy(cluster, id) => {
            // Without a binding none is managed; outdated events of it are dropped in the same way.
            let copy = fleet.cache.resources[id]
                .copies
                .get(cluster)
                .unwrap()
                .copied
                .as_ref();
            (id.name.to_string(), copy.expect("held").meta.revision())
        }
        ObjectRef::Namespace(None, name) => (name.to_string(), fleet.cache.namespaces.hub[name].revision()),
        ObjectRef::Namespace(Some(cluster), name) => {
            let seen = fleet.cache.namespaces.on(cluster, name).expect("held");
            (name.to_string(), seen.revision)
        }
        ObjectRef::Distribution(name) => {
            let held = &fleet.memory.distributions.held[name];
            (name.to_string(), held.object.meta.revision())
        }
        ObjectRef::Distributed(cluster, id) => {
            let at = crate::memory::distributions::DistributionServer {
                cluster: cluster.clone(),
                gvk: id.gvk.clone(),
                name: id.name.clone(),
            };
            let part = fleet.memory.distributions.part(&at, &id.namespace);
            (id.name.to_string(), part.expect("held").revision())
        }
        ObjectRef::Rebalancer(name) => {
            let held = fleet.memory.rebalancers.get(name).expect("held");
            (name.to_string(), held.meta().revision())
        }
        ObjectRef::Quota(name) => {
            let held = fleet.memory.quotas.get(name).expect("held");
            (name.name.to_string(), held.meta.revision())
        }
        ObjectRef::QuotaCopy(cluster, name) => {
            let copy = fleet.memory.quotas.copy(cluster, name).expect("held");
            (name.name.to_string(), copy.revision())
        }
        ObjectRef::PriorityClass(name) => {
            let held = &fleet.cache.priority_classes[name];
            (name.to_string(), held.meta.revision())
        }
        ObjectRef::Work(name) => {
            let held = &fleet.cache.works[name];
            (name.name.to_string(), held.work.meta.revision())
        }
        ObjectRef::Lease(name) => (name.to_string(), fleet.cache.leases.held[name].lease.revision()),
        ObjectRef::ServicePart(part, name) => {
            let meta = fleet.cache.services.meta(*part, name).expect("held");
            (name.name.to_string(), meta.revision())
        }
        ObjectRef::Endpoints(cluster, service, name) => {
            let slice = fleet.cache.services.slice(cluster, service, name).expect("held");
            (name.to_string(), slice.slice.meta.revision())
        }
        ObjectRef::Node(..) | ObjectRef::Pod(..) => unreachable!("forgotten until they are listed again"),
    };
    fleet.held(watch).iter().map(revision).collect()
}

/// A fleet that has followed a watch up to revision 5000.
fn followed(watch: &Watch) -> Fleet {
    let mut fleet = index(watch);
    let items = [("deleted", 80), ("edited", 70), ("same", 90)];
    list(&mut fleet, watch, 100, &items);
    see(&mut fleet, watch, "edited", 4000);
    see(&mut fleet, watch, "made", 4100);
    delete(&mut fleet, watch, "deleted", 5000);
    reach(&mut fleet, watch, 5000);
    fleet
}

#[test]
fn what_a_restored_server_lists_counts_as_after_a_restart_and_so_does_what_follows() {
    for watch in watches() {
        let mut restored = followed(&watch);
        let mut restarted = index(&watch);
        for fleet in [&mut restored, &mut restarted] {
            let items = [("deleted", 80), ("edited", 2900), ("new", 2950), ("same", 90)];
            list(fleet, &watch, 3000, &items);
        }
        assert_eq!(held(&restored, &watch), held(&restarted, &watch), "{watch:?}");
        assert_eq!(held(&restored, &watch).len(), 4, "{watch:?}");
        assert!(restored.cache.watches.is_synced(&watch));
        see(&mut restored, &watch, "edited", 3001);
        see(&mut restored, &watch, "edited", 2900);
        delete(&mut restored, &watch, "same", 3002);
        see(&mut restored, &watch, "same", 90);
        // Objects that the list lacked were deleted at its revision.
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
        let mut fleet = followed(&watch);
        let before = held(&fleet, &watch);
        let begun = Observation::Listing {
            watch: watch.clone(),
            revision: 3000,
        };
        fleet.observe(begun, NOW);
        assert_eq!(held(&fleet, &watch), before, "{watch:?}");
        assert!(!fleet.cache.watches.is_synced(&watch), "{watch:?}");
        // The list breaks off and begins once more.
        list(&mut fleet, &watch, 3001, &[("edited", 2900)]);
        let versions: Vec<u64> = held(&fleet, &watch).into_iter().map(|each| each.1).collect();
        assert_eq!(versions, [2900], "{watch:?}");
        assert!(fleet.cache.watches.is_synced(&watch), "{watch:?}");
    }
}

#[test]
fn a_list_that_is_not_behind_what_its_watch_reported_makes_nothing_old_new() {
    for watch in watches() {
        let mut fleet = followed(&watch);
        let items = [("edited", 70), ("made", 4100), ("same", 90)];
        // A response to a write that overtakes the list.
        see(&mut fleet, &watch, "written", 5002);
        list(&mut fleet, &watch, 5000, &items);
        see(&mut fleet, &watch, "deleted", 80);
        let versions: Vec<u64> = held(&fleet, &watch).into_iter().map(|each| each.1).collect();
        assert_eq!(versions, [4000, 4100, 90, 5002], "{watch:?}");
    }
}

#[test]
fn a_server_that_was_restored_says_nothing_of_the_others() {
    let (one, two) = (
        Watch::MemberNamespaces("m1".into()),
        Watch::MemberNamespaces("m2".into()),
    );
    let mut fleet = followed(&one);
    see(&mut fleet, &Watch::Clusters, "m2", 2);
    list(&mut fleet, &two, 100, &[("deleted", 80), ("edited", 70)]);
    see(&mut fleet, &two, "edited", 4000);
    delete(&mut fleet, &two, "deleted", 5000);
    list(&mut fleet, &one, 3000, &[]);
    see(&mut fleet, &two, "edited", 2900);
    see(&mut fleet, &two, "deleted", 80);
    assert_eq!(held(&fleet, &two), [("edited".into(), 4000)]);
}

#[test]
fn a_version_that_a_restored_server_counts_twice_is_not_taken_for_what_is_known() {
    let watch = Watch::Templates(Gvk::new("v1", "ConfigMap"));
    let mut fleet = followed(&watch);
    let mut other = object(&watch, "edited", 4000);
    other["metadata"]["labels"] = json!({"content": "other"});
    let begun = Observation::Listing {
        watch: watch.clone(),
        revision: 4500,
    };
    fleet.observe(begun, NOW);
    let subject = project(&watch, &Default::default(), &other).expect("readable");
    fleet.observe(Observation::Seen(subject), NOW);
    let id = crate::object::ResourceId::new(Gvk::new("v1", "ConfigMap"), "ns", "edited");
    let template = fleet.cache.resources[&id].template.as_ref().expect("held");
    assert_eq!(template.meta.label("content"), Some("other"));
    assert_eq!(
        fleet.cache.resources[&id].touched, None,
        "a restore is nobody's touch"
    );
}

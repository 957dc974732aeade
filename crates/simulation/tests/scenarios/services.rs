//! Services of other clusters, with `--controllers=*,serviceExport,endpointSlice,serviceImport`.
//!
//! No endpoint controller runs on the members: the tests write the EndpointSlices that one would.

use entourage_api::keys::{self, annotation, label};
use entourage_core::{
    kinds,
    object::{NamespacedName, ResourceId},
    observation::{ServicePart, Watch},
    plan::Key,
    refusal,
};
use serde_json::{Value, json};

use super::{
    condition,
    failover::{no_execute, taint},
    policy_of,
    world::{Random, World},
};

const API: &str = "multicluster.x-k8s.io/v1alpha1";
const EXPORTERS: &[&str] = &["member1", "member2"];
const IMPORTERS: &[&str] = &["member2", "member3"];

fn export() -> Value {
    json!({"apiVersion": API, "kind": "ServiceExport", "metadata": {"name": "web"}, "spec": {}})
}

fn import() -> Value {
    json!({
        "apiVersion": API, "kind": "ServiceImport", "metadata": {"name": "web"},
        "spec": {"type": "ClusterSetIP", "ports": [{"port": 80, "protocol": "TCP"}]},
    })
}

fn policy(kind: &str, clusters: &[&str]) -> Value {
    policy_of(&kind.to_lowercase(), API, kind, "web", clusters)
}

fn endpoints(addresses: &[&str]) -> Value {
    let endpoint = |address: &&str| json!({"addresses": [address], "conditions": {"ready": true}});
    addresses.iter().map(endpoint).collect()
}

/// The endpoint controller of a member writes a slice of the Service `web`; without addresses it deletes it.
fn serve(world: &mut World, member: &str, slice: &str, addresses: &[&str]) {
    world.meddle(member, "EndpointSlice", slice, |held| {
        let mut held = if held.is_null() {
            json!({
                "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
                "metadata": {"name": slice, "namespace": "default", "labels": {
                    label::SERVICE_NAME: "web", label::ENDPOINTS_MANAGED_BY: "endpointslice-controller.k8s.io",
                }},
                "addressType": "IPv4", "ports": [{"name": "", "port": 80, "protocol": "TCP"}],
            })
        } else {
            held
        };
        held["endpoints"] = endpoints(addresses);
        (!addresses.is_empty()).then_some(held)
    });
}

fn settle(world: &mut World) {
    assert!(world.settle_for(60_000));
}

/// A Service that two clusters export and two import, one of them both.
fn shared() -> World {
    let mut world = World::sharing(&["member1", "member2", "member3"]);
    assert!(world.settle());
    share(&mut world);
    settle(&mut world);
    world
}

fn share(world: &mut World) {
    serve(world, "member1", "web-a", &["10.1.0.1"]);
    serve(world, "member2", "web-b", &["10.2.0.1"]);
    world.apply(export());
    world.apply(policy("ServiceExport", EXPORTERS));
    world.apply(import());
    world.apply(policy("ServiceImport", IMPORTERS));
}

fn slice<'a>(world: &'a World, name: &str) -> &'a Value {
    let found = world.hub_object("EndpointSlice", name);
    found.unwrap_or(&Value::Null)
}

/// The addresses of a slice of the hub; those that are not ready are in parentheses.
fn addresses(world: &World, name: &str) -> Option<String> {
    let found = world.hub_object("EndpointSlice", name)?;
    let all = found["endpoints"].as_array().into_iter().flatten();
    let shown = all.map(|endpoint| {
        let address = endpoint["addresses"][0].as_str().unwrap_or_default();
        match endpoint["conditions"]["ready"] == true {
            true => address.to_owned(),
            false => format!("({address})"),
        }
    });
    Some(shown.collect::<Vec<_>>().join(" "))
}

fn assert_quiet(world: &mut World) {
    let wrote = world.writes.len();
    assert!(world.settle_for(120_000));
    world.restart();
    assert!(world.settle_for(120_000));
    assert_eq!(world.writes.len(), wrote, "{:#?}", &world.writes[wrote..]);
}

#[test]
fn endpoints_of_exporting_clusters_reach_those_that_import_and_not_themselves() {
    let mut world = shared();
    let hub = slice(&world, "imported-member1-web-a");
    let labels =
        json!({label::SERVICE_NAME: "derived-web", label::ENDPOINTS_MANAGED_BY: keys::ENDPOINTS_DISPATCHED});
    for (key, value) in labels.as_object().expect("labels") {
        assert_eq!(hub["metadata"]["labels"][key], *value);
    }
    assert_eq!(
        hub["metadata"]["annotations"][annotation::PROVISION_CLUSTER],
        "member1"
    );
    assert_eq!(hub["endpoints"], endpoints(&["10.1.0.1"]));
    let service = world.hub_object("Service", "derived-web").expect("Service");
    assert_eq!(service["spec"]["type"], "ClusterIP");
    assert_eq!(service["spec"]["ports"], json!([{"port": 80, "protocol": "TCP"}]));
    assert_eq!(world.holders("Service", "derived-web"), IMPORTERS);
    assert_eq!(
        world.holders("EndpointSlice", "imported-member1-web-a"),
        IMPORTERS
    );
    // The cluster that exports and imports gets the endpoints of the others.
    assert_eq!(
        world.holders("EndpointSlice", "imported-member2-web-b"),
        ["member3"]
    );
    for type_ in ["FullyApplied", "DependenciesReady"] {
        assert_eq!(
            condition(&world, "web-serviceimport", type_)["status"],
            "True",
            "{type_}"
        );
    }
    assert_quiet(&mut world);
}

#[test]
fn what_changes_on_a_member_changes_everywhere() {
    let mut world = shared();
    serve(&mut world, "member1", "web-a", &["10.1.0.1", "10.1.0.2"]);
    serve(&mut world, "member1", "web-c", &["10.1.0.3"]);
    settle(&mut world);
    assert_eq!(
        addresses(&world, "imported-member1-web-a").as_deref(),
        Some("10.1.0.1 10.1.0.2")
    );
    assert_eq!(
        world.holders("EndpointSlice", "imported-member1-web-c"),
        IMPORTERS
    );
    let copy = world
        .on("member3", "EndpointSlice", "imported-member1-web-a")
        .expect("copy");
    assert_eq!(copy["endpoints"], endpoints(&["10.1.0.1", "10.1.0.2"]));
    serve(&mut world, "member1", "web-a", &[]);
    settle(&mut world);
    assert_eq!(addresses(&world, "imported-member1-web-a"), None);
    assert!(
        world
            .holders("EndpointSlice", "imported-member1-web-a")
            .is_empty()
    );
    assert_quiet(&mut world);
}

#[test]
fn changes_that_follow_each_other_closely_are_one_write() {
    let mut world = shared();
    let wrote = world.writes.len();
    for at in 1..=20 {
        serve(&mut world, "member1", "web-a", &[&format!("10.1.0.{at}")]);
        assert!(world.settle_for(50));
    }
    settle(&mut world);
    assert_eq!(
        addresses(&world, "imported-member1-web-a").as_deref(),
        Some("10.1.0.20")
    );
    let writes = world.writes[wrote..].iter();
    let of_slice = writes.filter(|each| each.starts_with("hub") && each.contains(" EndpointSlice "));
    assert!(
        (1..=2).contains(&of_slice.count()),
        "{:#?}",
        &world.writes[wrote..]
    );
}

#[test]
fn an_edit_of_what_stands_for_a_slice_or_an_import_is_reverted_and_labels_stay() {
    let mut world = shared();
    let mut edited = slice(&world, "imported-member1-web-a").clone();
    edited["endpoints"] = endpoints(&["192.168.0.1"]);
    edited["metadata"]["labels"]["team"] = json!("shop");
    world.replace(edited);
    let mut edited = world
        .hub_object("Service", "derived-web")
        .expect("Service")
        .clone();
    edited["spec"]["ports"] = json!([{"port": 81, "protocol": "TCP"}]);
    edited["metadata"]["labels"] = json!({"team": "shop"});
    world.replace(edited);
    settle(&mut world);
    let found = slice(&world, "imported-member1-web-a");
    assert_eq!(found["endpoints"], endpoints(&["10.1.0.1"]));
    assert_eq!(found["metadata"]["labels"]["team"], "shop");
    let found = world.hub_object("Service", "derived-web").expect("Service");
    assert_eq!(found["spec"]["ports"][0]["port"], 80);
    assert_eq!(found["metadata"]["labels"]["team"], "shop");
    assert_quiet(&mut world);
}

#[test]
fn slices_leave_with_the_export_and_the_service_leaves_with_the_import() {
    let mut world = shared();
    world.apply(policy("ServiceExport", &["member2"]));
    settle(&mut world);
    assert_eq!(addresses(&world, "imported-member1-web-a"), None);
    assert_eq!(
        addresses(&world, "imported-member2-web-b").as_deref(),
        Some("10.2.0.1")
    );
    world.delete("ServiceExport", "web");
    settle(&mut world);
    assert_eq!(addresses(&world, "imported-member2-web-b"), None);
    assert!(
        world
            .holders("EndpointSlice", "imported-member2-web-b")
            .is_empty()
    );
    // An import without an export is a Service without endpoints.
    assert_eq!(world.holders("Service", "derived-web"), IMPORTERS);
    let watch = Watch::Endpoints("member2".into(), NamespacedName::new("default", "web"));
    assert!(!world.process.engine.demand().contains(&watch));
    world.delete("ServiceImport", "web");
    settle(&mut world);
    assert!(world.hub_object("Service", "derived-web").is_none());
    assert!(world.holders("Service", "derived-web").is_empty());
    assert_quiet(&mut world);
}

#[test]
fn an_export_that_ends_while_no_process_runs_takes_its_slices_along() {
    let mut world = shared();
    for kind in ["ServiceExport", "PropagationPolicy"] {
        let name = if kind == "ServiceExport" {
            "web"
        } else {
            "serviceexport"
        };
        world.delete(kind, name);
    }
    for member in EXPORTERS {
        world.meddle(member, "ServiceExport", "web", |_| None);
    }
    world.restart();
    settle(&mut world);
    assert_eq!(addresses(&world, "imported-member1-web-a"), None);
    assert_eq!(addresses(&world, "imported-member2-web-b"), None);
}

#[test]
fn endpoints_of_a_cluster_that_does_not_respond_stay_in_reserve_until_it_does() {
    let mut world = shared();
    world.set_down("member1", true);
    settle(&mut world);
    let reserved = Some("(10.1.0.1)");
    assert_eq!(addresses(&world, "imported-member1-web-a").as_deref(), reserved);
    let conditions = slice(&world, "imported-member1-web-a")["endpoints"][0]["conditions"].clone();
    assert_eq!(
        conditions,
        json!({"ready": false, "serving": true, "terminating": true})
    );
    assert_eq!(
        addresses(&world, "imported-member2-web-b").as_deref(),
        Some("10.2.0.1")
    );
    // Nothing is known of it any more, and nothing disappears.
    world.restart();
    settle(&mut world);
    assert_eq!(addresses(&world, "imported-member1-web-a").as_deref(), reserved);
    assert_eq!(
        world.holders("EndpointSlice", "imported-member1-web-a"),
        IMPORTERS
    );
    serve(&mut world, "member1", "web-a", &["10.1.0.9"]);
    world.set_down("member1", false);
    settle(&mut world);
    assert_eq!(
        addresses(&world, "imported-member1-web-a").as_deref(),
        Some("10.1.0.9")
    );
    assert_quiet(&mut world);
}

#[test]
fn endpoints_of_clusters_from_which_the_hub_is_cut_off_stay_in_use() {
    let mut world = shared();
    for member in ["member1", "member2", "member3"] {
        world.set_down(member, true);
    }
    let written = world.writes.len();
    settle(&mut world);
    let cluster = world.hub_object("Cluster", "member1").expect("Cluster");
    let conditions = cluster["status"]["conditions"].as_array().into_iter().flatten();
    let mut ready = conditions.filter(|each| each["type"] == "Ready");
    assert_eq!(ready.next().expect("condition")["reason"], "HubCutOff");
    let of_slices = |write: &&String| write.contains(" EndpointSlice ");
    assert_eq!(world.writes[written..].iter().filter(of_slices).count(), 0);
    serve(&mut world, "member1", "web-a", &["10.1.0.9"]);
    for member in ["member1", "member2", "member3"] {
        world.set_down(member, false);
    }
    settle(&mut world);
    assert_eq!(
        addresses(&world, "imported-member1-web-a").as_deref(),
        Some("10.1.0.9")
    );
}

#[test]
fn a_slice_that_ends_during_an_outage_leaves_the_hub_afterwards() {
    for restarts in [false, true] {
        let mut world = shared();
        world.set_down("member1", true);
        settle(&mut world);
        serve(&mut world, "member1", "web-a", &[]);
        if restarts {
            world.restart();
            settle(&mut world);
        }
        assert!(addresses(&world, "imported-member1-web-a").is_some());
        world.set_down("member1", false);
        settle(&mut world);
        assert_eq!(addresses(&world, "imported-member1-web-a"), None, "{restarts}");
    }
}

#[test]
fn an_export_that_is_missing_where_it_is_to_be_takes_no_endpoints_away() {
    let mut world = shared();
    let deleted = |world: &World, from: usize| {
        let is_it = |write: &&String| write.to_lowercase().contains(" delete endpointslice ");
        world.writes[from..].iter().filter(is_it).count()
    };
    let written = world.writes.len();
    // By hand, and made again.
    world.meddle("member1", "ServiceExport", "web", |_| None);
    settle(&mut world);
    assert!(world.on("member1", "ServiceExport", "web").is_some());
    // Its metadata is taken off, and put on again.
    world.meddle("member1", "ServiceExport", "web", |mut held| {
        held["metadata"]["labels"] = json!({});
        Some(held)
    });
    settle(&mut world);
    // No process runs while its binding disappears.
    let binding = world.hub_ids(|id| &*id.gvk.kind == "ResourceBinding" && &*id.name == "web-serviceexport");
    let mut held = world.hub[&binding[0]].clone();
    held["metadata"]["finalizers"] = json!([]);
    world.replace(held);
    world.delete_at(&binding[0]);
    world.restart();
    settle(&mut world);
    assert_eq!(deleted(&world, written), 0, "{:#?}", &world.writes[written..]);
    assert_eq!(
        addresses(&world, "imported-member1-web-a").as_deref(),
        Some("10.1.0.1")
    );
}

#[test]
fn an_export_whose_policy_is_deleted_takes_its_slices_along() {
    for restarts in [false, true] {
        let mut world = shared();
        world.delete("PropagationPolicy", "serviceexport");
        world.delete("ServiceExport", "web");
        if restarts {
            world.restart();
        }
        settle(&mut world);
        assert_eq!(addresses(&world, "imported-member1-web-a"), None, "{restarts}");
        assert!(
            world
                .holders("EndpointSlice", "imported-member1-web-a")
                .is_empty()
        );
    }
}

#[test]
fn slices_of_a_member_that_serves_no_service_exports_leave_the_hub() {
    let mut world = shared();
    world.delete("ServiceExport", "web");
    world.delete("PropagationPolicy", "serviceexport");
    world.meddle("member1", "ServiceExport", "web", |_| None);
    let copies = Watch::Copies("member1".into(), kinds::service_export());
    world.restart();
    world.shut.insert(copies.clone());
    settle(&mut world);
    assert_eq!(
        addresses(&world, "imported-member1-web-a").as_deref(),
        Some("10.1.0.1")
    );
    world.unserve(copies, None);
    settle(&mut world);
    assert_eq!(addresses(&world, "imported-member1-web-a"), None);
}

#[test]
fn what_another_physical_cluster_has_takes_no_endpoints_away() {
    let mut world = shared();
    world.become_another("member1", "another");
    for kind in ["ServiceExport", "EndpointSlice"] {
        let name = if kind == "ServiceExport" { "web" } else { "web-a" };
        world.meddle("member1", kind, name, |_| None);
    }
    settle(&mut world);
    assert_eq!(
        addresses(&world, "imported-member1-web-a").as_deref(),
        Some("(10.1.0.1)")
    );
}

#[test]
fn while_the_slices_of_a_member_are_not_synced_the_hub_keeps_them() {
    let mut world = shared();
    let watch = Watch::Endpoints("member1".into(), NamespacedName::new("default", "web"));
    world.lose(watch);
    serve(&mut world, "member1", "web-a", &[]);
    settle(&mut world);
    assert_eq!(
        addresses(&world, "imported-member1-web-a").as_deref(),
        Some("10.1.0.1")
    );
    world.shut.clear();
    settle(&mut world);
    assert_eq!(addresses(&world, "imported-member1-web-a"), None);
}

#[test]
fn a_cluster_that_does_not_respond_and_that_the_export_has_left_has_no_endpoints() {
    let mut world = shared();
    world.set_down("member1", true);
    world.apply(policy("ServiceExport", &["member2"]));
    settle(&mut world);
    assert_eq!(addresses(&world, "imported-member1-web-a").as_deref(), Some(""));
    world.restart();
    settle(&mut world);
    assert_eq!(addresses(&world, "imported-member1-web-a").as_deref(), Some(""));
    world.apply(policy("ServiceExport", EXPORTERS));
    world.set_down("member1", false);
    settle(&mut world);
    assert_eq!(
        addresses(&world, "imported-member1-web-a").as_deref(),
        Some("10.1.0.1")
    );
}

#[test]
fn a_no_execute_taint_takes_the_endpoints_of_a_cluster_where_another_takes_its_place() {
    let mut world = World::sharing(&["member1", "member2", "member3"]);
    assert!(world.settle());
    share(&mut world);
    let mut exports = policy("ServiceExport", EXPORTERS);
    exports["spec"]["placement"]["spreadConstraints"] =
        json!([{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]);
    world.apply(exports);
    settle(&mut world);
    assert_eq!(
        addresses(&world, "imported-member1-web-a").as_deref(),
        Some("10.1.0.1")
    );
    assert_eq!(addresses(&world, "imported-member2-web-b"), None);
    world.set_down("member1", true);
    let taints = no_execute(&world);
    taint(&mut world, "member1", &taints);
    assert!(world.settle_for(900_000));
    assert_eq!(addresses(&world, "imported-member1-web-a").as_deref(), Some(""));
    assert_eq!(
        addresses(&world, "imported-member2-web-b").as_deref(),
        Some("10.2.0.1")
    );
}

#[test]
fn the_slices_of_a_cluster_leave_with_it() {
    let mut world = shared();
    world.delete("Cluster", "member1");
    settle(&mut world);
    assert_eq!(addresses(&world, "imported-member1-web-a"), None);
    assert_eq!(
        addresses(&world, "imported-member2-web-b").as_deref(),
        Some("10.2.0.1")
    );
    assert!(
        world
            .holders("EndpointSlice", "imported-member1-web-a")
            .is_empty()
    );
}

#[test]
fn two_slices_whose_names_are_alike_on_the_hub_have_two_objects_there() {
    let mut world = World::sharing(&["a", "a-b", "z"]);
    assert!(world.settle());
    serve(&mut world, "a", "b-c", &["10.1.0.1"]);
    serve(&mut world, "a-b", "c", &["10.2.0.1"]);
    world.apply(export());
    world.apply(policy("ServiceExport", &["a", "a-b"]));
    world.apply(import());
    world.apply(policy("ServiceImport", &["z"]));
    settle(&mut world);
    let found = world.hub_ids(|id| &*id.gvk.kind == "EndpointSlice");
    assert_eq!(found.len(), 2, "{found:?}");
    let mut all: Vec<_> = found
        .iter()
        .filter_map(|id| addresses(&world, &id.name))
        .collect();
    all.sort();
    assert_eq!(all, ["10.1.0.1", "10.2.0.1"]);
    assert!(found.iter().any(|id| &*id.name == "imported-a-b-c"));
    let on_z = world.members["z"]
        .keys()
        .filter(|id| &*id.gvk.kind == "EndpointSlice");
    assert_eq!(on_z.count(), 2);
    assert_quiet(&mut world);
}

#[test]
fn a_slice_of_another_writer_keeps_its_name_and_one_of_karmada_is_taken_over() {
    let mut world = World::sharing(&["member1", "member2", "member3"]);
    assert!(world.settle());
    let of = |name: &str, labels: Value, annotations: Value| {
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": name, "labels": labels, "annotations": annotations},
            "addressType": "IPv4", "ports": [], "endpoints": endpoints(&["192.168.0.1"]),
        })
    };
    let of_service = json!({label::SERVICE_NAME: "derived-web"});
    let of_work =
        json!({annotation::WORK_NAMESPACE: "karmada-es-member2", annotation::WORK_NAME: "endpointslice-x"});
    let written_by = json!({label::SERVICE_NAME: "derived-web", label::ENDPOINTS_MANAGED_BY: "example.com"});
    world.apply(of("imported-member1-web-a", written_by, json!({})));
    world.apply(of("imported-member2-by-hand", of_service.clone(), json!({})));
    // Karmada's: one that is on the member, and one that ended while neither control plane ran.
    world.apply(of("imported-member2-web-b", of_service.clone(), of_work.clone()));
    world.apply(of("imported-member2-old", of_service, of_work));
    share(&mut world);
    settle(&mut world);
    assert_eq!(
        addresses(&world, "imported-member1-web-a").as_deref(),
        Some("192.168.0.1")
    );
    assert_eq!(
        addresses(&world, "imported-member2-web-b").as_deref(),
        Some("10.2.0.1")
    );
    assert_eq!(addresses(&world, "imported-member2-old"), None);
    assert_eq!(
        addresses(&world, "imported-member2-by-hand").as_deref(),
        Some("192.168.0.1")
    );
    let found = world
        .hub_ids(|id| &*id.gvk.kind == "EndpointSlice" && id.name.starts_with("imported-member1-web-a-"));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_quiet(&mut world);
}

#[test]
fn a_service_of_another_owner_is_left_alone_and_its_import_says_so() {
    let mut world = World::sharing(&["member1", "member2", "member3"]);
    assert!(world.settle());
    world.apply(json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "derived-web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 81, "protocol": "TCP"}]},
    }));
    share(&mut world);
    settle(&mut world);
    let service = world.hub_object("Service", "derived-web").expect("Service");
    assert_eq!(service["spec"]["ports"][0]["port"], 81);
    let reported = world.events.iter();
    let reported = reported.filter(|event| event.starts_with("refused: ") && event.contains("selects pods"));
    assert_eq!(reported.count(), 1, "{:#?}", world.events);
    let key = Key::DerivedService(NamespacedName::new("default", "web"));
    let event = refusal::decision(&world.process.engine, &key, "it selects pods").expect("event");
    assert_eq!(event.reason, "SyncDerivedServiceFailed");
    // It is made as soon as the name is free.
    world.delete("Service", "derived-web");
    settle(&mut world);
    let service = world.hub_object("Service", "derived-web").expect("Service");
    assert_eq!(service["spec"]["ports"][0]["port"], 80);
}

#[test]
fn a_service_that_was_not_created_for_an_import_is_left_alone_until_a_user_hands_it_over() {
    let mut world = World::sharing(&["member1", "member2", "member3"]);
    assert!(world.settle());
    world.apply(json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "derived-web"},
        "spec": {"type": "ExternalName", "externalName": "example.com", "ports": [{"port": 81, "protocol": "TCP"}]},
    }));
    let as_its_user_wrote_it = |world: &World| {
        let service = world.hub_object("Service", "derived-web").expect("Service");
        assert_eq!(service["spec"]["ports"][0]["port"], 81);
        assert_eq!(service["metadata"]["ownerReferences"], Value::Null);
    };
    share(&mut world);
    settle(&mut world);
    as_its_user_wrote_it(&world);
    let says = |event: &&String| event.starts_with("refused: ") && event.contains("was not created for it");
    assert_eq!(world.events.iter().filter(says).count(), 1, "{:#?}", world.events);
    world.delete("ServiceImport", "web");
    settle(&mut world);
    as_its_user_wrote_it(&world);
    world.apply(import());
    let held = world.hub_object("Service", "derived-web");
    let mut handed_over = held.expect("Service").clone();
    handed_over["metadata"]["annotations"] = json!({annotation::DERIVED_FROM: "web"});
    world.replace(handed_over);
    settle(&mut world);
    let service = world.hub_object("Service", "derived-web").expect("Service");
    assert_eq!(service["spec"]["ports"][0]["port"], 80);
    world.delete("ServiceImport", "web");
    settle(&mut world);
    assert!(world.hub_object("Service", "derived-web").is_none());
}

#[test]
fn endpoints_beyond_the_limit_of_a_member_are_reported_and_collected_when_there_is_room() {
    let mut world = World::sharing(&["member1", "member2", "member3"]);
    world.process.engine.config_mut().endpoints_per_member = 6;
    world.restart();
    assert!(world.settle());
    share(&mut world);
    settle(&mut world);
    // It counts 4, and what is there 3.
    serve(&mut world, "member1", "web-z", &["10.1.0.3", "10.1.0.4"]);
    settle(&mut world);
    let reported = |world: &World| {
        let cluster = world.hub_object("Cluster", "member1").expect("Cluster");
        let all = cluster["status"]["conditions"].as_array().into_iter().flatten();
        let mut found = all.filter(|each| each["type"] == "EndpointsCollected");
        found.next().map(|each| each["reason"].clone())
    };
    assert_eq!(reported(&world), Some(json!("TooManyEndpoints")));
    assert_eq!(addresses(&world, "imported-member1-web-z"), None);
    assert_eq!(
        addresses(&world, "imported-member1-web-a").as_deref(),
        Some("10.1.0.1")
    );
    // What is there grows beyond the limit: what the hub has of it is old, and the other one fits now.
    let many = ["10.1.0.5", "10.1.0.6", "10.1.0.7", "10.1.0.8", "10.1.0.9"];
    serve(&mut world, "member1", "web-a", &many);
    settle(&mut world);
    for restarts in [false, true] {
        if restarts {
            world.restart();
            settle(&mut world);
        }
        assert_eq!(
            addresses(&world, "imported-member1-web-a").as_deref(),
            Some("(10.1.0.1)")
        );
        assert_eq!(
            addresses(&world, "imported-member1-web-z").as_deref(),
            Some("10.1.0.3 10.1.0.4")
        );
        assert_eq!(reported(&world), Some(json!("TooManyEndpoints")));
    }
    serve(&mut world, "member1", "web-a", &[]);
    settle(&mut world);
    assert_eq!(addresses(&world, "imported-member1-web-a"), None);
    assert_eq!(reported(&world), None);
    assert_eq!(
        addresses(&world, "imported-member1-web-z").as_deref(),
        Some("10.1.0.3 10.1.0.4")
    );
}

#[test]
fn exports_beyond_the_limit_of_a_member_are_reported_and_watched_when_there_is_room() {
    let mut world = World::sharing(&["member1", "member2", "member3"]);
    world.process.engine.config_mut().exports_per_member = 1;
    world.restart();
    assert!(world.settle());
    share(&mut world);
    settle(&mut world);
    // By its name it comes first.
    let mut other = export();
    other["metadata"]["name"] = json!("api");
    world.apply(other);
    world.apply(policy_of("api", API, "ServiceExport", "api", &["member1"]));
    let watched = |world: &World| {
        let demand = world.process.engine.demand().iter();
        let of_member1 = demand.filter_map(|watch| match watch {
            Watch::Endpoints(cluster, service) if &**cluster == "member1" => Some(service.name.to_string()),
            _ => None,
        });
        of_member1.collect::<Vec<_>>()
    };
    let reported = |world: &World| {
        let cluster = world.hub_object("Cluster", "member1").expect("Cluster");
        let all = cluster["status"]["conditions"].as_array().into_iter().flatten();
        let mut found = all.filter(|each| each["type"] == "EndpointsCollected");
        found.next().map(|each| each["reason"].clone())
    };
    settle(&mut world);
    for restarts in [false, true] {
        if restarts {
            world.restart();
            settle(&mut world);
        }
        assert_eq!(watched(&world), ["web"], "{restarts}");
        assert_eq!(reported(&world), Some(json!("TooManyExports")), "{restarts}");
        assert_eq!(
            addresses(&world, "imported-member1-web-a").as_deref(),
            Some("10.1.0.1")
        );
    }
    world.delete("ServiceExport", "web");
    settle(&mut world);
    assert_eq!(watched(&world), ["api"]);
    assert_eq!(reported(&world), None);
}

#[test]
fn a_cluster_that_changes_to_pull_mode_keeps_its_endpoints_until_the_export_leaves_it() {
    let mut world = shared();
    let mut cluster = world.hub_object("Cluster", "member1").expect("Cluster").clone();
    cluster["spec"]["syncMode"] = json!("Pull");
    world.replace(cluster);
    assert!(world.settle_for(5_000));
    assert_eq!(
        addresses(&world, "imported-member1-web-a").as_deref(),
        Some("10.1.0.1")
    );
    // No agent renews its Lease.
    assert!(world.settle_for(120_000));
    assert_eq!(
        addresses(&world, "imported-member1-web-a").as_deref(),
        Some("(10.1.0.1)")
    );
    let cluster = world.hub_object("Cluster", "member1").expect("Cluster");
    let conditions = cluster["status"]["conditions"].as_array().into_iter().flatten();
    let mut found = conditions.filter(|each| each["type"] == "EndpointsCollected");
    assert_eq!(found.next().expect("condition")["reason"], "PullMode");
    world.delete("Cluster", "member1");
    settle(&mut world);
    assert_eq!(addresses(&world, "imported-member1-web-a"), None);
}

#[test]
fn a_member_that_lets_nobody_watch_its_slices_says_so() {
    let mut world = shared();
    let watch = Watch::Endpoints("member1".into(), NamespacedName::new("default", "web"));
    world.forbidden.insert(watch);
    world.restart();
    settle(&mut world);
    let cluster = world.hub_object("Cluster", "member1").expect("Cluster");
    let conditions = cluster["status"]["conditions"].as_array().into_iter().flatten();
    let mut found = conditions.filter(|each| each["type"] == "EndpointsCollected");
    assert_eq!(found.next().expect("condition")["reason"], "RightsMissing");
    assert_eq!(
        addresses(&world, "imported-member1-web-a").as_deref(),
        Some("10.1.0.1")
    );
}

#[test]
fn an_export_whose_name_is_too_long_says_so_and_nothing_is_watched() {
    let mut world = World::sharing(&["member1", "member2", "member3"]);
    assert!(world.settle());
    let long = "w".repeat(60);
    let mut export = export();
    export["metadata"]["name"] = json!(long);
    world.apply(export);
    world.apply(policy_of("long", API, "ServiceExport", &long, EXPORTERS));
    settle(&mut world);
    assert!(world.on("member1", "ServiceExport", &long).is_some());
    let says = |event: &&String| event.starts_with("refused: ") && event.contains("at most 55 characters");
    assert_ne!(world.events.iter().filter(says).count(), 0, "{:#?}", world.events);
    let demand = world.process.engine.demand();
    assert!(!demand.iter().any(|watch| matches!(watch, Watch::Endpoints(..))));
    let key = Key::Endpoints("member1".into(), NamespacedName::new("default", &long));
    let event = refusal::decision(&world.process.engine, &key, "too long").expect("event");
    assert_eq!(
        (event.reason, &*event.message),
        ("CollectEndpointsFailed", "too long")
    );
}

#[test]
fn a_refused_slice_is_reported_on_its_export() {
    let world = shared();
    let key = Key::Endpoints("member1".into(), NamespacedName::new("default", "web"));
    let event = refusal::event(&world.process.engine, &key, "forbidden").expect("event");
    assert_eq!(event.reason, "CollectEndpointsFailed");
    assert_eq!(
        (&*event.regarding.kind, &*event.regarding.name),
        ("ServiceExport", "web")
    );
}

fn of_member1(id: &ResourceId) -> bool {
    &*id.gvk.kind == "EndpointSlice" && id.name.starts_with("imported-member1-web-")
}

/// The copies of slices of member1 on member3, and how many of them are in use.
fn copies_on_member3(world: &World) -> (usize, usize) {
    let all = world.members["member3"].iter();
    let all: Vec<&Value> = all
        .filter(|(id, _)| of_member1(id))
        .map(|(_, copy)| copy)
        .collect();
    let is_used = |copy: &&&Value| copy["endpoints"][0]["conditions"]["ready"] == true;
    (all.len(), all.iter().filter(is_used).count())
}

fn is_paused(world: &World) -> bool {
    let cluster = world.hub_object("Cluster", "member3").expect("Cluster");
    let mut conditions = cluster["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|each| each["type"] == "RemovalsPaused" && each["status"] == "True")
}

fn name_of(at: usize) -> String {
    format!("web-{at:02}")
}

/// One where member1 has 41 slices, for longer than an edit explains anything.
fn with_many_slices() -> World {
    let mut world = shared();
    for at in 0..40 {
        serve(&mut world, "member1", &name_of(at), &["10.1.0.1"]);
    }
    settle(&mut world);
    world.now = world.now.plus(4_000_000);
    settle(&mut world);
    assert_eq!(copies_on_member3(&world), (41, 41));
    world
}

/// A member that lists nothing any more takes the endpoints off the hub; on the importers the removal brake stops that, and what stays
/// there is in reserve.
#[test]
fn many_slices_that_a_list_lacks_pause_the_deletion_of_their_copies() {
    let mut world = with_many_slices();
    let watch = Watch::Endpoints("member1".into(), NamespacedName::new("default", "web"));
    world.lose(watch);
    for at in 0..40 {
        serve(&mut world, "member1", &name_of(at), &[]);
    }
    world.shut.clear();
    settle(&mut world);
    assert_eq!(world.hub_ids(of_member1).len(), 1);
    assert_eq!(copies_on_member3(&world), (21, 1));
    assert!(is_paused(&world));
    world.release_removals();
    settle(&mut world);
    assert_eq!(copies_on_member3(&world), (1, 1));
}

#[test]
fn many_slices_whose_end_is_explained_pause_nothing() {
    type Ends = fn(&mut World);
    let cases: [(&str, Ends, usize); 4] = [
        (
            "their Service is deleted on the member",
            |world| {
                for at in 0..40 {
                    serve(world, "member1", &name_of(at), &[]);
                }
            },
            1,
        ),
        (
            "their ServiceExport is deleted",
            |world| world.delete("ServiceExport", "web"),
            0,
        ),
        (
            "their ServiceExport leaves the cluster",
            |world| world.apply(policy("ServiceExport", &["member2"])),
            0,
        ),
        (
            "their Cluster is removed",
            |world| world.delete("Cluster", "member1"),
            0,
        ),
    ];
    for (case, ends, left) in cases {
        let mut world = with_many_slices();
        ends(&mut world);
        settle(&mut world);
        assert_eq!(world.hub_ids(of_member1).len(), left, "{case}");
        assert_eq!(copies_on_member3(&world), (left, left), "{case}");
        assert!(!is_paused(&world), "{case}");
    }
}

#[test]
fn nothing_is_watched_or_written_while_the_controllers_are_off() {
    let mut world = World::new(&["member1", "member2", "member3"]);
    assert!(world.settle());
    share(&mut world);
    settle(&mut world);
    assert!(world.hub_object("Service", "derived-web").is_none());
    assert!(world.hub_ids(|id| &*id.gvk.kind == "EndpointSlice").is_empty());
    let demand = world.process.engine.demand();
    assert!(!demand.contains(&Watch::ServiceParts(ServicePart::Import)));
}

#[test]
fn a_crash_after_any_change_leads_to_the_same_end() {
    let mut calm = shared();
    serve(&mut calm, "member1", "web-a", &["10.1.0.5"]);
    calm.delete("ServiceImport", "web");
    settle(&mut calm);
    for after in 1..60 {
        let mut world = World::sharing(&["member1", "member2", "member3"]);
        assert!(world.settle());
        share(&mut world);
        world.crash_in = Some(after);
        let is_whole = world.settle_for(60_000);
        world.restart();
        settle(&mut world);
        assert_eq!(world.outline(), shared().outline(), "crash {after}");
        serve(&mut world, "member1", "web-a", &["10.1.0.5"]);
        world.delete("ServiceImport", "web");
        world.crash_in = Some(after);
        let is_whole = world.settle_for(60_000) && is_whole;
        world.restart();
        settle(&mut world);
        assert_eq!(world.outline(), calm.outline(), "crash {after}");
        if is_whole {
            return;
        }
    }
    panic!("the scenario has more changes than crashes were tried");
}

/// After any order of outages, restarts and changes, the hub has what the exporting members have.
#[test]
fn the_slices_of_the_hub_are_those_of_the_members_after_any_order_of_events() {
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let mut world = shared();
        for _ in 0..12 {
            let member = ["member1", "member2"][random.below(2)];
            match random.below(7) {
                0 => world.set_down(member, true),
                1 => world.set_down(member, false),
                2 => world.restart(),
                3 => assert!(world.settle_for(40_000)),
                4 => {
                    let clusters: &[&str] = [EXPORTERS, &["member1"], &["member2"]][random.below(3)];
                    world.apply(policy("ServiceExport", clusters));
                }
                _ => {
                    let name = ["web-a", "web-b", "web-c"][random.below(3)];
                    let address = format!("10.0.0.{}", random.below(200));
                    let is_there = world.on(member, "EndpointSlice", name).is_some();
                    match random.below(3) {
                        0 if is_there => serve(&mut world, member, name, &[]),
                        _ => serve(&mut world, member, name, &[&address]),
                    }
                }
            }
            assert!(world.settle_for(500), "seed {seed}");
        }
        for member in EXPORTERS {
            world.set_down(member, false);
        }
        assert!(world.settle_for(120_000), "seed {seed}");
        let mut want = Vec::new();
        for member in world.holders("ServiceExport", "web") {
            let slices = world.members[member].iter();
            let own = slices.filter(|(id, object)| {
                &*id.gvk.kind == "EndpointSlice" && object["metadata"]["labels"][label::SERVICE_NAME] == "web"
            });
            want.extend(own.map(|(id, object)| {
                (
                    format!("imported-{member}-{}", id.name),
                    object["endpoints"].clone(),
                )
            }));
        }
        let found = world.hub_ids(|id| &*id.gvk.kind == "EndpointSlice");
        let found = found
            .iter()
            .map(|id| (id.name.to_string(), slice(&world, &id.name)["endpoints"].clone()));
        assert_eq!(found.collect::<Vec<_>>(), want, "seed {seed}");
    }
}

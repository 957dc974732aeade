//! The decisions that need no servers, and a Karmada in memory.

use clap::Parser as _;
use entourage_core::adoption::karmada::KarmadaCluster;
use serde_json::json;

use super::{
    back::{Return, Returned, still_ours},
    *,
};
use crate::{
    command::{Cli, Command},
    mock::Server,
};

fn args(line: &str) -> AdoptArgs {
    let Command::Adopt(args) = Cli::try_parse_from(line.split(' ')).unwrap().command else {
        panic!("{line}");
    };
    args
}

/// Karmada's API server, with a policy, its binding and the Work of a Deployment, and a controller manager that is stopped.
pub(super) fn karmada_server() -> Server {
    let server = Server::new("karmada-id");
    let resource = |name: &str, kind: &str, namespaced: bool| json!({"name": name, "singularName": "", "namespaced": namespaced, "kind": kind, "verbs": ["get", "list"]});
    let list = |version: &str, resources: Value| {
        let path = format!("/apis/{version}");
        server.put(
            &path,
            json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources}),
        );
    };
    list(
        "cluster.karmada.io/v1alpha1",
        json!([resource("clusters", "Cluster", false)]),
    );
    list(
        "policy.karmada.io/v1alpha1",
        json!([
            resource("propagationpolicies", "PropagationPolicy", true),
            resource("clusterpropagationpolicies", "ClusterPropagationPolicy", false),
        ]),
    );
    list(
        "work.karmada.io/v1alpha1",
        json!([resource("works", "Work", true)]),
    );
    list(
        "work.karmada.io/v1alpha2",
        json!([
            resource("resourcebindings", "ResourceBinding", true),
            resource("clusterresourcebindings", "ClusterResourceBinding", false),
        ]),
    );
    for (path, object) in objects_of_karmada() {
        server.put(path, object);
    }
    server
}

fn objects_of_karmada() -> [(&'static str, Value); 5] {
    let meta = |namespace: &str, name: &str, finalizer: &str, labels: Value| {
        json!({"namespace": namespace, "name": name, "uid": format!("uid-{name}"), "resourceVersion": "1",
            "finalizers": [finalizer], "labels": labels})
    };
    let mut work = meta(
        "karmada-es-m1",
        "web-1",
        "karmada.io/execution-controller",
        json!({"work.karmada.io/permanent-id": "w", "resourcebinding.karmada.io/permanent-id": "b"}),
    );
    work["annotations"] = json!({"resourcebinding.karmada.io/namespace": "shop",
        "resourcebinding.karmada.io/name": "web-deployment"});
    [
        (
            "/apis/cluster.karmada.io/v1alpha1/clusters/m1",
            json!({"metadata": {"name": "m1"}, "spec": {"id": "uid-m1", "syncMode": "Push"}}),
        ),
        (
            "/apis/policy.karmada.io/v1alpha1/namespaces/shop/propagationpolicies/web",
            json!({"metadata": meta("shop", "web", "karmada.io/propagation-policy-controller",
                json!({"propagationpolicy.karmada.io/permanent-id": "p"}))}),
        ),
        (
            "/apis/work.karmada.io/v1alpha2/namespaces/shop/resourcebindings/web-deployment",
            json!({"metadata": meta("shop", "web-deployment", "karmada.io/binding-controller",
                json!({"resourcebinding.karmada.io/permanent-id": "b", "propagationpolicy.karmada.io/permanent-id": "p"}))}),
        ),
        (
            "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-m1/works/web-1",
            json!({"metadata": work, "spec": {"workload": {"manifests": [{"apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"namespace": "shop", "name": "web"}, "spec": {"replicas": 2}}]}}}),
        ),
        (
            "/apis/coordination.k8s.io/v1/namespaces/karmada-system/leases/karmada-controller-manager",
            json!({"metadata": {"namespace": "karmada-system", "name": "karmada-controller-manager"}, "spec": {"holderIdentity": "x",
                "leaseDurationSeconds": 15, "renewTime": "2026-11-26T00:00:00.000000Z"}}),
        ),
    ]
}

fn cluster(name: &str, id: &str) -> Cluster {
    serde_json::from_value(
        json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
        "metadata": {"name": name}, "spec": {"id": id, "syncMode": "Push"}}),
    )
    .unwrap()
}

#[tokio::test]
async fn a_karmada_is_read_as_it_is_stored() {
    let karmada = read::karmada(&karmada_server().client()).await.unwrap();
    assert_eq!(*karmada.id, *"karmada-id");
    let work = &karmada.works[&NamespacedName::new("karmada-es-m1", "web-1")];
    assert_eq!((&*work.id, &*work.binding_id, work.objects.len()), ("w", "b", 1));
    let binding = &karmada.bindings[&NamespacedName::new("shop", "web-deployment")];
    assert_eq!(&*binding.id, "b");
    let policy = &karmada.policies[&NamespacedName::new("shop", "web")];
    assert_eq!(&*policy.id, "p");
    let expected = KarmadaCluster {
        id: "uid-m1".into(),
        is_pulled: false,
        is_deleting: false,
    };
    assert_eq!(karmada.clusters.get("m1"), Some(&expected));
}

#[tokio::test]
async fn the_host_cluster_of_a_karmada_is_refused() {
    let host = Server::new("host").without("/apis/cluster.karmada.io");
    let error = read::karmada(&host.client()).await.unwrap_err().to_string();
    assert!(error.contains("not that of its host cluster"), "{error}");
}

#[tokio::test]
async fn a_hub_is_not_taken_over_by_itself() {
    let server = karmada_server();
    let args = args("entourage adopt --from-karmada k.yaml");
    let error = run(&args, &server.client(), &server.client(), &mut Vec::<u8>::new()).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("names the API server of this hub"), "{error}");
}

#[test]
fn a_cluster_of_the_same_name_is_the_same_one_by_its_id() {
    let mut karmada = Karmada::default();
    for (name, id) in [("m1", "a"), ("m2", "b"), ("m3", "")] {
        karmada.add_cluster(&json!({"metadata": {"name": name}, "spec": {"id": id, "syncMode": "Push"}}));
    }
    for name in ["m1", "m4"] {
        karmada.add_work(&json!({"metadata": {"namespace": format!("karmada-es-{name}"), "name": "w"}}));
    }
    let clusters = [
        cluster("m1", "a"),
        cluster("m2", "x"),
        cluster("m3", "c"),
        cluster("m5", "d"),
    ];
    let others = others(&karmada, &clusters);
    let words: Vec<&String> = others.values().collect();
    assert_eq!(words, ["Karmada's cluster m2 is another one (id b, not x)"]);
    let all = args("entourage adopt --from-karmada k.yaml");
    assert_eq!(missing(&karmada, &all, &clusters), ["m4"]);
    let one = args("entourage adopt --from-karmada k.yaml --cluster m1");
    assert!(missing(&karmada, &one, &clusters).is_empty());
}

#[test]
fn what_is_adopted_is_known_not_to_restart_pods() {
    let id = |name: &str| ResourceId::new(Gvk::new("apps/v1", "Deployment"), "shop", name);
    let plans = || {
        let plan = ["same", "pods", "lost"].map(|name| (id(name), Decision::Adopt));
        let left = (id("left"), Decision::NoTemplate);
        Plans::from([("m1".into(), plan.into_iter().chain([left]).collect())])
    };
    let nexts = Nexts::from([
        (("m1".into(), id("same")), Next::Metadata),
        (("m1".into(), id("pods")), Next::Pods("spec.template".into())),
    ]);
    let decided = |restarts: bool, unknown: bool| -> Vec<bool> {
        let mut plans = plans();
        settle(&mut plans, &nexts, Allowed { restarts, unknown });
        plans["m1"]
            .iter()
            .map(|(_, decision)| *decision == Decision::Adopt)
            .collect()
    };
    assert_eq!(decided(false, false), [true, false, false, false]);
    assert_eq!(decided(true, false), [true, true, false, false]);
    assert_eq!(decided(false, true), [true, false, true, false]);
}

#[test]
fn the_first_hazards_are_named_and_the_rest_is_counted() {
    let hazards = |count: usize| -> BTreeMap<NamespacedName, Hazard> {
        let works = (0..count).map(|at| NamespacedName::new("karmada-es-m1", &format!("w-{at:02}")));
        works.map(|name| (name, Hazard::WorkDeleted)).collect()
    };
    assert!(notes_of(&hazards(0)).is_empty());
    let notes = notes_of(&hazards(23));
    assert_eq!(notes.len(), 21);
    assert_eq!(
        notes.first().map(String::as_str),
        Some("Work karmada-es-m1/w-00: its Work is being deleted in Karmada, which would delete it")
    );
    assert_eq!(notes.last().map(String::as_str), Some("3 more"));
}

#[test]
fn only_an_object_of_this_hub_is_adopted_and_one_of_none_is_given_back() {
    let (state, karmada) = (HubState::default(), Karmada::default());
    let transfer = Transfer {
        former: "karmada".into(),
        hub: "hub".into(),
        cluster: "m1".into(),
        namespaces: BTreeMap::new(),
    };
    let adoption = Adoption {
        state: &state,
        karmada: &karmada,
        transfer: &transfer,
    };
    let back = Return {
        state: &state,
        karmada: &karmada,
        transfer: &transfer,
    };
    let rules: [(&dyn write::Rule, Option<Decision>, bool); 5] = [
        (&adoption, Some(Decision::Adopted), true),
        (&adoption, None, false),
        (&adoption, Some(Decision::NoWork), false),
        (&back, None, true),
        (&back, Some(Decision::NoWork), false),
    ];
    for (rule, decision, expected) in rules {
        assert_eq!(rule.is_done(decision.as_ref()), expected, "{decision:?}");
    }
}

#[test]
fn karmada_may_be_started_when_nothing_is_this_hubs_any_more() {
    let missing = ["m4".to_owned()];
    let returned = || Returned {
        has_hazards: false,
        is_complete: true,
        left: 0,
        is_of_some: false,
        missing: &[],
    };
    let may = "may be started again";
    for (returned, says) in [
        (returned(), may),
        (
            Returned {
                has_hazards: true,
                ..returned()
            },
            "do not start Karmada's controllers",
        ),
        (
            Returned {
                is_complete: false,
                ..returned()
            },
            "not all",
        ),
        (
            Returned {
                left: 2,
                ..returned()
            },
            "2 objects of a Karmada stay this hub's",
        ),
        (
            Returned {
                is_of_some: true,
                ..returned()
            },
            "run this again without --cluster before Karmada's controllers are started",
        ),
        (
            Returned {
                missing: &missing,
                ..returned()
            },
            "this hub does not have m4",
        ),
    ] {
        let next = returned.next();
        assert!(
            next.contains(says) && (says == may || !next.contains(may)),
            "{next}"
        );
    }
    let id = |name: &str| ResourceId::new(Gvk::new("v1", "ConfigMap"), "shop", name);
    let plan = [
        (id("a"), Decision::Return),
        (id("b"), Decision::NotAdopted),
        (id("c"), Decision::NoWork),
        (id("d"), Decision::Hazardous(Hazard::WorkDeleted)),
    ];
    assert_eq!(still_ours(&plan), 2);
}

#[test]
fn steps_exclude_each_other() {
    for line in [
        "entourage adopt --undo",
        "entourage adopt --confirm --yes",
        "entourage adopt --allow-restarts --former-hub a --cluster m1 --yes",
        "entourage adopt --from-karmada k.yaml --allow-restarts --yes",
        "entourage adopt --from-karmada k.yaml --allow-unknown --yes",
        "entourage adopt --from-karmada k.yaml --former-hub a",
        "entourage adopt --from-karmada k.yaml --undo --confirm",
        "entourage adopt --from-karmada k.yaml --cluster m1 --undo --allow-unknown",
        "entourage adopt --karmada-context k",
        "entourage adopt --former-hub a --karmada-context k",
        "entourage adopt --former-hub a --undo",
        "entourage adopt --former-hub a --confirm",
    ] {
        assert!(Cli::try_parse_from(line.split(' ')).is_err(), "{line}");
    }
    args(
        "entourage adopt --from-karmada k.yaml --karmada-context karmada --cluster m1 --member m2=m2.yaml --allow-restarts --allow-unknown --yes",
    );
    args("entourage adopt --from-karmada k.yaml --undo --yes");
}

//! The example, a change of it, a conflict, a member that cannot be read.

use entourage_api::keys::annotation;
use serde_json::{Value, json};

use super::*;
use crate::watches;
use entourage_core::{
    inspection::{
        explanation::{Effect, Explanation, Step, rule},
        impact::{self, Relation},
        tree, why,
    },
    object::Gvk,
    observation,
};

fn cluster(name: &str) -> Value {
    json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": name},
        "spec": {"syncMode": "Push", "apiEndpoint": "https://x"}})
}

fn policy(clusters: &[&str]) -> Value {
    json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
        "metadata": {"namespace": "default", "name": "web"},
        "spec": {"propagateDeps": true,
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}],
            "placement": {"clusterAffinity": {"clusterNames": clusters}}}})
}

fn deployment(config_map: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "default", "name": "web"},
        "spec": {"replicas": 1, "template": {"spec": {"containers": [{"name": "web", "image": "nginx"}],
            "volumes": [{"name": "c", "configMap": {"name": config_map}}]}}}})
}

fn config_map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default", "name": name},
        "data": {"key": value}})
}

fn simulated(objects: Vec<Value>) -> Simulation {
    simulated_by(Config::new("hub"), objects)
}

fn simulated_by(config: Config, objects: Vec<Value>) -> Simulation {
    let mut simulation = Simulation::new(config, Time(1_700_000_000_000));
    for object in objects {
        simulation.apply(None, object);
    }
    assert_eq!(simulation.run_alone(), Progress::Settled);
    simulation
}

/// `member1 created ConfigMap default/c`, without unchanged objects.
fn lines(report: &Report) -> Vec<String> {
    let changes = report.outcomes.iter().filter(|each| each.fate != Fate::Unchanged);
    changes
        .filter_map(|each| match &each.place {
            Place::Hub => None,
            Place::Member(name) => Some(format!("{name} {} {}", each.fate.word(), each.object)),
        })
        .collect()
}

#[test]
fn the_example_arrives_with_what_it_needs() {
    let objects = vec![
        cluster("m1"),
        cluster("m2"),
        policy(&["m1"]),
        deployment("c"),
        config_map("c", "1"),
    ];
    let simulation = simulated(objects);
    let report = simulation.report();
    assert_eq!(
        lines(&report),
        [
            "m1 created ConfigMap default/c",
            "m1 created Deployment default/web"
        ]
    );
    assert_eq!(report.notes, [], "{:#?}", report.notes);
    let why: Vec<&str> = report
        .outcomes
        .iter()
        .filter(|each| each.place != Place::Hub)
        .map(|each| each.message.as_str())
        .collect();
    assert_eq!(
        why,
        ["dependency of Deployment default/web", "by policy default/web"]
    );
}

#[test]
fn what_is_needed_over_an_account_arrives_too_and_says_for_whom() {
    let mut acting = deployment("c");
    acting["spec"]["template"]["spec"]["serviceAccountName"] = json!("robot");
    let named = |kind: &str, name: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"namespace": "default", "name": name}});
    let mut account = named("ServiceAccount", "robot");
    account["imagePullSecrets"] = json!([{"name": "registry"}, {"name": "gone"}]);
    let objects = vec![
        cluster("m1"),
        policy(&["m1"]),
        acting,
        config_map("c", "1"),
        account,
        named("Secret", "registry"),
    ];
    let report = simulated(objects).report();
    assert_eq!(
        lines(&report),
        [
            "m1 created ConfigMap default/c",
            "m1 created Secret default/registry",
            "m1 created ServiceAccount default/robot",
            "m1 created Deployment default/web"
        ]
    );
    let of_registry = report
        .outcomes
        .iter()
        .find(|each| each.place != Place::Hub && each.object.to_string() == "Secret default/registry");
    assert_eq!(
        of_registry.map(|each| each.message.as_str()),
        Some("dependency of Deployment default/web")
    );
    let reported: Vec<&str> = report.notes.iter().map(|note| note.message.as_str()).collect();
    assert_eq!(
        reported,
        [
            "Secret default/gone does not exist on the hub: create it, or remove the reference in ServiceAccount \
             default/robot"
        ]
    );
}

#[test]
fn what_is_missing_and_what_nobody_selects_is_reported() {
    let report = simulated(vec![
        cluster("m1"),
        policy(&["m1"]),
        deployment("missing"),
        config_map("other", "1"),
    ])
    .report();
    assert_eq!(lines(&report), ["m1 created Deployment default/web"]);
    let reasons: Vec<&str> = report.notes.iter().map(|note| note.reason.as_str()).collect();
    assert_eq!(reasons, ["NotSelected", "DependencyMissing"]);
    assert!(report.notes[1].message.contains("missing"), "{:?}", report.notes);
}

/// The result of one simulation is the input of another.
fn again(first: &Simulation, unreadable: &[&str], files: &[Value]) -> Report {
    let mut second = Simulation::new(
        first.process.engine.config.clone(),
        first.servers.now.plus(60_000),
    );
    for file in files {
        let id = ResourceId::of(file).unwrap();
        let before = first.servers.hub.get(&id).cloned();
        second.apply(before.clone(), crate::overlay::overlay(before.as_ref(), file));
    }
    loop {
        match second.run() {
            Progress::Asks(questions) => {
                for question in questions {
                    let answer = reported(first, unreadable, &question);
                    second.answer(question, answer);
                }
            }
            progress => {
                assert_eq!(progress, Progress::Settled);
                return second.report();
            }
        }
    }
}

fn is_secret(gvk: &Gvk) -> bool {
    *gvk == Gvk::new("v1", "Secret")
}

fn reported(world: &Simulation, unreadable: &[&str], question: &Question) -> Answer {
    let of = |objects: &Objects, watch: &Watch| {
        objects
            .iter()
            .filter(|(id, object)| watches::covers(watch, "hub", id, object))
            .map(|(_, object)| object.clone())
            .collect()
    };
    Answer::Objects(match question {
        Question::List(watch) => match watch.server() {
            Server::Hub
                if is_secret(&observation::kind_read_by(watch)) && unreadable.contains(&"hub secrets") =>
            {
                return Answer::Unreadable("403".into());
            }
            Server::Hub => of(&world.servers.hub, watch),
            Server::Member(name) if unreadable.contains(&&*name) => {
                return Answer::Unreadable("refused".into());
            }
            Server::Member(name) => of(&world.servers.members[&name], watch),
        },
        Question::Template(id) if is_secret(&id.gvk) && unreadable.contains(&"hub secrets") => {
            return Answer::Unreadable("403".into());
        }
        Question::Template(id) => world.servers.hub.get(id).cloned().into_iter().collect(),
        Question::Copy(name, id) => world
            .servers
            .members
            .get(name)
            .and_then(|objects| objects.get(id))
            .cloned()
            .into_iter()
            .collect(),
    })
}

fn base() -> Simulation {
    simulated(vec![
        cluster("m1"),
        cluster("m2"),
        policy(&["m1"]),
        deployment("c"),
        config_map("c", "1"),
        config_map("d", "1"),
    ])
}

#[test]
fn a_settled_hub_changes_nothing() {
    let report = again(&base(), &[], &[deployment("c"), policy(&["m1"])]);
    assert!(!report.has_changes(), "{:#?}", report.outcomes);
    assert_eq!(report.notes, []);
}

#[test]
fn a_move_creates_there_and_removes_here_dependencies_too() {
    let mut report = lines(&again(&base(), &[], &[policy(&["m2"])]));
    report.sort();
    assert_eq!(
        report,
        [
            "m1 removed ConfigMap default/c",
            "m1 removed Deployment default/web",
            "m2 created ConfigMap default/c",
            "m2 created Deployment default/web",
        ]
    );
}

#[test]
fn another_reference_takes_one_dependency_away_and_brings_the_other() {
    for unreadable in [&[][..], &["m1"]] {
        let report = again(&base(), unreadable, &[deployment("d")]);
        assert_eq!(
            lines(&report),
            [
                "m1 removed ConfigMap default/c",
                "m1 created ConfigMap default/d",
                "m1 changed Deployment default/web",
            ],
            "unreadable: {unreadable:?}"
        );
        assert_eq!(report.unread.len(), unreadable.len());
    }
}

#[test]
fn what_stands_there_and_is_not_ours_is_reported_as_refused() {
    let mut world = base();
    let id = ResourceId::of(&config_map("c", "1")).unwrap();
    let foreign = world
        .servers
        .versions
        .created(&id, config_map("c", "theirs"), world.servers.now);
    world.servers.members.get_mut("m2").unwrap().insert(id, foreign);
    let report = again(&world, &[], &[policy(&["m1", "m2"])]);
    assert_eq!(
        lines(&report),
        [
            "m2 refused ConfigMap default/c",
            "m2 created Deployment default/web"
        ]
    );
    let refused = report.outcomes.iter().find(|each| each.fate == Fate::Refused);
    // `entourage get copies` recognises a conflict by these words.
    assert!(
        refused.is_some_and(|each| each.message.contains("conflictResolution")
            && each.message.contains("is not managed by this hub")),
        "{refused:?}"
    );
}

#[test]
fn a_template_that_may_not_be_read_is_not_taken_as_deleted() {
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "default", "name": "s"}});
    let world = simulated(vec![
        cluster("m1"),
        cluster("m2"),
        policy(&["m1"]),
        with_secret("s"),
        secret,
    ]);
    let mut changed = with_secret("s");
    changed["spec"]["replicas"] = json!(2);
    let report = again(&world, &["hub secrets"], &[changed]);
    let changes = report.outcomes.iter().filter(|each| each.fate != Fate::Unchanged);
    let changes: Vec<String> = changes
        .map(|each| format!("{:?} {} {}", each.place, each.fate.word(), each.object))
        .collect();
    assert_eq!(
        changes,
        [
            "Hub changed Deployment default/web",
            "Hub changed ResourceBinding default/web-deployment",
            "Member(\"m1\") changed Deployment default/web",
        ]
    );
    let notes: Vec<(&str, &str)> = report
        .notes
        .iter()
        .map(|note| (&*note.object, &*note.reason))
        .collect();
    assert_eq!(notes, [("Secret default/s", "Unreadable")], "{:#?}", report.notes);
    assert!(report.notes[0].message.contains("403"), "{:?}", report.notes);
}

#[test]
fn a_policy_that_cannot_be_read_is_refused_and_not_passed_over() {
    let mut policy = policy(&["m1"]);
    policy["spec"]["placement"]["clusterAffinity"]["clusterNames"] = json!("m1");
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "default", "name": "s"},
        "data": "x", "stringData": {"a": "b"}});
    let simulation = simulated(vec![cluster("m1"), policy, deployment("c"), secret]);
    let report = simulation.report();
    let refused = report.outcomes.iter().filter(|each| each.fate == Fate::Refused);
    let refused: Vec<String> = refused
        .map(|each| format!("{:?} {}", each.place, each.object))
        .collect();
    assert_eq!(
        refused,
        ["Hub Secret default/s", "Hub PropagationPolicy default/web"]
    );
    assert_eq!(simulation.given().count(), 4);
}

fn with_secret(name: &str) -> Value {
    let mut workload = deployment("c");
    workload["spec"]["template"]["spec"]["volumes"] = json!([{"name": "s", "secret": {"secretName": name}}]);
    workload
}

#[test]
fn no_value_of_a_secret_is_in_a_report() {
    let workload = with_secret("s");
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "default", "name": "s"},
        "stringData": {"password": "hunter2-canary"}});
    let world = simulated(vec![cluster("m1"), policy(&["m1"]), workload, secret.clone()]);
    let report = world.report();
    assert!(
        lines(&report).contains(&"m1 created Secret default/s".to_owned()),
        "{:?}",
        lines(&report)
    );
    let mut next = secret;
    next["stringData"]["password"] = json!("other-canary");
    let later = again(&world, &[], &[next]);
    assert_eq!(lines(&later), ["m1 changed Secret default/s"]);
    for report in [report, later] {
        let text = format!("{report:?}{}", serde_json::to_string(&report).unwrap());
        assert!(!text.contains("canary") && !text.contains("aHVudGVy"), "{text}");
    }
}

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

fn distribution(value: &str, targets: &Value) -> Value {
    json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "ResourceDistribution", "metadata": {"name": "d"},
        "spec": {"resource": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"key": value}},
            "targets": targets}})
}

fn included(names: &[&str]) -> Value {
    let list: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
    json!({"includedNamespaces": {"list": list}})
}

fn distributed(targets: &Value) -> Simulation {
    let config = Config {
        distribute: true,
        ..Config::new("hub")
    };
    let mut objects = vec![cluster("m1"), cluster("m2"), distribution("1", targets)];
    objects.extend(["a", "b"].map(namespace));
    simulated_by(config, objects)
}

/// `hub created ConfigMap a/settings`, of the copies that change.
fn copies(report: &Report) -> Vec<String> {
    let copies = report
        .outcomes
        .iter()
        .filter(|each| &*each.object.name == "settings" && each.fate != Fate::Unchanged);
    copies
        .map(|each| {
            let server = match &each.place {
                Place::Hub => "hub",
                Place::Member(name) => &**name,
            };
            format!("{server} {} {}", each.fate.word(), each.object)
        })
        .collect()
}

#[test]
fn a_distribution_creates_changes_and_removes_copies_on_the_hub() {
    let first = distributed(&included(&["a", "b"]));
    assert_eq!(
        copies(&first.report()),
        [
            "hub created ConfigMap a/settings",
            "hub created ConfigMap b/settings"
        ]
    );
    let same = again(&first, &[], &[distribution("1", &included(&["a", "b"]))]);
    assert!(!same.has_changes(), "{:#?}", same.outcomes);
    let other = again(&first, &[], &[distribution("2", &included(&["b", "gone"]))]);
    assert_eq!(
        copies(&other),
        [
            "hub removed ConfigMap a/settings",
            "hub changed ConfigMap b/settings",
            "hub waiting ConfigMap gone/settings"
        ]
    );
    let why: Vec<&str> = other.outcomes.iter().map(|each| each.message.as_str()).collect();
    assert!(
        why.contains(&"by ResourceDistribution d: the namespace does not exist"),
        "{why:?}"
    );
}

#[test]
fn a_distribution_to_members_is_planned_there_and_a_conflict_is_reported() {
    let mut targets = included(&["a"]);
    targets["clusters"] = json!({"clusterNames": ["m1"]});
    let mut first = distributed(&targets);
    assert_eq!(copies(&first.report()), ["m1 created ConfigMap a/settings"]);

    let mut theirs = config_map("settings", "theirs");
    theirs["metadata"]["namespace"] = json!("a");
    let id = ResourceId::of(&theirs).unwrap();
    let foreign = first.servers.versions.created(&id, theirs, first.servers.now);
    first.servers.members.get_mut("m2").unwrap().insert(id, foreign);
    targets["clusters"] = json!({"clusterNames": ["m2"]});
    let moved = again(&first, &[], &[distribution("1", &targets)]);
    assert_eq!(
        copies(&moved),
        [
            "m1 removed ConfigMap a/settings",
            "m2 refused ConfigMap a/settings"
        ]
    );
}

#[test]
fn a_member_serves_a_kind_once_its_definition_is_there() {
    let mut ready = cluster("m1");
    ready["status"] = json!({"apiEnablements": [{"groupVersion": "apiextensions.k8s.io/v1",
            "resources": [{"name": "customresourcedefinitions", "kind": "CustomResourceDefinition"}]}],
        "conditions": [{"type": "CompleteAPIEnablements", "status": "True", "reason": "FullAPIEnablements",
            "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]});
    let policy_index = |kind: &str, selector: Value| {
        json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": kind,
            "metadata": {"namespace": if kind == "PropagationPolicy" { "default" } else { "" }, "name": "cups"},
            "spec": {"resourceSelectors": [selector], "placement": {"clusterAffinity": {"clusterNames": ["m1"]}}}})
    };
    let crd = "apiextensions.k8s.io/v1";
    let report = simulated(vec![
        ready,
        json!({"apiVersion": crd, "kind": "CustomResourceDefinition", "metadata": {"name": "cups.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "cups", "kind": "Cup"},
                "versions": [{"name": "v1", "served": true, "storage": true}]}}),
        json!({"apiVersion": "example.com/v1", "kind": "Cup", "metadata": {"namespace": "default", "name": "mine"}}),
        policy_index("ClusterPropagationPolicy", json!({"apiVersion": crd, "kind": "CustomResourceDefinition"})),
        policy_index("PropagationPolicy", json!({"apiVersion": "example.com/v1", "kind": "Cup"})),
    ])
    .report();
    assert!(
        lines(&report).contains(&"m1 created Cup default/mine".to_owned()),
        "{:#?} {:#?}",
        report.outcomes,
        report.notes
    );
}

#[test]
fn a_claim_that_holds_data_is_planned_as_released_and_says_why() {
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"namespace": "default", "name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    let mut workload = deployment("c");
    workload["spec"]["template"]["spec"]["volumes"] =
        json!([{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]);
    let moved = |is_bound: bool| {
        let mut world = simulated(vec![
            cluster("m1"),
            cluster("m2"),
            policy(&["m1"]),
            workload.clone(),
            claim.clone(),
        ]);
        let id = ResourceId::of(&claim).unwrap();
        let objects = world.servers.members.get_mut("m1").unwrap();
        let mut copy = objects.get(&id).unwrap().clone();
        if is_bound {
            copy["status"] = json!({"phase": "Bound"});
        }
        objects.insert(id, copy);
        again(&world, &[], &[policy(&["m2"])])
    };
    let of_claim = |report: &Report| {
        report
            .outcomes
            .iter()
            .find(|each| each.place == Place::Member("m1".into()) && &*each.object.name == "data")
            .map(|each| (each.fate, each.message.clone()))
            .unwrap()
    };
    assert_eq!(of_claim(&moved(false)).0, Fate::Removed);
    let (fate, why) = of_claim(&moved(true));
    assert_eq!(fate, Fate::Released);
    assert!(
        why.contains("it holds data and is kept, without ownership metadata"),
        "{why}"
    );
}

#[test]
fn no_digest_of_a_distributed_secret_is_in_a_report() {
    let mut given = distribution("1", &included(&["a"]));
    given["spec"]["resource"] = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "settings"},
        "stringData": {"pin": "1234"}});
    let config = Config {
        distribute: true,
        ..Config::new("hub")
    };
    let world = simulated_by(config, vec![given, namespace("a")]);
    let report = world.report();
    assert_eq!(copies(&report), ["hub created Secret a/settings"]);
    let (id, copy) = world
        .servers
        .hub
        .iter()
        .find(|(id, _)| &*id.name == "settings")
        .unwrap();
    let digest = &copy["metadata"]["annotations"][annotation::DISTRIBUTED_HASH];
    let digest = digest.as_str().unwrap();
    let text = format!("{report:?}{}", serde_json::to_string(&report).unwrap());
    assert!(!digest.is_empty() && !text.contains(digest), "{id} {text}");
}

#[test]
fn what_a_rebalancer_names_is_divided_anew_and_nothing_is_without_one() {
    let mut divided = policy(&["m1", "m2"]);
    divided["spec"]["placement"]["replicaScheduling"] = json!({"replicaSchedulingType": "Divided"});
    let mut web = deployment("c");
    web["spec"]["replicas"] = json!(4);
    let with_taints = |taints: Value| {
        let mut object = cluster("m2");
        object["spec"]["taints"] = taints;
        object
    };
    let full = with_taints(json!([{"key": "full", "effect": "NoSchedule"}]));
    let first = simulated(vec![cluster("m1"), full, divided, web, config_map("c", "1")]);
    let joined = with_taints(json!([]));
    assert_eq!(
        lines(&again(&first, &[], std::slice::from_ref(&joined))),
        [] as [&str; 0]
    );
    let rebalancer = json!({
        "apiVersion": "apps.karmada.io/v1alpha1", "kind": "WorkloadRebalancer", "metadata": {"name": "all"},
        "spec": {"workloads": [
            {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web"},
        ]},
    });
    let report = again(&first, &[], &[joined, rebalancer]);
    assert_eq!(
        lines(&report),
        [
            "m1 changed Deployment default/web",
            "m2 created ConfigMap default/c",
            "m2 created Deployment default/web"
        ]
    );
}

#[test]
fn a_member_in_pull_mode_stays_as_it_is_and_what_is_written_for_it_counts_as_applied() {
    let pulled = |ready: &str| {
        let mut cluster = cluster("m1");
        cluster["spec"]["syncMode"] = json!("Pull");
        cluster["status"] = json!({"kubernetesVersion": "v1.36.0", "conditions": [{"type": "Ready", "status": ready,
            "reason": "ClusterStatusUnknown", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]});
        cluster
    };
    for ready in ["True", "Unknown"] {
        let tolerates = json!([{"operator": "Exists"}]);
        let mut policy = policy(&["m1"]);
        policy["spec"]["placement"]["clusterTolerations"] = tolerates;
        let objects = vec![pulled(ready), policy, deployment("c"), config_map("c", "1")];
        let simulation = simulated(objects);
        let report = simulation.report();
        assert_eq!(
            lines(&report),
            [
                "m1 created ConfigMap default/c",
                "m1 created Deployment default/web"
            ],
            "{ready}: {:#?}",
            report.notes
        );
        let (_, cluster) = simulation
            .hub()
            .find(|(id, _)| is_cluster(id))
            .expect("the Cluster");
        assert_eq!(cluster["status"]["conditions"][0]["status"], ready, "{cluster}");
    }
}

/// `present`, `pending` …, by cluster.
fn presences(explanation: &Explanation) -> Vec<String> {
    let all = explanation.clusters.iter();
    all.map(|each| format!("{} {}", each.cluster, each.presence))
        .collect()
}

/// The messages of a rule about an object, or about one of its clusters.
fn messages_of<'a>(steps: &'a [Step], rule: &str) -> Vec<&'a str> {
    let of_it = steps.iter().filter(|step| step.rule == rule);
    of_it.map(|step| step.message.as_str()).collect()
}

fn web() -> ResourceId {
    ResourceId::new(Gvk::new("apps/v1", "Deployment"), "default", "web")
}

#[test]
fn a_run_that_observes_changes_nothing_and_explains_what_is_about_to_happen() {
    let mut simulation = Simulation::observing(Config::new("hub"), Time(1_700_000_000_000));
    for object in [
        cluster("member1"),
        cluster("member2"),
        policy(&["member1"]),
        deployment("c"),
    ] {
        simulation.know(object);
    }
    let before: Vec<ResourceId> = simulation.hub().map(|(id, _)| id.clone()).collect();
    assert_eq!(simulation.run_alone(), Progress::Settled);
    let after: Vec<ResourceId> = simulation.hub().map(|(id, _)| id.clone()).collect();
    assert_eq!(after, before);
    assert!(!simulation.report().has_changes());
    let explanation = why::why(simulation.engine(), &web(), true, simulation.now());
    assert_eq!(presences(&explanation), ["member1 absent", "member2 absent"]);
    let claim =
        "PropagationPolicy default/web is about to claim it: it selects it by its name, with priority 0";
    assert_eq!(messages_of(&explanation.steps, rule::POLICY), [claim]);
    assert!(!explanation.is_there());
}

#[test]
fn a_dependency_is_there_because_of_its_referrer_and_every_filter_is_named() {
    let objects = vec![
        cluster("member1"),
        cluster("member2"),
        policy(&["member1"]),
        config_map("c", "1"),
        deployment("c"),
    ];
    let simulation = simulated(objects);
    let (engine, now) = (simulation.engine(), simulation.now());
    let explanation = why::why(engine, &web(), true, now);
    assert_eq!(presences(&explanation), ["member1 present", "member2 absent"]);
    let objection = "leaves it out: not selected by clusterAffinity";
    let filters = &explanation.clusters[1].steps;
    let objecting = filters.iter().filter(|step| step.effect == Effect::Against);
    let objecting: Vec<_> = objecting
        .map(|step| (step.filter, step.message.as_str()))
        .collect();
    assert_eq!(objecting, [(Some("clusterAffinity"), objection)]);

    let settings = ResourceId::new(Gvk::new("v1", "ConfigMap"), "default", "c");
    let explanation = why::why(engine, &settings, true, now);
    assert_eq!(presences(&explanation), ["member1 present", "member2 absent"]);
    let wanted =
        "Deployment default/web refers to it, and its policy propagates dependencies: to member1 (1)";
    assert_eq!(messages_of(&explanation.steps, rule::DEPENDENCY), [wanted]);

    let impact = impact::impact(engine, &settings, now);
    let touched: Vec<String> = impact
        .touched
        .iter()
        .map(|each| format!("{} {}", each.relation.word(), each.object))
        .collect();
    assert_eq!(
        touched,
        ["copy ConfigMap default/c", "referrer Deployment default/web"]
    );

    let tree = tree::tree(engine, &web(), true, now);
    assert!(tree.exists == Some(true) && tree.is_there());
    let below: Vec<String> = tree
        .dependencies
        .iter()
        .map(|node| node.object.to_string())
        .collect();
    assert_eq!(below, ["ConfigMap default/c"]);
}

#[test]
fn a_workload_of_a_removed_cluster_moves_or_is_stranded() {
    let objects = |clusters: &[&str]| {
        vec![
            cluster("member1"),
            cluster("member2"),
            policy(clusters),
            deployment("c"),
        ]
    };
    let member1 = ResourceId::new(Gvk::new("cluster.karmada.io/v1alpha1", "Cluster"), "", "member1");
    for (clusters, relation) in [
        (&["member1"][..], Relation::Stranded),
        (&["member1", "member2"][..], Relation::Leaves),
    ] {
        let simulation = simulated(objects(clusters));
        let impact = impact::impact(simulation.engine(), &member1, simulation.now());
        let relations: Vec<Relation> = impact.touched.iter().map(|each| each.relation).collect();
        assert_eq!(relations, [relation], "{clusters:?}");
    }
}

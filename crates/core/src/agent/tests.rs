//! The plans of the agent for Works and copies, as tables.

use std::collections::BTreeSet;

use entourage_api::keys::{annotation, finalizer, label};
use serde_json::{Value, json};

use super::*;
use crate::{
    interpreter::Interpretation,
    observation::{self, Probe, project},
};

mod events;
mod tasks;

const NAMESPACE: &str = "karmada-es-m1";

fn cluster(mode: &str, id: &str) -> Value {
    json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
        "metadata": {"name": "m1", "uid": "c", "resourceVersion": "1", "generation": 1},
        "spec": {"syncMode": mode, "id": id}})
}

fn config_map() -> ResourceId {
    ResourceId::new(Gvk::new("v1", "ConfigMap"), "shop", "a")
}

fn manifest() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop"}})
}

/// A Work of this generation and version.
fn work(generation: i64, version: u64) -> Value {
    json!({"metadata": {"name": "w", "namespace": NAMESPACE, "uid": "w", "resourceVersion": version.to_string(),
        "generation": generation, "finalizers": [finalizer::EXECUTION]},
        "spec": {"workload": {"manifests": [manifest()]}}})
}

fn object(version: u64) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop", "uid": "o",
        "resourceVersion": version.to_string(), "labels": {label::MANAGED: "true"},
        "annotations": {annotation::WORK_NAMESPACE: NAMESPACE, annotation::WORK_NAME: "w"}}})
}

fn copy(version: u64) -> Copy {
    observation::copy(&Interpretation::default(), &config_map().gvk, &object(version))
}

/// An agent, and the time.
struct World {
    agent: Agent,
    now: Time,
    notes: Vec<String>,
    events: Vec<Event>,
}

impl World {
    fn new() -> Self {
        let agent = Agent::new(Config {
            cluster: "m1".into(),
            namespace: NAMESPACE.into(),
            collects_capacity: false,
            failure_threshold: 30_000,
            success_threshold: 0,
        });
        let mut world = Self {
            agent,
            now: Time(1_000_000),
            notes: Vec::new(),
            events: Vec::new(),
        };
        world.see(Observation::Identified("m1".into(), "k".into()));
        world.list(Watch::Clusters, &[cluster("Pull", "k")], 1);
        world.list(Watch::Works, &[], 1);
        world
    }

    /// With the Work `w`, applied and reported.
    fn settled() -> Self {
        let mut world = Self::new();
        world.list(Watch::Works, &[work(1, 2)], 2);
        world.list(world.agent.copies_of(&config_map().gvk), &[], 2);
        world.applies(None, true, 5);
        assert_eq!(world.step(), "report Applied=True Dispatching=True");
        world.accepts(3);
        assert_eq!(world.step(), "-");
        world
    }

    fn see(&mut self, seen: Observation) -> BTreeSet<Key> {
        let observed = self.agent.observe(seen, self.now);
        self.notes.extend(observed.notes);
        self.events.extend(observed.events);
        observed.dirty
    }

    fn see_object(&mut self, watch: &Watch, object: &Value) {
        let subject = project(watch, &Interpretation::default(), object).expect("it can be read");
        self.see(Observation::Seen(subject));
    }

    fn list(&mut self, watch: Watch, objects: &[Value], revision: u64) {
        self.see(Observation::Listing {
            watch: watch.clone(),
            revision,
        });
        for object in objects {
            self.see_object(&watch, object);
        }
        let of_it = |each| observation::which(&watch, each);
        let present = objects.iter().filter_map(of_it).collect();
        self.see(Observation::Listed {
            watch,
            present,
            revision,
        });
    }

    fn plan(&self) -> Plan {
        self.agent.plan(&Key::Work("w".into()), self.now)
    }

    /// The next step of the Work, in words.
    fn step(&self) -> String {
        match self.plan() {
            Plan { step: Some(step), .. } => match step {
                Step::Apply(order) => {
                    let object = &order.objects[0];
                    format!("apply{}", if object.may_exist { " read" } else { "" })
                }
                Step::Remove(order) => format!("remove{}", if order.preserves { " preserving" } else { "" }),
                Step::Write(write) => match write.sent {
                    Sent::Finalizers(all) => format!("finalizers {}", all.join(",")),
                    Sent::Report(conditions, _) => {
                        let all = conditions
                            .iter()
                            .map(|each| format!(" {}={}", each.type_, each.status));
                        format!("report{}", all.collect::<String>())
                    }
                    Sent::Cluster => unreachable!(),
                },
            },
            Plan {
                again_at: Some(time), ..
            } => format!("wait {}", time.0 - self.now.0),
            Plan { .. } => "-".into(),
        }
    }

    fn end(&mut self, outcome: Outcome) {
        let observed = self.agent.ended(&Key::Work("w".into()), outcome, self.now);
        self.notes.extend(observed.notes);
        self.events.extend(observed.events);
    }

    /// The object is applied in the version that is planned.
    fn applies(&mut self, differed: Option<&str>, created: bool, version: u64) {
        let Some(Step::Apply(order)) = self.plan().step else {
            panic!("{}", self.step());
        };
        let done = Applied::Done {
            copy: Box::new(copy(version)),
            resource: "configmaps".into(),
            differed: differed.map(Into::into),
            created,
        };
        self.end(Outcome::Applied(order.source, vec![(0, config_map(), done)]));
    }

    fn fails(&mut self, message: &str, passes: bool) {
        let Some(Step::Apply(order)) = self.plan().step else {
            panic!("{}", self.step());
        };
        let message = message.into();
        self.end(Outcome::Applied(
            order.source,
            vec![(0, config_map(), Applied::Failed { message, passes })],
        ));
    }

    /// The hub accepts the planned write.
    fn accepts(&mut self, version: u64) -> Value {
        let Some(Step::Write(write)) = self.plan().step else {
            panic!("{}", self.step());
        };
        let patch = write.patch.clone();
        self.end(Outcome::Written(
            Box::new(write),
            version.to_string().as_str().into(),
        ));
        patch
    }

    fn removed(&mut self, removed: Removed) {
        self.end(Outcome::Removed("w".into(), vec![(0, config_map(), removed)]));
    }

    fn see_work(&mut self, edit: impl FnOnce(&mut Value)) {
        let mut edited = work(2, 20);
        // As the hub has stored it.
        if let Some(state) = self.agent.works.get("w") {
            edited["status"]["conditions"] = json!(state.work.conditions);
        }
        edit(&mut edited);
        self.see_object(&Watch::Works, &edited);
    }

    fn gone(&mut self, which: ObjectRef) {
        self.see(Observation::Gone {
            which,
            uid: None,
            revision: Some(100),
        });
    }
}

fn deleted(work: &mut Value) {
    work["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
}

#[test]
fn a_work_is_applied_and_reported_once() {
    let mut world = World::new();
    world.list(Watch::Works, &[work(1, 2)], 2);
    // The kind is not listed: the object may exist.
    assert_eq!(world.step(), "apply read");
    world.list(world.agent.copies_of(&config_map().gvk), &[], 2);
    assert_eq!(world.step(), "apply");
    world.applies(None, true, 5);
    let patch = world.accepts(3);
    assert_eq!(patch["metadata"], json!({"uid": "w", "resourceVersion": "2"}));
    assert_eq!(patch["status"]["conditions"][0]["reason"], "AppliedSuccessful");
    assert_eq!(patch["status"]["conditions"][0]["observedGeneration"], 1);
    assert_eq!(
        patch["status"]["manifestStatuses"],
        json!([{"identifier": {"ordinal": 0, "version": "v1", "kind": "ConfigMap", "resource": "configmaps",
            "namespace": "shop", "name": "a"}, "health": "Healthy"}])
    );
    assert_eq!(world.step(), "-");
}

#[test]
fn after_a_restart_a_work_is_compared_and_nothing_is_written() {
    let mut before = World::settled();
    let state = before.agent.works.remove("w").unwrap().work;
    let mut world = World::new();
    let mut stored = work(1, 3);
    stored["status"]["conditions"] = json!(state.conditions);
    stored["status"]["manifestStatuses"] = json!([{"identifier": {"ordinal": 0, "version": "v1", "kind": "ConfigMap",
        "resource": "configmaps", "namespace": "shop", "name": "a"}, "health": "Healthy"}]);
    world.list(Watch::Works, &[stored], 3);
    assert_eq!(world.step(), "apply read");
    world.list(world.agent.copies_of(&config_map().gvk), &[object(5)], 6);
    assert_eq!(world.step(), "apply read");
    world.applies(None, false, 5);
    assert_eq!(world.step(), "-");
}

#[test]
fn a_new_version_is_applied_and_an_old_event_changes_nothing() {
    let mut world = World::settled();
    world.see_object(&Watch::Works, &work(9, 1));
    assert_eq!(world.step(), "-");
    world.see_work(|_| {});
    assert_eq!(world.step(), "apply read");
    world.applies(Some("data.k"), false, 8);
    assert_eq!(world.step(), "report Applied=True Dispatching=True");
    let patch = world.accepts(21);
    assert_eq!(patch["status"]["conditions"][0]["observedGeneration"], 2);
    assert!(
        world.notes.is_empty(),
        "a new version is no drift: {:?}",
        world.notes
    );
}

#[test]
fn drift_is_corrected_at_once_and_then_with_back_off() {
    let mut world = World::settled();
    let copies = world.agent.copies_of(&config_map().gvk);
    let mut waits = Vec::new();
    for version in 1..5_u64 {
        world.see_object(&copies, &object(10 * version));
        waits.push(world.step());
        world.now = world.plan().again_at.unwrap_or(world.now);
        world.applies(Some("data.k"), false, 10 * version + 1);
        if version == 3 {
            let patch = world.accepts(4);
            let message = patch["status"]["conditions"][0]["message"].to_string();
            assert!(message.contains("contended"), "{message}");
        }
    }
    assert_eq!(waits, ["apply read", "apply read", "wait 1000", "wait 2000"]);
    assert!(world.notes[0].contains("data.k"), "{:?}", world.notes);
    // Once it is over that is no longer reported.
    world.now = world.plan().again_at.expect("the end of the drift");
    let patch = world.accepts(5);
    let message = patch["status"]["conditions"][0]["message"].to_string();
    assert!(!message.contains("contended"), "{message}");
}

#[test]
fn an_object_that_is_deleted_on_the_cluster_comes_back() {
    let mut world = World::settled();
    world.gone(ObjectRef::Copy("m1".into(), config_map()));
    assert_eq!(world.step(), "apply");
    world.applies(None, true, 101);
    assert!(world.notes[0].contains("deletionTimestamp"), "{:?}", world.notes);
}

#[test]
fn a_failure_that_lasts_is_reported_and_retried() {
    for (passes, reported) in [(false, 1), (true, 3)] {
        let mut world = World::new();
        world.list(Watch::Works, &[work(1, 2)], 2);
        for round in 1..=reported {
            world.fails("namespace shop does not exist", passes);
            let step = world.step();
            if step == "report Dispatching=True" {
                assert!(round == 1 && passes);
                world.accepts(3);
            } else if step.starts_with("report") {
                assert_eq!(
                    (round, &*step),
                    (reported, "report Applied=False Dispatching=True")
                );
                let patch = world.accepts(3);
                let message = patch["status"]["conditions"][0]["message"]
                    .as_str()
                    .unwrap()
                    .to_owned();
                let expected = "Failed to apply all manifests (0/1): namespace shop does not exist";
                assert_eq!(message, expected);
            }
            world.now = world.now.plus(120_000);
        }
        assert_eq!(world.notes.len(), 1, "{:?}", world.notes);
        world.applies(None, true, 5);
        assert_eq!(world.step(), "report Applied=True Dispatching=True");
    }
}

#[test]
fn what_waits_for_a_namespace_is_retried_when_it_exists() {
    let mut world = World::new();
    world.list(Watch::Works, &[work(1, 2)], 2);
    world.fails("namespace shop does not exist", true);
    world.accepts(3);
    assert_eq!(world.step(), "wait 1000");
    let namespace = Gvk::new("v1", "Namespace");
    let object = json!({"metadata": {"name": "shop", "uid": "n", "resourceVersion": "9"}});
    world.see_object(&world.agent.copies_of(&namespace), &object);
    assert_eq!(world.step(), "apply read");
}

#[test]
fn a_suspended_work_is_not_applied() {
    let mut world = World::settled();
    world.see_work(|work| work["spec"]["suspendDispatching"] = json!(true));
    assert_eq!(world.step(), "report Applied=True Dispatching=False");
    let patch = world.accepts(21);
    assert_eq!(
        patch["status"].get("manifestStatuses"),
        None,
        "what is reported stays"
    );
    assert_eq!(world.step(), "-");
    world.see_work(|work| work["metadata"]["resourceVersion"] = json!("30"));
    assert_eq!(world.step(), "apply read");
}

#[test]
fn a_deleted_work_removes_its_object_and_then_its_finalizer() {
    let mut world = World::settled();
    world.see_work(deleted);
    assert_eq!(world.step(), "remove");
    world.removed(Removed::Failed("forbidden".into()));
    assert_eq!(world.step(), "wait 1000");
    world.now = world.now.plus(1_000);
    world.removed(Removed::Held);
    assert_eq!(world.step(), "wait 5000");
    // Its end is reported by the watch.
    world.gone(ObjectRef::Copy("m1".into(), config_map()));
    assert_eq!(world.step(), "remove");
    world.removed(Removed::Done(None));
    assert_eq!(world.step(), "finalizers ");
    let patch = world.accepts(21);
    assert_eq!(patch["metadata"]["finalizers"], json!([]));
    world.gone(ObjectRef::Work(NamespacedName::new(NAMESPACE, "w")));
    assert!(
        !world.notes.iter().any(|note| note.contains("vanished")),
        "{:?}",
        world.notes
    );
    assert_eq!(world.agent.count(), 0);
}

#[test]
fn a_removal_names_the_hub_of_its_manifest() {
    for (sentence, of_work, of_manifest, expected) in [
        ("none", None, None, ""),
        ("both", Some("h"), Some("h"), "h"),
        ("the manifest's counts", Some("h"), Some("i"), "i"),
        ("the Work's is not the object's", Some("h"), None, ""),
        ("a Work made by hand", None, Some("i"), "i"),
    ] {
        let mut world = World::settled();
        world.see_work(|work| {
            deleted(work);
            work["metadata"]["labels"][label::HUB] = json!(of_work);
            work["spec"]["workload"]["manifests"][0]["metadata"]["labels"][label::HUB] = json!(of_manifest);
        });
        let Some(Step::Remove(order)) = world.plan().step else {
            panic!("{}", world.step());
        };
        assert_eq!(&*order.objects[0].hub, expected, "{sentence}");
    }
}

#[test]
fn deletion_goes_before_suspension_and_preserves_if_reported() {
    let mut world = World::settled();
    world.see_work(|work| {
        deleted(work);
        work["spec"]["suspendDispatching"] = json!(true);
        work["spec"]["preserveResourcesOnDeletion"] = json!(true);
    });
    assert_eq!(world.step(), "remove preserving");
}

#[test]
fn nothing_is_applied_for_a_work_that_could_vanish() {
    let mut world = World::new();
    let mut plain = work(1, 2);
    plain["metadata"]["finalizers"] = json!(["others/one"]);
    world.list(Watch::Works, &[plain], 2);
    assert_eq!(
        world.step(),
        format!("finalizers others/one,{}", finalizer::EXECUTION)
    );
    world.accepts(3);
    assert_eq!(world.step(), "apply read");
}

#[test]
fn a_work_that_vanishes_removes_nothing() {
    let mut world = World::settled();
    world.list(Watch::Works, &[], 30);
    assert_eq!((world.agent.count(), &*world.step()), (0, "-"));
    assert!(
        world.notes[0].contains("kept on the cluster"),
        "{:?}",
        world.notes
    );
}

#[test]
fn an_object_that_a_work_no_longer_carries_is_kept() {
    let mut world = World::settled();
    world.see_work(|work| work["spec"]["workload"]["manifests"][0]["metadata"]["name"] = json!("b"));
    assert!(
        world.notes[0].contains("no longer in Work w"),
        "{:?}",
        world.notes
    );
    world.see_work(deleted);
    let Some(Step::Remove(order)) = world.plan().step else {
        panic!()
    };
    assert_eq!(order.objects.len(), 1);
}

#[test]
fn a_manifest_that_names_no_object_is_reported() {
    let mut world = World::new();
    let mut bad = work(1, 2);
    bad["spec"]["workload"]["manifests"] = json!([{"kind": "ConfigMap"}]);
    world.list(Watch::Works, &[bad], 2);
    assert_eq!(world.step(), "report Applied=False Dispatching=True");
}

#[test]
fn nothing_is_sent_to_a_cluster_that_may_not_be_the_right_one() {
    for (sentence, clusters, says) in [
        ("none", vec![], "does not exist on the hub"),
        ("push", vec![cluster("Push", "k")], "is in Push mode"),
        (
            "another",
            vec![cluster("Pull", "other")],
            "against another cluster",
        ),
    ] {
        let mut world = World::settled();
        world.list(Watch::Clusters, &clusters, 9);
        world.see_work(deleted);
        assert_eq!(world.step(), "-", "{sentence}");
        let healthy = Probe {
            healthy: true,
            ..Probe::default()
        };
        world.see(Observation::Probed("m1".into(), healthy));
        assert_eq!(ready(&world), None, "{sentence}");
        let objection = world.agent.objection().unwrap_or_default();
        assert!(objection.contains(says), "{sentence}: {objection}");
        world.see_object(&Watch::Clusters, &{
            let mut pull = cluster("Pull", "k");
            pull["metadata"]["resourceVersion"] = json!("50");
            pull
        });
        assert_eq!(world.step(), "remove", "{sentence}");
    }
}

#[test]
fn a_hub_that_fails_is_asked_again_later() {
    let mut world = World::new();
    world.list(Watch::Works, &[work(1, 2)], 2);
    let waits: Vec<String> = (0..3)
        .map(|_| {
            world.end(Outcome::HubFailed("no response".into()));
            assert_eq!(
                world.notes,
                ["Work karmada-es-m1/w: a request to the hub failed: no response; retrying"]
            );
            let wait = world.step();
            world.now = world.now.plus(60_000);
            wait
        })
        .collect();
    assert_eq!(waits, ["wait 1000", "wait 2000", "wait 4000"]);
    assert_eq!(world.step(), "apply read");
    world.end(Outcome::HubFailed("forbidden".into()));
    assert_eq!(world.notes.len(), 2, "another message is another note");
    for _ in 0..2 {
        let observed = { &mut world.agent }.ended(&Key::Cluster, Outcome::HubFailed("no".into()), world.now);
        world.notes.extend(observed.notes);
    }
    assert_eq!(
        world.notes[2..],
        ["Cluster m1: a request to the hub failed: no; retrying"]
    );
}

#[test]
fn the_kinds_of_works_are_watched_and_forgotten() {
    let mut world = World::settled();
    let copies = world.agent.copies_of(&config_map().gvk);
    assert!(world.agent.demand().contains(&copies));
    // Two Works carry one object of the kind, and one of them another.
    let mut second = work(1, 21);
    (second["metadata"]["name"], second["metadata"]["uid"]) = (json!("v"), json!("v"));
    world.see_object(&Watch::Works, &second);
    let mut other = manifest();
    other["metadata"]["name"] = json!("b");
    world.see_work(|work| work["spec"]["workload"]["manifests"] = json!([manifest(), other]));
    assert_eq!(world.agent.kinds[&config_map().gvk], 2);
    world.gone(ObjectRef::Work(NamespacedName::new(NAMESPACE, "w")));
    assert_eq!(world.agent.kinds[&config_map().gvk], 1);
    assert!(world.agent.demand().contains(&copies));
    world.list(Watch::Works, &[], 30);
    assert!(!world.agent.demand().contains(&copies));
    world.agent.forget_unwatched();
    assert!(world.agent.copies.is_empty() && !world.agent.synced.contains_key(&copies));
}

#[test]
fn a_restored_server_is_believed() {
    let mut world = World::settled();
    let copies = world.agent.copies_of(&config_map().gvk);
    world.list(copies.clone(), &[object(50)], 60);
    world.list(copies, &[object(4)], 10);
    assert_eq!(&*world.agent.copies[&config_map()].meta.resource_version, "4");
}

fn ready(world: &World) -> Option<String> {
    let step = world.agent.plan(&Key::Cluster, world.now).step;
    let Some(Step::Write(write)) = step else {
        return None;
    };
    let status = &write.patch["status"]["conditions"];
    let all = status.as_array().into_iter().flatten();
    let ready = { all }.find(|each| each["type"] == "Ready")?;
    Some(ready["status"].as_str()?.to_owned())
}

#[test]
fn ready_turns_after_its_threshold_and_at_once_after_the_hub_gave_it_up() {
    let probe = |healthy| {
        Observation::Probed(
            "m1".into(),
            Probe {
                healthy,
                ..Probe::default()
            },
        )
    };
    for (sentence, stored, healthy, after, expected) in [
        ("the first probe", None, true, 0, Some("True")),
        ("healthy as stored", Some("True"), true, 60_000, None),
        ("it may pass", Some("True"), false, 29_000, None),
        ("it lasts", Some("True"), false, 30_000, Some("False")),
        ("it is back", Some("False"), true, 0, Some("True")),
        ("the hub missed its lease", Some("Unknown"), true, 0, Some("True")),
    ] {
        let mut world = World::new();
        let mut object = cluster("Pull", "k");
        if let Some(status) = stored {
            let (reason, message) = ("ClusterReady", "");
            object["status"]["conditions"] = json!([{"type": "Ready", "status": status, "reason": reason,
                "message": message, "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        }
        world.list(Watch::Clusters, &[object], 2);
        world.see(probe(healthy));
        world.now = world.now.plus(after);
        assert_eq!(ready(&world).as_deref(), expected, "{sentence}");
    }
}

#[test]
fn an_outcome_about_another_work_or_object_is_dropped() {
    let mut other = config_map();
    other.name = "b".into();
    for (sentence, uid, id) in [
        ("the Work was created anew", "before", config_map()),
        ("its manifests changed", "w", other),
    ] {
        let mut world = World::new();
        world.list(Watch::Works, &[work(1, 2)], 2);
        let mut source = source_of(&work(1, 2));
        source.uid = uid.into();
        let done = Applied::Done {
            copy: Box::new(copy(5)),
            resource: "configmaps".into(),
            differed: None,
            created: true,
        };
        world.end(Outcome::Applied(source, vec![(0, id.clone(), done)]));
        assert_eq!(world.step(), "apply read", "{sentence}: applied");
        let mut world = World::settled();
        world.see_work(deleted);
        let removed = vec![(0, id, Removed::Done(None))];
        world.end(Outcome::Removed(uid.into(), removed));
        assert_eq!(world.step(), "remove", "{sentence}: removed");
    }
    let mut world = World::settled();
    world.see_work(|work| work["metadata"]["finalizers"] = json!([]));
    let Some(Step::Write(mut write)) = world.plan().step else {
        panic!("{}", world.step());
    };
    write.uid = "before".into();
    world.end(Outcome::Written(Box::new(write), "21".into()));
    assert_eq!(
        world.step(),
        format!("finalizers {}", finalizer::EXECUTION),
        "written"
    );
}

#[test]
fn an_empty_id_is_filled_in_once_and_only_for_a_cluster_that_was_never_reported() {
    let fills = |patch: &Value| patch["spec"]["id"] == "k";
    for (sentence, mode, id, ready, writes) in [
        ("new", "Pull", "", None, true),
        (
            "the hub missed a first report",
            "Pull",
            "",
            Some("ClusterStatusNeverUpdated"),
            true,
        ),
        ("another agent reported", "Pull", "", Some("ClusterReady"), false),
        ("it has it", "Pull", "k", None, false),
        ("it has another", "Pull", "other", None, false),
        ("it is not ours", "Push", "", None, false),
    ] {
        let mut world = World::new();
        let mut object = cluster(mode, id);
        if let Some(reason) = ready {
            object["status"]["conditions"] = json!([{"type": "Ready", "status": "Unknown", "reason": reason,
                "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        }
        world.list(Watch::Clusters, &[object], 2);
        world.see(Observation::Probed(
            "m1".into(),
            Probe {
                healthy: true,
                ..Probe::default()
            },
        ));
        world.list(Watch::Works, &[work(1, 2)], 3);
        let step = world.agent.plan(&Key::Cluster, world.now).step;
        let Some(Step::Write(write)) = step else {
            assert!(!writes, "{sentence}");
            assert_eq!(world.step(), "-", "{sentence}");
            let says = world.agent.objection().unwrap_or_default();
            assert_eq!(
                says.contains("set spec.id to k"),
                sentence == "another agent reported",
                "{says}"
            );
            continue;
        };
        assert_eq!(
            (fills(&write.patch), !write.is_status),
            (writes, writes),
            "{sentence}"
        );
        if writes {
            assert_eq!(
                write.patch["metadata"],
                json!({"uid": "c", "resourceVersion": "1"}),
                "{sentence}"
            );
            assert_eq!(world.step(), "-", "{sentence}: nothing is applied before");
        }
    }
}

#[test]
fn after_the_hub_was_restored_a_work_is_compared_anew_and_its_removal_begins_anew() {
    // The same generation may be another content now.
    let mut world = World::settled();
    world.list(Watch::Works, &[work(1, 50)], 60);
    assert_eq!(world.step(), "report Applied=True Dispatching=True");
    world.list(Watch::Works, &[work(1, 2)], 2);
    assert_eq!(world.step(), "apply read");

    let mut world = World::settled();
    world.list(
        Watch::Works,
        &[{
            let mut leaving = work(1, 50);
            deleted(&mut leaving);
            leaving
        }],
        60,
    );
    world.removed(Removed::Done(None));
    assert!(world.step().starts_with("finalizers"));
    world.list(Watch::Works, &[work(1, 2)], 2);
    assert_eq!(world.step(), "apply read");
    world.applies(None, true, 70);
    world.see_work(deleted);
    assert_eq!(world.step(), "remove");

    let mut world = World::new();
    world.list(Watch::Works, &[work(1, 50)], 60);
    world.fails("refused", false);
    world.list(Watch::Works, &[work(1, 2)], 2);
    assert_eq!(world.step(), "apply read", "its failure does not count");
}

#[test]
fn nothing_is_reported_before_the_identity_is_proven_and_ready_is_false_after_it() {
    let mut world = World::new();
    world.agent.cluster.identity = None;
    world.see(Observation::Probed("m1".into(), Probe::default()));
    assert_eq!(ready(&world), None, "it may be another cluster");
    assert!(world.agent.objection().is_some(), "the Lease is not renewed");
    world.see(Observation::Identified("m1".into(), "k".into()));
    assert_eq!(ready(&world).as_deref(), Some("False"));
    assert_eq!(world.agent.objection(), None, "the Lease is renewed");
}

#[test]
fn an_objection_is_reported_when_the_responses_are_there_that_it_is_made_of() {
    let unreadable = Probe {
        message: "get of the namespace kube-system failed: forbidden".into(),
        ..Probe::default()
    };
    let probed = Observation::Probed("m1".into(), unreadable);
    let identified = Observation::Identified("m1".into(), "k".into());
    for (sentence, is_listed, seen, expected) in [
        ("nothing is known", false, vec![], None),
        ("the hub has not responded", false, vec![identified.clone()], None),
        ("the cluster has not responded", true, vec![], None),
        (
            "it cannot be read",
            true,
            vec![probed.clone()],
            Some("kube-system failed: forbidden"),
        ),
        (
            "it was read before the first probe ended",
            true,
            vec![identified.clone()],
            Some(""),
        ),
        ("it could be read once", true, vec![identified, probed], Some("")),
    ] {
        let mut world = World::new();
        (world.agent.cluster.identity, world.agent.cluster.probe) = (None, None);
        if !is_listed {
            world.agent.synced.clear();
        }
        for each in seen {
            world.see(each);
        }
        let objection = world.agent.objection().unwrap_or_default();
        let reported = (!world.agent.is_starting()).then_some(objection);
        assert_eq!(reported.is_some(), expected.is_some(), "{sentence}: {reported:?}");
        let says = |words: &str| match expected {
            Some("") => words.is_empty(),
            expected => words.contains(expected.unwrap_or_default()),
        };
        assert!(reported.is_none_or(|words| says(&words)), "{sentence}");
    }
}

#[test]
fn a_failure_after_a_restart_erases_no_reported_status() {
    let identifier = json!({"ordinal": 0, "version": "v1", "kind": "ConfigMap", "resource": "configmaps",
        "namespace": "shop", "name": "a"});
    let copies = Watch::Copies("m1".into(), config_map().gvk);
    for (sentence, listed, expected) in [
        ("the kind is not listed", None, None),
        ("the object exists", Some(vec![object(5)]), None),
        ("the object does not exist", Some(vec![]), Some(json!([]))),
    ] {
        let mut world = World::new();
        let mut stored = work(1, 2);
        stored["status"]["manifestStatuses"] = json!([{"identifier": identifier, "health": "Healthy"}]);
        world.list(Watch::Works, &[stored], 2);
        if let Some(objects) = listed {
            world.list(copies.clone(), &objects, 6);
        }
        world.fails("refused", false);
        let patch = world.accepts(3);
        assert_eq!(
            patch["status"].get("manifestStatuses"),
            expected.as_ref(),
            "{sentence}"
        );
    }
}

#[test]
fn reads_that_find_an_object_equal_are_delayed_more_and_more() {
    let mut world = World::settled();
    let copies = world.agent.copies_of(&config_map().gvk);
    let mut waits = Vec::new();
    for version in 1..5_u64 {
        world.see_object(&copies, &object(10 * version));
        waits.push(world.step());
        world.now = world.plan().again_at.unwrap_or(world.now);
        world.applies(None, false, 10 * version);
    }
    assert_eq!(waits, ["apply read", "wait 1000", "wait 2000", "wait 4000"]);
    // A deletion is no such change.
    world.see_object(&copies, &object(90));
    assert_eq!(world.step(), "wait 8000");
    world.gone(ObjectRef::Copy("m1".into(), config_map()));
    assert_eq!(world.step(), "apply");
    // After a while without any it begins anew.
    world.see_object(&copies, &object(110));
    world.now = world.now.plus(120_000);
    world.applies(None, false, 110);
    world.see_object(&copies, &object(120));
    assert_eq!(world.step(), "wait 1000");
}

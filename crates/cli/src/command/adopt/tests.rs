//! The output of the command, without servers.

use clap::Parser as _;
use entourage_core::object::Meta;
use serde_json::json;

use super::*;
use crate::{
    command::{Cli, Command},
    kinds::Kinds,
    mock::Server,
};
use write::Outcome;

fn scan(cluster: &str, unread: &[&str], objects: &[(&str, &str)]) -> Scan {
    let objects = objects.iter().map(|(name, hub)| {
        let meta = json!({"metadata": {"labels": {"entourage.dev/hub": hub}}});
        (
            ResourceId::new(Gvk::new("v1", "ConfigMap"), "shop", name),
            Meta::of(&meta),
        )
    });
    Scan {
        cluster: cluster.into(),
        result: Ok(Member {
            client: Server::new(cluster).client(),
            kinds: Kinds::default(),
            objects: objects.collect(),
            namespaces: BTreeMap::new(),
            unread: unread.iter().map(ToString::to_string).collect(),
            notes: Vec::new(),
        }),
    }
}

#[tokio::test]
async fn the_other_hubs_are_listed_with_the_number_of_their_objects() {
    let scans = [
        scan("m1", &[], &[("a", "old"), ("b", "old"), ("c", "x")]),
        scan("m2", &[], &[("a", "old"), ("d", "ours")]),
    ];
    let table = found(&scans, "ours").table(false, true);
    let lines: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let expected = vec![
        vec!["FORMER", "HUB", "CLUSTER", "OBJECTS"],
        vec!["old", "m1", "2"],
        vec!["old", "m2", "1"],
        vec!["x", "m1", "1"],
    ];
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn what_was_not_read_or_written_is_an_error() {
    let unreachable = Scan {
        cluster: "m2".into(),
        result: Err("no response".to_owned()),
    };
    let complete = || scan("m1", &[], &[]);
    for (scans, failed, expected) in [
        (vec![complete()], 0, None),
        (vec![complete()], 1, Some("1 object not adopted")),
        (vec![complete(), unreachable], 0, Some("1 member was not read")),
        (
            vec![scan("m1", &["cannot list secrets"], &[])],
            0,
            Some("1 member was not read"),
        ),
    ] {
        let mut out = Vec::new();
        let error = finish(&mut out, &scans, failed)
            .err()
            .map(|error| error.to_string());
        match expected {
            None => assert_eq!(error, None),
            Some(part) => assert!(
                error.as_ref().is_some_and(|error| error.contains(part)),
                "{error:?}"
            ),
        }
        let notes = String::from_utf8(out).unwrap();
        assert_eq!(
            notes.is_empty(),
            expected.is_none_or(|part| part.contains("adopted")),
            "{notes}"
        );
    }
}

#[tokio::test]
async fn a_hub_does_not_adopt_from_itself() {
    let line = "entourage adopt --former-hub hub-id";
    let Command::Adopt(args) = Cli::try_parse_from(line.split(' ')).unwrap().command else {
        panic!("{line}");
    };
    let error = adopt(&args, Server::new("hub-id").client(), &mut Vec::<u8>::new()).await;
    assert!(error.unwrap_err().to_string().contains("is the id of this hub"));
}

/// A server with HorizontalPodAutoscalers in two versions, and CronJobs in one.
fn serving(id: &str) -> Server {
    let server = Server::new(id);
    let version = |group: &str, version: &str| json!({"groupVersion": format!("{group}/{version}"), "version": version});
    let group = |name: &str, versions: &[&str]| {
        let versions: Vec<Value> = versions.iter().map(|each| version(name, each)).collect();
        json!({"name": name, "versions": versions, "preferredVersion": versions[0]})
    };
    server.put(
        "/apis",
        json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [group("autoscaling", &["v2", "v1"]), group("batch", &["v1"])]}),
    );
    for (version, kind, plural) in [
        (
            "autoscaling/v1",
            "HorizontalPodAutoscaler",
            "horizontalpodautoscalers",
        ),
        (
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            "horizontalpodautoscalers",
        ),
        ("batch/v1", "CronJob", "cronjobs"),
    ] {
        let resource = json!({"name": plural, "singularName": "", "namespaced": true, "kind": kind, "verbs": ["get", "list"]});
        server.put(
            &format!("/apis/{version}"),
            json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": [resource]}),
        );
    }
    server
        .without("/apis/autoscaling/v2beta2")
        .without("/apis/batch/v1beta1")
}

const SCALER: &str = "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers/web";
const JOB: &str = "/apis/batch/v1/namespaces/shop/cronjobs/web";

fn transfer() -> Transfer {
    Transfer {
        former: "old".into(),
        hub: "new".into(),
        cluster: "m1".into(),
        namespaces: BTreeMap::new(),
    }
}

/// Two copies of a former hub on a member, and the templates and bindings of this one.
fn copies_on(server: &Server, hub: &Server) -> HubState {
    let mut state = HubState::default();
    for (path, version, kind) in [
        (SCALER, "autoscaling/v2", "HorizontalPodAutoscaler"),
        (JOB, "batch/v1", "CronJob"),
    ] {
        let meta = json!({"name": "web", "namespace": "shop", "uid": "uid-web"});
        hub.put(
            path,
            json!({"apiVersion": version, "kind": kind, "metadata": meta}),
        );
        let binding = format!("web-{}", kind.to_lowercase());
        let copy = json!({"apiVersion": version, "kind": kind, "metadata": {
            "name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "1", "labels": {"entourage.dev/hub": "old"},
            "annotations": {"work.karmada.io/namespace": "karmada-es-m1", "resourcebinding.karmada.io/namespace": "shop",
                "resourcebinding.karmada.io/name": binding}}});
        server.put(path, copy);
        state.add_binding(
            &json!({"metadata": {"namespace": "shop", "name": binding, "generation": 1,
                "ownerReferences": [{"controller": true, "uid": "uid-web"}]},
            "spec": {"resource": {"apiVersion": version, "kind": kind, "namespace": "shop", "name": "web"},
                "placement": {}, "clusters": [{"name": "m1"}]},
            "status": {"schedulerObservedGeneration": 1}}),
        );
    }
    state
}

/// Reads the member, decides and writes.
async fn written(
    server: &Server,
    hub: &Server,
    state: &mut HubState,
) -> Vec<(String, Result<Outcome, String>)> {
    let search = Search::of("new", state);
    let member = member::read(server.client(), &search).await.unwrap();
    assert_eq!(member.unread, Vec::<String>::new());
    let found: BTreeSet<Gvk> = member.objects.keys().map(|id| id.gvk.clone()).collect();
    hub::add_templates(&hub.client(), state, &found).await.unwrap();
    assert_eq!(state.templates.len(), 2);
    let decisions = decisions(state, &transfer(), &member);
    let adopted = decisions
        .iter()
        .filter(|(_, decision)| *decision == Decision::Adopt);
    assert_eq!(adopted.count(), 2);
    let rule = write::FormerHub {
        state,
        transfer: &transfer(),
    };
    let mut written = BTreeMap::new();
    write::all(&rule, &member, &decisions, &mut written).await;
    written
        .into_iter()
        .map(|(id, outcome)| (id.gvk.kind.to_string(), outcome))
        .collect()
}

#[tokio::test]
async fn a_kind_with_several_versions_is_adopted_in_that_of_its_binding() {
    let (hub, server) = (serving("new"), serving("m1"));
    let mut state = copies_on(&server, &hub);
    let written = written(&server, &hub, &mut state).await;
    assert!(
        written
            .iter()
            .all(|(_, outcome)| *outcome == Ok(Outcome::Adopted))
    );
    let mut writes = server.take_writes();
    writes.sort();
    assert_eq!(writes, [format!("PUT {SCALER}"), format!("PUT {JOB}")]);
    let scaler = server.object(SCALER).unwrap();
    assert_eq!(scaler["metadata"]["labels"]["entourage.dev/hub"], "new");
}

#[tokio::test]
async fn a_missing_right_is_named() {
    let (hub, server) = (serving("new"), serving("m1").forbidding("PUT", JOB));
    let mut state = copies_on(&server, &hub);
    for (kind, outcome) in written(&server, &hub, &mut state).await {
        match outcome {
            Ok(outcome) => assert_eq!(
                (kind.as_str(), outcome),
                ("HorizontalPodAutoscaler", Outcome::Adopted)
            ),
            Err(why) => assert!(kind == "CronJob" && why.contains("\"jane\" cannot PUT"), "{why}"),
        }
    }
    // A kind that this hub makes copies of must be read; any other is a remark.
    let jobs = "/apis/batch/v1/cronjobs";
    let server = serving("m1").forbidding("GET", jobs);
    let search = Search::of("new", &state);
    let member = member::read(server.client(), &search).await.unwrap();
    assert!(
        member.notes.is_empty() && member.unread.len() == 1,
        "{:?}",
        member.unread
    );
    assert!(
        member.unread[0].starts_with("cannot list cronjobs: ")
            && member.unread[0].contains("\"jane\" cannot GET")
    );
    let search = Search::of("new", &HubState::default());
    let member = member::read(server.client(), &search).await.unwrap();
    assert!(
        member.unread.is_empty() && member.notes.len() == 1,
        "{:?}",
        member.notes
    );
    assert!(member.notes[0].contains("may not list cronjobs"));
}

#[tokio::test]
async fn an_object_that_was_deleted_meanwhile_is_no_failure() {
    let server = serving("m1");
    let mut member = scan("m1", &[], &[]).result.unwrap_or_else(|why| panic!("{why}"));
    let gvk = Gvk::new("batch/v1", "CronJob");
    member.client = server.client();
    member.kinds.learn(&member.client, [gvk.clone()]).await.unwrap();
    let id = ResourceId::new(gvk, "shop", "web");
    let decisions = [(id.clone(), Decision::Adopt)];
    let rule = write::FormerHub {
        state: &HubState::default(),
        transfer: &transfer(),
    };
    let mut written = BTreeMap::new();
    write::all(&rule, &member, &decisions, &mut written).await;
    assert_eq!(written.get(&id), Some(&Ok(Outcome::Gone)));
}

#[test]
fn a_kubeconfig_of_no_member_is_refused() {
    let line = "entourage adopt --member m1=a --member m3=b";
    let Command::Adopt(args) = Cli::try_parse_from(line.split(' ')).unwrap().command else {
        panic!("{line}");
    };
    let cluster = |name: &str| -> Cluster {
        serde_json::from_value(
            json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
            "metadata": {"name": name}, "spec": {"syncMode": "Push"}}),
        )
        .unwrap()
    };
    assert_eq!(unknown(&args, &[cluster("m1"), cluster("m2")]), Some("m3"));
    assert_eq!(unknown(&args, &[cluster("m1"), cluster("m3")]), None);
}

#[tokio::test]
async fn an_error_of_the_hub_names_the_members_without_a_decision() {
    let hub = Server::new("new").without("/apis/work.karmada.io");
    let line = "entourage adopt --former-hub old --yes";
    let Command::Adopt(args) = Cli::try_parse_from(line.split(' ')).unwrap().command else {
        panic!("{line}");
    };
    let unreachable = Scan {
        cluster: "m2".into(),
        result: Err("no response".to_owned()),
    };
    let scans = [
        scan("m1", &[], &[("a", "old")]),
        unreachable,
        scan("m3", &[], &[]),
    ];
    let decided = Decided::all(&args, &hub.client(), ("new", "old"), &scans).await;
    assert!(decided.rows.is_empty());
    let error = both(decided.result, finish(&mut Vec::<u8>::new(), &scans, 0)).unwrap_err();
    let error = error.to_string();
    for part in [
        "the objects of m1, m3",
        "ResourceBinding",
        "1 member was not read",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    for (one, other, expected) in [
        (Ok(()), Ok(()), None),
        (Err("a"), Ok(()), Some("a")),
        (Ok(()), Err("b"), Some("b")),
        (Err("a"), Err("b"), Some("a; b")),
    ] {
        let result = both(one.map_err(anyhow::Error::msg), other.map_err(anyhow::Error::msg));
        assert_eq!(result.err().map(|error| error.to_string()).as_deref(), expected);
    }
}

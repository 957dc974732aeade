//! The copies of members in Pull mode as their Works say, among `entourage get copies`: what the agent reported of each, those that
//! no binding accounts for, and members whose Works cannot be read.

use std::collections::{BTreeMap, BTreeSet};

use entourage_api::{
    keys::{annotation, label},
    names::execution_namespace,
};
use entourage_core::{
    object::ResourceId,
    observation::{Work, work_gvk},
    pulled::{self, Applied, REPORT},
    rendered::wipe,
};
use futures::{StreamExt as _, stream};
use kube::{
    Client,
    api::{ApiResource, ListParams},
};
use serde_json::{Value, json};

use super::{
    Seen,
    table::{Row, text},
};
use crate::{apply, connect::explain, kinds::Served, lists};

/// The number of members whose Works are read at the same time.
const AT_ONCE: usize = 8;

/// The number of Works in a page: each is in memory as a whole.
const PAGE: u32 = 100;

/// The Works of each member in Pull mode, by their names; or the reason why they cannot be read.
pub(super) type Works = BTreeMap<String, Result<BTreeMap<String, Reported>, String>>;

/// A copy as its Work says.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reported {
    id: ResourceId,
    applied: Applied,
    /// The words of the agent.
    words: String,
    health: String,
    /// `spec.suspendDispatching`.
    suspended: bool,
    /// While the Work is being deleted: true if its object is kept.
    leaving: Option<bool>,
    /// The ResourceDistribution that made it.
    distribution: Option<String>,
}

/// The copies that bindings account for: cluster, and name of the Work.
#[derive(Debug, Default)]
pub(super) struct Accounted(BTreeSet<(String, String)>);

impl Accounted {
    /// Adds an object on these clusters.
    pub(super) fn add<'a>(&mut self, id: &ResourceId, clusters: impl Iterator<Item = &'a String>) {
        let all = clusters.map(|cluster| (cluster.clone(), name_of(id, cluster)));
        self.0.extend(all);
    }
}

/// Reads the Works that are copies of the members in Pull mode, of objects in this namespace; of all if it is empty.
pub(super) async fn read(hub: &Client, clusters: &[Value], namespace: &str) -> Works {
    let pulled = clusters
        .iter()
        .filter(|cluster| cluster["spec"]["syncMode"] == "Pull");
    let names: Vec<String> = pulled
        .map(|cluster| text(cluster, "/metadata/name").to_owned())
        .collect();
    stream::iter(names)
        .map(|name| async move {
            let works = works_of(hub, &name, namespace).await;
            (name, works)
        })
        .buffered(AT_ONCE)
        .collect()
        .await
}

async fn works_of(
    hub: &Client,
    cluster: &str,
    namespace: &str,
) -> Result<BTreeMap<String, Reported>, String> {
    let gvk = work_gvk();
    let served = Served {
        resource: ApiResource {
            group: gvk.group.to_string(),
            version: gvk.version.to_string(),
            api_version: gvk.api_version(),
            kind: gvk.kind.to_string(),
            plural: "works".to_owned(),
        },
        namespaced: true,
    };
    // The controllers put the label on copies alone, not on the Works of users.
    let params = ListParams::default().limit(PAGE).labels(label::WORK_KIND);
    let mut all = BTreeMap::new();
    let take = |work: &Value| {
        let here = reported(work).filter(|each| namespace.is_empty() || *each.id.namespace == *namespace);
        if let Some(each) = here {
            all.insert(name_of(&each.id, cluster), each);
        }
    };
    let read = lists::each(hub, &served, &execution_namespace(cluster), &params, take).await;
    read.map_err(|error| explain(error).to_string())?;
    Ok(all)
}

/// The copy of a Work; `None` if it carries none, or one that no policy and no distribution propagates.
fn reported(work: &Value) -> Option<Reported> {
    let held = Work::of(work);
    let id = held.id.clone()?;
    if id.gvk.is_namespace() || held.meta.label(label::FEDERATED_QUOTA).is_some() {
        return None;
    }
    let mut object = pulled::object(&id.gvk, work.clone(), false)?;
    let (applied, words) = pulled::applied(&object)?;
    let distribution = object["metadata"]["annotations"][annotation::DISTRIBUTED_FROM].as_str();
    let reported = Reported {
        applied,
        words: words.to_owned(),
        health: text(&object[REPORT], "/health").to_owned(),
        suspended: held.suspended,
        leaving: held.meta.deleting.map(|_| held.preserves),
        distribution: distribution.map(str::to_owned),
        id,
    };
    wipe(&mut object);
    Some(reported)
}

fn name_of(id: &ResourceId, cluster: &str) -> String {
    pulled::name_of(id, cluster).name.to_string()
}

/// The copy of an object, if its Work was read.
fn find<'a>(seen: &'a Seen, cluster: &str, id: &ResourceId) -> Option<&'a Reported> {
    let works = seen.works.get(cluster)?.as_ref().ok()?;
    let held = works.get(&name_of(id, cluster))?;
    (held.id.gvk.group == id.gvk.group).then_some(held)
}

/// The namespace and name of the Work of a copy; `None` in Push mode, and if it was not read.
pub(super) fn work(seen: &Seen, cluster: &str, id: &ResourceId) -> Option<String> {
    find(seen, cluster, id)?;
    Some(pulled::name_of(id, cluster).to_string())
}

/// The health that the agent reported.
pub(super) fn health<'a>(seen: &'a Seen, cluster: &str, id: &ResourceId) -> Option<&'a str> {
    let held = find(seen, cluster, id)?;
    (!held.health.is_empty()).then_some(held.health.as_str())
}

/// The state of a copy and the message about it: as `recorded` in its binding, unless its Work says more.
pub(super) fn state(
    seen: &Seen,
    cluster: &str,
    id: &ResourceId,
    recorded: (&'static str, String),
) -> (&'static str, String) {
    // No Work knows of a policy or an override that holds a copy back, and an absent agent reports nothing.
    if !matches!(recorded.0, "Applied" | "Pending" | "Refused" | "Leaving") {
        return recorded;
    }
    let Some(Ok(_)) = seen.works.get(cluster) else {
        return recorded;
    };
    match find(seen, cluster, id) {
        Some(held) => of_work(held, cluster, recorded),
        None if recorded.0 == "Applied" => (
            "Pending",
            "its Work does not exist: it is created again".to_owned(),
        ),
        None => recorded,
    }
}

/// The state of a copy that was recorded as this one.
fn of_work(held: &Reported, cluster: &str, recorded: (&'static str, String)) -> (&'static str, String) {
    if let Some(is_kept) = held.leaving {
        let what = if is_kept { "released" } else { "removed" };
        let message = format!("its Work is being deleted: the agent of {cluster} has not {what} it yet");
        return ("Leaving", message);
    }
    if recorded.0 == "Leaving" {
        return recorded;
    }
    if held.suspended {
        let message =
            format!("suspendDispatching of its Work is set: the agent of {cluster} leaves it as it is");
        return ("Suspended", message);
    }
    match held.applied {
        Applied::Done => recorded,
        Applied::Awaited => (
            "Pending",
            format!("the agent of {cluster} has not applied it yet"),
        ),
        Applied::Failed => (
            "Refused",
            format!("the agent of {cluster} could not apply it: {}", held.words),
        ),
    }
}

/// The copies that no binding accounts for, with those of distributions; and the members whose Works cannot be read.
pub(super) fn rows(seen: &Seen, name: Option<&str>, accounted: &Accounted) -> Vec<Row> {
    let mut rows = Vec::new();
    for (cluster, works) in &seen.works {
        match works {
            Ok(works) => rows.extend(
                works
                    .iter()
                    .filter(|(work, _)| !accounted.0.contains(&(cluster.clone(), (*work).clone())))
                    .filter(|(_, held)| name.is_none_or(|name| *held.id.name == *name))
                    .map(|(_, held)| row(cluster, held)),
            ),
            Err(why) => rows.push(unread(cluster, why)),
        }
    }
    rows
}

fn row(cluster: &str, held: &Reported) -> Row {
    let base = match held.distribution {
        Some(_) => ("Applied", String::new()),
        None => (
            "Unaccounted",
            "no binding accounts for it: it is kept, and neither changed nor deleted".to_owned(),
        ),
    };
    let (state, message) = match held.distribution {
        None if held.leaving.is_none() => base,
        _ => of_work(held, cluster, base),
    };
    let by = held.distribution.as_ref();
    let by = by.map(|name| format!("ResourceDistribution {name}"));
    let id = &held.id;
    let (api_version, kind) = (id.gvk.api_version(), id.gvk.kind.to_string());
    Row {
        name: format!("{cluster}/{}/{}", apply::label(&api_version, &kind), id.name),
        cells: vec![
            id.namespace.to_string(),
            format!("{kind} {}", id.name),
            cluster.to_owned(),
            state.to_owned(),
            held.health.clone(),
            String::new(),
            String::new(),
            by.unwrap_or_default(),
            String::new(),
            message.clone(),
        ],
        item: json!({
            "apiVersion": api_version, "kind": kind, "namespace": &*id.namespace, "name": &*id.name, "cluster": cluster,
            "state": state, "health": held.health, "policy": null, "neededBy": [], "message": message,
            "distribution": held.distribution, "work": pulled::name_of(id, cluster).to_string(),
        }),
    }
}

/// A member whose Works cannot be read.
fn unread(cluster: &str, why: &str) -> Row {
    let namespace = execution_namespace(cluster);
    let message = format!(
        "the Works of {cluster} in {namespace} cannot be read: {why}. Its copies are shown as the bindings recorded them, without \
         those of ResourceDistributions"
    );
    Row {
        name: format!("{cluster}/works"),
        cells: vec![
            namespace.clone(),
            "Works".to_owned(),
            cluster.to_owned(),
            "Unknown".to_owned(),
            String::new(),
            String::new(),
            String::new(),
            String::new(),
            String::new(),
            message.clone(),
        ],
        item: json!({
            "apiVersion": work_gvk().api_version(), "kind": "Work", "namespace": namespace, "name": "", "cluster": cluster,
            "state": "Unknown", "health": "", "policy": null, "neededBy": [], "message": message,
        }),
    }
}

#[cfg(test)]
mod tests {
    use entourage_core::object::Gvk;

    use super::*;
    use crate::mock::Server;

    const CANARY: &str = "canary-5d2c";

    fn id(kind: &str, name: &str) -> ResourceId {
        let version = if kind == "Deployment" { "apps/v1" } else { "v1" };
        ResourceId::new(Gvk::new(version, kind), "shop", name)
    }

    /// The Work of an object on `east`, with this status and these other fields.
    fn work_of(id: &ResourceId, status: &Value, change: impl FnOnce(&mut Value)) -> Value {
        let mut object = json!({"apiVersion": id.gvk.api_version(), "kind": &*id.gvk.kind, "data": {"key": CANARY},
            "metadata": {"namespace": &*id.namespace, "name": &*id.name, "labels": {"entourage.dev/hub": "hub"}}});
        if &*id.name == "given" {
            object["metadata"]["labels"] = json!({"entourage.dev/distributed-by": "hub"});
            object["metadata"]["annotations"] =
                json!({"kruise.io/resourcedistribution.resource.from": "gifts"});
        }
        let mut work = pulled::work(id, "east", &object);
        work["metadata"]["generation"] = json!(1);
        work["status"] = status.clone();
        change(&mut work);
        work
    }

    fn applied(status: &str) -> Value {
        json!({"conditions": [{"type": "Applied", "status": status, "reason": "AppliedFailed", "message": "no room"}],
            "manifestStatuses": [{"health": "Unhealthy"}]})
    }

    fn seen(works: impl IntoIterator<Item = Value>) -> Seen {
        let all = works.into_iter().filter_map(|work| reported(&work));
        let all = all.map(|each| (name_of(&each.id, "east"), each)).collect();
        Seen {
            works: Works::from([("east".to_owned(), Ok(all))]),
            ..Seen::default()
        }
    }

    #[test]
    fn the_state_of_a_copy_is_what_its_work_says() {
        let web = id("Deployment", "web");
        let plain = |_: &mut Value| {};
        let deleted = |keeps: bool| {
            move |work: &mut Value| {
                work["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
                work["spec"]["preserveResourcesOnDeletion"] = json!(keeps);
            }
        };
        let works = [
            (
                work_of(&web, &applied("True"), plain),
                "Applied",
                "Applied",
                "recorded",
            ),
            (
                work_of(&web, &applied("True"), plain),
                "Pending",
                "Pending",
                "recorded",
            ),
            (
                work_of(&web, &applied("False"), plain),
                "Applied",
                "Refused",
                "could not apply it: AppliedFailed: no room",
            ),
            (
                work_of(&web, &json!({}), plain),
                "Applied",
                "Pending",
                "has not applied it yet",
            ),
            (
                work_of(&web, &applied("True"), |work| {
                    work["spec"]["suspendDispatching"] = json!(true)
                }),
                "Applied",
                "Suspended",
                "suspendDispatching",
            ),
            (
                work_of(&web, &applied("True"), deleted(false)),
                "Applied",
                "Leaving",
                "has not removed it yet",
            ),
            (
                work_of(&web, &applied("True"), deleted(true)),
                "Leaving",
                "Leaving",
                "has not released it yet",
            ),
            (
                work_of(&web, &applied("False"), plain),
                "Leaving",
                "Leaving",
                "recorded",
            ),
            // Nothing that a Work knows.
            (
                work_of(&web, &applied("True"), plain),
                "Override",
                "Override",
                "recorded",
            ),
            (
                work_of(&web, &applied("False"), plain),
                "Unknown",
                "Unknown",
                "recorded",
            ),
        ];
        for (work, recorded, wanted, words) in works {
            let seen = seen([work.clone()]);
            let (state, message) = state(&seen, "east", &web, (recorded, "recorded".to_owned()));
            assert_eq!(state, wanted, "{work}");
            assert!(message.contains(words), "{message}");
        }
        let none = seen([]);
        assert_eq!(
            state(&none, "east", &web, ("Applied", String::new())).0,
            "Pending"
        );
        assert_eq!(
            state(&none, "west", &web, ("Applied", String::new())).0,
            "Applied"
        );
        let held = seen([work_of(&web, &applied("True"), plain)]);
        assert_eq!(health(&held, "east", &web), Some("Unhealthy"));
        assert!(work(&held, "east", &web).is_some_and(|work| work.starts_with("karmada-es-east/web-")));
    }

    #[test]
    fn copies_without_a_binding_are_shown_with_who_made_them() {
        let quota = |work: &mut Value| {
            work["metadata"]["labels"]["entourage.dev/federated-quota"] = json!("hub");
        };
        let plain = |_: &mut Value| {};
        let namespace = ResourceId::new(Gvk::new("v1", "Namespace"), "", "shop");
        let seen = seen([
            work_of(&id("Deployment", "web"), &applied("True"), plain),
            work_of(&id("ConfigMap", "left"), &applied("True"), plain),
            work_of(&id("ConfigMap", "given"), &applied("False"), plain),
            work_of(&id("ResourceQuota", "limit"), &applied("True"), quota),
            work_of(&namespace, &applied("True"), plain),
        ]);
        let mut accounted = Accounted::default();
        accounted.add(&id("Deployment", "web"), ["east".to_owned()].iter());
        let shown = |name: Option<&str>| -> Vec<(String, String, String)> {
            let rows = rows(&seen, name, &accounted);
            let cells = rows.into_iter().map(|row| row.cells);
            cells
                .map(|cells| (cells[1].clone(), cells[3].clone(), cells[7].clone()))
                .collect()
        };
        let row = |object: &str, state: &str, by: &str| (object.to_owned(), state.to_owned(), by.to_owned());
        let given = row("ConfigMap given", "Refused", "ResourceDistribution gifts");
        assert_eq!(
            shown(None),
            [given.clone(), row("ConfigMap left", "Unaccounted", "")]
        );
        assert_eq!(shown(Some("given")), [given]);
    }

    #[tokio::test]
    async fn a_member_whose_works_cannot_be_read_is_named_and_the_others_are_shown() {
        const WEST: &str = "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-west";
        let hub = Server::new("hub").forbidding("GET", WEST);
        let work = work_of(&id("Secret", "login"), &applied("False"), |_| {});
        let name = work["metadata"]["name"].as_str().unwrap().to_owned();
        hub.put(
            &format!("/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-east/works/{name}"),
            work,
        );
        let cluster =
            |name: &str, mode: &str| json!({"metadata": {"name": name}, "spec": {"syncMode": mode}});
        let clusters = [
            cluster("east", "Pull"),
            cluster("north", "Push"),
            cluster("west", "Pull"),
        ];
        for (namespace, count) in [("", 1), ("shop", 1), ("other", 0)] {
            let works = read(&hub.client(), &clusters, namespace).await;
            assert_eq!(works.keys().collect::<Vec<_>>(), ["east", "west"]);
            assert_eq!(
                works["east"].as_ref().map(BTreeMap::len),
                Ok(count),
                "{namespace}"
            );
            let seen = Seen {
                works,
                ..Seen::default()
            };
            assert!(!format!("{seen:?}").contains(CANARY));
            let rows = rows(&seen, None, &Accounted::default());
            let last = rows.last().unwrap();
            assert_eq!(last.cells[2..4], ["west", "Unknown"]);
            assert!(last.cells[9].contains("\"jane\" cannot GET"), "{:?}", last.cells);
            // The agent's words about a Secret may quote it.
            assert!(rows.len() == 1 || !rows[0].cells[9].contains("no room"));
        }
    }
}

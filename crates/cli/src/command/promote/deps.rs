//! The dependencies of an object on a member, direct and indirect ones, by the interpreters of the hub.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, bail};
use entourage_core::{
    dependencies::drawing::{Drawing, selected_kinds},
    object::{Gvk, ResourceId, Str},
    promotion::NotPromotable,
    rendered::{Rendered, wipe},
};
use kube::{Client, api::ListParams};
use serde_json::{Value, json};

use super::source::Promoted;
use crate::{
    connect::{explain, within},
    kinds::Kinds,
    lists::{PAGE, api, every, list_metadata},
    simulate::interpreters::InterpreterSnapshot,
};

/// The objects of a server as far as they were read. They may hold Secrets: wiped on drop.
#[derive(Default)]
pub(super) struct Known(pub(super) BTreeMap<ResourceId, Value>);

impl Drop for Known {
    fn drop(&mut self) {
        self.0.values_mut().for_each(wipe);
    }
}

/// The dependencies of `root` that exist on the member, also those in namespaces that consent on the hub. What is missing there is
/// noted.
///
/// # Errors
/// The hub or the member cannot be read, an object cannot be interpreted, or the hub has one that the member lacks: the hub might
/// take over, or create, what is not checked here.
pub(super) async fn of(
    interpreters: &InterpreterSnapshot,
    (hub, member): (&Client, &Client),
    (root, live): (&ResourceId, Rendered),
    notes: &mut Vec<String>,
) -> Result<Vec<(ResourceId, Rendered)>> {
    let mut known = Known(namespaces(hub).await?);
    known.0.insert(root.clone(), live.into_object());
    let mut hub_kinds = Kinds::default();
    let (mut read, mut missing) = (BTreeSet::from([root.clone()]), BTreeSet::new());
    let (mut listed, mut kinds) = (BTreeSet::new(), Kinds::default());
    let reached = loop {
        list_selected(member, interpreters, &read, (&mut known, &mut listed, &mut kinds)).await?;
        let drawing = Drawing::of(known.0.iter(), |gvk| interpreters.of(gvk));
        let reached = below(&drawing, root);
        let open: Vec<ResourceId> = reached
            .iter()
            .filter(|id| !read.contains(*id) && !missing.contains(*id))
            .cloned()
            .collect();
        if open.is_empty() {
            if let Some(remark) = drawing.remarks.first() {
                bail!("cannot tell all dependencies: {remark}. Promote without --deps");
            }
            break reached;
        }
        for id in open {
            match get(member, &mut kinds, &id).await? {
                Some(object) => {
                    known.0.insert(id.clone(), object);
                    read.insert(id);
                }
                None => {
                    let held = get(hub, &mut hub_kinds, &id).await.context("on the hub")?;
                    if held.map(Rendered).is_some() {
                        bail!(
                            "{id} exists on the hub and not on the member, where the hub would create it. Promote without --deps"
                        );
                    }
                    notes.push(format!("{id} does not exist on the member"));
                    missing.insert(id);
                }
            }
        }
    };
    let take = |id: ResourceId| known.0.remove(&id).map(|object| (id, Rendered(object)));
    Ok(reached
        .into_iter()
        .filter(|id| !missing.contains(id))
        .filter_map(take)
        .collect())
}

/// The namespaces of the hub: they say from which others dependencies in them may be propagated.
///
/// # Errors
/// The hub cannot be read.
pub(super) async fn namespaces(hub: &Client) -> Result<BTreeMap<ResourceId, Value>> {
    let gvk = Gvk::new("v1", "Namespace");
    let all = every(hub, gvk.clone(), false).await?;
    let named = all.into_iter().filter_map(|namespace| {
        let name = namespace["metadata"]["name"].as_str()?.to_owned();
        Some((ResourceId::new(gvk.clone(), "", &name), namespace))
    });
    Ok(named.collect())
}

/// The templates of dependencies. One that this hub manages already needs none, nor a note; any other that is refused is a note, as
/// long as the hub has no object of its name: the policy that overwrites the objects would replace the member's with it.
///
/// # Errors
/// The hub cannot be read, or has such an object.
pub(super) async fn templates(
    hub: &Client,
    all: Vec<(ResourceId, Rendered)>,
    hub_id: &str,
    scalers: &[Value],
    notes: &mut Vec<String>,
) -> Result<Vec<Promoted>> {
    let (mut needed, mut kinds) = (Vec::new(), Kinds::default());
    for (id, live) in all {
        match Promoted::new(id.clone(), live.object(), hub_id) {
            Ok(promoted) => needed.push(promoted.keep_replicas(scalers, notes)?),
            Err(NotPromotable::Managed) => {}
            Err(why) => {
                let held = get(hub, &mut kinds, &id).await.context("on the hub")?;
                if held.map(Rendered).is_some() {
                    bail!(
                        "{id} exists on the hub, which would overwrite the member's, and that is not promoted: {why}. Promote \
                         without --deps"
                    );
                }
                notes.push(format!(
                    "{id} is not promoted: {why}; an object of this name on the hub would overwrite it"
                ));
            }
        }
    }
    Ok(needed)
}

/// Everything that is reached from `root`, without itself.
pub(super) fn below(drawing: &Drawing, root: &ResourceId) -> BTreeSet<ResourceId> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![root.clone()]);
    while let Some(id) = open.pop() {
        for needed in drawing.edges.get(&id).into_iter().flat_map(BTreeMap::keys) {
            if needed != root && reached.insert(needed.clone()) {
                open.push(needed.clone());
            }
        }
    }
    reached
}

/// Lists the kinds that the objects read so far select by label: names and labels alone.
async fn list_selected(
    member: &Client,
    interpreters: &InterpreterSnapshot,
    read: &BTreeSet<ResourceId>,
    (known, listed, kinds): (&mut Known, &mut BTreeSet<(Gvk, Str)>, &mut Kinds),
) -> Result<()> {
    let objects = read.iter().filter_map(|id| Some((id, known.0.get(id)?)));
    let wanted: BTreeSet<(Gvk, Str)> = objects
        .flat_map(|(id, object)| selected_kinds(&interpreters.of(&id.gvk), id, object))
        .collect();
    for (gvk, namespace) in wanted {
        if !listed.insert((gvk.clone(), namespace.clone())) {
            continue;
        }
        kinds.learn(member, [gvk.clone()]).await?;
        let Some(served) = kinds.get(&gvk) else { continue };
        let all = list_metadata(member, served, &ListParams::default().limit(PAGE)).await;
        let all = all
            .map_err(explain)
            .with_context(|| format!("cannot list {} on the member", served.resource.plural))?;
        for meta in all {
            let (name, of) = (meta.name.unwrap_or_default(), meta.namespace.unwrap_or_default());
            if of == *namespace {
                let stub = json!({"metadata": {"namespace": of, "name": name, "labels": meta.labels}});
                known
                    .0
                    .entry(ResourceId::new(gvk.clone(), &of, &name))
                    .or_insert(stub);
            }
        }
    }
    Ok(())
}

/// An object of a server; `None` if it is not found, or its kind is not served.
///
/// # Errors
/// The server cannot be read.
pub(super) async fn get(server: &Client, kinds: &mut Kinds, id: &ResourceId) -> Result<Option<Value>> {
    kinds.learn(server, [id.gvk.clone()]).await?;
    let Some(served) = kinds.get(&id.gvk) else {
        return Ok(None);
    };
    let object = within(api(server, served, &id.namespace).get_opt(&id.name)).await;
    let object = object
        .map_err(explain)
        .with_context(|| format!("cannot read {id}"))?;
    Ok(object.and_then(|object| serde_json::to_value(object).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock::Server;

    const CONF: &str = "/api/v1/namespaces/shop/configmaps/conf";

    /// A server with ConfigMaps.
    fn serving() -> Server {
        let server = Server::new("hub");
        let resource = json!({"name": "configmaps", "singularName": "", "namespaced": true, "kind": "ConfigMap", "verbs": ["get"]});
        let list = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": [resource]});
        server.put("/api/v1", list);
        server
    }

    #[tokio::test]
    async fn a_dependency_that_only_the_hub_has_would_be_created_on_the_member() {
        let id = ResourceId::new(Gvk::new("apps/v1", "Deployment"), "shop", "web");
        let container =
            json!({"name": "a", "envFrom": [{"configMapRef": {"name": "conf", "optional": true}}]});
        let live = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"template": {"spec": {"containers": [container]}}}});
        for is_on_hub in [true, false] {
            let (hub, member) = (serving(), serving());
            if is_on_hub {
                let held = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "conf", "namespace": "shop"}});
                hub.put(CONF, held);
            }
            let mut notes = Vec::new();
            let clients = (&hub.client(), &member.client());
            let root = (&id, Rendered(live.clone()));
            let result = of(&InterpreterSnapshot::default(), clients, root, &mut notes).await;
            match result {
                Ok(all) => assert!(!is_on_hub && all.is_empty() && notes.len() == 1, "{notes:?}"),
                Err(why) => assert!(
                    is_on_hub && format!("{why:#}").contains("exists on the hub and not on the member"),
                    "{why:#}"
                ),
            }
        }
    }

    #[tokio::test]
    async fn a_dependency_that_is_refused_must_not_be_overwritten_by_the_hubs() {
        let owned = || json!({"ownerReferences": [{"kind": "App", "name": "a", "controller": true}]});
        let by = |hub: &str| json!({"labels": {"entourage.dev/hub": hub}});
        for (metadata, is_on_hub, expected) in [
            (owned(), true, Err("it belongs to App a")),
            (owned(), false, Ok(1)),
            (by("other"), true, Err("hub other manages it")),
            (by("other"), false, Ok(1)),
            (by("hub"), true, Ok(0)),
        ] {
            let hub = serving();
            if is_on_hub {
                let held = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "conf", "namespace": "shop"}});
                hub.put(CONF, held);
            }
            let mut live = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
            live["metadata"]["name"] = json!("conf");
            live["metadata"]["namespace"] = json!("shop");
            let id = ResourceId::new(Gvk::new("v1", "ConfigMap"), "shop", "conf");
            let (all, mut notes) = (vec![(id, Rendered(live))], Vec::new());
            let result = templates(&hub.client(), all, "hub", &[], &mut notes).await;
            match (result, expected) {
                (Ok(templates), Ok(count)) => assert_eq!((templates.len(), notes.len()), (0, count)),
                (Err(why), Err(part)) => {
                    let why = why.to_string();
                    assert!(why.contains(part) && why.contains("without --deps"), "{why}");
                }
                (Ok(_), Err(part)) => panic!("not refused: {part}"),
                (Err(why), Ok(_)) => panic!("{why:#}"),
            }
        }
    }
}

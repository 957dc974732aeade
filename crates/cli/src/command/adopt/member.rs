//! The objects of a member that carry marks of other hubs.

use std::collections::{BTreeMap, BTreeSet};

use entourage_api::cluster::Cluster;
use entourage_core::{
    adoption::{HUB_LABELS, HubState, Versions, has_records, holders},
    interpreter::{NATIVE, NativeKind, shipped},
    object::{Gvk, Meta, ResourceId, Str, StrMap},
};
use kube::{
    Client,
    api::{ListParams, ObjectMeta},
};
use serde_json::json;

use super::AdoptArgs;
use crate::{
    connect::{self, explain, is_not_found},
    kinds::{Kinds, Served, preferred},
    lists::{PAGE, list_metadata},
    members,
};

/// A member, or why it was not read.
pub(super) struct Scan {
    pub(super) cluster: Str,
    pub(super) result: Result<Member, String>,
}

/// A member that was read.
pub(super) struct Member {
    pub(super) client: Client,
    pub(super) kinds: Kinds,
    /// The objects with a mark of another hub; metadata alone.
    pub(super) objects: BTreeMap<ResourceId, Meta>,
    /// The labels of its namespaces.
    pub(super) namespaces: BTreeMap<Str, StrMap>,
    /// Kinds that could not be listed, and why.
    pub(super) unread: Vec<String>,
    /// Remarks that are no failures.
    pub(super) notes: Vec<String>,
}

/// The kinds that are searched on members.
pub(super) struct Search {
    hub_id: String,
    /// Those of the hub's bindings, in each version that one names.
    of_bindings: Vec<Gvk>,
    /// Those of the copies that the hub makes: a member that forbids others of the known kinds is read completely.
    required: BTreeSet<Gvk>,
}

impl Search {
    pub(super) fn of(hub_id: &str, state: &HubState) -> Self {
        Self {
            hub_id: hub_id.to_owned(),
            of_bindings: state.versions(),
            required: state.kinds(),
        }
    }
}

/// Reads a member.
pub(super) async fn scan(args: &AdoptArgs, hub: &Client, cluster: Cluster, search: &Search) -> Scan {
    let name = cluster.metadata.name.clone().unwrap_or_default();
    let result = async {
        let given = args.members.iter().find(|(member, _)| *member == name);
        let given = match given {
            Some((_, file)) => {
                let connection = connect::listed_member_config(file).await;
                Some(connection.map_err(|error| format!("{error:#}"))?)
            }
            None => None,
        };
        let flag = format!("--member {name}=FILE");
        let client = members::client(hub, &cluster, &args.cluster_namespace, given, &flag).await?;
        read(client, search).await
    };
    Scan {
        result: result.await,
        cluster: name.into(),
    }
}

pub(super) async fn read(client: Client, search: &Search) -> Result<Member, String> {
    let preferred = preferred(&client).await.map_err(|error| format!("{error:#}"))?;
    let versions = Versions::new(search.of_bindings.iter().cloned(), known(), &preferred);
    let mut member = Member {
        client,
        kinds: Kinds::default(),
        objects: BTreeMap::new(),
        namespaces: BTreeMap::new(),
        unread: Vec::new(),
        notes: Vec::new(),
    };
    let mut forbidden = Vec::new();
    for (kind, versions) in versions.iter() {
        if !preferred.contains_key(&kind.group) {
            continue;
        }
        let (gvk, served) = match find(&mut member, search, versions).await {
            Ok(Some(found)) => found,
            Ok(None) => continue,
            Err(error) => {
                member
                    .unread
                    .push(format!("cannot ask for the kind {kind}: {error:#}"));
                continue;
            }
        };
        match candidates(&member.client, &served, &gvk, &search.hub_id).await {
            Ok(found) => add(&mut member, &gvk, found, &search.hub_id),
            Err(error) if is_not_found(&error) => {}
            Err(kube::Error::Api(status)) if status.code == 403 && !search.required.contains(&gvk) => {
                forbidden.push(served.resource.plural);
            }
            Err(error) => member.unread.push(format!(
                "cannot list {}: {}",
                served.resource.plural,
                explain(error)
            )),
        }
    }
    if !forbidden.is_empty() {
        member.notes.push(format!(
            "may not list {}: not searched; this hub makes no copies of these kinds",
            forbidden.join(", ")
        ));
    }
    Ok(member)
}

/// The version of a kind in which it is listed. Those of bindings are asked for, too: their copies are written in them.
async fn find(
    member: &mut Member,
    search: &Search,
    versions: &[Gvk],
) -> anyhow::Result<Option<(Gvk, Served)>> {
    let of_bindings = search.of_bindings.iter();
    let of_kind = of_bindings.filter(|gvk| versions.first() == Some(*gvk));
    member.kinds.learn(&member.client, of_kind.cloned()).await?;
    member.kinds.first_served(&member.client, versions).await
}

/// The objects of a kind that may have a mark of another hub. No selector finds records in annotations.
async fn candidates(
    client: &Client,
    served: &Served,
    gvk: &Gvk,
    hub_id: &str,
) -> kube::Result<Vec<ObjectMeta>> {
    let page = || ListParams::default().limit(PAGE);
    if has_records(gvk) {
        return list_metadata(client, served, &page()).await;
    }
    let mut all = Vec::new();
    for label in HUB_LABELS {
        let of_others = page().labels(&format!("{label},{label}!={hub_id}"));
        all.append(&mut list_metadata(client, served, &of_others).await?);
    }
    Ok(all)
}

/// Adds the objects with a mark of another hub, and the labels of namespaces.
fn add(member: &mut Member, gvk: &Gvk, found: Vec<ObjectMeta>, hub_id: &str) {
    for meta in found {
        let live = Meta::of(&json!({"metadata": meta}));
        let name = meta.name.unwrap_or_default();
        if gvk.is_namespace() {
            member
                .namespaces
                .insert(name.as_str().into(), live.labels.clone());
        }
        let id = ResourceId::new(gvk.clone(), &meta.namespace.unwrap_or_default(), &name);
        if holders(&id, &live).iter().any(|hub| *hub != hub_id) {
            member.objects.insert(id, live);
        }
    }
}

/// The native and shipped kinds: whatever copies a former hub left of other kinds, this hub has no binding of.
pub(super) fn known() -> impl Iterator<Item = Gvk> {
    let shipped = shipped::all().iter().map(|kind| kind as &dyn NativeKind);
    let all = NATIVE.iter().copied().chain(shipped).map(NativeKind::gvk);
    all.map(|gvk| {
        let api_version = if gvk.group.is_empty() {
            gvk.version.to_owned()
        } else {
            format!("{}/{}", gvk.group, gvk.version)
        };
        Gvk::new(&api_version, gvk.kind)
    })
}

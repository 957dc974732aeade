//! The objects of a member that carry marks of other hubs, or of a Karmada.

use std::collections::{BTreeMap, BTreeSet};

use entourage_api::{
    cluster::Cluster,
    keys::{TRUE, label},
};
use entourage_core::{
    adoption::{HUB_LABELS, HubState, Versions, has_records, holders, karmada::Karmada},
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
    /// The objects with marks of those that are searched for; metadata alone.
    pub(super) objects: BTreeMap<ResourceId, Meta>,
    /// The labels of its namespaces.
    pub(super) namespaces: BTreeMap<Str, StrMap>,
    /// Kinds that could not be listed, and why.
    pub(super) unread: Vec<String>,
    /// Remarks that are no failures.
    pub(super) notes: Vec<String>,
}

/// The objects that are searched on members.
pub(super) struct Search {
    whose: Whose,
    /// The kinds of the hub's bindings, in each version that one names, and then those of Karmada's Works.
    of_bindings: Vec<Gvk>,
    /// Those of the copies that the hub makes: a member that forbids others of the known kinds is read completely.
    required: BTreeSet<Gvk>,
}

/// The owners of the objects that are searched.
enum Whose {
    /// Those of all hubs but the one with this id.
    OtherHubs(String),
    /// Those that some control plane manages, and all namespaces.
    Managed,
}

impl Search {
    pub(super) fn of(hub_id: &str, state: &HubState) -> Self {
        Self {
            whose: Whose::OtherHubs(hub_id.to_owned()),
            of_bindings: state.versions(),
            required: state.kinds(),
        }
    }

    pub(super) fn of_karmada(state: &HubState, karmada: &Karmada) -> Self {
        let kinds = karmada.kinds();
        Self {
            whose: Whose::Managed,
            of_bindings: state
                .versions()
                .into_iter()
                .chain(kinds.iter().cloned())
                .collect(),
            required: state.kinds().into_iter().chain(kinds).collect(),
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
        match candidates(&member.client, &served, &gvk, &search.whose).await {
            Ok(found) => add(&mut member, &gvk, found, &search.whose),
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

/// The objects of a kind that may have a mark of those that are searched for. No selector finds records in annotations.
async fn candidates(
    client: &Client,
    served: &Served,
    gvk: &Gvk,
    whose: &Whose,
) -> kube::Result<Vec<ObjectMeta>> {
    let page = || ListParams::default().limit(PAGE);
    let hub_id = match whose {
        Whose::Managed if !gvk.is_namespace() => {
            let managed = page().labels(&format!("{}={TRUE}", label::MANAGED));
            return list_metadata(client, served, &managed).await;
        }
        Whose::OtherHubs(hub_id) if !has_records(gvk) => hub_id,
        Whose::Managed | Whose::OtherHubs(_) => return list_metadata(client, served, &page()).await,
    };
    let mut all = Vec::new();
    for label in HUB_LABELS {
        let of_others = page().labels(&format!("{label},{label}!={hub_id}"));
        all.append(&mut list_metadata(client, served, &of_others).await?);
    }
    Ok(all)
}

/// Adds the objects with a mark of those that are searched for, and the labels of namespaces.
fn add(member: &mut Member, gvk: &Gvk, found: Vec<ObjectMeta>, whose: &Whose) {
    for meta in found {
        let live = Meta::of(&json!({"metadata": meta}));
        let name = meta.name.unwrap_or_default();
        if gvk.is_namespace() {
            member
                .namespaces
                .insert(name.as_str().into(), live.labels.clone());
        }
        let id = ResourceId::new(gvk.clone(), &meta.namespace.unwrap_or_default(), &name);
        let is_meant = match whose {
            Whose::Managed => true,
            Whose::OtherHubs(hub_id) => holders(&id, &live).iter().any(|hub| hub != hub_id),
        };
        if is_meant {
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

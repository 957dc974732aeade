//! The graph of a hub, as its controllers compute it: with its customizations.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use entourage_core::{
    dependencies::drawing::{Drawing, selected_kinds},
    interpreter::{NATIVE, NativeKind, shipped},
    object::{Gvk, ResourceId, Str},
    scope,
};
use kube::{Client, api::ListParams};
use serde_json::{Value, json};

use crate::{
    connect::{self, explain},
    kinds::{Kinds, Served},
    lists::{PAGE, api, list},
    simulate::interpreters::{self, InterpreterSnapshot},
};

/// The graph of a namespace of a hub; of all if it is empty. Kinds without references are read as metadata: the content of a
/// Secret is never read.
///
/// # Errors
/// The hub cannot be read.
pub async fn of_hub(hub: &Client, namespace: &str) -> Result<Drawing> {
    let mut kinds = Kinds::default();
    let mut all: BTreeMap<ResourceId, Value> = BTreeMap::new();
    let mut remarks: BTreeSet<String> = interpreters::hooks_of_hub(hub, &mut kinds)
        .await
        .into_iter()
        .collect();
    let interpreters = interpreters::of_hub(hub, &mut kinds, &mut remarks).await;
    let scope = |namespace_of: &Str| {
        if namespace.is_empty() {
            "".into()
        } else {
            namespace_of.clone()
        }
    };
    let mut wanted: BTreeSet<(Gvk, Str)> = first(&interpreters)
        .into_iter()
        .map(|gvk| (gvk, scope(&namespace.into())))
        .collect();
    let mut listed = BTreeSet::new();
    // The first round reads the kinds with references, the next ones the referenced objects.
    let mut drawing = loop {
        kinds
            .learn(hub, wanted.iter().map(|(gvk, _)| gvk.clone()))
            .await
            .context("cannot ask the hub which kinds it serves")?;
        for (gvk, within) in &wanted {
            let Some(served) = kinds.get(gvk) else {
                continue;
            };
            match read(hub, gvk, served, within, &interpreters).await {
                Ok(objects) => all.extend(objects),
                // A user of one namespace need not have rights in others.
                Err(error) if **within != *namespace => {
                    remarks.insert(format!(
                        "{within}: {error:#}; what is needed of it is drawn as missing"
                    ));
                }
                Err(error) => return Err(error),
            }
        }
        listed.append(&mut wanted);
        let drawing = Drawing::of(all.iter(), |gvk| interpreters.of(gvk));
        let named = drawing
            .nodes
            .keys()
            .map(|id| (id.gvk.clone(), id.namespace.clone()));
        let selected = all
            .iter()
            .flat_map(|(id, object)| selected_kinds(&interpreters.of(&id.gvk), id, object));
        let needed: BTreeSet<(Gvk, Str)> = named.chain(selected).collect();
        // The binding of an object is in the same namespace.
        let bindings = needed.iter().filter(|(_, namespace)| !namespace.is_empty());
        let bindings = bindings.map(|(_, namespace)| (binding(&scope::BINDING), namespace.clone()));
        wanted = needed
            .iter()
            .cloned()
            .chain(bindings)
            .map(|(gvk, namespace)| (gvk, scope(&namespace)))
            .filter(|each| !listed.contains(each))
            .collect();
        if wanted.is_empty() {
            break drawing;
        }
    };
    drawing.remarks.append(&mut remarks);
    Ok(if namespace.is_empty() {
        drawing
    } else {
        drawing.around(|id| *id.namespace == *namespace)
    })
}

/// The kinds with references, each in the version of its customizations, and bindings. With customizations also namespaces:
/// their annotations allow references from other namespaces.
fn first(interpreters: &InterpreterSnapshot) -> BTreeSet<Gvk> {
    let shipped = shipped::all().iter().map(|kind| kind as &dyn NativeKind);
    let native = NATIVE.iter().copied().chain(shipped).map(NativeKind::gvk);
    let native = native.map(|gvk| Gvk::new(&join(gvk.group, gvk.version), gvk.kind));
    let mut all: BTreeSet<Gvk> = BTreeSet::new();
    // Kinds are compared without their version: the first one is kept.
    for gvk in interpreters.kinds().cloned().chain(native) {
        if interpreters.of(&gvk).refers(&gvk) && !all.contains(&gvk) {
            all.insert(gvk);
        }
    }
    if interpreters.kinds().next().is_some() {
        all.insert(Gvk::new("v1", "Namespace"));
    }
    all.extend([&scope::BINDING, &scope::CLUSTER_BINDING].map(binding));
    all
}

fn binding(kind: &scope::BindingKind) -> Gvk {
    Gvk::new(scope::BINDING_API, kind.kind)
}

async fn read(
    hub: &Client,
    gvk: &Gvk,
    served: &Served,
    namespace: &str,
    interpreters: &InterpreterSnapshot,
) -> Result<Vec<(ResourceId, Value)>> {
    let failed = || format!("cannot list {} on the hub", served.resource.plural);
    let whole = interpreters.of(gvk).refers(gvk) || gvk.api_version() == scope::BINDING_API;
    if whole {
        let params = ListParams::default().limit(PAGE);
        let objects = list(hub, served, namespace, &params)
            .await
            .map_err(explain)
            .with_context(failed)?;
        return Ok(objects
            .into_iter()
            .filter_map(|object| Some((ResourceId::of(&object)?, object)))
            .collect());
    }
    let api = api(hub, served, namespace);
    let mut params = ListParams::default().limit(PAGE);
    let mut all = Vec::new();
    loop {
        let page = connect::within(api.list_metadata(&params))
            .await
            .map_err(explain)
            .with_context(failed)?;
        for object in page.items {
            let meta = object.metadata;
            let (name, namespace) = (meta.name.unwrap_or_default(), meta.namespace.unwrap_or_default());
            let mut kept = json!({"namespace": namespace, "name": name, "labels": meta.labels});
            // The references from other namespaces that a namespace allows. Annotations of other kinds may contain whole
            // objects.
            if &*gvk.kind == "Namespace" {
                kept["annotations"] = json!(meta.annotations);
            }
            all.push((
                ResourceId::new(gvk.clone(), &namespace, &name),
                json!({ "metadata": kept }),
            ));
        }
        match page.metadata.continue_.filter(|next| !next.is_empty()) {
            Some(next) => params.continue_token = Some(next),
            None => return Ok(all),
        }
    }
}

fn join(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}

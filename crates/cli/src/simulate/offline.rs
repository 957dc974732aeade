//! Simulation of files alone: the clusters are those of the files, or assumed.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use entourage_admission::{self as admission, Operation, Request, Settings};
use entourage_core::{
    object::{Gvk, ResourceId},
    observation::misread,
};
use entourage_lua::Lua;
use entourage_simulation::{Note, Progress, named_namespaces, overlay::overlay};
use serde_json::{Value, json};

use super::{
    Assumed, Simulated, add_remarks, begin, placed,
    strict::{Decoder, Known},
};
use crate::kinds;

/// The id of a hub that is not there.
const NO_HUB: &str = "00000000-0000-4000-8000-000000000000";

/// Simulates the objects on clusters of the files; without any, on clusters of these names; without those, on the ones that
/// the policies name.
///
/// # Errors
/// There are policies, and no clusters.
pub fn simulate(
    objects: Vec<Value>,
    clusters: &[String],
    namespace: &str,
    controllers: &Assumed,
) -> Result<Simulated> {
    let mut remarks = Vec::new();
    let mut simulation = begin(NO_HUB, controllers);
    let defined = kinds::defined(&objects);
    let objects = objects.into_iter().map(|object| {
        let gvk = Gvk::new(
            object["apiVersion"].as_str().unwrap_or_default(),
            object["kind"].as_str().unwrap_or_default(),
        );
        placed(object, kinds::is_namespaced(&gvk, &defined), namespace)
    });
    let objects: Vec<Value> = objects.collect();
    let decoder = Decoder::new(&objects, Known::All);
    let warnings = unserved(&objects, &decoder, &mut remarks);
    let (good, bad) = admitted(objects, &decoder);
    for (object, why) in bad {
        simulation.refuse(&object, why);
    }
    for cluster in assumed(&good, clusters, &mut remarks)? {
        simulation.know(cluster);
    }
    if controllers.distribute {
        for namespace in assumed_namespaces(&good, &mut remarks) {
            simulation.know(namespace);
        }
    }
    for object in good {
        if object["kind"] == "Cluster" {
            // The members are inputs of a plan, not part of its output.
            simulation.know(object);
            continue;
        }
        simulation.apply(None, overlay(None, &object));
    }
    let progress = simulation.run_alone();
    add_remarks(&progress, &mut remarks);
    Ok(Simulated {
        simulation,
        is_settled: progress == Progress::Settled,
        unread: BTreeSet::new(),
        remarks,
        warnings,
    })
}

/// Warns of objects whose kind a hub does not serve, and remarks on kinds that only its administrator knows of.
///
/// Karmada's own kinds come with the control plane or not at all; any other may have a definition that is not among the files.
fn unserved(objects: &[Value], decoder: &Decoder, remarks: &mut Vec<String>) -> Vec<Note> {
    let (mut warnings, mut assumed) = (Vec::new(), BTreeSet::new());
    for object in objects.iter().filter(|object| !decoder.knows(object)) {
        let Some(id) = ResourceId::of(object) else {
            continue;
        };
        let kind = format!("{} of {}", id.gvk.kind, id.gvk.api_version());
        if id.gvk.group.ends_with(".karmada.io") {
            warnings.push(Note {
                object: id.to_string(),
                condition: "Propagated".to_owned(),
                reason: "KindNotServed".to_owned(),
                message: format!(
                    "the hub does not serve {kind}, and nothing acts on it: remove it from the files"
                ),
            });
        } else {
            assumed.insert(kind);
        }
    }
    if !assumed.is_empty() {
        let kinds: Vec<String> = assumed.into_iter().collect();
        remarks.push(format!(
            "the kinds are assumed to be served: {}, which the files do not define",
            kinds.join(", ")
        ));
    }
    warnings
}

/// The objects as the webhook of a hub would admit them, and those that it would refuse, with the reason.
fn admitted(objects: Vec<Value>, decoder: &Decoder) -> (Vec<Value>, Vec<(Value, String)>) {
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    let others: Vec<Value> = objects.iter().filter(|each| is_judged(each)).cloned().collect();
    for object in objects {
        let Some(id) = ResourceId::of(&object) else {
            good.push(object);
            continue;
        };
        if let Some(why) = misread::why(&id, &object) {
            bad.push((object, why));
            continue;
        }
        let object = match decoder.decode(&object) {
            Ok(object) => object,
            Err(why) => {
                bad.push((object, why));
                continue;
            }
        };
        if !is_judged(&object) {
            good.push(object);
            continue;
        }
        let of_kind = |other: &&Value| other["kind"] == object["kind"];
        let others: Vec<Value> = others.iter().filter(of_kind).cloned().collect();
        let request = |object| Request {
            group: &id.gvk.group,
            kind: &id.gvk.kind,
            namespace: &id.namespace,
            name: &id.name,
            operation: Operation::Create,
            object: Some(object),
            old: None,
            others: &others,
            // The flags of a hub's webhook are unknown: the permissive ones are assumed.
            settings: Settings {
                allow_no_execute: true,
                kinds_per_namespace: None,
                selectors_per_policy: None,
                scripts: Some(&Lua::STANDARD),
            },
        };
        let filled = admission::filled(&request(&object)).unwrap_or_else(|| object.clone());
        match admission::validate(&request(&filled)) {
            Ok(()) => good.push(filled),
            Err(refusal) => bad.push((object, refusal.to_string())),
        }
    }
    (good, bad)
}

/// True if admission has rules of its own for the kind.
fn is_judged(object: &Value) -> bool {
    let group = object["apiVersion"].as_str().unwrap_or_default();
    let group = group.split_once('/').map_or("", |(group, _)| group);
    let mut kinds = admission::KINDS.iter();
    kinds.any(|kind| kind.group == group && object["kind"] == *kind.kind)
}

/// Clusters that no file holds.
fn assumed(objects: &[Value], clusters: &[String], remarks: &mut Vec<String>) -> Result<Vec<Value>> {
    let is = |object: &&Value, kind: &str| object["kind"] == kind;
    let in_files = objects.iter().any(|object| is(&object, "Cluster"));
    let policies = || {
        objects
            .iter()
            .filter(|object| is(object, "PropagationPolicy") || is(object, "ClusterPropagationPolicy"))
    };
    if in_files && clusters.is_empty() {
        return Ok(Vec::new());
    }
    let names: BTreeSet<String> = if clusters.is_empty() {
        policies().flat_map(named).collect()
    } else {
        clusters.iter().cloned().collect()
    };
    if names.is_empty() && policies().next().is_some() {
        bail!(
            "the files hold no Cluster and their policies name none; name some with --clusters a,b, or give Clusters of \
             the hub: kubectl get clusters -o yaml"
        );
    }
    if !names.is_empty() {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let why = if clusters.is_empty() {
            ", which the policies name"
        } else {
            ""
        };
        remarks.push(format!(
            "the clusters are assumed: {}{why}; ready, without labels or taints, and empty",
            names.join(", ")
        ));
    }
    Ok(names.iter().map(|name| cluster(name)).collect())
}

/// Namespaces that no file holds and a distribution names: it reaches those that exist.
fn assumed_namespaces(objects: &[Value], remarks: &mut Vec<String>) -> Vec<Value> {
    let names = named_namespaces(objects);
    if !names.is_empty() {
        remarks.push(format!(
            "the namespaces are assumed: {}, which distributions name; without labels",
            names.join(", ")
        ));
    }
    let namespace = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    names.iter().map(|name| namespace(name)).collect()
}

/// The clusters that a policy names.
fn named(policy: &Value) -> Vec<String> {
    let placement = &policy["spec"]["placement"];
    let groups = || placement["clusterAffinities"].as_array().into_iter().flatten();
    let overflow = groups().filter_map(|group| group["overflowAffinities"].as_array());
    let affinities = groups()
        .chain(overflow.flatten())
        .chain([&placement["clusterAffinity"]]);
    affinities
        .filter_map(|affinity| affinity["clusterNames"].as_array())
        .flatten()
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect()
}

fn cluster(name: &str) -> Value {
    json!({
        "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": name},
        "spec": {"syncMode": "Push"},
    })
}

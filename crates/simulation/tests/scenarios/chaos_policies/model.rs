//! The state that the hub's objects ask for, computed the slow way.

use std::collections::{BTreeMap, BTreeSet};

use entourage_core::object::ResourceId;
use serde_json::{Value, json};

use super::{MEMBERS, inputs::TEMPLATES};
use crate::world::{World, id};

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn templates(world: &World) -> impl Iterator<Item = (&ResourceId, &Value)> {
    let of_kinds = world
        .hub
        .iter()
        .filter(|(key, _)| TEMPLATES.contains(&&*key.gvk.kind));
    // Execution namespaces belong to the system.
    of_kinds.filter(|(key, _)| !key.name.starts_with("karmada-es-"))
}

fn of_kinds<'a>(world: &'a World, kinds: [&'a str; 2]) -> impl Iterator<Item = (&'a ResourceId, &'a Value)> {
    world
        .hub
        .iter()
        .filter(move |(key, _)| kinds.contains(&&*key.gvk.kind))
}

/// The precision with which the selectors select an object, if they do: 1 by kind, 2 by labels, 3 by name.
fn selected(selectors: &Value, key: &ResourceId, object: &Value) -> Option<u8> {
    let fits = |selector: &&Value| {
        selector["apiVersion"] == object["apiVersion"]
            && selector["kind"] == object["kind"]
            && (selector["namespace"].is_null() || selector["namespace"] == *key.namespace)
    };
    items(selectors)
        .filter(fits)
        .filter_map(|selector| {
            if !selector["name"].is_null() {
                return (selector["name"] == *key.name).then_some(3);
            }
            let Some(wanted) = selector["labelSelector"]["matchLabels"].as_object() else {
                return Some(1);
            };
            wanted
                .iter()
                .all(|(key, value)| object["metadata"]["labels"][key] == *value)
                .then_some(2)
        })
        .max()
}

/// The policies that select a template, with their keys.
fn policy_index<'a>(
    world: &'a World,
    key: &ResourceId,
    object: &Value,
) -> BTreeMap<&'a ResourceId, &'a Value> {
    of_kinds(world, ["PropagationPolicy", "ClusterPropagationPolicy"])
        .filter(|(policy, _)| policy.namespace.is_empty() || policy.namespace == key.namespace)
        .filter(|(_, policy)| policy["metadata"]["deletionTimestamp"].is_null())
        .filter(|(_, policy)| selected(&policy["spec"]["resourceSelectors"], key, object).is_some())
        .collect()
}

fn claim(object: &Value) -> Option<ResourceId> {
    let annotations = &object["metadata"]["annotations"];
    let own = annotations["propagationpolicy.karmada.io/name"].as_str();
    let wide = annotations["clusterpropagationpolicy.karmada.io/name"].as_str();
    match (own, wide) {
        (None, None) => None,
        (Some(name), None) => {
            let namespace = text(&annotations["propagationpolicy.karmada.io/namespace"]);
            Some(id("PropagationPolicy", namespace, name))
        }
        (None, Some(name)) => Some(id("ClusterPropagationPolicy", "", name)),
        (Some(_), Some(_)) => panic!("claimed twice: {object}"),
    }
}

fn id_of(policy: &ResourceId, object: &Value) -> Value {
    let label = if policy.namespace.is_empty() {
        "clusterpropagationpolicy.karmada.io/permanent-id"
    } else {
        "propagationpolicy.karmada.io/permanent-id"
    };
    object["metadata"]["labels"][label].clone()
}

/// Claims are as the policies say, whatever happened before: the claim is one of a policy that selects the
/// template, nobody stronger asks for it, and what nobody claims nobody selects.
pub(super) fn check_claims(world: &World, about: &str) {
    for (key, object) in templates(world) {
        let policy_index = policy_index(world, key, object);
        let Some(holder) = claim(object) else {
            assert!(
                policy_index.is_empty(),
                "{about}: {key:?} is not claimed by {:?}",
                policy_index.keys()
            );
            continue;
        };
        // A crash between a claim and the binding, and no policy selects the kind any more: nobody looks at it.
        let is_of = |selector: &Value| {
            selector["kind"] == object["kind"] && selector["apiVersion"] == object["apiVersion"]
        };
        let is_watched = of_kinds(world, ["PropagationPolicy", "ClusterPropagationPolicy"])
            .any(|(_, policy)| items(&policy["spec"]["resourceSelectors"]).any(is_of));
        if !is_watched && binding(world, key, object).is_none() {
            continue;
        }
        let policy = policy_index
            .get(&holder)
            .unwrap_or_else(|| panic!("{about}: {key:?} is claimed by {holder:?}"));
        assert!(id_of(&holder, policy).is_string());
        assert_eq!(
            id_of(&holder, policy),
            id_of(&holder, object),
            "{about}: {key:?} by {holder:?}"
        );
        let priority = |policy: &Value| policy["spec"]["priority"].as_i64().unwrap_or(0);
        let stronger = policy_index.iter().find(|(name, other)| {
            other["spec"]["preemption"] == "Always"
                && match (name.namespace.is_empty(), holder.namespace.is_empty()) {
                    (false, true) => true,
                    (true, false) => false,
                    _ => priority(other) > priority(policy),
                }
        });
        assert!(
            stronger.is_none(),
            "{about}: {key:?} of {holder:?} should be {stronger:?}"
        );
    }
    // Nothing else carries a claim that is no more, and no policy waits for its end.
    for (key, object) in of_kinds(world, ["PropagationPolicy", "ClusterPropagationPolicy"]) {
        assert!(
            object["metadata"]["deletionTimestamp"].is_null(),
            "{about}: {key:?} does not end"
        );
    }
}

/// The members' own objects are unchanged.
pub(super) fn check_foreign(world: &World, about: &str) {
    let red = world.on("member1", "ConfigMap", "red").expect("theirs");
    assert_eq!(red["data"]["key"], "theirs", "{about}");
    assert!(red["metadata"]["labels"].is_null(), "{about}");
    let shop = world.on("member1", "Namespace", "shop").expect("theirs");
    assert_eq!(shop["metadata"]["labels"]["theirs"], "x", "{about}: {shop}");
}

/// The binding of a template.
fn binding<'a>(world: &'a World, key: &ResourceId, object: &Value) -> Option<&'a Value> {
    let mut all = of_kinds(world, ["ResourceBinding", "ClusterResourceBinding"])
        .map(|(_, binding)| binding)
        .filter(|binding| {
            let resource = &binding["spec"]["resource"];
            resource["apiVersion"] == object["apiVersion"]
                && resource["kind"] == object["kind"]
                && resource["name"] == *key.name
                && text(&resource["namespace"]) == &*key.namespace
        });
    let found = all.next();
    assert!(all.next().is_none(), "two bindings of {key:?}");
    found
}

fn names(clusters: &Value) -> BTreeSet<&str> {
    items(clusters).map(|each| text(&each["name"])).collect()
}

/// True if one template needs another.
fn needs(from: &Value, to: &ResourceId, object: &Value) -> bool {
    if text(&from["metadata"]["namespace"]) != &*to.namespace {
        return false;
    }
    match (text(&from["kind"]), &*to.gvk.kind) {
        ("Deployment", "ConfigMap") => items(&from["spec"]["template"]["spec"]["volumes"])
            .any(|volume| volume["configMap"]["name"] == *to.name),
        ("ServiceImport", "EndpointSlice") => {
            let service = format!("derived-{}", text(&from["metadata"]["name"]));
            object["metadata"]["labels"]["kubernetes.io/service-name"] == *service
        }
        _ => false,
    }
}

/// Everything is as the hub's objects ask, where nothing is suspended, lazy and not touched, or bad.
pub(super) fn check_all(world: &World, about: &str) {
    let mut wanted: BTreeMap<(&str, &ResourceId), Value> = BTreeMap::new();
    for (key, object) in templates(world) {
        let stored = binding(world, key, object);
        let policy_index = policy_index(world, key, object);
        if let Some(holder) = claim(object).filter(|holder| policy_index.contains_key(holder)) {
            let stored = stored.unwrap_or_else(|| panic!("{about}: {key:?} has no binding"));
            check_own(stored, key, object, &world.hub[&holder], about);
            assert_eq!(claim(stored), Some(holder), "{about}: {key:?}");
        }
        let own = stored.filter(|stored| !stored["spec"]["placement"].is_null());
        let mut places = own
            .map(|stored| names(&stored["spec"]["clusters"]))
            .unwrap_or_default();
        for (from, referrer) in templates(world).filter(|(_, referrer)| needs(referrer, key, object)) {
            let following = binding(world, from, referrer)
                .filter(|each| each["spec"]["propagateDeps"] == true && !each["spec"]["placement"].is_null());
            places.extend(
                following
                    .map(|each| names(&each["spec"]["clusters"]))
                    .unwrap_or_default(),
            );
        }
        let has_reason = own.is_some() || !places.is_empty();
        assert_eq!(stored.is_some(), has_reason, "{about}: the binding of {key:?}");
        for place in places {
            wanted.insert(
                (place, key),
                expected(world, key, object, stored.expect("binding"), place),
            );
        }
    }
    for member in MEMBERS {
        let held = &world.members[member];
        for (key, copy) in held.iter().filter(|(key, _)| TEMPLATES.contains(&&*key.gvk.kind)) {
            let is_ours = !copy["metadata"]["labels"]["entourage.dev/hub"].is_null();
            let is_wanted = wanted.contains_key(&(member, key));
            assert!(
                is_wanted || !is_ours,
                "{about}: {key:?} should not be on {member}"
            );
        }
    }
    for ((member, key), expected) in wanted {
        if (member, key) == ("member1", &id("ConfigMap", "default", "red")) {
            continue;
        }
        let copy = world.members[member].get(key);
        let copy = copy.unwrap_or_else(|| panic!("{about}: {key:?} should be on {member}"));
        for field in ["spec", "data", "rules", "endpoints"] {
            assert_eq!(
                copy[field], expected[field],
                "{about}: {field} of {key:?} on {member}"
            );
        }
        check_labels(copy, &expected, &format!("{about}: {key:?} on {member}"));
        let touched = [copy, &expected].map(|each| &each["metadata"]["annotations"]["touched"]);
        assert_eq!(touched[0], touched[1], "{about}: {key:?} on {member}");
    }
    check_namespaces(world, about);
}

/// The labels that users set are on the copy, and no others that are ours.
fn check_labels(copy: &Value, expected: &Value, about: &str) {
    for label in ["tier", "front", "team", "kubernetes.io/service-name"] {
        let [held, wanted] = [copy, expected].map(|each| &each["metadata"]["labels"][label]);
        // A namespace that was let go keeps its labels: they are the member's from then on.
        let annotations = copy["metadata"]["annotations"].as_object().into_iter().flatten();
        let is_ours = annotations
            .filter(|(key, _)| key.contains("managed-labels") || key.contains("managed-by"))
            .any(|(_, list)| text(list).contains(label));
        if copy["kind"] == "Namespace" && wanted.is_null() && !is_ours {
            continue;
        }
        assert_eq!(held, wanted, "{about}: label {label}: {copy}");
    }
}

/// Compares the binding of a template with the policy that claims it.
fn check_own(stored: &Value, key: &ResourceId, object: &Value, policy: &Value, about: &str) {
    let (spec, reported) = (&stored["spec"], &policy["spec"]);
    let about = format!("{about}: the binding of {key:?}");
    assert_eq!(
        spec["propagateDeps"] == true,
        reported["propagateDeps"] == true
            || items(&reported["resourceSelectors"]).any(|selector| selector["kind"] == "ServiceImport"),
        "{about}"
    );
    let placement = &reported["placement"];
    let affinity = |placement: &Value| placement["clusterAffinity"]["clusterNames"].clone();
    assert_eq!(affinity(&spec["placement"]), affinity(placement), "{about}");
    let fitting: BTreeSet<String> = items(&affinity(placement))
        .map(|name| text(name).to_owned())
        .collect();
    let chosen = names(&spec["clusters"]);
    assert!(
        chosen.iter().all(|name| fitting.contains(*name)),
        "{about}: {chosen:?} of {fitting:?}"
    );
    let replicas = object["spec"]["replicas"].as_i64();
    let is_divided =
        replicas.is_some() && placement["replicaScheduling"]["replicaSchedulingType"] == "Divided";
    let constraint = &placement["spreadConstraints"][0];
    let region = |name: &str| if name == "member2" { "us" } else { "eu" };
    let most = usize::try_from(constraint["maxGroups"].as_u64().unwrap_or(9)).unwrap_or(9);
    match text(&constraint["spreadByField"]) {
        "cluster" if is_divided => assert!(chosen.len() <= most, "{about}: {chosen:?}"),
        "cluster" => assert_eq!(chosen.len(), most.min(fitting.len()), "{about}: {chosen:?}"),
        "region" => {
            let regions: BTreeSet<&str> = chosen.iter().map(|name| region(name)).collect();
            assert_eq!(regions.len(), 1, "{about}: {chosen:?}");
            let all = fitting.iter().filter(|name| regions.contains(region(name)));
            assert!(
                is_divided || chosen.len() == all.count(),
                "{about}: {chosen:?} of {fitting:?}"
            );
        }
        _ if !is_divided => assert_eq!(chosen.len(), fitting.len(), "{about}: {chosen:?}"),
        _ => {}
    }
    if let Some(replicas) = replicas {
        assert_eq!(spec["replicas"], replicas, "{about}");
        let share = |target: &Value| target["replicas"].as_i64().unwrap_or(0);
        let reported: BTreeMap<&str, i64> = items(&spec["clusters"])
            .map(|each| (text(&each["name"]), share(each)))
            .collect();
        if !is_divided {
            assert!(
                reported.values().all(|reported| *reported == replicas),
                "{about}: {reported:?}"
            );
        } else {
            assert_eq!(reported.values().sum::<i64>(), replicas, "{about}: {reported:?}");
            if constraint.is_null() {
                let all: Vec<&str> = fitting.iter().map(String::as_str).collect();
                assert_eq!(reported, seats(placement, &all, replicas), "{about}");
            }
        }
    }
}

/// One seat after the other to who has the highest average (Webster).
fn seats<'a>(placement: &Value, clusters: &[&'a str], replicas: i64) -> BTreeMap<&'a str, i64> {
    let rules = &placement["replicaScheduling"]["weightPreference"]["staticWeightList"];
    let weight = |name: &str| {
        items(rules)
            .filter(|rule| rule["targetCluster"]["clusterNames"][0] == *name)
            .filter_map(|rule| rule["weight"].as_i64())
            .max()
            .unwrap_or(0)
    };
    let mut given: BTreeMap<&str, i64> = clusters.iter().map(|name| (*name, 0)).collect();
    for _ in 0..replicas {
        let mut best: Option<(&str, i64, i64)> = None;
        for (name, seats) in &given {
            let (weight, divisor) = (weight(name), 2 * seats + 1);
            if weight > 0 && best.is_none_or(|(_, most, by)| weight * by > most * divisor) {
                best = Some((name, weight, divisor));
            }
        }
        *given.get_mut(best.expect("weights").0).expect("given") += 1;
    }
    given.retain(|_, seats| *seats > 0);
    given
}

/// The copy as expected on a cluster.
fn expected(world: &World, key: &ResourceId, object: &Value, stored: &Value, cluster: &str) -> Value {
    let mut copy = object.clone();
    let spec = &stored["spec"];
    let is_divided = spec["placement"]["replicaScheduling"]["replicaSchedulingType"] == "Divided";
    let target = items(&spec["clusters"]).find(|target| target["name"] == cluster);
    if let Some(target) = target.filter(|_| is_divided && !object["spec"]["replicas"].is_null()) {
        copy["spec"]["replicas"] = json!(target["replicas"].as_i64().unwrap_or(0));
    }
    for kind in ["ClusterOverridePolicy", "OverridePolicy"] {
        let mut all: Vec<(u8, &ResourceId, &Value)> = of_kinds(world, [kind, kind])
            .filter(|(name, _)| name.namespace.is_empty() || name.namespace == key.namespace)
            .filter_map(|(name, policy)| {
                Some((
                    selected(&policy["spec"]["resourceSelectors"], key, &copy)?,
                    name,
                    &policy["spec"],
                ))
            })
            .collect();
        all.sort_by_key(|(exact, name, _)| (*exact, *name));
        for rule in all.iter().flat_map(|(_, _, spec)| items(&spec["overrideRules"])) {
            let aimed = &rule["targetCluster"]["clusterNames"];
            if aimed.is_null() || items(aimed).any(|name| name == cluster) {
                change(&mut copy, &rule["overriders"]);
            }
        }
    }
    copy
}

fn change(copy: &mut Value, overriders: &Value) {
    for image in items(&overriders["imageOverrider"]) {
        copy["spec"]["template"]["spec"]["containers"][0]["image"] =
            json!(format!("{}/nginx", text(&image["value"])));
    }
    for labels in items(&overriders["labelsOverrider"]) {
        for (label, value) in labels["value"].as_object().into_iter().flatten() {
            copy["metadata"]["labels"][label] = value.clone();
        }
    }
    for plain in items(&overriders["plaintext"]) {
        copy["data"]["key"] = plain["value"].clone();
    }
}

/// Each namespace that is not left out is on every member, with the labels it has on the hub.
fn check_namespaces(world: &World, about: &str) {
    for (key, object) in templates(world).filter(|(key, _)| &*key.gvk.kind == "Namespace") {
        let labels = &object["metadata"]["labels"];
        // One that a policy placed once is left to its binding.
        let is_bound = binding(world, key, object).is_some();
        if is_bound
            || claim(object).is_some()
            || labels["namespace.karmada.io/skip-auto-propagation"] == "true"
        {
            continue;
        }
        for member in MEMBERS {
            let copy = world.members[member].get(key);
            let copy = copy.unwrap_or_else(|| panic!("{about}: {key:?} should be on {member}"));
            let expected = expected(world, key, object, &Value::Null, member);
            check_labels(copy, &expected, &format!("{about}: {key:?} on {member}"));
        }
    }
}

/// The state in which two runs of one seed must agree: all but the names of bindings that depend on which of two groups came
/// first, and namespaces of members, which nobody ever takes away.
pub(super) fn comparable(world: &World) -> BTreeMap<String, String> {
    let mut all = world.outline();
    all.retain(|key, _| !key.contains("widget") && !key.contains("Widget") && !key.contains("Namespace"));
    all
}

/// Says where twins differ, and no more.
pub(super) fn assert_same(one: &BTreeMap<String, String>, other: &BTreeMap<String, String>, about: &str) {
    for key in one.keys().chain(other.keys()) {
        let Some((one, other)) = one.get(key).zip(other.get(key)) else {
            panic!("{about}: only one of the twins has {key}");
        };
        let at = one
            .bytes()
            .zip(other.bytes())
            .position(|(one, other)| one != other);
        let from = at.unwrap_or(one.len().min(other.len())).saturating_sub(60);
        let part = |text: &str| text.chars().skip(from).take(200).collect::<String>();
        assert!(
            one == other,
            "{about}: {key}: {:?} or {:?}",
            part(one),
            part(other)
        );
    }
}

//! Namespaces: each namespace of the hub is created on every member, with its labels and annotations.
//!
//! Excluded are `default`, the namespaces of the system, those with the label `namespace.karmada.io/skip-auto-propagation` set
//! to `true`, and those that have a binding: these are scheduled by their ClusterPropagationPolicy, also after it is deleted.
//! An existing namespace of a member is adopted: labels and annotations of other writers stay. When the hub deletes a
//! namespace, it is deleted on members where this hub created it and it is empty, see `end`.
//!
//! Source: Karmada reference 1.7.

mod end;

pub use crate::member_namespace::{Seen, content, creator, proof};

use entourage_api::keys::annotation;
use serde_json::{Map, Value, json};

pub use crate::fleet::namespaces::is_propagated;
use crate::{
    fleet::{Fleet, namespaces::Unset},
    member_namespace::list::{self, List},
    object::{Meta, Str, StrMap, Time},
    plan::{Change, Plan, Preconditions},
};

/// Plans one namespace of one member. Cost: O(labels and annotations).
#[must_use]
pub fn plan(fleet: &Fleet, name: &Str, cluster: &Str, now: Time) -> Plan {
    if let Some(plan) = end::of_leaving_agent(fleet, name, cluster) {
        return plan;
    }
    if !fleet.cache.namespaces.hub.contains_key(name) {
        return end::plan(fleet, name, cluster, now);
    }
    let wanted = match fleet.wanted_of_namespace(name, cluster) {
        Ok(wanted) => wanted,
        Err(Unset::NotWanted) => return Plan::nothing(),
        Err(Unset::Waits(why)) => return Plan::wait(why),
        // With an invalid rule it stays as it is; a missing one is created when an object is delivered into it.
        Err(Unset::Bad(bad)) => {
            let refusal = Change::Refuse(bad.to_string());
            return Plan::one(refusal, "an override policy cannot be applied");
        }
    };
    match fleet.cache.namespaces.on(cluster, name) {
        Some(seen) if seen.deleting || seen.carries(&fleet.config.hub, &wanted) => return Plan::nothing(),
        _ => {}
    }
    if let Some(until) = fleet.cache.namespaces.drift_corrected_at(cluster, name, now) {
        let why = format!("another writer on {cluster} keeps changing it: another hub, or a webhook there");
        return Plan::wait_until(until, why);
    }
    Plan::one(
        Change::Namespace {
            cluster: cluster.clone(),
            name: name.clone(),
            labels: wanted.labels,
            annotations: wanted.annotations,
        },
        "it is not there, or not with these labels and annotations",
    )
}

/// The namespace to create on a member that has none. It is recorded as created by this hub; its uid is recorded afterwards, see
/// [`proven`].
#[must_use]
pub fn created((hub, cluster): (&str, &str), name: &str, labels: &StrMap, annotations: &StrMap) -> Value {
    let mut object = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
    });
    object["metadata"]["annotations"][annotation::CREATED_BY] = json!(creator(hub, cluster));
    object
}

/// The merge patch that records on a namespace the uid of the object that this hub created: sent when the response to its
/// creation returned the uid. A namespace of another uid refuses it. Without this record the namespace is never deleted, only
/// released.
#[must_use]
pub fn proven((hub, cluster): (&str, &str), uid: &str) -> Value {
    json!({"metadata": {"uid": uid, "annotations": {annotation::CREATED_BY: proof(hub, cluster, uid)}}})
}

/// The merge patch that removes this hub's records from exactly this namespace of a member. Labels and annotations of users
/// stay.
#[must_use]
pub fn released(preconditions: &Preconditions, hub: &str) -> Value {
    json!({"metadata": {
        "uid": &*preconditions.uid, "resourceVersion": &*preconditions.resource_version,
        "annotations": {list::key(hub): null, annotation::CREATED_BY: null},
    }})
}

/// The merge patch that adds these labels and annotations to a member's namespace, and removes those that this hub set before
/// and no longer wants. `None` if nothing changes. Those of other writers stay, another hub's too.
#[must_use]
pub fn patch(live: &Value, hub: &str, labels: &StrMap, annotations: &StrMap) -> Option<Value> {
    let meta = Meta::of(live);
    let mut list = List::on(&meta, hub);
    list.annotations.push(list::key(hub));
    let part = |held: &StrMap, wanted: &StrMap, ours: Vec<String>| {
        let mut change: Map<String, Value> = ours
            .into_iter()
            .filter(|key| held.contains_key(key) && !wanted.contains_key(key))
            .map(|key| (key, Value::Null))
            .collect();
        for (key, value) in wanted {
            if held.get(key) != Some(value) {
                change.insert(key.to_string(), json!(&**value));
            }
        }
        change
    };
    let labels = part(&meta.labels, labels, list.labels);
    let annotations = part(&meta.annotations, annotations, list.annotations);
    if labels.is_empty() && annotations.is_empty() {
        return None;
    }
    Some(json!({"metadata": {
        "uid": &*meta.uid, "resourceVersion": &*meta.resource_version,
        "labels": labels, "annotations": annotations,
    }}))
}

#[cfg(test)]
mod tests {
    use entourage_api::keys::label;

    use super::*;
    use crate::{
        config::Config,
        fleet::namespaces::{id_of, travels},
        marks::Marks,
    };

    const HUB: &str = "hub";

    fn wanted(hub: &str, template: &Meta) -> Marks {
        crate::fleet::namespaces::wanted(hub, template, &id_of("shop"), "m1", &[]).unwrap()
    }

    fn namespace(labels: &Value, annotations: &Value) -> Value {
        json!({"metadata": {"name": "shop", "uid": "u", "resourceVersion": "1", "labels": labels, "annotations": annotations}})
    }

    /// Applies a merge patch as an API server does.
    fn patched(live: &Value, patch: &Value) -> Value {
        let mut next = live.clone();
        for field in ["labels", "annotations"] {
            for (key, value) in patch["metadata"][field].as_object().into_iter().flatten() {
                if value.is_null() {
                    next["metadata"][field].as_object_mut().map(|map| map.remove(key));
                } else {
                    next["metadata"][field][key] = value.clone();
                }
            }
        }
        next
    }

    #[test]
    fn a_namespace_is_adopted_and_what_others_set_stays() {
        let template = Meta::of(&namespace(
            &json!({"team": "a", "kubernetes.io/metadata.name": "shop"}),
            &json!({}),
        ));
        let wanted = wanted(HUB, &template);
        let live = namespace(&json!({"theirs": "x", "team": "b"}), &json!({}));
        let change = patch(&live, HUB, &wanted.labels, &wanted.annotations).expect("a change");
        let next = patched(&live, &change);
        assert_eq!(next["metadata"]["labels"], json!({"team": "a", "theirs": "x"}));
        assert!(Seen::of(&next).carries(HUB, &wanted));
        assert_eq!(patch(&next, HUB, &wanted.labels, &wanted.annotations), None);
    }

    #[test]
    fn a_label_that_is_gone_from_the_hub_goes_and_one_of_others_never_does() {
        let before = wanted(
            HUB,
            &Meta::of(&namespace(
                &json!({"team": "a", "tier": "1"}),
                &json!({"note": "n"}),
            )),
        );
        let live = namespace(&json!({"theirs": "x"}), &json!({}));
        let live = patched(
            &live,
            &patch(&live, HUB, &before.labels, &before.annotations).expect("a change"),
        );
        let after = wanted(HUB, &Meta::of(&namespace(&json!({"tier": "2"}), &json!({}))));
        let live = patched(
            &live,
            &patch(&live, HUB, &after.labels, &after.annotations).expect("a change"),
        );
        assert_eq!(live["metadata"]["labels"], json!({"tier": "2", "theirs": "x"}));
        assert_eq!(live["metadata"]["annotations"].get("note"), None);
        let none = wanted(HUB, &Meta::default());
        let live = patched(
            &live,
            &patch(&live, HUB, &none.labels, &none.annotations).expect("a change"),
        );
        assert_eq!(live["metadata"]["labels"], json!({"theirs": "x"}));
        assert_eq!(live["metadata"]["annotations"], json!({}));
        assert!(Seen::of(&live).carries(HUB, &none));
    }

    #[test]
    fn two_hubs_of_one_member_leave_each_other_in_peace() {
        let of = |label: &str| Meta::of(&namespace(&json!({label: "x"}), &json!({"shared": "y"})));
        let (one, other) = (wanted("one", &of("a")), wanted("other", &of("b")));
        let mut live = namespace(&json!({}), &json!({}));
        for (hub, wanted) in [("one", &one), ("other", &other)] {
            live = patched(
                &live,
                &patch(&live, hub, &wanted.labels, &wanted.annotations).expect("a change"),
            );
        }
        assert_eq!(live["metadata"]["labels"], json!({"a": "x", "b": "x"}));
        for (hub, wanted) in [("one", &one), ("other", &other)] {
            assert!(Seen::of(&live).carries(hub, wanted), "{hub}");
            assert_eq!(
                patch(&live, hub, &wanted.labels, &wanted.annotations),
                None,
                "{hub}"
            );
        }
        let live = patched(
            &live,
            &patch(&live, "one", &StrMap::new(), &StrMap::new()).expect("a change"),
        );
        assert_eq!(live["metadata"]["labels"], json!({"b": "x"}));
        assert_eq!(
            live["metadata"]["annotations"].get("managed-by.entourage.dev/one"),
            None
        );
        assert!(!travels("managed-by.entourage.dev/one") && travels("notentourage.dev/one"));
    }

    #[test]
    fn a_namespace_without_labels_is_left_as_it_stands() {
        let live = namespace(&json!({"theirs": "x"}), &json!({"a": "b"}));
        assert!(Seen::of(&live).carries(HUB, &wanted(HUB, &Meta::default())));
    }

    #[test]
    fn the_systems_namespaces_and_those_that_are_marked_stay_where_they_are() {
        let plain = Meta::default();
        let mut config = Config::new("hub");
        config.reserved.insert("fleet".into());
        for (name, wanted) in [
            ("fleet", false),
            ("shop", true),
            ("default", false),
            ("kube-system", false),
            ("karmada-es-m1", false),
        ] {
            assert_eq!(is_propagated(&config, name, &plain), wanted, "{name}");
        }
        let skipped = Meta::of(&namespace(
            &json!({label::SKIP_AUTO_PROPAGATION: "true"}),
            &json!({}),
        ));
        let claimed = Meta::of(&namespace(
            &json!({}),
            &json!({annotation::CLUSTER_PROPAGATION_POLICY_NAME: "p"}),
        ));
        for kept in [&skipped, &claimed] {
            assert!(!is_propagated(&config, "shop", kept));
        }
    }
}

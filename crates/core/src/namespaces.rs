//! Namespaces: each one of the hub is on every member, with its labels and annotations.
//!
//! Left out are `default`, the namespaces of the system, those with the label `namespace.karmada.io/skip-auto-propagation`
//! set to `true`, and those that have a binding: these go where the ClusterPropagationPolicy says, or said when it was
//! there. A namespace that a member has already is adopted: what others set on it stays. One that the hub deletes is deleted
//! where we created it and it holds nothing, see `end`.
//!
//! Source: Karmada reference 1.7.

mod end;
mod unrest;

pub(crate) use end::{Ending, Survey};
pub(crate) use unrest::Unrest;

pub use crate::member_namespace::{Seen, content, creator, proof};

use std::{collections::BTreeMap, sync::Arc};

use entourage_api::keys::{TRUE, annotation, label};
use serde_json::{Map, Value, json};

use crate::{
    index::{Config, Index},
    marks::Marks,
    member_namespace::list::{self, List},
    object::{Gvk, Id, Meta, Str, Time},
    overrides::{self, BadOverride, Rule},
    plan::{Change, Guard, Plan},
    twin,
};

/// Plans one namespace of one member. Cost: O(labels and annotations).
#[must_use]
pub fn plan(index: &Index, name: &Str, cluster: &Str, now: Time) -> Plan {
    if !index.namespaces.hub.contains_key(name) {
        return end::plan(index, name, cluster, now);
    }
    let wanted = match target(index, name, cluster) {
        Ok(wanted) => wanted,
        Err(plan) => return plan,
    };
    match index.namespaces.on(cluster, name) {
        Some(seen) if seen.deleting || seen.carries(&index.config.hub, &wanted) => return Plan::nothing(),
        _ => {}
    }
    if let Some(until) = index.namespaces.restless_until(cluster, name, now) {
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

/// Whether a namespace of a member, as seen, is as wanted; `None` where nothing is wanted of it, or not yet.
/// Cost: as [`plan`].
pub(crate) fn is_as_wanted(index: &Index, name: &Str, cluster: &Str, seen: &Seen) -> Option<bool> {
    let wanted = target(index, name, cluster).ok()?;
    Some(seen.carries(&index.config.hub, &wanted))
}

/// What a namespace of a member is to carry of ours, or the plan where that is nothing, or not known.
fn target(index: &Index, name: &Str, cluster: &Str) -> Result<Marks, Plan> {
    let Some(template) = index.namespaces.hub.get(name) else {
        return Err(Plan::nothing());
    };
    if !is_propagated(&index.config, name, template) || !index.namespaces.is_listed(cluster) {
        return Err(Plan::nothing());
    }
    if !index.are_bindings_listed() {
        return Err(Plan::wait("the bindings are not synced yet"));
    }
    let id = id_of(name);
    // Each object has one writer: with a binding, whatever made it, that is the planner of copies.
    if index
        .entity(&id)
        .is_some_and(|entity| entity.last_binding().is_some())
    {
        return Err(Plan::wait("its binding says where it goes"));
    }
    if index
        .members
        .get(cluster)
        .is_none_or(|member| member.meta.deleting.is_some())
    {
        return Err(Plan::nothing());
    }
    if !index.are_overrides_listed() {
        return Err(Plan::wait("the overrides are not synced yet"));
    }
    let rules = index
        .overriding
        .rules(&id, &template.labels, index.members.get(cluster));
    // With a bad rule it stays as it is; one that is missing is made when something is delivered into it.
    wanted(&index.config.hub, template, &id, cluster, &rules).map_err(|bad| {
        Plan::one(
            Change::Refuse(bad.to_string()),
            "an override policy cannot be applied",
        )
    })
}

/// The identity of a namespace among templates.
pub(crate) fn id_of(name: &str) -> Id {
    Id::new(Gvk::new("v1", "Namespace"), "", name)
}

/// Whether a namespace of the hub goes to every member.
#[must_use]
pub fn is_propagated(config: &Config, name: &str, template: &Meta) -> bool {
    name != "default"
        && !config.is_reserved(name)
        && template.deleting.is_none()
        && template.label(label::SKIP_AUTO_PROPAGATION) != Some(TRUE)
        && !twin::has_claim_metadata(template)
}

/// The labels and annotations that a member's namespace gets: those that users set on the hub's, changed by
/// ClusterOverridePolicies, and the list of them. None of them, and no list, where there are none.
fn wanted(
    hub: &str,
    template: &Meta,
    id: &Id,
    cluster: &str,
    rules: &[Arc<Rule>],
) -> Result<Marks, BadOverride> {
    let of_users = |all: &BTreeMap<Str, Str>| -> BTreeMap<Str, Str> {
        all.iter()
            .filter(|(key, _)| travels(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    };
    let (mut labels, mut annotations) = (of_users(&template.labels), of_users(&template.annotations));
    // A rule that changes something else of other kinds is none for a namespace.
    let rules: Vec<Arc<Rule>> = rules
        .iter()
        .filter(|rule| rule.touches_metadata())
        .cloned()
        .collect();
    overrides::apply_to_metadata(&rules, cluster, &mut labels, &mut annotations)?;
    for (key, record) in overrides::records(&rules, id) {
        annotations.insert(key.into(), record);
    }
    let mut marks = Marks { labels, annotations };
    if !marks.labels.is_empty() || !marks.annotations.is_empty() {
        List::add(hub, &mut marks);
    }
    Ok(marks)
}

/// Not what an API server sets itself, nor what control planes note for themselves.
fn travels(key: &str) -> bool {
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    key != "kubernetes.io/metadata.name"
        && ["karmada.io", "entourage.dev"].iter().all(|own| {
            domain
                .strip_suffix(own)
                .is_none_or(|rest| !(rest.is_empty() || rest.ends_with('.')))
        })
}

/// The namespace to create on a member that has none. It says that we create it; that this is the one is proven afterwards, see
/// [`proven`].
#[must_use]
pub fn created(
    (hub, cluster): (&str, &str),
    name: &str,
    labels: &BTreeMap<Str, Str>,
    annotations: &BTreeMap<Str, Str>,
) -> Value {
    let mut object = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
    });
    object["metadata"]["annotations"][annotation::CREATED_BY] = json!(creator(hub, cluster));
    object
}

/// The merge patch that makes a namespace say that it is the very one that we created: to be sent when the answer to its creation
/// told its uid. One of another uid refuses it. Where it is not sent, the namespace is never deleted, only released.
#[must_use]
pub fn proven((hub, cluster): (&str, &str), uid: &str) -> Value {
    json!({"metadata": {"uid": uid, "annotations": {annotation::CREATED_BY: proof(hub, cluster, uid)}}})
}

/// The merge patch that takes this hub's records off exactly this namespace of a member. Labels and annotations that users
/// gave it stay.
#[must_use]
pub fn released(guard: &Guard, hub: &str) -> Value {
    json!({"metadata": {
        "uid": &*guard.uid, "resourceVersion": &*guard.resource_version,
        "annotations": {list::key(hub): null, annotation::CREATED_BY: null},
    }})
}

/// The merge patch that gives a member's namespace these labels and annotations, and takes away what this hub set and does
/// not want any more. `None` when nothing is to be changed. What others set stays, another hub's too.
#[must_use]
pub fn patch(
    live: &Value,
    hub: &str,
    labels: &BTreeMap<Str, Str>,
    annotations: &BTreeMap<Str, Str>,
) -> Option<Value> {
    let meta = Meta::of(live);
    let mut list = List::on(&meta, hub);
    list.annotations.push(list::key(hub));
    let part = |held: &BTreeMap<Str, Str>, wanted: &BTreeMap<Str, Str>, ours: Vec<String>| {
        let mut change: Map<String, Value> = ours
            .into_iter()
            .filter(|key| held.contains_key(&**key) && !wanted.contains_key(&**key))
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
    use super::*;

    const HUB: &str = "hub";

    fn wanted(hub: &str, template: &Meta) -> Marks {
        super::wanted(hub, template, &id_of("shop"), "m1", &[]).unwrap()
    }

    fn namespace(labels: &Value, annotations: &Value) -> Value {
        json!({"metadata": {"name": "shop", "uid": "u", "resourceVersion": "1", "labels": labels, "annotations": annotations}})
    }

    /// As a merge patch is applied by an API server.
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
            &patch(&live, "one", &BTreeMap::new(), &BTreeMap::new()).expect("a change"),
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

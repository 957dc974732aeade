//! The end of a Karmada whose copies are this hub's for good: the policies, bindings and Works that go, and those that stay.
//!
//! A Work goes only if this hub manages each object in it; a binding only with all its Works, a policy only with all its bindings.
//! Everything else stays as it is, with the reason.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use entourage_api::{keys::label, names::cluster_of_execution_namespace};
use serde_json::{Value, json};

use super::{Karmada, Stored, Work};
use crate::{
    adoption::HubState,
    object::{Meta, NamespacedName, ResourceId, Str},
    ownership::names_cluster,
};

/// The finalizers of Karmada have this prefix; those of others are left on an object.
const FINALIZERS: &str = "karmada.io/";

/// A kind of objects that is retired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Retired {
    /// Policies: first, so that nothing is propagated anew.
    Policy,
    /// Bindings, which make Works.
    Binding,
    /// Works, which make and delete objects on members.
    Work,
}

/// The reason why an object is not retired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stay {
    /// The cluster of a Work was not read completely, or the hub has no such member.
    Unread(Str),
    /// The manifests of a Work do not name the objects in it.
    Nameless,
    /// This hub does not manage an object of a Work.
    NotManaged(ResourceId),
    /// A Work stays that was made for the binding.
    Work(NamespacedName),
    /// A binding stays that the policy claims.
    Binding(NamespacedName),
}

impl fmt::Display for Stay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unread(cluster) => write!(f, "stays: cluster {cluster} was not read completely"),
            Self::Nameless => f.write_str("stays: its manifests do not name its objects"),
            Self::NotManaged(id) => write!(f, "stays: {id} is not managed by this hub there"),
            Self::Work(name) => write!(f, "stays: Work {name} of it stays"),
            Self::Binding(name) => write!(f, "stays: binding {name} of it stays"),
        }
    }
}

/// The decision on each policy, binding and Work, in the order in which they are retired.
pub type Retirement = BTreeMap<(Retired, NamespacedName), Result<Stored, Stay>>;

/// Decides on everything. `hub` is the id of this hub, and `state` what it has. `members` are the objects of the members that were
/// read completely, by cluster: those that a control plane manages, and all namespaces. Cost: O(objects of Karmada).
#[must_use]
pub fn retirement(
    karmada: &Karmada,
    (hub, state): (&str, &HubState),
    members: &BTreeMap<Str, BTreeMap<ResourceId, Meta>>,
) -> Retirement {
    let mut all = Retirement::new();
    let mut works: BTreeMap<&NamespacedName, &NamespacedName> = BTreeMap::new();
    for (name, work) in &karmada.works {
        let stay = stay_of(name, work, (hub, state), members);
        if let (Some(_), Some(binding)) = (&stay, &work.binding) {
            works.entry(binding).or_insert(name);
        }
        add(&mut all, (Retired::Work, name), &work.stored, stay);
    }
    let mut bindings: BTreeMap<&Str, &NamespacedName> = BTreeMap::new();
    for (name, binding) in &karmada.bindings {
        let stay = works.get(name).map(|work| Stay::Work((*work).clone()));
        if stay.is_some() {
            for policy in &binding.policies {
                bindings.entry(policy).or_insert(name);
            }
        }
        add(&mut all, (Retired::Binding, name), &binding.stored, stay);
    }
    for (name, policy) in &karmada.policies {
        // One without an id may be the policy of any binding.
        let claimed = if policy.id.is_empty() {
            bindings.values().next()
        } else {
            bindings.get(&policy.id)
        };
        let stay = claimed.map(|binding| Stay::Binding((*binding).clone()));
        add(&mut all, (Retired::Policy, name), &policy.stored, stay);
    }
    all
}

fn add(all: &mut Retirement, (kind, name): (Retired, &NamespacedName), stored: &Stored, stay: Option<Stay>) {
    let decision = stay.map_or_else(|| Ok(stored.clone()), Err);
    all.insert((kind, name.clone()), decision);
}

fn stay_of(
    name: &NamespacedName,
    work: &Work,
    (hub, state): (&str, &HubState),
    members: &BTreeMap<Str, BTreeMap<ResourceId, Meta>>,
) -> Option<Stay> {
    let cluster = cluster_of_execution_namespace(&name.namespace).unwrap_or(&name.namespace);
    let Some(objects) = members.get(cluster) else {
        return Some(Stay::Unread(cluster.into()));
    };
    if !work.is_complete {
        return Some(Stay::Nameless);
    }
    let is_foreign = |id: &&ResourceId| {
        let live = objects.get(*id);
        let is_copy = |live: &Meta| live.label(label::HUB) == Some(hub) && names_cluster(live, cluster);
        // Every hub merges its namespaces into those of members; none owns them.
        let is_merged = id.gvk.is_namespace() && state.namespaces.contains_key(&id.name);
        !live.is_some_and(|live| is_merged || is_copy(live))
    };
    let foreign: BTreeSet<&ResourceId> = work.objects.iter().filter(is_foreign).collect();
    foreign.first().map(|id| Stay::NotManaged((*id).clone()))
}

/// The merge patch of exactly this version of an object before it is deleted: a controller that is started in between releases the
/// objects of a Work instead of deleting them, and no finalizer of Karmada waits for one.
#[must_use]
pub fn retiring_patch(kind: Retired, stored: &Stored) -> Value {
    let kept: Vec<&str> = stored
        .finalizers
        .iter()
        .map(|finalizer| &**finalizer)
        .filter(|finalizer| !finalizer.starts_with(FINALIZERS))
        .collect();
    let mut patch = json!({"metadata": {
        "uid": &*stored.uid, "resourceVersion": &*stored.resource_version, "finalizers": kept,
    }});
    if kind == Retired::Work {
        patch["spec"] = json!({"preserveResourcesOnDeletion": true});
    }
    patch
}

#[cfg(test)]
mod tests {
    use entourage_api::keys::annotation;

    use super::*;

    const HUB: &str = "new";

    fn karmada() -> Karmada {
        let mut karmada = Karmada::default();
        for (work, kind, binding) in [
            ("web-1", "Deployment", Some("web-deployment")),
            ("conf-2", "ConfigMap", Some("conf-configmap")),
            ("shop-3", "Namespace", None),
        ] {
            let name = work.split('-').next().unwrap_or_default();
            let (api_version, namespace) = match kind {
                "Deployment" => ("apps/v1", "shop"),
                "Namespace" => ("v1", ""),
                _ => ("v1", "shop"),
            };
            let mut object = json!({"metadata": {"namespace": "karmada-es-m1", "name": work, "uid": work, "resourceVersion": "1",
                "finalizers": ["karmada.io/execution-controller", "example.com/other"]},
                "spec": {"workload": {"manifests": [{"apiVersion": api_version, "kind": kind,
                    "metadata": {"namespace": namespace, "name": name}}]}}});
            if let Some(binding) = binding {
                object["metadata"]["annotations"] = json!({annotation::RESOURCE_BINDING_NAMESPACE: "shop",
                    annotation::RESOURCE_BINDING_NAME: binding});
            }
            karmada.add_work(&object);
        }
        for binding in ["web-deployment", "conf-configmap", "idle-configmap"] {
            karmada.add_binding(&json!({"metadata": {"namespace": "shop", "name": binding, "uid": binding,
                "labels": {label::PROPAGATION_POLICY_ID: if binding == "web-deployment" { "p1" } else { "p2" }}}}));
        }
        for (policy, id) in [("one", "p1"), ("two", "p2")] {
            karmada.add_policy(&json!({"metadata": {"namespace": "shop", "name": policy,
                "labels": {label::PROPAGATION_POLICY_ID: id}}}));
        }
        karmada
    }

    fn id(api_version: &str, kind: &str, name: &str) -> ResourceId {
        let namespace = if kind == "Namespace" { "" } else { "shop" };
        ResourceId::new(crate::object::Gvk::new(api_version, kind), namespace, name)
    }

    fn copy(hub: &str) -> Meta {
        Meta::of(&json!({"metadata": {"labels": {label::HUB: hub},
            "annotations": {annotation::WORK_NAMESPACE: "karmada-es-m1"}}}))
    }

    fn member(conf: &str) -> BTreeMap<Str, BTreeMap<ResourceId, Meta>> {
        let namespace = json!({"metadata": {"labels": {label::MANAGED: "true"}}});
        let objects = [
            (id("apps/v1", "Deployment", "web"), copy(HUB)),
            (id("v1", "ConfigMap", "conf"), copy(conf)),
            (id("v1", "Namespace", "shop"), Meta::of(&namespace)),
        ];
        BTreeMap::from([("m1".into(), BTreeMap::from(objects))])
    }

    fn state() -> HubState {
        let mut state = HubState::default();
        state.add_namespace(&json!({"metadata": {"name": "shop"}}));
        state
    }

    fn stays(members: &BTreeMap<Str, BTreeMap<ResourceId, Meta>>) -> Vec<String> {
        let all = retirement(&karmada(), (HUB, &state()), members);
        let staying = all.iter().filter_map(|((kind, name), decision)| {
            let stay = decision.as_ref().err()?;
            Some(format!("{kind:?} {}: {stay}", name.name))
        });
        staying.collect()
    }

    #[test]
    fn everything_goes_whose_objects_this_hub_manages() {
        assert_eq!(stays(&member(HUB)), Vec::<String>::new());
        let all = retirement(&karmada(), (HUB, &state()), &member(HUB));
        let kinds: Vec<Retired> = all.keys().map(|(kind, _)| *kind).collect();
        assert!(
            kinds.is_sorted(),
            "policies, then bindings, then Works: {kinds:?}"
        );
        assert_eq!(kinds.len(), 8);
    }

    #[test]
    fn a_work_stays_with_an_object_of_another_and_so_does_what_made_it() {
        assert_eq!(
            stays(&member("another")),
            [
                "Policy two: stays: binding shop/conf-configmap of it stays",
                "Binding conf-configmap: stays: Work karmada-es-m1/conf-2 of it stays",
                "Work conf-2: stays: ConfigMap shop/conf is not managed by this hub there",
            ]
        );
    }

    #[test]
    fn a_namespace_that_the_hub_does_not_have_keeps_its_work() {
        let all = retirement(&karmada(), (HUB, &HubState::default()), &member(HUB));
        let staying: Vec<&NamespacedName> = all
            .iter()
            .filter(|(_, decision)| decision.is_err())
            .map(|((_, name), _)| name)
            .collect();
        assert_eq!(staying, [&NamespacedName::new("karmada-es-m1", "shop-3")]);
    }

    #[test]
    fn a_work_whose_objects_are_not_known_stays() {
        let manifests = [
            json!([]),
            json!([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop"}}]),
            json!([
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": "conf"}},
                {"kind": "ConfigMap", "metadata": {"namespace": "shop"}},
            ]),
        ];
        for manifests in manifests {
            let mut karmada = Karmada::default();
            karmada.add_work(&json!({"metadata": {"namespace": "karmada-es-m1", "name": "odd"},
                "spec": {"workload": {"manifests": manifests}}}));
            let all = retirement(&karmada, (HUB, &state()), &member(HUB));
            let decisions: Vec<&Result<Stored, Stay>> = all.values().collect();
            assert_eq!(
                decisions,
                vec![&Err::<Stored, Stay>(Stay::Nameless)],
                "{manifests}"
            );
        }
    }

    #[test]
    fn nothing_goes_of_a_member_that_was_not_read() {
        let all = stays(&BTreeMap::new());
        let works: Vec<&String> = all.iter().filter(|line| line.starts_with("Work ")).collect();
        assert!(
            works.len() == 3
                && works
                    .iter()
                    .all(|line| line.ends_with("cluster m1 was not read completely")),
            "{all:?}"
        );
        assert!(all.iter().all(|line| !line.contains("idle")), "{all:?}");
    }

    #[test]
    fn a_work_is_told_to_preserve_before_its_finalizer_goes() {
        let karmada = karmada();
        let work = &karmada.works[&NamespacedName::new("karmada-es-m1", "web-1")];
        let expected = json!({"metadata": {"uid": "web-1", "resourceVersion": "1", "finalizers": ["example.com/other"]},
            "spec": {"preserveResourcesOnDeletion": true}});
        assert_eq!(retiring_patch(Retired::Work, &work.stored), expected);
        let of_binding = retiring_patch(Retired::Binding, &work.stored);
        assert!(of_binding.get("spec").is_none());
    }
}

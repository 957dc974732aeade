//! The requirements of one replica of a workload: resources, nodes, a priority class. Schedulers and estimators read them from
//! the binding. Source: Karmada reference 1.2 (`replicaRequirements`); the sum over containers follows the Kubernetes scheduler
//! (KEP-753, KEP-2837).

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use entourage_api::work::{
    Component, ComponentReplicaRequirements, NodeClaim, ReplicaRequirements, Resources,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    declarative::Declared,
    json::{at, items, text},
    kind::NativeKind,
    quantity,
    question::{Answer, InterpretError},
};

/// Amounts by resource, in units of 10⁻⁹.
type Amounts = BTreeMap<String, i128>;

/// The requirements of one replica; `None` for a kind without replicas and for one that requests no resources and no particular
/// nodes. `namespace` is the object's: its quota is used.
///
/// Cost: O(containers).
#[must_use]
pub fn requirements(native: &dyn NativeKind, namespace: &str, object: &Value) -> Option<ReplicaRequirements> {
    native.replicas(object)?;
    of_pod(namespace, native.pod_template_spec(object)?)
}

/// The requirements of a pod of this spec; `None` if it requests no resources and no particular nodes. Cost: O(containers).
#[must_use]
pub fn of_pod(namespace: &str, pod: &Value) -> Option<ReplicaRequirements> {
    let node_claim = node_claim(pod);
    let resource_request = resource_request(pod);
    if node_claim.is_none() && resource_request.is_empty() {
        return None;
    }
    Some(ReplicaRequirements {
        node_claim,
        resource_request,
        namespace: namespace.into(),
        priority_class_name: text(pod, &["priorityClassName"]).into(),
    })
}

/// The requirements of the components of an object with several pod templates, in order, each name once; empty for other kinds.
/// A component without a defined number has one replica.
///
/// Cost: O(containers).
#[must_use]
pub fn components(native: &dyn NativeKind, object: &Value) -> Vec<Component> {
    match native.declared() {
        Some(declared) => components_of(declared, object),
        None => Vec::new(),
    }
}

/// As [`components`], by declared rules.
#[must_use]
pub fn components_of(declared: &Declared, object: &Value) -> Vec<Component> {
    if !declared.has_components() {
        return Vec::new();
    }
    let mut all: Vec<Component> = Vec::new();
    for pods in declared.pods(object) {
        if all.iter().any(|component| component.name == pods.name) {
            continue;
        }
        let (node_claim, resource_request) = (node_claim(pods.spec), resource_request(pods.spec));
        let needs = node_claim.is_some() || !resource_request.is_empty();
        all.push(Component {
            name: pods.name.to_owned(),
            replicas: pods
                .replicas
                .unwrap_or(1)
                .clamp(0, i64::from(i32::MAX))
                .try_into()
                .unwrap_or(i32::MAX),
            replica_requirements: needs.then(|| ComponentReplicaRequirements {
                node_claim,
                resource_request,
                priority_class_name: text(pods.spec, &["priorityClassName"]).into(),
            }),
        });
    }
    all
}

/// The maximum length of a component's name in a binding.
const LONGEST_NAME: usize = 32;

/// Checks that a binding can have these components: it would be refused as a whole, and the template would not be propagated.
/// Source: Karmada's definition of bindings, and its validation of them (Karmada reference 6.2).
///
/// # Errors
/// The invalid component and the cause; names of components are no secrets.
pub fn check_components(all: &[Component]) -> Result<(), Cow<'static, str>> {
    let mut seen = BTreeSet::new();
    for (at, Component { name, replicas, .. }) in all.iter().enumerate() {
        let wrong = if name.is_empty() {
            "it has no name; give it one"
        } else if name.chars().count() > LONGEST_NAME {
            "its name is longer than the 32 characters that a binding holds; shorten it"
        } else if !seen.insert(name) {
            "another one has its name; give it one of its own"
        } else if *replicas < 0 {
            "it has fewer replicas than none; give 0 or more"
        } else {
            continue;
        };
        return Err(format!("component {at}: {wrong}").into());
    }
    Ok(())
}

/// The components of an answer, if a binding can have them; `None` for none.
pub fn checked_components(
    answer: Result<Answer, InterpretError>,
) -> Result<Option<Arc<[Component]>>, InterpretError> {
    let Answer::Components(all) = answer? else {
        return Err(InterpretError::of_components(
            "interpretation",
            "the answer does not match the operation".into(),
        ));
    };
    check_components(&all).map_err(|why| InterpretError::of_components("interpretation", why))?;
    Ok((!all.is_empty()).then(|| all.into()))
}

fn node_claim(pod: &Value) -> Option<NodeClaim> {
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let claim = NodeClaim {
        hard_node_affinity: read(at(pod, &["affinity", "nodeAffinity", required])),
        node_selector: read(&pod["nodeSelector"]).unwrap_or_default(),
        tolerations: read(&pod["tolerations"]).unwrap_or_default(),
    };
    (claim != NodeClaim::default()).then_some(claim)
}

/// The larger of the requests of concurrent containers and of earlier ones, plus the overhead.
fn resource_request(pod: &Value) -> Resources {
    let mut together = Amounts::new();
    for container in items(pod, &["containers"]) {
        add(&mut together, &requests(container));
    }
    let mut sidecars = Amounts::new();
    let mut before = Amounts::new();
    for container in items(pod, &["initContainers"]) {
        let mut needed = requests(container);
        if text(container, &["restartPolicy"]) == "Always" {
            add(&mut sidecars, &needed);
            add(&mut together, &needed);
            needed.clear();
        }
        add(&mut needed, &sidecars);
        raise(&mut before, &needed);
    }
    raise(&mut together, &before);
    // Requests of the pod as a whole replace the sum of its containers.
    together.extend(requests(pod));
    add(&mut together, &amounts(&pod["overhead"]));
    together
        .into_iter()
        .filter(|(_, amount)| *amount > 0)
        .map(|(name, amount)| {
            let quantity = Quantity(quantity::display(&name, amount));
            (name, quantity)
        })
        .collect()
}

/// The requests of a container; a limit without a request counts as one, as in an API server.
fn requests(container: &Value) -> Amounts {
    let mut all = amounts(at(container, &["resources", "limits"]));
    all.extend(amounts(at(container, &["resources", "requests"])));
    all
}

fn amounts(list: &Value) -> Amounts {
    let list = list.as_object().into_iter().flatten();
    list.filter_map(|(name, value)| Some((name.clone(), quantity::amount(value)?)))
        .collect()
}

fn add(sum: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let held = sum.entry(name.clone()).or_default();
        *held = held.saturating_add(*amount);
    }
}

fn raise(most: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        let held = most.entry(name.clone()).or_default();
        *held = (*held).max(*amount);
    }
}

/// Reads a part of the object; `None` if it is absent or malformed.
fn read<T: DeserializeOwned>(value: &Value) -> Option<T> {
    if value.is_null() {
        return None;
    }
    T::deserialize(value).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::native;

    fn of(pod: &Value) -> Option<ReplicaRequirements> {
        let deployment = native("apps", "v1", "Deployment").unwrap();
        let object = json!({"spec": {"replicas": 2, "template": {"spec": pod}}});
        requirements(deployment, "shop", &object)
    }

    fn request(pod: &Value) -> Value {
        serde_json::to_value(of(pod).unwrap_or_default().resource_request).unwrap()
    }

    fn container(requests: &Value) -> Value {
        json!({"resources": {"requests": requests}})
    }

    #[test]
    fn containers_add_up_and_init_containers_are_covered() {
        let pod = json!({
            "containers": [
                container(&json!({"cpu": "250m", "memory": "64Mi"})),
                container(&json!({"cpu": "0.25", "memory": "64Mi", "example.com/gpu": 1})),
            ],
            "initContainers": [container(&json!({"cpu": "100m", "memory": "1Gi"}))],
            "overhead": {"cpu": "10m"},
        });
        assert_eq!(
            request(&pod),
            json!({"cpu": "510m", "memory": "1Gi", "example.com/gpu": "1"})
        );
    }

    #[test]
    fn a_sidecar_runs_with_everything_that_comes_after_it() {
        let mut sidecar = container(&json!({"cpu": "1"}));
        sidecar["restartPolicy"] = json!("Always");
        let pod = json!({
            "containers": [container(&json!({"cpu": "2"}))],
            "initContainers": [
                container(&json!({"cpu": "3"})),
                sidecar,
                container(&json!({"cpu": "4"})),
            ],
        });
        assert_eq!(request(&pod), json!({"cpu": "5"}));
    }

    #[test]
    fn a_limit_without_a_request_is_a_request_and_the_pod_speaks_for_its_containers() {
        let pod = json!({"containers": [{"resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}}]});
        assert_eq!(request(&pod), json!({"cpu": "1", "memory": "1Gi"}));
        let pod = json!({
            "resources": {"requests": {"cpu": "4"}},
            "containers": [container(&json!({"cpu": "1", "memory": "1Gi"}))],
        });
        assert_eq!(request(&pod), json!({"cpu": "4", "memory": "1Gi"}));
    }

    #[test]
    fn the_nodes_that_a_replica_can_run_on_are_reported() {
        let terms =
            json!({"nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]});
        let pod = json!({
            "nodeSelector": {"zone": "a"},
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
            "priorityClassName": "high",
        });
        let found = serde_json::to_value(of(&pod).unwrap()).unwrap();
        assert_eq!(
            found,
            json!({
                "nodeClaim": {
                    "hardNodeAffinity": terms,
                    "nodeSelector": {"zone": "a"},
                    "tolerations": [{"key": "gpu", "operator": "Exists"}],
                },
                "namespace": "shop",
                "priorityClassName": "high",
            })
        );
    }

    #[test]
    fn components_that_no_binding_can_hold_are_reported() {
        let named = |names: &[&str]| -> Vec<Component> {
            let of_name = |name: &&str| Component {
                name: (*name).into(),
                replicas: 1,
                ..Component::default()
            };
            names.iter().map(of_name).collect()
        };
        let longest = "ä".repeat(32);
        assert_eq!(check_components(&named(&[&longest, "b"])), Ok(()));
        let mut negative = named(&["a"]);
        negative[0].replicas = -1;
        for (all, says) in [
            (named(&["a", ""]), "component 1: it has no name"),
            (
                named(&[&format!("{longest}x")]),
                "component 0: its name is longer than the 32 characters",
            ),
            (named(&["a", "b", "a"]), "component 2: another one has its name"),
            (negative, "component 0: it has fewer replicas than none"),
        ] {
            let why = check_components(&all).unwrap_err();
            assert!(why.starts_with(says), "{why}");
        }
    }

    #[test]
    fn what_asks_for_nothing_has_no_requirements() {
        assert_eq!(
            of(&json!({"containers": [{"name": "a"}], "priorityClassName": "high"})),
            None
        );
        assert_eq!(
            of(&json!({"nodeSelector": 1, "tolerations": "all", "containers": {}})),
            None
        );
        let daemons = native("apps", "v1", "DaemonSet").unwrap();
        let object = json!({"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}});
        assert_eq!(requirements(daemons, "shop", &object), None);
    }
}

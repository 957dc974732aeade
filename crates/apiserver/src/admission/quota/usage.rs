//! The amounts that one object counts in a quota, by the names of quotas. Source: the evaluators of kube-apiserver.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    kinds::{amounts::nano, is_extended},
    object::{
        Object,
        tree::{below, list, text},
    },
    resource::Resource,
};

/// Kinds of the core group that have a name in quotas beside `count/<plural>`.
const COUNTED: [&str; 8] = [
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
    "endpoints",
];

/// The resources of a pod whose requests and limits have names of their own in quotas.
const COMPUTE: [&str; 3] = ["cpu", "ephemeral-storage", "memory"];

const ONE: i128 = 1_000_000_000;

/// Amounts by name, in billionths.
pub(super) type Amounts = BTreeMap<String, i128>;

/// The usage of an object.
pub(super) fn usage(resource: &Resource, one: &Object) -> Amounts {
    let mut usage = Amounts::from([(counted(resource), ONE)]);
    let spec = below(one, "spec");
    if resource.group.is_empty() && COUNTED.contains(&resource.plural.as_str()) {
        usage.insert(resource.plural.clone(), ONE);
    }
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "Pod") => pod(spec, &mut usage),
        ("", "PersistentVolumeClaim") => claim(spec, &mut usage),
        ("", "Service") => service(spec, &mut usage),
        _ => {}
    }
    usage
}

/// True if a name of a quota limits objects of the resource.
pub(super) fn is_about(name: &str, resource: &Resource) -> bool {
    if name == counted(resource) {
        return true;
    }
    resource.group.is_empty()
        && (name == resource.plural
            || match resource.plural.as_str() {
                "pods" => match parts(name) {
                    (_, inner) if COMPUTE.contains(&inner) => true,
                    (kind, inner) if inner.starts_with("hugepages-") => kind != "limits",
                    (kind, inner) => kind == "requests" && is_extended(inner),
                },
                "persistentvolumeclaims" => {
                    name == "requests.storage" || name.contains(".storageclass.storage.k8s.io/")
                }
                "services" => name.starts_with("services."),
                _ => false,
            })
}

/// Containers of a pod without the requests or limits of CPU and memory that a quota requires of each, unless the pod states its own.
pub(super) fn unspecified(resource: &Resource, one: &Object, hard: &Object) -> Option<String> {
    let spec = below(one, "spec");
    let own = below(spec, "resources");
    let states = |kind: &str| below(own, kind).keys().any(|name| is_of_pod(name));
    let is_pod = resource.group.is_empty() && resource.kind == "Pod";
    if !is_pod || states("requests") || states("limits") {
        return None;
    }
    let mut missing: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for name in hard.keys() {
        let (kind, inner) = parts(name);
        if !matches!(inner, "cpu" | "memory") {
            continue;
        }
        let kind = if kind == "limits" { kind } else { "requests" };
        for container in list(spec, "initContainers")
            .iter()
            .chain(list(spec, "containers"))
            .filter_map(Value::as_object)
        {
            if !below(below(container, "resources"), kind).contains_key(inner) {
                missing.entry(name).or_default().push(text(container, "name"));
            }
        }
    }
    let words = missing.into_iter().map(|(name, mut containers)| {
        containers.sort_unstable();
        containers.dedup();
        format!("{name} for: {}", containers.join(","))
    });
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| format!("must specify {}", words.join("; ")))
}

/// The name in quotas of the number of objects of a resource.
pub(super) fn counted(resource: &Resource) -> String {
    if resource.group.is_empty() {
        format!("count/{}", resource.plural)
    } else {
        format!("count/{}.{}", resource.plural, resource.group)
    }
}

/// A name of a quota as `requests`, `limits` or nothing, and the resource.
fn parts(name: &str) -> (&str, &str) {
    match name.split_once('.') {
        Some((kind @ ("requests" | "limits"), inner)) => (kind, inner),
        _ => ("", name),
    }
}

fn pod(spec: &Object, usage: &mut Amounts) {
    for (name, amount) in of_pod(spec, "requests") {
        let is_compute = COMPUTE.contains(&name.as_str()) || name.starts_with("hugepages-");
        if is_compute || is_extended(&name) {
            usage.insert(format!("requests.{name}"), amount);
        }
        if is_compute {
            usage.insert(name, amount);
        }
    }
    for (name, amount) in of_pod(spec, "limits") {
        if COMPUTE.contains(&name.as_str()) {
            usage.insert(format!("limits.{name}"), amount);
        }
    }
}

/// The requests or the limits of a pod: of its containers and sidecars together, or of a container that prepares it beside the sidecars
/// before it if that is more; what the pod states itself counts in their place; its overhead comes on top.
fn of_pod(spec: &Object, kind: &str) -> Amounts {
    let given = |one: &Object| amounts(below(below(one, "resources"), kind));
    let (mut all, mut sidecars, mut most) = (Amounts::new(), Amounts::new(), Amounts::new());
    let containers = |key: &str| list(spec, key).iter().filter_map(Value::as_object);
    for one in containers("containers") {
        add(&mut all, given(one));
    }
    for one in containers("initContainers") {
        let mut together = sidecars.clone();
        add(&mut together, given(one));
        if text(one, "restartPolicy") == "Always" {
            add(&mut all, given(one));
            sidecars.clone_from(&together);
        }
        raise(&mut most, together);
    }
    raise(&mut all, most);
    all.extend(given(spec).into_iter().filter(|(name, _)| is_of_pod(name)));
    let mut overhead = amounts(below(spec, "overhead"));
    overhead.retain(|name, _| kind == "requests" || all.contains_key(name));
    add(&mut all, overhead);
    all
}

/// True if a pod may state an amount for all its containers.
fn is_of_pod(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with("hugepages-")
}

fn amounts(map: &Object) -> Amounts {
    let amount = |(name, amount): (&String, &Value)| (name.clone(), nano(amount).unwrap_or(0));
    map.iter().map(amount).collect()
}

fn add(sums: &mut Amounts, more: Amounts) {
    for (name, amount) in more {
        let sum = sums.entry(name).or_default();
        *sum = sum.saturating_add(amount);
    }
}

fn raise(most: &mut Amounts, other: Amounts) {
    for (name, amount) in other {
        let most = most.entry(name).or_default();
        *most = amount.max(*most);
    }
}

fn claim(spec: &Object, usage: &mut Amounts) {
    let requests = below(below(spec, "resources"), "requests");
    let storage = requests.get("storage").and_then(nano).unwrap_or(0);
    usage.insert("requests.storage".to_owned(), storage);
    let class = text(spec, "storageClassName");
    if !class.is_empty() {
        let prefix = format!("{class}.storageclass.storage.k8s.io");
        usage.insert(format!("{prefix}/requests.storage"), storage);
        usage.insert(format!("{prefix}/persistentvolumeclaims"), ONE);
    }
}

/// Every port gets a port of the nodes, unless the Service asks for none: then those that have one count.
fn service(spec: &Object, usage: &mut Amounts) {
    let balanced = text(spec, "type") == "LoadBalancer";
    if balanced {
        usage.insert("services.loadbalancers".to_owned(), ONE);
    }
    if balanced || text(spec, "type") == "NodePort" {
        let all = !balanced || spec.get("allocateLoadBalancerNodePorts") != Some(&Value::Bool(false));
        let counts = |port: &&Value| all || port["nodePort"].as_i64().is_some_and(|port| port != 0);
        let ports = list(spec, "ports").iter().filter(counts).map(|_| ONE).sum();
        usage.insert("services.nodeports".to_owned(), ports);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{kinds::amounts::written, server::tests_support::bare};

    fn of(value: Value) -> Object {
        match value {
            Value::Object(object) => object,
            _ => panic!("an object"),
        }
    }

    /// A container with these requests, which are its limits as well.
    fn container(amounts: &Value) -> Value {
        json!({"name": "a", "resources": {"requests": amounts, "limits": amounts}})
    }

    #[test]
    fn what_a_spec_uses_is_counted_under_the_names_of_quotas() {
        let gib = |number: u32| json!({"memory": format!("{number}Gi")});
        let port = json!({"port": 80});
        let given = json!({"port": 81, "nodePort": 30_000});
        let balanced = |allocates: Value| json!({"type": "LoadBalancer", "ports": [port, given], "allocateLoadBalancerNodePorts": allocates});
        let sidecar = |number: u32| {
            let mut sidecar = container(&gib(number));
            sidecar["restartPolicy"] = "Always".into();
            sidecar
        };
        // The resource, a spec, and what it uses beside its number.
        let cases = [
            (
                "pods",
                json!({"containers": [container(&json!({"cpu": "1", "ephemeral-storage": "2Gi"})), container(&json!({"cpu": "1"}))]}),
                json!({"cpu": "2", "requests.cpu": "2", "limits.cpu": "2",
                    "ephemeral-storage": "2Gi", "requests.ephemeral-storage": "2Gi", "limits.ephemeral-storage": "2Gi"}),
            ),
            // Of a vendor, in pages, and of Kubernetes: what counts under which name.
            (
                "pods",
                json!({"containers": [container(&json!({"example.com/dongle": "3", "hugepages-2Mi": "4Mi", "x.kubernetes.io/y": "1"}))]}),
                json!({"requests.example.com/dongle": "3", "hugepages-2Mi": "4Mi", "requests.hugepages-2Mi": "4Mi"}),
            ),
            // One after the other.
            (
                "pods",
                json!({"containers": [container(&gib(1))], "initContainers": [container(&gib(4)), container(&gib(3))]}),
                json!({"memory": "4Gi", "requests.memory": "4Gi", "limits.memory": "4Gi"}),
            ),
            // A sidecar runs beside the containers, and beside those that prepare the pod after it.
            (
                "pods",
                json!({"containers": [container(&gib(2))], "initContainers": [sidecar(1), sidecar(2)]}),
                json!({"memory": "5Gi", "requests.memory": "5Gi", "limits.memory": "5Gi"}),
            ),
            (
                "pods",
                json!({"containers": [container(&gib(2))], "initContainers": [container(&gib(5)), sidecar(1), container(&gib(6))]}),
                json!({"memory": "7Gi", "requests.memory": "7Gi", "limits.memory": "7Gi"}),
            ),
            // The pod's own amounts; the overhead adds to limits only where there are any.
            (
                "pods",
                json!({"containers": [container(&gib(1))], "resources": {"requests": {"memory": "3Gi", "cpu": "1"}}}),
                json!({"memory": "3Gi", "requests.memory": "3Gi", "limits.memory": "1Gi", "cpu": "1", "requests.cpu": "1"}),
            ),
            (
                "pods",
                json!({"containers": [container(&gib(1))], "overhead": {"memory": "1Gi", "cpu": "250m"}}),
                json!({"memory": "2Gi", "requests.memory": "2Gi", "limits.memory": "2Gi", "cpu": "250m", "requests.cpu": "250m"}),
            ),
            (
                "services",
                balanced(json!(true)),
                json!({"services.loadbalancers": "1", "services.nodeports": "2"}),
            ),
            (
                "services",
                balanced(json!(false)),
                json!({"services.loadbalancers": "1", "services.nodeports": "1"}),
            ),
        ];
        let kinds = bare().kinds();
        for (plural, spec, expected) in cases {
            let resource = kinds.find("", "v1", plural).expect("built in");
            let mut used = usage(resource, &of(json!({"spec": spec})));
            assert_eq!(used.remove(plural), Some(ONE));
            assert_eq!(used.remove(&counted(resource)), Some(ONE));
            assert!(used.keys().all(|name| is_about(name, resource)), "{used:?}");
            let like = |name: &str| expected.get(name).cloned().unwrap_or_else(|| "1".into());
            let used = used
                .iter()
                .map(|(name, amount)| (name.clone(), written(*amount, &like(name))));
            assert_eq!(json!(used.collect::<BTreeMap<_, _>>()), expected, "{spec}");
        }
        let pods = kinds.find("", "v1", "pods").expect("built in");
        for other in [
            "limits.example.com/dongle",
            "example.com/dongle",
            "requests.storage",
            "limits.hugepages-2Mi",
        ] {
            assert!(!is_about(other, pods), "{other}");
        }
    }

    #[test]
    fn each_container_has_to_say_what_is_limited_unless_the_pod_does() {
        let kinds = bare().kinds();
        let pods = kinds.find("", "v1", "pods").expect("built in");
        let hard = of(
            json!({"limits.memory": "1", "cpu": "1", "ephemeral-storage": "1", "requests.example.com/x": "1"}),
        );
        let missing = |spec: Value| unspecified(pods, &of(json!({"spec": spec})), &hard);
        let bare =
            json!({"containers": [{"name": "a"}, {"name": "b", "resources": {"requests": {"cpu": "1"}}}]});
        assert_eq!(
            missing(bare.clone()).as_deref(),
            Some("must specify cpu for: a; limits.memory for: a,b")
        );
        let mut own = bare;
        own["resources"] = json!({"limits": {"memory": "1Gi"}});
        assert_eq!(missing(own), None);
    }
}

//! Resource quotas: checks and charges of new objects. Only the amounts in a quota's `status.hard` count, which its controller sets.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{
    admission::Context,
    apply::{self, Manager},
    kinds::{
        amounts::{self, nano, shown},
        core::pod::is_finished,
    },
    object::{
        Object, field,
        tree::{below, list, made, object, text},
    },
    resource::{Resource, stored},
    store::Expect,
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

/// The amounts that a pod must state when a quota limits them: the name in quotas, the field, the name in it.
const COMPUTE: [(&str, &str, &str); 8] = [
    ("cpu", "requests", "cpu"),
    ("memory", "requests", "memory"),
    ("requests.cpu", "requests", "cpu"),
    ("requests.memory", "requests", "memory"),
    ("requests.ephemeral-storage", "requests", "ephemeral-storage"),
    ("limits.cpu", "limits", "cpu"),
    ("limits.memory", "limits", "memory"),
    ("limits.ephemeral-storage", "limits", "ephemeral-storage"),
];

const ONE: i128 = 1_000_000_000;

/// The charges for an object: keys of quotas, and the amounts by name, in billionths.
#[derive(Debug, Default)]
pub(crate) struct Charged(Vec<(String, BTreeMap<String, i128>)>);

/// Charges the quotas of the namespace with what an object uses beyond its old state, or returns the reason why it does not fit and
/// charges none. What it uses less is counted later.
pub(super) fn charge(
    cluster: &dyn Context,
    resource: &Resource,
    one: &Object,
    old: Option<&Object>,
    dry_run: bool,
) -> Result<Charged, String> {
    let mut usage = self::usage(resource, one);
    if let Some(old) = old {
        let before = self::usage(resource, old);
        usage.retain(|name, amount| {
            *amount -= before.get(name).copied().unwrap_or(0);
            *amount > 0
        });
        if usage.is_empty() {
            return Ok(Charged::default());
        }
    }
    let prefix = format!("{}/", field(one, "namespace"));
    let mut charged = Charged::default();
    for quota in cluster.list("resourcequotas", &prefix) {
        if object(below(&quota, "status"), "hard").is_some() && in_scope(&quota, resource, one) {
            let key = format!("{prefix}{}", field(&quota, "name"));
            match charge_one(cluster, quota, resource, one, &usage, dry_run) {
                Ok(amounts) if amounts.is_empty() => {}
                Ok(amounts) => charged.0.push((key, amounts)),
                Err(why) => {
                    refund(cluster, charged);
                    return Err(why);
                }
            }
        }
    }
    Ok(charged)
}

/// The use, by the objects of its namespace, of what a quota limits. O(objects of the kinds that it limits).
pub(crate) fn used(cluster: &dyn Context, quota: &Object) -> Object {
    let hard = below(below(quota, "spec"), "hard");
    let prefix = format!("{}/", field(quota, "namespace"));
    let mut sums: BTreeMap<&String, i128> = hard.keys().map(|name| (name, 0)).collect();
    let kinds = cluster.kinds();
    let mut counted = BTreeSet::new();
    for resource in kinds.all() {
        // Several versions have the same objects.
        let is_first = resource.namespaced && counted.insert(&resource.collection);
        if !is_first || !hard.keys().any(|name| is_about(name, resource)) {
            continue;
        }
        for one in cluster.list(&resource.collection, &prefix) {
            let is_over = resource.group.is_empty() && resource.kind == "Pod" && is_finished(&one);
            if is_over || !in_scope(quota, resource, &one) {
                continue;
            }
            for (name, amount) in usage(resource, &one) {
                if let Some(sum) = sums.get_mut(&name) {
                    *sum = sum.saturating_add(amount);
                }
            }
        }
    }
    let written =
        |(name, sum): (&String, i128)| (name.clone(), Value::from(amounts::written(sum, &hard[name])));
    sums.into_iter().map(written).collect()
}

/// True if a name of a quota limits objects of the resource.
fn is_about(name: &str, resource: &Resource) -> bool {
    if name == counted(resource) {
        return true;
    }
    resource.group.is_empty()
        && (name == resource.plural
            || match resource.plural.as_str() {
                "pods" => COMPUTE.iter().any(|(one, ..)| *one == name),
                "persistentvolumeclaims" => {
                    name == "requests.storage" || name.contains(".storageclass.storage.k8s.io/")
                }
                "services" => name.starts_with("services."),
                _ => false,
            })
}

/// Gives back what was charged for an object that was not stored after all.
pub(crate) fn refund(cluster: &dyn Context, charged: Charged) {
    for (key, amounts) in charged.0 {
        while let Some(quota) = cluster.get("resourcequotas", &key) {
            let mut used = below(below(&quota, "status"), "used").clone();
            for (resource, amount) in &amounts {
                let Some(before) = used.get(resource).and_then(nano) else {
                    continue;
                };
                let next = amounts::written((before - amount).max(0), &used[resource]);
                used.insert(resource.clone(), next.into());
            }
            if write(cluster, &key, &quota, used) {
                break;
            }
        }
    }
}

/// Writes what is used of a quota; false when another write was faster.
fn write(cluster: &dyn Context, key: &str, quota: &Object, used: Object) -> bool {
    let revision = field(quota, "resourceVersion").parse().unwrap_or(0);
    let next = used_up(cluster, quota, used);
    let written = cluster
        .store()
        .put("resourcequotas", key, Expect::At(revision), |revision| {
            stored::encode(next, revision)
        });
    written.is_ok()
}

/// Charges one quota. Returns how much of what, nothing when it does not count the object or in a dry run.
fn charge_one(
    cluster: &dyn Context,
    quota: Object,
    resource: &Resource,
    one: &Object,
    usage: &BTreeMap<String, i128>,
    dry_run: bool,
) -> Result<BTreeMap<String, i128>, String> {
    let name = field(&quota, "name").to_owned();
    let key = format!("{}/{name}", field(one, "namespace"));
    let mut quota = quota;
    loop {
        let status = below(&quota, "status");
        let hard = below(status, "hard");
        if let Some(missing) = unspecified(resource, one, hard) {
            return Err(format!("failed quota: {name}: {missing}"));
        }
        let mut used = below(status, "used").clone();
        let charged: BTreeMap<String, i128> = usage
            .iter()
            .filter(|(resource, amount)| hard.contains_key(*resource) && **amount > 0)
            .map(|(resource, amount)| (resource.clone(), *amount))
            .collect();
        if charged.is_empty() {
            return Ok(charged);
        }
        let mut exceeded: [Vec<String>; 3] = [const { Vec::new() }; 3];
        for (resource, amount) in &charged {
            let before = used.get(resource).and_then(nano).unwrap_or(0);
            let next = before.saturating_add(*amount);
            let most = &hard[resource];
            if nano(most).is_some_and(|most| next > most) {
                let given = used.get(resource).map_or_else(|| "0".to_owned(), shown);
                let asked = amounts::written(*amount, most);
                exceeded[0].push(format!("{resource}={asked}"));
                exceeded[1].push(format!("{resource}={given}"));
                exceeded[2].push(format!("{resource}={}", shown(most)));
            }
            used.insert(resource.clone(), amounts::written(next, most).into());
        }
        if !exceeded[0].is_empty() {
            let [asked, given, most] = exceeded.map(|parts| parts.join(","));
            return Err(format!(
                "exceeded quota: {name}, requested: {asked}, used: {given}, limited: {most}"
            ));
        }
        if dry_run {
            return Ok(BTreeMap::new());
        }
        if write(cluster, &key, &quota, used) {
            return Ok(charged);
        }
        match cluster.get("resourcequotas", &key) {
            Some(newer) => quota = newer,
            None => return Ok(BTreeMap::new()),
        }
    }
}

/// The quota with what is used now, as the server itself writes it.
fn used_up(cluster: &dyn Context, quota: &Object, used: Object) -> Object {
    let mut next = quota.clone();
    made(&mut next, "status").insert("used".to_owned(), Value::Object(used));
    let now = cluster.now();
    let manager = Manager {
        name: apply::SERVER,
        subresource: "status",
        now: &now,
    };
    if let Some(resource) = cluster.kinds().find("", "v1", "resourcequotas") {
        apply::track(resource, Some(quota), &mut next, manager);
    }
    next
}

/// The usage of an object, in billionths, by the names of quotas.
fn usage(resource: &Resource, one: &Object) -> BTreeMap<String, i128> {
    let mut usage = BTreeMap::from([(counted(resource), ONE)]);
    let spec = below(one, "spec");
    if resource.group.is_empty() && COUNTED.contains(&resource.plural.as_str()) {
        usage.insert(resource.plural.clone(), ONE);
    }
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "Pod") => {
            for (name, kind, inner) in COMPUTE {
                let sum =
                    |key: &str| containers(spec, key).map(|one| amount(below(one, "resources"), kind, inner));
                // Containers run together, those that prepare one after the other.
                let together: i128 = sum("containers").sum();
                let most = sum("initContainers").max().unwrap_or(0);
                usage.insert(name.to_owned(), together.max(most));
            }
        }
        ("", "PersistentVolumeClaim") => {
            let storage = amount(below(spec, "resources"), "requests", "storage");
            usage.insert("requests.storage".to_owned(), storage);
            let class = text(spec, "storageClassName");
            if !class.is_empty() {
                let prefix = format!("{class}.storageclass.storage.k8s.io");
                usage.insert(format!("{prefix}/requests.storage"), storage);
                usage.insert(format!("{prefix}/persistentvolumeclaims"), ONE);
            }
        }
        ("", "Service") => {
            let ports = i128::try_from(list(spec, "ports").len()).unwrap_or(0) * ONE;
            match text(spec, "type") {
                "NodePort" => {
                    usage.insert("services.nodeports".to_owned(), ports);
                }
                "LoadBalancer" => {
                    usage.insert("services.loadbalancers".to_owned(), ONE);
                    usage.insert("services.nodeports".to_owned(), ports);
                }
                _ => {}
            }
        }
        _ => {}
    }
    usage
}

/// The name in quotas of the number of objects of a resource.
fn counted(resource: &Resource) -> String {
    if resource.group.is_empty() {
        format!("count/{}", resource.plural)
    } else {
        format!("count/{}.{}", resource.plural, resource.group)
    }
}

fn containers<'a>(spec: &'a Object, key: &str) -> impl Iterator<Item = &'a Object> + use<'a> {
    list(spec, key).iter().filter_map(Value::as_object)
}

fn amount(resources: &Object, kind: &str, name: &str) -> i128 {
    below(resources, kind).get(name).and_then(nano).unwrap_or(0)
}

/// Containers of a pod without the requests or limits that a quota requires.
fn unspecified(resource: &Resource, one: &Object, hard: &Object) -> Option<String> {
    if !(resource.group.is_empty() && resource.kind == "Pod") {
        return None;
    }
    let spec = below(one, "spec");
    let mut missing: Vec<String> = Vec::new();
    let mut by_name: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, kind, inner) in COMPUTE {
        if !hard.contains_key(name) || name.ends_with("ephemeral-storage") {
            continue;
        }
        for container in ["initContainers", "containers"]
            .into_iter()
            .flat_map(|key| containers(spec, key))
        {
            if !below(below(container, "resources"), kind).contains_key(inner) {
                by_name.entry(name).or_default().push(text(container, "name"));
            }
        }
    }
    for (name, mut containers) in by_name {
        containers.sort_unstable();
        containers.dedup();
        missing.push(format!("{name} for: {}", containers.join(",")));
    }
    (!missing.is_empty()).then(|| format!("must specify {}", missing.join("; ")))
}

/// True if a quota is about such an object: scopes are about pods.
fn in_scope(quota: &Object, resource: &Resource, one: &Object) -> bool {
    let spec = below(quota, "spec");
    let named = list(spec, "scopes").iter().filter_map(Value::as_str);
    let selected = list(below(spec, "scopeSelector"), "matchExpressions");
    let selected = selected.iter().filter_map(Value::as_object);
    let mut scopes = named
        .map(|scope| (scope, "Exists", &[][..]))
        .chain(selected.map(|one| (text(one, "scopeName"), text(one, "operator"), list(one, "values"))))
        .peekable();
    let is_pod = resource.group.is_empty() && resource.kind == "Pod";
    scopes.peek().is_none()
        || is_pod && scopes.all(|(scope, operator, values)| is_of_scope(one, scope, operator, values))
}

/// True if a pod is of a scope. Only PriorityClass has operators other than `Exists`.
fn is_of_scope(pod: &Object, scope: &str, operator: &str, values: &[Value]) -> bool {
    let spec = below(pod, "spec");
    let best_effort = text(below(pod, "status"), "qosClass") == "BestEffort";
    let ends = spec.contains_key("activeDeadlineSeconds");
    match scope {
        "Terminating" => ends,
        "NotTerminating" => !ends,
        "BestEffort" => best_effort,
        "NotBestEffort" => !best_effort,
        "CrossNamespacePodAffinity" => looks_across_namespaces(below(spec, "affinity")),
        "PriorityClass" => {
            let class = text(spec, "priorityClassName");
            let is_named = values.iter().any(|value| value == class);
            match operator {
                "In" => !class.is_empty() && is_named,
                "NotIn" => class.is_empty() || !is_named,
                "DoesNotExist" => class.is_empty(),
                _ => !class.is_empty(),
            }
        }
        _ => false,
    }
}

/// True if a term of an affinity is about pods of other namespaces.
fn looks_across_namespaces(affinity: &Object) -> bool {
    let terms = ["podAffinity", "podAntiAffinity"].into_iter().flat_map(|kind| {
        let rules = below(affinity, kind);
        let required = list(rules, "requiredDuringSchedulingIgnoredDuringExecution").iter();
        let preferred = list(rules, "preferredDuringSchedulingIgnoredDuringExecution").iter();
        required.chain(preferred.map(|term| &term["podAffinityTerm"]))
    });
    terms
        .filter_map(Value::as_object)
        .any(|term| !list(term, "namespaces").is_empty() || object(term, "namespaceSelector").is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        resource::Surroundings as _,
        server::{Server, tests_support::bare},
    };

    fn quota(cluster: &Server, name: &str, most: &str) {
        let Value::Object(quota) = json!({"metadata": {"namespace": "a", "name": name},
            "status": {"hard": {"configmaps": most}, "used": {"configmaps": "2"}}})
        else {
            panic!("an object")
        };
        let put = cluster.store.put(
            "resourcequotas",
            &format!("a/{name}"),
            Expect::Absent,
            |revision| stored::encode(quota, revision),
        );
        put.expect("written");
    }

    fn used(cluster: &Server, name: &str) -> Value {
        let quota = cluster
            .get("resourcequotas", &format!("a/{name}"))
            .expect("there");
        below(below(&quota, "status"), "used")["configmaps"].clone()
    }

    #[test]
    fn a_quota_is_about_the_pods_of_its_scopes() {
        let cluster = bare();
        let kinds = cluster.kinds();
        let resource = |plural: &str| kinds.find("", "v1", plural).expect("built in");
        let of = |value: Value| match value {
            Value::Object(object) => object,
            _ => panic!("an object"),
        };
        let expression = |scope: &str, operator: &str, values: Value| json!({"scopeSelector": {"matchExpressions": [{"scopeName": scope, "operator": operator, "values": values}]}});
        let high = json!({"priorityClassName": "high"});
        let across = json!({"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution":
            [{"weight": 1, "podAffinityTerm": {"topologyKey": "a", "namespaces": ["b"]}}]}}});
        let cases = [
            (json!({}), &high, true),
            (json!({"scopes": ["PriorityClass"]}), &high, true),
            (json!({"scopes": ["Terminating"]}), &high, false),
            (expression("PriorityClass", "In", json!(["high"])), &high, true),
            (expression("PriorityClass", "In", json!(["low"])), &high, false),
            (expression("PriorityClass", "NotIn", json!(["low"])), &high, true),
            (expression("PriorityClass", "In", json!(["low"])), &across, false),
            (
                expression("PriorityClass", "NotIn", json!(["low"])),
                &across,
                true,
            ),
            (
                expression("PriorityClass", "DoesNotExist", json!([])),
                &across,
                true,
            ),
            (
                expression("CrossNamespacePodAffinity", "Exists", json!([])),
                &across,
                true,
            ),
            (
                expression("CrossNamespacePodAffinity", "Exists", json!([])),
                &high,
                false,
            ),
        ];
        for (quota, pod, expected) in cases {
            let found = in_scope(
                &of(json!({"spec": quota})),
                resource("pods"),
                &of(json!({"spec": pod})),
            );
            assert_eq!(found, expected, "{quota} {pod}");
        }
        let limited = of(json!({"spec": {"scopes": ["PriorityClass"]}}));
        assert!(!in_scope(&limited, resource("configmaps"), &Object::new()));
    }

    #[test]
    fn what_is_not_stored_is_not_charged() {
        let cluster = bare();
        let kinds = cluster.kinds();
        let resource = kinds.find("", "v1", "configmaps").expect("built in");
        let Value::Object(map) = json!({"metadata": {"namespace": "a", "name": "m"}}) else {
            panic!("an object")
        };
        quota(&cluster, "first", "5");
        let charged = charge(&*cluster, resource, &map, None, false).expect("fits");
        assert_eq!(used(&cluster, "first"), "3");
        refund(&*cluster, charged);
        assert_eq!(used(&cluster, "first"), "2");
        quota(&cluster, "second", "2");
        assert!(charge(&*cluster, resource, &map, None, false).is_err());
        assert_eq!(
            (used(&cluster, "first"), used(&cluster, "second")),
            (json!("2"), json!("2"))
        );
    }
}

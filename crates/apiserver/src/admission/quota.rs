//! Resource quotas: checks and charges of new objects. Only the amounts in a quota's `status.hard` count, which its controller sets.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    admission::Context,
    apply::{self, Manager},
    kinds::amounts::{self, nano},
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

/// The field manager of the server's own writes.
const MANAGER: &str = "kube-apiserver-1.36";

const ONE: i128 = 1_000_000_000;

/// The charges for an object: keys of quotas, and the amounts by name, in billionths.
#[derive(Debug, Default)]
pub(crate) struct Charged(Vec<(String, BTreeMap<String, i128>)>);

/// Charges the quotas of the namespace with a new object, or returns the reason why it does not fit and charges none.
pub(super) fn charge(
    cluster: &dyn Context,
    resource: &Resource,
    one: &Object,
    dry_run: bool,
) -> Result<Charged, String> {
    let prefix = format!("{}/", field(one, "namespace"));
    let usage = usage(resource, one);
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
        name: MANAGER,
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
    let counted = if resource.group.is_empty() {
        format!("count/{}", resource.plural)
    } else {
        format!("count/{}.{}", resource.plural, resource.group)
    };
    let mut usage = BTreeMap::from([(counted, ONE)]);
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
    let scopes = list(below(quota, "spec"), "scopes");
    if scopes.is_empty() {
        return true;
    }
    let spec = below(one, "spec");
    let pod = resource.group.is_empty() && resource.kind == "Pod";
    let best_effort = text(below(one, "status"), "qosClass") == "BestEffort";
    let ends = spec.contains_key("activeDeadlineSeconds");
    pod && scopes.iter().all(|scope| match scope.as_str() {
        Some("Terminating") => ends,
        Some("NotTerminating") => !ends,
        Some("BestEffort") => best_effort,
        Some("NotBestEffort") => !best_effort,
        Some("PriorityClass") => !text(spec, "priorityClassName").is_empty(),
        _ => false,
    })
}

fn shown(amount: &Value) -> String {
    amount.as_str().map_or_else(|| amount.to_string(), str::to_owned)
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
    fn what_is_not_stored_is_not_charged() {
        let cluster = bare();
        let kinds = cluster.kinds();
        let resource = kinds.find("", "v1", "configmaps").expect("built in");
        let Value::Object(map) = json!({"metadata": {"namespace": "a", "name": "m"}}) else {
            panic!("an object")
        };
        quota(&cluster, "first", "5");
        let charged = charge(&*cluster, resource, &map, false).expect("fits");
        assert_eq!(used(&cluster, "first"), "3");
        refund(&*cluster, charged);
        assert_eq!(used(&cluster, "first"), "2");
        quota(&cluster, "second", "2");
        assert!(charge(&*cluster, resource, &map, false).is_err());
        assert_eq!(
            (used(&cluster, "first"), used(&cluster, "second")),
            (json!("2"), json!("2"))
        );
    }
}

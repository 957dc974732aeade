//! Resource quotas: checks and charges of new objects. Only the amounts in a quota's `status.hard` count, which its controller sets.

mod usage;

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

use usage::{Amounts, is_about, unspecified, usage};

/// The charges for an object: keys of quotas, and the amounts by name, in billionths.
#[derive(Debug, Default)]
pub(crate) struct Charged(Vec<(String, Amounts)>);

/// Charges the quotas of the namespace with what an object uses beyond its old state, or returns the reason why it does not fit and
/// charges none. What it uses less is counted later.
pub(super) fn charge(
    cluster: &dyn Context,
    resource: &Resource,
    one: &Object,
    old: Option<&Object>,
    dry_run: bool,
) -> Result<Charged, String> {
    let whole = usage(resource, one);
    let mut more = whole.clone();
    for (name, amount) in old.map(|old| usage(resource, old)).unwrap_or_default() {
        more.entry(name).and_modify(|more| *more -= amount);
    }
    more.retain(|_, amount| *amount > 0);
    let prefix = format!("{}/", field(one, "namespace"));
    let mut charged = Charged::default();
    for quota in cluster.list("resourcequotas", &prefix) {
        if object(below(&quota, "status"), "hard").is_some() && in_scope(&quota, resource, one) {
            // A claim of another class is new to the quotas of that class.
            let counted_before = old.is_some_and(|old| in_scope(&quota, resource, old));
            let usage = if counted_before { &more } else { &whole };
            if usage.is_empty() {
                continue;
            }
            let key = format!("{prefix}{}", field(&quota, "name"));
            match charge_one(cluster, quota, resource, one, usage, dry_run) {
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
            if !in_scope(quota, resource, &one) {
                continue;
            }
            for (name, amount) in usage(resource, &one) {
                // What is over is still an object.
                if is_over && !name.starts_with("count/") {
                    continue;
                }
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
    usage: &Amounts,
    dry_run: bool,
) -> Result<Amounts, String> {
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
        let charged: Amounts = usage
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
            return Ok(Amounts::new());
        }
        if write(cluster, &key, &quota, used) {
            return Ok(charged);
        }
        match cluster.get("resourcequotas", &key) {
            Some(newer) => quota = newer,
            None => return Ok(Amounts::new()),
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

/// True if a quota is about such an object: scopes are about pods, and one about claims.
fn in_scope(quota: &Object, resource: &Resource, one: &Object) -> bool {
    let spec = below(quota, "spec");
    let named = list(spec, "scopes").iter().filter_map(Value::as_str);
    let selected = list(below(spec, "scopeSelector"), "matchExpressions");
    let selected = selected.iter().filter_map(Value::as_object);
    let mut scopes = named
        .map(|scope| (scope, "Exists", &[][..]))
        .chain(selected.map(|one| (text(one, "scopeName"), text(one, "operator"), list(one, "values"))));
    let kind = if resource.group.is_empty() {
        resource.kind.as_str()
    } else {
        ""
    };
    scopes.all(|(scope, operator, values)| match (kind, scope) {
        ("PersistentVolumeClaim", "VolumeAttributesClass") => is_of_class(&attributes(one), operator, values),
        ("Pod", _) => is_of_scope(one, scope, operator, values),
        _ => false,
    })
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
        "PriorityClass" => is_of_class(&[text(spec, "priorityClassName")], operator, values),
        _ => false,
    }
}

/// The classes of attributes of a claim: the one that it asks for, the one that it has, and the one that it is getting.
fn attributes(claim: &Object) -> [&str; 3] {
    let status = below(claim, "status");
    [
        text(below(claim, "spec"), "volumeAttributesClassName"),
        text(status, "currentVolumeAttributesClassName"),
        text(
            below(status, "modifyVolumeStatus"),
            "targetVolumeAttributesClassName",
        ),
    ]
}

/// True if one of the classes is selected, or none where that is. Those that are empty are none.
fn is_of_class(classes: &[&str], operator: &str, values: &[Value]) -> bool {
    let mut classes = classes.iter().filter(|class| !class.is_empty()).peekable();
    if classes.peek().is_none() {
        return matches!(operator, "NotIn" | "DoesNotExist");
    }
    classes.any(|class| match operator {
        "In" | "NotIn" => values.iter().any(|value| value == class) == (operator == "In"),
        _ => operator == "Exists",
    })
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
        let asks = json!({"spec": {"volumeAttributesClassName": "gold"}});
        let has = json!({"spec": {"volumeAttributesClassName": "tin"}, "status": {"currentVolumeAttributesClassName": "gold"}});
        let gets = json!({"spec": {}, "status": {"modifyVolumeStatus": {"targetVolumeAttributesClassName": "gold"}}});
        let none = json!({"spec": {}});
        let cases = [
            ("In", &asks, true),
            ("In", &has, true),
            ("In", &gets, true),
            ("In", &none, false),
            ("NotIn", &asks, false),
            ("NotIn", &has, true),
            ("NotIn", &none, true),
            ("Exists", &asks, true),
            ("Exists", &none, false),
            ("DoesNotExist", &asks, false),
            ("DoesNotExist", &none, true),
        ];
        for (operator, claim, expected) in cases {
            let quota = of(json!({"spec": expression("VolumeAttributesClass", operator, json!(["gold"]))}));
            let claims = resource("persistentvolumeclaims");
            assert_eq!(
                in_scope(&quota, claims, &of(claim.clone())),
                expected,
                "{operator} {claim}"
            );
            assert!(!in_scope(&limited, claims, &of(claim.clone())));
        }
    }

    #[test]
    fn a_claim_that_changes_its_class_is_new_to_the_quotas_of_that_class() {
        let cluster = bare();
        let kinds = cluster.kinds();
        let claims = kinds.find("", "v1", "persistentvolumeclaims").expect("built in");
        let of = |value: Value| value.as_object().cloned().expect("an object");
        let claim = |class: &str| {
            of(
                json!({"metadata": {"namespace": "a", "name": "c"}, "spec": {"volumeAttributesClassName": class,
                "resources": {"requests": {"storage": "2Gi"}}}}),
            )
        };
        let gold = json!({"matchExpressions": [{"scopeName": "VolumeAttributesClass", "operator": "In", "values": ["gold"]}]});
        let quota = of(
            json!({"metadata": {"namespace": "a", "name": "q"}, "spec": {"scopeSelector": gold},
            "status": {"hard": {"requests.storage": "1Gi"}, "used": {"requests.storage": "0"}}}),
        );
        let put = cluster
            .store
            .put("resourcequotas", "a/q", Expect::Absent, |revision| {
                stored::encode(quota, revision)
            });
        put.expect("written");
        let changes = |from: &str, to: &str| {
            charge(&*cluster, claims, &claim(to), Some(&claim(from)), true).map(|_| ())
        };
        let refused = "exceeded quota: q, requested: requests.storage=2Gi, used: requests.storage=0, limited: requests.storage=1Gi";
        assert_eq!(changes("tin", "gold"), Err(refused.to_owned()));
        assert_eq!(changes("gold", "gold"), Ok(()));
        assert_eq!(changes("gold", "tin"), Ok(()));
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

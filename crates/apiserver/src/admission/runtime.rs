//! The admission plug-in RuntimeClass.

use serde_json::Value;

use crate::{
    admission::Context,
    kinds::amounts::nano,
    object::{
        Object,
        tree::{below, list, made, number, object, text},
    },
};

const RUNTIMES: &str = "node.k8s.io/runtimeclasses";

/// Gives a new pod what its RuntimeClass says: overhead, node selector and tolerations.
pub(super) fn fill(cluster: &dyn Context, pod: &mut Object) -> Result<(), String> {
    const OTHER: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";
    const UNKNOWN: &str =
        "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
    let spec = made(pod, "spec");
    let class = match spec.get("runtimeClassName").and_then(Value::as_str) {
        Some(name) => match cluster.get(RUNTIMES, name) {
            Some(class) => class,
            None => return Err(format!("pod rejected: RuntimeClass {name:?} not found")),
        },
        None => Object::new(),
    };
    match (object(&class, "overhead"), object(spec, "overhead")) {
        (None, Some(_)) => return Err(UNKNOWN.to_owned()),
        (Some(of_class), Some(given)) if !same_amounts(below(of_class, "podFixed"), given) => {
            return Err(OTHER.to_owned());
        }
        (Some(of_class), _) => {
            if let Some(fixed) = of_class.get("podFixed") {
                spec.insert("overhead".to_owned(), fixed.clone());
            }
        }
        (None, None) => {}
    }
    let Some(scheduling) = object(&class, "scheduling") else {
        return Ok(());
    };
    let selector = below(scheduling, "nodeSelector");
    for (key, value) in selector {
        let given = below(spec, "nodeSelector").get(key);
        if let Some(given) = given.filter(|given| *given != value) {
            let [value, given] = [value, given].map(|one| one.as_str().unwrap_or_default());
            return Err(format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {given}"
            ));
        }
    }
    if !selector.is_empty() {
        made(spec, "nodeSelector").extend(selector.clone());
    }
    let tolerations = merged(list(spec, "tolerations"), list(scheduling, "tolerations"));
    if !tolerations.is_empty() {
        spec.insert("tolerations".to_owned(), tolerations.into());
    }
    Ok(())
}

fn same_amounts(one: &Object, other: &Object) -> bool {
    one.len() == other.len()
        && one
            .iter()
            .all(|(name, amount)| other.get(name).is_some_and(|other| nano(other) == nano(amount)))
}

/// Both lists, without those that another one includes.
fn merged(first: &[Value], second: &[Value]) -> Vec<Value> {
    let all: Vec<&Value> = first.iter().chain(second).collect();
    let mut merged: Vec<Value> = Vec::new();
    for (at, one) in all.iter().enumerate() {
        let by_earlier = merged.iter().any(|other| includes(other, one));
        let by_later = all
            .iter()
            .skip(at + 1)
            .any(|other| other != one && includes(other, one));
        if !by_earlier && !by_later {
            merged.push((*one).clone());
        }
    }
    merged
}

/// True if what `one` tolerates, the `wider` one tolerates as well.
fn includes(wider: &Value, one: &Value) -> bool {
    let (Some(wider), Some(one)) = (wider.as_object(), one.as_object()) else {
        return false;
    };
    let exists = text(wider, "operator") == "Exists";
    let same = |key: &str| text(wider, key) == text(one, key);
    let lasts = text(wider, "effect") != "NoExecute"
        || number(wider, "tolerationSeconds")
            .is_none_or(|most| number(one, "tolerationSeconds").is_some_and(|seconds| seconds <= most));
    wider == one
        || (same("key") || text(wider, "key").is_empty() && exists)
            && (same("effect") || text(wider, "effect").is_empty())
            && lasts
            && (exists || text(one, "operator") != "Exists" && same("value"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{resource::stored::encode, server::tests_support, store::Expect};

    fn made_of(value: &Value) -> Object {
        value.as_object().cloned().expect("an object")
    }

    #[test]
    fn a_pod_gets_what_its_runtime_class_says() {
        let server = tests_support::bare();
        let class = json!({"metadata": {"name": "kata"}, "handler": "kata", "overhead": {"podFixed": {"cpu": "250m"}},
            "scheduling": {"nodeSelector": {"kata": "yes"}, "tolerations": [{"key": "kata", "operator": "Exists"}]}});
        let written = server.store.put(RUNTIMES, "kata", Expect::Absent, |revision| {
            encode(made_of(&class), revision)
        });
        written.expect("written");
        let ran = |spec: Value| {
            let mut pod = made_of(&json!({"spec": spec}));
            fill(&*server, &mut pod).map(|()| pod["spec"].clone())
        };
        let full = ran(json!({"runtimeClassName": "kata", "nodeSelector": {"a": "b"},
            "tolerations": [{"key": "kata", "operator": "Equal", "value": "x"}]}));
        let expected = json!({"runtimeClassName": "kata", "nodeSelector": {"a": "b", "kata": "yes"},
            "overhead": {"cpu": "250m"}, "tolerations": [{"key": "kata", "operator": "Exists"}]});
        assert_eq!(full, Ok(expected));
        for (spec, why) in [
            (
                json!({"runtimeClassName": "gone"}),
                "pod rejected: RuntimeClass \"gone\" not found",
            ),
            (
                json!({"runtimeClassName": "kata", "overhead": {"cpu": "1"}}),
                "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
            ),
            (
                json!({"overhead": {"cpu": "1"}}),
                "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
            ),
            (
                json!({"runtimeClassName": "kata", "nodeSelector": {"kata": "no"}}),
                "conflict: runtimeClass.scheduling.nodeSelector[kata] = yes; pod.spec.nodeSelector[kata] = no",
            ),
        ] {
            assert_eq!(ran(spec.clone()), Err(why.to_owned()), "{spec}");
        }
        assert!(ran(json!({"runtimeClassName": "kata", "overhead": {"cpu": "0.25"}})).is_ok());
    }
}

//! Objects that cannot be read as their kind: no decision can use them.

use serde_json::{Value, json};

use super::{Watch, kind_read_by, project};
use crate::{
    interpreter::Interpretation,
    object::{Gvk, ResourceId},
};

/// The kinds that decisions use and users write.
const OURS: [Watch; 9] = [
    Watch::Customizations,
    Watch::Policies,
    Watch::ClusterPolicies,
    Watch::Overrides,
    Watch::ClusterOverrides,
    Watch::Clusters,
    Watch::TaintPolicies,
    Watch::Rebalancers,
    Watch::Quotas,
];

/// The limit for the search of the invalid field, in values visited: a fraction of a second. The author of the object waits.
const TRIED: usize = 1_000_000;

/// The reason why an object cannot be read as its kind; `None` if it can be, or is not of a kind of this control plane. It
/// quotes nothing of a Secret.
///
/// Cost: O(size of the object), if it can be read.
#[must_use]
pub fn why(id: &ResourceId, object: &Value) -> Option<String> {
    if id.gvk.group.is_empty() && &*id.gvk.kind == "Secret" {
        let field = ["data", "stringData"]
            .into_iter()
            .find(|field| !is_map_of_texts(&object[*field]))?;
        return Some(format!(
            "its {field} is not a map of strings: write each key with its value, and quote what YAML takes for a \
             number \
             or a truth value"
        ));
    }
    let at = field(&id.gvk, object)?;
    let kind = &id.gvk.kind;
    Some(format!("{at} is not valid for a {kind}: {REMEDY}"))
}

/// The advice for an object that cannot be read.
pub const REMEDY: &str =
    "correct its type (entourage crds prints the definition), or it would have no effect";

/// The field of an object that cannot be read as its kind; `None` if all can be, or it is not of a kind of this control plane.
///
/// Cost: as [`why`].
#[must_use]
pub fn field(gvk: &Gvk, object: &Value) -> Option<String> {
    part(OURS.iter().find(|watch| kind_read_by(watch) == *gvk)?, object)
}

/// The field of an object that keeps a watch from reading it; `None` if there is none, or users do not write such objects.
///
/// Cost: as [`why`].
#[must_use]
pub fn part(watch: &Watch, object: &Value) -> Option<String> {
    let is_read = project(watch, &Interpretation::default(), object).is_some();
    (OURS.contains(watch) && !is_read).then(|| worst(watch, object))
}

fn is_map_of_texts(field: &Value) -> bool {
    match field {
        Value::Null => true,
        Value::Object(map) => map.values().all(|value| value.is_string() || value.is_null()),
        _ => false,
    }
}

/// The substitutes for a field that cannot be omitted, to test whether the rest can be read.
fn stand_ins() -> [Value; 4] {
    [json!([]), json!({}), json!(""), json!(0)]
}

/// The path of the invalid field: the deepest without which, or with a substitute, the rest can be read; the object, if that is
/// not found soon.
///
/// Cost: O(fields × size of the object), for an invalid object, limited by [`TRIED`].
fn worst(watch: &Watch, object: &Value) -> String {
    let mut tries = TRIED / parts(object);
    let Some(pointer) = fault(watch, object, "", &mut tries) else {
        return "the object".into();
    };
    let mut text = String::new();
    for part in pointer.split('/').skip(1) {
        if part.parse::<usize>().is_ok() {
            text.push_str(&format!("[{part}]"));
        } else {
            let dot = if text.is_empty() { "" } else { "." };
            text.push_str(&format!("{dot}{}", part.replace("~1", "/").replace("~0", "~")));
        }
    }
    text
}

/// The number of values in a value, including itself.
fn parts(value: &Value) -> usize {
    1 + match value {
        Value::Object(map) => map.values().map(parts).sum(),
        Value::Array(items) => items.iter().map(parts).sum(),
        _ => 0,
    }
}

/// The JSON pointer of the invalid field below another one; `None` if there is none, or all tries are used up.
fn fault(watch: &Watch, object: &Value, within: &str, tries: &mut usize) -> Option<String> {
    let parts: Vec<String> = match object.pointer(within)? {
        Value::Object(map) => map
            .keys()
            .map(|key| key.replace('~', "~0").replace('/', "~1"))
            .collect(),
        Value::Array(items) => (0..items.len()).map(|at| at.to_string()).collect(),
        _ => return None,
    };
    parts.into_iter().find_map(|part| {
        let pointer = format!("{within}/{part}");
        fault(watch, object, &pointer, tries).or_else(|| {
            let mut is_read = |change: &dyn Fn(&mut Value) -> Option<()>| {
                *tries = tries.checked_sub(1)?;
                let mut rest = object.clone();
                change(&mut rest)?;
                project(watch, &Interpretation::default(), &rest).map(drop)
            };
            let without = |rest: &mut Value| {
                match rest.pointer_mut(within)? {
                    Value::Object(map) => drop(map.remove(&part.replace("~1", "/").replace("~0", "~"))),
                    Value::Array(items) => drop(items.remove(part.parse().ok()?)),
                    _ => return None,
                }
                Some(())
            };
            is_read(&without)
                .or_else(|| {
                    stand_ins().into_iter().find_map(|value| {
                        is_read(&|rest| {
                            *rest.pointer_mut(&pointer)? = value.clone();
                            Some(())
                        })
                    })
                })
                .map(|()| pointer)
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(object: &Value) -> Option<String> {
        why(&ResourceId::of(object).unwrap(), object)
    }

    fn policy(spec: &Value) -> Value {
        json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
            "metadata": {"namespace": "default", "name": "web"}, "spec": spec})
    }

    #[test]
    fn the_field_of_a_wrong_type_is_named() {
        let selectors = json!([{"apiVersion": "apps/v1", "kind": "Deployment"}]);
        let table = [
            (
                policy(&json!({"resourceSelectors": selectors,
                    "placement": {"clusterAffinity": {"clusterNames": "member1"}}})),
                "spec.placement.clusterAffinity.clusterNames is not valid for a PropagationPolicy",
            ),
            (
                policy(
                    &json!({"resourceSelectors": [{"apiVersion": "v1", "kind": "Secret"}, {"kind": 7, "apiVersion": "v1"}]}),
                ),
                "spec.resourceSelectors[1]",
            ),
            (
                policy(&json!({"resourceSelectors": 5, "placement": {}})),
                "spec.resourceSelectors is not valid",
            ),
            (
                json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "m"},
                    "spec": {"syncMode": "Push", "taints": "none"}}),
                "spec.taints",
            ),
        ];
        for (object, wanted) in table {
            let message = of(&object).unwrap();
            assert!(message.starts_with(wanted), "{message}");
        }
        assert_eq!(of(&policy(&json!({"resourceSelectors": selectors}))), None);
    }

    #[test]
    fn an_object_of_very_many_parts_is_not_searched_for_as_long_as_it_takes() {
        let many: Vec<Value> = (0..TRIED / 4).map(|_| json!({"kind": 7})).collect();
        let message = of(&policy(&json!({"resourceSelectors": many, "placement": []}))).unwrap();
        assert!(message.starts_with("the object is not valid"), "{message}");
    }

    #[test]
    fn a_secret_of_another_form_is_named_without_its_values() {
        let secret = |data: &Value, plain: &Value| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": data, "stringData": plain});
        for (data, plain, field) in [
            (json!("canary"), json!({"a": "b"}), "its data"),
            (json!(["canary"]), json!(null), "its data"),
            (json!({"a": 7_654_321}), json!(null), "its data"),
            (json!({}), json!({"a": {"b": "canary"}}), "its stringData"),
        ] {
            let message = of(&secret(&data, &plain)).unwrap();
            assert!(
                message.starts_with(field) && !message.contains("canary") && !message.contains("7654"),
                "{message}"
            );
        }
        assert_eq!(of(&secret(&json!({"a": "Yg=="}), &json!({"c": null}))), None);
    }
}

//! Objects that cannot be read as what they say they are: nothing that is decided could go by them.

use serde_json::Value;

use super::servers;
use crate::{
    interpreter::Interpretation,
    object::Id,
    observation::{Watch, project},
};

/// The kinds that decisions go by and users write.
const OURS: [Watch; 6] = [
    Watch::Customizations,
    Watch::Policies,
    Watch::ClusterPolicies,
    Watch::Overrides,
    Watch::ClusterOverrides,
    Watch::Clusters,
];

/// Why an object cannot be read as what it says it is; `None` when it can be, or is not ours to read. It quotes nothing of
/// a Secret.
///
/// Cost: O(size of the object), if it can be read.
#[must_use]
pub fn why(id: &Id, object: &Value) -> Option<String> {
    if id.gvk.group.is_empty() && &*id.gvk.kind == "Secret" {
        let field = ["data", "stringData"]
            .into_iter()
            .find(|field| !is_map_of_texts(&object[*field]))?;
        return Some(format!(
            "its {field} is no map of names to texts: write each key with its value, and quote what YAML takes for a number \
             or a truth value"
        ));
    }
    let watch = OURS.iter().find(|watch| servers::kind_read_by(watch) == id.gvk)?;
    if project(watch, &Interpretation::default(), object).is_some() {
        return None;
    }
    let at = worst(watch, object);
    Some(format!(
        "{at} cannot be read as that of a {}: correct its type (entourage crds prints the definition), or nothing would go \
         by it",
        id.gvk.kind
    ))
}

fn is_map_of_texts(field: &Value) -> bool {
    match field {
        Value::Null => true,
        Value::Object(map) => map.values().all(|value| value.is_string() || value.is_null()),
        _ => false,
    }
}

/// The path of the part at fault: the deepest without which the rest can be read.
///
/// Cost: O(parts × size of the object), for what is refused.
fn worst(watch: &Watch, object: &Value) -> String {
    let Some(pointer) = fault(watch, object, "") else {
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

/// The JSON pointer of the part at fault below another one.
fn fault(watch: &Watch, object: &Value, within: &str) -> Option<String> {
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
        fault(watch, object, &pointer).or_else(|| {
            let mut rest = object.clone();
            match rest.pointer_mut(within)? {
                Value::Object(map) => drop(map.remove(&part.replace("~1", "/").replace("~0", "~"))),
                Value::Array(items) => drop(items.remove(part.parse().ok()?)),
                _ => return None,
            }
            project(watch, &Interpretation::default(), &rest).map(|_| pointer)
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(object: &Value) -> Option<String> {
        why(&servers::identity(object).unwrap(), object)
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
                "spec.placement.clusterAffinity.clusterNames cannot be read as that of a PropagationPolicy",
            ),
            (
                policy(
                    &json!({"resourceSelectors": [{"apiVersion": "v1", "kind": "Secret"}, {"kind": 7, "apiVersion": "v1"}]}),
                ),
                "spec.resourceSelectors[1]",
            ),
            (
                json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "m"},
                    "spec": {"syncMode": "Push", "taints": "none"}}),
                "spec.taints",
            ),
        ];
        for (object, wanted) in table {
            let told = of(&object).unwrap();
            assert!(told.starts_with(wanted), "{told}");
        }
        assert_eq!(of(&policy(&json!({"resourceSelectors": selectors}))), None);
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
            let told = of(&secret(&data, &plain)).unwrap();
            assert!(
                told.starts_with(field) && !told.contains("canary") && !told.contains("7654"),
                "{told}"
            );
            // Whoever takes it in all the same must live.
            drop(super::super::objects::kept(secret(&data, &plain)));
        }
        assert_eq!(of(&secret(&json!({"a": "Yg=="}), &json!({"c": null}))), None);
    }
}

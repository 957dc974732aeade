//! The scale subresource: an object's number of replicas, at the path of its kind.

use serde_json::{Map, Value, json};

use crate::{
    object::{Object, metadata},
    status::{Result, Status},
};

/// A simple JSON path such as `.spec.replicas`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// As written.
    pub text: String,
    steps: Vec<String>,
}

impl Path {
    /// The path of a text that begins with a dot; `None` for any other.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        Some(Self {
            text: text.to_owned(),
            steps: steps(text)?,
        })
    }

    /// Its names.
    #[must_use]
    pub fn steps(&self) -> &[String] {
        &self.steps
    }

    /// The value at the path.
    #[must_use]
    pub fn get<'a>(&self, object: &'a Object) -> Option<&'a Value> {
        let (first, rest) = self.steps.split_first()?;
        rest.iter()
            .try_fold(object.get(first)?, |value, step| value.get(step))
    }

    /// Puts a value there; parents are made where they are missing.
    pub fn set(&self, object: &mut Object, value: Value) {
        let Some((last, parents)) = self.steps.split_last() else {
            return;
        };
        let mut at = object;
        for step in parents {
            let slot = at
                .entry(step.clone())
                .or_insert_with(|| Value::Object(Map::new()));
            let Value::Object(fields) = slot else { return };
            at = fields;
        }
        at.insert(last.clone(), value);
    }
}

/// The steps of a simple JSON path: dots and names, `['name']` for names with dots.
#[must_use]
pub(crate) fn steps(path: &str) -> Option<Vec<String>> {
    let mut rest = path.strip_prefix('.')?;
    let mut steps = Vec::new();
    loop {
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        if end > 0 {
            steps.push(rest[..end].to_owned());
        }
        rest = &rest[end..];
        if let Some(quoted) = rest.strip_prefix("['") {
            let (name, after) = quoted.split_once("']")?;
            steps.push(name.to_owned());
            rest = after;
        } else if let Some(after) = rest.strip_prefix('.') {
            rest = after;
        } else if rest.is_empty() {
            return (!steps.is_empty()).then_some(steps);
        } else {
            return None;
        }
    }
}

/// The paths of a kind's replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// The wanted replicas.
    pub spec_replicas: Path,
    /// The replicas that are there.
    pub status_replicas: Path,
    /// The selector of the pods: a string, or a label selector.
    pub selector: Option<Path>,
}

impl Paths {
    /// The paths of a CRD's `subresources.scale`.
    #[must_use]
    pub fn of(declared: &Value) -> Option<Self> {
        let path = |name: &str| declared.get(name).and_then(Value::as_str).and_then(Path::of);
        Some(Self {
            spec_replicas: path("specReplicasPath")?,
            status_replicas: path("statusReplicasPath")?,
            selector: path("labelSelectorPath"),
        })
    }

    /// The paths of the built-in kinds that have a scale: Deployments, ReplicaSets, StatefulSets, ReplicationControllers.
    #[must_use]
    pub fn builtin() -> Option<Self> {
        Some(Self {
            spec_replicas: Path::of(".spec.replicas")?,
            status_replicas: Path::of(".status.replicas")?,
            selector: Path::of(".spec.selector"),
        })
    }
}

/// The Scale of an object. An object without wanted replicas has none: that is an internal error, as in a kube-apiserver.
pub(crate) fn of(paths: &Paths, object: &Object) -> Result<Value> {
    let Some(wanted) = paths.spec_replicas.get(object).and_then(Value::as_i64) else {
        return Err(Status::internal(&format!(
            "the spec replicas field {:?} does not exist",
            paths.spec_replicas.text
        )));
    };
    let mut scale = shell(paths, object);
    if wanted != 0 {
        scale["spec"]["replicas"] = wanted.into();
    }
    Ok(scale)
}

/// The Scale of an object without its wanted replicas.
fn shell(paths: &Paths, object: &Object) -> Value {
    let mut named = Map::new();
    for name in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = metadata(object).get(name) {
            named.insert(name.to_owned(), value.clone());
        }
    }
    let there = paths
        .status_replicas
        .get(object)
        .and_then(Value::as_i64)
        .unwrap_or(0);
    let mut scale = json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": named, "spec": {},
        "status": {"replicas": there}});
    let selector = paths
        .selector
        .as_ref()
        .and_then(|path| path.get(object))
        .map(selector_text)
        .filter(|text| !text.is_empty());
    if let Some(selector) = selector {
        scale["status"]["selector"] = selector.into();
    }
    scale
}

/// The Scale that a patch is applied to: an object without wanted replicas has zero.
#[must_use]
pub(crate) fn to_patch(paths: &Paths, object: &Object) -> Value {
    of(paths, object).unwrap_or_else(|_| shell(paths, object))
}

/// Puts the replicas of a Scale into the object.
pub(crate) fn set(paths: &Paths, object: &mut Object, scale: &Value) {
    paths.spec_replicas.set(object, wanted(scale).into());
}

/// The replicas that a Scale requests.
#[must_use]
pub(crate) fn wanted(scale: &Value) -> i64 {
    scale
        .get("spec")
        .and_then(|spec| spec.get("replicas"))
        .and_then(Value::as_i64)
        .unwrap_or(0)
}

/// A selector as one string: as it stands, or the label selector or plain map of labels as kubectl writes it.
#[must_use]
pub(crate) fn selector_text(selector: &Value) -> String {
    if let Some(text) = selector.as_str() {
        return text.to_owned();
    }
    let pairs = |labels: &Map<String, Value>| -> Vec<String> {
        labels
            .iter()
            .filter_map(|(name, value)| Some(format!("{name}={}", value.as_str()?)))
            .collect()
    };
    let Some(fields) = selector.as_object() else {
        return String::new();
    };
    let is_selector = fields.contains_key("matchLabels") || fields.contains_key("matchExpressions");
    if !is_selector {
        return pairs(fields).join(",");
    }
    let mut parts = fields
        .get("matchLabels")
        .and_then(Value::as_object)
        .map(pairs)
        .unwrap_or_default();
    for expression in fields
        .get("matchExpressions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let word = |name: &str| expression.get(name).and_then(Value::as_str).unwrap_or_default();
        let mut values: Vec<&str> = expression
            .get("values")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        values.sort_unstable();
        let (key, values) = (word("key"), values.join(","));
        parts.push(match word("operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    parts.sort();
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Paths, of, selector_text, set, steps};
    use crate::object::Object;

    #[expect(clippy::needless_pass_by_value, reason = "literals read best as they are")]
    fn object(value: Value) -> Object {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn a_scale_shows_and_sets_the_replicas_of_its_paths() {
        let paths =
            Paths::of(&json!({"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}))
                .unwrap();
        let mut thing = object(json!({"metadata": {"name": "a"}, "spec": {"size": 2}}));
        let scale = of(&paths, &thing).unwrap();
        assert_eq!(scale["spec"]["replicas"], 2);
        assert_eq!(scale["status"], json!({"replicas": 0}));
        set(&paths, &mut thing, &json!({"spec": {"replicas": 5}}));
        assert_eq!(thing["spec"]["size"], 5);
        thing.remove("spec");
        assert_eq!(of(&paths, &thing).unwrap_err().code, 500);
        set(&paths, &mut thing, &json!({"spec": {"replicas": 1}}));
        assert_eq!(thing["spec"]["size"], 1);
    }

    #[test]
    fn only_simple_paths_have_steps() {
        assert_eq!(steps(".a.b"), Some(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(
            steps(".a['x.y'].b"),
            Some(vec!["a".to_owned(), "x.y".to_owned(), "b".to_owned()])
        );
        for bad in ["a", ".", "", ".a[0]", ".a['x"] {
            assert_eq!(steps(bad), None, "{bad}");
        }
    }

    #[test]
    fn selectors_are_written_in_one_line() {
        assert_eq!(selector_text(&json!("app=x")), "app=x");
        assert_eq!(selector_text(&json!({"app": "x"})), "app=x");
        let selector = json!({"matchLabels": {"app": "x"}, "matchExpressions": [
            {"key": "b", "operator": "In", "values": ["2", "1"]}, {"key": "c", "operator": "Exists"}]});
        assert_eq!(selector_text(&selector), "app=x,b in (1,2),c");
    }
}

//! The fields that admission plugins fill into pods: a priority, and tolerations of nodes that fail.

use serde_json::{Value, json};

use crate::{
    object::{
        Object, field,
        tree::{flag, list, made, number, text},
    },
    resource::Surroundings,
    status::{About, Result, Status},
};

const CLASSES: &str = "scheduling.k8s.io/priorityclasses";
const PREEMPTS: &str = "PreemptLowerPriority";

/// Classes that every cluster has.
const BUILTIN: [(&str, i64); 2] = [
    ("system-cluster-critical", 2_000_000_000),
    ("system-node-critical", 2_000_001_000),
];

/// Nodes that are lost are tolerated for so long.
const TOLERATED_SECONDS: i64 = 300;

/// Fills in a new pod. Cost: the priority classes, when the pod names none.
pub(super) fn admit(pod: &mut Object, around: &dyn Surroundings) -> Result<()> {
    let name = field(pod, "name").to_owned();
    let spec = made(pod, "spec");
    tolerate(spec);
    priority(spec, around).map_err(|why| {
        let about = About {
            group: "",
            resource: "pods",
            name: &name,
        };
        Status::forbidden(about, &why)
    })
}

/// Adds the tolerations that a pod does not have: of nodes that are not ready or cannot be reached.
pub(super) fn tolerate(spec: &mut Object) {
    let tolerations = list(spec, "tolerations");
    let missing: Vec<Value> = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]
        .into_iter()
        .filter(|key| {
            !tolerations.iter().filter_map(Value::as_object).any(|one| {
                let about_it = text(one, "key") == *key || text(one, "key").is_empty();
                about_it && matches!(text(one, "effect"), "NoExecute" | "")
            })
        })
        .map(|key| {
            json!({"key": key, "operator": "Exists", "effect": "NoExecute",
                "tolerationSeconds": TOLERATED_SECONDS})
        })
        .collect();
    if missing.is_empty() {
        return;
    }
    match spec.get_mut("tolerations") {
        Some(Value::Array(tolerations)) => tolerations.extend(missing),
        _ => {
            spec.insert("tolerations".to_owned(), Value::Array(missing));
        }
    }
}

/// The class of a pod, what it is worth, and whether it pushes others out.
struct Class {
    name: String,
    value: i64,
    preemption: String,
}

fn priority(spec: &mut Object, around: &dyn Surroundings) -> std::result::Result<(), String> {
    let class = class(text(spec, "priorityClassName"), around)?;
    if let Some(given) = number(spec, "priority").filter(|given| *given != class.value) {
        return Err(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed {} from the given PriorityClass name",
            class.value
        ));
    }
    let given = text(spec, "preemptionPolicy");
    if !given.is_empty() && given != class.preemption {
        return Err(format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission controller computed {} from the given PriorityClass name",
            class.preemption
        ));
    }
    if !class.name.is_empty() {
        spec.insert("priorityClassName".to_owned(), class.name.into());
    }
    spec.insert("priority".to_owned(), class.value.into());
    spec.insert("preemptionPolicy".to_owned(), class.preemption.into());
    Ok(())
}

fn class(name: &str, around: &dyn Surroundings) -> std::result::Result<Class, String> {
    let understood = |class: &Object| Class {
        name: field(class, "name").to_owned(),
        value: number(class, "value").unwrap_or(0),
        preemption: match text(class, "preemptionPolicy") {
            "" => PREEMPTS.to_owned(),
            policy => policy.to_owned(),
        },
    };
    if name.is_empty() {
        let classes = around.list(CLASSES, "");
        let defaults = classes.iter().filter(|class| flag(class, "globalDefault"));
        let lowest = defaults.map(understood).min_by_key(|class| class.value);
        return Ok(lowest.unwrap_or(Class {
            name: String::new(),
            value: 0,
            preemption: PREEMPTS.to_owned(),
        }));
    }
    if let Some(class) = around.get(CLASSES, name) {
        return Ok(understood(&class));
    }
    match BUILTIN.iter().find(|(known, _)| *known == name) {
        Some((_, value)) => Ok(Class {
            name: name.to_owned(),
            value: *value,
            preemption: PREEMPTS.to_owned(),
        }),
        None => Err(format!("no PriorityClass with name {name} was found")),
    }
}

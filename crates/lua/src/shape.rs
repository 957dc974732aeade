//! Converts the results of a function to a typed answer; every field is checked, and an error names the field and the expected
//! value, never the actual one.

use entourage_api::work::{
    AggregatedStatusItem, Component, ComponentReplicaRequirements, DependentObjectReference,
    ReplicaRequirements,
};
use entourage_interpreter::{
    quantity,
    question::{Answer, Question, check_dependency},
};
use mlua::{MultiValue, Value};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json, json};

use crate::{budget::Budget, json::from_lua, repair::repaired};

/// The error in a result.
pub(crate) enum Wrong {
    /// The field, empty for the result as a whole, and the expected value.
    Shape(String, &'static str),
    /// It could not be read.
    Unreadable(mlua::Error),
}

impl From<mlua::Error> for Wrong {
    fn from(error: mlua::Error) -> Self {
        Self::Unreadable(error)
    }
}

type Checked<T> = Result<T, Wrong>;

/// The name of the function for the question. Source: Karmada reference 3.3.
pub(crate) const fn function(question: &Question<'_>) -> &'static str {
    match question {
        Question::Replicas(_) => "GetReplicas",
        Question::Components(_) => "GetComponents",
        Question::Prune(_) => "Prune",
        Question::Revise(..) => "ReviseReplica",
        Question::Retain { .. } => "Retain",
        Question::Reflect(_) => "ReflectStatus",
        Question::Aggregate { .. } => "AggregateStatus",
        Question::Health(_) => "InterpretHealth",
        Question::Dependencies(_) => "GetDependencies",
    }
}

/// The reports of the clusters, as scripts get them: without our record of the copy.
pub(crate) fn items(items: &[AggregatedStatusItem]) -> Json {
    let item = |item: &AggregatedStatusItem| {
        let mut item = serde_json::to_value(item).unwrap_or_default();
        if let Some(fields) = item.as_object_mut() {
            fields.remove("copy");
        }
        item
    };
    items.iter().map(item).collect()
}

/// Converts the function's results to the answer to the question.
pub(crate) fn answer(question: &Question<'_>, results: &MultiValue, budget: &Budget) -> Checked<Answer> {
    let result = |index: usize| results.get(index).unwrap_or(&Value::Nil);
    match question {
        Question::Replicas(object) => {
            let replicas = whole("first", &as_json(result(0), &[], budget)?)?;
            let requirements = match result(1) {
                Value::Nil => None,
                table @ Value::Table(_) => Some(requirements(as_json(table, &[], budget)?, object)?),
                _ => {
                    return Err(shape(
                        "second",
                        "a table of requirements or nil as its second value",
                    ));
                }
            };
            Ok(Answer::Replicas {
                replicas: i64::from(replicas),
                requirements,
            })
        }
        Question::Components(_) => {
            let list = list(
                as_json(result(0), &[], budget)?,
                "a list of {name, replicas, replicaRequirements}",
            )?;
            let component = |(index, each)| component(index, each);
            Ok(Answer::Components(
                list.into_iter()
                    .enumerate()
                    .map(component)
                    .collect::<Checked<_>>()?,
            ))
        }
        Question::Prune(object) | Question::Revise(object, _) => object_like(result(0), &[*object], budget),
        Question::Retain { desired, live } => object_like(result(0), &[*desired, *live], budget),
        Question::Aggregate { template, .. } => object_like(result(0), &[*template], budget),
        Question::Reflect(live) => match result(0) {
            Value::Nil => Ok(Answer::Status(None)),
            table @ Value::Table(_) => {
                let status = as_json(table, &[&live["status"]], budget)?;
                Ok(Answer::Status(Some(
                    as_object(status, "a table, the status, or nil")?.into(),
                )))
            }
            _ => Err(shape("", "a table, the status, or nil")),
        },
        Question::Health(_) => match result(0) {
            Value::Boolean(is_healthy) => Ok(Answer::Healthy(*is_healthy)),
            _ => Err(shape("", "true or false")),
        },
        Question::Dependencies(_) => {
            let list = list(
                as_json(result(0), &[], budget)?,
                "a list of {apiVersion, kind, namespace, name}",
            )?;
            let dependency = |(index, each)| dependency(index, each);
            Ok(Answer::Dependencies(
                list.into_iter()
                    .enumerate()
                    .map(dependency)
                    .collect::<Checked<_>>()?,
            ))
        }
    }
}

/// An object like the first of the references: its identity is kept, whatever else a script changes.
fn object_like(result: &Value, references: &[&Json], budget: &Budget) -> Checked<Answer> {
    let object = as_object(as_json(result, references, budget)?, "a table, the object")?;
    for (parent, field) in [
        ("", "apiVersion"),
        ("", "kind"),
        ("metadata", "name"),
        ("metadata", "namespace"),
    ] {
        let of = |object: &Json| match parent {
            "" => object[field].clone(),
            parent => object[parent][field].clone(),
        };
        if of(references[0]) != of(&Json::Object(object.clone())) {
            let path = if parent.is_empty() {
                field.to_owned()
            } else {
                format!("{parent}.{field}")
            };
            return Err(shape(
                path,
                "the object that it was given, its identity unchanged",
            ));
        }
    }
    Ok(Answer::Object(object.into()))
}

fn requirements(value: Json, object: &Json) -> Checked<ReplicaRequirements> {
    let mut fields = as_object(value, "a table of requirements or nil as its second value")?;
    amounts(&mut fields, "requirements.")?;
    each_field::<ReplicaRequirements>(&fields, "requirements.")?;
    let mut read: ReplicaRequirements = whole_value(fields, "requirements")?;
    // Its quota is used, and the script may omit it.
    if read.namespace.is_empty() {
        read.namespace = object["metadata"]["namespace"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
    }
    Ok(read)
}

fn component(index: usize, value: Json) -> Checked<Component> {
    let at = format!("[{}]", index + 1);
    let Json::Object(mut fields) = value else {
        return Err(shape(at, "a table {name, replicas, replicaRequirements}"));
    };
    let Some(Json::String(name)) = fields.remove("name").filter(|name| name != "") else {
        return Err(shape(format!("{at}.name"), "a text"));
    };
    let replicas = whole(
        &format!("{at}.replicas"),
        &fields.remove("replicas").unwrap_or(json!(0)),
    )?;
    let replica_requirements = match fields.remove("replicaRequirements") {
        None | Some(Json::Null) => None,
        Some(needed) => {
            let at = format!("{at}.replicaRequirements.");
            let Json::Object(mut fields) = needed else {
                return Err(shape(at.trim_end_matches('.'), "a table of requirements"));
            };
            amounts(&mut fields, &at)?;
            each_field::<ComponentReplicaRequirements>(&fields, &at)?;
            Some(whole_value(fields, &at)?)
        }
    };
    Ok(Component {
        name,
        replicas,
        replica_requirements,
    })
}

fn dependency(index: usize, value: Json) -> Checked<DependentObjectReference> {
    let at = format!("[{}]", index + 1);
    let Json::Object(fields) = value else {
        return Err(shape(at, "a table {apiVersion, kind, namespace, name}"));
    };
    for field in ["apiVersion", "kind", "namespace", "name"] {
        let is_required = ["apiVersion", "kind"].contains(&field);
        match fields.get(field) {
            Some(Json::String(text)) if !(is_required && text.is_empty()) => {}
            None if !is_required => {}
            _ => return Err(shape(format!("{at}.{field}"), "a text")),
        }
    }
    let read: DependentObjectReference = serde_json::from_value(fields.into())
        .map_err(|_| shape(format!("{at}.labelSelector"), "a label selector"))?;
    if read.name.is_empty() && read.label_selector.is_none() {
        return Err(shape(at, "a name or a labelSelector"));
    }
    // The validation message may quote labels of an object.
    check_dependency(&read).map_err(|_| shape(format!("{at}.labelSelector"), "a label selector"))?;
    Ok(read)
}

/// Parses amounts as Kubernetes does: numbers are quantities too, as in a manifest.
fn amounts(fields: &mut Map<String, Json>, at: &str) -> Checked<()> {
    let Some(Json::Object(amounts)) = fields.get_mut("resourceRequest") else {
        return Ok(());
    };
    for amount in amounts.values_mut() {
        if quantity::approximate(amount).is_none() {
            return Err(shape(
                format!("{at}resourceRequest"),
                "a table of quantities by name",
            ));
        }
        if amount.is_number() {
            *amount = Json::String(amount.to_string());
        }
    }
    Ok(())
}

/// Parses each known field alone: an error of the whole may quote a value.
fn each_field<T: DeserializeOwned>(fields: &Map<String, Json>, at: &str) -> Checked<()> {
    for (field, expected) in [
        (
            "nodeClaim",
            "a table {hardNodeAffinity, nodeSelector, tolerations}",
        ),
        ("resourceRequest", "a table of quantities by name"),
        ("namespace", "a text"),
        ("priorityClassName", "a text"),
    ] {
        let Some(value) = fields.get(field) else { continue };
        if serde_json::from_value::<T>(json!({ field: value })).is_err() {
            return Err(shape(format!("{at}{field}"), expected));
        }
    }
    Ok(())
}

fn whole_value<T: DeserializeOwned>(fields: Map<String, Json>, at: &str) -> Checked<T> {
    serde_json::from_value(fields.into())
        .map_err(|_| shape(at.trim_end_matches('.'), "a table of requirements"))
}

/// A number of replicas: a fraction is truncated, as in Karmada, so that a script may divide.
fn whole(at: &str, value: &Json) -> Checked<i32> {
    let number = value.as_f64().map(f64::trunc);
    let range = 0.0..=f64::from(i32::MAX);
    match number.filter(|number| range.contains(number)) {
        Some(number) => Ok(number as i32),
        None if at == "first" => Err(shape("", "a number of replicas, 0 or more, as its first value")),
        None => Err(shape(at, "a number of replicas, 0 or more")),
    }
}

fn as_json(value: &Value, references: &[&Json], budget: &Budget) -> Checked<Json> {
    Ok(repaired(from_lua(value, budget)?, references))
}

/// At the top an empty table has whatever type is expected.
fn as_object(value: Json, expected: &'static str) -> Checked<Map<String, Json>> {
    match value {
        Json::Object(map) => Ok(map),
        Json::Array(list) if list.is_empty() => Ok(Map::new()),
        _ => Err(shape("", expected)),
    }
}

fn list(value: Json, expected: &'static str) -> Checked<Vec<Json>> {
    match value {
        Json::Array(list) => Ok(list),
        _ => Err(shape("", expected)),
    }
}

fn shape(field: impl Into<String>, expected: &'static str) -> Wrong {
    Wrong::Shape(field.into(), expected)
}

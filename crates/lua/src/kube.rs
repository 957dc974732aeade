//! The library that scripts load by `require("kube")`. Source: Karmada reference 3.3; the rules are the interpreter's.

use std::sync::Arc;

use entourage_interpreter::{
    DependencyReference, NativeKind, native, quantity, references::references, requirements::requirements,
};
use mlua::{Lua, LuaString, MultiValue, Table, Value};
use serde_json::{Value as Json, json};

use crate::{
    budget::Budget,
    error::say,
    json::{from_lua, to_lua},
    repair::repaired,
};

/// A fresh table of the library's functions.
pub(crate) fn library(lua: &Lua, budget: &Arc<Budget>) -> mlua::Result<Table> {
    let library = lua.create_table()?;
    library.raw_set(
        "resourceAdd",
        lua.create_function(|_, given| resource_add(&given))?,
    )?;
    library.raw_set(
        "getResourceQuantity",
        lua.create_function(|_, given| resource_quantity(&given))?,
    )?;
    let held = Arc::clone(budget);
    let of_pod = lua.create_function(move |lua, given| pod_requirements(lua, &held, &given))?;
    library.raw_set("accuratePodRequirements", of_pod)?;
    let held = Arc::clone(budget);
    let of_pod = lua.create_function(move |lua, given| pod_dependencies(lua, &held, &given))?;
    library.raw_set("getPodDependencies", of_pod)?;
    Ok(library)
}

/// `resourceAdd(q…)`: the sum, in the form of the first that is not zero. nil counts as zero.
fn resource_add(given: &MultiValue) -> mlua::Result<String> {
    let quantities: Vec<Json> = given
        .iter()
        .enumerate()
        .filter(|(_, each)| !each.is_nil())
        .map(|(index, each)| as_quantity("resourceAdd", index, each))
        .collect::<mlua::Result<_>>()?;
    quantity::sum(&quantities).ok_or_else(|| say("kube.resourceAdd: the sum is too large"))
}

/// `getResourceQuantity(q)`: the amount as a number.
fn resource_quantity(given: &MultiValue) -> mlua::Result<f64> {
    match given.front() {
        Some(Value::Nil) if given.len() == 1 => Ok(0.0),
        Some(value) if given.len() == 1 => {
            let amount = quantity::approximate(&as_quantity("getResourceQuantity", 0, value)?);
            amount
                .filter(|amount| *amount >= 0.0)
                .ok_or_else(|| say("kube.getResourceQuantity: the quantity is negative"))
        }
        _ => Err(say("kube.getResourceQuantity takes one argument")),
    }
}

/// `accuratePodRequirements(podTemplate)`: the requirements of a replica; nil if there are none.
fn pod_requirements(lua: &Lua, budget: &Budget, given: &MultiValue) -> mlua::Result<Value> {
    let (Some(Value::Table(template)), 1) = (given.front(), given.len()) else {
        return Err(say(
            "kube.accuratePodRequirements takes one argument, a pod template",
        ));
    };
    let template = read(template, budget)?;
    let Some(mut needed) = requirements(pod()?, "", &template) else {
        return Ok(Value::Nil);
    };
    needed.namespace.clear();
    let needed =
        serde_json::to_value(needed).map_err(|_| say("kube.accuratePodRequirements: cannot be written"))?;
    unlimited(lua, budget, || to_lua(lua, &needed))
}

/// `getPodDependencies(podTemplate, namespace)`: the dependencies of a pod in that namespace; `default` if it is nil.
fn pod_dependencies(lua: &Lua, budget: &Budget, given: &MultiValue) -> mlua::Result<Value> {
    let wrong = "kube.getPodDependencies takes a pod template and a namespace";
    let (Some(Value::Table(template)), 2) = (given.front(), given.len()) else {
        return Err(say(wrong));
    };
    let namespace = match given.get(1) {
        Some(Value::Nil) => "default".to_owned(),
        Some(Value::String(namespace)) => namespace.to_string_lossy(),
        _ => return Err(say(wrong)),
    };
    let template = read(template, budget)?;
    let found = references(pod()?, &namespace, &template);
    unlimited(lua, budget, || listed(lua, &found, &namespace))
}

fn listed(lua: &Lua, found: &[DependencyReference], namespace: &str) -> mlua::Result<Value> {
    let (api_version, kind, name) = (text(lua, "apiVersion")?, text(lua, "kind")?, text(lua, "name")?);
    let (in_namespace, namespace) = (text(lua, "namespace")?, text(lua, namespace)?);
    let list = lua.create_table_with_capacity(found.len(), 0)?;
    for (index, each) in found.iter().enumerate() {
        let fields = [
            (&api_version, text(lua, &each.id.gvk.api_version())?),
            (&kind, text(lua, &each.id.gvk.kind)?),
            (&in_namespace, namespace.clone()),
            (&name, text(lua, &each.id.name)?),
        ];
        list.raw_set(index + 1, lua.create_table_from(fields)?)?;
    }
    Ok(Value::Table(list))
}

/// Makes a result without the memory limit, which takes half the time. Results are no larger than the pod template they were
/// computed from, and that is limited.
fn unlimited<T>(lua: &Lua, budget: &Budget, make: impl FnOnce() -> mlua::Result<T>) -> mlua::Result<T> {
    let limit = lua.set_memory_limit(0)?;
    let result = make();
    lua.set_memory_limit(limit)?;
    budget.check()?;
    result
}

fn text(lua: &Lua, text: &str) -> mlua::Result<LuaString> {
    lua.create_string(text)
}

/// A pod template has its pod spec at the same path as a Pod.
fn pod() -> mlua::Result<&'static dyn NativeKind> {
    native("", "v1", "Pod").ok_or_else(|| say("kube: pods are not known"))
}

/// Empty objects and arrays of a template cannot be distinguished, and need not be.
fn read(template: &Table, budget: &Budget) -> mlua::Result<Json> {
    Ok(repaired(from_lua(&Value::Table(template.clone()), budget)?, &[]))
}

fn as_quantity(function: &str, index: usize, value: &Value) -> mlua::Result<Json> {
    let quantity = match value {
        Value::String(text) => Json::String(text.to_string_lossy()),
        Value::Integer(number) => json!(number),
        Value::Number(number) => json!(number),
        _ => Json::Null,
    };
    match quantity::approximate(&quantity) {
        Some(_) => Ok(quantity),
        None => Err(say(format!(
            "kube.{function}: argument {} is not a quantity",
            index + 1
        ))),
    }
}

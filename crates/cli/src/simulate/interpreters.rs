//! The interpreter of a hub: its customizations, which count here, and its webhooks, which are named and not called.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use entourage_api::config::ResourceInterpreterCustomization;
use entourage_core::{
    interpreter::{Interpretation, ask, hook::Contract},
    object::{Gvk, Str},
};
use entourage_lua::Lua;
use kube::{Client, api::ListParams};
use serde_json::Value;

use crate::{
    connect::explain,
    kinds::Kinds,
    lists::{PAGE, list},
};

/// The API version of everything that teaches.
const API: &str = "config.karmada.io/v1alpha1";

/// The interpreters of customizations, by kind.
#[derive(Default)]
pub struct InterpreterSnapshot {
    /// By kind and version.
    kinds: BTreeMap<(Gvk, Str), Interpretation>,
}

impl InterpreterSnapshot {
    /// Compiles customizations. Cost: O(the length of their scripts).
    #[must_use]
    pub fn by(customizations: &[ResourceInterpreterCustomization]) -> Self {
        let mut kinds = BTreeMap::new();
        for each in customizations {
            let gvk = Gvk::new(&each.spec.target.api_version, &each.spec.target.kind);
            let interpretation = || ask::interpretation(&gvk, customizations, Some(&Lua::default()));
            let key = (gvk.clone(), gvk.version.clone());
            kinds.entry(key).or_insert_with(interpretation);
        }
        Self { kinds }
    }

    /// The interpretation of a kind in this version.
    #[must_use]
    pub fn of(&self, gvk: &Gvk) -> Interpretation {
        let key = (gvk.clone(), gvk.version.clone());
        self.kinds.get(&key).cloned().unwrap_or_default()
    }

    /// Every kind that they are about.
    pub fn kinds(&self) -> impl Iterator<Item = &Gvk> {
        self.kinds.keys().map(|(gvk, _)| gvk)
    }
}

/// Reads the customizations of a hub; none if the hub does not serve their kind. Errors of reading are added to `remarks`.
pub async fn of_hub(
    hub: &Client,
    kinds: &mut Kinds,
    remarks: &mut impl Extend<String>,
) -> InterpreterSnapshot {
    let objects = match listed(hub, kinds, "ResourceInterpreterCustomization").await {
        Ok(objects) => objects,
        Err(error) => {
            remarks.extend([format!(
                "the hub's ResourceInterpreterCustomizations cannot be listed, and are not used here: {error:#}"
            )]);
            return InterpreterSnapshot::default();
        }
    };
    let mut all = Vec::new();
    for object in objects {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        match serde_json::from_value(object) {
            Ok(customization) => all.push(customization),
            Err(_) => remarks.extend([format!(
                "ResourceInterpreterCustomization {name}: its fields cannot be read, and it is not used here; \
                 compare \
                 it with what `entourage crds` prints"
            )]),
        }
    }
    InterpreterSnapshot::by(&all)
}

/// Adds a remark on the hooks of a hub: a simulation does not call them.
pub async fn hooks_of_hub(hub: &Client, kinds: &mut Kinds) -> Vec<String> {
    let mut remarks = Vec::new();
    for contract in [Contract::Interpreter, Contract::Explorer] {
        match listed(hub, kinds, contract.configuration()).await {
            Ok(objects) => remarks.extend(hooks(&objects)),
            Err(error) => remarks.push(format!(
                "the hub's {}s cannot be listed, so hooks are ignored: {error:#}",
                contract.configuration()
            )),
        }
    }
    remarks
}

/// A hook of a hub whose rules cover one of these kinds, as `Kind name`: the hub may then decide otherwise than is decided here.
///
/// # Errors
/// The hooks cannot be listed.
pub async fn hook_covering(hub: &Client, kinds: &mut Kinds, gvks: &[&Gvk]) -> Result<Option<String>> {
    for contract in [Contract::Interpreter, Contract::Explorer] {
        let kind = contract.configuration();
        let objects = listed(hub, kinds, kind).await;
        let objects = objects.with_context(|| format!("cannot list {kind}s on the hub"))?;
        let covers = |object: &&Value| gvks.iter().any(|gvk| covers(object, gvk));
        if let Some(object) = objects.iter().find(covers) {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            return Ok(Some(format!("{kind} {name}")));
        }
    }
    Ok(None)
}

/// True if rules of a configuration may be about a kind, in any version and for any operation. One contract names kinds, the
/// other plurals, of which any in the group counts.
fn covers(configuration: &Value, gvk: &Gvk) -> bool {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let hooks = list(&configuration["spec"]["webhooks"])
        .into_iter()
        .chain(list(&configuration["webhooks"]));
    let mut rules = hooks.flat_map(|hook| list(&hook["rules"]));
    rules.any(|rule| {
        let names = |field: &str, wanted: &str| {
            let all = rule[field].as_array();
            all.is_none_or(|all| all.iter().any(|each| each == wanted || each == "*"))
        };
        names("apiGroups", &gvk.group) && names("kinds", &gvk.kind)
    })
}

/// Adds a remark on the objects with hooks: a simulation does not call them.
#[must_use]
pub fn hooks(objects: &[Value]) -> Vec<String> {
    let contracts = [Contract::Interpreter, Contract::Explorer].map(Contract::configuration);
    let is_one = |object: &&Value| contracts.iter().any(|kind| object["kind"] == **kind);
    let remark = |object: &Value| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        format!(
            "{} {}: its hooks are not called here; the kinds of their rules are interpreted without them, and \
             the controllers may decide otherwise",
            text(&object["kind"]),
            text(&object["metadata"]["name"])
        )
    };
    objects.iter().filter(is_one).map(remark).collect()
}

/// All objects of a kind that teaches; none where the hub does not serve it.
async fn listed(hub: &Client, kinds: &mut Kinds, kind: &str) -> Result<Vec<Value>> {
    let gvk = Gvk::new(API, kind);
    kinds.learn(hub, [gvk.clone()]).await?;
    let Some(served) = kinds.get(&gvk) else {
        return Ok(Vec::new());
    };
    let params = ListParams::default().limit(PAGE);
    list(hub, served, "", &params).await.map_err(explain)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_rules_of_hooks_say_which_kinds_they_cover() {
        let by_kind = |groups: Value, kinds: Value| json!({"webhooks": [{"rules": [{"apiGroups": groups, "kinds": kinds}]}]});
        for (configuration, expected) in [
            (by_kind(json!(["apps"]), json!(["Deployment"])), true),
            (by_kind(json!(["*"]), json!(["*"])), true),
            (by_kind(json!(["apps"]), json!(["StatefulSet"])), false),
            (by_kind(json!(["batch"]), json!(["*"])), false),
            (
                json!({"webhooks": [{"rules": [{"apiGroups": ["apps"], "resources": ["x"]}]}]}),
                true,
            ),
            (
                json!({"spec": {"webhooks": [{"rules": [{"apiGroups": ["apps"], "kinds": ["*"]}]}]}}),
                true,
            ),
            (json!({"webhooks": []}), false),
        ] {
            let gvk = Gvk::new("apps/v1", "Deployment");
            assert_eq!(covers(&configuration, &gvk), expected, "{configuration}");
        }
    }
}

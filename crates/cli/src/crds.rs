//! `entourage crds`: prints the CustomResourceDefinitions, or applies them to a hub and waits until it serves them.

use std::{io::Write, time::Duration};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use entourage_api::crds::{ServerVersion, crds, to_yaml};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client, api::ListParams};
use serde_json::Value;

use crate::{
    apply::{covers, post},
    args::HubArgs,
    connect::{self, within},
    lists::pages,
    wait::{Waited, until},
};

/// The time that a server may take to serve a new kind.
const ESTABLISHED_WITHIN: Duration = Duration::from_secs(30);

/// Flags of `entourage crds`.
#[derive(Args, Clone, Debug)]
pub struct CrdsArgs {
    /// Omit fields that this Kubernetes version would drop, e.g. 1.20 (without it and a kubeconfig: for a current one)
    #[arg(long = "for", value_name = "VERSION", value_parser = version, conflicts_with = "apply")]
    pub server: Option<ServerVersion>,

    /// Create or replace them on the hub instead of printing them, and wait until they are served
    #[arg(long)]
    pub apply: bool,

    /// The hub.
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Runs the command; YAML or lines go to `out`.
///
/// # Errors
/// The hub cannot be reached or refuses a definition.
pub async fn run(args: CrdsArgs, out: &mut (dyn Write + Send)) -> Result<()> {
    if !args.apply && (args.server.is_some() || (args.hub.kubeconfig.is_none() && args.hub.context.is_none()))
    {
        return print(&crds(args.server), out);
    }
    let config = connect::config(args.hub.kubeconfig.as_deref(), args.hub.context.as_deref()).await?;
    let hub = connect::client(config)?;
    let definitions = crds(Some(server_version(&hub).await?));
    if args.apply {
        apply(&hub, definitions, out).await
    } else {
        print(&definitions, out)
    }
}

/// Creates or replaces the definitions on a hub and waits until it serves them.
///
/// # Errors
/// The definition that the hub refused or does not serve in time.
pub async fn apply(
    hub: &Client,
    definitions: Vec<CustomResourceDefinition>,
    out: &mut (dyn Write + Send),
) -> Result<()> {
    let api: Api<CustomResourceDefinition> = Api::all(hub.clone());
    for definition in &definitions {
        let name = definition.metadata.name.clone().unwrap_or_default();
        let done = write(&api, &name, definition.clone()).await;
        let verb = done
            .map_err(connect::explain)
            .with_context(|| format!("cannot write the definition {name} on the hub"))?;
        writeln!(
            out,
            "hub: customresourcedefinition.apiextensions.k8s.io/{name} {verb}"
        )?;
    }
    let names: Vec<String> = definitions
        .into_iter()
        .filter_map(|definition| definition.metadata.name)
        .collect();
    until_served(hub, &names).await
}

/// Waits until a hub serves the kinds of these definitions.
///
/// # Errors
/// The definition that the hub does not serve in time, and its reason.
pub async fn until_served(hub: &Client, names: &[String]) -> Result<()> {
    let api: Api<CustomResourceDefinition> = Api::all(hub.clone());
    for name in names {
        let waited = until(&api, name, ESTABLISHED_WITHIN, |crd| {
            crd.is_some_and(is_established)
        })
        .await;
        let waited = waited
            .map_err(connect::explain)
            .with_context(|| format!("cannot read {name} on the hub"))?;
        if let Waited::TimedOut(crd) = waited {
            let why = crd
                .as_ref()
                .and_then(refusal)
                .unwrap_or_else(|| "the hub gives no reason".to_owned());
            bail!(
                "the hub does not serve {name} after {} s: {why}",
                ESTABLISHED_WITHIN.as_secs()
            );
        }
    }
    Ok(())
}

/// The state of a definition on a hub, compared with the one in this binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// The hub has it, with the same content.
    Current,
    /// The hub does not have it.
    Missing,
    /// The hub has one of another version.
    Differs,
    /// The hub has one with versions or fields that the one in this binary lacks.
    Newer,
}

/// Compares definitions with those of a hub: name and state of each.
///
/// # Errors
/// The hub does not respond or does not permit to list definitions.
pub async fn stored(hub: &Client, ours: &[CustomResourceDefinition]) -> Result<Vec<(String, Stored)>> {
    let api: Api<CustomResourceDefinition> = Api::all(hub.clone());
    let live = pages(&api, &ListParams::default()).await;
    let live = live
        .map_err(connect::explain)
        .context("cannot list the definitions on the hub")?;
    let state = |definition: &CustomResourceDefinition| {
        let name = &definition.metadata.name;
        let live = live.iter().find(|live| live.metadata.name == *name);
        (name.clone().unwrap_or_default(), compared(live, definition))
    };
    Ok(ours.iter().map(state).collect())
}

/// Fields that the definition does not have, such as defaults of the server, do not count.
fn compared(live: Option<&CustomResourceDefinition>, ours: &CustomResourceDefinition) -> Stored {
    let Some(live) = live else {
        return Stored::Missing;
    };
    let spec = |crd: &CustomResourceDefinition| serde_json::to_value(&crd.spec).unwrap_or_default();
    let (live, ours) = (spec(live), spec(ours));
    if covers(&live, &ours) {
        Stored::Current
    } else if lost(&live, &ours).is_empty() {
        Stored::Differs
    } else {
        Stored::Newer
    }
}

/// The versions and fields that the spec of a live definition has and another one lacks. If it is replaced, their content is dropped
/// from each object that is written next.
#[must_use]
pub fn lost(live: &Value, ours: &Value) -> Vec<String> {
    let mut lost = Vec::new();
    for version in live["versions"].as_array().into_iter().flatten() {
        let name = version["name"].as_str().unwrap_or_default();
        let mut all = ours["versions"].as_array().into_iter().flatten();
        match all.find(|each| each["name"] == version["name"]) {
            None => lost.push(format!("version {name}")),
            Some(same) => {
                let (live, ours) = (&version["schema"], &same["schema"]);
                lost_fields(
                    name,
                    &live["openAPIV3Schema"],
                    &ours["openAPIV3Schema"],
                    &mut lost,
                );
            }
        }
    }
    lost
}

/// Adds the fields below `path` that one schema has and the other neither has nor keeps unknown.
fn lost_fields(path: &str, live: &Value, ours: &Value, lost: &mut Vec<String>) {
    let keeps_unknown = ours["x-kubernetes-preserve-unknown-fields"] == true
        || ours["additionalProperties"] == true
        || ours["additionalProperties"].is_object();
    for (field, schema) in live["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{field}");
        match ours["properties"].get(field) {
            Some(ours) => lost_fields(&path, schema, ours, lost),
            None if keeps_unknown => {}
            None => lost.push(path),
        }
    }
    for below in ["items", "additionalProperties"] {
        if live[below].is_object() && ours[below].is_object() {
            lost_fields(path, &live[below], &ours[below], lost);
        }
    }
}

/// The hub's version.
///
/// # Errors
/// It does not respond, or the response contains no version.
pub async fn server_version(hub: &Client) -> Result<ServerVersion> {
    let info = within(hub.apiserver_version())
        .await
        .map_err(connect::explain)
        .context("cannot read the hub's version")?;
    ServerVersion::parse(&info.major, &info.minor).with_context(|| {
        format!(
            "the hub's version {}.{} is not understood",
            info.major, info.minor
        )
    })
}

fn print(definitions: &[CustomResourceDefinition], out: &mut (dyn Write + Send)) -> Result<()> {
    for definition in definitions {
        writeln!(out, "---\n{}", to_yaml(definition)?.trim_end())?;
    }
    Ok(())
}

/// Creates or replaces one definition and reports it. A replacement that changes nothing does not change the generation.
async fn write(
    api: &Api<CustomResourceDefinition>,
    name: &str,
    mut definition: CustomResourceDefinition,
) -> kube::Result<&'static str> {
    let post = post();
    let Some(live) = api.get_opt(name).await? else {
        return api.create(&post, &definition).await.map(|_| "created");
    };
    let before = live.metadata.generation;
    // Metadata of other writers is kept: labels, annotations, finalizers, a conversion webhook.
    definition.metadata = live.metadata;
    definition.metadata.managed_fields = None;
    definition.spec.conversion = definition.spec.conversion.or(live.spec.conversion);
    let after = api.replace(name, &post, &definition).await?;
    Ok(if after.metadata.generation == before {
        "unchanged"
    } else {
        "configured"
    })
}

fn is_established(crd: &CustomResourceDefinition) -> bool {
    let conditions = crd
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    conditions
        .into_iter()
        .any(|condition| condition.type_ == "Established" && condition.status == "True")
}

/// The reason why the hub does not accept a definition, or `None` if it does.
fn refusal(crd: &CustomResourceDefinition) -> Option<String> {
    let mut conditions = crd
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    let refused =
        conditions.find(|condition| condition.type_ == "NamesAccepted" && condition.status == "False")?;
    refused.message.clone()
}

/// Reads the version of a Kubernetes server.
///
/// # Errors
/// A sentence for the user.
pub(crate) fn version(text: &str) -> Result<ServerVersion, String> {
    let mut parts = text.trim_start_matches('v').split('.');
    parts
        .next()
        .zip(parts.next())
        .and_then(|(major, minor)| ServerVersion::parse(major, minor))
        .ok_or_else(|| "give a Kubernetes version such as 1.20".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn printed(server: Option<ServerVersion>) -> String {
        let mut out = Vec::new();
        print(&crds(server), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_is_printed_is_one_document_per_definition() {
        let text = printed(None);
        assert_eq!(
            text.matches("kind: CustomResourceDefinition").count(),
            crds(None).len()
        );
        let read: Vec<CustomResourceDefinition> = serde_saphyr::from_multiple(&text).unwrap();
        assert_eq!(read, crds(None));
    }

    fn specs() -> Vec<Value> {
        let all = crds(None).into_iter();
        all.map(|crd| serde_json::to_value(crd.spec).unwrap()).collect()
    }

    #[test]
    fn no_definition_loses_a_field_by_its_form_for_an_old_server() {
        let old = crds(Some(version("1.20").unwrap()));
        for (new, old) in specs().iter().zip(old) {
            let old = serde_json::to_value(old.spec).unwrap();
            assert_eq!(lost(new, &old), Vec::<String>::new());
            assert_eq!(lost(&old, new), Vec::<String>::new());
        }
    }

    #[test]
    fn versions_and_fields_that_ours_lacks_are_named() {
        let schema = |properties: Value| json!({"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"properties": properties}}}]});
        let field = json!({"type": "string"});
        let ours = schema(
            json!({"spec": {"properties": {"a": field, "free": {"x-kubernetes-preserve-unknown-fields": true},
            "map": {"additionalProperties": {"properties": {"a": field}}}, "list": {"items": {"properties": {"a": field}}}}}}),
        );
        for (live, wanted) in [
            (json!({}), vec![]),
            (ours.clone(), vec![]),
            (
                schema(json!({"spec": {"properties": {"b": field}}})),
                vec!["v1.spec.b"],
            ),
            (schema(json!({"status": {}})), vec!["v1.status"]),
            (
                schema(json!({"spec": {"properties": {"free": {"properties": {"b": field}}}}})),
                vec![],
            ),
            (
                schema(
                    json!({"spec": {"properties": {"map": {"additionalProperties": {"properties": {"b": field}}}}}}),
                ),
                vec!["v1.spec.map.b"],
            ),
            (
                schema(
                    json!({"spec": {"properties": {"list": {"items": {"properties": {"a": field, "c": field}}}}}}),
                ),
                vec!["v1.spec.list.c"],
            ),
            (
                json!({"versions": [{"name": "v2"}, {"name": "v1"}]}),
                vec!["version v2"],
            ),
        ] {
            assert_eq!(lost(&live, &ours), wanted, "{live}");
        }
    }

    #[test]
    fn an_old_server_is_not_sent_what_it_would_drop() {
        let old = printed(Some(version("v1.20.2").unwrap()));
        assert!(!old.contains("x-kubernetes-validations"));
    }

    #[test]
    fn versions_are_read_with_or_without_decoration() {
        let wanted = ServerVersion { major: 1, minor: 20 };
        for text in ["1.20", "v1.20", "v1.20.2", "1.20+", "v1.20.2-rc.1"] {
            assert_eq!(version(text), Ok(wanted), "{text}");
        }
        for text in ["", "1", "new", "v"] {
            assert!(version(text).is_err(), "{text}");
        }
    }
}

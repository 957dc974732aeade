//! `entourage crds`: prints the CustomResourceDefinitions, or applies them to a hub and waits until it serves them.

use std::{io::Write, time::Duration};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use entourage_api::crds::{ServerVersion, crds, to_yaml};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client};

use crate::{
    apply::post,
    args::HubArgs,
    connect,
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
    for definition in definitions {
        let name = definition.metadata.name.unwrap_or_default();
        let waited = until(&api, &name, ESTABLISHED_WITHIN, |crd| {
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

/// The hub's version.
///
/// # Errors
/// It does not respond, or the response contains no version.
pub async fn server_version(hub: &Client) -> Result<ServerVersion> {
    let info = hub
        .apiserver_version()
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

fn version(text: &str) -> Result<ServerVersion, String> {
    let mut parts = text.trim_start_matches('v').split('.');
    parts
        .next()
        .zip(parts.next())
        .and_then(|(major, minor)| ServerVersion::parse(major, minor))
        .ok_or_else(|| "give a Kubernetes version such as 1.20".to_owned())
}

#[cfg(test)]
mod tests {
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

//! `entourage version`: the version of this binary and of the definitions in it; with a hub also those of the hub.

use std::io::Write;

use anyhow::{Context as _, Result};
use clap::Args;
use entourage_api::crds::crds;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use serde::Serialize;

use crate::{
    args::{Format, HubArgs},
    connect::{self, explain, within},
    crds::{Stored, server_version, stored},
};

/// Flags of `entourage version`.
#[derive(Args, Clone, Debug)]
pub struct VersionArgs {
    /// The hub: it is only asked if one of these is given.
    #[command(flatten)]
    pub hub: HubArgs,

    /// Output format (default: text)
    #[arg(short = 'o', long, value_enum)]
    pub output: Option<Format>,
}

/// The versions, as `-o json` prints them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Versions {
    /// The version of this binary.
    pub version: &'static str,
    /// Operating system and architecture, such as `linux/x86_64`.
    pub platform: String,
    /// True if the embedded API server is part of this binary.
    pub embedded: bool,
    /// The definitions in this binary.
    pub definitions: Vec<Definition>,
    /// The hub, if one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hub: Option<Hub>,
}

/// A CustomResourceDefinition and its versions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Definition {
    /// `<plural>.<group>`.
    pub name: String,
    /// The versions that are served.
    pub served: Vec<String>,
    /// The version in which objects are stored.
    pub stored: String,
}

/// The versions on a hub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Hub {
    /// The version of its API server.
    pub kubernetes: String,
    /// Definitions that it does not have.
    pub missing_definitions: Vec<String>,
    /// Definitions that differ from those in this binary.
    pub different_definitions: Vec<String>,
}

/// Runs the command; the versions go to `out`.
///
/// # Errors
/// The hub was asked for and cannot be reached.
pub async fn run(args: VersionArgs, out: &mut (dyn Write + Send)) -> Result<()> {
    let mut versions = versions();
    if args.hub.kubeconfig.is_some() || args.hub.context.is_some() {
        let config = connect::config(args.hub.kubeconfig.as_deref(), args.hub.context.as_deref()).await?;
        versions.hub = Some(of_hub(&connect::client(config)?).await?);
    }
    match args.output {
        Some(format) => format.write(&versions, out),
        None => text(&versions, out),
    }
}

/// The versions of this binary.
#[must_use]
pub fn versions() -> Versions {
    Versions {
        version: env!("CARGO_PKG_VERSION"),
        platform: format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
        embedded: cfg!(feature = "embedded"),
        definitions: crds(None).iter().map(definition).collect(),
        hub: None,
    }
}

/// The versions on a hub.
///
/// # Errors
/// The hub cannot be reached or does not permit to list definitions.
pub async fn of_hub(hub: &Client) -> Result<Hub> {
    let info = within(hub.apiserver_version()).await.map_err(explain);
    let info = info.context("cannot read the hub's version")?;
    let ours = crds(Some(server_version(hub).await?));
    let (mut missing, mut different) = (Vec::new(), Vec::new());
    for (name, state) in stored(hub, &ours).await? {
        match state {
            Stored::Current => {}
            Stored::Missing => missing.push(name),
            Stored::Differs | Stored::Newer => different.push(name),
        }
    }
    Ok(Hub {
        kubernetes: info.git_version,
        missing_definitions: missing,
        different_definitions: different,
    })
}

fn definition(crd: &CustomResourceDefinition) -> Definition {
    let versions = &crd.spec.versions;
    let served = versions.iter().filter(|version| version.served);
    let stored = versions.iter().find(|version| version.storage);
    Definition {
        name: crd.metadata.name.clone().unwrap_or_default(),
        served: served.map(|version| version.name.clone()).collect(),
        stored: stored.map(|version| version.name.clone()).unwrap_or_default(),
    }
}

fn text(versions: &Versions, out: &mut (dyn Write + Send)) -> Result<()> {
    writeln!(out, "entourage {} {}", versions.version, versions.platform)?;
    if let Some(hub) = &versions.hub {
        writeln!(out, "hub: Kubernetes {}", crate::plain::plain(&hub.kubernetes))?;
        let total = versions.definitions.len();
        let current = total - hub.missing_definitions.len() - hub.different_definitions.len();
        writeln!(
            out,
            "hub: {current}/{total} definitions are those of this version"
        )?;
        for (what, names) in [
            ("missing", &hub.missing_definitions),
            ("different", &hub.different_definitions),
        ] {
            for name in names {
                writeln!(out, "hub: {name} {what}")?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock::Server;

    async fn printed(output: Option<Format>) -> String {
        let mut out = Vec::new();
        let args = VersionArgs {
            hub: HubArgs::default(),
            output,
        };
        run(args, &mut out).await.unwrap();
        String::from_utf8(out).unwrap()
    }

    #[tokio::test]
    async fn it_names_the_version_and_every_definition() {
        let line = printed(None).await;
        assert!(
            line.starts_with(concat!("entourage ", env!("CARGO_PKG_VERSION"), " ")),
            "{line}"
        );
        let json: serde_json::Value = serde_json::from_str(&printed(Some(Format::Json)).await).unwrap();
        assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
        let definitions = json["definitions"].as_array().unwrap();
        assert_eq!(definitions.len(), crds(None).len());
        let binding = definitions
            .iter()
            .find(|each| each["name"] == "resourcebindings.work.karmada.io");
        assert_eq!(binding.unwrap()["stored"], "v1alpha2");
        assert!(json.get("hub").is_none(), "no hub was asked");
    }

    #[tokio::test]
    async fn definitions_of_the_hub_are_compared() {
        let server = Server::new("hub");
        server.put(
            "/version",
            serde_json::json!({"major": "1", "minor": "36", "gitVersion": "v1.36.2", "gitCommit": "",
                "gitTreeState": "", "buildDate": "", "goVersion": "", "compiler": "", "platform": ""}),
        );
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let mut all = crds(None);
        let left_out = all.pop().unwrap().metadata.name.unwrap();
        all[0].spec.versions[0].served = false;
        let changed = all[0].metadata.name.clone().unwrap();
        for crd in &all {
            let name = crd.metadata.name.as_deref().unwrap();
            server.put(&format!("{path}/{name}"), serde_json::to_value(crd).unwrap());
        }
        let hub = of_hub(&server.client()).await.unwrap();
        assert_eq!(hub.kubernetes, "v1.36.2");
        assert_eq!(hub.missing_definitions, [left_out]);
        assert_eq!(hub.different_definitions, [changed]);
    }
}

//! The files of -f: customizations, webhooks, and definitions, which have the names of kinds.

use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};
use entourage_api::config::{
    ResourceExploringWebhookConfiguration, ResourceInterpreterCustomization,
    ResourceInterpreterWebhookConfiguration,
};
use entourage_core::{
    interpreter::{
        hook::{Contract, Hook},
        native,
    },
    object::Gvk,
};
use kube::{api::ApiResource, core::GroupVersionKind};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::reach::{HookUrl, Reach};
use crate::{
    kinds,
    manifests::{self, Manifest},
};

/// The content of -f.
#[derive(Default)]
pub(super) struct Given {
    pub(super) customizations: Vec<Read<ResourceInterpreterCustomization>>,
    pub(super) configurations: Vec<Read<Configuration>>,
    /// CustomResourceDefinitions.
    definitions: Vec<Value>,
    /// The hosts of Services that --hook-url names.
    pub(super) reach: Reach,
}

/// An object and its file.
pub(super) struct Read<T> {
    pub(super) origin: String,
    pub(super) object: T,
}

/// A configuration of webhooks, of either contract.
pub(super) struct Configuration {
    pub(super) contract: Contract,
    pub(super) hooks: Vec<Hook>,
    /// As written; contains no Secret.
    pub(super) value: Value,
}

impl Given {
    /// Reads the files; webhooks have the addresses in `urls`.
    ///
    /// # Errors
    /// The file that cannot be read, or contains an object of another kind; the URL that matches no webhook.
    pub(super) fn read(paths: &[PathBuf], urls: &[HookUrl]) -> Result<Self> {
        let mut given = Self::default();
        let manifests = if paths.is_empty() {
            Vec::new()
        } else {
            manifests::read(paths)?
        };
        for manifest in &manifests {
            given.take(manifest, urls)?;
        }
        let names: Vec<&str> = given.hooks().map(Hook::name).collect();
        if let Some(url) = urls.iter().find(|url| !names.contains(&&*url.hook)) {
            bail!(
                "--hook-url: the files hold no hook {}; {}",
                url.hook,
                match names.as_slice() {
                    [] => "give its configuration with -f".to_owned(),
                    names => format!("they hold {}", names.join(", ")),
                }
            );
        }
        Ok(given)
    }

    fn take(&mut self, manifest: &Manifest, urls: &[HookUrl]) -> Result<()> {
        let mut value = manifest.value()?;
        let origin = manifest.origin().to_owned();
        let contract = match value["kind"].as_str().unwrap_or_default() {
            "ResourceInterpreterCustomization" => {
                let object = typed(manifest, value)?;
                self.customizations.push(Read { origin, object });
                return Ok(());
            }
            "CustomResourceDefinition" => {
                self.definitions.push(value);
                return Ok(());
            }
            "ResourceInterpreterWebhookConfiguration" => Contract::Interpreter,
            "ResourceExploringWebhookConfiguration" => Contract::Explorer,
            _ => bail!(
                "{origin}: {manifest} is not a ResourceInterpreterCustomization, a configuration of hooks or a \
                 CustomResourceDefinition; give objects with --desired-file or --observed-file"
            ),
        };
        for url in urls {
            self.reach.lead(&mut value, url)?;
        }
        let hooks = match contract {
            Contract::Interpreter => Hook::interpreters(&typed::<ResourceInterpreterWebhookConfiguration>(
                manifest,
                value.clone(),
            )?),
            Contract::Explorer => Hook::explorers(&typed::<ResourceExploringWebhookConfiguration>(
                manifest,
                value.clone(),
            )?),
        };
        let object = Configuration {
            contract,
            hooks,
            value,
        };
        self.configurations.push(Read { origin, object });
        Ok(())
    }

    /// The customizations, for the core.
    pub(super) fn customizations(&self) -> Vec<ResourceInterpreterCustomization> {
        let all = self.customizations.iter();
        all.map(|each| each.object.clone()).collect()
    }

    /// All webhooks.
    pub(super) fn hooks(&self) -> impl Iterator<Item = &Hook> {
        self.configurations.iter().flat_map(|each| &each.object.hooks)
    }

    /// The plural name of an object's kind, and true if the kind is namespaced. They are those of a definition among the files;
    /// otherwise the plural is derived from the kind, and an unknown kind has the scope of the object.
    pub(super) fn place(&self, gvk: &Gvk, object: &Value) -> (String, bool) {
        let defines = |definition: &&Value| {
            let spec = &definition["spec"];
            spec["group"] == *gvk.group && spec["names"]["kind"] == *gvk.kind
        };
        if let Some(definition) = self.definitions.iter().find(defines) {
            let plural = definition["spec"]["names"]["plural"].as_str();
            return (
                plural.unwrap_or_default().to_owned(),
                definition["spec"]["scope"] != "Cluster",
            );
        }
        let kind = GroupVersionKind::gvk(&gvk.group, &gvk.version, &gvk.kind);
        let lies = object["metadata"]["namespace"]
            .as_str()
            .is_some_and(|namespace| !namespace.is_empty());
        let is_known = native(&gvk.group, &gvk.version, &gvk.kind).is_some();
        let may_lie = kinds::is_namespaced(gvk, &Default::default());
        (ApiResource::from_gvk(&kind).plural, may_lie && (lies || is_known))
    }
}

fn typed<T: DeserializeOwned>(manifest: &Manifest, value: Value) -> Result<T> {
    serde_json::from_value(value).map_err(|error| {
        let (origin, why) = (manifest.origin(), manifests::misfit(&error));
        anyhow!("{origin}: {manifest} cannot be read: {why}; compare it with what `entourage crds` prints")
    })
}

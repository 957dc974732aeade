//! The parts of a hub: the manifests of `config/` for each, as they are in this binary.

use anyhow::Result;
use clap::ValueEnum;
use serde_json::Value;

use crate::manifests::documents;

/// A part that is set up on a hub besides the definitions and the namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Part {
    /// Account and rights of the controllers
    Controllers,
    /// Account and rights of the webhook
    Webhook,
    /// Account and rights of the proxy
    Proxy,
    /// Rights to distribute ConfigMaps and Secrets into namespaces
    Distribution,
    /// Rights to approve the certificates of agents
    Registration,
    /// Rights to sign cluster-info with the bootstrap tokens
    Discovery,
    /// Rights to collect endpoints of exported Services and make Services of ServiceImports
    Services,
    /// Rights to propagate Secrets
    Secrets,
    /// Rights to propagate APIServices
    Apiservices,
    /// Rights to propagate ClusterRoles and ClusterRoleBindings
    Clusterroles,
    /// Rights to propagate CustomResourceDefinitions
    Customresourcedefinitions,
    /// Rights to propagate MutatingWebhookConfigurations
    Mutatingwebhookconfigurations,
    /// Rights to propagate PersistentVolumes
    Persistentvolumes,
    /// Rights to propagate ResourceDistributions
    Resourcedistributions,
    /// Rights to propagate ResourceQuotas
    Resourcequotas,
    /// Rights to propagate ValidatingWebhookConfigurations
    Validatingwebhookconfigurations,
}

/// The parts without which a hub is set up only on request: those of `config/default/hub`.
pub const DEFAULT: [Part; 3] = [Part::Controllers, Part::Secrets, Part::Webhook];

/// A folder of `config/`, and its files in this binary.
struct Folder {
    /// The folder, below `config/`.
    path: &'static str,
    /// The content of its files.
    files: &'static [&'static str],
}

macro_rules! folder {
    ($path:literal: $($file:literal),+) => {
        Folder {
            path: $path,
            files: &[$(include_str!(concat!("../../../../../config/", $path, "/", $file))),+],
        }
    };
}

/// The namespaces, which every hub has.
const NAMESPACES: Folder = folder!("namespaces": "namespaces.yaml");

impl Part {
    fn folder(self) -> Folder {
        match self {
            Self::Controllers => folder!("rbac": "service_account.yaml", "role.yaml", "role_binding.yaml"),
            Self::Webhook => folder!("webhook/hub": "service_account.yaml", "role.yaml", "role_binding.yaml"),
            Self::Proxy => folder!("proxy": "service_account.yaml", "role.yaml", "role_binding.yaml"),
            Self::Distribution => folder!("rbac-distribution": "role.yaml", "role_binding.yaml"),
            Self::Registration => folder!("rbac-registration": "role.yaml", "role_binding.yaml"),
            Self::Discovery => folder!("rbac-discovery": "role.yaml", "role_binding.yaml"),
            Self::Services => folder!("rbac-services": "role.yaml", "role_binding.yaml"),
            Self::Secrets => folder!("rbac-kinds/secrets": "role.yaml", "role_binding.yaml"),
            Self::Apiservices => folder!("rbac-kinds/apiservices": "role.yaml", "role_binding.yaml"),
            Self::Clusterroles => folder!("rbac-kinds/clusterroles": "role.yaml", "role_binding.yaml"),
            Self::Customresourcedefinitions => {
                folder!("rbac-kinds/customresourcedefinitions": "role.yaml", "role_binding.yaml")
            }
            Self::Mutatingwebhookconfigurations => {
                folder!("rbac-kinds/mutatingwebhookconfigurations": "role.yaml", "role_binding.yaml")
            }
            Self::Persistentvolumes => {
                folder!("rbac-kinds/persistentvolumes": "role.yaml", "role_binding.yaml")
            }
            Self::Resourcedistributions => {
                folder!("rbac-kinds/resourcedistributions": "role.yaml", "role_binding.yaml")
            }
            Self::Resourcequotas => folder!("rbac-kinds/resourcequotas": "role.yaml", "role_binding.yaml"),
            Self::Validatingwebhookconfigurations => {
                folder!("rbac-kinds/validatingwebhookconfigurations": "role.yaml", "role_binding.yaml")
            }
        }
    }
}

/// The namespaces of a hub.
///
/// # Errors
/// Never for the files in this binary, which a test reads.
pub fn namespaces() -> Result<Vec<Value>> {
    of(&NAMESPACES)
}

/// The objects of these parts, each once.
///
/// # Errors
/// Never for the files in this binary, which a test reads.
pub fn objects(parts: &[Part]) -> Result<Vec<Value>> {
    let mut parts = parts.to_vec();
    parts.sort();
    parts.dedup();
    let mut all = Vec::new();
    for part in parts {
        all.extend(of(&part.folder())?);
    }
    Ok(all)
}

fn of(folder: &Folder) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for text in folder.files {
        let documents = documents(text, folder.path)?;
        all.extend(documents.into_iter().filter(|document| !document.is_null()));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, path::Path};

    use super::*;
    use crate::command::init::object::kind_of;

    fn config() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config")
    }

    #[test]
    fn a_part_has_every_file_of_its_folder() {
        let all = Part::value_variants().iter().map(|part| part.folder());
        for folder in all.chain([NAMESPACES]) {
            let mut files = BTreeSet::new();
            for entry in std::fs::read_dir(config().join(folder.path)).unwrap() {
                let path = entry.unwrap().path();
                if path.is_file() && path.file_name().unwrap() != "kustomization.yaml" {
                    let text = std::fs::read_to_string(&path).unwrap();
                    // The Deployment of the proxy is for the host.
                    if !text.contains("kind: Deployment") && !text.contains("kind: Service\n") {
                        files.insert(text);
                    }
                }
            }
            let ours: BTreeSet<String> = folder.files.iter().map(|file| (*file).to_owned()).collect();
            assert_eq!(ours, files, "{}", folder.path);
        }
    }

    #[test]
    fn every_folder_of_rights_is_a_part() {
        let parts: BTreeSet<_> = Part::value_variants()
            .iter()
            .map(|part| part.folder().path)
            .collect();
        for (folder, below) in [("", ""), ("rbac-kinds", "rbac-kinds/")] {
            for entry in std::fs::read_dir(config().join(folder)).unwrap() {
                let path = format!("{below}{}", entry.unwrap().file_name().to_str().unwrap());
                let is_of_rights = path.starts_with("rbac") && path != "rbac-kinds";
                assert!(
                    !is_of_rights || parts.contains(path.as_str()),
                    "add {path} to Part"
                );
            }
        }
    }

    #[test]
    fn every_object_is_of_a_kind_that_is_known_and_there_once() {
        let mut all = namespaces().unwrap();
        all.extend(objects(Part::value_variants()).unwrap());
        let mut seen = BTreeSet::new();
        for object in &all {
            let kind = kind_of(object).unwrap();
            let metadata = &object["metadata"];
            assert_eq!(kind.namespaced, metadata["namespace"].is_string(), "{object}");
            let key = format!("{} {} {}", kind.kind, metadata["namespace"], metadata["name"]);
            assert!(seen.insert(key.clone()), "{key} twice");
        }
        let twice = objects(&[Part::Secrets, Part::Secrets]).unwrap();
        assert_eq!(twice.len(), objects(&[Part::Secrets]).unwrap().len());
    }
}

//! What a fleet leaves on disk: kubeconfigs always; tokens, ports and stores when it is kept.

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use entourage_apiserver::listener::Authority;
use serde::{Deserialize, Serialize};

use super::Machine;

/// What is remembered of a fleet from one run to the next.
#[derive(Debug, Default, Deserialize, Serialize)]
struct Memory {
    /// How many members it has: another number is another fleet.
    members: usize,
    clusters: BTreeMap<String, Remembered>,
}

#[derive(Debug, Deserialize, Serialize)]
struct Remembered {
    token: String,
    port: u16,
}

/// A fleet's directory.
pub(super) struct Kept {
    dir: PathBuf,
    /// Whether objects are kept, too.
    kept: bool,
    memory: Memory,
}

impl Kept {
    /// Makes the directory, or reads what an earlier run left in it.
    pub(super) fn open(dir: &Path, kept: bool, members: usize) -> Result<Self> {
        fs::create_dir_all(dir).with_context(|| format!("cannot make the directory {}", dir.display()))?;
        let file = dir.join("fleet.json");
        let mut memory = Memory {
            members,
            ..Memory::default()
        };
        if kept && file.exists() {
            let text =
                fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
            memory = serde_json::from_str(&text).with_context(|| {
                format!(
                    "{} is damaged; move the directory away to begin anew",
                    file.display()
                )
            })?;
            if memory.members > members {
                bail!(
                    "{} holds a hub with {} members; pass --members {} or more",
                    dir.display(),
                    memory.members,
                    memory.members
                );
            }
            memory.members = members;
        }
        Ok(Self {
            dir: dir.to_owned(),
            kept,
            memory,
        })
    }

    /// A certificate authority: a fresh one each time, and the kubeconfigs are written with it.
    pub(super) fn authority(&self) -> Result<Authority> {
        Authority::new().map_err(|error| anyhow::anyhow!("cannot make a certificate: {error}"))
    }

    /// The admin's token of a cluster.
    pub(super) fn token(&self, name: &str) -> String {
        match self.memory.clusters.get(name) {
            Some(remembered) => remembered.token.clone(),
            None => {
                let random = entourage_apiserver::cluster::random();
                random.iter().map(|byte| format!("{byte:02x}")).collect()
            }
        }
    }

    /// The port of the last run, 0 for any.
    pub(super) fn port(&self, name: &str) -> u16 {
        self.memory
            .clusters
            .get(name)
            .map_or(0, |remembered| remembered.port)
    }

    /// The file that holds a cluster's objects; `None`: nothing is kept.
    pub(super) fn store(&self, name: &str) -> Option<PathBuf> {
        self.kept.then(|| self.dir.join(format!("{name}.store")))
    }

    /// Remembers a fleet for the next run.
    pub(super) fn remember<'a>(
        &self,
        members: usize,
        machines: impl Iterator<Item = &'a Machine>,
    ) -> Result<()> {
        if !self.kept {
            return Ok(());
        }
        let clusters = machines.map(|machine| {
            let remembered = Remembered {
                token: machine.token.clone(),
                port: machine.address.port(),
            };
            (machine.name.clone(), remembered)
        });
        let memory = Memory {
            members,
            clusters: clusters.collect(),
        };
        private(
            &self.dir.join("fleet.json"),
            &serde_json::to_string_pretty(&memory)?,
        )
    }
}

/// Writes a file that only its owner may read: it holds a token. Replaces it as a whole.
pub(super) fn private(path: &Path, text: &str) -> Result<()> {
    let next = path.with_extension("new");
    let written = (|| {
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&next)?;
        file.write_all(text.as_bytes())?;
        fs::rename(&next, path)
    })();
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// A kubeconfig with a context for each machine; the first is the current one.
pub(super) fn kubeconfig<'a>(
    authority: &str,
    machines: impl Iterator<Item = &'a Machine> + Clone,
) -> Result<String> {
    // ByteString serialises to base64, which is what the field holds.
    let authority = serde_json::to_value(k8s_openapi::ByteString(authority.as_bytes().to_vec()))?;
    let current = machines
        .clone()
        .next()
        .map(|machine| machine.name.clone())
        .unwrap_or_default();
    let clusters: Vec<_> = machines
        .clone()
        .map(|machine| {
            serde_json::json!({"name": machine.name, "cluster": {
                "server": machine.endpoint(), "certificate-authority-data": authority}})
        })
        .collect();
    let users: Vec<_> = machines
        .clone()
        .map(|machine| serde_json::json!({"name": machine.name, "user": {"token": machine.token}}))
        .collect();
    let contexts: Vec<_> = machines
        .map(|machine| {
            serde_json::json!({"name": machine.name, "context": {"cluster": machine.name, "user": machine.name}})
        })
        .collect();
    let config = serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": current,
        "clusters": clusters, "users": users, "contexts": contexts,
    });
    Ok(serde_saphyr::to_string(&config)?)
}

//! The files of a fleet on disk: kubeconfigs; for a kept fleet also credentials, ports and stores.

use std::{
    collections::BTreeMap,
    fmt, fs,
    io::Write as _,
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, Result, bail};
use entourage_apiserver::listener::Authority;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use super::{Machine, Place};

/// The token of a cluster's admin, or a private key.
#[derive(Clone, Deserialize, Serialize)]
#[serde(transparent)]
pub(super) struct Token(String);

impl Token {
    fn fresh() -> Self {
        let random = entourage_apiserver::random();
        Self(random.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The value, for authentication.
    pub(super) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// A fleet's directory; a temporary one is deleted with its last owner.
#[derive(Clone, Debug)]
pub(super) enum Directory {
    Temporary(Arc<TempDir>),
    Kept(PathBuf),
}

impl Directory {
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Temporary(dir) => dir.path(),
            Self::Kept(dir) => dir,
        }
    }
}

/// The mode of a directory with credentials.
const PRIVATE: u32 = 0o700;

/// The data that a fleet keeps from one run to the next.
#[derive(Debug, Default, Deserialize, Serialize)]
struct Memory {
    /// The number of its members: another number is another fleet.
    members: usize,
    authority: Option<KeptAuthority>,
    clusters: BTreeMap<String, StoredCluster>,
}

#[derive(Debug, Deserialize, Serialize)]
struct KeptAuthority {
    certificate: String,
    key: Token,
}

#[derive(Debug, Deserialize, Serialize)]
struct StoredCluster {
    token: Token,
    port: u16,
}

/// The directory of a fleet, and the data of the last run in it.
pub(super) struct Kept {
    dir: Option<Directory>,
    memory: Memory,
}

impl Kept {
    /// Creates the directory, or reads the data of an earlier run in it.
    pub(super) fn open(place: &Place, members: usize) -> Result<Self> {
        let mut memory = Memory {
            members,
            ..Memory::default()
        };
        let dir = match place {
            Place::Nowhere => None,
            Place::Temporary(prefix) => {
                let mode = fs::Permissions::from_mode(PRIVATE);
                let made = tempfile::Builder::new()
                    .prefix(prefix)
                    .permissions(mode)
                    .tempdir();
                let made = made.with_context(|| {
                    format!(
                        "cannot make a directory in {}; set TMPDIR to one that can be written",
                        std::env::temp_dir().display()
                    )
                })?;
                Some(Directory::Temporary(Arc::new(made)))
            }
            Place::Kept(dir) => {
                let made = fs::DirBuilder::new().recursive(true).mode(PRIVATE).create(dir);
                made.with_context(|| {
                    format!(
                        "cannot make the directory {}; choose another --data-dir",
                        dir.display()
                    )
                })?;
                let dir = std::path::absolute(dir)?;
                memory = stored(&dir, members)?;
                Some(Directory::Kept(dir))
            }
        };
        Ok(Self { dir, memory })
    }

    /// The directory for kubeconfigs.
    pub(super) fn directory(&self) -> Option<Directory> {
        self.dir.clone()
    }

    fn kept(&self) -> Option<&Path> {
        match &self.dir {
            Some(Directory::Kept(dir)) => Some(dir),
            _ => None,
        }
    }

    /// The certificate authority of the last run, or a new one.
    pub(super) fn authority(&self) -> Result<Authority> {
        let made = match &self.memory.authority {
            Some(kept) => Authority::restored(&kept.certificate, &kept.key.0),
            None => Authority::new(),
        };
        made.map_err(|error| anyhow::anyhow!("cannot make a certificate: {error}"))
    }

    /// The admin's token of a cluster.
    pub(super) fn token(&self, name: &str) -> Token {
        let stored = self.memory.clusters.get(name);
        stored.map_or_else(Token::fresh, |stored| stored.token.clone())
    }

    /// The port of the last run, 0 for any.
    pub(super) fn port(&self, name: &str) -> u16 {
        self.memory.clusters.get(name).map_or(0, |stored| stored.port)
    }

    /// The file with a cluster's objects; `None`: nothing is kept.
    pub(super) fn store(&self, name: &str) -> Option<PathBuf> {
        self.kept().map(|dir| dir.join(format!("{name}.store")))
    }

    /// Stores a fleet for the next run.
    pub(super) fn remember<'a>(
        &self,
        members: usize,
        authority: &Authority,
        machines: impl Iterator<Item = &'a Machine>,
    ) -> Result<()> {
        let Some(dir) = self.kept() else {
            return Ok(());
        };
        let clusters = machines.map(|machine| {
            let stored = StoredCluster {
                token: machine.token.clone(),
                port: machine.address.port(),
            };
            (machine.name.clone(), stored)
        });
        let memory = Memory {
            members,
            authority: Some(KeptAuthority {
                certificate: authority.certificate.clone(),
                key: Token(authority.key()),
            }),
            clusters: clusters.collect(),
        };
        private(&dir.join(MEMORY), &serde_json::to_string_pretty(&memory)?)
    }
}

/// The file in a kept fleet's directory.
const MEMORY: &str = "fleet.json";

fn stored(dir: &Path, members: usize) -> Result<Memory> {
    let file = dir.join(MEMORY);
    let fresh = Memory {
        members,
        ..Memory::default()
    };
    if !file.exists() {
        return Ok(fresh);
    }
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    // The cause is left out: it may quote a token.
    let Ok(memory) = serde_json::from_str::<Memory>(&text) else {
        bail!(
            "{} is damaged; move the directory away to start again",
            file.display()
        );
    };
    if memory.members > members {
        bail!(
            "{} holds a hub with {} members; pass --members {} or more",
            dir.display(),
            memory.members,
            memory.members
        );
    }
    Ok(Memory { members, ..memory })
}

/// Writes a file that only its owner may read: it contains a token. Replaces it atomically.
pub(super) fn private(path: &Path, text: &str) -> Result<()> {
    let dir = path.parent().context("a file lies in a directory")?;
    let written = (|| {
        // With a name of its own and mode 0600.
        let mut file = tempfile::NamedTempFile::new_in(dir)?;
        file.write_all(text.as_bytes())?;
        file.persist(path).map_err(|error| error.error)
    })();
    written
        .map(drop)
        .with_context(|| format!("cannot write {}", path.display()))
}

/// A kubeconfig with a context for each machine; the first is the current one.
pub(super) fn kubeconfig<'a>(
    authority: &str,
    machines: impl Iterator<Item = &'a Machine> + Clone,
) -> Result<String> {
    // ByteString serialises to base64, which the field requires.
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
        .map(|machine| serde_json::json!({"name": machine.name, "user": {"token": machine.token.expose()}}))
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

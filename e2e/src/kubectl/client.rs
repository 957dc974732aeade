//! The kubectl that the scripts run, and its release.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::servers::Version;

/// Names the kubectl to use.
const VARIABLE: &str = "ENTOURAGE_KUBECTL";

/// A kubectl.
#[derive(Clone, Debug)]
pub struct Client {
    /// Its binary.
    pub path: PathBuf,
    /// Its release.
    pub version: Version,
}

impl Client {
    /// The kubectl of this machine, looked for once: `ENTOURAGE_KUBECTL`, else `kubectl` on `PATH`, else the one in the
    /// directory of `KUBEBUILDER_ASSETS`. Without any, the sentence says what to do.
    ///
    /// # Errors
    /// When there is one that does not run.
    pub fn find() -> Result<Result<&'static Self, &'static str>> {
        static FOUND: OnceLock<Result<Option<Client>, String>> = OnceLock::new();
        let found = FOUND.get_or_init(|| look().map_err(|error| format!("{error:#}")));
        match found {
            Ok(Some(client)) => Ok(Ok(client)),
            Ok(None) => Ok(Err(
                "none is on PATH, and neither ENTOURAGE_KUBECTL nor KUBEBUILDER_ASSETS names one",
            )),
            Err(error) => Err(anyhow::anyhow!("{error}")),
        }
    }

    /// The kubectl at that path.
    ///
    /// # Errors
    /// When it does not run or does not say its version.
    pub fn at(path: &Path) -> Result<Self> {
        let version = version(path)?;
        // A dispatcher runs another kubectl for each release of a server. One of its own release lies beside it: both
        // lanes are to be asked by the same.
        let real = path.canonicalize()?;
        let beside = real.with_file_name(format!("kubectl.{}.{}", version.major, version.minor));
        let path = if beside.is_file() { beside } else { real };
        Ok(Self { path, version })
    }
}

fn look() -> Result<Option<Client>> {
    let named = env::var_os(VARIABLE).filter(|path| !path.is_empty());
    let path = match named {
        Some(path) => {
            let path = PathBuf::from(path);
            ensure!(path.is_file(), "{VARIABLE}={} is no file", path.display());
            Some(path)
        }
        None => {
            let dirs = env::var_os("PATH").map(|path| env::split_paths(&path).collect::<Vec<_>>());
            let assets = env::var_os("KUBEBUILDER_ASSETS").filter(|path| !path.is_empty());
            let mut dirs = dirs.into_iter().flatten().chain(assets.map(PathBuf::from));
            dirs.find_map(|dir| Some(dir.join("kubectl")).filter(|path| path.is_file()))
        }
    };
    path.map(|path| Client::at(&path)).transpose()
}

fn version(path: &Path) -> Result<Version> {
    let run = Command::new(path)
        .args(["version", "--client", "-o", "json"])
        .env("HOME", env::temp_dir())
        .output()
        .with_context(|| format!("running {}", path.display()))?;
    let reported: Value = serde_json::from_slice(&run.stdout).with_context(|| {
        let stderr = String::from_utf8_lossy(&run.stderr);
        format!("{} version: {stderr}", path.display())
    })?;
    let version = reported["clientVersion"]["gitVersion"]
        .as_str()
        .context("no gitVersion")?;
    version.parse()
}

//! `entourage kustomize-generator`: generates a ResourceDistribution from literals and files: as a function of kustomize, from
//! a configuration in a file, or from flags.
//!
//! The input of kustomize may be of another author: a configuration may only read files below the current directory. Flags are
//! the user's own, and may read all files of the user.

use std::{
    collections::BTreeMap,
    io::{IsTerminal as _, Read as _, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, anyhow, bail};
use clap::{ArgGroup, Args};
use entourage_core::distribution::generator::{self, API_VERSIONS, KIND, Loaded, Wrong};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Map, Value, json};

use crate::manifests;

mod files;
#[cfg(test)]
mod golden;

/// The versions of a ResourceList that kustomize has sent; a response has the version of its request.
const LIST_VERSIONS: [&str; 3] = [
    "config.kubernetes.io/v1",
    "config.kubernetes.io/v1beta1",
    "config.kubernetes.io/v1alpha1",
];

/// The flags of the fields of the configuration, the longer ones first.
const FLAGS: [(&str, &str); 8] = [
    ("targets.includedNamespaces", "--namespace"),
    ("targets.excludedNamespaces", "--exclude-namespace"),
    ("resource.resourceName", "--resource-name"),
    ("resource.resourceKind", "--kind"),
    ("resource.literals", "--from-literal"),
    ("resource.files", "--from-file"),
    ("resource.envs", "--from-env-file"),
    ("metadata.name", "--name"),
];

/// Flags of `entourage kustomize-generator`.
#[derive(Args, Clone, Debug)]
#[command(group = ArgGroup::new("targets").multiple(true))]
pub struct KustomizeGeneratorArgs {
    /// A file with a ResourceDistributionGenerator (default, without flags: a ResourceList from standard input)
    #[arg(value_name = "FILE", conflicts_with = "name")]
    pub config: Option<PathBuf>,

    /// Name of the ResourceDistribution; the other flags then replace the file
    #[arg(long, value_name = "NAME", requires_all = ["kind", "resource_name", "targets"])]
    pub name: Option<String>,

    /// Kind of the distributed object
    #[arg(long, value_name = "KIND", requires = "name", value_parser = ["ConfigMap", "Secret"])]
    pub kind: Option<String>,

    /// Name of the ConfigMap or Secret in every namespace
    #[arg(long, value_name = "NAME", requires = "name")]
    pub resource_name: Option<String>,

    /// A key and its value; may be given several times
    // Debug must not print it, and neither must an error: a value that begins with a dash would be reported as an unknown flag.
    #[arg(long, value_name = "KEY=VALUE", requires = "name", allow_hyphen_values = true)]
    pub from_literal: Vec<SecretString>,

    /// A file whose content becomes the value of a key, by default its own name; may be given several times
    #[arg(long, value_name = "[KEY=]PATH", requires = "name")]
    pub from_file: Vec<String>,

    /// A file of lines KEY=VALUE; may be given several times
    #[arg(long, value_name = "PATH", requires = "name")]
    pub from_env_file: Vec<String>,

    /// Type of the Secret (default: Opaque)
    #[arg(long = "type", value_name = "TYPE", requires = "name")]
    pub secret_type: Option<String>,

    /// Distribute to every namespace
    #[arg(long, requires = "name", group = "targets")]
    pub all_namespaces: bool,

    /// Distribute to these namespaces
    #[arg(long, value_name = "NAMESPACE", num_args = 1.., requires = "name", group = "targets")]
    pub namespace: Vec<String>,

    /// Exclude these namespaces in any case
    #[arg(long, value_name = "NAMESPACE", num_args = 1.., requires = "name", group = "targets")]
    pub exclude_namespace: Vec<String>,
}

/// Runs the command; YAML goes to `out`.
///
/// # Errors
/// All errors in the input, without any content of it. A ResourceList has a response all the same, with the errors as its
/// `results`.
pub async fn run(args: KustomizeGeneratorArgs, out: &mut (dyn Write + Send)) -> Result<()> {
    let here = std::env::current_dir().context("cannot determine the current directory")?;
    let around = Surroundings {
        here: &here,
        environment: std::env::vars_os()
            .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_encoded_bytes())))
            .collect(),
    };
    if let Some(name) = &args.name {
        return of_flags(&args, name, &around, out);
    }
    if let Some(file) = &args.config {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        return of_config(&text, &file.display().to_string(), &around, out);
    }
    let mut stdin = std::io::stdin();
    if stdin.is_terminal() {
        bail!(
            "give a file with a {KIND}, a ResourceList on standard input as kustomize does, or flags: see --help"
        );
    }
    let mut text = String::new();
    stdin
        .read_to_string(&mut text)
        .context("cannot read standard input")?;
    of_list(&text, &around, out)
}

/// The inputs of a configuration besides itself.
struct Surroundings<'a> {
    /// The current directory.
    here: &'a Path,
    /// For keys without a value in env files.
    environment: BTreeMap<String, Vec<u8>>,
}

/// The files that may be read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// The files below the current directory.
    Below,
    /// All that the user may read.
    Anywhere,
}

/// The interface of kustomize's functions: a ResourceList in, a ResourceList out.
fn of_list(text: &str, around: &Surroundings<'_>, out: &mut dyn Write) -> Result<()> {
    let (list, made) = match one_document(text, "standard input") {
        Ok(list) => {
            let made = function_config(&list).and_then(|config| made(config, around, Reach::Below));
            (list, made)
        }
        Err(error) => (Value::Null, Err(wrong(error.to_string()))),
    };
    let version = list["apiVersion"].as_str().unwrap_or_default();
    let version = LIST_VERSIONS.into_iter().find(|known| *known == version);
    let version = version.unwrap_or(LIST_VERSIONS[0]);
    let mut answer = json!({"apiVersion": version, "kind": "ResourceList", "items": []});
    let ended = match made {
        Ok(object) => {
            answer["items"] = json!([object]);
            Ok(())
        }
        Err(wrongs) => {
            answer["results"] = results(&list["functionConfig"], &wrongs);
            Err(report(&wrongs))
        }
    };
    print(&answer, out)?;
    ended
}

/// The configuration in a ResourceList.
fn function_config(list: &Value) -> Result<&Value, Vec<Wrong>> {
    let is_version = |version: &str| LIST_VERSIONS.contains(&version);
    if list["kind"] != "ResourceList" || !list["apiVersion"].as_str().is_some_and(is_version) {
        return Err(wrong(format!(
            "standard input is not a ResourceList of {}; give a {KIND} as a file",
            LIST_VERSIONS[0]
        )));
    }
    if list["functionConfig"].is_null() {
        return Err(wrong(format!(
            "the ResourceList has no functionConfig; list the {KIND} under generators of the kustomization"
        )));
    }
    Ok(&list["functionConfig"])
}

/// The interface of kustomize's older plug-ins, and of people: a configuration in a file.
fn of_config(text: &str, origin: &str, around: &Surroundings<'_>, out: &mut dyn Write) -> Result<()> {
    let config = one_document(text, origin)?;
    let object =
        made(&config, around, Reach::Below).map_err(|wrongs| report(&wrongs).context(origin.to_owned()))?;
    print(&object, out)
}

fn of_flags(
    args: &KustomizeGeneratorArgs,
    name: &str,
    around: &Surroundings<'_>,
    out: &mut dyn Write,
) -> Result<()> {
    let literals: Vec<&str> = args
        .from_literal
        .iter()
        .map(SecretString::expose_secret)
        .collect();
    let mut targets = Map::new();
    if args.all_namespaces {
        targets.insert("allNamespaces".into(), true.into());
    }
    for (key, names) in [
        ("includedNamespaces", &args.namespace),
        ("excludedNamespaces", &args.exclude_namespace),
    ] {
        if !names.is_empty() {
            targets.insert(key.into(), names.clone().into());
        }
    }
    let config = json!({
        "apiVersion": API_VERSIONS[0],
        "kind": KIND,
        "metadata": {"name": name},
        "resource": {
            "resourceKind": args.kind,
            "resourceName": args.resource_name,
            "literals": literals,
            "files": args.from_file,
            "envs": args.from_env_file,
            "type": args.secret_type,
        },
        "targets": targets,
    });
    let object = made(&config, around, Reach::Anywhere).map_err(|wrongs| {
        let in_flags = |text: &str| {
            FLAGS
                .iter()
                .fold(text.to_owned(), |text, (field, flag)| text.replace(field, flag))
        };
        let wrongs: Vec<Wrong> = wrongs
            .iter()
            .map(|wrong| Wrong {
                field: in_flags(&wrong.field),
                why: in_flags(&wrong.why),
            })
            .collect();
        report(&wrongs)
    })?;
    print(&object, out)
}

/// The object of a configuration.
fn made(config: &Value, around: &Surroundings<'_>, reach: Reach) -> Result<Value, Vec<Wrong>> {
    let generator = generator::read(config)?;
    let load = |path: &str| (path.to_owned(), files::load(around.here, reach, path));
    let loaded = Loaded {
        files: generator.paths().map(load).collect(),
        environment: around.environment.clone(),
    };
    generator::generate(&generator, &loaded)
}

fn one_document(text: &str, origin: &str) -> Result<Value> {
    let mut documents = manifests::documents(text, origin)?;
    documents.retain(|document| !document.is_null());
    match (documents.pop(), documents.len()) {
        (Some(document), 0) => Ok(document),
        (None, _) => bail!("{origin}: there is nothing in it; it must hold one YAML document"),
        (Some(_), _) => bail!("{origin}: there is more than one YAML document in it"),
    }
}

/// The errors in the form of the specification of functions.
fn results(config: &Value, wrongs: &[Wrong]) -> Value {
    let about = ["apiVersion", "kind"].map(|key| &config[key]);
    let name = &config["metadata"]["name"];
    let of = |wrong: &Wrong| {
        let mut result = json!({"message": wrong.why, "severity": "error"});
        if about.iter().chain([&name]).all(|text| text.is_string()) {
            result["resourceRef"] = json!({"apiVersion": about[0], "kind": about[1], "name": name});
        }
        if !wrong.field.is_empty() {
            result["field"] = json!({"path": wrong.field});
        }
        result
    };
    wrongs.iter().map(of).collect()
}

/// The errors in the form for people.
fn report(wrongs: &[Wrong]) -> anyhow::Error {
    const WHAT: &str = "the ResourceDistribution cannot be made";
    match wrongs {
        [wrong] => anyhow!("{WHAT}: {wrong}"),
        wrongs => {
            let lines: String = wrongs.iter().map(|wrong| format!("\n  {wrong}")).collect();
            anyhow!("{WHAT}:{lines}")
        }
    }
}

fn wrong(why: String) -> Vec<Wrong> {
    vec![Wrong {
        field: String::new(),
        why,
    }]
}

fn print(object: &Value, out: &mut dyn Write) -> Result<()> {
    // Lines are never folded: readers differ in how they join them.
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    // Its own error may quote a value.
    let text = serde_saphyr::to_string_with_options(object, options)
        .map_err(|_| anyhow!("the ResourceDistribution cannot be written as YAML"))?;
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests;

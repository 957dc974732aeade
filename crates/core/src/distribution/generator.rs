//! The output of a ResourceDistributionGenerator: a ResourceDistribution around a ConfigMap or Secret that is built from
//! literals, files and env files.
//!
//! [`read`] checks the configuration and lists the files it needs, the shell loads them, [`generate`] builds the object. Errors
//! name a field or file and never quote its content, which may be a Secret's. Source: ResourceDistribution reference 7.

use std::{collections::BTreeMap, fmt};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};

use crate::selector;
use node::Node;
use sources::Sources;

mod node;
mod sources;
mod targets;

/// The kind of the configuration.
pub const KIND: &str = "ResourceDistributionGenerator";

/// The versions of the configuration. The output is v1alpha1, the one that is served.
pub const API_VERSIONS: [&str; 2] = ["apps.kruise.io/v1alpha1", "apps.kruise.io/v1beta1"];

/// The conflict policies of a distribution for an existing object with the same name that it does not own.
const WRITE_POLICIES: [&str; 3] = ["strict", "overwrite", "ignore"];

/// The type of a Secret that sets none.
const OPAQUE: &str = "Opaque";

/// An error in the configuration or in a loaded file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The field of the configuration, such as `targets.includedNamespaces[1]`; empty for the configuration itself.
    pub field: String,
    /// The cause, and what to do. Quotes no value of the configuration or of a file.
    pub why: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            return f.write_str(&self.why);
        }
        write!(f, "{}: {}", self.field, self.why)
    }
}

/// A valid configuration: the object without its data, and the sources of the data.
pub struct Generator {
    name: String,
    is_secret: bool,
    /// The ConfigMap or Secret without data.
    resource: Map<String, Value>,
    metadata: Value,
    /// The spec without the resource.
    spec: Map<String, Value>,
    sources: Sources,
}

impl Generator {
    /// The files that [`generate`] needs, as the configuration names them.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.sources.paths()
    }
}

impl fmt::Debug for Generator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{KIND} {} (content not shown)", self.name)
    }
}

/// The files that the shell loaded for a [`Generator`]. No Debug: they may be a Secret's content.
#[derive(Default)]
pub struct Loaded {
    /// By [path](Generator::paths): the content, or the error without the path.
    pub files: BTreeMap<String, Result<Vec<u8>, String>>,
    /// The environment, for keys without a value in env files.
    pub environment: BTreeMap<String, Vec<u8>>,
}

/// Checks a configuration.
///
/// # Errors
/// All errors of the configuration.
pub fn read(config: &Value) -> Result<Generator, Vec<Wrong>> {
    let mut wrong = Vec::new();
    let root = Node::root(config);
    root.check_kind(&mut wrong)?;
    // `behavior` and a name suffix belong to kustomize: the original accepts and ignores them.
    let known = [
        "apiVersion",
        "kind",
        "metadata",
        "resource",
        "options",
        "targets",
        "writePolicy",
        "behavior",
    ];
    root.only(&known, &mut wrong);
    let name = root.at("metadata").at("name").name(&mut wrong);
    let metadata = metadata(&name, &root.at("options"), &mut wrong);

    let resource = root.at("resource");
    let known = [
        "resourceKind",
        "resourceName",
        "literals",
        "files",
        "envs",
        "env",
        "type",
        "resourceOptions",
    ];
    resource.only(&known, &mut wrong);
    let kind = resource.at("resourceKind").text(&mut wrong).unwrap_or_default();
    if !["ConfigMap", "Secret"].contains(&kind.as_str()) {
        wrong.push(resource.at("resourceKind").wrong("must be ConfigMap or Secret"));
    }
    let is_secret = kind == "Secret";
    let embedded = embedded(&resource, &kind, &mut wrong);
    let sources = sources::read(&resource, &mut wrong);

    let mut spec = Map::new();
    spec.insert("targets".into(), targets::read(&root.at("targets"), &mut wrong));
    let policy = root.at("writePolicy");
    if policy.is_given() {
        let chosen = policy.text(&mut wrong).unwrap_or_default();
        if !WRITE_POLICIES.contains(&chosen.as_str()) {
            wrong.push(policy.wrong("must be strict, overwrite or ignore"));
        }
        spec.insert("writePolicy".into(), chosen.into());
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    Ok(Generator {
        name,
        is_secret,
        resource: embedded,
        metadata,
        spec,
        sources,
    })
}

/// Builds the ResourceDistribution. Equal inputs give equal objects: keys are sorted, base64 has no line breaks.
///
/// # Errors
/// All errors of the loaded files and of the keys.
pub fn generate(generator: &Generator, loaded: &Loaded) -> Result<Value, Vec<Wrong>> {
    let data = sources::pairs(&generator.sources, loaded)?;
    let mut resource = generator.resource.clone();
    let (mut texts, mut bytes) = (Map::new(), Map::new());
    for (key, value) in data {
        match String::from_utf8(value) {
            Ok(text) if !generator.is_secret => texts.insert(key, text.into()),
            Ok(text) => texts.insert(key, STANDARD.encode(text).into()),
            Err(error) if !generator.is_secret => bytes.insert(key, STANDARD.encode(error.as_bytes()).into()),
            Err(error) => texts.insert(key, STANDARD.encode(error.as_bytes()).into()),
        };
    }
    for (field, values) in [("data", texts), ("binaryData", bytes)] {
        if !values.is_empty() {
            resource.insert(field.into(), values.into());
        }
    }
    let mut spec = generator.spec.clone();
    spec.insert("resource".into(), resource.into());
    Ok(json!({
        "apiVersion": API_VERSIONS[0],
        "kind": "ResourceDistribution",
        "metadata": generator.metadata,
        "spec": spec,
    }))
}

/// The ConfigMap or Secret without data.
fn embedded(resource: &Node<'_>, kind: &str, wrong: &mut Vec<Wrong>) -> Map<String, Value> {
    let name = resource.at("resourceName").name(wrong);
    let options = resource.at("resourceOptions");
    let mut object = Map::new();
    object.insert("apiVersion".into(), "v1".into());
    object.insert("kind".into(), kind.into());
    object.insert("metadata".into(), metadata(&name, &options, wrong));
    if options.at("immutable").flag(wrong) {
        object.insert("immutable".into(), true.into());
    }
    let type_ = resource.at("type").text(wrong).unwrap_or_default();
    // As in the original, a ConfigMap's type is ignored.
    if kind == "Secret" {
        let type_ = if type_.is_empty() { OPAQUE } else { &type_ };
        object.insert("type".into(), type_.into());
    }
    object
}

/// Name, and the labels and annotations of the options.
fn metadata(name: &str, options: &Node<'_>, wrong: &mut Vec<Wrong>) -> Value {
    options.only(
        &["labels", "annotations", "immutable", "disableNameSuffixHash"],
        wrong,
    );
    let mut metadata = Map::new();
    metadata.insert("name".into(), name.into());
    let labels = targets::labels(&options.at("labels"), wrong);
    let annotations = options.at("annotations").entries(wrong);
    let annotations: Map<String, Value> = annotations
        .into_iter()
        .map(|(key, node)| {
            // Servers check the key of an annotation in lower case.
            if let Err(why) = selector::check_key(&key.to_lowercase()) {
                wrong.push(node.wrong(why));
            }
            let value = node.text(wrong).unwrap_or_default();
            (key.to_owned(), value.into())
        })
        .collect();
    for (field, values) in [("labels", labels), ("annotations", annotations)] {
        if !values.is_empty() {
            metadata.insert(field.into(), values.into());
        }
    }
    metadata.into()
}

#[cfg(test)]
mod tests;

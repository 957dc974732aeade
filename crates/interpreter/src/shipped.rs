//! Third-party kinds that are interpreted without configuration: one file of rules per kind, in `shipped/<group>/<Kind>.yaml`.
//!
//! A file names the kind and its versions and has the rules of [`DeclarativeRules`]. Such a kind is watched, and rights on it
//! are needed, only if a policy selects it or an object refers to it, as for any other kind.

mod table;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use entourage_api::config::declarative::DeclarativeRules;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    declarative::{Declared, RuleError},
    gvk::NativeGvk,
    health::Health,
    kind::{NativeKind, Resource},
    operations::Operation,
};
pub use table::FILES;

/// A kind in one of its versions.
#[derive(Clone, Copy, Debug)]
pub struct Shipped {
    gvk: NativeGvk<'static>,
    file: &'static File,
    rules: &'static Declared,
}

/// The content of a file.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct File {
    /// API group.
    pub group: String,
    /// Versions whose objects have the fields that the rules name. The first is the one in common use.
    pub versions: Vec<String>,
    /// Kind.
    pub kind: String,
    /// True if it is cluster-scoped.
    #[serde(default)]
    pub cluster_scoped: bool,
    /// The role of the kind, in one line.
    pub summary: String,
    /// The documentation of the fields.
    pub source: String,
    /// Fields that name objects which are not propagated, with the reason.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
    /// The rules.
    pub rules: DeclarativeRules,
}

/// A field that names an object which is not propagated.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LeftOut {
    /// The field, or fields.
    pub field: String,
    /// The reason.
    pub reason: String,
}

/// All shipped kinds, in each of their versions, in the order of the files.
///
/// The files are parsed once, at the first call. Their content is kept as long as the process.
///
/// # Panics
/// Never: a test reads every file. A file that could not be read would be omitted.
#[must_use]
pub fn all() -> &'static [Shipped] {
    static ALL: LazyLock<Vec<Shipped>> = LazyLock::new(|| {
        let files = FILES.iter().filter_map(|(_, text)| read(text).ok());
        files.flat_map(|(file, rules)| versions(file, rules)).collect()
    });
    &ALL
}

/// Reads a file of rules.
///
/// # Errors
/// When it is no YAML of that shape, or a rule cannot be kept.
fn read(text: &str) -> Result<(File, Declared), String> {
    // By way of a Value: rules of users are read from one, too, so that the code that reads them is there once.
    let value: Value = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    let file = File::deserialize(&value).map_err(|error| error.to_string())?;
    let rules = Declared::compile(&file.rules).map_err(|error: RuleError| error.to_string())?;
    Ok((file, rules))
}

/// Shipped rules live as long as the process, as the code of native kinds does: they are leaked, once.
fn versions(file: File, rules: Declared) -> Vec<Shipped> {
    let (file, rules): (&'static File, &'static Declared) =
        (Box::leak(Box::new(file)), Box::leak(Box::new(rules)));
    let gvk = |version: &'static String| NativeGvk {
        group: &file.group,
        version,
        kind: &file.kind,
    };
    file.versions
        .iter()
        .map(gvk)
        .map(|gvk| Shipped { gvk, file, rules })
        .collect()
}

impl Shipped {
    /// The content of its file.
    #[must_use]
    pub fn file(&self) -> &'static File {
        self.file
    }
}

impl NativeKind for Shipped {
    fn gvk(&self) -> NativeGvk<'static> {
        self.gvk
    }

    fn summary(&self) -> &'static str {
        &self.file.summary
    }

    fn resource(&self) -> Option<Resource> {
        None
    }

    /// None: its rules define them.
    fn operations(&self) -> &'static [Operation] {
        &[]
    }

    fn declared(&self) -> Option<&Declared> {
        Some(self.rules)
    }

    fn reports_status(&self) -> bool {
        true
    }

    /// The pod spec, for a kind with replicas of one pod template.
    fn pod_template_spec<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        let rules = self.rules;
        if rules.has_components() {
            return None;
        }
        match rules.pods(object).as_slice() {
            [pods] => Some(pods.spec),
            _ => None,
        }
    }

    fn replicas(&self, object: &Value) -> Option<i64> {
        self.rules.replicas(object)
    }

    fn revise_replicas(&self, object: &mut Value, replicas: i64) {
        self.rules.revise_replicas(object, replicas);
    }

    fn needs_live(&self, desired: &Value) -> bool {
        self.rules.needs_live(desired)
    }

    fn retain(&self, desired: &mut Value, live: &Value) {
        self.rules.retain(desired, live);
    }

    fn reflect(&self, live: &Value) -> Option<Value> {
        self.rules.reflect(live)
    }

    fn reflects_all(&self) -> bool {
        self.rules.reflects_all()
    }

    fn health(&self, live: &Value) -> Health {
        self.rules.health(live)
    }

    fn aggregate(&self, template: &Value, items: &[(&str, Option<&Value>)]) -> Option<Value> {
        self.rules.aggregate(template, items)
    }
}

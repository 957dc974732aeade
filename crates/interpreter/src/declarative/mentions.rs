//! The references of an object: by its pod templates, by containers outside of them, and by fields of its own.

use std::{borrow::Cow, collections::BTreeSet};

use serde_json::Value;

use super::{
    Declared,
    path::{Found, Path},
};
use crate::{
    gvk::NativeGvk,
    mentions::{DependencyReference, Mentions},
};

/// The positions of pod templates.
#[derive(Clone, Debug)]
pub(super) struct Pods {
    pub(super) paths: Vec<Path>,
    pub(super) name: Option<String>,
    pub(super) name_from: Option<Path>,
    pub(super) replicas: Option<Number>,
    pub(super) namespace_from: Option<Path>,
    pub(super) own_claims: Option<Path>,
}

/// Fields that name other objects.
#[derive(Clone, Debug)]
pub(super) struct Dependency {
    pub(super) paths: Vec<Path>,
    pub(super) kind: Kind,
    pub(super) namespace_from: Option<Path>,
    pub(super) prefix: String,
    pub(super) suffix: String,
    pub(super) is_optional: bool,
    pub(super) optional_from: Option<Path>,
    pub(super) when: Vec<Test>,
}

/// The kind of a referenced object.
#[derive(Clone, Debug)]
pub(super) struct Kind {
    pub(super) default_kind: Option<String>,
    pub(super) default_version: Option<String>,
    pub(super) kind_from: Option<Path>,
    pub(super) version_from: Option<Path>,
    /// Kinds with their group and version. If empty, every kind is accepted.
    pub(super) known: Vec<(String, String)>,
}

/// A condition on a field.
#[derive(Clone, Debug)]
pub(super) struct Test {
    pub(super) path: Path,
    pub(super) one_of: Vec<String>,
    pub(super) not_in: Vec<String>,
    pub(super) default: Option<String>,
    pub(super) exists: Option<bool>,
}

/// A number: at a path, or a default if absent.
#[derive(Clone, Debug)]
pub(super) struct Number {
    pub(super) path: Option<Path>,
    pub(super) default: Option<i64>,
}

/// Pods of one component of an object.
#[derive(Clone, Debug)]
pub struct PodsOf<'a> {
    /// The component's name; not necessarily unique.
    pub name: &'a str,
    /// The number of pods, if the rules or the object define it.
    pub replicas: Option<i64>,
    /// The pod spec.
    pub spec: &'a Value,
}

/// All dependencies of the object.
pub(super) fn references(rules: &Declared, namespace: &str, object: &Value) -> Vec<DependencyReference> {
    let mut mentions = Mentions::default();
    for rule in &rules.pods {
        rule.each(object, &mut |found| {
            rule.mention(namespace, object, found, &mut mentions)
        });
    }
    if !namespace.is_empty() {
        for path in &rules.containers {
            path.each(object, &mut |found| match found.value {
                Value::Array(list) => list.iter().for_each(|each| mentions.container(namespace, each)),
                one => mentions.container(namespace, one),
            });
        }
    }
    for rule in &rules.dependencies {
        for path in &rule.paths {
            path.each(object, &mut |found| {
                rule.mention(namespace, object, found, &mut mentions)
            });
        }
    }
    mentions.references()
}

/// The pods that the object creates.
pub(super) fn pods<'a>(rules: &'a Declared, object: &'a Value) -> Vec<PodsOf<'a>> {
    let mut all = Vec::new();
    let only_components = rules.has_components();
    for rule in rules
        .pods
        .iter()
        .filter(|rule| rule.is_component() || !only_components)
    {
        for path in &rule.paths {
            path.each(object, &mut |found| {
                let named = rule
                    .name_from
                    .as_ref()
                    .and_then(|path| path.first_beside(object, found.holder).as_str());
                let name = named.or(rule.name.as_deref()).or(found.key).or(path.last_name());
                let count = |number: &Number| number.beside(object, found.holder);
                if found.value.is_object() {
                    all.push(PodsOf {
                        name: name.unwrap_or_default(),
                        replicas: rule.replicas.as_ref().and_then(count),
                        spec: pod_spec(found.value),
                    });
                }
            });
        }
    }
    all
}

/// The positions of the containers of the object's pods, as JSON pointers. `lists`: those in a pod spec. Another possible
/// container counts if it has an image.
pub(super) fn containers(rules: &Declared, object: &Value, lists: &[&str]) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for path in rules.pods.iter().flat_map(|pods| &pods.paths) {
        path.each_pointer(object, &mut |found, at| {
            let spec = pod_spec(found);
            let inner = if std::ptr::eq(spec, found) { "" } else { "/spec" };
            for list in lists {
                let count = spec[*list].as_array().map_or(0, Vec::len);
                all.extend((0..count).map(|number| format!("{at}{inner}/{list}/{number}")));
            }
        });
    }
    for path in &rules.containers {
        path.each_pointer(object, &mut |found, at| match found {
            Value::Array(list) => {
                let with_image = list
                    .iter()
                    .enumerate()
                    .filter(|(_, each)| each["image"].is_string());
                all.extend(with_image.map(|(number, _)| format!("{at}/{number}")));
            }
            one if one["image"].is_string() => {
                all.insert(at);
            }
            _ => {}
        });
    }
    all
}

/// The namespace of a reference: its own, or the object's. `None` without either, and for a text with a parameter in it. Whether
/// the dependency is propagated from there is decided elsewhere: that needs the other namespace's consent (`Fleet::may_need` of
/// the core).
fn target<'a>(own: &'a str, explicit: Option<&'a str>) -> Option<&'a str> {
    let explicit = explicit.filter(|name| !name.is_empty());
    Some(explicit.unwrap_or(own)).filter(|name| is_name(name))
}

/// True if an object can have this name. A text with a parameter in it (`{{name}}`) is no name yet.
fn is_name(text: &str) -> bool {
    const NEVER: &[char] = &['/', '%', '{', '}', '$'];
    !text.is_empty() && text.len() <= 253 && !text.contains(NEVER) && !text.contains(char::is_whitespace)
}

/// A pod template has a spec; a pod spec has no field of that name.
fn pod_spec(template: &Value) -> &Value {
    template
        .get("spec")
        .filter(|spec| spec.is_object())
        .unwrap_or(template)
}

impl Pods {
    /// True if the number of these pods is defined.
    pub(super) fn is_component(&self) -> bool {
        self.replicas.is_some()
    }

    fn each<'a>(&self, object: &'a Value, visit: &mut dyn FnMut(Found<'a>)) {
        self.paths.iter().for_each(|path| path.each(object, visit));
    }

    fn mention<'a>(&self, own: &'a str, object: &'a Value, found: Found<'a>, mentions: &mut Mentions<'a>) {
        let mut explicit: Vec<Option<&'a str>> = Vec::new();
        if let Some(path) = &self.namespace_from {
            path.each_beside(object, found.holder, &mut |name| {
                explicit.push(name.value.as_str())
            });
        }
        if explicit.is_empty() {
            explicit.push(None);
        }
        let mut own_claims = BTreeSet::new();
        if let Some(path) = &self.own_claims {
            path.each_beside(object, found.holder, &mut |claim| {
                own_claims.extend(claim.value.as_str());
            });
        }
        for namespace in explicit.into_iter().filter_map(|explicit| target(own, explicit)) {
            mentions.pod_spec(namespace, pod_spec(found.value), &own_claims);
        }
    }
}

impl Dependency {
    fn mention<'a>(&'a self, own: &'a str, object: &'a Value, found: Found<'a>, mentions: &mut Mentions<'a>) {
        let Some(name) = found.value.as_str().filter(|name| is_name(name)) else {
            return;
        };
        let beside = |path: &Path| path.first_beside(object, found.holder);
        let explicit = self
            .namespace_from
            .as_ref()
            .and_then(|path| beside(path).as_str());
        let Some(namespace) = target(own, explicit) else {
            return;
        };
        if !self.when.iter().all(|test| test.holds(beside(&test.path))) {
            return;
        }
        let Some(gvk) = self.kind.of(&beside) else { return };
        let name = if self.prefix.is_empty() && self.suffix.is_empty() {
            Cow::Borrowed(name)
        } else {
            Cow::Owned(format!("{}{name}{}", self.prefix, self.suffix))
        };
        let flag = self
            .optional_from
            .as_ref()
            .is_some_and(|path| beside(path) == true);
        mentions.add(gvk, namespace, name, self.is_optional || flag);
    }
}

impl Kind {
    fn of<'a>(&'a self, beside: &dyn Fn(&Path) -> &'a Value) -> Option<NativeGvk<'a>> {
        let read = |path: &Option<Path>| {
            let text = path.as_ref().and_then(|path| beside(path).as_str());
            text.filter(|text| !text.is_empty())
        };
        let kind = read(&self.kind_from).or(self.default_kind.as_deref())?;
        let known = self.known.iter().find(|(name, _)| name == kind);
        if known.is_none() && !self.known.is_empty() {
            return None;
        }
        let known = known.map(|(_, version)| version.as_str());
        let version = read(&self.version_from)
            .or(known)
            .or(self.default_version.as_deref());
        let (group, version) = version
            .unwrap_or("v1")
            .split_once('/')
            .unwrap_or(("", version.unwrap_or("v1")));
        Some(NativeGvk { group, version, kind })
    }
}

impl Test {
    fn holds(&self, value: &Value) -> bool {
        if self.exists.is_some_and(|exists| exists == value.is_null()) {
            return false;
        }
        let text = match value {
            Value::String(text) => Some(Cow::Borrowed(text.as_str())),
            Value::Bool(_) | Value::Number(_) => Some(Cow::Owned(value.to_string())),
            _ => self.default.as_deref().map(Cow::Borrowed),
        };
        let is_in = |list: &[String]| {
            text.as_deref()
                .is_some_and(|text| list.iter().any(|each| each == text))
        };
        (self.one_of.is_empty() || is_in(&self.one_of)) && !is_in(&self.not_in)
    }
}

impl Number {
    /// The number beside a value.
    pub(super) fn beside(&self, object: &Value, holder: &Value) -> Option<i64> {
        let found = self
            .path
            .as_ref()
            .and_then(|path| path.first_beside(object, holder).as_i64());
        found.or(self.default)
    }
}

//! Roles and bindings. Their names are any path segment, PUT creates them, and a binding never changes its role.

use serde_json::{Map, Value};

use crate::{
    kinds::kind_def::{KindDef, Type},
    names,
    object::{
        Object,
        tree::{Errors, below, default, each, list, made, text, within},
    },
    printer::{AGE, Column, NAME, Printer, View, wide, words},
    status::FieldError,
};

mod cluster_role;
mod cluster_role_binding;
mod role;
mod role_binding;

/// The rows of the group, in the order of discovery.
pub(super) const KINDS: &[&KindDef] = &[
    &cluster_role::DEF,
    &cluster_role_binding::DEF,
    &role::DEF,
    &role_binding::DEF,
];

const GROUP: &str = "rbac.authorization.k8s.io";

/// The common part of the kinds of the group.
const fn base<T: Type>() -> KindDef {
    KindDef {
        names: names::path_segment,
        create_on_update: true,
        revalidates: true,
        ..KindDef::of::<T>()
    }
}

/// The printer of bindings.
const PRINTER: Printer = Printer::new(COLUMNS, cells);

/// `rules` is always sent; no rules are `null`.
fn rules_always(role: &mut Object) {
    role.entry("rules").or_insert(Value::Null);
}

fn rules(role: &Object, namespaced: bool, errors: &mut Errors) {
    for (at, rule) in list(role, "rules").iter().enumerate() {
        let Some(rule) = rule.as_object() else { continue };
        let path = format!("rules[{at}]");
        let none = |key: &str| list(rule, key).is_empty();
        if none("verbs") {
            errors.required(format!("{path}.verbs"), "verbs must contain at least one value");
        }
        if !none("nonResourceURLs") {
            let field = format!("{path}.nonResourceURLs");
            if namespaced {
                let urls = rule.get("nonResourceURLs").cloned().unwrap_or_default();
                errors.invalid(&field, urls, "namespaced rules cannot apply to non-resource URLs");
            }
            if !none("apiGroups") || !none("resources") || !none("resourceNames") {
                let urls = rule.get("nonResourceURLs").cloned().unwrap_or_default();
                let detail = "rules cannot apply to both regular resources and non-resource URLs";
                errors.invalid(&field, urls, detail);
            }
            continue;
        }
        if none("apiGroups") {
            errors.required(
                format!("{path}.apiGroups"),
                "resource rules must supply at least one api group",
            );
        }
        if none("resources") {
            errors.required(
                format!("{path}.resources"),
                "resource rules must supply at least one resource",
            );
        }
    }
}

fn binding_defaults(binding: &mut Object) {
    default(made(binding, "roleRef"), "apiGroup", GROUP);
    within(binding, "roleRef", |role| {
        // Always sent.
        for key in ["kind", "name"] {
            role.entry(key).or_insert_with(|| "".into());
        }
    });
    each(binding, "subjects", |subject| {
        if matches!(text(subject, "kind"), "User" | "Group") {
            default(subject, "apiGroup", GROUP);
        }
    });
}

fn binding(binding: &Object, kinds: &[&str], errors: &mut Errors) {
    let role = below(binding, "roleRef");
    if text(role, "apiGroup") != GROUP {
        errors.push(FieldError::not_supported(
            "roleRef.apiGroup",
            text(role, "apiGroup"),
            &[GROUP],
        ));
    }
    errors.one_of("roleRef.kind", text(role, "kind"), kinds);
    match text(role, "name") {
        "" => errors.required("roleRef.name", ""),
        name => errors.all_invalid("roleRef.name", name, names::path_segment(name, false)),
    }
    let namespaced = kinds.len() > 1;
    for (at, subject) in list(binding, "subjects").iter().enumerate() {
        if let Some(subject) = subject.as_object() {
            self::subject(subject, &format!("subjects[{at}]"), namespaced, errors);
        }
    }
}

fn subject(subject: &Object, path: &str, namespaced: bool, errors: &mut Errors) {
    let (name, group) = (text(subject, "name"), text(subject, "apiGroup"));
    if name.is_empty() {
        errors.required(format!("{path}.name"), "");
    }
    let expected = match text(subject, "kind") {
        "ServiceAccount" => {
            if !name.is_empty() {
                let problems = names::dns_subdomain(name, false);
                errors.all_invalid(&format!("{path}.name"), name, problems);
            }
            if !namespaced && text(subject, "namespace").is_empty() {
                errors.required(format!("{path}.namespace"), "");
            }
            ""
        }
        "User" | "Group" => GROUP,
        other => {
            errors.one_of(
                format!("{path}.kind"),
                other,
                &["ServiceAccount", "User", "Group"],
            );
            return;
        }
    };
    errors.one_of(format!("{path}.apiGroup"), group, &[expected]);
}

fn same_role(new: &Object, old: &Object, errors: &mut Errors) {
    let role = below(new, "roleRef");
    if role == below(old, "roleRef") {
        return;
    }
    // The server quotes its own form of the reference.
    let mut quoted = Map::new();
    for (own, key) in [("APIGroup", "apiGroup"), ("Kind", "kind"), ("Name", "name")] {
        quoted.insert(own.to_owned(), text(role, key).into());
    }
    errors.invalid("roleRef", Value::Object(quoted), "cannot change roleRef");
}

const COLUMNS: &[Column] = &[
    NAME,
    words("Role", ".roleRef"),
    AGE,
    wide("Users", "Users in the roleBinding"),
    wide("Groups", "Groups in the roleBinding"),
    wide("ServiceAccounts", "ServiceAccounts in the roleBinding"),
];

fn cells(binding: &View<'_>) -> Vec<Value> {
    let subjects = |kind: &str| {
        let found = binding
            .list("subjects")
            .iter()
            .filter(|subject| subject["kind"] == kind);
        let names: Vec<String> = found
            .map(|subject| {
                let text = |name: &str| subject[name].as_str().unwrap_or_default();
                match text("namespace") {
                    namespace if kind == "ServiceAccount" && !namespace.is_empty() => {
                        format!("{namespace}/{}", text("name"))
                    }
                    _ => text("name").to_owned(),
                }
            })
            .collect();
        Value::from(names.join(", "))
    };
    vec![
        binding.name(),
        format!(
            "{}/{}",
            binding.text("roleRef.kind"),
            binding.text("roleRef.name")
        )
        .into(),
        binding.age(),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]
}

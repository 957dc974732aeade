//! Roles and bindings. Their names are any path segment, PUT creates them, and a binding never changes its role.

use serde_json::{Map, Value};

use super::kind::Kind;
use crate::{
    names,
    object::{
        Object,
        tree::{Errors, below, default, each, items, list, made, text, within},
    },
    status::FieldError,
};

const GROUP: &str = "rbac.authorization.k8s.io";

const KIND: Kind = Kind {
    names: names::path_segment,
    create_on_update: true,
    revalidates: true,
    ..Kind::PLAIN
};

/// Role.
pub(super) static ROLE: Kind = Kind {
    kind: "Role",
    defaults: rules_always,
    errors: |role, errors| rules(role, true, errors),
    ..KIND
};

/// ClusterRole. Aggregation is a controller's work.
pub(super) static CLUSTER_ROLE: Kind = Kind {
    kind: "ClusterRole",
    defaults: rules_always,
    errors: |role, errors| {
        rules(role, false, errors);
        aggregation(role, errors);
    },
    ..KIND
};

/// RoleBinding.
pub(super) static ROLE_BINDING: Kind = Kind {
    kind: "RoleBinding",
    defaults: binding_defaults,
    errors: |role, errors| binding(role, &["Role", "ClusterRole"], errors),
    changes: Some(|new, old, errors| {
        binding(new, &["Role", "ClusterRole"], errors);
        same_role(new, old, errors);
    }),
    ..KIND
};

/// ClusterRoleBinding.
pub(super) static CLUSTER_ROLE_BINDING: Kind = Kind {
    kind: "ClusterRoleBinding",
    defaults: binding_defaults,
    errors: |role, errors| binding(role, &["ClusterRole"], errors),
    changes: Some(|new, old, errors| {
        binding(new, &["ClusterRole"], errors);
        same_role(new, old, errors);
    }),
    ..KIND
};

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

fn aggregation(role: &Object, errors: &mut Errors) {
    if !role.get("aggregationRule").is_some_and(Value::is_object) {
        return;
    }
    let rule = below(role, "aggregationRule");
    if list(rule, "clusterRoleSelectors").is_empty() {
        errors.required(
            "aggregationRule.clusterRoleSelectors",
            "at least one clusterRoleSelector required if aggregationRule is non-nil",
        );
    }
    for (path, selector) in items(rule, "clusterRoleSelectors", "aggregationRule") {
        errors.extend(names::label_selector(selector, &path));
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

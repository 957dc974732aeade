//! IngressClasses.

use serde_json::Value;

use crate::{
    kinds::kind_def::KindDef,
    names,
    object::{
        Object,
        tree::{Errors, below, made, object, object_mut, text},
    },
    printer::{AGE, NAME, Printer, or_none, words},
};

pub(super) static DEF: KindDef = KindDef {
    has_generation: true,
    defaults: |class| {
        let spec = made(class, "spec");
        if let Some(parameters) = object_mut(spec, "parameters") {
            parameters.entry("scope").or_insert_with(|| "Cluster".into());
        }
    },
    errors: class,
    changes: Some(|new, old, errors| {
        let (before, after) = (below(old, "spec"), below(new, "spec"));
        errors.immutable(after, before, "spec", "controller");
        class(new, errors);
    }),
    printer: Printer::of(&[
        NAME,
        words(
            "Controller",
            "Controller that is responsible for handling this class",
        )
        .at("spec.controller"),
        words(
            "Parameters",
            "A reference to a resource with additional parameters",
        )
        .shows(|class| {
            let parameters = class.at("spec.parameters").map(|_| {
                let group = match class.text("spec.parameters.apiGroup") {
                    "" => String::new(),
                    group => format!(".{group}"),
                };
                format!(
                    "{}{group}/{}",
                    class.text("spec.parameters.kind"),
                    class.text("spec.parameters.name")
                )
            });
            or_none(parameters.unwrap_or_default())
        }),
        AGE,
    ]),
    ..KindDef::of::<k8s_openapi::api::networking::v1::IngressClass>()
};

fn class(class: &Object, errors: &mut Errors) {
    let spec = below(class, "spec");
    let controller = text(spec, "controller");
    if controller.len() > 250 {
        errors.too_long("spec.controller", 250);
    }
    if controller.is_empty() {
        errors.required("spec.controller", "");
    } else {
        errors.all_invalid("spec.controller", controller, domain_path(controller));
    }
    let Some(parameters) = object(spec, "parameters") else {
        return;
    };
    for key in ["kind", "name"] {
        let value = text(parameters, key);
        errors.needs(parameters, "spec.parameters", key);
        errors.all_invalid(
            &format!("spec.parameters.{key}"),
            value,
            names::path_segment(value, false),
        );
    }
    if let Some(Value::String(group)) = parameters.get("apiGroup") {
        let problems = names::dns_subdomain(group, false);
        errors.all_invalid("spec.parameters.apiGroup", group.as_str(), problems);
    }
    let (scope, namespace) = (text(parameters, "scope"), text(parameters, "namespace"));
    errors.required_one_of("spec.parameters.scope", scope, &["Cluster", "Namespace"]);
    if scope == "Namespace" && namespace.is_empty() {
        let detail = "`parameters.scope` is set to 'Namespace'";
        errors.required("spec.parameters.namespace", detail);
    }
    if scope == "Cluster" && !namespace.is_empty() {
        let detail = "`parameters.scope` is set to 'Cluster'";
        errors.forbidden("spec.parameters.namespace", detail);
    }
}

/// A domain, a slash and a path.
fn domain_path(text: &str) -> Vec<String> {
    let Some((domain, path)) = text
        .split_once('/')
        .filter(|(domain, path)| !domain.is_empty() && !path.is_empty())
    else {
        return vec!["must be a domain-prefixed path (such as \"acme.io/foo\")".to_owned()];
    };
    let mut problems = names::dns_subdomain(domain, false);
    if !path
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte))
    {
        problems.push(
            "Invalid path (e.g. 'my/path', regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')"
                .to_owned(),
        );
    }
    problems
}

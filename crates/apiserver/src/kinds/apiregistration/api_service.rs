//! APIServices: the objects. No request is passed on to the server that one names.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::{
    kinds::kind_def::{KindDef, METADATA, empty_status},
    names,
    object::{
        Object, field,
        tree::{Errors, below, count, default, flag, made, object, text, within},
    },
    printer::{AGE, NAME, Printer, words},
};

pub(super) static DEF: KindDef = KindDef {
    subresources: &["status"],
    kept_by_status: METADATA,
    names: names::path_segment,
    defaults: |service| {
        within(made(service, "spec"), "service", |server| {
            default(server, "port", 443)
        })
    },
    created: empty_status,
    errors,
    printer: Printer::new(
        &[
            NAME,
            words(
                "Service",
                "The reference to the service that hosts this API endpoint.",
            ),
            words("Available", "Whether this service is available."),
            AGE,
        ],
        |service| {
            let server = match service.text("spec.service.name") {
                "" => "Local".to_owned(),
                name => format!("{}/{name}", service.text("spec.service.namespace")),
            };
            let conditions = service.list("status.conditions");
            let available = conditions.iter().find(|one| one["type"] == "Available");
            let word = |name: &str| available.and_then(|one| one[name].as_str()).unwrap_or_default();
            let available = match (word("status"), word("reason")) {
                ("", _) => "Unknown".to_owned(),
                ("True", _) | (_, "") => word("status").to_owned(),
                (status, reason) => format!("{status} ({reason})"),
            };
            vec![service.name(), server.into(), available.into(), service.age()]
        },
    ),
    ..KindDef::of::<k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService>()
};

/// Source: ValidateAPIService of k8s.io/kube-aggregator.
fn errors(service: &Object, errors: &mut Errors) {
    let spec = below(service, "spec");
    let (group, version) = (text(spec, "group"), text(spec, "version"));
    let (name, wanted) = (field(service, "name"), format!("{version}.{group}"));
    if name != wanted {
        let detail = format!("must be `spec.version+\".\"+spec.group`: {wanted:?}");
        errors.invalid("metadata.name", name, &detail);
    }
    if group.is_empty() && version != "v1" {
        let detail = "only v1 may have an empty group and it better be legacy kube";
        errors.required("spec.group", detail);
    }
    let of_group = names::dns_subdomain(group, false);
    for detail in of_group.iter().filter(|_| !group.is_empty()) {
        errors.invalid("spec.group", group, detail);
    }
    for detail in names::dns1035_label(version, false) {
        errors.invalid("spec.version", version, &detail);
    }
    for (key, most) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1000)] {
        let priority = count(spec, key);
        if !(1..=most).contains(&priority) {
            let detail = format!("must be positive and less than {most}");
            errors.invalid(format!("spec.{key}"), priority, &detail);
        }
    }
    let (bundle, is_unsafe) = (text(spec, "caBundle"), flag(spec, "insecureSkipTLSVerify"));
    let path = "spec.insecureSkipTLSVerify";
    let Some(server) = object(spec, "service") else {
        if !bundle.is_empty() {
            let length = STANDARD.decode(bundle).map_or(0, |bytes| bytes.len());
            let detail = "local APIServices may not have a caBundle";
            errors.invalid("spec.caBundle", format!("{length} bytes"), detail);
        }
        if is_unsafe {
            let detail = "local APIServices may not have insecureSkipTLSVerify";
            errors.invalid(path, true, detail);
        }
        return;
    };
    for key in ["namespace", "name"] {
        errors.needs(server, "spec.service", key);
    }
    if is_unsafe && !bundle.is_empty() {
        errors.invalid(path, true, "may not be true if caBundle is present");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_service_of_another_server_names_it_and_a_local_one_has_no_bundle() {
        let local = json!({"group": "a.example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1});
        let with = |more: Value| {
            let mut spec = local.clone();
            for (key, value) in more.as_object().into_iter().flatten() {
                spec[key] = value.clone();
            }
            spec
        };
        let server = json!({"namespace": "a", "name": "b"});
        let cases: [(Value, &[&str]); 8] = [
            (with(json!({})), &[]),
            (with(json!({"insecureSkipTLSVerify": false})), &[]),
            (
                with(json!({"service": server, "insecureSkipTLSVerify": true})),
                &[],
            ),
            (
                with(json!({"insecureSkipTLSVerify": true, "caBundle": "YQ=="})),
                &["spec.caBundle", "spec.insecureSkipTLSVerify"],
            ),
            (
                with(json!({"service": server, "insecureSkipTLSVerify": true, "caBundle": "YQ=="})),
                &["spec.insecureSkipTLSVerify"],
            ),
            (
                with(json!({"service": {"name": "b"}})),
                &["spec.service.namespace"],
            ),
            (
                with(json!({"groupPriorityMinimum": 0, "versionPriority": 1001})),
                &["spec.groupPriorityMinimum", "spec.versionPriority"],
            ),
            (
                with(json!({"group": "", "version": "v2"})),
                &["metadata.name", "spec.group"],
            ),
        ];
        for (spec, expected) in cases {
            let Value::Object(service) = json!({"metadata": {"name": "v1.a.example.com"}, "spec": spec})
            else {
                panic!("an object")
            };
            let mut found = Errors::default();
            errors(&service, &mut found);
            let found: Vec<String> = found.0.iter().map(|error| error.field.clone()).collect();
            assert_eq!(found, expected, "{spec}");
        }
    }
}

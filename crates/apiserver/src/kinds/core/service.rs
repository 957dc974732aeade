//! Services: what is filled in, which addresses and ports they get, and what a change of the type takes away.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::{Value, json};

use crate::{
    kinds::kind_def::{KindDef, fields},
    names,
    object::{
        Object, field,
        tree::{Errors, at, below, count, default, each, flag, list, made, number, object_mut, text},
    },
    printer::{AGE, NAME, NONE, Printer, UNKNOWN, View, or_none, wide, words},
    resource::{Guard, Rules, Surroundings},
    status::{About, FieldError, Result, Status},
};
use allocations::Allocations;

mod addresses;
mod allocations;
mod convert;
mod families;
pub(in crate::kinds) mod validation;

/// The `clusterIP` of a headless Service.
const HEADLESS: &str = "None";

pub(super) static DEF: KindDef = KindDef {
    short: &["svc"],
    categories: &["all"],
    subresources: &["proxy", "status"],
    rules: Some(|| Arc::<Services>::default()),
    printer: Printer::of(&[
        NAME,
        words("Type", ".spec.type"),
        words("Cluster-IP", ".spec.clusterIP").or(NONE),
        words("External-IP", ".spec.externalIPs").shows(|service| external_ip(service).into()),
        words("Port(s)", ".spec.ports").shows(service_ports),
        AGE,
        wide("Selector", ".spec.selector").shows(|service| service.labels("spec.selector")),
    ]),
    ..KindDef::of::<k8s_openapi::api::core::v1::Service>()
};

/// Service, with what all Services of the cluster have got.
#[derive(Debug, Default)]
pub(super) struct Services {
    allocations: Mutex<Allocations>,
}

impl Rules for Services {
    fn revalidates(&self) -> bool {
        true
    }

    fn defaults(&self, service: &mut Object) {
        let spec = made(service, "spec");
        defaults(spec);
        if let Some(status) = object_mut(service, "status") {
            each(made(status, "loadBalancer"), "ingress", |ingress| {
                if !text(ingress, "ip").is_empty() {
                    default(ingress, "ipMode", "VIP");
                }
            });
        }
    }

    fn has_status(&self) -> bool {
        true
    }

    fn prepare_create(&self, service: &mut Object, around: &dyn Surroundings) -> Result<()> {
        service.insert("status".to_owned(), json!({"loadBalancer": {}}));
        let spec = made(service, "spec");
        if !text(spec, "clusterIP").is_empty() && list(spec, "clusterIPs").is_empty() {
            let ip = text(spec, "clusterIP").to_owned();
            spec.insert("clusterIPs".to_owned(), json!([ip]));
        }
        self.allocate(service, None, around)
    }

    fn rehearse(&self, service: &mut Object, asked: &Object) {
        allocations::rehearse(made(service, "spec"), below(asked, "spec"));
    }

    fn prepare_update(
        &self,
        subresource: &str,
        new: &mut Object,
        old: &Object,
        around: &dyn Surroundings,
    ) -> Result<()> {
        if !subresource.is_empty() {
            return Ok(());
        }
        let before = below(old, "spec");
        let after = made(new, "spec");
        convert::keep(after, before);
        convert::drop_unused(after, before);
        self.allocate(new, Some(old), around)
    }

    fn hold<'a>(
        &'a self,
        service: &Object,
        around: &dyn Surroundings,
    ) -> Result<Option<Box<dyn Guard + 'a>>> {
        let mut allocations = self.allocations.lock().unwrap_or_else(PoisonError::into_inner);
        allocations.catch_up(around);
        let taken = allocations.claim(&key(service), below(service, "spec"), around);
        refuse(service, &taken)?;
        Ok(Some(Box::new(allocations)))
    }

    fn validate(&self, service: &Object) -> Vec<FieldError> {
        let mut errors = Errors::default();
        validation::service(below(service, "spec"), None, &mut errors);
        errors.0
    }

    fn validate_update(&self, subresource: &str, new: &Object, old: &Object) -> Vec<FieldError> {
        let mut errors = Errors::default();
        if subresource == "status" {
            validation::status(new, &mut errors);
        } else {
            validation::service(below(new, "spec"), Some(below(old, "spec")), &mut errors);
        }
        errors.0
    }

    fn name_problems(&self, name: &str, prefix: bool) -> Vec<String> {
        names::dns_label(name, prefix)
    }

    fn warnings(&self, service: &Object, _: Option<&Object>) -> Vec<String> {
        let spec = below(service, "spec");
        let headless = is_headless(spec);
        let named = text(spec, "type") == "ExternalName";
        let external = !list(spec, "externalIPs").is_empty();
        let (hints, mode) = (
            "service.kubernetes.io/topology-aware-hints",
            "service.kubernetes.io/topology-mode",
        );
        let annotated = at(service, &["metadata", "annotations"]).contains_key(hints);
        let ignored = |what: &str| format!("{what} is ignored for headless services");
        [
            (
                annotated,
                format!("annotation {hints} is deprecated, please use {mode} instead"),
            ),
            (
                headless && !text(spec, "loadBalancerIP").is_empty(),
                ignored("spec.loadBalancerIP"),
            ),
            (headless && external, ignored("spec.externalIPs")),
            (
                headless && text(spec, "sessionAffinity") != HEADLESS,
                ignored("spec.SessionAffinity"),
            ),
            (
                named && external,
                "spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned(),
            ),
            (
                text(spec, "trafficDistribution") == "PreferClose",
                "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"".to_owned(),
            ),
        ]
        .into_iter()
        .filter_map(|(applies, warning)| applies.then_some(warning))
        .collect()
    }

    fn selectable(&self, service: &Object) -> Option<BTreeMap<String, String>> {
        let spec = below(service, "spec");
        Some(fields([
            ("spec.clusterIP", text(spec, "clusterIP")),
            ("spec.type", text(spec, "type")),
        ]))
    }

    fn create_on_update(&self) -> bool {
        true
    }

    fn delete_returns_object(&self) -> bool {
        true
    }
}

impl Services {
    /// Families, addresses and ports that the Service does not name itself; those that it names must be free.
    fn allocate(&self, service: &mut Object, old: Option<&Object>, around: &dyn Surroundings) -> Result<()> {
        let before = old.map(|old| below(old, "spec"));
        let spec = below(service, "spec");
        let mut errors = Errors::default();
        addresses::related(spec, before, &mut errors);
        refuse(service, &errors.0)?;
        let mut errors = Errors::default();
        families::fill(made(service, "spec"), &mut errors);
        refuse(service, &errors.0)?;
        let key = key(service);
        let mut allocations = self.allocations.lock().unwrap_or_else(PoisonError::into_inner);
        allocations.catch_up(around);
        let problems = allocations.fill(&key, made(service, "spec"), before, around);
        drop(allocations);
        refuse(service, &problems)
    }
}

/// `namespace/name`.
fn key(service: &Object) -> String {
    format!("{}/{}", field(service, "namespace"), field(service, "name"))
}

fn refuse(service: &Object, errors: &[FieldError]) -> Result<()> {
    if errors.is_empty() {
        return Ok(());
    }
    let about = About {
        group: "",
        resource: "Service",
        name: field(service, "name"),
    };
    Err(Status::invalid(about, errors))
}

fn defaults(spec: &mut Object) {
    default(spec, "sessionAffinity", HEADLESS);
    match text(spec, "sessionAffinity") {
        HEADLESS => {
            spec.remove("sessionAffinityConfig");
        }
        "ClientIP" => {
            let config = made(made(spec, "sessionAffinityConfig"), "clientIP");
            default(config, "timeoutSeconds", 10_800);
        }
        _ => {}
    }
    default(spec, "type", "ClusterIP");
    each(spec, "ports", |port| {
        default(port, "protocol", "TCP");
        let target = port.get("targetPort");
        if target.is_none_or(|target| target.is_null() || *target == json!(0) || *target == json!("")) {
            let number = count(port, "port");
            port.insert("targetPort".to_owned(), number.into());
        }
    });
    if is_external(spec) {
        default(spec, "externalTrafficPolicy", "Cluster");
    }
    if needs_ip(spec) {
        default(spec, "internalTrafficPolicy", "Cluster");
    }
    if text(spec, "type") == "LoadBalancer" {
        default(spec, "allocateLoadBalancerNodePorts", true);
    }
}

fn is_headless(spec: &Object) -> bool {
    list(spec, "clusterIPs").first().and_then(Value::as_str) == Some(HEADLESS)
}

/// True if the type has cluster IPs.
fn needs_ip(spec: &Object) -> bool {
    matches!(text(spec, "type"), "ClusterIP" | "NodePort" | "LoadBalancer")
}

/// True if the type has node ports.
fn needs_node_ports(spec: &Object) -> bool {
    match text(spec, "type") {
        "NodePort" => true,
        "LoadBalancer" => flag(spec, "allocateLoadBalancerNodePorts"),
        _ => false,
    }
}

/// True if load balancers check health at a port of their own.
fn needs_health_port(spec: &Object) -> bool {
    text(spec, "type") == "LoadBalancer" && text(spec, "externalTrafficPolicy") == "Local"
}

/// True if traffic comes from outside, so that it has a policy.
fn is_external(spec: &Object) -> bool {
    match text(spec, "type") {
        "NodePort" | "LoadBalancer" => true,
        "ClusterIP" => !list(spec, "externalIPs").is_empty(),
        _ => false,
    }
}

/// A number that counts as absent when it is zero.
fn given(object: &Object, key: &str) -> Option<i64> {
    number(object, key).filter(|number| *number != 0)
}

fn external_ip(service: &View<'_>) -> String {
    let given = service.texts("spec.externalIPs");
    let (all, absent) = match service.text("spec.type") {
        "ClusterIP" | "NodePort" => (given, NONE),
        "LoadBalancer" => ([balancers(service), given].concat(), "<pending>"),
        "ExternalName" => return service.text("spec.externalName").to_owned(),
        _ => return UNKNOWN.to_owned(),
    };
    if all.is_empty() {
        absent.to_owned()
    } else {
        all.join(",")
    }
}

fn service_ports(service: &View<'_>) -> Value {
    let words: Vec<String> = service
        .list("spec.ports")
        .iter()
        .map(|port| {
            let protocol = port["protocol"].as_str().unwrap_or_default();
            match port["nodePort"].as_i64() {
                Some(node @ 1..) => format!("{}:{node}/{protocol}", port["port"]),
                _ => format!("{}/{protocol}", port["port"]),
            }
        })
        .collect();
    or_none(words.join(","))
}

/// Addresses of load balancers, each once, sorted.
pub(in crate::kinds) fn balancers(object: &View<'_>) -> Vec<String> {
    let mut found: Vec<String> = object
        .list("status.loadBalancer.ingress")
        .iter()
        .filter_map(|one| {
            let text = |name: &str| one[name].as_str().filter(|text| !text.is_empty());
            text("ip").or_else(|| text("hostname")).map(str::to_owned)
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

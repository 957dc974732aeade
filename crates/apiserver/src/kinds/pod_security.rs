//! Pod security standards: labels of a namespace restrict its pods. Source: the standards `baseline` and `restricted`.

use serde_json::Value;

use crate::{
    object::{
        Object, metadata,
        tree::{below, flag, items, list, number, text},
    },
    status::FieldError,
};

const PREFIX: &str = "pod-security.kubernetes.io/";

/// Capabilities that `baseline` lets containers add.
const DEFAULT_CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// Volumes that `restricted` allows.
const VOLUMES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

/// A standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Privileged,
    Baseline,
    Restricted,
}

impl Level {
    fn of(text: &str) -> Option<Self> {
        match text {
            "privileged" => Some(Self::Privileged),
            "baseline" => Some(Self::Baseline),
            "restricted" => Some(Self::Restricted),
            _ => None,
        }
    }
}

/// The errors in the labels of a namespace.
pub(crate) fn labels(namespace: &Object) -> Vec<FieldError> {
    let labels = below(metadata(namespace), "labels");
    let mut errors = Vec::new();
    for mode in ["enforce", "audit", "warn"] {
        let (level, version) = (format!("{PREFIX}{mode}"), format!("{PREFIX}{mode}-version"));
        if let Some(value) = labels.get(&level).and_then(Value::as_str)
            && Level::of(value).is_none()
        {
            let why = "must be one of privileged, baseline, restricted";
            errors.push(FieldError::invalid(
                format!("metadata.labels[{level}]"),
                value,
                why,
            ));
        }
        if let Some(value) = labels.get(&version).and_then(Value::as_str) {
            let minor = value
                .strip_prefix("v1.")
                .and_then(|minor| minor.parse::<u32>().ok());
            if value != "latest" && minor.is_none() {
                let why = "must be \"latest\" or \"v1.x\"";
                errors.push(FieldError::invalid(
                    format!("metadata.labels[{version}]"),
                    value,
                    why,
                ));
            }
        }
    }
    errors
}

/// Checks the spec of a pod or of a template against the level of its namespace in this mode. Returns the whole reason of a violation.
pub(crate) fn violation(namespace: &Object, mode: &str, spec: &Object) -> Option<String> {
    let labels = below(metadata(namespace), "labels");
    let name = text(labels, &format!("{PREFIX}{mode}"));
    let level = Level::of(name).filter(|level| *level > Level::Privileged)?;
    let version = match text(labels, &format!("{PREFIX}{mode}-version")) {
        "" => "latest",
        version => version,
    };
    let found = problems(spec, level);
    (!found.is_empty()).then(|| format!("violate PodSecurity \"{name}:{version}\": {}", found.join(", ")))
}

fn problems(spec: &Object, level: Level) -> Vec<String> {
    let mut found = Vec::new();
    let mut tell = |reason: &str, details: String| {
        if !details.is_empty() {
            found.push(format!("{reason} ({details})"));
        }
    };
    let restricted = level == Level::Restricted;
    if !restricted {
        tell("non-default capabilities", added(spec, &DEFAULT_CAPABILITIES));
    }
    let shared: Vec<String> = ["hostNetwork", "hostPID", "hostIPC"]
        .into_iter()
        .filter(|key| flag(spec, key))
        .map(|key| format!("{key}=true"))
        .collect();
    tell("host namespaces", shared.join(", "));
    let host_paths = names_of(volumes(spec).filter(|volume| volume.contains_key("hostPath")));
    tell("hostPath volumes", counted("volume", &host_paths));
    tell("hostPort", host_ports(spec));
    let bad = of_containers(spec, |context| flag(context, "privileged"));
    tell(
        "privileged",
        rule(&bad, "must not set securityContext.privileged=true"),
    );
    let bad = of_containers(spec, |context| text(context, "procMount") == "Unmasked");
    tell(
        "procMount",
        rule(&bad, "must not set securityContext.procMount to \"Unmasked\""),
    );
    if restricted {
        restrict(spec, &mut tell);
    } else {
        let bad = of_containers(spec, |context| {
            text(below(context, "seccompProfile"), "type") == "Unconfined"
        });
        let why = "must not set securityContext.seccompProfile.type to \"Unconfined\"";
        tell("seccompProfile", rule(&bad, why));
    }
    found
}

fn restrict(spec: &Object, tell: &mut dyn FnMut(&str, String)) {
    let pod = below(spec, "securityContext");
    let bad = of_containers(spec, |context| {
        context.get("allowPrivilegeEscalation") != Some(&Value::Bool(false))
    });
    let why = "must set securityContext.allowPrivilegeEscalation=false";
    tell("allowPrivilegeEscalation != false", rule(&bad, why));
    let bad = of_containers(spec, |context| {
        let dropped = list(below(context, "capabilities"), "drop");
        !dropped.contains(&Value::from("ALL"))
    });
    let keep = rule(&bad, "must set securityContext.capabilities.drop=[\"ALL\"]");
    let parts = [keep, added(spec, &["NET_BIND_SERVICE"])];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    tell("unrestricted capabilities", parts.join("; "));
    tell("restricted volume types", volume_types(spec));
    tell("runAsNonRoot != true", non_root(spec, pod));
    let mut users = Vec::new();
    if number(pod, "runAsUser") == Some(0) {
        users.push("pod must not set runAsUser=0".to_owned());
    }
    let bad = of_containers(spec, |context| number(context, "runAsUser") == Some(0));
    if !bad.is_empty() {
        users.push(rule(&bad, "must not set runAsUser=0"));
    }
    tell("runAsUser=0", users.join(", "));
    let profile = |context: &Object| text(below(context, "seccompProfile"), "type").to_owned();
    let good = |kind: &str| matches!(kind, "RuntimeDefault" | "Localhost");
    let bad = of_containers(spec, |context| match profile(context).as_str() {
        "" => !good(&profile(pod)),
        kind => !good(kind),
    });
    let why = "must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"";
    let either = rule(&bad, why);
    tell(
        "seccompProfile",
        if either.is_empty() {
            either
        } else {
            format!("pod or {either}")
        },
    );
}

fn non_root(spec: &Object, pod: &Object) -> String {
    let denied = of_containers(spec, |context| {
        context.get("runAsNonRoot") == Some(&Value::Bool(false))
    });
    let mut parts = Vec::new();
    if pod.get("runAsNonRoot") == Some(&Value::Bool(false)) {
        parts.push("pod must not set securityContext.runAsNonRoot=false".to_owned());
    }
    if !denied.is_empty() {
        parts.push(rule(&denied, "must not set securityContext.runAsNonRoot=false"));
    }
    if parts.is_empty() && !flag(pod, "runAsNonRoot") {
        let open = of_containers(spec, |context| !flag(context, "runAsNonRoot"));
        if !open.is_empty() {
            let open = rule(&open, "must set securityContext.runAsNonRoot=true");
            parts.push(format!("pod or {open}"));
        }
    }
    parts.join(", ")
}

fn volume_types(spec: &Object) -> String {
    let (mut names, mut kinds) = (Vec::new(), Vec::new());
    for volume in volumes(spec) {
        let bad = volume
            .keys()
            .find(|key| *key != "name" && !VOLUMES.contains(&key.as_str()));
        if let Some(kind) = bad {
            names.push(format!("{:?}", text(volume, "name")));
            let kind = format!("{kind:?}");
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
    }
    kinds.sort_unstable();
    let verb = if names.len() == 1 { "uses" } else { "use" };
    let types = if kinds.len() == 1 { "type" } else { "types" };
    match counted("volume", &names) {
        none if none.is_empty() => none,
        volumes => format!("{volumes} {verb} restricted volume {types} {}", kinds.join(", ")),
    }
}

fn host_ports(spec: &Object) -> String {
    let (mut names, mut ports) = (Vec::new(), Vec::new());
    for (name, container) in containers(spec) {
        let own = items(container, "ports", "").filter_map(|(_, port)| number(port, "hostPort"));
        let own: Vec<i64> = own.filter(|port| *port != 0).collect();
        if !own.is_empty() {
            names.push(format!("{name:?}"));
            ports.extend(own);
        }
    }
    ports.sort_unstable();
    ports.dedup();
    let verb = if names.len() == 1 { "uses" } else { "use" };
    let many = if ports.len() == 1 { "hostPort" } else { "hostPorts" };
    let ports: Vec<String> = ports.iter().map(i64::to_string).collect();
    match counted("container", &names) {
        none if none.is_empty() => none,
        containers => format!("{containers} {verb} {many} {}", ports.join(", ")),
    }
}

/// Containers that add capabilities beyond `allowed`.
fn added(spec: &Object, allowed: &[&str]) -> String {
    let (mut names, mut extra) = (Vec::new(), Vec::new());
    for (name, container) in containers(spec) {
        let capabilities = below(below(container, "securityContext"), "capabilities");
        let own = list(capabilities, "add").iter().filter_map(Value::as_str);
        let own: Vec<String> = own
            .filter(|one| !allowed.contains(one))
            .map(|one| format!("{one:?}"))
            .collect();
        if !own.is_empty() {
            names.push(format!("{name:?}"));
            extra.extend(own);
        }
    }
    extra.sort_unstable();
    extra.dedup();
    let why = format!(
        "must not include {} in securityContext.capabilities.add",
        extra.join(", ")
    );
    rule(&names, &why)
}

/// The quoted names of the containers whose security context is bad.
fn of_containers(spec: &Object, bad: impl Fn(&Object) -> bool) -> Vec<String> {
    containers(spec)
        .filter(|(_, container)| bad(below(container, "securityContext")))
        .map(|(name, _)| format!("{name:?}"))
        .collect()
}

fn containers(spec: &Object) -> impl Iterator<Item = (&str, &Object)> {
    ["initContainers", "containers", "ephemeralContainers"]
        .into_iter()
        .flat_map(|key| list(spec, key))
        .filter_map(Value::as_object)
        .map(|container| (text(container, "name"), container))
}

fn volumes(spec: &Object) -> impl Iterator<Item = &Object> {
    list(spec, "volumes").iter().filter_map(Value::as_object)
}

fn names_of<'a>(objects: impl Iterator<Item = &'a Object>) -> Vec<String> {
    objects.map(|one| format!("{:?}", text(one, "name"))).collect()
}

/// `container "a"`, `containers "a", "b"`; nothing for none.
fn counted(what: &str, names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => format!("{what} {one}"),
        all => format!("{what}s {}", all.join(", ")),
    }
}

fn rule(names: &[String], why: &str) -> String {
    match counted("container", names) {
        none if none.is_empty() => none,
        containers => format!("{containers} {why}"),
    }
}

//! Containers of all three kinds: names, images, ports, mounts.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{env, probes, resources, security};
use crate::{
    names,
    object::{
        Object,
        tree::{Errors, below, count, flag, items, list, number, object, text},
    },
};

const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];
const NOT_ALWAYS: &str = "may not be set for init containers without restartPolicy=Always";

/// The fields of containers that debug containers may not have.
const NOT_EPHEMERAL: [(&str, &str); 7] = [
    ("ports", "ports"),
    ("resizePolicy", "resizePolicy"),
    ("lifecycle", "lifecycle"),
    ("livenessProbe", "livenessProbe"),
    ("readinessProbe", "readinessProbe"),
    ("startupProbe", "startupProbe"),
    ("restartPolicy", "restartPolicy"),
];

/// The volumes that containers may mount, by name.
pub(super) type Volumes<'a> = BTreeMap<&'a str, &'a Object>;

pub(super) fn validate(spec: &Object, path: &str, volumes: &Volumes<'_>, whole: bool, errors: &mut Errors) {
    let mut names: Vec<&str> = Vec::new();
    if list(spec, "containers").is_empty() {
        errors.required(format!("{path}.containers"), "");
    }
    for (path, container) in items(spec, "containers", path) {
        common(container, &path, volumes, errors);
        let name = text(container, "name");
        if names.contains(&name) {
            errors.duplicate(format!("{path}.name"), name);
        }
        names.push(name);
        probes::of_container(container, &path, errors);
        restart_policy(container, &path, errors);
    }
    host_ports(items(spec, "containers", path), errors);
    init_containers(spec, path, volumes, &mut names, errors);
    ephemeral_containers(spec, path, volumes, whole, &mut names, errors);
}

fn restart_policy(container: &Object, path: &str, errors: &mut Errors) {
    let policy = text(container, "restartPolicy");
    if container.contains_key("restartPolicy") {
        errors.one_of(
            format!("{path}.restartPolicy"),
            policy,
            &["Always", "Never", "OnFailure"],
        );
    }
}

fn init_containers<'a>(
    spec: &'a Object,
    path: &str,
    volumes: &Volumes<'_>,
    names: &mut Vec<&'a str>,
    errors: &mut Errors,
) {
    for (at, container) in list(spec, "initContainers").iter().enumerate() {
        let Some(container) = container.as_object() else {
            continue;
        };
        let path = format!("{path}.initContainers[{at}]");
        common(container, &path, volumes, errors);
        restart_policy(container, &path, errors);
        let name = text(container, "name");
        if names.contains(&name) {
            errors.duplicate(format!("{path}.name"), name);
        } else if !name.is_empty() {
            names.push(name);
        }
        host_ports([(path.clone(), container)], errors);
        if text(container, "restartPolicy") == "Always" {
            probes::of_container(container, &path, errors);
            continue;
        }
        for key in ["lifecycle"].into_iter().chain(PROBES) {
            if object(container, key).is_some() {
                errors.forbidden(format!("{path}.{key}"), NOT_ALWAYS);
            }
        }
    }
}

fn ephemeral_containers<'a>(
    spec: &'a Object,
    path: &str,
    volumes: &Volumes<'_>,
    whole: bool,
    names: &mut Vec<&'a str>,
    errors: &mut Errors,
) {
    let targets = names.clone();
    for (at, container) in list(spec, "ephemeralContainers").iter().enumerate() {
        let Some(container) = container.as_object() else {
            continue;
        };
        let path = format!("{path}.ephemeralContainers[{at}]");
        common(container, &path, volumes, errors);
        if whole {
            whole_image(container, &path, errors);
        }
        let name = text(container, "name");
        if names.contains(&name) {
            errors.duplicate(format!("{path}.name"), name);
        } else {
            names.push(name);
        }
        let target = text(container, "targetContainerName");
        if !target.is_empty() && !targets.contains(&target) {
            errors.not_found(format!("{path}.targetContainerName"), target);
        }
        let given = |key: &str| match container.get(key) {
            Some(Value::Array(list)) => !list.is_empty(),
            Some(Value::Object(map)) => !map.is_empty(),
            Some(value) => !value.is_null(),
            None => false,
        };
        for (key, shown) in NOT_EPHEMERAL.into_iter().chain([("resources", "resources")]) {
            if given(key) {
                errors.forbidden(
                    format!("{path}.{shown}"),
                    "cannot be set for an Ephemeral Container",
                );
            }
        }
        for (path, mount) in items(container, "volumeMounts", &path) {
            for key in ["subPath", "subPathExpr"] {
                if !text(mount, key).is_empty() {
                    errors.forbidden(
                        format!("{path}.{key}"),
                        "cannot be set for an Ephemeral Container",
                    );
                }
            }
        }
    }
}

/// Templates take images with blanks around them, pods do not.
pub(super) fn whole_image(container: &Object, path: &str, errors: &mut Errors) {
    let image = text(container, "image");
    if image.trim() != image {
        errors.invalid(
            format!("{path}.image"),
            image,
            "must not have leading or trailing whitespace",
        );
    }
}

fn common(container: &Object, path: &str, volumes: &Volumes<'_>, errors: &mut Errors) {
    let name = text(container, "name");
    if name.is_empty() {
        errors.required(format!("{path}.name"), "");
    } else {
        errors.all_invalid(&format!("{path}.name"), name, names::dns_label(name, false));
    }
    errors.needs(container, path, "image");
    errors.required_one_of(
        format!("{path}.terminationMessagePolicy"),
        text(container, "terminationMessagePolicy"),
        &["FallbackToLogsOnError", "File"],
    );
    ports(container, path, errors);
    env::validate(container, path, errors);
    mounts(container, path, volumes, errors);
    devices(container, path, volumes, errors);
    errors.required_one_of(
        format!("{path}.imagePullPolicy"),
        text(container, "imagePullPolicy"),
        &PULL_POLICIES,
    );
    resources::validate(
        below(container, "resources"),
        &format!("{path}.resources"),
        errors,
    );
    resize_policy(container, path, errors);
    security::container(container, path, errors);
}

fn ports(container: &Object, path: &str, errors: &mut Errors) {
    let mut seen: Vec<&str> = Vec::new();
    for (path, port) in items(container, "ports", path) {
        let name = text(port, "name");
        if !name.is_empty() {
            let problems = names::port_name(name);
            if !problems.is_empty() {
                errors.all_invalid(&format!("{path}.name"), name, problems);
            } else if seen.contains(&name) {
                errors.duplicate(format!("{path}.name"), name);
            } else {
                seen.push(name);
            }
        }
        match count(port, "containerPort") {
            0 => errors.required(format!("{path}.containerPort"), ""),
            number => errors.all_invalid(
                &format!("{path}.containerPort"),
                number,
                names::port_number(number),
            ),
        }
        let host = count(port, "hostPort");
        if host != 0 {
            errors.all_invalid(&format!("{path}.hostPort"), host, names::port_number(host));
        }
        errors.required_one_of(format!("{path}.protocol"), text(port, "protocol"), &PROTOCOLS);
    }
}

/// Two containers of a pod cannot have the same port of the host.
fn host_ports<'a>(containers: impl IntoIterator<Item = (String, &'a Object)>, errors: &mut Errors) {
    let mut seen: Vec<String> = Vec::new();
    for (path, container) in containers {
        for (path, port) in items(container, "ports", &path) {
            let number = count(port, "hostPort");
            if number == 0 {
                continue;
            }
            let one = format!("{}/{}/{number}", text(port, "protocol"), text(port, "hostIP"));
            if seen.contains(&one) {
                errors.duplicate(format!("{path}.hostPort"), one);
            } else {
                seen.push(one);
            }
        }
    }
}

fn mounts(container: &Object, path: &str, volumes: &Volumes<'_>, errors: &mut Errors) {
    let mut seen: Vec<&str> = Vec::new();
    let all = format!("{path}.volumeMounts");
    for (path, mount) in items(container, "volumeMounts", path) {
        let name = text(mount, "name");
        errors.needs(mount, &path, "name");
        if !volumes.contains_key(name) {
            errors.not_found(format!("{path}.name"), name);
        }
        errors.needs(mount, &path, "mountPath");
        let place = text(mount, "mountPath");
        if seen.contains(&place) {
            errors.invalid(format!("{path}.mountPath"), place, "must be unique");
        }
        seen.push(place);
        let devices = || {
            list(container, "volumeDevices")
                .iter()
                .filter_map(Value::as_object)
        };
        if devices().any(|device| text(device, "name") == name) {
            errors.invalid(
                format!("{path}.name"),
                name,
                "must not already exist in volumeDevices",
            );
        }
        if devices().any(|device| text(device, "devicePath") == place) {
            errors.invalid(
                format!("{path}.mountPath"),
                place,
                "must not already exist as a path in volumeDevices",
            );
        }
        let (sub, expression) = (text(mount, "subPath"), text(mount, "subPathExpr"));
        if !sub.is_empty() {
            descending(sub, &format!("{all}.subPath"), errors);
        }
        if !expression.is_empty() {
            if !sub.is_empty() {
                errors.invalid(
                    format!("{path}.subPathExpr"),
                    expression,
                    "subPathExpr and subPath are mutually exclusive",
                );
            }
            descending(expression, &format!("{all}.subPathExpr"), errors);
        }
        propagation(container, mount, &all, errors);
        recursive_read_only(mount, &path, errors);
    }
}

fn propagation(container: &Object, mount: &Object, all: &str, errors: &mut Errors) {
    let mode = text(mount, "mountPropagation");
    if !mount.contains_key("mountPropagation") {
        return;
    }
    let path = format!("{all}.mountPropagation");
    if mode == "Bidirectional" && !flag(below(container, "securityContext"), "privileged") {
        errors.forbidden(
            &path,
            "Bidirectional mount propagation is available only to privileged containers",
        );
    }
    errors.one_of(&path, mode, &["Bidirectional", "HostToContainer", "None"]);
}

fn recursive_read_only(mount: &Object, path: &str, errors: &mut Errors) {
    let mode = text(mount, "recursiveReadOnly");
    if mode.is_empty() || mode == "Disabled" {
        return;
    }
    let field = format!("{path}.recursiveReadOnly");
    if !["Enabled", "IfPossible"].contains(&mode) {
        return errors.one_of(field, mode, &["Disabled", "Enabled", "IfPossible"]);
    }
    if !flag(mount, "readOnly") {
        errors.forbidden(&field, "may only be specified when readOnly is true");
    }
}

fn devices(container: &Object, path: &str, volumes: &Volumes<'_>, errors: &mut Errors) {
    let (mut names, mut paths) = (Vec::new(), Vec::new());
    for (path, device) in items(container, "volumeDevices", path) {
        let (name, place) = (text(device, "name"), text(device, "devicePath"));
        errors.needs(device, &path, "name");
        if names.contains(&name) {
            errors.invalid(format!("{path}.name"), name, "must be unique");
        }
        match volumes.get(name) {
            None => errors.not_found(format!("{path}.name"), name),
            Some(volume)
                if !volume.contains_key("persistentVolumeClaim") && !volume.contains_key("ephemeral") =>
            {
                errors.invalid(
                    format!("{path}.name"),
                    name,
                    "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode",
                );
            }
            Some(_) => {}
        }
        errors.needs(device, &path, "devicePath");
        if !place.is_empty() && paths.contains(&place) {
            errors.invalid(format!("{path}.devicePath"), place, "must be unique");
        }
        if backsteps(place) {
            errors.invalid(
                format!("{path}.devicePath"),
                place,
                "can not contain backsteps ('..')",
            );
        }
        names.push(name);
        paths.push(place);
    }
}

fn resize_policy(container: &Object, path: &str, errors: &mut Errors) {
    let mut seen: Vec<&str> = Vec::new();
    for (_, policy) in items(container, "resizePolicy", path) {
        let path = format!("{path}.resizePolicy");
        let name = text(policy, "resourceName");
        if seen.contains(&name) {
            errors.duplicate(&path, name);
        }
        seen.push(name);
        errors.required_one_of(&path, name, &["cpu", "memory"]);
        errors.required_one_of(
            &path,
            text(policy, "restartPolicy"),
            &["NotRequired", "RestartContainer"],
        );
    }
}

/// A path below a directory: relative, without a step back.
pub(super) fn descending(path: &str, field: &str, errors: &mut Errors) {
    if path.starts_with('/') {
        errors.invalid(field, path, "must be a relative path");
    }
    if backsteps(path) {
        errors.invalid(field, path, "must not contain '..'");
    }
}

/// True if a path steps back.
pub(super) fn backsteps(path: &str) -> bool {
    path.split('/').any(|part| part == "..")
}

/// The mode of a file, when it is given.
pub(super) fn mode(parent: &Object, path: &str, key: &str, errors: &mut Errors) {
    if let Some(mode) = number(parent, key).filter(|mode| !(0..=0o777).contains(mode)) {
        errors.invalid(
            format!("{path}.{key}"),
            mode,
            "must be a number between 0 and 0777 (octal), both inclusive",
        );
    }
}

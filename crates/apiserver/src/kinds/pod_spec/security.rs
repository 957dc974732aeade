//! Security contexts of pods and containers.

use serde_json::Value;

use crate::{
    names,
    object::{
        Object,
        tree::{Errors, below, count, flag, items, list, number, object, text},
    },
};

const MOST: i64 = i32::MAX as i64;

pub(super) fn pod(spec: &Object, path: &str, errors: &mut Errors) {
    let Some(context) = object(spec, "securityContext") else {
        return;
    };
    let path = &format!("{path}.securityContext");
    for key in ["fsGroup", "runAsUser", "runAsGroup"] {
        id(context, path, key, errors);
    }
    for (at, group) in list(context, "supplementalGroups").iter().enumerate() {
        let group = group.as_i64().unwrap_or(0);
        errors.all_invalid(
            &format!("{path}.supplementalGroups[{at}]"),
            group,
            names::in_range(group, 0, MOST),
        );
    }
    let parent = path.trim_end_matches(".securityContext");
    if flag(spec, "shareProcessNamespace") && flag(spec, "hostPID") {
        errors.invalid(
            format!("{path}.shareProcessNamespace"),
            true,
            "ShareProcessNamespace and HostPID cannot both be enabled",
        );
    }
    if flag(spec, "hostNetwork") {
        host_network(spec, parent, errors);
    }
    for (key, possible) in [
        ("fsGroupChangePolicy", ["Always", "OnRootMismatch"]),
        ("supplementalGroupsPolicy", ["Merge", "Strict"]),
        ("seLinuxChangePolicy", ["MountOption", "Recursive"]),
    ] {
        if context.contains_key(key) {
            errors.one_of(format!("{path}.{key}"), text(context, key), &possible);
        }
    }
    let mut seen: Vec<&str> = Vec::new();
    for (path, sysctl) in items(context, "sysctls", path) {
        let name = text(sysctl, "name");
        if name.is_empty() {
            errors.required(format!("{path}.name"), "");
        }
        if seen.contains(&name) {
            errors.duplicate(format!("{path}.name"), name);
        }
        seen.push(name);
    }
    profiles(context, path, errors);
}

fn host_network(spec: &Object, path: &str, errors: &mut Errors) {
    for (path, container) in items(spec, "containers", path) {
        for (path, port) in items(container, "ports", &path) {
            let (host, own) = (count(port, "hostPort"), count(port, "containerPort"));
            if host != own && host != 0 {
                errors.invalid(
                    format!("{path}.containerPort"),
                    own,
                    "must match `hostPort` when `hostNetwork` is true",
                );
            }
        }
    }
}

pub(super) fn container(container: &Object, path: &str, errors: &mut Errors) {
    let Some(context) = object(container, "securityContext") else {
        return;
    };
    let path = &format!("{path}.securityContext");
    for key in ["runAsUser", "runAsGroup"] {
        id(context, path, key, errors);
    }
    if context.contains_key("procMount") {
        errors.one_of(
            format!("{path}.procMount"),
            text(context, "procMount"),
            &["Default", "Unmasked"],
        );
    }
    profiles(context, path, errors);
    if context.get("allowPrivilegeEscalation") != Some(&Value::Bool(false)) {
        return;
    }
    let shown = || Value::Object(context.clone());
    if flag(context, "privileged") {
        errors.invalid(
            path,
            shown(),
            "cannot set `allowPrivilegeEscalation` to false and `privileged` to true",
        );
    }
    let added = list(below(context, "capabilities"), "add");
    if added
        .iter()
        .any(|one| matches!(one.as_str(), Some("CAP_SYS_ADMIN")))
    {
        errors.invalid(
            path,
            shown(),
            "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN",
        );
    }
}

fn id(context: &Object, path: &str, key: &str, errors: &mut Errors) {
    if let Some(id) = number(context, key) {
        errors.all_invalid(&format!("{path}.{key}"), id, names::in_range(id, 0, MOST));
    }
}

/// Seccomp and `AppArmor` profiles.
fn profiles(context: &Object, path: &str, errors: &mut Errors) {
    for key in ["seccompProfile", "appArmorProfile"] {
        let Some(profile) = object(context, key) else {
            continue;
        };
        let path = format!("{path}.{key}");
        let kind = text(profile, "type");
        errors.required_one_of(
            format!("{path}.type"),
            kind,
            &["Localhost", "RuntimeDefault", "Unconfined"],
        );
        let local = profile.contains_key("localhostProfile");
        let field = format!("{path}.localhostProfile");
        match (kind == "Localhost", local, key) {
            (true, false, "seccompProfile") => {
                errors.required(field, "must be set when seccomp type is Localhost");
            }
            (true, false, _) => errors.required(field, "must be set when AppArmor type is Localhost"),
            (false, true, "seccompProfile") => errors.invalid(
                &path,
                Value::Object(profile.clone()),
                "can only be set when seccomp type is Localhost",
            ),
            (false, true, _) => errors.invalid(
                field,
                text(profile, "localhostProfile"),
                "can only be set when AppArmor type is Localhost",
            ),
            _ => {}
        }
    }
}

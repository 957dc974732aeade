//! The defaults of a pod spec. Source: core/v1 defaults of the real server.

use serde_json::{Value, json};

use super::CONTAINERS;
use crate::{
    kinds::amounts,
    object::{
        Object,
        tree::{below, count, default, each, flag, list, made, object, text, within},
    },
};

/// Fills in a pod template: its metadata and its spec.
pub(crate) fn template(parent: &mut Object) {
    let template = made(parent, "template");
    made(template, "metadata");
    spec(made(template, "spec"));
}

/// Fills in the spec of a pod; what templates leave open is filled in too.
pub(crate) fn pod(spec_: &mut Object) {
    default(spec_, "enableServiceLinks", true);
    let host = flag(spec_, "hostNetwork");
    for key in ["containers", "initContainers"] {
        each(spec_, key, |container| {
            requests_from_limits(container);
            if host {
                each(container, "ports", host_port);
            }
        });
    }
    pod_requests(spec_);
    spec(spec_);
}

/// Resources that a whole pod may request.
fn is_of_pods(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with("hugepages-")
}

/// A pod with limits of its own requests what its containers do, else its limits.
fn pod_requests(spec: &mut Object) {
    let limits = object(spec, "resources").map(|resources| below(resources, "limits").clone());
    let Some(limits) = limits.filter(|limits| !limits.is_empty()) else {
        return;
    };
    let mut wanted = limits.clone();
    for (name, like) in &limits {
        let asked = requested(spec, name);
        if asked > 0 && !name.starts_with("hugepages-") {
            wanted.insert(name.clone(), amounts::written(asked, like).into());
        }
    }
    let requests = made(made(spec, "resources"), "requests");
    for (name, amount) in wanted.into_iter().filter(|(name, _)| is_of_pods(name)) {
        requests.entry(name).or_insert(amount);
    }
}

/// The amount that all containers request together, in billionths; init containers run one after the other.
fn requested(spec: &Object, name: &str) -> i128 {
    let of = |container: &Object| {
        let amount = below(below(container, "resources"), "requests").get(name);
        amount.and_then(amounts::nano).unwrap_or(0)
    };
    let containers = |key| list(spec, key).iter().filter_map(Value::as_object);
    let (mut sidecars, mut most) = (0, 0);
    for container in containers("initContainers") {
        if text(container, "restartPolicy") == "Always" {
            sidecars += of(container);
            most = most.max(sidecars);
        } else {
            most = most.max(sidecars + of(container));
        }
    }
    most.max(sidecars + containers("containers").map(of).sum::<i128>())
}

/// Fills in a pod spec, in a pod or in a template.
pub(crate) fn spec(spec: &mut Object) {
    for (key, value) in [
        ("dnsPolicy", "ClusterFirst"),
        ("restartPolicy", "Always"),
        ("schedulerName", "default-scheduler"),
    ] {
        default(spec, key, value);
    }
    default(spec, "terminationGracePeriodSeconds", 30);
    made(spec, "securityContext");
    account(spec);
    each(spec, "volumes", volume);
    for key in CONTAINERS {
        each(spec, key, container);
    }
    each(spec, "topologySpreadConstraints", |_| {});
    if let Some(overhead) = object(spec, "overhead")
        && overhead.is_empty()
    {
        spec.remove("overhead");
    }
}

/// The old name of `serviceAccountName` is kept beside it; given alone it is taken for it.
fn account(spec: &mut Object) {
    let name = match text(spec, "serviceAccountName") {
        "" => text(spec, "serviceAccount").to_owned(),
        name => name.to_owned(),
    };
    for key in ["serviceAccountName", "serviceAccount"] {
        if name.is_empty() {
            spec.remove(key);
        } else {
            spec.insert(key.to_owned(), name.as_str().into());
        }
    }
}

fn container(container: &mut Object) {
    let policy = if is_latest(text(container, "image")) {
        "Always"
    } else {
        "IfNotPresent"
    };
    for (key, value) in [
        ("imagePullPolicy", policy),
        ("terminationMessagePath", "/dev/termination-log"),
        ("terminationMessagePolicy", "File"),
    ] {
        default(container, key, value);
    }
    made(container, "resources");
    each(container, "ports", |port| default(port, "protocol", "TCP"));
    each(container, "env", |variable| {
        within(variable, "valueFrom", |source| {
            field_ref(source);
            within(source, "resourceFieldRef", |field| default(field, "divisor", "0"));
            within(source, "fileKeyRef", |file| default(file, "optional", false));
        });
    });
    for key in ["livenessProbe", "readinessProbe", "startupProbe"] {
        within(container, key, probe);
    }
    within(container, "lifecycle", |lifecycle| {
        for key in ["postStart", "preStop"] {
            within(lifecycle, key, |handler| {
                within(handler, "httpGet", http_get);
            });
        }
    });
    within(container, "securityContext", |context| {
        // The real server has `Default` here since 1.12 and leaves it out.
        if text(context, "procMount").is_empty() {
            context.remove("procMount");
        }
    });
}

fn probe(probe: &mut Object) {
    for (key, value) in [
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ] {
        if count(probe, key) == 0 {
            probe.insert(key.to_owned(), value.into());
        }
    }
    within(probe, "httpGet", http_get);
    within(probe, "grpc", |call| {
        if !call.get("service").is_some_and(Value::is_string) {
            call.insert("service".to_owned(), "".into());
        }
    });
}

fn http_get(get: &mut Object) {
    default(get, "path", "/");
    default(get, "scheme", "HTTP");
}

fn field_ref(source: &mut Object) {
    within(source, "fieldRef", |field| default(field, "apiVersion", "v1"));
}

fn volume(volume: &mut Object) {
    if volume.keys().all(|key| key == "name") {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
    for key in ["secret", "configMap", "downwardAPI", "projected"] {
        within(volume, key, |source| default(source, "defaultMode", 0o644));
    }
    within(volume, "downwardAPI", |source| {
        each(source, "items", downward_item);
    });
    within(volume, "projected", |source| {
        each(source, "sources", |source| {
            within(source, "serviceAccountToken", |token| {
                default(token, "expirationSeconds", 3600);
            });
            within(source, "downwardAPI", |source| {
                each(source, "items", downward_item);
            });
        });
    });
    volume_source(volume);
    within(volume, "image", |image| {
        let policy = if is_latest(text(image, "reference")) {
            "Always"
        } else {
            "IfNotPresent"
        };
        default(image, "pullPolicy", policy);
    });
    within(volume, "ephemeral", |ephemeral| {
        within(ephemeral, "volumeClaimTemplate", |template| {
            made(template, "metadata");
            default(made(template, "spec"), "volumeMode", "Filesystem");
        });
    });
}

/// Fills in the sources that PersistentVolumes have, too.
pub(crate) fn volume_source(volume: &mut Object) {
    within(volume, "hostPath", |path| {
        if !path.get("type").is_some_and(Value::is_string) {
            path.insert("type".to_owned(), "".into());
        }
    });
    within(volume, "iscsi", |iscsi| {
        default(iscsi, "iscsiInterface", "default")
    });
    within(volume, "rbd", |rbd| {
        for (key, value) in [
            ("pool", "rbd"),
            ("user", "admin"),
            ("keyring", "/etc/ceph/keyring"),
        ] {
            default(rbd, key, value);
        }
    });
    within(volume, "azureDisk", |disk| {
        for (key, value) in [
            ("cachingMode", "ReadWrite"),
            ("fsType", "ext4"),
            ("kind", "Shared"),
        ] {
            default(disk, key, value);
        }
        default(disk, "readOnly", false);
    });
    within(volume, "scaleIO", |disk| {
        default(disk, "storageMode", "ThinProvisioned");
        default(disk, "fsType", "xfs");
    });
}

fn downward_item(item: &mut Object) {
    field_ref(item);
    within(item, "resourceFieldRef", |field| default(field, "divisor", "0"));
}

/// A container with only a limit requests as much.
fn requests_from_limits(container: &mut Object) {
    let resources = made(container, "resources");
    let Some(limits) = object(resources, "limits")
        .cloned()
        .filter(|limits| !limits.is_empty())
    else {
        return;
    };
    let requests = made(resources, "requests");
    for (name, amount) in limits {
        requests.entry(name).or_insert(amount);
    }
}

fn host_port(port: &mut Object) {
    if count(port, "hostPort") == 0 && count(port, "containerPort") != 0 {
        let number = count(port, "containerPort");
        port.insert("hostPort".to_owned(), number.into());
    }
}

/// True if an image has the tag `latest`, or neither tag nor digest.
fn is_latest(image: &str) -> bool {
    let (name, digest) = image
        .split_once('@')
        .map_or((image, None), |(name, digest)| (name, Some(digest)));
    let last = name.rsplit('/').next().unwrap_or_default();
    match (last.split_once(':'), digest) {
        (Some((_, tag)), _) => tag == "latest",
        (None, digest) => digest.is_none(),
    }
}

/// The quality of service class of a pod. Only cpu and memory count. Source: the pod's quality of service class.
pub(crate) fn quality(spec: &Object) -> &'static str {
    let mut any = false;
    let mut guaranteed = true;
    let containers = list(spec, "containers")
        .iter()
        .chain(list(spec, "initContainers"));
    let pod = object(spec, "resources").filter(|resources| !resources.is_empty());
    let resources: Vec<&Object> = match pod {
        Some(resources) => vec![resources],
        None => containers
            .filter_map(Value::as_object)
            .filter_map(|container| object(container, "resources"))
            .collect(),
    };
    for resources in resources {
        for name in ["cpu", "memory"] {
            let amount = |kind: &str| {
                object(resources, kind)
                    .and_then(|amounts| amounts.get(name))
                    .filter(|amount| super::resources::amount(amount) != Some(0))
            };
            let (request, limit) = (amount("requests"), amount("limits"));
            any |= request.is_some() || limit.is_some();
            guaranteed &= limit.is_some() && request.is_none_or(|request| Some(request) == limit);
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

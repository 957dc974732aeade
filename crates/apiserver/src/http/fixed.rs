//! Paths outside the API: health, version, the list of paths, the keys of service account tokens.

use serde_json::{Value, json};

use crate::{discovery, query::Query, server::Server};

/// The answer of such a path.
pub(super) enum Fixed {
    /// Text with its code.
    Text(u16, String),
    /// JSON, only for GET.
    Json(Value),
    /// The same, with a media type of its own.
    JsonAs(&'static str, Value),
}

/// The checks of `/livez` in their order; `/healthz` and `/readyz` have nearly the same.
const CHECKS: &[&str] = &[
    "ping",
    "log",
    "loopback-serving-certificate",
    "etcd",
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/generic-apiserver-start-informers",
    "poststarthook/priority-and-fairness-config-consumer",
    "poststarthook/priority-and-fairness-filter",
    "poststarthook/storage-object-count-tracker-hook",
    "poststarthook/start-apiextensions-informers",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/peer-endpoint-reconciler-controller",
    "poststarthook/start-cluster-authentication-info-controller",
    "poststarthook/start-kube-apiserver-identity-lease-controller",
    "poststarthook/start-kube-apiserver-identity-lease-garbage-collector",
    "poststarthook/storage-readiness",
    "poststarthook/start-legacy-token-tracking-controller",
    "poststarthook/start-service-ip-repair-controllers",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "poststarthook/priority-and-fairness-config-producer",
    "poststarthook/bootstrap-controller",
    "poststarthook/start-kubernetes-service-cidr-controller",
    "poststarthook/start-kube-aggregator-informers",
    "poststarthook/apiservice-status-local-available-controller",
    "poststarthook/apiservice-status-remote-available-controller",
    "poststarthook/apiservice-registration-controller",
    "poststarthook/apiservice-wait-for-first-sync",
    "poststarthook/apiservice-discovery-controller",
    "poststarthook/kube-apiserver-autoregistration",
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
];

/// The checks that only `/readyz` has.
const READY: &[&str] = &["informer-sync", "shutdown"];

/// Paths that are always there, beside health checks and groups.
const PATHS: &[&str] = &[
    "/.well-known/openid-configuration",
    "/api",
    "/api/v1",
    "/apis",
    "/apis/",
    "/flagz",
    "/healthz",
    "/livez",
    "/metrics",
    "/metrics/slis",
    "/openapi/v2",
    "/openapi/v3",
    "/openapi/v3/",
    "/openid/v1/jwks",
    "/readyz",
    "/statusz",
    "/version",
];

/// The answer of a path outside the API; `None` when there is none.
pub(super) fn answer(cluster: &Server, path: &str, query: &Query) -> Option<Fixed> {
    match path {
        "/" | "/index.html" => Some(Fixed::Json(json!({"paths": paths(cluster)}))),
        "/version" | "/version/" => Some(Fixed::Json(version())),
        "/.well-known/openid-configuration" => Some(Fixed::JsonAs(
            "application/json",
            json!({
                "issuer": crate::auth::token::ISSUER,
                "jwks_uri": format!("{}/openid/v1/jwks", crate::auth::token::ISSUER),
                "response_types_supported": ["id_token"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["ES256"],
            }),
        )),
        "/openid/v1/jwks" => Some(Fixed::JsonAs(
            "application/jwk-set+json",
            cluster.auth.key(&cluster.store).jwks(),
        )),
        "/metrics" => {
            let text = format!(
                "# TYPE apiserver_storage_revision counter\napiserver_storage_revision {}\n",
                cluster.store.revision()
            );
            Some(Fixed::Text(200, text))
        }
        _ => health(path, query),
    }
}

/// The answer of `/version`: that of a server which the clients of this release accept as one of theirs.
#[must_use]
pub(super) fn version() -> Value {
    json!({
        "major": "1", "minor": "36", "emulationMajor": "1", "emulationMinor": "36",
        "minCompatibilityMajor": "1", "minCompatibilityMinor": "35", "gitVersion": "v1.36.2",
        "gitCommit": "$Format:%H$", "gitTreeState": "", "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "go1.27.3", "compiler": "gc", "platform": "linux/amd64",
    })
}

fn health(path: &str, query: &Query) -> Option<Fixed> {
    let (door, check) = match path.get(1..)?.split_once('/') {
        Some((door, check)) => (door, Some(check)),
        None => (path.get(1..)?, None),
    };
    let checks: Vec<&str> = match door {
        "healthz" | "livez" => CHECKS.to_vec(),
        "readyz" => {
            let own = CHECKS
                .iter()
                .filter(|check| **check != "etcd" && **check != "loopback-serving-certificate");
            own.chain(READY).copied().collect()
        }
        _ => return None,
    };
    if let Some(check) = check {
        return checks.contains(&check).then(|| Fixed::Text(200, "ok".to_owned()));
    }
    if query.get("verbose").is_none() {
        return Some(Fixed::Text(200, "ok".to_owned()));
    }
    let excluded: Vec<&str> = query.all("exclude").collect();
    let mut text = String::new();
    for check in &checks {
        let state = if excluded.contains(check) {
            "excluded: ok"
        } else {
            "ok"
        };
        text += &format!("[+]{check} {state}\n");
    }
    let unknown: Vec<String> = excluded
        .iter()
        .filter(|name| !checks.contains(name))
        .map(|name| format!("{name:?}"))
        .collect();
    if !unknown.is_empty() {
        text += &format!(
            "warn: some health checks cannot be excluded: no matches for {}\n",
            unknown.join(",")
        );
    }
    text += &format!("{door} check passed\n");
    Some(Fixed::Text(200, text))
}

fn paths(cluster: &Server) -> Vec<String> {
    let mut paths: Vec<String> = PATHS.iter().map(|&path| path.to_owned()).collect();
    for (door, extra) in [("healthz", &[][..]), ("livez", &[]), ("readyz", READY)] {
        paths.extend(CHECKS.iter().chain(extra).map(|check| format!("/{door}/{check}")));
    }
    for (group, versions) in discovery::groups(&cluster.kinds()) {
        paths.extend(versions.iter().map(|version| format!("/apis/{group}/{version}")));
        paths.push(format!("/apis/{group}"));
    }
    paths.sort();
    paths
}

//! What the hub's API server is told: which writes to send to the webhook. Made from [`RULES`] and [`KINDS`].

use serde_json::{Value, json};

use super::{Act, KINDS, Kind, Kinds, RULES};
use entourage_api::keys::{DELETION_PROTECTED_ALWAYS, label};

/// The name of both configurations.
pub const NAME: &str = "entourage";

/// Where defaults are asked for.
pub const MUTATE_PATH: &str = "/mutate";

/// Where judgement is asked for.
pub const VALIDATE_PATH: &str = "/validate";

/// How long the API server waits for an answer without which nothing is written, in seconds.
const TIMEOUT: i64 = 3;

/// How long it waits for the defaults of a change, and then for judgement on it, in seconds. A webhook that hangs costs the
/// control plane both each time it writes a policy, and both twice when it takes the last finalizer off: an API server goes
/// through such a write again. All of it ends before the control plane's own deadline, five seconds, else no such write
/// would ever succeed.
const TIMEOUT_OF_CHANGES: i64 = 1;

/// Where the webhook is, seen from the hub's API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Service on the hub.
    Service {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Its port.
        port: u16,
    },
    /// `https://host[:port]`, without a path.
    Url(String),
}

impl Address {
    /// `clientConfig` for a path. `bundle`: the certificate of the authority, base64 of PEM.
    fn client(&self, path: &str, bundle: &str) -> Value {
        match self {
            Self::Service {
                namespace,
                name,
                port,
            } => {
                let service = json!({"namespace": namespace, "name": name, "port": port, "path": path});
                json!({"caBundle": bundle, "service": service})
            }
            Self::Url(url) => {
                json!({"caBundle": bundle, "url": format!("{}{path}", url.trim_end_matches('/'))})
            }
        }
    }

    /// The host names and addresses that the certificate must be for.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        match self {
            Self::Service { namespace, name, .. } => ["", ".cluster.local"]
                .map(|end| format!("{name}.{namespace}.svc{end}"))
                .into(),
            Self::Url(url) => {
                let rest = url.strip_prefix("https://").unwrap_or(url);
                let authority = rest.split('/').next().unwrap_or_default();
                let host = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
                    Some((address, _)) => address,
                    None => authority.split(':').next().unwrap_or_default(),
                };
                vec![host.to_owned()]
            }
        }
    }

    /// Whether nobody but this machine can reach it: then it serves for trying things out.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.names()
            .iter()
            .any(|name| name == "localhost" || name == "::1" || name.starts_with("127."))
    }
}

/// The MutatingWebhookConfiguration and the ValidatingWebhookConfiguration (`admissionregistration.k8s.io/v1`).
///
/// Nothing new is taken without us (`Fail`), but for kinds of which nothing is refused, only warned about. A change of what is there passes while we are down (`Ignore`): ids, finalizers
/// and their removal are changes too, and whoever writes those (we, the hub's garbage collector) must not wait for a
/// webhook; what a user changes meanwhile is judged when it is planned. What only the control plane makes is not sent at
/// all. Deletions are sent for labelled objects only, so that an end of ours leaves the rest deletable.
#[must_use]
pub fn configurations(address: &Address, bundle: &str) -> [Value; 2] {
    let hook = |name: &str, path: &str, rules: Value, policy: &str, timeout: i64| {
        json!({"name": format!("{name}.webhook.entourage.dev"), "clientConfig": address.client(path, bundle),
            "rules": rules, "failurePolicy": policy, "matchPolicy": "Equivalent", "sideEffects": "None",
            "timeoutSeconds": timeout, "admissionReviewVersions": ["v1"]})
    };
    let written = |kinds: &[&Kind], operation: &str| {
        let rules = groups(kinds).into_iter().map(|(group, resources)| {
            json!({"apiGroups": [group], "apiVersions": ["*"], "resources": resources,
                "operations": [operation], "scope": "*"})
        });
        Value::Array(rules.collect())
    };
    let kinds = |wanted: fn(&Act) -> bool| -> Vec<&Kind> {
        KINDS.iter().filter(|kind| has_rule(kind, wanted)).collect()
    };
    let filled = kinds(|act| matches!(act, Act::Fill(_)));
    let told = kinds(|act| !matches!(act, Act::Fill(_) | Act::Keep(_)));
    let (judged, warned): (Vec<&Kind>, Vec<&Kind>) = told.iter().partition(|kind| {
        let refuses = |act: &Act| !matches!(act, Act::Fill(_) | Act::Keep(_) | Act::Warn(_));
        has_rule(kind, refuses)
    });
    let made = |name, path, kinds| hook(name, path, written(kinds, "CREATE"), "Fail", TIMEOUT);
    let changed = |name, path, kinds| {
        let rules = written(kinds, "UPDATE");
        hook(name, path, rules, "Ignore", TIMEOUT_OF_CHANGES)
    };
    let mut changes = changed("changed-policies", VALIDATE_PATH, &told);
    if let (Some(rules), Value::Array(made)) = (changes["rules"].as_array_mut(), written(&warned, "CREATE")) {
        rules.extend(made);
    }
    let mut protection = hook(
        "deletion-protection",
        VALIDATE_PATH,
        json!([{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["DELETE"], "scope": "*"}]),
        "Fail",
        TIMEOUT,
    );
    protection["objectSelector"] =
        json!({"matchLabels": {label::DELETION_PROTECTED: DELETION_PROTECTED_ALWAYS}});
    let mutating = [
        made("defaults", MUTATE_PATH, &filled),
        changed("changed-defaults", MUTATE_PATH, &filled),
    ];
    let validating = [made("policies", VALIDATE_PATH, &judged), changes, protection];
    let whole = |kind: &str, webhooks: &[Value]| {
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": NAME, "labels": {"app.kubernetes.io/part-of": "entourage"}}, "webhooks": webhooks})
    };
    [
        whole("MutatingWebhookConfiguration", &mutating),
        whole("ValidatingWebhookConfiguration", &validating),
    ]
}

fn has_rule(kind: &Kind, wanted: impl Fn(&Act) -> bool) -> bool {
    RULES.iter().any(|rule| {
        let is_its = matches!(rule.on, Kinds::These(kinds) if kinds.contains(kind));
        is_its && wanted(&rule.act)
    })
}

/// Kinds by group, in the order of the table.
fn groups(kinds: &[&Kind]) -> Vec<(&'static str, Vec<&'static str>)> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for kind in kinds {
        match groups.iter_mut().find(|(group, _)| *group == kind.group) {
            Some((_, plurals)) => plurals.push(kind.plural),
            None => groups.push((kind.group, vec![kind.plural])),
        }
    }
    groups
}

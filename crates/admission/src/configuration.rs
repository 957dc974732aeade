//! The webhook configurations for the hub's API server. Made from [`RULES`] and [`KINDS`].

use serde_json::{Value, json};

use crate::table::{Act, KINDS, Kind, Kinds, RULES};
use entourage_api::keys::{DELETION_PROTECTED_ALWAYS, label};

/// The name of both configurations.
pub const NAME: &str = "entourage";

/// The path of the mutating webhook.
pub const MUTATE_PATH: &str = "/mutate";

/// The path of the validating webhook.
pub const VALIDATE_PATH: &str = "/validate";

/// The timeout of the API server for a webhook without whose response nothing is written, in seconds.
const TIMEOUT: i64 = 3;

/// The timeout for the defaults of a change, and then for its validation, in seconds. A webhook that hangs costs the control
/// plane both each time it writes a policy, and both twice when it removes the last finalizer: an API server processes such a
/// write again. The sum is below the control plane's own deadline, five seconds, else no such write would ever succeed.
const TIMEOUT_OF_CHANGES: i64 = 1;

/// The address of the webhook, as the hub's API server reaches it.
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

    /// True if it is a loopback address: then it is for local tests.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.names()
            .iter()
            .any(|name| name == "localhost" || name == "::1" || name.starts_with("127."))
    }
}

/// The MutatingWebhookConfiguration and the ValidatingWebhookConfiguration (`admissionregistration.k8s.io/v1`).
///
/// A create is refused without the webhook (`Fail`), except for kinds that only have warnings. A change is accepted while the
/// webhook is down (`Ignore`): writes of ids and finalizers are changes too, and their writers (this control plane, the hub's
/// garbage collector) must not wait for a webhook; what a user changes meanwhile is checked when it is planned. Kinds that only
/// the control plane writes are not sent at all. Deletions are sent for labelled objects only, so that all others can be deleted
/// after the webhook is gone.
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
    let validated = kinds(|act| !matches!(act, Act::Fill(_) | Act::Keep(_)));
    let (refusing, warning): (Vec<&Kind>, Vec<&Kind>) = validated.iter().partition(|kind| {
        let refuses = |act: &Act| !matches!(act, Act::Fill(_) | Act::Keep(_) | Act::Warn(_));
        has_rule(kind, refuses)
    });
    let made = |name, path, kinds| hook(name, path, written(kinds, "CREATE"), "Fail", TIMEOUT);
    let changed = |name, path, kinds| {
        let rules = written(kinds, "UPDATE");
        hook(name, path, rules, "Ignore", TIMEOUT_OF_CHANGES)
    };
    let mut changes = changed("changed-policies", VALIDATE_PATH, &validated);
    if let (Some(rules), Value::Array(made)) = (changes["rules"].as_array_mut(), written(&warning, "CREATE"))
    {
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
    let validating = [made("policies", VALIDATE_PATH, &refusing), changes, protection];
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

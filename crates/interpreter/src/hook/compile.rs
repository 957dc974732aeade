//! Compiles configurations to hooks.
//!
//! A webhook that cannot be called as it is configured becomes a hook that returns this error for every question: it keeps its
//! kinds, and nothing is concluded from a response that it could not give.

use std::time::Duration;

use entourage_api::config::{
    ResourceExploringWebhookConfiguration, ResourceInterpreterWebhookConfiguration,
    explorer::{FailurePolicy, RuleScope},
    hook::{ServiceReference, WebhookClientConfig},
};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::{Address, Call, CallError, Contract, Hook, Policy, Rule, VERSIONS};

/// The default timeout of a hook, in seconds.
const TIMEOUT: i32 = 10;

/// The maximum length of a URL or path, in bytes.
const LONGEST: usize = 2048;

impl Hook {
    /// The hooks of a configuration, in its order. None of them has the policy Ignore: Karmada's contract has no policy.
    #[must_use]
    pub fn interpreters(configuration: &ResourceInterpreterWebhookConfiguration) -> Vec<Self> {
        let of = configuration.metadata.name.as_deref().unwrap_or_default();
        let hook = |entry: &entourage_api::config::interpreter::InterpreterWebhook| {
            let rules = entry.rules.iter().map(|rule| Rule {
                operations: rule.operations.clone(),
                groups: rule.api_groups.clone(),
                versions: rule.api_versions.clone(),
                names: rule.kinds.clone(),
                is_namespaced: None,
            });
            let timeout = entry.timeout_seconds.unwrap_or(TIMEOUT);
            let versions = (
                "interpreterContextVersions",
                entry.interpreter_context_versions.as_slice(),
            );
            Self {
                name: format!("{of}/{}", entry.name),
                version: version(entry),
                meaning: meaning(&entry.rules, &entry.client_config),
                contract: Contract::Interpreter,
                policy: Policy::Fail,
                rules: rules.collect(),
                call: call(&entry.client_config, timeout, versions)
                    .map_err(|wrong| wrong.of(of, &entry.name)),
            }
        };
        configuration.spec.webhooks.iter().map(hook).collect()
    }

    /// As [`Self::interpreters`], of the other contract.
    #[must_use]
    pub fn explorers(configuration: &ResourceExploringWebhookConfiguration) -> Vec<Self> {
        let of = configuration.metadata.name.as_deref().unwrap_or_default();
        let hook = |entry: &entourage_api::config::explorer::ExploringWebhook| {
            let rules = entry.rules.iter().map(|rule| Rule {
                operations: rule.operations.clone(),
                groups: rule.api_groups.clone(),
                versions: rule.api_versions.clone(),
                names: rule.resources.clone(),
                is_namespaced: match rule.scope {
                    Some(RuleScope::Cluster) => Some(false),
                    Some(RuleScope::Namespaced) => Some(true),
                    Some(RuleScope::All) | None => None,
                },
            });
            let versions = ("exploreReviewVersions", entry.explore_review_versions.as_slice());
            Self {
                name: format!("{of}/{}", entry.name),
                version: version(entry),
                meaning: meaning(&entry.rules, &entry.client_config),
                contract: Contract::Explorer,
                policy: match entry.failure_policy {
                    FailurePolicy::Fail => Policy::Fail,
                    FailurePolicy::Ignore => Policy::Ignore,
                },
                rules: rules.collect(),
                call: call(&entry.client_config, entry.timeout_seconds, versions)
                    .map_err(|wrong| wrong.of(of, &entry.name)),
            }
        };
        configuration.spec.webhooks.iter().map(hook).collect()
    }
}

fn call(
    client: &WebhookClientConfig,
    timeout: i32,
    (field, versions): (&'static str, &[String]),
) -> Result<Call, CallError> {
    let address = address(client)?;
    let timeout = u64::try_from(timeout)
        .ok()
        .filter(|seconds| (1..=30).contains(seconds))
        .ok_or_else(|| {
            let cause = format!("{timeout} is out of range");
            wrong("timeoutSeconds", cause, "give 1 to 30")
        })?;
    let spoken = |theirs: &String| VERSIONS.iter().find(|ours| *ours == theirs);
    let version = versions.iter().find_map(spoken).ok_or_else(|| {
        let ours = VERSIONS.join(" or ");
        wrong(field, "none of them is supported", format!("add {ours}"))
    })?;
    let bundle = client.ca_bundle.as_ref().map(|bundle| bundle.0.clone());
    Ok(Call {
        address,
        ca_bundle: bundle.filter(|bundle| !bundle.is_empty()),
        timeout: Duration::from_secs(timeout),
        version,
    })
}

fn address(client: &WebhookClientConfig) -> Result<Address, CallError> {
    let url = client.url.as_deref().filter(|url| !url.is_empty());
    match (url, &client.service) {
        (Some(url), None) => self::url(url),
        (None, Some(reference)) => service(reference),
        _ => Err(wrong(
            "clientConfig",
            "a hook is at a url or behind a service",
            "give one of the two",
        )),
    }
}

/// Reads `https://host[:port][/path]`. Source: Kubernetes, WebhookClientConfig: no user, no query and no fragment.
fn url(url: &str) -> Result<Address, CallError> {
    let wrong = |cause: &str, remedy: &str| wrong("clientConfig.url", cause, remedy);
    let Some(rest) = url.strip_prefix("https://") else {
        return Err(wrong(
            "it does not begin with https://",
            "hooks are called over TLS only",
        ));
    };
    let authority = &rest[..rest.find('/').unwrap_or(rest.len())];
    let path = &rest[authority.len()..];
    if url.len() > LONGEST || authority.contains('@') || !is_plain(authority) || !is_path(path) {
        return Err(wrong(
            "it has a user, a query, a fragment or characters that are not allowed in a URL",
            "give https://host:port/path",
        ));
    }
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => {
            let port = port.parse().ok().filter(|port| *port > 0);
            (
                host,
                port.ok_or_else(|| wrong("its port is not a number from 1 to 65535", "correct it"))?,
            )
        }
        _ => (authority, 443),
    };
    let is_in_brackets = host.starts_with('[') && host.ends_with(']');
    if host.is_empty() || !is_in_brackets && host.contains([':', '[', ']']) {
        return Err(wrong("it has no host", "give https://host:port/path"));
    }
    Ok(Address::Url {
        host: host.to_ascii_lowercase(),
        port,
        path: rooted(path),
    })
}

fn service(reference: &ServiceReference) -> Result<Address, CallError> {
    let name = |field, name: &str| {
        let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let is_name = (1..=63).contains(&name.len())
            && name.chars().all(is_inner)
            && !name.starts_with('-')
            && !name.ends_with('-');
        let why = || {
            let remedy = "name the Service that the hook is behind";
            wrong(field, "it is not a name", remedy)
        };
        is_name.then(|| name.to_owned()).ok_or_else(why)
    };
    let port = reference.port.unwrap_or(443);
    let port = u16::try_from(port).ok().filter(|port| *port > 0);
    let path = reference.path.as_deref().unwrap_or_default();
    if path.len() > LONGEST || !is_path(path) {
        let cause = "it has characters that are not allowed in a path";
        return Err(wrong("clientConfig.service.path", cause, "begin it with a slash"));
    }
    Ok(Address::Service {
        namespace: name("clientConfig.service.namespace", &reference.namespace)?,
        name: name("clientConfig.service.name", &reference.name)?,
        port: port.ok_or_else(|| {
            let remedy = "give a number from 1 to 65535";
            wrong("clientConfig.service.port", "it is not a port", remedy)
        })?,
        path: rooted(path),
    })
}

/// True if all characters are valid in a host.
fn is_plain(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~:[]".contains(c);
    text.chars().all(is_plain)
}

/// True if all characters are valid in a path (RFC 3986, section 3.3).
fn is_path(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~:@!$&'()*+,;=/%".contains(c);
    text.chars().all(is_plain)
}

fn rooted(path: &str) -> String {
    let slash = if path.starts_with('/') { "" } else { "/" };
    format!("{slash}{path}")
}

fn wrong(field: &'static str, cause: impl Into<String>, remedy: impl Into<String>) -> CallError {
    CallError {
        hook: String::new(),
        field,
        cause: cause.into(),
        remedy: remedy.into(),
    }
}

impl CallError {
    fn of(self, configuration: &str, hook: &str) -> Self {
        Self {
            hook: format!("{configuration}/{hook}"),
            ..self
        }
    }
}

/// As [`version`], of the fields that may change its responses: a renewed certificate does not.
fn meaning(rules: &impl Serialize, client: &WebhookClientConfig) -> String {
    version(&(rules, &client.url, &client.service))
}

/// Ten hex digits that change whenever the entry does.
fn version(entry: &impl Serialize) -> String {
    let bytes = serde_json::to_vec(entry).unwrap_or_default();
    let hash = Sha256::digest(bytes);
    hash[..5].iter().map(|byte| format!("{byte:02x}")).collect()
}

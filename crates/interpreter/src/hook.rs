//! Webhooks that interpret objects of some kinds: the choice of the hook, the protocol, and the meaning of a response.
//!
//! Two contracts are supported by one engine: `ResourceInterpreterContext`, for the existing hooks of Karmada's users, and
//! `ExploreReview`, the form in the proposal of the hooks. This module sends nothing: the shell sends the result of
//! [`Hook::request`] and passes the response to [`Hook::answer`].
//!
//! | module | content |
//! |---|---|
//! | `compile` | from a configuration to [`Hook`]s; an invalid one keeps its kinds and returns its error |
//! | `request`, `answer` | the two wire formats |
//! | `patch` | JSON patches, with limits |
//! | [`mod@service`] | the address of a Service reference |
//! | [`mod@breaker`] | the back-off of a hook that does not respond |
//! | [`mod@answers`] | the response cache |
//!
//! Source: Karmada reference 3.4 and 3.5; the proposal of the exploring webhooks (seed 003).

use std::{borrow::Cow, collections::BTreeSet, fmt, sync::Arc, time::Duration};

pub use crate::operations::Contract;
use crate::operations::Operation;
use entourage_model::object::Gvk;

mod answer;
pub mod answers;
pub mod breaker;
mod compile;
mod patch;
mod request;
pub mod service;
#[cfg(test)]
mod tests;

pub use answer::LARGEST;
pub use answers::Answers;
pub use breaker::Breaker;

/// The supported versions of the messages, of either contract.
pub const VERSIONS: &[&str] = &["v1alpha1"];

/// The names of a kind, and whether it is namespaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject<'a> {
    /// API group; empty for the core group.
    pub group: &'a str,
    /// API version within the group.
    pub version: &'a str,
    /// Kind.
    pub kind: &'a str,
    /// The plural name in addresses, such as `deployments`.
    pub resource: &'a str,
    /// True if it is namespaced.
    pub is_namespaced: bool,
}

impl Subject<'_> {
    /// True for Secrets, which no wildcard matches.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        self.group.is_empty() && (self.kind == "Secret" || self.resource == "secrets")
    }
}

/// One webhook of a configuration.
#[derive(Clone)]
pub struct Hook {
    name: String,
    version: String,
    meaning: String,
    contract: Contract,
    policy: Policy,
    rules: Vec<Rule>,
    /// The connection settings, or the error in them. A hook with an error keeps its kinds: an intended interpreter must not be
    /// ignored.
    call: Result<Call, CallError>,
}

/// The consequence if a hook does not respond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Nothing proceeds until it responds.
    Fail,
    /// The next layer is used, as if there were no hook.
    Ignore,
}

/// The error in the connection settings of a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallError {
    /// `<configuration>/<webhook>`.
    pub hook: String,
    /// The field of the webhook.
    pub field: &'static str,
    /// The cause.
    pub cause: String,
    /// The change that its author should make.
    pub remedy: String,
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            hook,
            field,
            cause,
            remedy,
        } = self;
        write!(f, "webhook {hook} cannot be called: {field}: {cause}; {remedy}")
    }
}

/// The connection settings of a hook.
#[derive(Clone, PartialEq, Eq)]
pub struct Call {
    /// The address.
    pub address: Address,
    /// The trusted certificates, PEM; `None` for those that the system trusts.
    pub ca_bundle: Option<Vec<u8>>,
    /// The timeout.
    pub timeout: Duration,
    /// The version of the messages, one of [`VERSIONS`].
    pub version: &'static str,
}

/// The address of a hook. The path begins with a slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A host.
    Url {
        /// Name or IP address, an IPv6 address in brackets.
        host: String,
        /// Port.
        port: u16,
        /// Path.
        path: String,
    },
    /// Behind a Service.
    Service {
        /// The Service's namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Port of the Service.
        port: u16,
        /// Path.
        path: String,
    },
}

impl Address {
    /// The host name that is resolved and that the certificate must be for, in the form of a URL's host.
    #[must_use]
    pub fn host(&self) -> Cow<'_, str> {
        match self {
            Self::Url { host, .. } => Cow::Borrowed(host),
            Self::Service { namespace, name, .. } => Cow::Owned(format!("{name}.{namespace}.svc")),
        }
    }

    /// Port and path.
    #[must_use]
    pub fn port_and_path(&self) -> (u16, &str) {
        match self {
            Self::Url { port, path, .. } | Self::Service { port, path, .. } => (*port, path),
        }
    }
}

/// One rule of a hook: all five fields must match. A list has `*` or the values that match.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    /// Kinds in Karmada's contract, plural names in the other.
    names: Vec<String>,
    /// `None`: both scopes.
    is_namespaced: Option<bool>,
}

/// The hook for a kind: of those with a rule for it and the operation the one with the smallest name, or `None`. A Secret is
/// sent only to a hook with a rule that names Secrets literally (architecture 2.15). Source: Karmada reference 3.4.
///
/// Cost: O(rules of all hooks).
#[must_use]
pub fn choose<'h>(
    hooks: impl IntoIterator<Item = &'h Hook>,
    subject: &Subject<'_>,
    operation: Operation,
) -> Option<&'h Hook> {
    let fitting = hooks.into_iter().filter(|hook| hook.is_about(subject, operation));
    fitting.min_by(|one, other| one.name.cmp(&other.name))
}

/// The hooks that may match a kind, by name, with their operations; whether one matches depends on the plural of the kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Candidates(pub(super) Vec<(Arc<Hook>, BTreeSet<Operation>)>);

impl Candidates {
    /// Cost: O(rules of all hooks).
    pub(super) fn of(hooks: &[Arc<Hook>], gvk: &Gvk) -> Self {
        let candidate = |hook: &Arc<Hook>| {
            let operations = hook.operations(gvk);
            (!operations.is_empty()).then(|| (hook.clone(), operations))
        };
        let mut all: Vec<_> = hooks.iter().filter_map(candidate).collect();
        all.sort_by(|one, other| one.0.name.cmp(&other.0.name));
        Self(all)
    }

    /// The hooks for an operation.
    pub(super) fn for_operation(&self, operation: Operation) -> impl Iterator<Item = &Hook> {
        let fitting = self
            .0
            .iter()
            .filter(move |(_, operations)| operations.contains(&operation));
        fitting.map(|(hook, _)| &**hook)
    }
}

impl Hook {
    /// `<configuration>/<webhook>`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The version, which changes with the configuration of the hook.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// As [`Self::version`], of the fields that may change its responses.
    pub(super) fn meaning(&self) -> &str {
        &self.meaning
    }

    /// Its contract.
    #[must_use]
    pub const fn contract(&self) -> Contract {
        self.contract
    }

    /// The consequence if it does not respond.
    #[must_use]
    pub const fn policy(&self) -> Policy {
        self.policy
    }

    /// Its connection settings.
    ///
    /// # Errors
    /// The error in them: the hook, the field and a remedy.
    pub fn call(&self) -> Result<&Call, &CallError> {
        self.call.as_ref()
    }

    /// The name of its layer, for a user: `ResourceInterpreterWebhookConfiguration "<configuration>/<webhook>"`.
    #[must_use]
    pub fn layer(&self) -> String {
        format!("{} {:?}", self.contract.configuration(), self.name)
    }

    /// The operations that its rules may match, for a kind.
    fn operations(&self, gvk: &Gvk) -> BTreeSet<Operation> {
        let rules = self
            .rules
            .iter()
            .filter(|rule| rule.may_be_about(self.contract, gvk));
        let named = rules.flat_map(|rule| &rule.operations);
        named.flat_map(|word| self.contract.operations(word)).collect()
    }

    /// True if one of its rules matches this operation on this kind. Cost: O(its rules).
    #[must_use]
    pub fn is_about(&self, subject: &Subject<'_>, operation: Operation) -> bool {
        let Some(word) = self.contract.word(operation) else {
            return false;
        };
        let is_literal = Contract::is_named_only(operation);
        self.rules.iter().any(|rule| {
            let names = |each: &String| each == word || each == "*" && !is_literal;
            rule.operations.iter().any(names) && rule.is_about(self.contract, subject)
        })
    }
}

/// The plural of a Kubernetes kind.
fn plural(kind: &str) -> String {
    let kind = kind.to_lowercase();
    match kind.strip_suffix('y') {
        _ if kind == "endpoints" => kind,
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ if kind.ends_with(['s', 'x']) || kind.ends_with("ch") => format!("{kind}es"),
        _ => format!("{kind}s"),
    }
}

impl Rule {
    /// True if it may match the kind, whatever its plural and scope.
    fn may_be_about(&self, contract: Contract, gvk: &Gvk) -> bool {
        let has = |list: &[String], what: &str| list.iter().any(|each| each == what);
        let fits = |list: &[String], what: &str| has(list, "*") || has(list, what);
        let is_secret = gvk.group.is_empty() && *gvk.kind == *"Secret";
        let is_named = match (contract, is_secret) {
            (Contract::Interpreter, true) => has(&self.names, "Secret"),
            (Contract::Interpreter, false) => fits(&self.names, &gvk.kind),
            (Contract::Explorer, true) => has(&self.names, "secrets"),
            // The plural of a custom kind is unknown here.
            (Contract::Explorer, false) if gvk.group.contains('.') => !self.names.is_empty(),
            (Contract::Explorer, false) => {
                let name = plural(&gvk.kind);
                has(&self.names, "*") || has(&self.names, "*/*") || has(&self.names, &name)
            }
        };
        is_named && fits(&self.groups, &gvk.group) && fits(&self.versions, &gvk.version)
    }

    fn is_about(&self, contract: Contract, subject: &Subject<'_>) -> bool {
        let has = |list: &[String], what: &str| list.iter().any(|each| each == what);
        let fits = |list: &[String], what: &str| has(list, "*") || has(list, what);
        let (name, everything) = match contract {
            Contract::Interpreter => (subject.kind, has(&self.names, "*")),
            // `*/*` matches all resources and subresources.
            Contract::Explorer => (subject.resource, has(&self.names, "*") || has(&self.names, "*/*")),
        };
        fits(&self.groups, subject.group)
            && fits(&self.versions, subject.version)
            && (has(&self.names, name) || everything && !subject.is_secret())
            && self
                .is_namespaced
                .is_none_or(|is_namespaced| is_namespaced == subject.is_namespaced)
    }
}

/// The address and the error; not the certificates.
impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hook")
            .field("name", &self.name)
            .field("version", &self.version)
            .field("contract", &self.contract)
            .field("policy", &self.policy)
            .field("call", &self.call)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("address", &self.address)
            .field("timeout", &self.timeout)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

/// Two hooks with the same name and version are equal.
impl PartialEq for Hook {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.version, self.contract) == (&other.name, &other.version, other.contract)
    }
}

impl Eq for Hook {}

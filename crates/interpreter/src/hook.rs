//! Interpreter webhooks: which one answers for an object, what it is sent, and what its response means.
//!
//! Two contracts are spoken over one engine: `ResourceInterpreterContext`, which Karmada's users have hooks for, and
//! `ExploreReview`, the form that the proposal of the hooks had. Nothing here speaks to anybody: the shell sends what
//! [`Hook::request`] makes and gives what came back to [`Hook::answer`].
//!
//! | module | what it knows |
//! |---|---|
//! | `compile` | from a configuration to [`Hook`]s; a bad one keeps its kinds and says what is wrong with it |
//! | `request`, `answer` | the two wire forms |
//! | `patch` | JSON patches, bounded |
//! | [`mod@service`] | where the Service of a reference is |
//! | [`mod@breaker`] | when a hook that does not answer is left alone |
//! | [`mod@answers`] | answers that may be used again |
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

/// The versions of the messages that are spoken, of either contract.
pub const VERSIONS: &[&str] = &["v1alpha1"];

/// What a kind is called, and whether its objects lie in namespaces.
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
    /// Whether its objects lie in namespaces.
    pub is_namespaced: bool,
}

impl Subject<'_> {
    /// Whether its objects are Secrets, which no wildcard covers.
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
    /// How it is called, or why it cannot be. One that cannot keeps its kinds: that somebody meant to teach us something
    /// must not be forgotten.
    call: Result<Call, String>,
}

/// What holds when a hook has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Nothing goes on until it answers.
    Fail,
    /// The next layer is asked, as if there were no hook.
    Ignore,
}

/// How a hook is called.
#[derive(Clone, PartialEq, Eq)]
pub struct Call {
    /// Where.
    pub address: Address,
    /// The certificates to trust, PEM; `None` for those that the system trusts.
    pub ca_bundle: Option<Vec<u8>>,
    /// How long it has for an answer.
    pub timeout: Duration,
    /// The version of the messages, one of [`VERSIONS`].
    pub version: &'static str,
}

/// Where a hook is. The path begins with a slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// At a host of its own.
    Url {
        /// Name or address, an IPv6 address in brackets.
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
    /// The name that is asked for and that the certificate must be for, in the form of a URL's host.
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

/// One rule of a hook: all five must fit. A list holds `*` or what it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    /// Kinds in Karmada's contract, plural names in the other.
    names: Vec<String>,
    /// `None`: wherever they lie.
    is_namespaced: Option<bool>,
}

/// The hook that is asked about a kind: of those with a rule for it and the operation the one with the smallest name.
/// A Secret is shown only to a hook with a rule that names Secrets literally (architecture 2.15). Source: Karmada
/// reference 3.4.
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

/// The hooks that may be about a kind, by name, and for which operations; whether one is takes what the API server calls
/// the kind.
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

    /// Those for an operation.
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

    /// What tells this from what was configured under the name before.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// As [`Self::version`], of what may change its answers.
    pub(super) fn meaning(&self) -> &str {
        &self.meaning
    }

    /// In which words it is asked.
    #[must_use]
    pub const fn contract(&self) -> Contract {
        self.contract
    }

    /// What holds when it has no answer.
    #[must_use]
    pub const fn policy(&self) -> Policy {
        self.policy
    }

    /// How it is called.
    ///
    /// # Errors
    /// Why it cannot be: the hook, the field and a remedy.
    pub fn call(&self) -> Result<&Call, &str> {
        self.call.as_ref().map_err(String::as_str)
    }

    /// Who was asked, for a person: `ResourceInterpreterWebhookConfiguration "<configuration>/<webhook>"`.
    #[must_use]
    pub fn layer(&self) -> String {
        format!("{} {:?}", self.contract.configuration(), self.name)
    }

    /// What its rules may be about, of a kind.
    fn operations(&self, gvk: &Gvk) -> BTreeSet<Operation> {
        let rules = self
            .rules
            .iter()
            .filter(|rule| rule.may_be_about(self.contract, gvk));
        let named = rules.flat_map(|rule| &rule.operations);
        named.flat_map(|word| self.contract.operations(word)).collect()
    }

    /// Whether one of its rules is about this operation on this kind. Cost: O(its rules).
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

/// What Kubernetes calls the objects of a kind of its own.
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
    /// Whether it is about the kind, for what its objects may be called and wherever they may lie.
    fn may_be_about(&self, contract: Contract, gvk: &Gvk) -> bool {
        let has = |list: &[String], what: &str| list.iter().any(|each| each == what);
        let fits = |list: &[String], what: &str| has(list, "*") || has(list, what);
        let is_secret = gvk.group.is_empty() && *gvk.kind == *"Secret";
        let is_named = match (contract, is_secret) {
            (Contract::Interpreter, true) => has(&self.names, "Secret"),
            (Contract::Interpreter, false) => fits(&self.names, &gvk.kind),
            (Contract::Explorer, true) => has(&self.names, "secrets"),
            // What a definition calls its kind is not known here.
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
            // `*/*` is everything and everything's subresources.
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

/// Where it is and whether it can be called; not its certificates.
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

/// Two hooks of one name and version are the same.
impl PartialEq for Hook {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.version, self.contract) == (&other.name, &other.version, other.contract)
    }
}

impl Eq for Hook {}

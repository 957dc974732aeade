//! Decides whether a Cluster may use the credentials of a Secret, and the address they may be sent to.
//!
//! A user who may write Clusters often may not read Secrets. A Cluster must therefore not be able to use another Cluster's
//! token, nor to send its own token to another address: annotations of the Secret itself name the Cluster and the address of the
//! credentials. `entourage join` writes them. A Secret without them is accepted by Karmada's convention, if it is named like the
//! Cluster; the address of its first use is then recorded on it, before it is used. The Secret of an impersonator is told from that of
//! the controllers by its name.

use std::collections::BTreeMap;

use entourage_api::keys::{TRUE, annotation, reason};

/// The type of the Secrets that store credentials of members.
const OPAQUE: &str = "Opaque";

/// The suffix of the Secret of a Cluster's second identity, which may impersonate users of the member.
const IMPERSONATOR: &str = "-impersonator";

/// The identity on a member that credentials are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Identity {
    /// That of the controllers.
    #[default]
    Controllers,
    /// The one that may impersonate users, for requests that are sent through the hub.
    Impersonator,
}

impl Identity {
    /// The field of a Cluster that names the Secret.
    #[must_use]
    pub const fn field(self) -> &'static str {
        match self {
            Self::Controllers => "spec.secretRef",
            Self::Impersonator => "spec.impersonatorSecretRef",
        }
    }
}

/// The name of the Secret of a Cluster's impersonator.
#[must_use]
pub fn impersonator_secret(cluster: &str) -> String {
    format!("{cluster}{IMPERSONATOR}")
}

/// The address that a Cluster sends its token to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address<'a> {
    /// `spec.apiEndpoint`.
    pub endpoint: &'a str,
    /// `spec.proxyURL`; empty for none.
    pub proxy: &'a str,
    /// `spec.insecureSkipTLSVerification`.
    pub insecure: bool,
}

/// The fields of a Secret that the decision reads. None of its data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecretFacts {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its type.
    pub secret_type: String,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// The names of the Clusters that own it.
    pub owners: Vec<String>,
}

impl SecretFacts {
    /// True if it names the address that its credentials are for.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.annotations.contains_key(annotation::CREDENTIALS_ENDPOINT)
    }
}

/// The decision on the use of credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// They may be used.
    Use,
    /// They may be used once the Secret has these annotations.
    Record(BTreeMap<&'static str, String>),
    /// They may not be used: no token is sent.
    Refuse(Refusal),
}

/// The reason of the condition Ready, and its message, for credentials that are not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// CamelCase.
    pub reason: &'static str,
    /// For the user who must act. Quotes nothing of the proxy's URL, which may contain a password.
    pub message: String,
}

/// Decides whether Cluster `cluster` may use the credentials of a Secret, for this identity, at an address.
#[must_use]
pub fn evaluate(cluster: &str, identity: Identity, address: &Address<'_>, secret: &SecretFacts) -> Decision {
    if let Some(message) = other_cluster(cluster, identity, secret) {
        return Decision::Refuse(Refusal {
            reason: reason::CREDENTIALS_NOT_FOR_CLUSTER,
            message,
        });
    }
    let Some(endpoint) = secret.annotations.get(annotation::CREDENTIALS_ENDPOINT) else {
        return Decision::Record(record(cluster, address));
    };
    let value = |key: &str| secret.annotations.get(key).map_or("", String::as_str);
    let mut changed = Vec::new();
    if plain(endpoint) != plain(address.endpoint) {
        changed.push(("apiEndpoint", annotation::CREDENTIALS_ENDPOINT));
    }
    if plain(value(annotation::CREDENTIALS_PROXY)) != plain(address.proxy) {
        changed.push(("proxyURL", annotation::CREDENTIALS_PROXY));
    }
    // Verification without being requested sends the token to no other server.
    if address.insecure && value(annotation::CREDENTIALS_INSECURE) != TRUE {
        changed.push(("insecureSkipTLSVerification", annotation::CREDENTIALS_INSECURE));
    }
    if changed.is_empty() {
        return Decision::Use;
    }
    Decision::Refuse(Refusal {
        reason: reason::CREDENTIALS_NOT_FOR_ADDRESS,
        message: other_address(cluster, secret, &plain(endpoint), &changed),
    })
}

/// The annotations that name the Cluster and the address of the credentials in a Secret. Those that do not apply are absent.
#[must_use]
pub fn record(cluster: &str, address: &Address<'_>) -> BTreeMap<&'static str, String> {
    let mut all = BTreeMap::from([
        (annotation::CREDENTIALS_CLUSTER, cluster.to_owned()),
        (annotation::CREDENTIALS_ENDPOINT, plain(address.endpoint)),
    ]);
    if !address.proxy.is_empty() {
        all.insert(annotation::CREDENTIALS_PROXY, plain(address.proxy));
    }
    if address.insecure {
        all.insert(annotation::CREDENTIALS_INSECURE, TRUE.to_owned());
    }
    all
}

/// A URL as it is compared and recorded: scheme and host in lower case, without user, password and trailing slashes. A URL that
/// parsers could read in different ways is not changed.
#[must_use]
pub fn plain(url: &str) -> String {
    let url = url.trim().trim_end_matches('/');
    let odd = |c: char| !c.is_ascii_graphic() || c == '\\';
    let Some((scheme, rest)) = url.split_once("://").filter(|_| !url.contains(odd)) else {
        return url.to_owned();
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = match authority.split_once('@') {
        Some((_, host)) if !host.contains('@') => host,
        _ => authority,
    };
    format!("{}://{}{path}", scheme.to_lowercase(), host.to_lowercase())
}

/// The reason why the Secret belongs to another Cluster, or to the other identity of this one; `None` if it is the right one.
fn other_cluster(cluster: &str, identity: Identity, secret: &SecretFacts) -> Option<String> {
    other_identity(cluster, identity, secret).or_else(|| other_owner(cluster, identity, secret))
}

/// The reason why the Secret is that of the other identity. Annotations do not name the identity, so the name decides, whatever the
/// annotations say: requests of users must not be sent with the rights of the controllers.
fn other_identity(cluster: &str, identity: Identity, secret: &SecretFacts) -> Option<String> {
    let SecretFacts { namespace, name, .. } = secret;
    let expected = impersonator_secret(cluster);
    match identity {
        Identity::Impersonator if *name != expected => Some(format!(
            "Secret {namespace}/{name} does not hold the credentials of the impersonator of Cluster {cluster}, which is named \
             {expected}: no token is sent. Have {} name that one, or run `entourage join {cluster}` with --impersonate",
            identity.field()
        )),
        Identity::Controllers if *name == expected => Some(format!(
            "Secret {namespace}/{name} holds the credentials of the impersonator of Cluster {cluster}, not those of the \
             controllers: no token is sent. Have {} name the Secret of the controllers, or run `entourage join {cluster}`",
            identity.field()
        )),
        Identity::Impersonator | Identity::Controllers => None,
    }
}

/// The reason why the Secret belongs to another Cluster.
fn other_owner(cluster: &str, identity: Identity, secret: &SecretFacts) -> Option<String> {
    let SecretFacts { namespace, name, .. } = secret;
    let key = annotation::CREDENTIALS_CLUSTER;
    if let Some(named) = secret.annotations.get(key) {
        return (named != cluster).then(|| {
            format!(
                "Secret {namespace}/{name} holds the credentials of Cluster {named}, not of {cluster}: no token is sent. \
                 Have {} name the Secret of {cluster}, or run `entourage join {cluster}`",
                identity.field()
            )
        });
    }
    let owned_by = |cluster: &str| secret.owners.iter().any(|owner| owner == cluster);
    let why = if identity == Identity::Controllers && name != cluster {
        "is not named like it and has no annotation that says so"
    } else if identity == Identity::Impersonator && !owned_by(cluster) {
        "is not owned by it"
    } else if !secret.owners.is_empty() && !owned_by(cluster) {
        "is owned by another Cluster"
    } else if name.ends_with(IMPERSONATOR) && !owned_by(cluster) {
        "is named like the Secret of another Cluster's impersonator"
    } else if !secret.secret_type.is_empty() && secret.secret_type != OPAQUE {
        "is of another type than Opaque"
    } else {
        return None;
    };
    Some(format!(
        "Secret {namespace}/{name} does not hold credentials of Cluster {cluster}: it {why}. No token is sent. Run `entourage \
         join {cluster}`, or, if the Secret is meant: kubectl annotate secret -n {namespace} {name} {key}={cluster}"
    ))
}

fn other_address(cluster: &str, secret: &SecretFacts, endpoint: &str, changed: &[(&str, &str)]) -> String {
    let fields: Vec<String> = changed.iter().map(|(field, _)| format!("spec.{field}")).collect();
    let keys: Vec<&str> = changed.iter().map(|(_, key)| *key).collect();
    let (namespace, name) = (&secret.namespace, &secret.name);
    let (fields, keys) = (fields.join(", "), keys.join(", "));
    format!(
        "{fields} of Cluster {cluster} is not what its Secret {namespace}/{name} is for ({endpoint} by its annotations): no \
         token is sent. Undo the change, or, if it is meant, run `entourage join {cluster}` again, or set the annotation {keys} \
         of the Secret to the same value"
    )
}

#[cfg(test)]
mod tests;

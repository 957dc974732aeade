//! The verb, resource and object of a request to an API server.

use std::fmt;

use http::{Method, Request};

/// The verbs of the Kubernetes API, as RBAC names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are Kubernetes' own")]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        })
    }
}

/// One request, as far as faults and records care.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The server: `hub` or a member's name.
    pub scope: String,
    /// The verb of the request.
    pub verb: Verb,
    /// `deployments.apps`, `configmaps`, `deployments.apps/status`; the path itself for what is no resource (`/version`).
    pub resource: String,
    /// The namespace in the path.
    pub namespace: Option<String>,
    /// The name in the path; a create has none.
    pub name: Option<String>,
    /// The server was asked to change nothing (`dryRun=All`).
    pub dry_run: bool,
    /// Equal for requests that ask the same: method, path, and for reads the selectors; no versions, pages or deadlines.
    pub(super) key: String,
}

impl Call {
    /// Reads a request that goes to `scope`. Any request gives a call.
    #[must_use]
    pub fn read<B>(scope: &str, request: &Request<B>) -> Self {
        let path = request.uri().path();
        let query: Vec<(&str, &str)> = request
            .uri()
            .query()
            .unwrap_or_default()
            .split('&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .collect();
        let has = |key: &str, values: &[&str]| query.iter().any(|(k, v)| *k == key && values.contains(v));
        let place = Place::of(path);
        let verb = match *request.method() {
            Method::POST => Verb::Create,
            Method::PUT => Verb::Update,
            Method::PATCH => Verb::Patch,
            Method::DELETE if place.name.is_none() => Verb::DeleteCollection,
            Method::DELETE => Verb::Delete,
            _ if has("watch", &["true", "1"]) => Verb::Watch,
            _ if place.name.is_none() && place.resource != path => Verb::List,
            _ => Verb::Get,
        };
        let mut key = format!("{scope} {verb} {path}");
        for (name, value) in &query {
            if matches!(*name, "labelSelector" | "fieldSelector") {
                key += &format!(" {name}={value}");
            }
        }
        Self {
            scope: scope.to_owned(),
            verb,
            resource: place.resource,
            namespace: place.namespace,
            name: place.name,
            dry_run: has("dryRun", &["All"]),
            key,
        }
    }

    /// True if the call changes what the server stores. Reviews and token requests are POSTs that store nothing.
    #[must_use]
    pub fn is_write(&self) -> bool {
        let read = matches!(self.verb, Verb::Get | Verb::List | Verb::Watch);
        let answered_only = self.resource.ends_with("reviews.authorization.k8s.io")
            || self.resource.ends_with("reviews.authentication.k8s.io")
            || self.resource == "serviceaccounts/token";
        !(read || self.dry_run || answered_only)
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.scope, self.verb, self.resource)?;
        match (&self.namespace, &self.name) {
            (Some(namespace), Some(name)) => write!(f, " {namespace}/{name}"),
            (Some(namespace), None) => write!(f, " {namespace}/"),
            (None, Some(name)) => write!(f, " {name}"),
            (None, None) => Ok(()),
        }
    }
}

struct Place {
    resource: String,
    namespace: Option<String>,
    name: Option<String>,
}

impl Place {
    fn of(path: &str) -> Self {
        let segments: Vec<&str> = path.split('/').filter(|s| !s.is_empty()).collect();
        let (group, rest) = match segments.as_slice() {
            ["api", _version, rest @ ..] if !rest.is_empty() => ("", rest),
            ["apis", group, _version, rest @ ..] if !rest.is_empty() => (*group, rest),
            _ => {
                return Self {
                    resource: path.to_owned(),
                    namespace: None,
                    name: None,
                };
            }
        };
        // `namespaces/x/status` is a subresource of a namespace, `namespaces/x/pods` are the pods in it.
        let (namespace, rest) = match rest {
            ["namespaces", namespace, inner, ..] if !matches!(*inner, "status" | "finalize") => {
                (Some((*namespace).to_owned()), &rest[2..])
            }
            _ => (None, rest),
        };
        let mut resource = rest[0].to_owned();
        if !group.is_empty() {
            resource = format!("{resource}.{group}");
        }
        if let Some(sub) = rest.get(2) {
            resource = format!("{resource}/{sub}");
        }
        Self {
            resource,
            namespace,
            name: rest.get(1).map(|name| (*name).to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_as_rbac_names_them() {
        let cases = [
            (
                "GET",
                "/api/v1/namespaces/ns/configmaps/a",
                "hub get configmaps ns/a",
            ),
            (
                "GET",
                "/api/v1/namespaces/ns/configmaps?&limit=500",
                "hub list configmaps ns/",
            ),
            (
                "GET",
                "/apis/apps/v1/deployments?&watch=true&resourceVersion=7",
                "hub watch deployments.apps",
            ),
            (
                "POST",
                "/apis/apps/v1/namespaces/ns/deployments?",
                "hub create deployments.apps ns/",
            ),
            (
                "PUT",
                "/apis/apps/v1/namespaces/ns/deployments/a/status",
                "hub update deployments.apps/status ns/a",
            ),
            ("PATCH", "/api/v1/namespaces/ns", "hub patch namespaces ns"),
            (
                "PUT",
                "/api/v1/namespaces/ns/finalize",
                "hub update namespaces/finalize ns",
            ),
            ("DELETE", "/api/v1/namespaces/ns/pods/a", "hub delete pods ns/a"),
            (
                "DELETE",
                "/api/v1/namespaces/ns/pods",
                "hub deletecollection pods ns/",
            ),
            ("GET", "/version", "hub get /version"),
            ("GET", "/apis", "hub get /apis"),
        ];
        for (method, uri, want) in cases {
            let request = Request::builder().method(method).uri(uri).body(()).unwrap();
            assert_eq!(Call::read("hub", &request).to_string(), want, "{method} {uri}");
        }
    }

    #[test]
    fn what_a_server_only_answers_is_no_write() {
        let cases = [
            (
                "POST",
                "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                false,
            ),
            ("POST", "/api/v1/namespaces/ns/serviceaccounts/a/token", false),
            (
                "PATCH",
                "/api/v1/namespaces/ns/configmaps/a?dryRun=All&fieldManager=x",
                false,
            ),
            ("PATCH", "/api/v1/namespaces/ns/configmaps/a?fieldManager=x", true),
            ("GET", "/api/v1/namespaces/ns/configmaps/a", false),
        ];
        for (method, uri, want) in cases {
            let request = Request::builder().method(method).uri(uri).body(()).unwrap();
            assert_eq!(Call::read("hub", &request).is_write(), want, "{method} {uri}");
        }
    }

    #[test]
    fn versions_pages_and_deadlines_do_not_make_another_request() {
        let key = |uri: &str| Call::read("hub", &Request::builder().uri(uri).body(()).unwrap()).key;
        assert_eq!(
            key("/api/v1/pods?watch=true&resourceVersion=1"),
            key("/api/v1/pods?watch=true&resourceVersion=2")
        );
        assert_eq!(
            key("/api/v1/pods?limit=500"),
            key("/api/v1/pods?limit=500&continue=abc")
        );
        assert_ne!(key("/api/v1/pods?watch=true"), key("/api/v1/pods"));
        assert_ne!(
            key("/api/v1/pods?labelSelector=a"),
            key("/api/v1/pods?labelSelector=b")
        );
    }
}

//! The attributes of a request, from its path and method alone: authorization and impersonation read them.

use http::Method;

use crate::query::Query;

/// The attributes of a request. Source: RequestInfo of k8s.io/apiserver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct About {
    /// True if it is about resources, below `/api/v1` or `/apis/GROUP/VERSION`.
    pub resource_request: bool,
    /// The path as it came.
    pub path: String,
    /// `get`, `list`, `watch`, …; the method in lower case when it is not about resources; empty for odd methods.
    pub verb: String,
    /// API group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Namespace; for a namespace itself its name.
    pub namespace: String,
    /// Plural of the resource.
    pub resource: String,
    /// Subresource.
    pub subresource: String,
    /// Name, also one that a field selector pins down.
    pub name: String,
    /// Name in the path.
    pub path_name: String,
    /// True if the path has the old `watch/` prefix.
    pub old_watch: bool,
    /// Steps of the path behind the subresource.
    pub deeper: bool,
}

/// Subresources of namespaces: `/namespaces/a/status` is no resource in the namespace `a`.
const OF_NAMESPACES: [&str; 2] = ["status", "finalize"];

impl About {
    /// Reads path, method and query.
    #[must_use]
    pub(crate) fn of(method: &Method, path: &str, query: &Query) -> Self {
        let mut about = Self {
            path: path.to_owned(),
            verb: method.as_str().to_ascii_lowercase(),
            ..Self::default()
        };
        let trimmed = path.trim_matches('/');
        let words: Vec<&str> = if trimmed.is_empty() {
            Vec::new()
        } else {
            trimmed.split('/').collect()
        };
        let mut rest = match words.as_slice() {
            ["api", version, rest @ ..] if !rest.is_empty() => {
                about.version = (*version).to_owned();
                rest
            }
            ["apis", group, version, rest @ ..] if !rest.is_empty() => {
                about.group = (*group).to_owned();
                about.version = (*version).to_owned();
                rest
            }
            _ => return about,
        };
        about.resource_request = true;
        verb_of(method).clone_into(&mut about.verb);
        if rest.len() > 1 && matches!(rest[0], "watch" | "proxy") {
            about.verb = rest[0].to_owned();
            about.old_watch = rest[0] == "watch";
            rest = &rest[1..];
        }
        if let ["namespaces", namespace, below @ ..] = rest {
            about.namespace = (*namespace).to_owned();
            if below.first().is_some_and(|next| !OF_NAMESPACES.contains(next)) {
                rest = below;
            }
        }
        let word = |at: usize| rest.get(at).copied().unwrap_or_default().to_owned();
        about.resource = word(0);
        about.path_name = word(1);
        about.name = word(1);
        if !about.old_watch {
            about.subresource = word(2);
        }
        about.deeper = rest.len() > 3;
        if about.name.is_empty() && about.verb == "get" {
            about.verb = if query.flag("watch") { "watch" } else { "list" }.to_owned();
        }
        if about.name.is_empty() && matches!(about.verb.as_str(), "list" | "watch") {
            about.name = pinned_name(query);
        }
        if about.path_name.is_empty() && about.verb == "delete" {
            about.verb = "deletecollection".to_owned();
            about.name = pinned_name(query);
        }
        about
    }

    /// `deployments/scale`, or just `deployments`.
    #[must_use]
    pub(crate) fn qualified(&self) -> String {
        if self.subresource.is_empty() {
            self.resource.clone()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        }
    }
}

pub(crate) fn verb_of(method: &Method) -> &'static str {
    match *method {
        Method::POST => "create",
        Method::GET | Method::HEAD => "get",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "",
    }
}

/// The name that `fieldSelector=metadata.name=x` requests.
fn pinned_name(query: &Query) -> String {
    let selector = query.get("fieldSelector").unwrap_or_default();
    let name = selector.split(',').find_map(|term| {
        let (key, value) = term.split_once('=')?;
        (key == "metadata.name").then(|| value.trim_start_matches('='))
    });
    match name {
        Some(name) if !name.contains(['/', '%']) && !matches!(name, "." | "..") => name.to_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paths_are_distinguished() {
        // method, path, query, verb, group, namespace, resource/subresource, name
        let cases = [
            ("GET", "/api/v1/nodes", "", "list", "", "", "nodes", ""),
            ("GET", "/api/v1/nodes/", "watch=1", "watch", "", "", "nodes", ""),
            ("GET", "/api/v1/namespaces", "", "list", "", "", "namespaces", ""),
            (
                "GET",
                "/api/v1/namespaces/a",
                "",
                "get",
                "",
                "a",
                "namespaces",
                "a",
            ),
            (
                "PUT",
                "/api/v1/namespaces/a/finalize",
                "",
                "update",
                "",
                "a",
                "namespaces/finalize",
                "a",
            ),
            (
                "DELETE",
                "/api/v1/namespaces/a/pods",
                "",
                "deletecollection",
                "",
                "a",
                "pods",
                "",
            ),
            (
                "POST",
                "/apis/apps/v1/namespaces/a/deployments",
                "",
                "create",
                "apps",
                "a",
                "deployments",
                "",
            ),
            (
                "PATCH",
                "/apis/apps/v1/namespaces/a/deployments/x/scale",
                "",
                "patch",
                "apps",
                "a",
                "deployments/scale",
                "x",
            ),
            (
                "GET",
                "/api/v1/watch/namespaces/a/pods/x",
                "",
                "watch",
                "",
                "a",
                "pods",
                "x",
            ),
            (
                "GET",
                "/api/v1/pods",
                "fieldSelector=metadata.name%3Dp",
                "list",
                "",
                "",
                "pods",
                "p",
            ),
            ("GET", "/apis/apps/v1", "", "get", "", "", "", ""),
            ("HEAD", "/metrics", "", "head", "", "", "", ""),
            ("OPTIONS", "/api/v1/pods", "", "", "", "", "pods", ""),
        ];
        for (method, path, query, verb, group, namespace, resource, name) in cases {
            let method = Method::from_bytes(method.as_bytes()).expect("a method");
            let about = About::of(&method, path, &Query::parse(query));
            let got = (
                about.verb.as_str(),
                about.group.as_str(),
                about.namespace.as_str(),
            );
            assert_eq!(got, (verb, group, namespace), "{path}");
            assert_eq!(
                (about.qualified().as_str(), about.name.as_str()),
                (resource, name),
                "{path}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_path_makes_it_panic(path in "/[a-z/.%]{0,40}", query in "[a-zA-Z=&%.]{0,40}") {
            let _ = About::of(&Method::GET, &path, &Query::parse(&query));
        }
    }
}

//! Routing: the resource of a path, and the methods of the path.

use std::sync::Arc;

use http::Method;

use crate::{
    auth::about::About,
    discovery,
    resource::{Kinds, Resource},
    status::{self, Status},
};

/// The route of a request.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) resource: Arc<Resource>,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) subresource: String,
    /// A watch, whatever the query: the old `watch/` paths.
    pub(super) old_watch: bool,
    /// The method as the endpoint takes it: HEAD of a custom resource is a GET.
    pub(super) method: Method,
}

/// The reason why there is no route.
#[derive(Debug)]
pub(super) enum Miss {
    /// `404 page not found` in plain text.
    Page,
    /// A Status.
    Status(Box<Status>),
}

impl From<Box<Status>> for Miss {
    fn from(status: Box<Status>) -> Self {
        Self::Status(status)
    }
}

/// The route of a request for resources.
pub(super) fn find(kinds: &Kinds, method: &Method, about: &About) -> Result<Route, Miss> {
    let found = kinds.find(&about.group, &about.version, &about.resource);
    if discovery::is_builtin(&about.group) {
        return Ok(builtin(found, method, about)?);
    }
    custom(found.ok_or(Miss::Page)?, method, about)
}

fn builtin(found: Option<&Arc<Resource>>, method: &Method, about: &About) -> Result<Route, Box<Status>> {
    let resource = found.ok_or_else(Status::no_such_path)?;
    let inner = about.path.trim_start_matches('/').trim_end_matches('/');
    // Empty steps are steps to the router: it finds nothing behind them.
    let odd = inner.contains("//") || about.path.ends_with("//");
    // No router has the old `proxy/` paths any more; only authorization knows them.
    if odd || about.verb == "proxy" || (about.deeper && about.subresource != "proxy") {
        return Err(Status::no_such_path());
    }
    let route = route(resource, method, about);
    let below_namespace = !about.namespace.is_empty() && about.resource != "namespaces";
    let item = !route.name.is_empty();
    if below_namespace != resource.namespaced && (below_namespace || item) {
        return Err(Status::no_such_path());
    }
    if about.old_watch {
        return match *method {
            _ if !resource.verbs.contains(&"watch") => Err(Status::no_such_path()),
            Method::GET => Ok(route),
            _ => Err(Status::method_not_allowed()),
        };
    }
    let scoped = resource.namespaced == below_namespace;
    let verb = match (*method == Method::GET, method.as_str(), item) {
        (true, _, true) => "get",
        (true, _, false) => "list",
        (_, "POST", false) if scoped => "create",
        (_, "DELETE", false) if scoped => "deletecollection",
        (_, "PUT", true) => "update",
        (_, "PATCH", true) => "patch",
        (_, "DELETE", true) => "delete",
        _ => "",
    };
    let allowed = if route.subresource.is_empty() {
        if item && !resource.verbs.contains(&"get") {
            return Err(Status::no_such_path());
        }
        resource.verbs.contains(&verb)
    } else {
        if !resource.has(&route.subresource) {
            return Err(Status::no_such_path());
        }
        let verb = if *method == Method::POST { "create" } else { verb };
        discovery::subresource(resource, &route.subresource)
            .verbs
            .contains(&verb)
    };
    if allowed {
        Ok(route)
    } else {
        Err(Status::method_not_allowed())
    }
}

fn custom(resource: &Arc<Resource>, method: &Method, about: &About) -> Result<Route, Miss> {
    let in_namespace = !about.namespace.is_empty();
    let everywhere = matches!(about.verb.as_str(), "list" | "watch");
    if in_namespace != resource.namespaced && (in_namespace || !everywhere) {
        return Err(Miss::Page);
    }
    let qualified = status::About {
        group: &resource.group,
        resource: &resource.plural,
        name: &about.name,
    };
    // A request that was authorized as a watch must not do anything else.
    if about.old_watch && !matches!(*method, Method::GET | Method::HEAD) {
        let asked = crate::auth::about::verb_of(method);
        return Err(unsupported(qualified, asked).into());
    }
    let mut route = route(resource, method, about);
    let change = matches!(about.verb.as_str(), "get" | "update" | "patch");
    let known = matches!(
        about.verb.as_str(),
        "get" | "list" | "watch" | "create" | "update" | "patch" | "delete" | "deletecollection"
    );
    if route.subresource.is_empty() {
        if !known {
            return Err(unsupported(qualified, &about.verb).into());
        }
    } else if !resource.has(&route.subresource) {
        return Err(Status::not_found(qualified).into());
    } else if !change {
        return Err(unsupported(qualified, &about.verb).into());
    }
    if route.name.is_empty() && matches!(about.verb.as_str(), "update" | "patch") {
        return Err(Status::bad_request("name must be provided").into());
    }
    if *method == Method::HEAD {
        route.method = Method::GET;
    }
    if *method == Method::POST {
        // The name of a create comes from its body alone.
        route.name = String::new();
    }
    Ok(route)
}

/// 405 in the words of the handler of custom resources.
fn unsupported(about: status::About<'_>, verb: &str) -> Box<Status> {
    let message = format!(
        "{verb} is not supported on resources of kind \"{}.{}\"",
        about.resource, about.group
    );
    let mut details = serde_json::Map::new();
    details.insert("group".to_owned(), about.group.into());
    details.insert("kind".to_owned(), about.resource.into());
    Status::new(405, "MethodNotAllowed", message).with_details(details)
}

fn route(resource: &Arc<Resource>, method: &Method, about: &About) -> Route {
    // A namespace is no object in itself.
    let namespace = if resource.namespaced {
        about.namespace.clone()
    } else {
        String::new()
    };
    Route {
        resource: resource.clone(),
        namespace,
        name: about.path_name.clone(),
        subresource: about.subresource.clone(),
        old_watch: about.old_watch,
        method: method.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::Query;

    #[test]
    fn paths_and_methods_of_built_in_kinds() {
        let kinds = crate::kinds::builtin();
        // method, path, code (200: it goes somewhere)
        let cases = [
            ("GET", "/api/v1/configmaps", 200),
            ("POST", "/api/v1/configmaps", 405),
            ("DELETE", "/api/v1/configmaps", 405),
            ("GET", "/api/v1/configmaps/a", 404),
            ("POST", "/api/v1/namespaces/n/configmaps", 200),
            ("PUT", "/api/v1/namespaces/n/configmaps", 405),
            ("DELETE", "/api/v1/namespaces", 405),
            ("PUT", "/api/v1/namespaces/n/finalize", 200),
            ("GET", "/api/v1/namespaces/n/finalize", 405),
            ("GET", "/api/v1/namespaces/n/nodes", 404),
            ("GET", "/api/v1/namespaces/n/configmaps/a/status", 404),
            ("DELETE", "/api/v1/namespaces/n/pods/a/status", 405),
            ("GET", "/api/v1/namespaces/n/pods/a/binding", 405),
            ("POST", "/api/v1/namespaces/n/pods/a/binding", 200),
            ("HEAD", "/api/v1/namespaces/n/pods/a", 405),
            ("GET", "/api/v1/watch/namespaces/n/pods", 200),
            ("POST", "/api/v1/watch/namespaces/n/pods", 405),
            ("GET", "/apis/authentication.k8s.io/v1/tokenreviews", 405),
            ("GET", "/apis/authentication.k8s.io/v1/tokenreviews/a", 404),
            ("GET", "/api/v1//configmaps", 404),
            ("GET", "/api/v1/namespaces/n/pods/a/status/x", 404),
            ("GET", "/api/v1/namespaces/n/ConfigMap", 404),
        ];
        for (method, path, code) in cases {
            let (_, got) = tried(method, path, |method, about| find(&kinds, method, about));
            assert_eq!(got, code, "{method} {path}");
        }
    }

    /// The attributes with which a request is authorized, and the code of its route (200 if there is one).
    fn tried(
        method: &str,
        path: &str,
        find: impl Fn(&Method, &About) -> Result<Route, Miss>,
    ) -> (String, u16) {
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let about = About::of(&method, path, &Query::default());
        let code = match find(&method, &about) {
            Ok(_) => 200,
            Err(Miss::Page) => 0,
            Err(Miss::Status(status)) => status.code,
        };
        (about.verb, code)
    }

    #[test]
    fn what_is_authorized_as_a_watch_or_a_proxy_does_nothing_else() {
        let kinds = crate::kinds::builtin();
        // The words of a path do not show that a resource is custom: this one stands for any.
        let foos = kinds
            .find("apps", "v1", "deployments")
            .expect("it is served")
            .clone();
        for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
            for end in ["", "/x"] {
                let path = |prefix: &str| format!("/apis/apps/v1/{prefix}namespaces/n/deployments{end}");
                let built_in = |method: &Method, about: &About| find(&kinds, method, about);
                let custom = |method: &Method, about: &About| custom(&foos, method, about);
                let (verb, code) = tried(method, &path("watch/"), built_in);
                assert_eq!(
                    (verb.as_str(), code),
                    ("watch", if method == "GET" { 200 } else { 405 })
                );
                let (verb, code) = tried(method, &path("watch/"), custom);
                let watches = matches!(method, "GET" | "HEAD");
                assert_eq!(
                    (verb.as_str(), code),
                    ("watch", if watches { 200 } else { 405 }),
                    "{method}"
                );
                let (verb, code) = tried(method, &path("proxy/"), built_in);
                assert_eq!((verb.as_str(), code), ("proxy", 404), "{method} {end}");
                let (verb, code) = tried(method, &path("proxy/"), custom);
                assert_eq!((verb.as_str(), code), ("proxy", 405), "{method} {end}");
            }
        }
    }
}

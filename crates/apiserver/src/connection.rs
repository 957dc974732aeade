//! Subresources that another part of the process answers, such as `clusters/NAME/proxy`: any method, the path behind them, streams,
//! and changes of the protocol. Who may use them is decided here, as for all other requests.

use std::{
    io,
    pin::Pin,
    sync::{Arc, PoisonError, RwLock, Weak},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;

use crate::auth::{User, about::About};

/// The body of a response: one piece, the frames of a watch, or what a [`Connector`] passes on.
pub type Body = UnsyncBoxBody<Bytes, io::Error>;

/// The body of a request that is passed on.
pub type Incoming = UnsyncBoxBody<Bytes, io::Error>;

/// A request for a connected subresource. The user is authenticated, and may send it.
pub struct Connection {
    /// The user.
    pub user: User,
    /// The name of the object.
    pub name: String,
    /// The path behind the subresource, as it came: empty, or from a slash on.
    pub rest: String,
    /// The request as it came, with the caller's own credentials in its headers.
    pub request: Request<Incoming>,
}

/// The future of a response.
pub type Connected<'a> = Pin<Box<dyn Future<Output = Response<Body>> + Send + 'a>>;

/// Answers the requests of one subresource.
pub trait Connector: Send + Sync {
    /// Answers one request.
    fn connect(&self, connection: Connection) -> Connected<'_>;
}

/// The resource and subresource that a [`Connector`] answers. The resource is a custom, cluster-scoped one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subresource {
    /// API group.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// Plural of the resource.
    pub resource: &'static str,
    /// The subresource.
    pub subresource: &'static str,
}

impl Subresource {
    fn is(&self, about: &About) -> bool {
        about.namespace.is_empty()
            && !about.path_name.is_empty()
            && (self.group, self.version) == (&about.group, &about.version)
            && (self.resource, self.subresource) == (&about.resource, &about.subresource)
    }

    /// The part of a path behind the subresource; `None` if the path up to there is written in another way than usual.
    pub(crate) fn rest<'a>(&self, path: &'a str, name: &str) -> Option<&'a str> {
        let Self {
            group,
            version,
            resource,
            subresource,
        } = self;
        let start = format!("/apis/{group}/{version}/{resource}/{name}/{subresource}");
        let rest = path.strip_prefix(&start)?;
        (rest.is_empty() || rest.starts_with('/')).then_some(rest)
    }
}

/// The connectors of a server. They are not kept alive: they have clients of it, as a rule.
#[derive(Default)]
pub(crate) struct Connectors(RwLock<Vec<(Subresource, Weak<dyn Connector>)>>);

impl std::fmt::Debug for Connectors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connectors")
    }
}

impl Connectors {
    /// Has a connector answer a subresource; an earlier one does so no more.
    pub(crate) fn insert(&self, subresource: Subresource, connector: &Arc<dyn Connector>) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(each, _)| *each != subresource);
        all.push((subresource, Arc::downgrade(connector)));
    }

    /// The connector for a request.
    pub(crate) fn of(&self, about: &About) -> Option<(Subresource, Arc<dyn Connector>)> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let (subresource, connector) = all.iter().find(|(each, _)| each.is(about))?;
        Some((*subresource, connector.upgrade()?))
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::query::Query;

    const PROXY: Subresource = Subresource {
        group: "g.io",
        version: "v1",
        resource: "clusters",
        subresource: "proxy",
    };

    #[test]
    fn paths_of_a_connected_subresource() {
        // path, what is behind the subresource; None: another request, or one that leads nowhere
        let cases = [
            ("/apis/g.io/v1/clusters/m1/proxy", Some("")),
            ("/apis/g.io/v1/clusters/m1/proxy/", Some("/")),
            (
                "/apis/g.io/v1/clusters/m1/proxy/api/v1/pods",
                Some("/api/v1/pods"),
            ),
            ("/apis/g.io/v1/clusters/m1/proxy//x%2Fy", Some("//x%2Fy")),
            ("/apis/g.io/v1/clusters/m1", None),
            ("/apis/g.io/v1/clusters/m1/proxyx/api", None),
            ("/apis/g.io/v1/clusters/m1%2Fproxy/api", None),
            ("/apis/g.io/v1//clusters/m1/proxy/api", None),
            ("/apis/g.io/v1/namespaces/n/clusters/m1/proxy", None),
            ("/apis/g.io/v2/clusters/m1/proxy", None),
            ("/apis/g.io/v1/proxy/clusters/m1", None),
            ("/apis/g.io/v1/watch/clusters/m1/proxy", None),
        ];
        for (path, rest) in cases {
            let decoded = crate::query::percent_decoded(path, false);
            let about = About::of(&Method::GET, &decoded, &Query::default());
            let found = PROXY
                .is(&about)
                .then(|| PROXY.rest(path, &about.path_name))
                .flatten();
            assert_eq!(found, rest, "{path}");
        }
    }
}

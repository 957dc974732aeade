//! Members through the hub: clients whose requests go below `clusters/NAME/proxy` of the hub, as the caller itself.

use http::{Request, Uri, uri::PathAndQuery};
use kube::{Client, client::Body};
use tower::service_fn;

const CLUSTERS: &str = "/apis/cluster.karmada.io/v1alpha1/clusters/";
const PROXY: &str = "/proxy";

/// A client of the member with this name through the hub, with the hub's credentials of the caller: two servers decide about each
/// request, the hub by `clusters/proxy` and the member by the rights of the caller there.
#[must_use]
pub fn through(hub: &Client, member: &str) -> Client {
    let (hub, member) = (hub.clone(), member.to_owned());
    let namespace = hub.default_namespace().to_owned();
    let service = service_fn(move |mut request: Request<Body>| {
        let hub = hub.clone();
        let below = below(&member, request.uri());
        async move {
            *request.uri_mut() = below.map_err(|error| kube::Error::HttpError(error.into()))?;
            hub.send(request).await
        }
    });
    Client::new(service, namespace)
}

/// The address on the hub of one on a member.
fn below(member: &str, uri: &Uri) -> Result<Uri, http::uri::InvalidUri> {
    let rest = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    format!("{CLUSTERS}{member}{PROXY}{rest}").parse()
}

/// The member that a path on the hub leads to.
pub(super) fn member_of(path: &str) -> Option<&str> {
    let (member, rest) = path.strip_prefix(CLUSTERS)?.split_once('/')?;
    let rest = rest.strip_prefix(PROXY.trim_start_matches('/'))?;
    (rest.is_empty() || rest.starts_with('/')).then_some(member)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_on_a_member_is_one_below_the_proxy_of_its_cluster() {
        for (address, wanted) in [
            (
                "/api/v1/pods?limit=1&x=a%2Fb",
                "/proxy/api/v1/pods?limit=1&x=a%2Fb",
            ),
            ("https://m1:6443/version", "/proxy/version"),
            ("/", "/proxy/"),
        ] {
            let below = below("m1", &address.parse().unwrap()).unwrap().to_string();
            assert_eq!(
                below.strip_prefix("/apis/cluster.karmada.io/v1alpha1/clusters/m1"),
                Some(wanted)
            );
            assert_eq!(member_of(below.split('?').next().unwrap()), Some("m1"));
        }
        for path in [
            "/api/v1/pods",
            "/apis/cluster.karmada.io/v1alpha1/clusters/m1",
            "/apis/cluster.karmada.io/v1alpha1/clusters/m1/status",
            "/apis/cluster.karmada.io/v1alpha1/clusters/m1/proxyx",
        ] {
            assert_eq!(member_of(path), None, "{path}");
        }
    }
}

//! Resolves the host of a hook to addresses: a Service of the hub to its own, and all others by the system.
//!
//! Source: Karmada reference 3.4. The certificate must be for the name in the reference.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    task::{Context, Poll},
    vec,
};

use entourage_core::{
    interpreter::hook::{Address, service},
    object::{Gvk, ResourceId},
};
use futures::future::BoxFuture;
use hyper_util::client::legacy::connect::dns::Name;
use serde_json::Value;

use crate::{
    client::{Api, Form, path::Path},
    error::Class,
};

/// The lookup of the Services of references.
pub trait Services: Send + Sync {
    /// A Service; `None` if there is none of this name, which is then resolved by its name in this process's own cluster.
    ///
    /// # Errors
    /// The reason why it cannot be looked up.
    fn service<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Value>, String>>;
}

/// The Services of the hub.
impl Services for Api {
    fn service<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Value>, String>> {
        Box::pin(async move {
            let id = ResourceId::new(Gvk::new("v1", "Service"), namespace, name);
            match self.get(&Path::object(&id), Form::Whole).await {
                Ok(service) => Ok(Some(service)),
                Err(failure) if failure.class() == Class::Missing => Ok(None),
                Err(failure) => Err(failure.text(&id.gvk)),
            }
        })
    }
}

/// Resolves the host of one hook. The port stays that of its address.
#[derive(Clone)]
pub(super) struct Finder {
    pub(super) address: Arc<Address>,
    pub(super) services: Option<Arc<dyn Services>>,
}

/// The reason why a host has no address.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Unresolved(pub(super) String);

impl Finder {
    async fn find(self, name: Name) -> Result<vec::IntoIter<SocketAddr>, Unresolved> {
        let mut host = name.as_str().to_owned();
        if let (
            Address::Service {
                namespace,
                name,
                port,
                ..
            },
            Some(services),
        ) = (&*self.address, &self.services)
        {
            let at = |why: String| Unresolved(format!("Service {namespace}/{name} of the hub: {why}"));
            if let Some(found) = services.service(namespace, name).await.map_err(at)? {
                service::host(&found, *port).map_err(at)?.clone_into(&mut host);
            }
        }
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, 0)].into_iter());
        }
        let found = tokio::net::lookup_host((host.as_str(), 0)).await;
        let found: io::Result<Vec<_>> = found.map(Iterator::collect);
        match found {
            Ok(addresses) if !addresses.is_empty() => Ok(addresses.into_iter()),
            Ok(_) => Err(Unresolved(format!("the host {host} has no address"))),
            Err(error) => Err(Unresolved(format!("the host {host} has no address: {error}"))),
        }
    }
}

impl tower::Service<Name> for Finder {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = Unresolved;
    type Future = BoxFuture<'static, Result<Self::Response, Unresolved>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Unresolved>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        Box::pin(self.clone().find(name))
    }
}

//! The tower service of a cluster.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};

use super::Cluster;
use crate::http::{Body, answer};

/// Answers requests of one cluster. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Service {
    cluster: Cluster,
    authorization: Option<HeaderValue>,
    agent: Option<HeaderValue>,
}

impl Service {
    pub(super) const fn new(cluster: Cluster) -> Self {
        Self {
            cluster,
            authorization: None,
            agent: None,
        }
    }

    /// The same, with this bearer token on requests that have none.
    #[must_use]
    pub fn with_token(mut self, token: &str) -> Self {
        self.authorization = HeaderValue::from_str(&format!("Bearer {token}"))
            .ok()
            .map(|mut value| {
                value.set_sensitive(true);
                value
            });
        self
    }

    /// The same, with this User-Agent on requests that have none.
    #[must_use]
    pub fn with_agent(mut self, agent: &'static str) -> Self {
        self.agent = Some(HeaderValue::from_static(agent));
        self
    }
}

impl<B> tower::Service<Request<B>> for Service
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        if let Some(authorization) = &self.authorization {
            request
                .headers_mut()
                .entry(header::AUTHORIZATION)
                .or_insert_with(|| authorization.clone());
        }
        if let Some(agent) = &self.agent {
            let headers = request.headers_mut();
            headers.entry(header::USER_AGENT).or_insert_with(|| agent.clone());
        }
        let cluster = self.cluster.clone();
        Box::pin(async move { Ok(answer(cluster.inner(), request).await) })
    }
}

//! The transport of a scenario: in this process, or over TLS.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use bytes::Bytes;
use futures::{FutureExt as _, future::BoxFuture};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, combinators::UnsyncBoxBody};
use kube::client::Body;
use tower::ServiceExt as _;

/// The body of an answer.
pub type Answer = UnsyncBoxBody<Bytes, anyhow::Error>;

type Send = dyn Fn(Request<Bytes>) -> BoxFuture<'static, Result<Response<Answer>>> + std::marker::Send + Sync;

/// A server to play against.
#[derive(Clone)]
pub struct Transport {
    send: Arc<Send>,
    /// The admin's bearer token.
    pub token: String,
    /// The longest time that an event of a watch, or what a step is repeated for, may take.
    pub(super) patience: Duration,
    compact: Option<Arc<dyn Fn() + std::marker::Send + Sync>>,
}

impl Transport {
    /// An embedded cluster, without a socket.
    #[must_use]
    pub fn embedded(cluster: &entourage_apiserver::Cluster, token: &str) -> Self {
        let service = cluster.service();
        let history = cluster.clone();
        Self {
            send: Arc::new(move |request| {
                let service = service.clone();
                async move {
                    // As a network does: tasks that an earlier request woke run first, such as that of CRDs.
                    tokio::task::yield_now().await;
                    let Ok(response) = service.oneshot(request.map(Full::new)).await;
                    Ok(response.map(|body| body.map_err(anyhow::Error::from).boxed_unsync()))
                }
                .boxed()
            }),
            token: token.to_owned(),
            patience: Duration::from_secs(10),
            compact: Some(Arc::new(move || history.forget_history())),
        }
    }

    /// A server behind a client that has no credentials of its own.
    #[must_use]
    pub fn remote(client: &kube::Client, token: &str) -> Self {
        let client = client.clone();
        Self {
            send: Arc::new(move |request| {
                let client = client.clone();
                async move {
                    let response = client.send(request.map(Body::from)).await?;
                    Ok(response.map(|body| body.map_err(anyhow::Error::from).boxed_unsync()))
                }
                .boxed()
            }),
            token: token.to_owned(),
            // What does not come from a server of another release is waited for in vain, many times over.
            patience: Duration::from_secs(1),
            compact: None,
        }
    }

    pub(super) async fn send(&self, request: Request<Bytes>) -> Result<Response<Answer>> {
        (self.send)(request).await
    }

    /// Drops the server's history; `false` where that cannot be done.
    pub(super) fn compact(&self) -> bool {
        self.compact.as_ref().inspect(|compact| compact()).is_some()
    }
}

//! A scheduler estimator in this process: it gives every question the same answer.
//!
//! It speaks what `karmada-scheduler-estimator` speaks: gRPC over HTTP/2 without TLS.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicUsize, Ordering},
    },
};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use futures::stream;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody, combinators::BoxBody};
use hyper::{body::Incoming, server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinSet};
use tokio_util::task::AbortOnDropHandle;

/// The largest answer that is one byte of a number.
const MOST: u8 = 127;

/// Listens on 127.0.0.1 until it is dropped.
pub struct Estimator {
    room: Arc<AtomicU8>,
    asked: Arc<AtomicUsize>,
    port: u16,
    _task: AbortOnDropHandle<()>,
}

impl Estimator {
    /// Starts it: there is room for so many replicas, up to 127.
    ///
    /// # Errors
    /// When no port is left.
    pub async fn start(room: u8) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .context("a port for an estimator")?;
        let port = listener.local_addr()?.port();
        let room = Arc::new(AtomicU8::new(room.min(MOST)));
        let asked: Arc<AtomicUsize> = Arc::default();
        let (answers, counts) = (room.clone(), asked.clone());
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (room, asked) = (answers.clone(), counts.clone());
                connections.spawn(async move {
                    let service = service_fn(move |request| {
                        asked.fetch_add(1, Ordering::Relaxed);
                        answer(request, room.load(Ordering::Relaxed))
                    });
                    let server = http2::Builder::new(TokioExecutor::new());
                    // The client ends the connection whenever it likes.
                    let _ = server.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Ok(Self {
            room,
            asked,
            port,
            _task: AbortOnDropHandle::new(task),
        })
    }

    /// Sets its answer from now on.
    pub fn has_room(&self, room: u8) {
        self.room.store(room.min(MOST), Ordering::Relaxed);
    }

    /// The number of questions so far.
    #[must_use]
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    /// The Service by which the hub knows it.
    #[must_use]
    pub fn service(&self, namespace: &str, name: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"namespace": namespace, "name": name},
            "spec": {
                "type": "ExternalName", "externalName": "127.0.0.1",
                "ports": [{"name": "grpc", "port": 10352, "targetPort": self.port}],
            },
        })
    }
}

/// `MaxAvailableReplicasResponse{maxReplicas: room}`, uncompressed, and the status of success in the trailers.
async fn answer(
    request: Request<Incoming>,
    room: u8,
) -> Result<Response<BoxBody<Bytes, Infallible>>, hyper::Error> {
    request.into_body().collect().await?;
    let mut status = HeaderMap::new();
    status.insert("grpc-status", HeaderValue::from_static("0"));
    let frames = [
        Ok(Frame::data(Bytes::from(vec![0, 0, 0, 0, 2, 8, room]))),
        Ok(Frame::trailers(status)),
    ];
    let body = StreamBody::new(stream::iter(frames));
    let mut response = Response::new(http_body_util::BodyExt::boxed(body));
    response
        .headers_mut()
        .insert("content-type", HeaderValue::from_static("application/grpc"));
    Ok(response)
}

//! A webhook for tests: HTTPS on loopback, answers made by a function, reviews kept.

use std::{
    convert::Infallible,
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response, body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use rcgen::{CertificateParams, KeyPair};
use rustls::{ServerConfig, pki_types::PrivateKeyDer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// The response of a webhook to a review.
pub(crate) enum Answer {
    /// `response` of a review, its uid filled in.
    Response(Value),
    /// A body as it is, with a code.
    Raw(u16, String),
    /// Leave, once something else has happened.
    After(Pin<Box<dyn Future<Output = ()> + Send>>),
    /// Nothing, ever.
    Silence,
}

/// A running webhook.
pub(crate) struct Hook {
    pub(crate) address: SocketAddr,
    /// The value for `caBundle`.
    pub(crate) bundle: String,
    seen: Arc<Mutex<Vec<(String, Value)>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Hook {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Hook {
    /// A webhook whose certificate is for `name`.
    pub(crate) async fn start(
        name: &str,
        answer: impl Fn(&str, &Value) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let certificate = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        Self::start_with(certificate, answer).await
    }

    /// A webhook with this certificate, which it signs itself.
    pub(crate) async fn start_with(
        certificate: CertificateParams,
        answer: impl Fn(&str, &Value) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let key = KeyPair::generate().expect("a key");
        let certificate = certificate.self_signed(&key).expect("a certificate");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let private = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)
            .expect("a configuration");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (answer, kept) = (Arc::new(answer), seen.clone());
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, answer, kept) = (acceptor.clone(), answer.clone(), kept.clone());
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else {
                        return;
                    };
                    let service = service_fn(async |request: Request<Incoming>| {
                        Ok::<_, Infallible>(answered(request, &*answer, &kept).await)
                    });
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Self {
            address,
            bundle: STANDARD.encode(certificate.pem()),
            seen,
            task,
        }
    }

    /// The reviews that came, with the paths they came to.
    pub(crate) fn seen(&self) -> Vec<(String, Value)> {
        self.seen.lock().expect("no panic").clone()
    }

    /// A client configuration that leads here.
    pub(crate) fn url(&self, path: &str) -> Value {
        json!({"url": format!("https://{}{path}", self.address), "caBundle": self.bundle})
    }
}

async fn answered(
    request: Request<Incoming>,
    answer: &(dyn Fn(&str, &Value) -> Answer + Send + Sync),
    kept: &Mutex<Vec<(String, Value)>>,
) -> Response<Full<Bytes>> {
    let path = request.uri().to_string();
    let body = request.into_body().collect().await.expect("a body").to_bytes();
    let review: Value = serde_json::from_slice(&body).expect("a review");
    kept.lock()
        .expect("no panic")
        .push((path.clone(), review.clone()));
    let answer = match answer(&path, &review) {
        Answer::After(happens) => {
            happens.await;
            allowed()
        }
        answer => answer,
    };
    let (code, text) = match answer {
        Answer::Response(mut response) => {
            response["uid"] = review["request"]["uid"].clone();
            let kind = (&review["apiVersion"], &review["kind"]);
            (
                200,
                json!({"apiVersion": kind.0, "kind": kind.1, "response": response}).to_string(),
            )
        }
        Answer::Raw(code, text) => (code, text),
        Answer::Silence | Answer::After(_) => std::future::pending().await,
    };
    Response::builder()
        .status(code)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(text)))
        .expect("an answer")
}

/// An answer that lets a write pass with these changes.
pub(crate) fn patched(operations: &Value) -> Answer {
    Answer::Response(json!({"allowed": true, "patchType": "JSONPatch",
        "patch": STANDARD.encode(operations.to_string())}))
}

/// An answer that lets a write pass.
pub(crate) fn allowed() -> Answer {
    Answer::Response(json!({"allowed": true}))
}

//! For authors of interpreter webhooks: implement [`Interpret`] for a kind, and [`serve`] it.
//!
//! Both contracts are answered at every path: `ResourceInterpreterContext` and `ExploreReview`. An operation that is not
//! implemented is refused; name in the rules of the configuration only those that are.
//!
//! ```no_run
//! # use entourage_webhook::interpret::{self, Answered, Interpret, Interpreter};
//! # use serde_json::Value;
//! struct Workloads;
//!
//! impl Interpret for Workloads {
//!     fn is_healthy(&self, live: &Value) -> Answered<bool> {
//!         Ok(live["status"]["readyReplicas"] == live["spec"]["replicas"])
//!     }
//! }
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let listener = tokio::net::TcpListener::bind("0.0.0.0:8443").await?;
//! let tls = interpret::tls(&std::fs::read("tls.crt")?, &std::fs::read("tls.key")?)?;
//! interpret::serve(listener, tls, Interpreter::new(Workloads), Default::default()).await;
//! # Ok(())
//! # }
//! ```
//!
//! Source: Karmada reference 3.4; the proposal of the exploring webhooks. An example that runs is
//! `examples/interpreter.rs`; its manifests are in `config/samples/interpreter-webhook`.

use std::{convert::Infallible, fmt, future::Future, pin::Pin, sync::Arc};

use bytes::Bytes;
use entourage_api::work::{AggregatedStatusItem, Component, DependentObjectReference, ReplicaRequirements};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use jiff::Timestamp;
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use serde_json::Value;
use tokio::{net::TcpListener, sync::watch};
use tokio_util::sync::CancellationToken;

use crate::{certificates, listener, server::LARGEST};

mod message;
#[cfg(test)]
mod tests;

use message::{Message, Reply};

/// What a hook answers.
pub type Answered<T> = Result<T, Refusal>;

/// Why a hook does not answer: a sentence for whoever wrote the object, without Secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// As the status of HTTP: 400 for a bad object, 501 for what is not implemented.
    pub code: u16,
    /// What is wrong and what to do.
    pub message: String,
}

impl Refusal {
    /// The object cannot be understood.
    #[must_use]
    pub fn bad(message: impl Into<String>) -> Self {
        Self {
            code: 400,
            message: message.into(),
        }
    }

    fn unsupported() -> Self {
        Self {
            code: 501,
            message: "this hook does not implement the operation; take it out of the rules".to_owned(),
        }
    }
}

/// How objects of a kind are understood. Each operation is asked on a thread where it may wait; objects are as an API server
/// serves them.
pub trait Interpret: Send + Sync + 'static {
    /// How many replicas a template asks for, and what one of them needs.
    ///
    /// # Errors
    /// As every operation: what is wrong with the object.
    fn replicas(&self, template: &Value) -> Answered<(u32, Option<ReplicaRequirements>)> {
        let _ = template;
        Err(Refusal::unsupported())
    }

    /// The parts of a template with several pod templates; asked by Karmada's contract only.
    ///
    /// # Errors
    /// What is wrong with the object.
    fn components(&self, template: &Value) -> Answered<Vec<Component>> {
        let _ = template;
        Err(Refusal::unsupported())
    }

    /// A copy with so many replicas.
    ///
    /// # Errors
    /// What is wrong with the object.
    fn revise_replicas(&self, copy: Value, replicas: i64) -> Answered<Value> {
        let _ = (copy, replicas);
        Err(Refusal::unsupported())
    }

    /// A template on its way to becoming a copy, without what stays on the hub. Asked only where a rule names `Prune` or
    /// `ExplorePacking`.
    ///
    /// # Errors
    /// What is wrong with the object.
    fn prune(&self, copy: Value) -> Answered<Value> {
        let _ = copy;
        Err(Refusal::unsupported())
    }

    /// The copy that is wanted, with what belongs to the member taken over from the live one.
    ///
    /// # Errors
    /// What is wrong with the objects.
    fn retain(&self, desired: Value, live: &Value) -> Answered<Value> {
        let _ = (desired, live);
        Err(Refusal::unsupported())
    }

    /// What of a live copy's status is worth reporting.
    ///
    /// # Errors
    /// What is wrong with the object.
    fn status(&self, live: &Value) -> Answered<Option<Value>> {
        let _ = live;
        Err(Refusal::unsupported())
    }

    /// A template with the status that is made of its copies'.
    ///
    /// # Errors
    /// What is wrong with the objects.
    fn aggregate_status(&self, template: Value, items: &[AggregatedStatusItem]) -> Answered<Value> {
        let _ = (template, items);
        Err(Refusal::unsupported())
    }

    /// Whether a live copy does well.
    ///
    /// # Errors
    /// What is wrong with the object.
    fn is_healthy(&self, live: &Value) -> Answered<bool> {
        let _ = live;
        Err(Refusal::unsupported())
    }

    /// What a template needs, to be taken along.
    ///
    /// # Errors
    /// What is wrong with the object.
    fn dependencies(&self, template: &Value) -> Answered<Vec<DependentObjectReference>> {
        let _ = template;
        Err(Refusal::unsupported())
    }
}

/// The HTTP side of an [`Interpret`]: a service of hyper, for a server of one's own too. Cheap to clone.
#[derive(Clone)]
pub struct Interpreter(Arc<dyn Interpret>);

impl Interpreter {
    /// Around an interpreter.
    #[must_use]
    pub fn new(interpret: impl Interpret) -> Self {
        Self(Arc::new(interpret))
    }

    /// The answer to one request: a message of either contract that is posted, or a look at the server's health.
    pub async fn answer<B>(&self, request: Request<B>) -> Response<Full<Bytes>>
    where
        B: http_body::Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let is_get = matches!(*request.method(), Method::GET | Method::HEAD);
        if is_get && matches!(request.uri().path(), "/healthz" | "/livez" | "/readyz") {
            return listener::text(StatusCode::OK, "ok\n");
        }
        let what = "a ResourceInterpreterContext or an ExploreReview";
        let body = match listener::posted(request, what, LARGEST).await {
            Ok(body) => body,
            Err(response) => return response,
        };
        let message = match Message::read(&body) {
            Ok(message) => message,
            Err(why) => return listener::text(StatusCode::BAD_REQUEST, format!("{why}\n")),
        };
        let interpret = self.0.clone();
        // An interpreter may wait, and one that panics is one request's trouble.
        let replied = tokio::task::spawn_blocking(move || message.replied(&*interpret)).await;
        match replied {
            Ok(Reply::Message(message)) => listener::json(&message),
            Ok(Reply::Refusal(refusal)) => {
                let code = StatusCode::from_u16(refusal.code).ok();
                let code = code.filter(|code| code.is_client_error() || code.is_server_error());
                let code = code.unwrap_or(StatusCode::UNPROCESSABLE_ENTITY);
                listener::text(code, format!("{refusal}\n"))
            }
            Err(_) => listener::text(StatusCode::INTERNAL_SERVER_ERROR, "the interpreter failed\n"),
        }
    }
}

/// Nothing is known of what is inside.
impl fmt::Debug for Interpreter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interpreter").finish_non_exhaustive()
    }
}

impl<B> hyper::service::Service<Request<B>> for Interpreter
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, request: Request<B>) -> Self::Future {
        let interpreter = self.clone();
        Box::pin(async move { Ok(interpreter.answer(request).await) })
    }
}

/// Serves until `stop`; requests that have begun are answered, if they end soon.
pub async fn serve(
    listener: TcpListener,
    tls: ServerConfig,
    interpreter: Interpreter,
    stop: CancellationToken,
) {
    let (_certificate, current) = watch::channel(Some((Vec::new(), Arc::new(tls))));
    listener::serve(listener, current, stop, move |request| {
        let interpreter = interpreter.clone();
        async move { interpreter.answer(request).await }
    })
    .await;
}

/// TLS with a certificate, the chain behind it, and its key, both PEM, as in a Secret of type `kubernetes.io/tls`.
///
/// # Errors
/// What is wrong with them; nothing of the key.
pub fn tls(chain: &[u8], key: &[u8]) -> Result<ServerConfig, String> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(chain)
        .collect::<Result<_, _>>()
        .map_err(|_| "the certificate is not PEM")?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| "the key is not a private key in PEM")?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| format!("certificate and key cannot be used: {error}"))?;
    Ok(offering_h2(config))
}

/// TLS with a certificate that is made for these names, and the `caBundle` that clients trust it by, in base64 of PEM. For
/// trying out: who restarts has another.
///
/// # Errors
/// When a name cannot stand in a certificate.
pub fn self_signed(names: &[String], now: Timestamp) -> Result<(ServerConfig, String), String> {
    let identity = certificates::anew("", names, now)?;
    Ok((offering_h2(identity.config()), identity.bundle()))
}

fn offering_h2(mut config: ServerConfig) -> ServerConfig {
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config
}

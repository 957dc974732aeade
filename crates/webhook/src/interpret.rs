//! For authors of interpreter webhooks: implement [`Interpret`] for the objects of a kind, and [`serve`] it.
//!
//! Both contracts are served at every path: `ResourceInterpreterContext` and `ExploreReview`. An operation that is not
//! implemented is refused; name only implemented operations in the rules of the configuration.
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

/// The response of a webhook.
pub type Answered<T> = Result<T, Refusal>;

/// The reason why a webhook has no response: a sentence for the author of the object, without values of Secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The HTTP status: 400 for a bad object, 501 for an operation that is not implemented.
    pub code: u16,
    /// The cause and the remedy.
    pub message: String,
}

impl Refusal {
    /// The object cannot be interpreted.
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

/// The interpretation of a kind. Each operation is called on a thread where it may block; objects have the form in which an API
/// server serves them.
pub trait Interpret: Send + Sync + 'static {
    /// Returns the number of replicas of a template, and the requirements of one replica.
    ///
    /// # Errors
    /// As for every operation: the error in the object.
    fn replicas(&self, template: &Value) -> Answered<(u32, Option<ReplicaRequirements>)> {
        let _ = template;
        Err(Refusal::unsupported())
    }

    /// Returns the components of a template with several pod templates; called by Karmada's contract only.
    ///
    /// # Errors
    /// The error in the object.
    fn components(&self, template: &Value) -> Answered<Vec<Component>> {
        let _ = template;
        Err(Refusal::unsupported())
    }

    /// Returns a copy with the given number of replicas.
    ///
    /// # Errors
    /// The error in the object.
    fn revise_replicas(&self, copy: Value, replicas: i64) -> Answered<Value> {
        let _ = (copy, replicas);
        Err(Refusal::unsupported())
    }

    /// Returns a template without the fields that stay on the hub, the first step to a copy. Called only if a rule names
    /// `Prune` or `ExplorePacking`.
    ///
    /// # Errors
    /// The error in the object.
    fn prune(&self, copy: Value) -> Answered<Value> {
        let _ = copy;
        Err(Refusal::unsupported())
    }

    /// Returns the desired copy, with the fields that belong to the member taken from the live one.
    ///
    /// # Errors
    /// The error in the objects.
    fn retain(&self, desired: Value, live: &Value) -> Answered<Value> {
        let _ = (desired, live);
        Err(Refusal::unsupported())
    }

    /// Returns the part of a live copy's status that is reported.
    ///
    /// # Errors
    /// The error in the object.
    fn status(&self, live: &Value) -> Answered<Option<Value>> {
        let _ = live;
        Err(Refusal::unsupported())
    }

    /// Returns a template with the status that is aggregated from its copies.
    ///
    /// # Errors
    /// The error in the objects.
    fn aggregate_status(&self, template: Value, items: &[AggregatedStatusItem]) -> Answered<Value> {
        let _ = (template, items);
        Err(Refusal::unsupported())
    }

    /// Returns true if a live copy is healthy.
    ///
    /// # Errors
    /// The error in the object.
    fn is_healthy(&self, live: &Value) -> Answered<bool> {
        let _ = live;
        Err(Refusal::unsupported())
    }

    /// Returns the dependencies of a template.
    ///
    /// # Errors
    /// The error in the object.
    fn dependencies(&self, template: &Value) -> Answered<Vec<DependentObjectReference>> {
        let _ = template;
        Err(Refusal::unsupported())
    }
}

/// The HTTP side of an [`Interpret`]: a service of hyper, usable in other servers too. Cheap to clone.
#[derive(Clone)]
pub struct Interpreter(Arc<dyn Interpret>);

impl Interpreter {
    /// Wraps an interpreter.
    #[must_use]
    pub fn new(interpret: impl Interpret) -> Self {
        Self(Arc::new(interpret))
    }

    /// Responds to one request: a posted message of either contract, or a health check.
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
        // An interpreter may block, and one that panics fails one request only.
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

/// The content is unknown.
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

/// Serves until `stop`; requests in progress are finished, within a limit.
pub async fn serve(
    listener: TcpListener,
    tls: ServerConfig,
    interpreter: Interpreter,
    stop: CancellationToken,
) {
    let (_certificate, current) = watch::channel(Some((Vec::new(), Arc::new(tls))));
    listener::serve(
        listener,
        current,
        listener::FOR_API_SERVER,
        stop,
        move |request| {
            let interpreter = interpreter.clone();
            async move { interpreter.answer(request).await }
        },
    )
    .await;
}

/// TLS with a certificate, its chain, and its key, both PEM, as in a Secret of type `kubernetes.io/tls`.
///
/// # Errors
/// The error in them, without any part of the key.
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

/// TLS with a certificate that is created for these names, and the `caBundle` for clients to trust it, in base64 of PEM. For
/// tests: a restart creates another one.
///
/// # Errors
/// A name is invalid in a certificate.
pub fn self_signed(names: &[String], now: Timestamp) -> Result<(ServerConfig, String), String> {
    let identity = certificates::anew("", names, now)?;
    Ok((offering_h2(identity.config()), identity.bundle()))
}

fn offering_h2(mut config: ServerConfig) -> ServerConfig {
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config
}

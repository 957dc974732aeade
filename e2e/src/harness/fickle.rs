//! A webhook in this process that fails on request.

use std::{
    convert::Infallible,
    future::pending,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Result, anyhow};
use bytes::Bytes;
use entourage_webhook::interpret::{self, Interpret, Interpreter};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::task::AbortOnDropHandle;

use crate::servers::Certificate;

/// A length above the limit of a response.
const HUGE: usize = 4 << 20;

/// The behaviour of the webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// It responds as its interpreter does.
    Well,
    /// The same response, with the uid of another request.
    Lying,
    /// More bytes than the limit of a response.
    Huge,
    /// It never responds.
    Mute,
}

/// Listens on 127.0.0.1 until it is dropped.
pub struct Fickle {
    mood: Arc<Mutex<Mood>>,
    port: u16,
    certificate: Certificate,
    _task: AbortOnDropHandle<()>,
}

impl Fickle {
    /// Starts it; it responds correctly.
    ///
    /// # Errors
    /// When no port is left.
    pub async fn start(interpret: impl Interpret) -> Result<Self> {
        Self::start_with(Certificate::of(&[])?, interpret).await
    }

    /// The same with this certificate.
    ///
    /// # Errors
    /// When no port is left, or the certificate is none.
    pub async fn start_with(certificate: Certificate, interpret: impl Interpret) -> Result<Self> {
        let tls = interpret::tls(certificate.chain.as_bytes(), certificate.key.as_bytes());
        let mut tls = tls.map_err(|why| anyhow!(why))?;
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let mood = Arc::new(Mutex::new(Mood::Well));
        let (now, interpreter) = (mood.clone(), Interpreter::new(interpret));
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(connection(
                    acceptor.clone(),
                    stream,
                    now.clone(),
                    interpreter.clone(),
                ));
            }
        });
        Ok(Self {
            mood,
            port,
            certificate,
            _task: AbortOnDropHandle::new(task),
        })
    }

    /// Sets its behaviour from now on.
    pub fn is(&self, mood: Mood) {
        *self.mood.lock().unwrap_or_else(PoisonError::into_inner) = mood;
    }

    /// Its URL and CA bundle, for `clientConfig`.
    #[must_use]
    pub fn client_config(&self) -> Value {
        json!({"url": format!("https://127.0.0.1:{}/", self.port), "caBundle": self.certificate.bundle()})
    }
}

/// A client that does not finish the handshake does not trust the certificate any more: that is no error.
async fn connection(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    mood: Arc<Mutex<Mood>>,
    interpreter: Interpreter,
) {
    let Ok(stream) = acceptor.accept(stream).await else {
        return;
    };
    let service = service_fn(move |request| {
        let mood = *mood.lock().unwrap_or_else(PoisonError::into_inner);
        answer(request, mood, interpreter.clone())
    });
    // It ends with its client.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn answer(
    request: Request<Incoming>,
    mood: Mood,
    interpreter: Interpreter,
) -> Result<Response<Full<Bytes>>, Infallible> {
    match mood {
        Mood::Well => Ok(interpreter.answer(request).await),
        Mood::Lying => Ok(lie(interpreter.answer(request).await).await),
        Mood::Huge => Ok(Response::new(Full::from(vec![b' '; HUGE]))),
        Mood::Mute => pending().await,
    }
}

async fn lie(response: Response<Full<Bytes>>) -> Response<Full<Bytes>> {
    let (mut parts, body) = response.into_parts();
    let body = body.collect().await.map(http_body_util::Collected::to_bytes);
    let Ok(body) = body;
    let mut message: Value = serde_json::from_slice(&body).unwrap_or_default();
    message["response"]["uid"] = json!("another");
    parts.headers.remove(http::header::CONTENT_LENGTH);
    Response::from_parts(parts, Full::from(message.to_string()))
}

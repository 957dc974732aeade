//! The connections to one hook: reused, over TLS only, HTTP/2 if it is offered.
//!
//! Every exchange has a deadline for all of it and a size limit for the response. Redirects are not followed.

use std::{
    error::Error as StdError,
    io,
    sync::{Arc, Once},
    time::Duration,
};

use bytes::Bytes;
use entourage_core::interpreter::hook::Call;
use http::{Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper_rustls::{ConfigBuilderExt as _, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use rustls::{
    ClientConfig,
    pki_types::{CertificateDer, pem::PemObject as _},
};
use tokio::sync::Semaphore;

use super::resolve::{Finder, Services, Unresolved};
use crate::client::trust;

/// The largest buffer of a connection, in bytes; messages may be larger.
const BUFFER: usize = 64 << 10;
/// The time that idle connections are kept, and their maximum number.
const IDLE: Duration = Duration::from_secs(30);
const KEPT: usize = 8;
/// The interval and the timeout of keep-alive pings while a request waits: a connection that the network lost would be waited
/// for again and again, since all requests of HTTP/2 share it.
const ALIVE: Duration = Duration::from_secs(5);
/// The maximum number of concurrent requests; more wait, within their timeout.
const TURNS: usize = 32;

type Connector = HttpsConnector<HttpConnector<Finder>>;

/// Cheap to clone; clones share connections.
#[derive(Clone)]
pub(super) struct HookQueue {
    http: legacy::Client<Connector, Full<Bytes>>,
    uri: Uri,
    host: String,
    timeout: Duration,
    turns: Arc<Semaphore>,
}

/// The reason why there is no response.
#[derive(Debug)]
pub(super) struct Failure {
    /// The cause and what to do; nothing of the request or the response.
    pub(super) why: String,
    /// True if no valid response came back, as from a hook that is down.
    pub(super) has_no_response: bool,
}

impl HookQueue {
    /// # Errors
    /// The reason why the trusted certificates cannot be used.
    pub(super) fn new(call: &Call, services: Option<Arc<dyn Services>>) -> Result<Self, String> {
        let (port, path) = call.address.port_and_path();
        let host = call.address.host();
        let uri = format!("https://{host}:{port}{path}");
        let uri = uri
            .parse()
            .map_err(|_| "its address is not a URL; correct it".to_owned())?;
        let finder = Finder {
            address: Arc::new(call.address.clone()),
            services,
        };
        let mut tcp = HttpConnector::new_with_resolver(finder);
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(call.timeout));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls(call.ca_bundle.as_deref())?)
            .https_only()
            .enable_all_versions()
            .wrap_connector(tcp);
        let http = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(KEPT)
            .http1_max_buf_size(BUFFER)
            .http2_keep_alive_interval(ALIVE)
            .http2_keep_alive_timeout(ALIVE)
            .build(connector);
        Ok(Self {
            http,
            uri,
            host: format!("{host}:{port}"),
            timeout: call.timeout,
            turns: Arc::new(Semaphore::new(TURNS)),
        })
    }

    /// Sends a request and reads the response, of at most `largest` bytes, within the hook's timeout.
    pub(super) async fn exchange(&self, body: Bytes, largest: usize) -> Result<Bytes, Failure> {
        let exchange = async {
            // The semaphore is never closed.
            let _turn = self.turns.acquire().await;
            match self.once(body.clone(), largest).await {
                // The connection broke, as one does that was kept while the hook restarted. A question may be asked twice.
                Err(ExchangeError::Broken(_)) => self.once(body, largest).await,
                other => other,
            }
        };
        let (why, has_no_response) = match tokio::time::timeout(self.timeout, exchange).await {
            Ok(Ok(bytes)) => return Ok(bytes),
            Ok(Err(error)) => (error.text(&self.host), error.has_no_response()),
            Err(_) => {
                let seconds = self.timeout.as_secs();
                let why = format!(
                    "{} does not respond within {seconds} s; is it running, or does it need more timeoutSeconds?",
                    self.host
                );
                (why, true)
            }
        };
        Err(Failure { why, has_no_response })
    }

    async fn once(&self, body: Bytes, largest: usize) -> Result<Bytes, ExchangeError> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(&self.uri)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json")
            .header(
                header::USER_AGENT,
                concat!("entourage/", env!("CARGO_PKG_VERSION")),
            )
            .body(Full::new(body))
            .map_err(|error| ExchangeError::Broken(error.to_string()))?;
        let response = self
            .http
            .request(request)
            .await
            .map_err(|error| exchange_error(&error))?;
        if response.status() != StatusCode::OK {
            return Err(ExchangeError::Status(response.status()));
        }
        let body = Limited::new(response.into_body(), largest).collect().await;
        body.map(http_body_util::Collected::to_bytes).map_err(|error| {
            if error.is::<LengthLimitError>() {
                ExchangeError::Large(largest)
            } else {
                ExchangeError::Broken("the response was cut off".to_owned())
            }
        })
    }
}

/// The failure of an exchange.
enum ExchangeError {
    /// There is no connection.
    Unconnected(String),
    /// Its name has no address.
    Unresolved(String),
    /// The certificate of the peer is not trusted, or it does not support TLS.
    Untrusted(String),
    /// The connection broke.
    Broken(String),
    /// A response other than 200.
    Status(StatusCode),
    /// A response larger than the limit.
    Large(usize),
}

impl ExchangeError {
    /// True if the hook as a whole has failed. Other failures may be specific to the object in question.
    const fn has_no_response(&self) -> bool {
        match self {
            Self::Large(_) => false,
            Self::Status(status) => matches!(status.as_u16(), 300..=399 | 404 | 429 | 502..=504),
            _ => true,
        }
    }

    fn text(&self, host: &str) -> String {
        match self {
            Self::Unconnected(why) => {
                format!("cannot connect to {host}: {why}; is it running, and is its address right?")
            }
            Self::Unresolved(why) => format!("cannot connect to {host}: {why}"),
            Self::Untrusted(why) => format!(
                "no TLS with {host}: {why}; its certificate must be for that name and by an authority in clientConfig.caBundle"
            ),
            Self::Broken(why) => format!("{host} does not respond: {why}; its own log may show the cause"),
            Self::Status(status) if status.is_redirection() => {
                format!(
                    "{host} responds with status {}; redirects are not followed: give the address itself",
                    status.as_u16()
                )
            }
            Self::Status(status) => {
                format!(
                    "{host} responds with status {}, not 200; its own log may show the cause",
                    status.as_u16()
                )
            }
            Self::Large(largest) => format!("{host} responds with more than {largest} bytes"),
        }
    }
}

/// The failure of an error of the HTTP client, by the first of its causes that determines it.
fn exchange_error(error: &legacy::Error) -> ExchangeError {
    let mut at: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(each) = at {
        if let Some(unresolved) = each.downcast_ref::<Unresolved>() {
            return ExchangeError::Unresolved(unresolved.0.clone());
        }
        if let Some(tls) = each.downcast_ref::<rustls::Error>() {
            return ExchangeError::Untrusted(tls.to_string());
        }
        let io = each.downcast_ref::<io::Error>();
        // The cause that an io::Error wraps is not its source.
        if let Some(inner) = io.and_then(io::Error::get_ref) {
            at = Some(inner);
            continue;
        }
        if let (Some(io), true) = (io, error.is_connect()) {
            return ExchangeError::Unconnected(io.to_string());
        }
        at = each.source();
    }
    if error.is_connect() {
        ExchangeError::Unconnected("the connection was not made".to_owned())
    } else {
        ExchangeError::Broken("the connection broke".to_owned())
    }
}

/// Trusts the certificates of a bundle, or those that the system trusts.
fn tls(bundle: Option<&[u8]>) -> Result<ClientConfig, String> {
    static PROVIDER: Once = Once::new();
    // An error means that a provider is installed already.
    PROVIDER.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
    let builder = ClientConfig::builder();
    let Some(bundle) = bundle else {
        let builder = builder.with_native_roots().map_err(|error| {
            format!("the certificates that the system trusts cannot be read: {error}; give a clientConfig.caBundle")
        })?;
        return Ok(builder.with_no_client_auth());
    };
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bundle).collect();
    let wrong =
        "clientConfig.caBundle holds something other than certificates; give certificates in PEM, in base64";
    let certificates = certificates.map_err(|_| wrong)?;
    if certificates.is_empty() {
        return Err("clientConfig.caBundle holds no certificate; give certificates in PEM, in base64".into());
    }
    let verifier = trust::verifier(certificates).ok_or(wrong)?;
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
    Ok(builder.with_no_client_auth())
}

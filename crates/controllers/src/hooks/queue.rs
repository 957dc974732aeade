//! The connection pool of one webhook: TLS only, HTTP/2 where it is offered.
//!
//! Every exchange has a deadline over all of it and a bound on what is read. Redirects are not followed.

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
/// How long a connection is kept that nobody uses, and how many.
const IDLE: Duration = Duration::from_secs(30);
const KEPT: usize = 8;
/// How often a connection that is waited for is tried, and how long that may take: one that a network lost would be waited
/// for again and again, since all requests of HTTP/2 share it.
const ALIVE: Duration = Duration::from_secs(5);
/// Requests at a time; more wait, and their time runs.
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

/// Why there is no answer.
#[derive(Debug)]
pub(super) struct Failure {
    /// The cause and what to do; nothing of what was sent or came back.
    pub(super) why: String,
    /// Whether nothing came back that could be an answer, as from a hook that is not there.
    pub(super) is_silence: bool,
}

impl HookQueue {
    /// # Errors
    /// Why the certificates to trust cannot be used.
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

    /// Sends a request and reads the answer, of at most `largest` bytes, within the hook's time.
    pub(super) async fn exchange(&self, body: Bytes, largest: usize) -> Result<Bytes, Failure> {
        let exchange = async {
            // Nobody closes it.
            let _turn = self.turns.acquire().await;
            match self.once(body.clone(), largest).await {
                // It broke off, as a connection does that was kept while the hook restarted. A question may be asked twice.
                Err(Trouble::Broken(_)) => self.once(body, largest).await,
                other => other,
            }
        };
        let (why, is_silence) = match tokio::time::timeout(self.timeout, exchange).await {
            Ok(Ok(bytes)) => return Ok(bytes),
            Ok(Err(trouble)) => (trouble.text(&self.host), trouble.is_silence()),
            Err(_) => {
                let seconds = self.timeout.as_secs();
                let why = format!(
                    "{} does not respond within {seconds} s; is it running, or does it need more timeoutSeconds?",
                    self.host
                );
                (why, true)
            }
        };
        Err(Failure { why, is_silence })
    }

    async fn once(&self, body: Bytes, largest: usize) -> Result<Bytes, Trouble> {
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
            .map_err(|error| Trouble::Broken(error.to_string()))?;
        let response = self
            .http
            .request(request)
            .await
            .map_err(|error| trouble(&error))?;
        if response.status() != StatusCode::OK {
            return Err(Trouble::Status(response.status()));
        }
        let body = Limited::new(response.into_body(), largest).collect().await;
        body.map(http_body_util::Collected::to_bytes).map_err(|error| {
            if error.is::<LengthLimitError>() {
                Trouble::Large(largest)
            } else {
                Trouble::Broken("the answer broke off".to_owned())
            }
        })
    }
}

/// What went wrong with an exchange.
enum Trouble {
    /// There is no connection.
    Unconnected(String),
    /// Its name has no address.
    Unresolved(String),
    /// The other side is not who it should be, or speaks no TLS.
    Untrusted(String),
    /// The connection broke.
    Broken(String),
    /// Another answer than 200.
    Status(StatusCode),
    /// More bytes than are read.
    Large(usize),
}

impl Trouble {
    /// Whether the hook as a whole is in trouble. Another one may be with the object that it was asked about.
    const fn is_silence(&self) -> bool {
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
            Self::Broken(why) => format!("{host} does not respond: {why}; its own log may say why"),
            Self::Status(status) if status.is_redirection() => {
                format!(
                    "{host} answers with status {}; redirects are not followed: give the address itself",
                    status.as_u16()
                )
            }
            Self::Status(status) => {
                format!(
                    "{host} answers with status {}, not 200; its own log may say why",
                    status.as_u16()
                )
            }
            Self::Large(largest) => format!("{host} answers with more than {largest} bytes"),
        }
    }
}

/// What an error of the HTTP client is about, by the first of its causes that says so.
fn trouble(error: &legacy::Error) -> Trouble {
    let mut at: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(each) = at {
        if let Some(unresolved) = each.downcast_ref::<Unresolved>() {
            return Trouble::Unresolved(unresolved.0.clone());
        }
        if let Some(tls) = each.downcast_ref::<rustls::Error>() {
            return Trouble::Untrusted(tls.to_string());
        }
        let io = each.downcast_ref::<io::Error>();
        // The cause that an io::Error wraps is not its source.
        if let Some(inner) = io.and_then(io::Error::get_ref) {
            at = Some(inner);
            continue;
        }
        if let (Some(io), true) = (io, error.is_connect()) {
            return Trouble::Unconnected(io.to_string());
        }
        at = each.source();
    }
    if error.is_connect() {
        Trouble::Unconnected("the connection was not made".to_owned())
    } else {
        Trouble::Broken("the connection broke".to_owned())
    }
}

/// Trust in the certificates of a bundle, or in those that the system trusts.
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

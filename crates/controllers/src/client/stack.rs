//! The client of production: kube's layers for address, credentials and headers over an HTTP client with small buffers.
//!
//! kube's own stack gives no access to the HTTP client below it, which lets every connection's buffer grow to 400 KiB and keeps
//! idle connections forever; there is a connection for every watch and for every request in flight, so that adds up. Nor does it
//! allow a choice of trusted certificates ([`trust`]).

use std::time::Duration;

use http::Uri;
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{
        Client as HttpClient,
        connect::{Connection, HttpConnector},
    },
    rt::{TokioExecutor, TokioTimer},
};
use kube::{
    Client, Config,
    client::{Body, ClientBuilder, ConfigExt as _},
};
use rustls::{ClientConfig, pki_types::CertificateDer};
use tower::{BoxError, Service, ServiceBuilder};

use super::{
    trust,
    tunnel::{self, tunnel},
};

/// The largest buffer of a connection, in bytes; objects may be larger.
const BUFFER: usize = 16 << 10;
/// The time that an idle connection is kept: longer than the pause between two probes.
const IDLE: Duration = Duration::from_secs(30);
/// The maximum number of idle connections per server.
const KEPT: usize = 32;
/// Keepalive: the idle time of a connection before the first probe, and the interval of the probes. A watch, or a connection with
/// another protocol, that waits for the next event is as silent as one to a machine that is gone.
const ALIVE: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(10));

/// A client that does not retry by itself.
///
/// # Errors
/// The configuration's credentials, certificates or proxy cannot be used.
pub(super) fn client(mut config: Config) -> kube::Result<Client> {
    // Also without a proxy: they are not for the server.
    let connect = tunnel::take(&mut config);
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(ALIVE.0));
    tcp.set_keepalive_interval(Some(ALIVE.1));
    tcp.set_connect_timeout(config.connect_timeout);
    let Some(proxy) = config.proxy_url.clone() else {
        return over(config, tcp);
    };
    match proxy.scheme_str() {
        Some("http") => over(config, tunnel(proxy, connect, tcp)),
        Some("https") => {
            let tls = HttpsConnectorBuilder::new()
                .with_tls_config(tls(&config)?)
                .https_or_http();
            let to_proxy = tls.enable_http1().wrap_connector(tcp);
            over(config, tunnel(proxy, connect, to_proxy))
        }
        // kube reports the error.
        _ => Ok(ClientBuilder::try_from(config)?.build()),
    }
}

/// The client whose connections to the server are made by this connector.
fn over<C>(config: Config, connector: C) -> kube::Result<Client>
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: hyper::rt::Read + hyper::rt::Write + Connection + Send + Unpin + 'static,
    C::Future: Send + 'static,
    C::Error: Into<BoxError> + Send + Sync + std::error::Error + 'static,
{
    let mut https = HttpsConnectorBuilder::new()
        .with_tls_config(tls(&config)?)
        .https_or_http();
    if let Some(name) = config.tls_server_name.clone() {
        let name = name
            .try_into()
            .map_err(kube::client::RustlsTlsError::InvalidServerName)
            .map_err(kube::Error::RustlsTls)?;
        https = https.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    let http: HttpClient<_, Body> = HttpClient::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(KEPT)
        .http1_max_buf_size(BUFFER)
        .build(https.enable_http1().wrap_connector(connector));
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(http);
    Ok(ClientBuilder::new(service, config.default_namespace).build())
}

/// kube's TLS configuration, with our verifier if trusted certificates are given. Those of a pod's file are reloaded by kube's
/// own verifier when the file changes.
fn tls(config: &Config) -> kube::Result<ClientConfig> {
    let mut tls = config.rustls_client_config()?;
    let given = config
        .root_cert
        .as_ref()
        .filter(|_| config.root_cert_file.is_none());
    if let (Some(given), false) = (given, config.accept_invalid_certs) {
        let given = given.iter().cloned().map(CertificateDer::from).collect();
        if let Some(verifier) = trust::verifier(given) {
            tls.dangerous().set_certificate_verifier(verifier);
        }
    }
    Ok(tls)
}

#[cfg(test)]
mod tests {
    use http::Request;
    use http_body_util::BodyExt as _;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::{TcpListener, TcpStream},
    };

    use super::{super::tunnel::ProxyHeaders, *};

    #[tokio::test]
    async fn a_request_carries_the_token_and_a_large_answer_comes_whole() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let size = BUFFER * 10;
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = Vec::new();
            while !asked.ends_with(b"\r\n\r\n") {
                asked.push(stream.read_u8().await.unwrap());
            }
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {size}\r\n\r\n");
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(&vec![b'x'; size]).await.unwrap();
            String::from_utf8(asked).unwrap()
        });
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut config = Config::new(format!("http://{address}").parse().unwrap());
        config.auth_info.token = Some("t0ken".to_owned().into());
        let request = Request::get("/api/v1/x").body(Body::empty()).unwrap();
        let answer = client(config).unwrap().send(request).await.unwrap();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body.len(), size);
        let asked = server.await.unwrap().to_lowercase();
        assert!(
            asked.starts_with("get /api/v1/x ") && asked.contains("authorization: bearer t0ken"),
            "{asked}"
        );
    }

    /// Reads up to the empty line.
    async fn head(stream: &mut TcpStream) -> String {
        let mut read = Vec::new();
        while !read.ends_with(b"\r\n\r\n") {
            read.push(stream.read_u8().await.unwrap());
        }
        String::from_utf8(read).unwrap().to_lowercase()
    }

    #[tokio::test]
    async fn the_headers_of_a_proxy_are_in_connect_alone() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let proxy = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let connect = head(&mut stream).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            let asked = head(&mut stream).await;
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                .await
                .unwrap();
            (connect, asked)
        });
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut config = Config::new("http://member:8080".parse().unwrap());
        config.proxy_url = Some(format!("http://user:pass@{address}").parse().unwrap());
        let headers = [("X-Team", "blue"), ("Proxy-Authorization", "Bearer overridden")];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        ProxyHeaders::from(&headers.into()).add_to(&mut config).unwrap();
        let request = Request::get("/api/v1/x").body(Body::empty()).unwrap();
        let answer = client(config).unwrap().send(request).await.unwrap();
        assert_eq!(answer.status(), 200);
        let (connect, asked) = proxy.await.unwrap();
        assert!(connect.starts_with("connect member:8080 "), "{connect}");
        assert!(connect.contains("x-team: blue\r\n"), "{connect}");
        // As Karmada has it: user and password of the URL go first.
        assert!(
            connect.contains("proxy-authorization: basic dxnlcjpwyxnz\r\n") && !connect.contains("bearer"),
            "{connect}"
        );
        assert!(
            asked.starts_with("get /api/v1/x ") && !asked.contains("x-team") && !asked.contains("proxy-"),
            "{asked}"
        );
    }
}

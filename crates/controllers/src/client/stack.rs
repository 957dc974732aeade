//! The client of production: kube's layers for address, credentials and headers over an HTTP client that holds little.
//!
//! kube's own stack gives no access to the HTTP client below it, which lets every connection's buffer grow to 400 KiB
//! and keeps idle connections for ever. There is a connection for every watch and for every request in flight, so that
//! adds up. Configurations with a proxy or an exec plugin get kube's own stack: they need more than the layers here.

use std::time::Duration;

use hyper_util::{
    client::legacy::{Client as HttpClient, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use kube::{
    Client, Config,
    client::{Body, ClientBuilder, ConfigExt as _},
};
use tower::ServiceBuilder;

/// The largest buffer of a connection, in bytes; objects may be larger.
const BUFFER: usize = 64 << 10;
/// How long a connection is kept that nobody uses: longer than the pause between two probes.
const IDLE: Duration = Duration::from_secs(30);
/// Idle connections kept per server.
const KEPT: usize = 32;

/// A client that does not retry by itself.
///
/// # Errors
/// The configuration's credentials, certificates or proxy cannot be used.
pub(super) fn client(config: Config) -> kube::Result<Client> {
    if config.proxy_url.is_some() || config.auth_info.exec.is_some() {
        return Ok(ClientBuilder::try_from(config)?.build());
    }
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(config.connect_timeout);
    let http: HttpClient<_, Body> = HttpClient::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(KEPT)
        .http1_max_buf_size(BUFFER)
        .build(config.rustls_https_connector_with_connector(connector)?);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(tower::BoxError::from)
        .service(http);
    Ok(ClientBuilder::new(service, config.default_namespace).build())
}

#[cfg(test)]
mod tests {
    use http::Request;
    use http_body_util::BodyExt as _;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;

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
}

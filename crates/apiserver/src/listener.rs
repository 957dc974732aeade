//! The TLS listener: on loopback, with a certificate of the cluster's own authority.
//!
//! An idle connection costs its TLS state and is closed in the end; so is one that reads nothing. Headers, bodies and
//! handshakes are bounded in size and time.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use http::Request;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::{SockRef, TcpKeepalive};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::{
    auth::certificate,
    cluster::Cluster,
    http::{Certified, answer},
};

mod kubeconfig;
mod patient;

pub use crate::authority::{Authority, ClientCertificate};
pub use kubeconfig::{Access, kubeconfig};
use patient::Patient;

/// The limits of a connection.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// For the TLS handshake.
    handshake: Duration,
    /// From the end of an answer to the end of the next request's headers, so also how long a connection may be idle: longer than
    /// clients keep theirs (90 s), so that they close it, and no request meets a closing connection.
    headers: Duration,
    /// Bytes of headers, and of what is buffered of a body.
    buffer: usize,
    /// The time for which a client may read nothing of what is written to it.
    write: Duration,
    /// Connections at a time; more wait to be accepted.
    connections: usize,
}

const LIMITS: Limits = Limits {
    handshake: Duration::from_secs(10),
    headers: Duration::from_secs(100),
    buffer: 128 << 10,
    write: Duration::from_secs(60),
    connections: 16_384,
};

/// Serves a cluster on `address` (port 0: any) until `stop`. Returns the address at once; connections are served by tasks.
///
/// # Errors
/// When the address cannot be had.
pub async fn listen(
    cluster: Cluster,
    authority: &Authority,
    address: SocketAddr,
    stop: CancellationToken,
) -> io::Result<SocketAddr> {
    listen_with(cluster, authority, address, stop, LIMITS).await
}

async fn listen_with(
    cluster: Cluster,
    authority: &Authority,
    address: SocketAddr,
    stop: CancellationToken,
    limits: Limits,
) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address).await?;
    let bound = listener.local_addr()?;
    cluster.inner().advertise(bound);
    let acceptor = TlsAcceptor::from(authority.config());
    let places = Arc::new(Semaphore::new(limits.connections));
    tokio::spawn(async move {
        loop {
            let (stream, place) = tokio::select! {
                () = stop.cancelled() => return,
                accepted = accepted(&listener, &places) => match accepted {
                    Some(accepted) => accepted,
                    None => continue,
                },
            };
            let (acceptor, cluster, stop) = (acceptor.clone(), cluster.clone(), stop.clone());
            tokio::spawn(async move {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = served(stream, &acceptor, &cluster, limits) => {}
                }
                drop(place);
            });
        }
    });
    Ok(bound)
}

/// The next connection, when there is a place for it.
async fn accepted(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let place = places.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => Some((stream, place)),
        Err(error) => {
            // Out of file descriptors, as a rule: accepting again at once would spin.
            tracing::warn!(%error, "cannot accept a connection");
            tokio::time::sleep(Duration::from_millis(100)).await;
            None
        }
    }
}

/// Keepalive: the idle time of a connection before the first probe, and the interval of the probes.
const ALIVE: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(10));

/// Serves one connection to its end.
async fn served(stream: TcpStream, acceptor: &TlsAcceptor, cluster: &Cluster, limits: Limits) {
    // Answers are written whole: waiting for more would only delay them.
    let _ = stream.set_nodelay(true);
    let (unresponsive, interval) = ALIVE;
    let keepalive = TcpKeepalive::new()
        .with_time(unresponsive)
        .with_interval(interval);
    // A watcher on a dead machine is as unresponsive as one that waits.
    let _ = SockRef::from(&stream).set_tcp_keepalive(&keepalive);
    let stream = Patient::new(stream, limits.write);
    let Ok(Ok(stream)) = tokio::time::timeout(limits.handshake, acceptor.accept(stream)).await else {
        return;
    };
    let shown = stream
        .get_ref()
        .1
        .peer_certificates()
        .and_then(|chain| chain.first());
    let certified = shown.and_then(|leaf| certificate::user(leaf)).map(Certified);
    let service = service_fn(|mut request: Request<Incoming>| {
        if let Some(certified) = &certified {
            request.extensions_mut().insert(certified.clone());
        }
        async move { Ok::<_, std::convert::Infallible>(answer(cluster.inner(), request).await) }
    });
    // The end of a connection is up to the client.
    let _ = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.headers)
        .max_buf_size(limits.buffer)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::{
        ClientConfig, RootCertStore,
        pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
    };
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio_rustls::{TlsConnector, client::TlsStream};

    struct Door {
        address: SocketAddr,
        authority: Authority,
        stop: CancellationToken,
    }

    impl Drop for Door {
        fn drop(&mut self) {
            self.stop.cancel();
        }
    }

    impl Door {
        async fn open(limits: Limits) -> Self {
            let authority = Authority::new().expect("an authority");
            let stop = CancellationToken::new();
            let cluster = Cluster::new(crate::server::tests_support::admins());
            let any = SocketAddr::from(([127, 0, 0, 1], 0));
            let address = listen_with(cluster, &authority, any, stop.clone(), limits)
                .await
                .expect("a port");
            Self {
                address,
                authority,
                stop,
            }
        }

        async fn connect(&self, client: Option<&ClientCertificate>) -> TlsStream<TcpStream> {
            let mut roots = RootCertStore::empty();
            let pem = CertificateDer::from_pem_slice(self.authority.certificate.as_bytes()).expect("PEM");
            roots.add(pem).expect("a certificate");
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let config = ClientConfig::builder_with_provider(provider)
                .with_safe_default_protocol_versions()
                .expect("versions")
                .with_root_certificates(roots);
            let config = match client {
                None => config.with_no_client_auth(),
                Some(client) => {
                    let chain =
                        vec![CertificateDer::from_pem_slice(client.certificate.as_bytes()).expect("PEM")];
                    let key = PrivateKeyDer::from_pem_slice(client.key.as_bytes()).expect("PEM");
                    config.with_client_auth_cert(chain, key).expect("a pair")
                }
            };
            let stream = TcpStream::connect(self.address).await.expect("connected");
            let name = ServerName::try_from("localhost").expect("a name");
            TlsConnector::from(Arc::new(config))
                .connect(name, stream)
                .await
                .expect("a handshake")
        }

        /// The response to some bytes, until the server closes.
        async fn exchange(&self, text: &str) -> String {
            let mut stream = self.connect(None).await;
            stream.write_all(text.as_bytes()).await.expect("written");
            rest(&mut stream).await
        }
    }

    async fn rest(stream: &mut TlsStream<TcpStream>) -> String {
        let mut text = Vec::new();
        // A close without a TLS goodbye is a close, too.
        let _ = stream.read_to_end(&mut text).await;
        String::from_utf8_lossy(&text).into_owned()
    }

    const HEALTH: &str = "GET /healthz HTTP/1.1\r\nHost: x\r\n";

    #[tokio::test]
    async fn requests_may_follow_each_other_without_waiting() {
        let door = Door::open(LIMITS).await;
        let text = format!("{HEALTH}\r\n{HEALTH}\r\n{HEALTH}Connection: close\r\n\r\n");
        assert_eq!(door.exchange(&text).await.matches("200 OK").count(), 3);
    }

    #[tokio::test]
    async fn what_is_no_http_is_refused_and_the_connection_closed() {
        let door = Door::open(LIMITS).await;
        for text in [
            "nonsense\r\n\r\n",
            "GET\r\n\r\n",
            "GET / HTTP/1.1\r\nbad header\r\n\r\n",
        ] {
            assert!(door.exchange(text).await.starts_with("HTTP/1.1 400"), "{text:?}");
        }
    }

    #[tokio::test]
    async fn headers_are_bounded() {
        let door = Door::open(Limits {
            headers: Duration::from_secs(5),
            ..LIMITS
        })
        .await;
        let long = format!("{HEALTH}X-Long: {}\r\n\r\n", "x".repeat(2 * LIMITS.buffer));
        let answer = door.exchange(&long).await;
        assert!(answer.starts_with("HTTP/1.1 431"), "{answer:?}");
        let many: String = (0..200).map(|at| format!("X-{at}: y\r\n")).collect();
        assert!(
            door.exchange(&format!("{HEALTH}{many}\r\n"))
                .await
                .starts_with("HTTP/1.1 431")
        );
    }

    #[tokio::test]
    async fn a_connection_that_says_nothing_is_closed_in_the_end() {
        let short = Duration::from_millis(50);
        let door = Door::open(Limits {
            handshake: short,
            headers: short,
            ..LIMITS
        })
        .await;
        assert!(
            !door
                .exchange("GET /healthz HTTP/1.1\r\nHost")
                .await
                .contains("200 OK")
        );
        let mut unresponsive = TcpStream::connect(door.address).await.expect("connected");
        let mut text = Vec::new();
        let _ = unresponsive.read_to_end(&mut text).await;
        assert!(text.is_empty());
    }

    #[tokio::test]
    async fn a_body_that_does_not_come_is_not_waited_for_longer_than_asked() {
        let door = Door::open(LIMITS).await;
        let path = "/api/v1/namespaces/default/configmaps?timeout=50ms";
        let text = format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admin\r\nContent-Length: 100\r\n\r\n{{"
        );
        let mut stream = door.connect(None).await;
        stream.write_all(text.as_bytes()).await.expect("written");
        let mut head = [0; 12];
        stream.read_exact(&mut head).await.expect("an answer");
        assert_eq!(&head, b"HTTP/1.1 504");
    }

    #[tokio::test]
    async fn who_is_refused_before_its_body_is_read_gets_to_read_the_refusal() {
        let door = Door::open(LIMITS).await;
        let body = "x".repeat(200 << 10);
        let about = format!("Host: x\r\nContent-Length: {}\r\n", body.len());
        let token = "Authorization: Bearer admin\r\n";
        let cases = [
            (
                "401",
                format!("POST /api/v1/namespaces HTTP/1.1\r\n{about}Authorization: Bearer no\r\n"),
            ),
            ("403", format!("POST /api/v1/namespaces HTTP/1.1\r\n{about}")),
            ("404", format!("POST /api/v1/nothing HTTP/1.1\r\n{about}{token}")),
            (
                "405",
                format!("PUT /api/v1/namespaces HTTP/1.1\r\n{about}{token}"),
            ),
            (
                "406",
                format!("POST /api/v1/namespaces HTTP/1.1\r\n{about}{token}Accept: image/png\r\n"),
            ),
        ];
        for (code, head) in cases {
            let mut stream = door.connect(None).await;
            // Answers and closes only after all was taken in, so the next request of the connection is answered, too.
            let text = format!("{head}\r\n{body}{HEALTH}Connection: close\r\n\r\n");
            stream.write_all(text.as_bytes()).await.expect("written");
            let answer = rest(&mut stream).await;
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {code}")),
                "{code}: {answer}"
            );
            assert!(answer.contains("HTTP/1.1 200 OK"), "{code}: {answer}");
        }
    }

    #[tokio::test]
    async fn who_stops_reading_does_not_keep_its_place() {
        let door = Door::open(Limits {
            write: Duration::from_millis(50),
            connections: 1,
            ..LIMITS
        })
        .await;
        let mut greedy = door.connect(None).await;
        let documents =
            "GET /openapi/v2 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admin\r\n\r\n".repeat(20);
        greedy.write_all(documents.as_bytes()).await.expect("written");
        // Its place is free once it was given up.
        let text = format!("{HEALTH}Connection: close\r\n\r\n");
        let answer = tokio::time::timeout(Duration::from_secs(30), door.exchange(&text)).await;
        assert!(answer.expect("a place").starts_with("HTTP/1.1 200"));
    }

    #[tokio::test]
    async fn idle_connections_do_not_keep_others_out() {
        let door = Door::open(LIMITS).await;
        let mut idle = Vec::new();
        for _ in 0..200 {
            idle.push(TcpStream::connect(door.address).await.expect("connected"));
        }
        let text = format!("{HEALTH}Connection: close\r\n\r\n");
        assert!(door.exchange(&text).await.starts_with("HTTP/1.1 200"));
        drop(idle);
    }

    #[tokio::test]
    async fn a_client_certificate_says_who_asks() {
        let door = Door::open(LIMITS).await;
        let admin = door
            .authority
            .client("root", &["system:masters"])
            .expect("a certificate");
        let jane = door.authority.client("jane", &["devs"]).expect("a certificate");
        let text = "GET /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        let mut stream = door.connect(Some(&admin)).await;
        stream.write_all(text.as_bytes()).await.expect("written");
        assert!(rest(&mut stream).await.starts_with("HTTP/1.1 200"));
        let mut stream = door.connect(Some(&jane)).await;
        stream.write_all(text.as_bytes()).await.expect("written");
        let answer = rest(&mut stream).await;
        assert!(
            answer.contains(r#"User \"jane\" cannot list resource"#),
            "{answer}"
        );
    }
}

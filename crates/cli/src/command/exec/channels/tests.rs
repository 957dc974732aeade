//! Members that are slow, silent or gone.

use serde_json::json;
use tokio::{
    io::{DuplexStream, duplex},
    time::{Instant, timeout},
};
use tokio_tungstenite::tungstenite::protocol::Role;

use super::*;

type Socket = WebSocketStream<DuplexStream>;

/// Both ends of a connection in which little has room.
async fn sockets() -> (Socket, Socket) {
    let (client, server) = duplex(256);
    (
        WebSocketStream::from_raw_socket(client, Role::Client, None).await,
        WebSocketStream::from_raw_socket(server, Role::Server, None).await,
    )
}

const NONE: Inputs = Inputs {
    stdin: None,
    sizes: None,
};

fn status() -> (Message, Received) {
    let status = json!({"metadata": {}, "status": "Success"});
    let received = Received::Status(Box::new(serde_json::from_value(status.clone()).unwrap()));
    (on(STATUS, status.to_string().as_bytes()), received)
}

#[tokio::test(start_paused = true)]
async fn a_command_that_writes_as_it_reads_gets_all_of_a_large_input() {
    const PIECES: usize = 500;
    let (client, mut server) = sockets().await;
    // As much out as in, and nothing is read while the output is full.
    let echo = async move {
        loop {
            let message = server.next().await.unwrap().unwrap().into_data();
            match &*message {
                [STDIN, typed @ ..] => server.send(on(STDOUT, typed)).await.unwrap(),
                [CLOSE, STDIN] => return server.send(status().0).await.unwrap(),
                _ => {}
            }
        }
    };
    let server = tokio::spawn(echo);
    let (input, stdin) = mpsc::channel(1);
    let typing = tokio::spawn(async move {
        for _ in 0..PIECES {
            input.send(vec![b'x'; 1024]).await.unwrap();
        }
    });
    let inputs = Inputs {
        stdin: Some(stdin),
        sizes: None,
    };
    let mut channels = Channels::open(client, true, inputs, None);
    let mut read = 0;
    let reading = async {
        loop {
            match channels.next().await {
                Received::Out(piece) => read += piece.len(),
                other => return other,
            }
        }
    };
    let ended = timeout(Duration::from_secs(600), reading).await;
    assert_eq!(ended.expect("it hangs"), status().1);
    assert_eq!(read, PIECES * 1024);
    typing.await.unwrap();
    server.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_silent_is_lost() {
    let (client, _server) = sockets().await;
    let began = Instant::now();
    let mut channels = Channels::open(client, true, NONE, Some(DEADLINE));
    let lost = channels.next().await;
    assert_eq!(lost, Received::Lost(Some("no response within 60 s".to_owned())));
    assert_eq!(began.elapsed().as_secs(), DEADLINE.as_secs());
}

#[tokio::test(start_paused = true)]
async fn a_command_that_is_silent_is_not_lost() {
    // A server that responds to pings; and one that does not while a command has input that it has not read.
    for (responds, deadline) in [(true, Some(DEADLINE)), (false, None)] {
        let (client, mut server) = sockets().await;
        let mut channels = Channels::open(client, true, NONE, deadline);
        let server = tokio::spawn(async move {
            let pings = async {
                if responds {
                    loop {
                        server.next().await.unwrap().unwrap();
                    }
                }
                std::future::pending::<()>().await;
            };
            assert!(timeout(Duration::from_secs(3600), pings).await.is_err());
            server.send(status().0).await.unwrap();
            server
        });
        assert_eq!(channels.next().await, status().1, "{responds}");
        server.await.unwrap();
    }
}

#[tokio::test]
async fn each_message_is_on_its_channel() {
    let (client, mut server) = sockets().await;
    let (sizes, receiver) = mpsc::channel(1);
    let (input, stdin) = mpsc::channel(4);
    let inputs = Inputs {
        stdin: Some(stdin),
        sizes: Some(receiver),
    };
    let mut channels = Channels::open(client, true, inputs, Some(DEADLINE));
    let (width, height) = (80, 24);
    sizes.send(TerminalSize { width, height }).await.unwrap();
    let sent = server.next().await.unwrap().unwrap();
    assert_eq!(sent, on(RESIZE, br#"{"Width":80,"Height":24}"#));
    drop(sizes);
    for piece in ["one ", "two"] {
        input.send(piece.as_bytes().to_vec()).await.unwrap();
    }
    drop(input);
    for sent in [on(STDIN, b"one "), on(STDIN, b"two"), on(CLOSE, &[STDIN])] {
        assert_eq!(server.next().await.unwrap().unwrap(), sent);
    }
    for message in [
        on(STDOUT, b""),
        on(9, b"?"),
        on(STDOUT, b"out"),
        on(STDERR, b"err"),
    ] {
        server.send(message).await.unwrap();
    }
    assert_eq!(channels.next().await, Received::Out("out".into()));
    assert_eq!(channels.next().await, Received::Err("err".into()));
    server.send(on(STATUS, b"{")).await.unwrap();
    let lost = channels.next().await;
    assert!(
        matches!(&lost, Received::Lost(Some(why)) if why.contains("status cannot be read")),
        "{lost:?}"
    );
    assert_eq!(channels.next().await, Received::Lost(None));
}

#[tokio::test]
async fn without_v5_the_end_of_the_input_is_that_of_the_connection() {
    let (client, mut server) = sockets().await;
    let (input, stdin) = mpsc::channel(1);
    let inputs = Inputs {
        stdin: Some(stdin),
        sizes: None,
    };
    let mut channels = Channels::open(client, false, inputs, Some(DEADLINE));
    drop(input);
    assert!(server.next().await.unwrap().unwrap().is_close());
    // It replies by itself.
    assert!(server.next().await.is_none());
    assert_eq!(channels.next().await, Received::Lost(None));
}

//! The channels of a command over one WebSocket: its input, its outputs, the size of its terminal, and its end.
//!
//! A reader and a writer task share the connection, so output is read while input waits for the command: a command that writes as it
//! reads would else wait for a reader that waits for it.
//!
//! Source: Kubernetes `remotecommand`, `v4.channel.k8s.io` and `v5.channel.k8s.io`: the first byte of a message is its channel.

use std::time::Duration;

use bytes::Bytes;
use futures::{
    SinkExt as _, StreamExt as _,
    stream::{SplitSink, SplitStream},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use kube::api::TerminalSize;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc,
    time::{self, MissedTickBehavior},
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{self, Message},
};
use tokio_util::task::AbortOnDropHandle;

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const STATUS: u8 = 3;
const RESIZE: u8 = 4;
/// Tells the end of the channel that follows; from v5 on.
const CLOSE: u8 = 255;

/// The time between two pings: shorter than the idle time of any load balancer.
const PING: Duration = Duration::from_secs(5);

/// The time without a message or the response to a ping after which a connection is lost.
pub(super) const DEADLINE: Duration = Duration::from_secs(60);

/// The number of messages that are read ahead of the outputs.
const AHEAD: usize = 16;

/// The inputs of the command. An input that is absent was not asked for.
#[derive(Debug)]
pub(super) struct Inputs {
    pub(super) stdin: Option<mpsc::Receiver<Vec<u8>>>,
    pub(super) sizes: Option<mpsc::Receiver<TerminalSize>>,
}

/// A message from the command.
#[derive(Debug, PartialEq)]
pub(super) enum Received {
    Out(Bytes),
    Err(Bytes),
    /// The end of the command.
    Status(Box<Status>),
    /// The end of the connection before that, with its cause if one is known.
    Lost(Option<String>),
}

/// The connection; it ends when this is dropped.
pub(super) struct Channels {
    received: mpsc::Receiver<Received>,
    _reader: AbortOnDropHandle<()>,
    _writer: AbortOnDropHandle<()>,
}

impl Channels {
    /// `closes`: the subprotocol can tell the end of the input (v5). Without `deadline`, a connection may be silent for ever.
    pub(super) fn open<S>(
        socket: WebSocketStream<S>,
        closes: bool,
        inputs: Inputs,
        deadline: Option<Duration>,
    ) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (to, from) = socket.split();
        let (sender, received) = mpsc::channel(AHEAD);
        let writing = async move {
            // The reader sees the end of the connection, too.
            let _ = write(to, inputs, closes).await;
        };
        Self {
            received,
            _reader: AbortOnDropHandle::new(tokio::spawn(read(from, sender, deadline))),
            _writer: AbortOnDropHandle::new(tokio::spawn(writing)),
        }
    }

    /// The next message. Nothing comes after a status or the loss of the connection.
    pub(super) async fn next(&mut self) -> Received {
        self.received.recv().await.unwrap_or(Received::Lost(None))
    }
}

async fn read<S>(
    mut from: SplitStream<WebSocketStream<S>>,
    to: mpsc::Sender<Received>,
    deadline: Option<Duration>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        let next = match deadline {
            Some(deadline) => time::timeout(deadline, from.next()).await,
            None => Ok(from.next().await),
        };
        let received = match next {
            Ok(Some(Ok(Message::Binary(message)))) => match content(message) {
                Some(received) => received,
                None => continue,
            },
            Ok(None | Some(Ok(Message::Close(_)))) => Received::Lost(None),
            // Pings and pongs.
            Ok(Some(Ok(_))) => continue,
            Ok(Some(Err(error))) => Received::Lost(Some(error.to_string())),
            Err(_) => Received::Lost(Some(format!("no response within {} s", DEADLINE.as_secs()))),
        };
        let is_last = matches!(received, Received::Status(_) | Received::Lost(_));
        if to.send(received).await.is_err() || is_last {
            return;
        }
    }
}

/// `None`: an empty message, with which a server opens a channel, or a channel that is not known.
fn content(mut message: Bytes) -> Option<Received> {
    if message.len() < 2 {
        return None;
    }
    let content = message.split_off(1);
    match message[0] {
        STDOUT => Some(Received::Out(content)),
        STDERR => Some(Received::Err(content)),
        STATUS => Some(match serde_json::from_slice(&content) {
            Ok(status) => Received::Status(Box::new(status)),
            Err(error) => Received::Lost(Some(format!("its status cannot be read: {error}"))),
        }),
        _ => None,
    }
}

async fn write<S>(
    mut to: SplitSink<WebSocketStream<S>, Message>,
    inputs: Inputs,
    closes: bool,
) -> Result<(), tungstenite::Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let Inputs { mut stdin, mut sizes } = inputs;
    let mut pings = time::interval(PING);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    pings.reset();
    loop {
        let message = tokio::select! {
            _ = pings.tick() => Message::Ping(Bytes::new()),
            piece = next(&mut stdin), if stdin.is_some() => match piece {
                Some(piece) => on(STDIN, &piece),
                None if closes => {
                    stdin = None;
                    on(CLOSE, &[STDIN])
                }
                // The end of the connection is the only one that the command can see.
                None => return to.close().await,
            },
            size = next(&mut sizes), if sizes.is_some() => match size {
                Some(size) => on(RESIZE, &serde_json::to_vec(&size).unwrap_or_default()),
                None => {
                    sizes = None;
                    continue;
                }
            },
        };
        to.send(message).await?;
    }
}

/// The next of an input that is there.
async fn next<T>(from: &mut Option<mpsc::Receiver<T>>) -> Option<T> {
    match from {
        Some(from) => from.recv().await,
        None => None,
    }
}

fn on(channel: u8, content: &[u8]) -> Message {
    Message::binary([&[channel][..], content].concat())
}

#[cfg(test)]
mod tests;

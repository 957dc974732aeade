//! Connections that change their protocol (exec, attach, port-forward): bytes are copied both ways until one side ends, the other
//! one does not respond any more, or the server stops.
//!
//! The connection's own place in its listener is free again once the protocol has changed. So spliced connections have places of
//! their own.

use std::{sync::Arc, time::Duration};

use http::{Response, request::Parts};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::{
    io::AsyncWriteExt as _,
    sync::{OwnedSemaphorePermit, Semaphore},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    Refusal,
    headers::{self, Protocol},
};

/// The number of spliced connections at a time.
const PLACES: usize = 256;

/// The time in which both connections must have changed their protocol.
const CHANGED_WITHIN: Duration = Duration::from_secs(10);

/// The time in which a side must take the end of the other one.
const ENDED_WITHIN: Duration = Duration::from_secs(5);

/// The spliced connections. They end when this is dropped.
pub(super) struct Splices {
    places: Arc<Semaphore>,
    stop: CancellationToken,
    _end: DropGuard,
}

/// The change of the protocol that a caller asks for.
pub(super) struct Upgrade {
    pub(super) protocol: Protocol,
    caller: OnUpgrade,
}

/// The same, with a place for the connection.
pub(super) struct Placed(Upgrade, OwnedSemaphorePermit);

impl Placed {
    pub(super) fn protocol(&self) -> Protocol {
        self.0.protocol
    }
}

/// The change that a request asks for. `None` if it asks for none, for another protocol, or on a connection that cannot change: then
/// the request is sent on without the question.
pub(super) fn asked(parts: &mut Parts) -> Option<Upgrade> {
    let protocol = headers::upgrade(&parts.headers)?;
    let caller = parts.extensions.remove::<OnUpgrade>()?;
    Some(Upgrade { protocol, caller })
}

impl Splices {
    /// None yet; they also end with `stop`.
    pub(super) fn new(stop: &CancellationToken) -> Self {
        let stop = stop.child_token();
        Self {
            places: Arc::new(Semaphore::new(PLACES)),
            _end: stop.clone().drop_guard(),
            stop,
        }
    }

    /// Takes a place for a change of the protocol. Not before the request's body has arrived: who sends none would keep the place.
    pub(super) fn placed(&self, upgrade: Option<Upgrade>) -> Result<Option<Placed>, Refusal> {
        let Some(upgrade) = upgrade else {
            return Ok(None);
        };
        let place = self.places.clone().try_acquire_owned();
        let place = place.map_err(|_| Refusal::Busy)?;
        Ok(Some(Placed(upgrade, place)))
    }

    /// Splices the caller and the member, whose response agrees to the change.
    pub(super) fn begin<B>(&self, upgrade: Placed, response: &mut Response<B>) {
        let member = hyper::upgrade::on(response);
        let stop = self.stop.clone();
        tokio::spawn(async move {
            let Placed(Upgrade { caller, .. }, place) = upgrade;
            spliced(caller, member, &stop).await;
            drop(place);
        });
    }
}

/// Copies until one side ends. There is nobody to tell of errors: both sides see the end.
async fn spliced(caller: OnUpgrade, member: OnUpgrade, stop: &CancellationToken) {
    let changed = async { tokio::join!(caller, member) };
    let Ok((Ok(caller), Ok(member))) = tokio::time::timeout(CHANGED_WITHIN, changed).await else {
        return;
    };
    let (mut from_caller, mut to_caller) = tokio::io::split(TokioIo::new(caller));
    let (mut from_member, mut to_member) = tokio::io::split(TokioIo::new(member));
    // Neither protocol uses half of a connection: a side that has ended does not read either.
    tokio::select! {
        () = stop.cancelled() => {}
        _ = tokio::io::copy(&mut from_caller, &mut to_member) => {}
        _ = tokio::io::copy(&mut from_member, &mut to_caller) => {}
    }
    let ended = async { tokio::join!(to_caller.shutdown(), to_member.shutdown()) };
    let _ = tokio::time::timeout(ENDED_WITHIN, ended).await;
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    /// A change on a connection that breaks off before it.
    fn upgrade() -> Option<Upgrade> {
        Some(Upgrade {
            protocol: Protocol::Spdy,
            caller: hyper::upgrade::on(Request::new(())),
        })
    }

    #[tokio::test]
    async fn places_are_bounded_and_given_back() {
        let splices = Splices::new(&CancellationToken::new());
        let mut all: Vec<Placed> = (0..PLACES)
            .filter_map(|_| splices.placed(upgrade()).unwrap())
            .collect();
        assert_eq!(splices.placed(upgrade()).err(), Some(Refusal::Busy));
        assert!(splices.placed(None).is_ok(), "a request that asks for no change");
        splices.begin(all.pop().unwrap(), &mut Response::new(()));
        // The connections break off, and the place is free.
        let free = splices.places.acquire();
        let free = tokio::time::timeout(CHANGED_WITHIN, free).await;
        drop(free.unwrap().unwrap());
        assert!(splices.placed(upgrade()).is_ok());
    }

    #[test]
    fn only_a_connection_that_can_change_is_asked_to() {
        let request = |upgrade: &str, can_change: bool| {
            let mut request = Request::new(());
            let headers = request.headers_mut();
            headers.insert("connection", "upgrade".parse().unwrap());
            headers.insert("upgrade", upgrade.parse().unwrap());
            if can_change {
                let caller = hyper::upgrade::on(Request::new(()));
                request.extensions_mut().insert(caller);
            }
            let (mut parts, ()) = request.into_parts();
            asked(&mut parts).map(|upgrade| upgrade.protocol)
        };
        let cases = [
            ("SPDY/3.1", true, Some(Protocol::Spdy)),
            ("websocket", true, Some(Protocol::WebSocket)),
            ("h2c", true, None),
            // HTTP/2 has streams in the place of connections.
            ("websocket", false, None),
        ];
        for (protocol, can_change, expected) in cases {
            assert_eq!(request(protocol, can_change), expected, "{protocol}");
        }
    }
}

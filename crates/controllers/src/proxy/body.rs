//! Bodies of requests, which are read whole before they are sent on: how large, how slow, and how many bytes of all of them at a time.

use std::{sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Refusal;

/// The bounds on bodies.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// The largest body, in bytes.
    pub(super) largest: usize,
    /// The bytes of all bodies at a time.
    pub(super) together: usize,
    /// The time in which a body must arrive.
    pub(super) within: Duration,
}

impl Default for Limits {
    /// API servers accept 3 MiB.
    fn default() -> Self {
        Self {
            largest: 8 << 20,
            together: 64 << 20,
            within: Duration::from_secs(30),
        }
    }
}

/// The bodies that are held.
pub(super) struct Bodies {
    limits: Limits,
    free: Arc<Semaphore>,
}

impl Bodies {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            free: Arc::new(Semaphore::new(limits.together)),
        }
    }

    /// A body, and its share of the bytes that may be held: the caller keeps that as long as the body.
    pub(super) async fn read<B>(&self, body: B) -> Result<(Bytes, OwnedSemaphorePermit), Refusal>
    where
        B: http_body::Body<Data = Bytes>,
    {
        let within = self.limits.within;
        match tokio::time::timeout(within, self.collected(body)).await {
            Ok(read) => read,
            Err(_) => Err(Refusal::BodySlow(within.as_secs())),
        }
    }

    async fn collected<B>(&self, body: B) -> Result<(Bytes, OwnedSemaphorePermit), Refusal>
    where
        B: http_body::Body<Data = Bytes>,
    {
        let largest = self.limits.largest;
        let mut body = std::pin::pin!(body);
        let (mut bytes, mut share) = (BytesMut::new(), self.share(0)?);
        while let Some(frame) = body.frame().await {
            // Of the frames, only trailers are no data.
            let Ok(data) = frame.map_err(|_| Refusal::BodyBroken)?.into_data() else {
                continue;
            };
            if data.len() > largest - bytes.len() {
                return Err(Refusal::Body(largest));
            }
            share.merge(self.share(data.len())?);
            bytes.extend_from_slice(&data);
        }
        Ok((bytes.freeze(), share))
    }

    /// Whoever waited for a share would hold another one meanwhile, so nobody waits.
    fn share(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Refusal> {
        let bytes = u32::try_from(bytes).map_err(|_| Refusal::Busy)?;
        self.free
            .clone()
            .try_acquire_many_owned(bytes)
            .map_err(|_| Refusal::Busy)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::stream;
    use http_body_util::{Full, StreamBody};
    use hyper::body::Frame;

    use super::*;

    fn bodies() -> Bodies {
        Bodies::new(Limits {
            largest: 8,
            together: 12,
            within: Duration::from_secs(30),
        })
    }

    fn of(bytes: &'static str) -> Full<Bytes> {
        Full::from(bytes)
    }

    #[tokio::test]
    async fn a_body_is_bounded_and_so_are_all_together() {
        let bodies = bodies();
        assert_eq!(bodies.read(of("")).await.unwrap().0, "");
        assert_eq!(bodies.read(of("123456789")).await.err(), Some(Refusal::Body(8)));
        let (first, share) = bodies.read(of("12345678")).await.unwrap();
        assert_eq!(first, "12345678");
        assert_eq!(bodies.read(of("12345")).await.err(), Some(Refusal::Busy));
        assert_eq!(bodies.read(of("1234")).await.unwrap().0, "1234");
        drop(share);
        assert_eq!(bodies.read(of("12345678")).await.unwrap().0, "12345678");
    }

    #[tokio::test]
    async fn a_body_that_breaks_off_is_none() {
        let frames = [
            Ok(Frame::data(Bytes::from("1234"))),
            Err(std::io::Error::other("reset")),
        ];
        let bodies = bodies();
        let broken = StreamBody::new(stream::iter(frames));
        assert_eq!(bodies.read(broken).await.err(), Some(Refusal::BodyBroken));
        assert_eq!(bodies.free.available_permits(), 12, "its share is given back");
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_arrive_is_given_up() {
        let bodies = bodies();
        let unresponsive = StreamBody::new(stream::pending::<Result<Frame<Bytes>, Infallible>>());
        assert_eq!(bodies.read(unresponsive).await.err(), Some(Refusal::BodySlow(30)));
    }
}

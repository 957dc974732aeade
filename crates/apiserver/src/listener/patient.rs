//! Writing to a client that may have stopped reading.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

/// A stream whose writes fail when the other side has taken nothing for some time. Reading may take for ever.
#[derive(Debug)]
pub(super) struct Patient<S> {
    stream: S,
    patience: Duration,
    /// Set while the other side takes nothing.
    waits: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    pub(super) const fn new(stream: S, patience: Duration) -> Self {
        Self {
            stream,
            patience,
            waits: None,
        }
    }

    /// The error of the stream, or its timeout.
    fn reported<T>(&mut self, cx: &mut Context<'_>, reported: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if reported.is_ready() {
            self.waits = None;
            return reported;
        }
        let patience = self.patience;
        let waits = self.waits.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(waits.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let reported = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.reported(cx, reported)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let reported = Pin::new(&mut this.stream).poll_write_vectored(cx, slices);
        this.reported(cx, reported)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let reported = Pin::new(&mut this.stream).poll_flush(cx);
        this.reported(cx, reported)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let reported = Pin::new(&mut this.stream).poll_shutdown(cx);
        this.reported(cx, reported)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn who_takes_nothing_any_more_is_given_up() {
        let (near, far) = duplex(64);
        let begun = tokio::time::Instant::now();
        let written = Patient::new(near, PATIENCE).write_all(&[0; 1000]).await;
        assert_eq!(written.expect_err("given up").kind(), io::ErrorKind::TimedOut);
        assert_eq!(begun.elapsed().as_secs(), PATIENCE.as_secs());
        drop(far);
    }

    #[tokio::test(start_paused = true)]
    async fn who_takes_little_at_a_time_gets_it_all() {
        let (near, mut far) = duplex(64);
        let mut near = Patient::new(near, PATIENCE);
        let writes = tokio::spawn(async move { near.write_all(&[0; 1000]).await });
        let mut taken = 0;
        while taken < 1000 {
            tokio::time::advance(PATIENCE / 2).await;
            taken += far.read(&mut [0; 10]).await.expect("more");
        }
        writes.await.expect("not panicked").expect("written");
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_without_news_is_not_given_up() {
        let (near, mut far) = duplex(64);
        let mut near = Patient::new(near, PATIENCE);
        near.write_all(b"a").await.expect("written");
        tokio::time::advance(PATIENCE * 10).await;
        near.write_all(b"b").await.expect("written");
        let mut read = [0; 2];
        far.read_exact(&mut read).await.expect("both");
        assert_eq!(&read, b"ab");
    }
}

//! The right of this process to write now.
//!
//! A process may be stopped for longer than its lease lasts (SIGSTOP, a frozen machine). When it continues, its tasks run in any
//! order, and the last published value may be stale. So the end of the right to write is stored too, and compared with the
//! monotonic clock at each use.

use std::{
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    task::Poll,
};

use tokio::{
    sync::watch::{self, error::RecvError},
    time::Instant,
};

/// The right of this process to write. Clones share it.
#[derive(Clone, Debug)]
pub struct Leadership {
    leads: watch::Receiver<bool>,
    until: Until,
}

/// The end of the right to write; `None`: as long as the published value is true.
pub(super) type Until = Arc<Mutex<Option<Instant>>>;

impl Leadership {
    pub(super) fn new(leads: watch::Receiver<bool>, until: Until) -> Self {
        Self { leads, until }
    }

    /// True if this process may write now.
    #[must_use]
    pub fn is_held(&self) -> bool {
        let until = *self.until.lock().unwrap_or_else(PoisonError::into_inner);
        *self.leads.borrow() && until.is_none_or(|until| Instant::now() < until)
    }

    /// Waits until that may have changed. The end of a lease is not waited for: it is detected at the next use.
    ///
    /// # Errors
    /// The campaign ended.
    pub async fn changed(&mut self) -> Result<(), RecvError> {
        self.leads.changed().await
    }

    /// The published value, for tasks that wait for a value of it.
    #[must_use]
    pub fn published(&self) -> &watch::Receiver<bool> {
        &self.leads
    }

    /// Runs a write while this process leads, and drops it at the first step after that; then returns `None`.
    pub async fn bound<T>(&self, write: impl Future<Output = T>) -> Option<T> {
        let mut write = pin!(write);
        std::future::poll_fn(|context| match self.is_held() {
            true => write.as_mut().poll(context).map(Some),
            false => Poll::Ready(None),
        })
        .await
    }
}

/// Leadership without a lease.
impl From<watch::Receiver<bool>> for Leadership {
    fn from(leads: watch::Receiver<bool>) -> Self {
        Self::new(leads, Until::default())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_ends_with_the_lease_whether_or_not_that_was_published() {
        let (_leads, published) = watch::channel(true);
        let until = Instant::now() + Duration::from_secs(10);
        let leadership = Leadership::new(published, Arc::new(Mutex::new(Some(until))));
        assert!(leadership.is_held());
        tokio::time::advance(Duration::from_secs(10)).await;
        assert!(*leadership.published().borrow() && !leadership.is_held());
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_outlives_the_lease_goes_no_step_further() {
        let (_leads, published) = watch::channel(true);
        let until = Instant::now() + Duration::from_secs(10);
        let leadership = Leadership::new(published, Arc::new(Mutex::new(Some(until))));
        let sent = Arc::new(Mutex::new(0));
        let steps = sent.clone();
        let write = async move {
            for _ in 0..3 {
                *steps.lock().unwrap() += 1;
                tokio::time::sleep(Duration::from_secs(6)).await;
            }
        };
        assert_eq!(leadership.bound(write).await, None);
        assert_eq!(*sent.lock().unwrap(), 2);
    }
}

//! Waits for a condition of one object by list and watch, without polling.

use std::{fmt::Debug, time::Duration};

use futures::StreamExt as _;
use kube::{
    Api,
    api::{ListParams, WatchEvent, WatchParams},
};
use serde::de::DeserializeOwned;
use tokio::time::{sleep, timeout};

use crate::connect::within;

/// The pause after a watch that ended or failed.
const PAUSE: Duration = Duration::from_millis(250);

/// The result of a wait.
#[derive(Debug)]
pub enum Waited<K> {
    /// The condition holds; the object, or `None` if it does not exist.
    Met(Option<K>),
    /// It did not hold in time; the object as last seen.
    TimedOut(Option<K>),
}

/// Waits until `met` holds for the object called `name` (`None`: it does not exist), for at most `limit`.
///
/// # Errors
/// Only if the object cannot be read and the time is up: then the last error. Before, errors are retried.
pub async fn until<K>(
    api: &Api<K>,
    name: &str,
    limit: Duration,
    met: impl Fn(Option<&K>) -> bool,
) -> kube::Result<Waited<K>>
where
    K: Clone + DeserializeOwned + Debug,
{
    let mut last = Ok(None);
    let done = timeout(limit, async {
        loop {
            match round(api, name, &met, &mut last).await {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => last = Err(error),
            }
            sleep(PAUSE).await;
        }
    })
    .await;
    let object = last?;
    Ok(if done.is_ok() {
        Waited::Met(object)
    } else {
        Waited::TimedOut(object)
    })
}

/// One list and one watch. Returns true if the condition was met.
async fn round<K>(
    api: &Api<K>,
    name: &str,
    met: &impl Fn(Option<&K>) -> bool,
    last: &mut kube::Result<Option<K>>,
) -> kube::Result<bool>
where
    K: Clone + DeserializeOwned + Debug,
{
    let only = format!("metadata.name={name}");
    let params = ListParams::default().fields(&only);
    let list = within(api.list(&params)).await?;
    let mut seen = list.items.into_iter().next();
    *last = Ok(seen.clone());
    if met(seen.as_ref()) {
        return Ok(true);
    }
    let from = list.metadata.resource_version.unwrap_or_default();
    let mut events = Box::pin(api.watch(&WatchParams::default().fields(&only), &from).await?);
    while let Some(event) = events.next().await {
        seen = match event? {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => Some(object),
            WatchEvent::Deleted(_) => None,
            WatchEvent::Bookmark(_) => continue,
            WatchEvent::Error(status) => return Err(kube::Error::Api(status)),
        };
        *last = Ok(seen.clone());
        if met(seen.as_ref()) {
            return Ok(true);
        }
    }
    Ok(false)
}

//! The identity of the cluster at a member's endpoint.
//!
//! Invariant: after a call got no response or a watch broke, the cluster's identity is read again before any other request is
//! sent to it.

use std::sync::{
    OnceLock,
    atomic::{AtomicBool, Ordering},
};

use entourage_core::object::Str;

use super::{Api, Call, Form, Path};
use crate::{error::Failure, metrics::Verb};

/// The identity of a member cluster: the uid of its namespace kube-system.
#[derive(Default)]
pub(super) struct Identity {
    /// The id as first read over this client.
    id: OnceLock<Str>,
    /// A call got no response or a watch broke since it was last read: another cluster may respond to the next one.
    doubted: AtomicBool,
    /// Serialises the reads.
    turn: tokio::sync::Mutex<()>,
}

impl Api {
    /// The uid of the cluster's namespace kube-system, as first read over this client, or `None` if it was not read.
    #[must_use]
    pub fn id(&self) -> Option<&Str> {
        self.0.identity.id.get()
    }

    /// Reads the identity of the cluster that responds now. The first one remains [`Self::id`]; while the current one differs no
    /// other request is sent.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn identify(&self) -> Result<Str, Failure> {
        let path = Path::namespace(Some("kube-system"));
        let call = Call {
            verb: Verb::Get,
            path: &path,
            accept: Form::Metadata.accept(),
            body: None,
            deadline: None,
        };
        let answer = self.exchange(call).await?;
        let object: serde_json::Value =
            serde_json::from_slice(&answer).map_err(|error| Failure::Garbled(error.to_string()))?;
        let id: Str = match object["metadata"]["uid"].as_str() {
            Some(uid) if !uid.is_empty() => uid.into(),
            _ => {
                return Err(Failure::Garbled(
                    "the namespace kube-system has no uid".to_owned(),
                ));
            }
        };
        let is_same = *self.0.identity.id.get_or_init(|| id.clone()) == id;
        self.0.identity.doubted.store(!is_same, Ordering::Release);
        Ok(id)
    }

    /// The connection broke: another cluster may respond next.
    pub fn doubt_identity(&self) {
        self.0.identity.doubted.store(true, Ordering::Release);
    }

    /// Checks, before any request is sent to a member after a connection broke, that it is still the same cluster. The hub, and
    /// a member without a known identity, are not checked.
    pub(super) async fn is_the_same(&self) -> Result<(), Failure> {
        let identity = &self.0.identity;
        let is_doubted = || identity.doubted.load(Ordering::Acquire);
        let Some(known) = identity.id.get().filter(|_| is_doubted()) else {
            return Ok(());
        };
        let _turn = identity.turn.lock().await;
        // Another task has read it meanwhile.
        if !is_doubted() {
            return Ok(());
        }
        if self.identify().await? == *known {
            return Ok(());
        }
        self.0.options.suspect.notify_one();
        Err(Failure::Transport(
            "another cluster answers at this endpoint".to_owned(),
        ))
    }
}

//! The connection to one member, as the execution of plans uses it.

pub mod namespaces;

use namespaces::Namespaces;

use crate::client::Api;

/// The connection to one member.
#[derive(Debug)]
pub struct Member {
    /// Its API server.
    pub api: Api,
    /// The namespaces that deliveries went into.
    pub namespaces: Namespaces,
}

impl Member {
    /// A connection over this client.
    #[must_use]
    pub fn new(api: Api) -> Self {
        Self {
            api,
            namespaces: Namespaces::default(),
        }
    }
}

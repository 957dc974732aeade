//! The connection to one member, as its writers use it.

pub mod namespaces;

use namespaces::Namespaces;

use crate::client::Api;

/// The connection to one member.
#[derive(Debug)]
pub struct Member {
    /// Its API server.
    pub api: Api,
    /// The namespaces with deliveries.
    pub namespaces: Namespaces,
}

impl Member {
    /// Creates a connection over this client.
    #[must_use]
    pub fn new(api: Api) -> Self {
        Self {
            api,
            namespaces: Namespaces::default(),
        }
    }
}

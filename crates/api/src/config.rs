//! `config.karmada.io/v1alpha1`: interpreters for kinds that have no native one.
//!
//! An interpreter is a set of Lua scripts or rules ([`customization`]), or a webhook ([`interpreter`]; [`explorer`] is the form
//! that Karmada's proposal of the webhooks had). Source: Karmada reference 3.3 and 3.4.

pub mod customization;
pub mod declarative;
pub mod declarative_status;
pub mod explorer;
pub mod hook;
pub mod interpreter;

pub use customization::ResourceInterpreterCustomization;
pub use explorer::ResourceExploringWebhookConfiguration;
pub use interpreter::ResourceInterpreterWebhookConfiguration;

/// The version of the messages that are sent to interpreter webhooks.
pub const HOOK_VERSION: &str = "v1alpha1";

#[cfg(test)]
mod tests;

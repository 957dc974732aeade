//! `config.karmada.io/v1alpha1`: customizations and webhooks that interpret kinds.
//!
//! By scripts ([`customization`]), or by a webhook ([`interpreter`]; [`explorer`] is the form that Karmada's
//! proposal of the hooks had). Source: Karmada reference 3.3 and 3.4.

pub mod customization;
pub mod declarative;
pub mod declarative_status;
pub mod explorer;
pub mod hook;
pub mod interpreter;

pub use customization::ResourceInterpreterCustomization;
pub use explorer::ResourceExploringWebhookConfiguration;
pub use interpreter::ResourceInterpreterWebhookConfiguration;

/// The version of the messages that hooks are called with.
pub const HOOK_VERSION: &str = "v1alpha1";

#[cfg(test)]
mod tests;

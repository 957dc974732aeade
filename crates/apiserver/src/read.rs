//! Readers of JSON and YAML: a value as it was written, with everything that was in the text.

pub(crate) mod json;
pub(crate) mod yaml;

pub(crate) use json::Node;

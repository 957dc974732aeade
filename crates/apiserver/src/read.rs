//! Readers of JSON and YAML: values with everything that was in the text.

pub(crate) mod json;
pub(crate) mod yaml;

pub(crate) use json::Node;

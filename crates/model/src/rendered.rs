//! An object that is ready to be sent. It may hold a Secret: it cannot be printed, and is wiped when dropped.

use serde_json::Value;
use zeroize::Zeroize as _;

/// The field, beside `metadata`, with the agent's report in an object as the shell reads it from a Work. No field of a kind can
/// have this name: it has a slash.
pub const REPORT: &str = "entourage.dev/report";

/// A copy ready to be sent. It may hold a Secret: no `Debug`, no `Clone`, wiped on drop.
pub struct Rendered(pub Value);

impl Rendered {
    /// The object to send.
    #[must_use]
    pub fn object(&self) -> &Value {
        &self.0
    }

    /// The object, for a further step of rendering.
    #[must_use]
    pub fn into_object(mut self) -> Value {
        std::mem::take(&mut self.0)
    }
}

impl Drop for Rendered {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

/// Overwrites every string of a value, so that a Secret does not linger in freed memory.
pub fn wipe(value: &mut Value) {
    match value {
        Value::String(text) => text.zeroize(),
        Value::Array(items) => items.iter_mut().for_each(wipe),
        Value::Object(map) => map.values_mut().for_each(wipe),
        _ => {}
    }
}

//! The engine for the interpreter: the compiler of scripts of customizations.

use std::sync::Arc;

use entourage_interpreter::{customized::Engine, operations::Operation, question::Rule};

use crate::{Script, limits::Limits};

/// Compiles scripts that run within these limits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lua {
    /// The limits of one call.
    pub limits: Limits,
}

impl Lua {
    /// With the limits of the control plane.
    pub const STANDARD: Self = Self {
        limits: Limits::STANDARD,
    };
}

impl Engine for Lua {
    fn compile(&self, name: &str, _: Operation, source: &str) -> Result<Arc<dyn Rule>, String> {
        match Script::with_limits(name, source, self.limits) {
            Ok(script) => Ok(Arc::new(script)),
            Err(error) => Err(error.to_string()),
        }
    }
}

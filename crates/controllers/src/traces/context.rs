//! The span that requests belong to, and its form in the header of a request: W3C Trace Context.

use std::{fmt, future::Future};

use tokio::task::futures::TaskLocalFuture;

tokio::task_local! {
    /// The span that the requests of a task belong to.
    static CURRENT: Option<SpanContext>;
}

/// The header that names the span which a request belongs to.
pub const TRACEPARENT: &str = "traceparent";

/// A span that children refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpanContext {
    pub(super) trace: u128,
    pub(super) span: u64,
}

impl SpanContext {
    /// Reads [`TRACEPARENT`]: the span, and whether it is recorded. `None` if the value is invalid, which is ignored then.
    pub(super) fn read(header: &str) -> Option<(Self, bool)> {
        let is_hex = |part: &str| part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let mut parts = header.split('-');
        let (version, trace) = (parts.next()?, parts.next()?);
        let (span, flags) = (parts.next()?, parts.next()?);
        let known = [version, trace, span, flags];
        if !known.into_iter().all(is_hex) || known.map(str::len) != [2, 32, 16, 2] || version == "ff" {
            return None;
        }
        // Later versions may have more parts.
        if version == "00" && parts.next().is_some() {
            return None;
        }
        let context = Self {
            trace: u128::from_str_radix(trace, 16).ok()?,
            span: u64::from_str_radix(span, 16).ok()?,
        };
        let is_recorded = u8::from_str_radix(flags, 16).ok()? & 1 == 1;
        (context.trace != 0 && context.span != 0).then_some((context, is_recorded))
    }
}

/// The value of [`TRACEPARENT`] for a span that is recorded.
impl fmt::Display for SpanContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-01", self.trace, self.span)
    }
}

/// Runs a future whose requests belong to a span.
pub(crate) fn within<F: Future>(
    span: Option<SpanContext>,
    future: F,
) -> TaskLocalFuture<Option<SpanContext>, F> {
    CURRENT.scope(span, future)
}

/// The span that the requests of this task belong to. It is recorded.
pub(crate) fn current() -> Option<SpanContext> {
    CURRENT.try_with(|current| *current).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_is_written() {
        let context = SpanContext {
            trace: 0xa0,
            span: 0xb,
        };
        let header = "00-000000000000000000000000000000a0-000000000000000b-01";
        assert_eq!(context.to_string(), header);
        assert_eq!(SpanContext::read(header), Some((context, true)));
        let not_recorded = format!("{}02", &header[..header.len() - 2]);
        assert_eq!(SpanContext::read(&not_recorded), Some((context, false)));
        let later = format!("01{}-more", &header[2..]);
        assert_eq!(SpanContext::read(&later), Some((context, true)));
    }

    #[test]
    fn an_invalid_header_is_ignored() {
        for header in [
            "",
            "00",
            "00-000000000000000000000000000000a0-000000000000000b",
            "00-000000000000000000000000000000a0-000000000000000b-01-more",
            "ff-000000000000000000000000000000a0-000000000000000b-01",
            "00-00000000000000000000000000000000-000000000000000b-01",
            "00-000000000000000000000000000000a0-0000000000000000-01",
            "00-000000000000000000000000000000A0-000000000000000b-01",
            "00-+00000000000000000000000000000a0-000000000000000b-01",
            "00-a0-b-01",
        ] {
            assert_eq!(SpanContext::read(header), None, "{header}");
        }
    }
}

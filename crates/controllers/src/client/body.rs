//! Reads the body of a response.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use kube::client::Body;

use crate::error::Failure;

/// Reads the whole body, unless it is larger than the limit in bytes, or no byte arrives for the idle timeout.
///
/// Frames are copied as they arrive, so that the connection can reuse its buffer; a body of one frame is not copied.
pub(super) async fn collect(mut body: Body, limit: usize, idle: Duration) -> Result<Bytes, Failure> {
    let (mut first, mut rest) = (Bytes::new(), Vec::new());
    loop {
        let frame = match tokio::time::timeout(idle, body.frame()).await {
            Ok(Some(frame)) => frame,
            Ok(None) => break,
            Err(_) => return Err(Failure::Timeout(idle)),
        };
        let frame = frame.map_err(|error| Failure::transport(&error))?;
        let Ok(data) = frame.into_data() else { continue };
        if first.len() + rest.len() + data.len() > limit {
            let limit = limit >> 10;
            return Err(Failure::Garbled(format!("the answer is larger than {limit} KiB")));
        }
        if first.is_empty() && rest.is_empty() {
            first = data;
            continue;
        }
        rest.extend_from_slice(&std::mem::take(&mut first));
        rest.extend_from_slice(&data);
    }
    Ok(if rest.is_empty() { first } else { rest.into() })
}

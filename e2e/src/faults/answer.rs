//! Answers that no server gave.

use std::io;

use bytes::Bytes;
use http::{HeaderValue, Response, header};
use serde_json::json;
use tower::BoxError;

use super::plan::StatusOr;

/// The shortest time that a throttled client must wait, in seconds.
const RETRY_AFTER: &str = "1";

/// The answer as a response with a `Status` body, or as the error of a broken connection.
pub(super) fn answer(what: StatusOr) -> Result<Response<Bytes>, BoxError> {
    let code = match what {
        StatusOr::Reset => return Err(broken().into()),
        StatusOr::Status(code) => code,
    };
    let mut response = Response::builder()
        .status(code)
        .header(header::CONTENT_TYPE, "application/json")
        .body(Bytes::from(status(code).to_string()))?;
    if code == 429 {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER));
    }
    Ok(response)
}

/// The error of a broken connection.
pub(super) fn broken() -> io::Error {
    io::Error::new(
        io::ErrorKind::ConnectionReset,
        "connection reset by the fault plan",
    )
}

/// A frame that ends a watch: the version asked for is no longer kept.
pub(super) fn gone_frame() -> Bytes {
    Bytes::from(format!("{}\n", json!({ "type": "ERROR", "object": status(410) })))
}

fn status(code: u16) -> serde_json::Value {
    json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": format!("{} (from the fault plan)", reason(code)),
        "reason": reason(code),
        "code": code,
    })
}

/// The reason that a server gives with a status code.
fn reason(code: u16) -> &'static str {
    match code {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        409 => "Conflict",
        410 => "Expired",
        422 => "Invalid",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "Unknown",
    }
}

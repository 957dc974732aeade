//! Requests by path, for what has no type here: metrics, logs, reviews, lists of whatever a server has.

use http::{Request, header::DATE};
use jiff::Timestamp;
use kube::{Client, client::Body};
use serde_json::Value;

use crate::connect::within;

/// The JSON at a path.
///
/// # Errors
/// The server's; or that the response is not JSON.
pub async fn get(client: &Client, path: &str) -> kube::Result<Value> {
    let request = Request::get(path).body(Vec::new());
    within(client.request(request.map_err(kube::Error::HttpError)?)).await
}

/// The text at a path.
///
/// # Errors
/// The server's.
pub async fn text(client: &Client, path: &str) -> kube::Result<String> {
    let request = Request::get(path).body(Vec::new());
    within(client.request_text(request.map_err(kube::Error::HttpError)?)).await
}

/// Creates an object; returns it as the server has it.
///
/// # Errors
/// The server's.
pub async fn post(client: &Client, path: &str, object: &Value) -> kube::Result<Value> {
    let request = Request::post(path)
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(object.to_string().into_bytes());
    within(client.request(request.map_err(kube::Error::HttpError)?)).await
}

/// The time of a server by the header Date of its response, in whole seconds; `None` if it has no such header.
///
/// # Errors
/// The server does not respond.
pub async fn server_time(client: &Client) -> kube::Result<Option<Timestamp>> {
    let request = Request::get("/version").body(Body::empty());
    let response = within(client.send(request.map_err(kube::Error::HttpError)?)).await?;
    let date = response.headers().get(DATE).and_then(|date| date.to_str().ok());
    Ok(date.and_then(http_date))
}

/// Reads a date of HTTP, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
fn http_date(text: &str) -> Option<Timestamp> {
    let parser = jiff::fmt::rfc2822::DateTimeParser::new();
    parser.parse_timestamp(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_http_are_read() {
        let date = http_date("Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(date.map(Timestamp::as_second), Some(784_111_777));
        assert_eq!(http_date("yesterday"), None);
    }
}

//! The wire format: bodies, and the lines of watches.

use std::io::Read as _;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http::{HeaderMap, header};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tokio::sync::mpsc;

use super::transport::Answer;

/// The body without its compression.
pub(super) fn unpacked(headers: &HeaderMap, body: Bytes) -> Result<Bytes, String> {
    if headers
        .get(header::CONTENT_ENCODING)
        .is_none_or(|how| how != "gzip")
    {
        return Ok(body);
    }
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(&*body)
        .read_to_end(&mut plain)
        .map_err(|error| format!("no gzip: {error}"))?;
    Ok(plain.into())
}

/// A Table as YAML with the cells that tell an age in seconds made equal: JSON has a placeholder there, a text none.
pub(super) fn without_ages(text: &str) -> String {
    let is_age = |line: &str| {
        let seconds = line.strip_prefix("  - ").and_then(|cell| cell.strip_suffix('s'));
        seconds.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit()))
    };
    let lines = text
        .split('\n')
        .map(|line| if is_age(line) { "  - 0s" } else { line });
    lines.collect::<Vec<_>>().join("\n")
}

/// A bookmark that comes whenever the server likes.
pub(super) fn plain_bookmark(event: &Value) -> bool {
    event["type"] == "BOOKMARK" && !event.to_string().contains("initial-events-end")
}

/// The text without the blanks between its tokens.
pub(super) fn compact(text: &str) -> String {
    let mut compact = String::with_capacity(text.len());
    let (mut quoted, mut escaped) = (false, false);
    for character in text.chars() {
        if quoted {
            compact.push(character);
            match character {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => quoted = false,
                _ => {}
            }
        } else if !character.is_ascii_whitespace() {
            quoted = character == '"';
            compact.push(character);
        }
    }
    compact
}

/// The lines of a watch, as they come.
pub(super) async fn read_lines(mut body: Answer, lines: &mpsc::UnboundedSender<Value>) -> Result<()> {
    let mut rest = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        rest.extend_from_slice(&data);
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            if !line.trim_ascii().is_empty() {
                lines.send(serde_json::from_slice(&line).context("a frame that is not JSON")?)?;
            }
        }
    }
    Ok(())
}

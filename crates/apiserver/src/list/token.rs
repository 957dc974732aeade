//! The `continue` token: where a page ended and the state that the pages are of, opaque to clients.
//!
//! Its form is the server's own, base64 of a small JSON object, so that errors about bad ones are alike.

use serde_json::{Value, json};

/// The version of the form.
const VERSION: &str = "meta.k8s.io/v1";

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// A token that goes on behind `key`, in the state of `revision`; -1 is the latest.
pub(super) fn encode(key: &str, revision: i64) -> String {
    let token = json!({"v": VERSION, "rv": revision, "start": format!("{key}\u{0}")});
    to_base64(token.to_string().as_bytes())
}

/// The key behind which to go on, and the revision.
pub(super) fn decode(token: &str) -> Result<(String, i64), String> {
    let invalid = |why: &str| format!("continue key is not valid: {why}");
    let bytes =
        from_base64(token).map_err(|at| invalid(&format!("illegal base64 data at input byte {at}")))?;
    let token: Value =
        serde_json::from_slice(&bytes).map_err(|error| invalid(&unreadable(&bytes, &error)))?;
    if token["v"] != VERSION {
        return Err(invalid("server does not recognize this encoded version "));
    }
    let revision = token["rv"].as_i64().unwrap_or_default();
    if revision == 0 {
        return Err(invalid(&format!(
            "incorrect encoded start resourceVersion (version {VERSION})"
        )));
    }
    let start = token["start"].as_str().unwrap_or_default();
    if start.is_empty() {
        return Err(invalid(&format!("encoded start key empty (version {VERSION})")));
    }
    let steps = start.strip_prefix('/').unwrap_or(start).split('/');
    if steps.clone().any(|step| matches!(step, "" | "." | "..")) {
        return Err(invalid(start));
    }
    // The zero makes "behind" of "from": the store's lists begin behind a key anyway.
    let key = start.trim_start_matches('/').trim_end_matches('\u{0}');
    Ok((key.to_owned(), revision))
}

/// Go's error for JSON that it cannot read.
fn unreadable(bytes: &[u8], error: &serde_json::Error) -> String {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    match first {
        Some(first) if !error.is_eof() && !b"{[\"tfn-0123456789".contains(first) => {
            let shown = first.escape_ascii();
            format!("invalid character '{shown}' looking for beginning of value")
        }
        _ => "unexpected end of JSON input".to_owned(),
    }
}

fn to_base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..=group.len() {
            let index = (bits >> (18 - 6 * at)) & 63;
            text.push(char::from(LETTERS[index as usize]));
        }
    }
    text
}

/// The bytes, or the index of the first letter that does not belong.
fn from_base64(text: &str) -> Result<Vec<u8>, usize> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0_u32);
    for (at, letter) in text.bytes().enumerate() {
        if matches!(letter, b'\r' | b'\n') {
            continue;
        }
        let value = LETTERS.iter().position(|known| *known == letter).ok_or(at)?;
        bits = (bits << 6) | u32::try_from(value).unwrap_or_default();
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from((bits >> count) & 0xff).unwrap_or_default());
        }
    }
    if count == 6 {
        Err(text.len() - 1)
    } else {
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_tokens_are_reported_in_the_servers_words() {
        let of = |json: &str| to_base64(json.as_bytes());
        let cases = [
            (
                "garbage".to_owned(),
                "continue key is not valid: invalid character '\\x81' looking for beginning of value",
            ),
            (
                "a b".to_owned(),
                "continue key is not valid: illegal base64 data at input byte 1",
            ),
            (
                "abcde".to_owned(),
                "continue key is not valid: illegal base64 data at input byte 4",
            ),
            (of("{"), "continue key is not valid: unexpected end of JSON input"),
            (
                of("{}"),
                "continue key is not valid: server does not recognize this encoded version ",
            ),
            (
                of(r#"{"v":"meta.k8s.io/v1"}"#),
                "continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
            ),
            (
                of(r#"{"v":"meta.k8s.io/v1","rv":5}"#),
                "continue key is not valid: encoded start key empty (version meta.k8s.io/v1)",
            ),
            (
                of(r#"{"v":"meta.k8s.io/v1","rv":5,"start":"../a"}"#),
                "continue key is not valid: ../a",
            ),
        ];
        for (token, expected) in cases {
            assert_eq!(decode(&token).unwrap_err(), expected, "{token}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_encoded_is_decoded(key in "[a-z0-9-]{1,9}(/[a-z.]{1,9}[a-z])?", revision in proptest::num::i64::ANY) {
            proptest::prop_assume!(revision != 0);
            proptest::prop_assert_eq!(decode(&encode(&key, revision)), Ok((key, revision)));
        }

        #[test]
        fn no_token_makes_the_parser_panic(token in "[A-Za-z0-9_=é-]{0,40}", json in "[{}\"v:meta.k8s.io/1rstar,-]{0,60}") {
            let _ = (decode(&token), decode(&to_base64(json.as_bytes())));
        }
    }
}

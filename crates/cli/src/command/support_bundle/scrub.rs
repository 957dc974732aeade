//! Removal of credentials from texts: logs, messages, errors of servers.
//!
//! Private keys and users in URLs go first, by their form; then, word by word, tokens by their form, and values by the name before
//! them. A value that is none is rather removed than one that is kept.

use super::redact::REDACTED;

/// The ends of names whose values are credentials, in lower case.
const NAMES: &[&str] = &[
    "token",
    "password",
    "passwd",
    "passphrase",
    "secret",
    "authorization",
    "apikey",
    "api-key",
    "api_key",
    "key-data",
    "tls.key",
    "privatekey",
    "private-key",
    "private_key",
];

/// The beginning of a certificate or key in PEM, in base64, as kubeconfigs have it.
const ENCODED_PEM: &str = "LS0tLS1CRUdJTi";

/// True for the name of a field, variable or flag whose value is a credential.
#[must_use]
pub fn names_credential(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    NAMES.iter().any(|end| name.ends_with(end))
}

/// The text without the credentials that it may quote.
#[must_use]
pub fn scrub(text: &str) -> String {
    let text = without_users(&without_keys(text));
    let mut scrubbed = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(letter) = rest.chars().next() {
        let (word, after) = rest.split_at(word_end(rest));
        if word.is_empty() {
            let (letter, after) = rest.split_at(letter.len_utf8());
            scrubbed.push_str(letter);
            rest = after;
            continue;
        }
        rest = after;
        if word.starts_with(ENCODED_PEM) {
            scrubbed.push_str(REDACTED);
            rest = &rest[value_end(rest)..];
            continue;
        }
        let kept = kept_of(word);
        scrubbed.push_str(&word[..kept]);
        if kept < word.len() {
            scrubbed.push_str(REDACTED);
            continue;
        }
        if let Some(gap) = gap(word, rest) {
            let (separator, value) = rest.split_at(gap);
            scrubbed.push_str(separator);
            let end = value_end(value);
            if end > 0 {
                scrubbed.push_str(REDACTED);
            }
            rest = &value[end..];
        }
    }
    scrubbed
}

fn word_end(text: &str) -> usize {
    let is_of_word = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    text.find(|letter: char| !is_of_word(letter))
        .unwrap_or(text.len())
}

/// The length of the part of a word before a token: a JSON Web Token, or a bootstrap token, `abcdef.0123456789abcdef`.
fn kept_of(word: &str) -> usize {
    if let Some(at) = word.find("eyJ")
        && word[at..].matches('.').count() >= 2
        && word.len() - at > 40
    {
        return at;
    }
    let is_part = |part: &str, length: usize| {
        part.len() == length
            && part
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    match word.split_once('.') {
        Some((id, secret)) if is_part(id, 6) && is_part(secret, 16) => 0,
        _ => word.len(),
    }
}

/// The number of bytes between a word and the credential that it announces; `None` if it announces none.
fn gap(word: &str, rest: &str) -> Option<usize> {
    if is_scheme(word) {
        return Some(spaces(rest)).filter(|gap| *gap > 0);
    }
    if !names_credential(word) {
        return None;
    }
    // The name may be quoted, in JSON, and that may be quoted once more.
    let quote = quote(rest).map_or(0, str::len);
    let before = quote + spaces(&rest[quote..]);
    let gap = match rest[before..].chars().next() {
        // `token = x`, but nothing after `token= `, which has no value.
        Some('=') if before > quote => before + 1 + spaces(&rest[before + 1..]),
        Some('=') => before + 1,
        // Not a path, as in `token::read`.
        Some(':') if !rest[before + 1..].starts_with(':') => before + 1 + spaces(&rest[before + 1..]),
        _ if word.starts_with("--") && quote == 0 && before > 0 => before,
        _ => return None,
    };
    let value = &rest[gap..];
    let first = word_end(value);
    let after_scheme = spaces(&value[first..]);
    Some(if is_scheme(&value[..first]) && after_scheme > 0 {
        gap + first + after_scheme
    } else {
        gap
    })
}

fn is_scheme(word: &str) -> bool {
    word.eq_ignore_ascii_case("bearer") || word.eq_ignore_ascii_case("basic")
}

fn spaces(text: &str) -> usize {
    text.len() - text.trim_start_matches([' ', '\t']).len()
}

/// The quote that a text begins with.
fn quote(text: &str) -> Option<&'static str> {
    ["\\\"", "\"", "'"]
        .into_iter()
        .find(|quote| text.starts_with(quote))
}

/// The length of a value: up to the quote that ends it, or without quotes up to a space or a quote.
fn value_end(text: &str) -> usize {
    let Some(quote) = quote(text) else {
        let is_end = |letter: char| letter.is_whitespace() || "\"'`".contains(letter);
        return text.find(is_end).unwrap_or(text.len());
    };
    let mut at = quote.len();
    while let Some(next) = text[at..].find(quote) {
        let end = at + next;
        at = end + quote.len();
        if !text[..end].ends_with('\\') {
            return at;
        }
    }
    text.find('\n').unwrap_or(text.len())
}

/// The text without users and passwords in URLs. Only characters that cannot be in them end them.
fn without_users(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + "://".len());
        kept.push_str(before);
        let is_end = |letter: char| letter.is_whitespace() || "\"'`/?#<>\\".contains(letter);
        let authority = &after[..after.find(is_end).unwrap_or(after.len())];
        rest = match authority.rfind('@') {
            Some(user) => {
                kept.push_str(REDACTED);
                &after[user..]
            }
            None => after,
        };
    }
    kept.push_str(rest);
    kept
}

/// The text without private keys in PEM; one without an end is removed to the end of the text.
fn without_keys(text: &str) -> String {
    const BEGIN: &str = "-----BEGIN ";
    const END: &str = "PRIVATE KEY-----";
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(BEGIN) {
        let (before, block) = rest.split_at(at);
        kept.push_str(before);
        let title = &block[BEGIN.len()..];
        let is_key = title
            .find("-----")
            .is_some_and(|end| title[..end + "-----".len()].ends_with(END));
        if !is_key {
            kept.push_str(BEGIN);
            rest = title;
            continue;
        }
        kept.push_str(REDACTED);
        let end = title.find("-----END ").map(|end| &title[end..]);
        rest = end
            .and_then(|end| end.find(END).map(|at| &end[at + END.len()..]))
            .unwrap_or_default();
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const CANARY: &str = "hunter2-canary";

    #[test]
    fn no_credential_is_left_in_whatever_form_it_is_quoted() {
        for text in [
            "password=CANARY",
            "PASSWORD=CANARY;more",
            "db_password='CANARY x CANARY' next",
            "token=\"CANARY x CANARY\"",
            "token = CANARY",
            "password: CANARY",
            "client-key-data: CANARY/CANARY+CANARY==",
            "{\"token\":\"CANARY\",\"user\":\"x\"}",
            "{\"password\": \"a\\\"CANARY\"}",
            "\"{\\\"clientSecret\\\":\\\"CANARY\\\"}\"",
            "Authorization: Bearer CANARY",
            "authorization:Basic CANARY==",
            "curl -H 'Authorization: Bearer CANARY'",
            "header Bearer CANARY,",
            "run --token CANARY --verbose",
            "run --token=CANARY",
            "https://user:CANARY@host/path",
            "https://user:a@CANARY;CANARY@host/path?x=@y",
            "https://host/path?token=CANARY&x=1",
            "token=aCANARY,CANARY",
            "password=(CANARY)CANARY",
            "x LS0tLS1CRUdJTiBSU0E/CANARY+CANARY= y",
            "-----BEGIN EC PRIVATE KEY-----\nCANARY\n-----END EC PRIVATE KEY-----",
            "-----BEGIN PRIVATE KEY-----\\nCANARY",
            "token: CANARY\ntoken: CANARY",
            "token=\"CANARY without an end",
        ] {
            let text = text.replace("CANARY", CANARY);
            let scrubbed = scrub(&text);
            assert!(!scrubbed.contains("canary"), "{text}: {scrubbed}");
            assert!(scrubbed.contains(REDACTED), "{text}: {scrubbed}");
        }
    }

    #[test]
    fn texts_lose_credentials_and_nothing_else() {
        let token = format!("eyJ{}.eyJ{}.abc", "a".repeat(30), "b".repeat(30));
        for (text, scrubbed) in [
            (
                "level=INFO msg=\"hub is ready\" cluster=m1",
                "level=INFO msg=\"hub is ready\" cluster=m1",
            ),
            (
                "Authorization: Bearer abc.def\nnext",
                "Authorization: Bearer REDACTED\nnext",
            ),
            ("got TOKEN, ok", "got REDACTED, ok"),
            ("abcdef.0123456789abcdef ok", "REDACTED ok"),
            ("password=x token= y", "password=REDACTED token= y"),
            ("https://u:p@host/a b", "https://REDACTED@host/a b"),
            ("https://host/a@b", "https://host/a@b"),
            (
                "a\n-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nb",
                "a\nREDACTED\nb",
            ),
            (
                "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----",
                "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----",
            ),
            (
                "secrets \"login\" is forbidden: User \"jane\" cannot get",
                "secrets \"login\" is forbidden: User \"jane\" cannot get",
            ),
            ("the token \"a\" of token::read", "the token \"a\" of token::read"),
            (
                "token: x\nnext: line \"quoted\"",
                "token: REDACTED\nnext: line \"quoted\"",
            ),
            (
                "authentication_token_cache{status=\"ok\"} 3",
                "authentication_token_cache{status=\"ok\"} 3",
            ),
            ("Größe – ok", "Größe – ok"),
            ("", ""),
        ] {
            assert_eq!(scrub(&text.replace("TOKEN", &token)), scrubbed);
        }
    }
}

//! Paths in kubectl's syntax, `{.status.phase}`: braces around a path that begins with a dot.

use serde_json::Value;

use super::path::Path;

/// The values at a path, in order, without nulls.
///
/// # Errors
/// The reason why the text is no supported path: recursive descent, slices, and text around the braces are not supported. Cost:
/// O(values on the way).
pub fn read<'a>(text: &str, value: &'a Value) -> Result<Vec<&'a Value>, String> {
    let mut all = Vec::new();
    parse(text)?.each(value, &mut |found| all.push(found.value));
    Ok(all)
}

/// Checks that [`read`] supports a path.
///
/// # Errors
/// The reason why it does not.
pub fn check(text: &str) -> Result<(), String> {
    parse(text).map(|_| ())
}

fn parse(text: &str) -> Result<Path, String> {
    let trimmed = text.trim();
    let inner = trimmed
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
        .unwrap_or(trimmed)
        .trim();
    let put_before = match inner.chars().next() {
        Some('$') => "",
        Some('.' | '[') => "$",
        _ => "$.",
    };
    Path::parse(&format!("{put_before}{inner}")).map_err(|error| {
        let begins = text.find(inner).map_or(0, |at| text[..at].chars().count());
        let at = (error.at + begins).saturating_sub(put_before.len()).max(1);
        format!(
            "{text} is not a supported path: character {at}: {}",
            error.problem
        )
    })
}

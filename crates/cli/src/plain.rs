//! Texts of servers on a terminal: their control characters are shown, not obeyed.

/// The text with control characters, line breaks too, as escapes such as `\n` and `\u{1b}`. A second call changes nothing.
#[must_use]
pub fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control() {
            plain.extend(letter.escape_default());
        } else {
            plain.push(letter);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown() {
        for (text, shown) in [
            ("Größe 3 – \"ok\" \\n", "Größe 3 – \"ok\" \\n"),
            ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
            (
                "\u{1b}]0;x\u{7}\u{9b}2J\u{7f}",
                "\\u{1b}]0;x\\u{7}\\u{9b}2J\\u{7f}",
            ),
        ] {
            assert_eq!(plain(text), shown);
            assert_eq!(plain(shown), shown);
        }
    }
}

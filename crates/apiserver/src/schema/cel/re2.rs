//! Patterns of rules: they are written in the dialect of RE2, which takes some characters as they are where `regex` reads an
//! operator.

/// The same pattern in the dialect of `regex`. O(pattern).
pub(super) fn translated(pattern: &str) -> String {
    let mut written = String::with_capacity(pattern.len());
    let mut rest = pattern;
    let mut in_class = false;
    while let Some(letter) = rest.chars().next() {
        let behind = &rest[letter.len_utf8()..];
        let mut taken = letter.len_utf8();
        match letter {
            '\\' => {
                let escaped = behind.chars().next();
                taken += escaped.map_or(0, char::len_utf8);
                // A name or a number in braces belongs to it: `\p{L}`, `\x{7F}`.
                if matches!(escaped, Some('p' | 'P' | 'x')) && rest[taken..].starts_with('{') {
                    taken += rest[taken..].find('}').map_or(0, |end| end + 1);
                }
                match escaped {
                    Some(angle @ ('<' | '>')) => written.push(angle),
                    _ => written.push_str(&rest[..taken]),
                }
            }
            '[' if !in_class => {
                in_class = true;
                // A bracket that comes first is a member.
                taken += usize::from(behind.starts_with('^'));
                taken += usize::from(rest[taken..].starts_with(']'));
                written.push_str(&rest[..taken]);
            }
            '[' => {
                // `[:alpha:]` is a class of its own.
                let named = behind.strip_prefix(':').and_then(|name| name.find(":]"));
                if let Some(length) = named {
                    taken += 1 + length + 2;
                    written.push_str(&rest[..taken]);
                } else {
                    written.push_str("\\[");
                }
            }
            ']' if in_class => {
                in_class = false;
                written.push(letter);
            }
            '&' | '-' | '~' if in_class && behind.starts_with(letter) => {
                taken += 1;
                written.extend([letter, '\\', letter]);
            }
            '{' if !in_class && !is_repetition(behind) => written.push_str("\\{"),
            _ => written.push(letter),
        }
        rest = &rest[taken..];
    }
    written
}

/// True for the rest of `{2}`, `{2,}` and `{2,5}`.
fn is_repetition(rest: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    rest.split_once('}')
        .is_some_and(|(counts, _)| match counts.split_once(',') {
            Some((least, most)) => is_number(least) && (most.is_empty() || is_number(most)),
            None => is_number(counts),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_re2_match_what_they_match_there() {
        for (pattern, text, matches) in [
            ("^[[]a$", "[a", true),
            ("^[^[\\]]+$", "a[", false),
            ("^[[:alpha:]_]+$", "a_b", true),
            ("^[]a]+$", "]a", true),
            ("^[a&&b]+$", "a&b", true),
            ("^[+--]$", ",", true),
            ("^{{.*}}$", "{{x}}", true),
            ("^a{2}$", "aa", true),
            ("^a{2,3}$", "aaaa", false),
            (r"^\p{L}+$", "ab", true),
            (r"^\x{41}[\x{42}]$", "AB", true),
            (r"^\<a\>$", "<a>", true),
            (r"^\{a\}$", "{a}", true),
        ] {
            let regex = regex::Regex::new(&translated(pattern)).expect(pattern);
            assert_eq!(regex.is_match(text), matches, "{pattern}");
        }
        assert!(regex::Regex::new(&translated("[")).is_err());
    }
}

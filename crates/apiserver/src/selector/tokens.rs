//! The tokens of a label selector.

/// One word; what stands for itself and what it was written as are apart, since errors quote the latter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    End,
    Comma,
    Open,
    Close,
    /// `!`
    Not,
    Equal,
    DoubleEqual,
    NotEqual,
    Greater,
    Less,
    In,
    NotIn,
    /// A key or value.
    Word,
}

/// Signs and what they are; the longest that fits counts.
const SIGNS: [(&str, Token); 9] = [
    ("==", Token::DoubleEqual),
    ("!=", Token::NotEqual),
    ("=", Token::Equal),
    ("!", Token::Not),
    (",", Token::Comma),
    ("(", Token::Open),
    (")", Token::Close),
    (">", Token::Greater),
    ("<", Token::Less),
];

/// The words of `text` with how they are written; the last is [`Token::End`]. O(length).
pub(super) fn tokens(text: &str) -> Vec<(Token, &str)> {
    let mut found = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\r', '\n']);
        if rest.is_empty() || rest.starts_with('\0') {
            found.push((Token::End, ""));
            return found;
        }
        let sign = SIGNS.iter().find(|(sign, _)| rest.starts_with(sign));
        let (token, length) = match sign {
            Some((sign, token)) => (*token, sign.len()),
            None => {
                let length = rest
                    .find([' ', '\t', '\r', '\n', '\0', '=', '!', '(', ')', ',', '>', '<'])
                    .unwrap_or(rest.len());
                let token = match &rest[..length] {
                    "in" => Token::In,
                    "notin" => Token::NotIn,
                    _ => Token::Word,
                };
                (token, length)
            }
        };
        found.push((token, &rest[..length]));
        rest = &rest[length..];
    }
}

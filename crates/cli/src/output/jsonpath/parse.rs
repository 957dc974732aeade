//! The parser of templates: one pass over the letters, with the words of kubectl's errors.

use super::{Filter, Node, Slice};

/// The actions of a template, and the texts between them as actions of one text.
pub(super) fn template(template: &str) -> Result<Vec<Vec<Node>>, String> {
    let mut actions = Vec::new();
    let mut letters = Letters::new(template);
    let mut text = String::new();
    while let Some(letter) = letters.next() {
        if letter != '{' {
            text.push(letter);
            continue;
        }
        if !text.is_empty() {
            actions.push(vec![Node::Text(std::mem::take(&mut text))]);
        }
        actions.push(action(&mut letters)?);
    }
    if !text.is_empty() {
        actions.push(vec![Node::Text(text)]);
    }
    Ok(actions)
}

/// The letters of a text, with a position.
struct Letters {
    all: Vec<char>,
    at: usize,
}

impl Letters {
    fn new(text: &str) -> Self {
        Self {
            all: text.chars().collect(),
            at: 0,
        }
    }

    fn peek(&self) -> Option<char> {
        self.all.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let letter = self.peek()?;
        self.at += 1;
        Some(letter)
    }

    /// Moves past `words` if they come next.
    fn take(&mut self, words: &str) -> bool {
        let length = words.chars().count();
        let is_next = self.all[self.at..].iter().take(length).copied().eq(words.chars());
        if is_next {
            self.at += length;
        }
        is_next
    }

    /// The letters up to one that ends a word; a backslash keeps the next letter.
    fn word(&mut self) -> String {
        let mut word = String::new();
        while let Some(letter) = self.peek() {
            if is_end_of_word(letter) {
                break;
            }
            self.at += 1;
            if letter == '\\' {
                word.extend(self.next());
            } else {
                word.push(letter);
            }
        }
        word
    }
}

fn is_end_of_word(letter: char) -> bool {
    letter.is_whitespace() || ".,[]$@{}".contains(letter)
}

fn is_word(letter: char) -> bool {
    letter == '_' || letter.is_alphanumeric()
}

/// The steps of one action, whose brace is open.
fn action(letters: &mut Letters) -> Result<Vec<Node>, String> {
    let mut nodes: Vec<Node> = Vec::new();
    loop {
        if letters.take("[?(") {
            nodes.push(Node::Filter(filter(letters)?));
            continue;
        }
        if letters.take("..") {
            if nodes.last() == Some(&Node::Recursive) {
                return Err("invalid multiple recursive descent".to_owned());
            }
            nodes.push(Node::Recursive);
            if letters.peek().is_some_and(is_word) {
                nodes.push(field(letters));
            }
            continue;
        }
        match letters.next() {
            None | Some('\r' | '\n') => return Err("unclosed action".to_owned()),
            Some('}') => return Ok(nodes),
            Some(' ' | '@' | '$') => {}
            Some('[') => nodes.extend(brackets(letters)?),
            Some(quote @ ('"' | '\'')) => nodes.push(Node::Text(quoted(letters, quote)?)),
            Some('.') => nodes.push(field(letters)),
            Some(letter) if letter == '+' || letter == '-' || letter.is_ascii_digit() => {
                letters.at -= 1;
                nodes.push(number(letters)?);
            }
            Some(letter) if is_word(letter) => {
                letters.at -= 1;
                nodes.push(match letters.word().as_str() {
                    "true" => Node::Bool(true),
                    "false" => Node::Bool(false),
                    word => Node::Word(word.to_owned()),
                });
            }
            Some(letter) => return Err(format!("unrecognized character in action: {letter:?}")),
        }
    }
}

/// The steps of a text that has no braces of its own.
fn steps(text: &str) -> Result<Vec<Node>, String> {
    action(&mut Letters::new(&format!("{text}}}")))
}

fn field(letters: &mut Letters) -> Node {
    match letters.word() {
        word if word == "*" => Node::Wildcard,
        word => Node::Field(word),
    }
}

fn number(letters: &mut Letters) -> Result<Node, String> {
    let mut text = String::new();
    while let Some(letter) = letters.peek() {
        let is_sign = text.is_empty() && (letter == '+' || letter == '-');
        if !is_sign && letter != '.' && !letter.is_ascii_digit() {
            break;
        }
        letters.at += 1;
        text.push(letter);
    }
    let digits = text.strip_prefix('+').unwrap_or(&text);
    let whole = digits.parse::<i64>().ok().map(Into::into);
    let number = whole.or_else(|| serde_json::Number::from_f64(digits.parse().ok()?));
    number
        .map(Node::Number)
        .ok_or_else(|| format!("cannot parse number {text}"))
}

/// The rest of a text in quotes, with the escapes of Go.
fn quoted(letters: &mut Letters, quote: char) -> Result<String, String> {
    let mut text = String::new();
    loop {
        match letters.next() {
            None | Some('\n') => return Err("unterminated quoted string".to_owned()),
            Some(letter) if letter == quote => return Ok(text),
            Some('\\') => text.push(escaped(letters).ok_or("invalid syntax")?),
            Some(letter) => text.push(letter),
        }
    }
}

fn escaped(letters: &mut Letters) -> Option<char> {
    let code = |letters: &mut Letters, digits: usize| {
        let hex: String = (0..digits).map_while(|_| letters.next()).collect();
        char::from_u32(u32::from_str_radix(&hex, 16).ok()?)
    };
    Some(match letters.next()? {
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        'x' => code(letters, 2)?,
        'u' => code(letters, 4)?,
        'U' => code(letters, 8)?,
        letter @ ('\\' | '"' | '\'') => letter,
        _ => return None,
    })
}

/// The inside of brackets: an index, a slice, a name in quotes, or several of them with commas.
fn brackets(letters: &mut Letters) -> Result<Vec<Node>, String> {
    let mut text = String::new();
    loop {
        match letters.next() {
            None | Some('\n') => return Err("unterminated array".to_owned()),
            Some(']') => break,
            Some(letter) => text.push(letter),
        }
    }
    if text.contains(',') {
        let parts = text
            .split(',')
            .map(|part| steps(&format!("[{}]", part.trim_matches(' '))));
        return Ok(vec![Node::Union(parts.collect::<Result<_, _>>()?)]);
    }
    let name = text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    if let Some(name) = name.filter(|name| !name.contains('\'')) {
        return steps(&format!(".{name}"));
    }
    let slice = slice(&text).ok_or_else(|| format!("invalid array index {text}"))?;
    Ok(vec![Node::Slice(slice)])
}

fn slice(text: &str) -> Option<Slice> {
    if text == "*" {
        return Some(Slice::default());
    }
    let parts: Vec<&str> = text.split(':').collect();
    let number = |at: usize| match parts.get(at) {
        None | Some(&"") => Some(None),
        Some(part) if part.starts_with('+') => None,
        Some(part) => part.parse::<i64>().ok().map(Some),
    };
    let (start, end, step) = (number(0)?, number(1)?, number(2)?);
    match parts.len() {
        1 => Some(Slice {
            start,
            end: Some(start.unwrap_or_default().saturating_add(1)),
            is_index: true,
            step,
        }),
        2 | 3 => Some(Slice {
            start,
            end,
            is_index: false,
            step,
        }),
        _ => None,
    }
}

/// The rest of `[?(`.
fn filter(letters: &mut Letters) -> Result<Filter, String> {
    let mut text = String::new();
    let mut open: Option<char> = None;
    loop {
        match letters.next() {
            None | Some('\n') => return Err("unterminated filter".to_owned()),
            Some(')') if open.is_none() => break,
            Some(letter) => {
                let is_escaped = text.ends_with('\\');
                match open {
                    None if letter == '"' || letter == '\'' => open = Some(letter),
                    Some(quote) if letter == quote && !is_escaped => open = None,
                    _ => {}
                }
                text.push(letter);
            }
        }
    }
    if letters.next() != Some(']') {
        return Err("unclosed array expect ]".to_owned());
    }
    let is_operator = |letter: char| "!<>=".contains(letter);
    let comparison = text.find(is_operator).filter(|at| *at > 0).and_then(|at| {
        let (left, rest) = text.split_at(at);
        let end = rest.find(|letter| !is_operator(letter))?;
        let (operator, right) = rest.split_at(end);
        Some((left, operator, right))
    });
    Ok(match comparison {
        None => Filter {
            left: steps(&text)?,
            comparison: None,
        },
        Some((left, operator, right)) => Filter {
            left: steps(left)?,
            comparison: Some((operator.to_owned(), steps(right)?)),
        },
    })
}

//! Label selectors: `a=b,c!=d,e in (f,g),!h,i>5`.

use std::collections::BTreeSet;

use super::tokens::{Token, tokens};
use crate::{
    names,
    status::{FieldError, field},
};

/// One requirement on one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Requirement {
    pub(super) key: String,
    operator: Operator,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Operator {
    Exists,
    Absent,
    /// The label is there and has one of these values.
    OneOf(BTreeSet<String>),
    /// The label is not there, or has none of these values.
    NoneOf(BTreeSet<String>),
    Greater(i64),
    Less(i64),
}

impl Requirement {
    /// True if the value of a label, or its absence, meets the requirement.
    pub(super) fn matches(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.operator {
            Operator::Exists => value.is_some(),
            Operator::Absent => value.is_none(),
            Operator::OneOf(values) => value.is_some_and(|value| values.contains(value)),
            Operator::NoneOf(values) => value.is_none_or(|value| !values.contains(value)),
            Operator::Greater(limit) => number().is_some_and(|number| number > *limit),
            Operator::Less(limit) => number().is_some_and(|number| number < *limit),
        }
    }
}

type Parsed<T> = std::result::Result<T, String>;

/// The requirements of a selector; none selects everything. O(length).
pub(super) fn parse(text: &str) -> Parsed<Vec<Requirement>> {
    let mut words = Words {
        tokens: tokens(text),
        at: 0,
    };
    let mut requirements = Vec::new();
    loop {
        match words.peek() {
            (Token::Word | Token::Not, _) => {}
            (Token::End, _) => return Ok(requirements),
            (_, found) => {
                return Err(format!(
                    "found '{found}', expected: !, identifier, or 'end of string'"
                ));
            }
        }
        let requirement = words.requirement();
        requirements.push(requirement.map_err(|error| format!("unable to parse requirement: {error}"))?);
        match words.next() {
            (Token::End, _) => return Ok(requirements),
            (Token::Comma, _) => {}
            (_, found) => return Err(format!("found '{found}', expected: ',' or 'end of string'")),
        }
        if let (token, found) = words.peek()
            && !matches!(token, Token::Word | Token::Not)
        {
            return Err(format!("found '{found}', expected: identifier after ','"));
        }
    }
}

struct Words<'a> {
    tokens: Vec<(Token, &'a str)>,
    at: usize,
}

impl<'a> Words<'a> {
    /// The next word as it is; the end stays the end.
    fn raw(&self) -> (Token, &'a str) {
        self.tokens.get(self.at).copied().unwrap_or((Token::End, ""))
    }

    /// The next word where a key or value may stand: `in` and `notin` are words like others.
    fn peek(&self) -> (Token, &'a str) {
        match self.raw() {
            (Token::In | Token::NotIn, found) => (Token::Word, found),
            other => other,
        }
    }

    fn next(&mut self) -> (Token, &'a str) {
        let next = self.peek();
        self.at += 1;
        next
    }

    fn requirement(&mut self) -> Parsed<Requirement> {
        let mut next = self.next();
        let negated = next.0 == Token::Not;
        if negated {
            next = self.next();
        }
        let (Token::Word, key) = next else {
            return Err(format!("found '{}', expected: identifier", next.1));
        };
        let problems = names::qualified_name(key);
        if !problems.is_empty() {
            return Err(FieldError::invalid("<nil>", key, problems.join("; ")).to_string());
        }
        if negated || matches!(self.peek().0, Token::End | Token::Comma) {
            let operator = if negated {
                Operator::Absent
            } else {
                Operator::Exists
            };
            return Ok(Requirement {
                key: key.to_owned(),
                operator,
            });
        }
        let (operator, found) = self.raw();
        self.at += 1;
        let values = match operator {
            Token::In | Token::NotIn => self.values()?,
            Token::Equal | Token::DoubleEqual | Token::NotEqual | Token::Greater | Token::Less => {
                BTreeSet::from([self.value()?])
            }
            _ => return Err(format!("found '{found}', expected: in, notin, =, ==, !=, gt, lt")),
        };
        Ok(Requirement {
            key: key.to_owned(),
            operator: operation(key, operator, &values)?,
        })
    }

    /// The one value behind `=` and the like; nothing is the empty value.
    fn value(&mut self) -> Parsed<String> {
        match self.peek() {
            (Token::End | Token::Comma, _) => Ok(String::new()),
            (Token::Word, value) => {
                self.at += 1;
                Ok(value.to_owned())
            }
            (_, found) => Err(format!("found '{found}', expected: identifier")),
        }
    }

    /// The values behind `in`: `(a,b)`; `()`, `(,a)` and `(a,)` hold the empty value.
    fn values(&mut self) -> Parsed<BTreeSet<String>> {
        let (token, found) = self.next();
        if token != Token::Open {
            return Err(format!("found '{found}' expected: '('"));
        }
        let mut values = BTreeSet::new();
        match self.peek() {
            (Token::Close, _) => {
                self.at += 1;
                return Ok(BTreeSet::from([String::new()]));
            }
            (Token::Word | Token::Comma, _) => {}
            (_, found) => return Err(format!("found '{found}', expected: ',', ')' or identifier")),
        }
        loop {
            match self.next() {
                (Token::Word, value) => {
                    values.insert(value.to_owned());
                    match self.peek() {
                        (Token::Comma, _) => {}
                        (Token::Close, _) => break,
                        (_, found) => return Err(format!("found '{found}', expected: ',' or ')'")),
                    }
                }
                (Token::Comma, _) => {
                    if values.is_empty() {
                        values.insert(String::new());
                    }
                    match self.peek().0 {
                        Token::Close => {
                            values.insert(String::new());
                            break;
                        }
                        Token::Comma => {
                            self.at += 1;
                            values.insert(String::new());
                        }
                        _ => {}
                    }
                }
                (_, found) => return Err(format!("found '{found}', expected: ',', or identifier")),
            }
        }
        self.at += 1;
        Ok(values)
    }
}

/// The requirement, when its values are such as labels have.
fn operation(key: &str, operator: Token, values: &BTreeSet<String>) -> Parsed<Operator> {
    let mut errors = Vec::new();
    let mut number = 0;
    if matches!(operator, Token::Greater | Token::Less) {
        for (at, value) in values.iter().enumerate() {
            match value.parse() {
                Ok(value) => number = value,
                Err(_) => errors.push(FieldError::invalid(
                    format!("values[{at}]"),
                    value.as_str(),
                    "for 'Gt', 'Lt' operators, the value must be an integer",
                )),
            }
        }
    }
    for (at, value) in values.iter().enumerate() {
        let problems = names::label_value(value);
        if !problems.is_empty() {
            let field = format!("values[{at}][{key}]");
            errors.push(FieldError::invalid(field, value.as_str(), problems.join("; ")));
        }
    }
    if !errors.is_empty() {
        return Err(field::summary(&errors));
    }
    Ok(match operator {
        Token::NotIn | Token::NotEqual => Operator::NoneOf(values.clone()),
        Token::Greater => Operator::Greater(number),
        Token::Less => Operator::Less(number),
        _ => Operator::OneOf(values.clone()),
    })
}

//! The parser of paths.

use serde_json::Value;

use super::{Filter, Path, PathError, Step};

/// The maximum length of a path, in bytes, and of its steps: longer ones are refused, since no schema needs them.
const LONGEST: usize = 512;
const MOST_STEPS: usize = 32;

/// Parses a path, which is refused if it is empty, is too long, or is not in the subset.
pub(super) fn parse(text: &str) -> Result<Path, PathError> {
    Parser { text, rest: text }.path()
}

struct Parser<'t> {
    text: &'t str,
    rest: &'t str,
}

impl Parser<'_> {
    fn path(mut self) -> Result<Path, PathError> {
        if self.text.len() > LONGEST {
            return self.wrong("the path is longer than 512 bytes");
        }
        let mut steps = Vec::new();
        let is_absolute = self.takes("$");
        let mut is_first = !is_absolute;
        while !self.rest.is_empty() {
            if steps.len() == MOST_STEPS {
                return self.wrong("the path has more than 32 steps");
            }
            if self.rest.starts_with('[') {
                steps.push(self.bracket()?);
            } else if self.rest.starts_with("..") {
                return self.wrong("recursive descent is not supported: name the steps");
            } else if is_first || self.takes(".") {
                if self.takes("*") {
                    steps.push(Step::All);
                } else {
                    steps.push(Step::Members(vec![self.name()?]));
                }
            } else {
                return self.wrong("a dot or a bracket is expected here");
            }
            is_first = false;
        }
        if steps.is_empty() && !is_absolute {
            return self.wrong("the path is empty");
        }
        Ok(Path { steps, is_absolute })
    }

    /// `[*]`, `[0]`, `['a']`, `['a','b']`, `[?@.a == 'x']`, `[?(@.a == 'x')]`.
    fn bracket(&mut self) -> Result<Step, PathError> {
        self.expect("[", "a bracket is expected here")?;
        self.spaces();
        let step = if self.takes("*") {
            Step::All
        } else if self.takes("?") {
            self.spaces();
            let is_in_parentheses = self.takes("(");
            let filter = self.filter()?;
            if is_in_parentheses {
                self.spaces();
                self.expect(")", "a closing parenthesis is expected here")?;
            }
            Step::Fitting(filter)
        } else if self.rest.starts_with(['\'', '"']) {
            let mut names = vec![self.quoted()?];
            self.spaces();
            while self.takes(",") {
                self.spaces();
                let before = self.rest;
                let name = self.quoted()?;
                if names.contains(&name) {
                    // Each repeated step would double the walk.
                    self.rest = before;
                    return self.wrong("the name is repeated");
                }
                names.push(name);
                self.spaces();
            }
            Step::Members(names)
        } else {
            let digits = self.while_is(|c| c.is_ascii_digit());
            match digits.parse() {
                Ok(number) => Step::Element(number),
                Err(_) => {
                    return self.wrong("*, a number, a quoted name or a filter ?@.name is expected here");
                }
            }
        };
        self.spaces();
        self.expect("]", "a closing bracket is expected here")?;
        Ok(step)
    }

    fn filter(&mut self) -> Result<Filter, PathError> {
        self.spaces();
        self.expect("@", "a filter begins with @")?;
        let mut field = Vec::new();
        loop {
            if self.takes(".") {
                field.push(self.name()?);
            } else if self.rest.starts_with("['") || self.rest.starts_with("[\"") {
                self.takes("[");
                field.push(self.quoted()?);
                self.expect("]", "a closing bracket is expected here")?;
            } else {
                break;
            }
        }
        self.spaces();
        let is_equal = self.takes("==");
        if !is_equal && !self.takes("!=") {
            return Ok(Filter { field, test: None });
        }
        self.spaces();
        let constant = self.constant()?;
        Ok(Filter {
            field,
            test: Some((is_equal, constant)),
        })
    }

    fn constant(&mut self) -> Result<Value, PathError> {
        if self.rest.starts_with(['\'', '"']) {
            return Ok(Value::String(self.quoted()?));
        }
        let before = self.rest;
        let word = self.while_is(|c| c.is_ascii_alphanumeric() || c == '-');
        let value = match word {
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            "null" => Some(Value::Null),
            number => number.parse::<i64>().ok().map(Value::from),
        };
        value.map_or_else(
            || {
                self.rest = before;
                self.wrong("a quoted text, a whole number, true, false or null is expected here")
            },
            Ok,
        )
    }

    fn name(&mut self) -> Result<String, PathError> {
        let name = self.while_is(|c| c.is_alphanumeric() || c == '_' || c == '-');
        if name.is_empty() {
            return self.wrong("a name is expected here; quote one with other characters: ['a/b']");
        }
        Ok(name.to_owned())
    }

    /// A text in either kind of quotes; a backslash escapes the next character.
    fn quoted(&mut self) -> Result<String, PathError> {
        let Some(quote) = self.rest.chars().next().filter(|c| ['\'', '"'].contains(c)) else {
            return self.wrong("a quoted name is expected here");
        };
        let mut text = String::new();
        let mut characters = self.rest.char_indices().skip(1);
        while let Some((at, c)) = characters.next() {
            match c {
                '\\' => text.extend(characters.next().map(|(_, c)| c)),
                c if c == quote => {
                    self.rest = &self.rest[at + c.len_utf8()..];
                    return Ok(text);
                }
                c => text.push(c),
            }
        }
        self.wrong("the quote is not closed")
    }

    fn spaces(&mut self) {
        self.rest = self.rest.trim_start_matches(' ');
    }

    fn takes(&mut self, what: &str) -> bool {
        self.rest.strip_prefix(what).is_some_and(|rest| {
            self.rest = rest;
            true
        })
    }

    fn while_is(&mut self, is_in: impl Fn(char) -> bool) -> &str {
        let end = self.rest.find(|c| !is_in(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn expect(&mut self, what: &str, problem: &'static str) -> Result<(), PathError> {
        if self.takes(what) {
            Ok(())
        } else {
            self.wrong(problem)
        }
    }

    fn wrong<T>(&self, problem: &'static str) -> Result<T, PathError> {
        let read = self.text.len() - self.rest.len();
        let at = self.text[..read].chars().count() + 1;
        Err(PathError { at, problem })
    }
}

//! The patterns of Lua 5.1, matched in counted steps: the virtual machine's own matcher can run for hours without a check of the
//! clock. Source: Lua 5.1 reference manual 5.4.1; a test compares with the virtual machine.

use crate::{budget::Budget, error::say};

/// The maximum number of captures, as in Lua.
const MAX_CAPTURES: usize = 32;

/// The maximum nesting of one attempt; a level is an item with a repetition, or a capture. Lua 5.1 has no limit and can overflow
/// its stack; later versions have this one.
const MAX_DEPTH: usize = 200;

const ESCAPE: u8 = b'%';

/// A part of the subject that matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Capture {
    /// From here, with an unknown end.
    Open(usize),
    /// `()`: the position itself, from 0.
    Position(usize),
    /// From and to.
    Text(usize, usize),
}

/// One pattern on one subject.
pub(crate) struct Matcher<'a> {
    subject: &'a [u8],
    pattern: &'a [u8],
    budget: &'a Budget,
    captures: Vec<Capture>,
    depth: usize,
}

type Matched = mlua::Result<Option<usize>>;

impl<'a> Matcher<'a> {
    pub(crate) fn new(subject: &'a [u8], pattern: &'a [u8], budget: &'a Budget) -> Self {
        Self {
            subject,
            pattern,
            budget,
            captures: Vec::new(),
            depth: 0,
        }
    }

    /// The end of a match that begins exactly at `start`, or `None`.
    pub(crate) fn at(&mut self, start: usize) -> Matched {
        self.captures.clear();
        self.depth = 0;
        self.run(start, 0)
    }

    /// The first match from `start` on; only at `start` itself if it is anchored.
    pub(crate) fn from(&mut self, start: usize, only_there: bool) -> mlua::Result<Option<(usize, usize)>> {
        let last = if only_there { start } else { self.subject.len() };
        for begin in start..=last {
            if let Some(end) = self.at(begin)? {
                return Ok(Some((begin, end)));
            }
        }
        Ok(None)
    }

    /// The number of values of the match: its captures, or itself.
    pub(crate) fn values(&self) -> usize {
        self.captures.len().max(1)
    }

    /// True if the pattern of the last match has captures.
    pub(crate) fn has_captures(&self) -> bool {
        !self.captures.is_empty()
    }

    /// A value of the match at `whole`: a capture, or the match itself if there are none.
    pub(crate) fn value(&self, index: usize, whole: (usize, usize)) -> mlua::Result<Capture> {
        match self.captures.get(index) {
            Some(Capture::Open(_)) => Err(say("unfinished capture")),
            Some(capture) => Ok(*capture),
            None if index == 0 => Ok(Capture::Text(whole.0, whole.1)),
            None => Err(say("invalid capture index")),
        }
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.pattern.get(at).copied()
    }

    fn nested(&mut self, s: usize, p: usize) -> Matched {
        if self.depth >= MAX_DEPTH {
            return Err(say("the pattern is too complex"));
        }
        self.depth += 1;
        let result = self.run(s, p);
        self.depth -= 1;
        result
    }

    /// Matches the rest of the pattern.
    fn run(&mut self, mut s: usize, mut p: usize) -> Matched {
        loop {
            self.budget.step(1)?;
            let Some(first) = self.byte(p) else {
                return Ok(Some(s));
            };
            match (first, self.byte(p + 1)) {
                (b'(', Some(b')')) => return self.open(s, p + 2, Capture::Position(s)),
                (b'(', _) => return self.open(s, p + 1, Capture::Open(s)),
                (b')', _) => return self.close(s, p + 1),
                (b'$', None) => return Ok((s == self.subject.len()).then_some(s)),
                (ESCAPE, Some(b'b')) => match self.balanced(s, p + 2)? {
                    Some(end) => (s, p) = (end, p + 4),
                    None => return Ok(None),
                },
                (ESCAPE, Some(b'f')) => match self.frontier(s, p + 2)? {
                    Some(next) => p = next,
                    None => return Ok(None),
                },
                (ESCAPE, Some(digit)) if digit.is_ascii_digit() => match self.again(s, digit)? {
                    Some(end) => (s, p) = (end, p + 2),
                    None => return Ok(None),
                },
                _ => {
                    let next = self.class_end(p)?;
                    let is_match = self.single(s, p, next)?;
                    match self.byte(next) {
                        Some(b'?') => {
                            if is_match && let Some(end) = self.nested(s + 1, next + 1)? {
                                return Ok(Some(end));
                            }
                            p = next + 1;
                        }
                        Some(b'*') => return self.longest(s, p, next),
                        Some(b'+') if is_match => return self.longest(s + 1, p, next),
                        Some(b'-') => return self.shortest(s, p, next),
                        Some(b'+') => return Ok(None),
                        _ if is_match => (s, p) = (s + 1, next),
                        _ => return Ok(None),
                    }
                }
            }
        }
    }

    fn open(&mut self, s: usize, p: usize, capture: Capture) -> Matched {
        if self.captures.len() >= MAX_CAPTURES {
            return Err(say("too many captures in a pattern"));
        }
        let level = self.captures.len();
        self.captures.push(capture);
        let result = self.nested(s, p)?;
        if result.is_none() {
            self.captures.truncate(level);
        }
        Ok(result)
    }

    fn close(&mut self, s: usize, p: usize) -> Matched {
        let last = self
            .captures
            .iter()
            .rposition(|each| matches!(each, Capture::Open(_)));
        let Some(level) = last else {
            return Err(say("invalid pattern capture"));
        };
        let before = self.captures[level];
        if let Capture::Open(start) = before {
            self.captures[level] = Capture::Text(start, s);
        }
        let result = self.nested(s, p)?;
        if result.is_none() {
            self.captures[level] = before;
        }
        Ok(result)
    }

    /// `%1`: the text of an earlier capture.
    fn again(&mut self, s: usize, digit: u8) -> Matched {
        let index = usize::from(digit).checked_sub(usize::from(b'1'));
        let (start, end) = match index.and_then(|index| self.captures.get(index)) {
            None | Some(Capture::Open(_)) => return Err(say("invalid capture index in a pattern")),
            Some(Capture::Position(_)) => return Ok(None),
            Some(Capture::Text(start, end)) => (*start, *end),
        };
        self.budget.step(end - start)?;
        let is_same = self.subject[s..].starts_with(&self.subject[start..end]);
        Ok(is_same.then_some(s + end - start))
    }

    /// `%bxy`.
    fn balanced(&self, s: usize, p: usize) -> Matched {
        let (Some(open), Some(close)) = (self.byte(p), self.byte(p + 1)) else {
            return Err(say("unbalanced pattern"));
        };
        if self.subject.get(s) != Some(&open) {
            return Ok(None);
        }
        let mut depth = 1_usize;
        for (offset, byte) in self.subject[s + 1..].iter().enumerate() {
            self.budget.step(1)?;
            if *byte == close {
                depth -= 1;
                if depth == 0 {
                    return Ok(Some(s + offset + 2));
                }
            } else if *byte == open {
                depth += 1;
            }
        }
        Ok(None)
    }

    /// `%f[set]`: the position in the pattern after it if this is a frontier of the set.
    fn frontier(&self, s: usize, p: usize) -> Matched {
        if self.byte(p) != Some(b'[') {
            return Err(say("missing '[' after '%f' in a pattern"));
        }
        let next = self.class_end(p)?;
        let previous = s.checked_sub(1).map_or(0, |before| self.subject[before]);
        let current = self.subject.get(s).copied().unwrap_or(0);
        let is_frontier = !self.in_set(previous, p, next - 1)? && self.in_set(current, p, next - 1)?;
        Ok(is_frontier.then_some(next))
    }

    fn longest(&mut self, s: usize, p: usize, next: usize) -> Matched {
        let mut count = 0;
        while self.single(s + count, p, next)? {
            count += 1;
        }
        loop {
            if let Some(end) = self.nested(s + count, next + 1)? {
                return Ok(Some(end));
            }
            if count == 0 {
                return Ok(None);
            }
            count -= 1;
        }
    }

    fn shortest(&mut self, mut s: usize, p: usize, next: usize) -> Matched {
        loop {
            if let Some(end) = self.nested(s, next + 1)? {
                return Ok(Some(end));
            }
            if !self.single(s, p, next)? {
                return Ok(None);
            }
            s += 1;
        }
    }

    /// The end of the single-character class that begins at `p`.
    fn class_end(&self, p: usize) -> mlua::Result<usize> {
        match self.byte(p) {
            Some(ESCAPE) if self.byte(p + 1).is_none() => Err(say("malformed pattern (ends with '%')")),
            Some(ESCAPE) => Ok(p + 2),
            Some(b'[') => {
                let mut at = p + 1 + usize::from(self.byte(p + 1) == Some(b'^'));
                loop {
                    self.budget.step(1)?;
                    match self.byte(at) {
                        None => return Err(say("malformed pattern (missing ']')")),
                        Some(ESCAPE) if self.byte(at + 1).is_some() => at += 2,
                        Some(_) => at += 1,
                    }
                    if self.byte(at) == Some(b']') {
                        return Ok(at + 1);
                    }
                }
            }
            _ => Ok(p + 1),
        }
    }

    /// True if the byte of the subject is in the class between `p` and `next`.
    fn single(&self, s: usize, p: usize, next: usize) -> mlua::Result<bool> {
        self.budget.step(1)?;
        let (Some(byte), Some(class)) = (self.subject.get(s), self.byte(p)) else {
            return Ok(false);
        };
        match class {
            b'.' => Ok(true),
            ESCAPE => Ok(is_in_class(*byte, self.pattern[p + 1])),
            b'[' => self.in_set(*byte, p, next - 1),
            other => Ok(other == *byte),
        }
    }

    /// True if the byte is in the set that begins at `p` and whose bracket closes at `last`.
    fn in_set(&self, byte: u8, p: usize, last: usize) -> mlua::Result<bool> {
        self.budget.step(last - p)?;
        let is_negated = self.byte(p + 1) == Some(b'^');
        let mut at = p + 1 + usize::from(is_negated);
        while at < last {
            let low = self.pattern[at];
            if low == ESCAPE {
                at += 1;
                if is_in_class(byte, self.byte(at).unwrap_or(0)) {
                    return Ok(!is_negated);
                }
            } else if self.byte(at + 1) == Some(b'-') && at + 2 < last {
                at += 2;
                if (low..=self.pattern[at]).contains(&byte) {
                    return Ok(!is_negated);
                }
            } else if low == byte {
                return Ok(!is_negated);
            }
            at += 1;
        }
        Ok(is_negated)
    }
}

/// The classes of the C locale; an upper-case letter negates, and any other byte is literal.
fn is_in_class(byte: u8, class: u8) -> bool {
    let is_in = match class.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        b's' => byte.is_ascii_whitespace() || byte == 0x0b,
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        b'z' => byte == 0,
        _ => return class == byte,
    };
    is_in != class.is_ascii_uppercase()
}

/// The position of `needle` in `subject` from `start` on, without patterns.
pub(crate) fn plain(
    subject: &[u8],
    needle: &[u8],
    start: usize,
    budget: &Budget,
) -> mlua::Result<Option<usize>> {
    let Some(last) = subject.len().checked_sub(needle.len()) else {
        return Ok(None);
    };
    for at in start..=last {
        let same = subject[at..]
            .iter()
            .zip(needle)
            .take_while(|(a, b)| a == b)
            .count();
        budget.step(1 + same)?;
        if same == needle.len() {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// True if the text has characters with a meaning in patterns.
pub(crate) fn is_pattern(text: &[u8]) -> bool {
    text.iter().any(|byte| b"^$*+?.([%-".contains(byte))
}

#[cfg(test)]
mod tests;

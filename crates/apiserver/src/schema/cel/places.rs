//! The places of the parts of an expression in its text. The parser does not tell them: its parts come in the order of the
//! text, so each is found behind the one before it.

use std::collections::HashMap;

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators,
};

use super::bound;

/// The offsets of parts by their ids. O(text + expression).
pub(super) fn places(text: &str, expr: &IdedExpr) -> HashMap<u64, usize> {
    let mut finder = Finder {
        tokens: tokens(text),
        next: 0,
        found: HashMap::new(),
    };
    finder.visit(expr);
    finder.found
}

/// A piece of the text: a word, a literal, an operator.
#[derive(Clone, Copy)]
struct Token<'a> {
    at: usize,
    text: &'a str,
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    const PAIRS: [&str; 6] = ["&&", "||", "==", "!=", "<=", ">="];
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        } else if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        } else if let Some(length) = quoted(rest) {
            length
        } else if first.is_ascii_digit() {
            rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.')
                .unwrap_or(rest.len())
        } else if first.is_alphabetic() || first == '_' {
            rest.find(|c: char| !c.is_alphanumeric() && c != '_')
                .unwrap_or(rest.len())
        } else if PAIRS.iter().any(|pair| rest.starts_with(pair)) {
            2
        } else {
            first.len_utf8()
        };
        tokens.push(Token {
            at,
            text: &rest[..length],
        });
        at += length;
    }
    tokens
}

/// The length of the text literal that a text begins with.
fn quoted(text: &str) -> Option<usize> {
    // At most two letters come first.
    let prefix = text
        .bytes()
        .take(3)
        .position(|byte| matches!(byte, b'"' | b'\''))?;
    let letters = &text[..prefix];
    if !letters.chars().all(|c| matches!(c, 'r' | 'R' | 'b' | 'B')) {
        return None;
    }
    let is_raw = letters.contains(['r', 'R']);
    let quote = &text[prefix..=prefix];
    let triple = quote.repeat(3);
    let end = if text[prefix..].starts_with(&triple) {
        triple.as_str()
    } else {
        quote
    };
    let mut at = prefix + end.len();
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with(end) {
            return Some(at + end.len());
        }
        let escaped = rest.starts_with('\\') && !is_raw;
        at += rest
            .chars()
            .take(1 + usize::from(escaped))
            .map(char::len_utf8)
            .sum::<usize>();
    }
    Some(text.len())
}

struct Finder<'a> {
    tokens: Vec<Token<'a>>,
    next: usize,
    found: HashMap<u64, usize>,
}

impl Finder<'_> {
    /// Goes on behind the next tokens that read so; the offset of the last of them.
    fn find(&mut self, words: &[&str]) -> Option<usize> {
        let matches =
            |tokens: &[Token<'_>]| tokens.iter().zip(words).all(|(token, word)| token.text == *word);
        let ahead = self.tokens[self.next..].windows(words.len()).position(matches)?;
        self.next += ahead + words.len();
        Some(self.tokens[self.next - 1].at)
    }

    fn set(&mut self, id: u64, at: Option<usize>) {
        if let Some(at) = at {
            self.found.entry(id).or_insert(at);
        }
    }

    fn visit(&mut self, expr: &IdedExpr) {
        match &expr.expr {
            Expr::Ident(name) => {
                let at = self.find(&[name.trim_start_matches('.')]);
                self.set(expr.id, at);
            }
            Expr::Literal(literal) => self.literal(expr.id, literal),
            Expr::Select(select) => {
                self.visit(&select.operand);
                let at = self
                    .find(&[".", &select.field])
                    .map(|_| self.tokens[self.next - 2].at);
                self.set(expr.id, at);
            }
            Expr::Call(call) => self.call(expr.id, call),
            Expr::List(list) => {
                let at = self.find(&["["]);
                self.set(expr.id, at);
                list.elements.iter().for_each(|element| self.visit(element));
            }
            Expr::Map(map) => {
                let at = self.find(&["{"]);
                self.set(expr.id, at);
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        self.visit(&entry.key);
                        self.visit(&entry.value);
                    }
                }
            }
            Expr::Comprehension(loops) => self.macro_call(expr.id, loops),
            Expr::Struct(_) | Expr::Unspecified => {}
        }
    }

    fn literal(&mut self, id: u64, literal: &LiteralValue) {
        let is_literal = |token: &Token<'_>| {
            let first = token.text.chars().next().unwrap_or_default();
            match literal {
                LiteralValue::String(_) | LiteralValue::Bytes(_) => token.text.ends_with(['"', '\'']),
                LiteralValue::Boolean(_) => matches!(token.text, "true" | "false"),
                LiteralValue::Null => token.text == "null",
                _ => first.is_ascii_digit(),
            }
        };
        let Some(ahead) = self.tokens[self.next..].iter().position(is_literal) else {
            return;
        };
        let mut at = self.next + ahead;
        self.next = at + 1;
        let is_negative = match literal {
            LiteralValue::Int(number) => *number.inner() < 0,
            LiteralValue::Double(number) => *number.inner() < 0.0,
            _ => false,
        };
        if is_negative && at > 0 && self.tokens[at - 1].text == "-" {
            at -= 1;
        }
        self.set(id, Some(self.tokens[at].at));
    }

    fn call(&mut self, id: u64, call: &CallExpr) {
        let name = call.func_name.as_str();
        let symbol = match name {
            operators::CONDITIONAL => "?",
            operators::IN => "in",
            operators::INDEX | operators::OPT_INDEX => "[",
            operators::OPT_SELECT => ".",
            operators::LOGICAL_NOT => "!",
            operators::NEGATE => "-",
            _ => name.trim_matches('_'),
        };
        let is_operator = symbol != name || name == operators::IN;
        match (is_operator, call.target.as_deref(), call.args.as_slice()) {
            (true, _, [one]) => {
                let at = self.find(&[symbol]);
                self.set(id, at);
                self.visit(one);
            }
            (true, _, [first, rest @ ..]) => {
                self.visit(first);
                let at = self.find(&[symbol]);
                self.set(id, at);
                if name == operators::OPT_SELECT {
                    // The name of the field is no literal in the text.
                    rest.iter().for_each(|field| self.set(field.id, at));
                } else {
                    rest.iter().for_each(|arg| self.visit(arg));
                }
            }
            (_, target, args) => {
                let name = name.trim_start_matches('.');
                let at = match target {
                    Some(target) => {
                        self.visit(target);
                        self.find(&[".", name, "("])
                    }
                    None => self.find(&[name, "("]),
                };
                self.set(id, at);
                args.iter().for_each(|arg| self.visit(arg));
            }
        }
    }

    /// A macro: of the loop that it is, only what it was given is in the text.
    fn macro_call(&mut self, id: u64, loops: &ComprehensionExpr) {
        const MACROS: [&str; 6] = ["all", "exists", "exists_one", "existsOne", "map", "filter"];
        self.visit(&loops.iter_range);
        let opening = |tokens: &[Token<'_>]| matches!(tokens, [dot, name, open] if dot.text == "." && open.text == "(" && MACROS.contains(&name.text));
        let Some(ahead) = self.tokens[self.next..].windows(3).position(opening) else {
            return;
        };
        self.next += ahead + 3;
        let (name, open) = (self.tokens[self.next - 2].text, self.tokens[self.next - 1].at);
        self.set(id, Some(open));
        self.find(&[loops.iter_var.as_str()]);
        for part in given(&loops.loop_step, name == "filter") {
            self.visit(part);
        }
        for part in [
            &loops.accu_init,
            &loops.loop_cond,
            &loops.loop_step,
            &loops.result,
        ] {
            self.fill(part, open);
        }
    }

    /// Parts without a place of their own are where the macro is.
    fn fill(&mut self, expr: &IdedExpr, at: usize) {
        self.set(expr.id, Some(at));
        bound::each(expr, &mut |part| self.fill(part, at));
    }
}

/// The arguments of a macro, taken out of the step of its loop.
fn given(step: &IdedExpr, is_filter: bool) -> Vec<&IdedExpr> {
    let Expr::Call(call) = &step.expr else {
        return Vec::new();
    };
    match (call.func_name.as_str(), call.args.as_slice()) {
        (operators::LOGICAL_AND | operators::LOGICAL_OR, [_, predicate]) => vec![predicate],
        (operators::CONDITIONAL, [predicate, _, _]) if is_filter => vec![predicate],
        (operators::CONDITIONAL, [predicate, then, _]) => {
            let mut parts = vec![predicate];
            parts.extend(given(then, false));
            parts
        }
        (operators::ADD, [_, added]) => match &added.expr {
            Expr::List(list) => list.elements.iter().collect(),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

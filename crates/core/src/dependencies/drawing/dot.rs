//! The drawing in DOT. Source: graphviz.org, "DOT Language" (quoted strings) and "escString".

use std::{collections::BTreeMap, fmt::Write as _};

use super::{Drawing, places};
use crate::object::ResourceId;

/// A digraph from left to right; missing objects are dashed, optional references dotted.
#[must_use]
pub fn draw(drawing: &Drawing) -> String {
    let numbers: BTreeMap<&ResourceId, usize> = drawing.nodes.keys().zip(0..).collect();
    let mut text = String::from("digraph dependencies {\n  rankdir=LR;\n  node [shape=box];\n");
    for (id, node) in &drawing.nodes {
        let mut label = escaped(&id.to_string());
        let places = places(node);
        if !node.exists {
            label.push_str("\\nmissing");
        }
        if !places.is_empty() {
            label.push_str("\\n");
            label.push_str(&escaped(&places));
        }
        let style = if node.exists { "" } else { ", style=dashed" };
        writeln!(text, "  n{} [label=\"{label}\"{style}];", numbers[id]).unwrap_or_default();
    }
    for (from, needed) in &drawing.edges {
        for (to, optional) in needed {
            let (Some(from), Some(to)) = (numbers.get(from), numbers.get(to)) else {
                continue;
            };
            let style = if *optional {
                " [style=dotted, label=\"optional\"]"
            } else {
                ""
            };
            writeln!(text, "  n{from} -> n{to}{style};").unwrap_or_default();
        }
    }
    text.push_str("}\n");
    text
}

/// Text within a quoted string: quotes and backslashes are escaped.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            _ if letter.is_control() => out.push('\u{fffd}'),
            '"' | '\\' => {
                out.push('\\');
                out.push(letter);
            }
            _ => out.push(letter),
        }
    }
    out
}

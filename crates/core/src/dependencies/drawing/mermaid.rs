//! The drawing as a Mermaid flowchart. Source: the syntax page of mermaid.js.org for flowcharts (quoted labels, entity codes).

use std::{collections::BTreeMap, fmt::Write as _};

use super::{Drawing, places};
use crate::object::ResourceId;

/// A flowchart from left to right; missing objects are dashed, optional references dotted.
#[must_use]
pub fn draw(drawing: &Drawing) -> String {
    let numbers: BTreeMap<&ResourceId, usize> = drawing.nodes.keys().zip(0..).collect();
    let mut text = String::from("flowchart LR\n");
    for (id, node) in &drawing.nodes {
        let number = numbers[id];
        let mut label = escaped(&id.to_string());
        let places = places(node);
        if !node.exists {
            label.push_str("<br/>missing");
        }
        if !places.is_empty() {
            label.push_str("<br/>");
            label.push_str(&escaped(&places));
        }
        let class = if node.exists { "" } else { ":::missing" };
        writeln!(text, "  n{number}[\"{label}\"]{class}").unwrap_or_default();
    }
    for (from, needed) in &drawing.edges {
        for (to, optional) in needed {
            let (Some(from), Some(to)) = (numbers.get(from), numbers.get(to)) else {
                continue;
            };
            let arrow = if *optional { "-. optional .->" } else { "-->" };
            writeln!(text, "  n{from} {arrow} n{to}").unwrap_or_default();
        }
    }
    if drawing.nodes.values().any(|node| !node.exists) {
        text.push_str("  classDef missing stroke-dasharray: 4 4\n");
    }
    text
}

/// Text within a quoted label: characters with a meaning in Markdown or HTML become entity codes.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            _ if letter.is_control() => out.push('\u{fffd}'),
            _ if letter.is_alphanumeric() || " /.,()-_:".contains(letter) => out.push(letter),
            _ => write!(out, "#{};", u32::from(letter)).unwrap_or_default(),
        }
    }
    out
}

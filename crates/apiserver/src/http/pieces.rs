//! Large answers in pieces: lists spliced from stored bytes, and what is compressed on the way.

use std::{io::Write as _, sync::Arc};

use flate2::{Compression, write::GzEncoder};
use serde_json::json;

use super::write::whole;
use crate::{
    call::Item,
    json,
    resource::{Resource, stored},
};

/// Lists are written in pieces of about this size.
const PIECE: usize = 64 << 10;

/// The text of a list, piece by piece.
pub(super) struct Splicing {
    pub(super) begin: Option<Vec<u8>>,
    pub(super) items: std::vec::IntoIter<Item>,
    pub(super) head: Vec<u8>,
    pub(super) any: bool,
    pub(super) done: bool,
    pub(super) custom: bool,
    pub(super) resource: Arc<Resource>,
}

impl Iterator for Splicing {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        if self.done {
            return None;
        }
        let mut text = self.begin.take().unwrap_or_default();
        while text.len() < PIECE {
            let Some(item) = self.items.next() else {
                self.done = true;
                text.extend(b"]}\n");
                break;
            };
            if self.any {
                text.push(b',');
            }
            self.any = true;
            match item {
                Item::Stored(entry) if stored::is_shown_as_stored(&self.resource, &entry) => {
                    splice(&mut text, &self.head, &entry.object);
                }
                item => {
                    let mut object = whole(&self.resource, item);
                    if !self.custom {
                        object.remove("kind");
                        object.remove("apiVersion");
                    }
                    text.extend(json::compact_map(&object));
                }
            }
        }
        Some(text)
    }
}

/// Pieces, compressed.
pub(super) struct Zipped<I> {
    pieces: I,
    encoder: Option<GzEncoder<Vec<u8>>>,
}

impl<I: Iterator<Item = Vec<u8>>> Zipped<I> {
    pub(super) fn new(pieces: I) -> Self {
        Self {
            pieces,
            encoder: Some(GzEncoder::new(Vec::new(), Compression::fast())),
        }
    }
}

impl<I: Iterator<Item = Vec<u8>>> Iterator for Zipped<I> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            let encoder = self.encoder.as_mut()?;
            match self.pieces.next() {
                Some(piece) => {
                    // Writing into a vector does not fail.
                    let _ = encoder.write_all(&piece);
                    if encoder.get_ref().len() >= PIECE / 4 {
                        return Some(std::mem::take(encoder.get_mut()));
                    }
                }
                None => return self.encoder.take().and_then(|encoder| encoder.finish().ok()),
            }
        }
    }
}

/// `{"kind":…,"apiVersion":…`, without an end.
pub(super) fn head(resource: &Resource) -> Vec<u8> {
    let mut text = json::compact(&json!({"kind": resource.kind, "apiVersion": resource.api_version()}));
    text.pop();
    text
}

/// A stored object with `head` in front, which may be empty.
pub(super) fn splice(text: &mut Vec<u8>, head: &[u8], stored: &[u8]) {
    if head.is_empty() {
        text.extend(stored);
        return;
    }
    text.extend(head);
    if stored != b"{}" {
        text.push(b',');
    }
    text.extend(stored.get(1..).unwrap_or(b"}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_object_gets_its_kind_in_front() {
        let mut text = Vec::new();
        splice(&mut text, b"{\"kind\":\"A\"", b"{\"b\":1}");
        assert_eq!(text, b"{\"kind\":\"A\",\"b\":1}");
        text.clear();
        splice(&mut text, b"{\"kind\":\"A\"", b"{}");
        assert_eq!(text, b"{\"kind\":\"A\"}");
    }

    #[test]
    fn compressed_pieces_are_the_text() {
        use std::io::Read as _;
        let pieces = (0..50).map(|at| vec![at; 10_000]);
        let text: Vec<u8> = pieces.clone().flatten().collect();
        let zipped: Vec<u8> = Zipped::new(pieces).flatten().collect();
        let mut read = Vec::new();
        flate2::read::GzDecoder::new(&zipped[..])
            .read_to_end(&mut read)
            .expect("valid");
        assert_eq!(read, text);
    }
}

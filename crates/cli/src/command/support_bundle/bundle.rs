//! The files of a bundle on their way into the archive: nothing gets there that is not redacted.

use std::io;

use entourage_core::rendered::wipe;
use serde::Serialize;
use serde_json::Value;

use super::{archive::Archive, redact::redact, scrub::scrub};

/// The files of a bundle. Every content comes through [`Self::json`], [`Self::page`] or [`Self::text`], which redact it.
pub struct Bundle {
    archive: Archive,
    /// The first error of the archive, after which nothing is written any more.
    written: io::Result<()>,
    unread: Vec<String>,
}

impl Bundle {
    /// An empty bundle.
    #[must_use]
    pub fn new(archive: Archive) -> Self {
        Self {
            archive,
            written: Ok(()),
            unread: Vec::new(),
        }
    }

    /// Adds an object.
    pub fn json(&mut self, path: &str, value: &impl Serialize) {
        let mut value = serde_json::to_value(value).unwrap_or_default();
        redact(&mut value);
        self.add(path, &format!("{value:#}\n"));
    }

    /// Adds objects as a list, and wipes them.
    pub fn page(&mut self, path: &str, objects: &mut [Value]) {
        objects.iter_mut().for_each(redact);
        let mut text = String::from("[");
        for object in objects {
            let comma = if text.len() > 1 { "," } else { "" };
            text.push_str(&format!("{comma}\n{object:#}"));
            wipe(object);
        }
        text.push_str("\n]\n");
        self.add(path, &text);
    }

    /// Adds a text.
    pub fn text(&mut self, path: &str, text: &str) {
        self.add(path, &scrub(text));
    }

    /// Records what could not be read. Errors of servers may quote objects.
    pub fn unread(&mut self, what: &str, why: &str) {
        self.unread.push(scrub(&format!("{what}: {why}")));
    }

    fn add(&mut self, path: &str, content: &str) {
        if self.written.is_ok() {
            self.written = self.archive.add(path, content.as_bytes());
        }
    }

    /// Ends the bundle with the list of what could not be read. Returns the number of files, and that list.
    ///
    /// # Errors
    /// The archive cannot be written.
    pub fn finish(mut self) -> io::Result<(usize, Vec<String>)> {
        let lines: String = self.unread.iter().map(|line| format!("{line}\n")).collect();
        self.add("unread.txt", &lines);
        self.written?;
        let count = self.archive.len();
        self.archive.finish()?;
        Ok((count, self.unread))
    }
}

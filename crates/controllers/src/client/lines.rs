//! Splits a stream of bytes into lines.

/// The bytes received and not read yet.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    bytes: Vec<u8>,
    /// The start of the unread part.
    start: usize,
    /// The position up to which there is no end of a line.
    searched: usize,
}

/// The buffer size in bytes above which a buffer that grew for a large object is freed.
const KEPT: usize = 16 * 1024;
/// The maximum length of a line, in bytes: etcd accepts objects of 1.5 MiB.
const LONGEST: usize = 8 << 20;

impl Lines {
    /// Adds received bytes.
    pub(crate) fn push(&mut self, data: &[u8]) {
        if self.start > 0 {
            self.bytes.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
        if self.bytes.is_empty() && self.bytes.capacity() > KEPT {
            self.bytes = Vec::new();
        }
        self.bytes.extend_from_slice(data);
    }

    /// True if the unread part is longer than a line may be.
    pub(crate) fn is_too_long(&self) -> bool {
        self.bytes.len() - self.start > LONGEST
    }

    /// The next complete line that is not empty, or `None`.
    pub(crate) fn next(&mut self) -> Option<&[u8]> {
        loop {
            let Some(length) = self.bytes[self.searched..].iter().position(|byte| *byte == b'\n') else {
                self.searched = self.bytes.len();
                return None;
            };
            let (start, end) = (self.start, self.searched + length);
            (self.start, self.searched) = (end + 1, end + 1);
            if end > start {
                return Some(&self.bytes[start..end]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_an_end_is_too_long_some_day() {
        let mut lines = Lines::default();
        lines.push(&vec![b'x'; LONGEST]);
        assert!(lines.next().is_none() && !lines.is_too_long());
        lines.push(b"x");
        assert!(lines.next().is_none() && lines.is_too_long());
    }

    #[test]
    fn lines_may_come_in_any_pieces() {
        let text = b"first\n\nsecond line\nrest";
        for size in 1..text.len() {
            let (mut lines, mut found) = (Lines::default(), Vec::new());
            for piece in text.chunks(size) {
                lines.push(piece);
                while let Some(line) = lines.next() {
                    found.push(String::from_utf8_lossy(line).into_owned());
                }
            }
            assert_eq!(found, ["first", "second line"], "pieces of {size}");
        }
    }
}

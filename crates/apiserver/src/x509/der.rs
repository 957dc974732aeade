//! The distinguished encoding of ASN.1: elements that are read in place, and written.

pub(crate) const BOOLEAN: u8 = 0x01;
pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const BITS: u8 = 0x03;
pub(crate) const BYTES: u8 = 0x04;
pub(crate) const OID: u8 = 0x06;
pub(crate) const UTF8: u8 = 0x0c;
pub(crate) const SHORT_TIME: u8 = 0x17;
pub(crate) const TIME: u8 = 0x18;
pub(crate) const SEQUENCE: u8 = 0x30;
pub(crate) const SET: u8 = 0x31;
/// The element numbered 0 of a structure, and that numbered 3.
pub(crate) const FIELD_0: u8 = 0xa0;
pub(crate) const FIELD_3: u8 = 0xa3;

/// The longest element is just below 16 MiB: three bytes of length.
const LENGTH_BYTES: usize = 3;

/// One element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Element<'a> {
    /// Its tag.
    pub(crate) tag: u8,
    /// The bytes in it.
    pub(crate) content: &'a [u8],
    /// The whole of it, as encoded.
    pub(crate) whole: &'a [u8],
}

/// Elements that follow each other. A method that finds something else answers `None` and takes nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// The elements of these bytes.
    pub(crate) const fn new(der: &'a [u8]) -> Self {
        Self(der)
    }

    /// True at the end.
    pub(crate) const fn is_done(self) -> bool {
        self.0.is_empty()
    }

    /// The next element, whatever it is.
    pub(crate) fn any(&mut self) -> Option<Element<'a>> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (length, content) = if first < 0x80 {
            (usize::from(first), rest)
        } else {
            let count = usize::from(first & 0x7f);
            let bytes = rest
                .get(..count)
                .filter(|_| (1..=LENGTH_BYTES).contains(&count))?;
            let length = bytes.iter().fold(0, |sum, &byte| sum << 8 | usize::from(byte));
            // One length has one encoding.
            let is_shortest = length >= 0x80 && bytes[0] != 0;
            (is_shortest.then_some(length)?, &rest[count..])
        };
        let (content, after) = (content.get(..length)?, content.get(length..)?);
        let whole = &self.0[..self.0.len() - after.len()];
        self.0 = after;
        Some(Element { tag, content, whole })
    }

    /// The next element if it has this tag.
    pub(crate) fn one(&mut self, tag: u8) -> Option<Element<'a>> {
        let mut ahead = *self;
        let element = ahead.any().filter(|element| element.tag == tag)?;
        *self = ahead;
        Some(element)
    }

    /// The elements in the next one, which must have this tag.
    pub(crate) fn within(&mut self, tag: u8) -> Option<Self> {
        self.one(tag).map(|element| Self(element.content))
    }
}

/// The elements in the one that `der` is, without anything behind it.
pub(crate) fn whole(der: &[u8], tag: u8) -> Option<Reader<'_>> {
    let mut reader = Reader::new(der);
    let within = reader.within(tag)?;
    reader.is_done().then_some(within)
}

/// An element of these parts.
pub(crate) fn element(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let mut der = vec![tag];
    match u8::try_from(content.len()) {
        Ok(length) if length < 0x80 => der.push(length),
        _ => {
            let bytes = content.len().to_be_bytes();
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            let count = u8::try_from(bytes.len() - zeros).unwrap_or(u8::MAX);
            der.push(0x80 | count);
            der.extend_from_slice(&bytes[zeros..]);
        }
    }
    der.extend(content);
    der
}

/// The bytes of a string of whole bytes; `None` when some bits are not used.
pub(crate) fn whole_bits(bits: &[u8]) -> Option<&[u8]> {
    let (unused, bytes) = bits.split_first()?;
    (*unused == 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_written_is_read_whatever_its_length() {
        for length in [0, 1, 127, 128, 255, 256, 70_000] {
            let content = vec![7; length];
            let der = element(BYTES, &[&content]);
            let mut reader = Reader::new(&der);
            let read = reader.one(BYTES).expect("an element");
            assert_eq!((read.content, read.whole), (&content[..], &der[..]), "{length}");
            assert!(reader.is_done());
        }
    }

    #[test]
    fn a_length_has_one_encoding() {
        for der in [
            &[4, 0x81, 1, 7][..],
            &[4, 0x82, 0, 1, 7],
            &[4, 0x80, 0, 0],
            &[4, 2, 7],
        ] {
            assert_eq!(Reader::new(der).any(), None, "{der:?}");
        }
    }

    #[test]
    fn nothing_may_follow_the_whole() {
        assert!(whole(&[0x30, 0], SEQUENCE).is_some());
        assert!(whole(&[0x30, 0, 0], SEQUENCE).is_none());
        assert!(whole(&[0x31, 0], SEQUENCE).is_none());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut reader = Reader::new(&bytes);
            while reader.any().is_some() {}
        }
    }
}

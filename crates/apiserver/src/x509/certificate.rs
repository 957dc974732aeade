//! Certificates: whom one names, what an authority's says about the authority, and new ones of clients.

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};

use super::der::{
    BITS, BOOLEAN, BYTES, Element, FIELD_0, FIELD_3, INTEGER, OID, Reader, SEQUENCE, SET, SHORT_TIME, TIME,
    UTF8, element, whole,
};
use crate::random;

/// Attributes of a name, as their OIDs are encoded.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];

/// Extensions.
const KEY_ID: &[u8] = &[0x55, 0x1d, 14];
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 15];
pub(super) const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 17];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 19];
const AUTHORITY_KEY: &[u8] = &[0x55, 0x1d, 35];
const EXTENDED_USAGE: &[u8] = &[0x55, 0x1d, 37];

/// The purpose `clientAuth`.
const CLIENT_AUTH: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02];
/// The algorithm `ecdsa-with-SHA256`.
const ECDSA_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];

/// The tag of the identifier of a key in the extension about the authority's.
const KEY_ID_FIELD: u8 = 0x80;

/// The words of a name that count for a cluster.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    /// The common name, the last one; empty when there is none.
    pub(crate) common: String,
    /// The organizations, in order.
    pub(crate) organizations: Vec<String>,
}

/// The words of a name, given as its whole element; `None` for what is no name, or is not written in UTF-8.
pub(crate) fn names(name: &[u8]) -> Option<Names> {
    let mut names = Names::default();
    let mut sets = whole(name, SEQUENCE)?;
    while !sets.is_done() {
        let mut set = sets.within(SET)?;
        while !set.is_done() {
            let mut attribute = set.within(SEQUENCE)?;
            let oid = attribute.one(OID)?.content;
            let text = std::str::from_utf8(attribute.any()?.content).ok()?.to_owned();
            match oid {
                COMMON_NAME => names.common = text,
                ORGANIZATION => names.organizations.push(text),
                _ => {}
            }
        }
    }
    Some(names)
}

/// The element of a name of these words.
pub(crate) fn name(names: &Names) -> Vec<u8> {
    let common = std::iter::once((COMMON_NAME, &names.common));
    let organizations = names.organizations.iter().map(|one| (ORGANIZATION, one));
    let sets: Vec<Vec<u8>> = organizations
        .chain(common)
        .map(|(oid, text)| {
            let attribute = [element(OID, &[oid]), element(UTF8, &[text.as_bytes()])].concat();
            element(SET, &[&element(SEQUENCE, &[&attribute])])
        })
        .collect();
    element(SEQUENCE, &[&sets.concat()])
}

/// The fields of a certificate that are read here.
struct Fields<'a> {
    validity: Reader<'a>,
    subject: Element<'a>,
    /// Those behind the subject.
    rest: Reader<'a>,
}

fn fields(der: &[u8]) -> Option<Fields<'_>> {
    let mut content = Reader::new(der).within(SEQUENCE)?.within(SEQUENCE)?;
    content.one(FIELD_0);
    content.one(INTEGER)?;
    content.one(SEQUENCE)?;
    content.one(SEQUENCE)?;
    Some(Fields {
        validity: content.within(SEQUENCE)?,
        subject: content.one(SEQUENCE)?,
        rest: content,
    })
}

/// The words of the subject of a certificate whose signature was checked before.
pub(crate) fn subject(der: &[u8]) -> Option<Names> {
    names(fields(der)?.subject.whole)
}

/// The facts about an authority that are in its certificate.
#[derive(Debug)]
pub(crate) struct Root {
    /// Its name, as encoded.
    subject: Vec<u8>,
    /// The identifier of its key.
    key: Option<Vec<u8>>,
    /// The end of its certificate.
    pub(crate) until: Timestamp,
}

impl Root {
    /// Those of an authority's certificate.
    pub(crate) fn of(der: &[u8]) -> Option<Self> {
        let Fields {
            mut validity,
            subject,
            mut rest,
        } = fields(der)?;
        validity.any()?;
        let until = read_time(validity.any()?)?;
        let mut extensions = None;
        while let Some(field) = rest.any() {
            if field.tag == FIELD_3 {
                extensions = whole(field.content, SEQUENCE);
            }
        }
        let id = extensions.and_then(|all| extension(all, KEY_ID));
        let id = id.and_then(|value| Reader::new(value).one(BYTES));
        Some(Self {
            subject: subject.whole.to_vec(),
            key: id.map(|id| id.content.to_vec()),
            until,
        })
    }
}

/// The value of one of these extensions.
pub(super) fn extension<'a>(mut extensions: Reader<'a>, wanted: &[u8]) -> Option<&'a [u8]> {
    while let Some(mut one) = extensions.within(SEQUENCE) {
        let oid = one.one(OID)?.content;
        one.one(BOOLEAN);
        let value = one.one(BYTES)?.content;
        if oid == wanted {
            return Some(value);
        }
    }
    None
}

/// A certificate of a client that is to be signed.
#[derive(Debug)]
pub(crate) struct Leaf<'a> {
    /// The name, as encoded.
    pub(crate) subject: &'a [u8],
    /// The public key with its algorithm, as encoded.
    pub(crate) public_key: &'a [u8],
    /// Further names: the value of the extension, as encoded.
    pub(crate) alternative_names: Option<&'a [u8]>,
    /// True if the key signs.
    pub(crate) signs: bool,
    /// True if keys are encrypted with it.
    pub(crate) enciphers: bool,
    /// The beginning.
    pub(crate) since: Timestamp,
    /// The end.
    pub(crate) until: Timestamp,
}

/// The certificate, signed by `sign`, which signs as ECDSA with SHA-256 does.
pub(crate) fn signed<E>(
    leaf: &Leaf<'_>,
    root: &Root,
    sign: impl FnOnce(&[u8]) -> Result<Vec<u8>, E>,
) -> Result<Vec<u8>, E> {
    let algorithm = element(SEQUENCE, &[&element(OID, &[ECDSA_SHA256])]);
    let content = element(
        SEQUENCE,
        &[
            // Version 3.
            &element(FIELD_0, &[&element(INTEGER, &[&[2]])]),
            &element(INTEGER, &[&serial()]),
            &algorithm,
            &root.subject,
            &element(SEQUENCE, &[&time(leaf.since), &time(leaf.until)]),
            leaf.subject,
            leaf.public_key,
            &element(FIELD_3, &[&element(SEQUENCE, &[&extensions(leaf, root)])]),
        ],
    );
    let signature = sign(&content)?;
    let signature = element(BITS, &[&[0], &signature]);
    Ok(element(SEQUENCE, &[&content, &algorithm, &signature]))
}

fn extensions(leaf: &Leaf<'_>, root: &Root) -> Vec<u8> {
    let critical = element(BOOLEAN, &[&[0xff]]);
    let one = |oid: &[u8], is_critical: bool, value: &[u8]| {
        let critical: &[u8] = if is_critical { &critical } else { &[] };
        element(
            SEQUENCE,
            &[&element(OID, &[oid]), critical, &element(BYTES, &[value])],
        )
    };
    let mut all = Vec::new();
    // The bits of digitalSignature and keyEncipherment, behind the number of bits that are not used.
    let usage = match (leaf.signs, leaf.enciphers) {
        (true, true) => Some([5, 0xa0]),
        (true, false) => Some([7, 0x80]),
        (false, true) => Some([5, 0x20]),
        (false, false) => None,
    };
    if let Some(usage) = usage {
        all.push(one(KEY_USAGE, true, &element(BITS, &[&usage])));
    }
    let purposes = element(SEQUENCE, &[&element(OID, &[CLIENT_AUTH])]);
    all.push(one(EXTENDED_USAGE, false, &purposes));
    // No authority, which is the default.
    all.push(one(BASIC_CONSTRAINTS, true, &element(SEQUENCE, &[])));
    if let Some(key) = &root.key {
        let value = element(SEQUENCE, &[&element(KEY_ID_FIELD, &[key])]);
        all.push(one(AUTHORITY_KEY, false, &value));
    }
    if let Some(names) = leaf.alternative_names {
        let names_nobody = whole(leaf.subject, SEQUENCE).is_none_or(Reader::is_done);
        all.push(one(ALTERNATIVE_NAMES, names_nobody, names));
    }
    all.concat()
}

/// A serial number: positive and never shorter than its bytes.
fn serial() -> [u8; 16] {
    let mut bytes = random::random();
    bytes[0] = bytes[0] & 0x7f | 0x40;
    bytes
}

/// A time; up to 2049 its year has two digits.
fn time(at: Timestamp) -> Vec<u8> {
    let year = at.to_zoned(TimeZone::UTC).year();
    if (1950..2050).contains(&year) {
        element(SHORT_TIME, &[at.strftime("%y%m%d%H%M%SZ").to_string().as_bytes()])
    } else {
        element(TIME, &[at.strftime("%Y%m%d%H%M%SZ").to_string().as_bytes()])
    }
}

fn read_time(time: Element<'_>) -> Option<Timestamp> {
    let text = std::str::from_utf8(time.content).ok()?;
    let text = match (time.tag, text.get(..2)?) {
        (TIME, _) => text.to_owned(),
        (SHORT_TIME, year) if year < "50" => format!("20{text}"),
        (SHORT_TIME, _) => format!("19{text}"),
        _ => return None,
    };
    let at = DateTime::strptime("%Y%m%d%H%M%SZ", text).ok()?;
    at.to_zoned(TimeZone::UTC).ok().map(|at| at.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_were_written() {
        let written = Names {
            common: "jane".to_owned(),
            organizations: vec!["devs".to_owned(), "ops".to_owned()],
        };
        assert_eq!(names(&name(&written)), Some(written));
        assert_eq!(names(&[0x30, 0x00]), Some(Names::default()));
        assert_eq!(names(&[0x30, 0x01, 0x00]), None);
    }

    #[test]
    fn times_are_written_in_two_forms_and_read_in_both() {
        for (text, tag) in [
            ("1999-12-31T23:59:59Z", SHORT_TIME),
            ("2026-11-27T01:02:03Z", SHORT_TIME),
            ("2049-12-31T23:59:59Z", SHORT_TIME),
            ("2050-01-01T00:00:00Z", TIME),
        ] {
            let at: Timestamp = text.parse().expect("a time");
            let der = time(at);
            let element = Reader::new(&der).any().expect("an element");
            assert_eq!(element.tag, tag, "{text}");
            assert_eq!(read_time(element), Some(at), "{text}");
        }
    }

    #[test]
    fn a_serial_number_is_positive() {
        for _ in 0..100 {
            assert!((0x40..0x80).contains(&serial()[0]));
        }
    }
}

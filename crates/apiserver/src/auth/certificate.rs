//! The user of a client certificate: common name and organizations of its subject.

use super::User;

/// OIDs of the two attributes, as they are encoded.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OID: u8 = 0x06;
const EXPLICIT_0: u8 = 0xa0;

/// The user of an X.509 certificate (DER) whose signature was checked before; `None` when it names none.
#[must_use]
pub(crate) fn user(der: &[u8]) -> Option<User> {
    let (certificate, _) = element(der, SEQUENCE)?;
    let (mut rest, _) = element(certificate, SEQUENCE)?;
    if rest.first() == Some(&EXPLICIT_0) {
        rest = next(rest)?.2;
    }
    // Serial number, signature algorithm, issuer, validity.
    for _ in 0..4 {
        rest = next(rest)?.2;
    }
    let (mut subject, _) = element(rest, SEQUENCE)?;
    let mut user = User::default();
    while !subject.is_empty() {
        let (mut set, after) = element(subject, SET)?;
        subject = after;
        while !set.is_empty() {
            let (attribute, after) = element(set, SEQUENCE)?;
            set = after;
            let (oid, value) = element(attribute, OID)?;
            let text = std::str::from_utf8(next(value)?.1).ok()?.to_owned();
            match oid {
                COMMON_NAME => user.name = text,
                ORGANIZATION => user.groups.push(text),
                _ => {}
            }
        }
    }
    (!user.name.is_empty()).then_some(user)
}

/// The content of an element of this tag, and what follows it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, content, rest) = next(der)?;
    (found == tag).then_some((content, rest))
}

/// Tag, content and rest.
fn next(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let count = usize::from(first & 0x7f);
        let bytes = rest.get(..count).filter(|_| (1..=3).contains(&count))?;
        let length = bytes.iter().fold(0, |sum, &byte| sum << 8 | usize::from(byte));
        (length, &rest[count..])
    };
    Some((tag, rest.get(..length)?, rest.get(length..)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rcgen::{CertificateParams, DnType, KeyPair, PKCS_ECDSA_P256_SHA256};

    #[test]
    fn common_name_and_organizations_are_read() {
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.distinguished_name.push(DnType::CommonName, "jane");
        params.distinguished_name.push(DnType::OrganizationName, "devs");
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        assert_eq!(user(certificate.der()), Some(User::new("jane", &["devs"])));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = user(&bytes);
        }
    }
}

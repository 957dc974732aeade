//! The user of a client certificate: common name and organizations of its subject.

use super::User;
use crate::x509;

/// The user of an X.509 certificate (DER) whose signature was checked before; `None` when it names none.
#[must_use]
pub(crate) fn user(der: &[u8]) -> Option<User> {
    let names = x509::certificate::subject(der)?;
    (!names.common.is_empty()).then(|| User {
        name: names.common,
        groups: names.organizations,
        ..User::default()
    })
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

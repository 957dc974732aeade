//! The creation of certificates and authorities.

use jiff::{Timestamp, tz::TimeZone};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, date_time_ymd,
};

use super::{AUTHORITY_DAYS, Identity, LEAF_DAYS, Terms, days, key};

impl Identity {
    /// Creates a certificate, signed by the authority of `known`, or by a new authority, which precedes `before` in the bundle.
    /// `before` stays trusted until the given time, or as long as the new authority.
    pub(super) fn made(
        known: Option<&Self>,
        (before, until): (&str, Option<Timestamp>),
        names: &[String],
        now: Timestamp,
    ) -> Result<Self, String> {
        let failed = |error: rcgen::Error| error.to_string();
        let (authority_key, authority, authority_not_after, handover_until) = match known {
            Some(known) => {
                let key = KeyPair::from_pem(&known.text(key::AUTHORITY_KEY)).map_err(failed)?;
                let terms = &known.terms;
                let bundle = known.text(key::AUTHORITY);
                (key, bundle, terms.authority_not_after, terms.handover_until)
            }
            None => {
                let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
                let (params, end) = authority_params(now).map_err(failed)?;
                let own = params.self_signed(&key).map_err(failed)?.pem();
                (key, format!("{own}{before}"), end, until)
            }
        };
        let own = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
        let mut leaf = CertificateParams::new(names).map_err(failed)?;
        let not_after = dated(&mut leaf, now, LEAF_DAYS.0);
        leaf.distinguished_name = DistinguishedName::new();
        leaf.distinguished_name
            .push(DnType::CommonName, "entourage-webhook");
        leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        leaf.use_authority_key_identifier_extension = true;
        let exported = authority_key.serialize_pem();
        let (params, _) = authority_params(now).map_err(failed)?;
        let issuer = Issuer::new(params, authority_key);
        let certificate = leaf.signed_by(&own, &issuer).map_err(failed)?.pem();
        let terms = Terms {
            names: names.to_vec(),
            not_after,
            authority_not_after,
            handover_until,
        };
        let terms = serde_json::to_vec(&terms).map_err(|error| error.to_string())?;
        let parts = [
            (key::CERTIFICATE, certificate.into_bytes()),
            (key::KEY, own.serialize_pem().into_bytes()),
            (key::AUTHORITY, authority.into_bytes()),
            (key::AUTHORITY_KEY, exported.into_bytes()),
            (key::TERMS, terms),
        ];
        Self::of(parts.map(|(name, part)| (name.to_owned(), part)).into())
    }
}

/// The parameters of an authority's certificate beside its key, and its expiry.
fn authority_params(now: Timestamp) -> Result<(CertificateParams, Timestamp), rcgen::Error> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name = DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::CommonName, "entourage-webhook-ca");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    let until = dated(&mut params, now, AUTHORITY_DAYS.0);
    Ok((params, until))
}

/// Makes a certificate valid from yesterday, since clocks may differ, for the given number of days. Returns its expiry.
fn dated(params: &mut CertificateParams, now: Timestamp, lasting: i64) -> Timestamp {
    let at = |time: Timestamp| {
        let date = time.to_zoned(TimeZone::UTC).date();
        let (month, day) = (date.month().unsigned_abs(), date.day().unsigned_abs());
        date_time_ymd(date.year().into(), month, day)
    };
    let end = now + days(lasting);
    params.not_before = at(now - days(1));
    params.not_after = at(end);
    // The expiry is rounded down to midnight.
    Timestamp::from_second(end.as_second() - end.as_second().rem_euclid(86_400)).unwrap_or(end)
}

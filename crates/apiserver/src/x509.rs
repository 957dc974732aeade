//! X.509 as far as a cluster needs it: requests for certificates, and the certificates of clients. Names, keys and extensions are
//! passed on as they are encoded, so that nothing of them is lost.

use base64::{Engine as _, prelude::BASE64_STANDARD};

pub(crate) mod certificate;
pub(crate) mod der;
pub(crate) mod request;

/// The bytes in the frame of PEM.
pub(crate) fn pem(label: &str, der: &[u8]) -> String {
    const WIDTH: usize = 64;
    let text = BASE64_STANDARD.encode(der);
    let mut lines = vec![format!("-----BEGIN {label}-----")];
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(WIDTH.min(rest.len()));
        lines.push(line.to_owned());
        rest = after;
    }
    lines.push(format!("-----END {label}-----\n"));
    lines.join("\n")
}

/// The label of the first block of PEM.
pub(crate) fn first_label(pem: &[u8]) -> Option<&str> {
    pem.split(|byte| *byte == b'\n').find_map(|line| {
        let line = std::str::from_utf8(line).ok()?.trim_end();
        line.strip_prefix("-----BEGIN ")?.strip_suffix("-----")
    })
}

//! Random bytes from the operating system, and UIDs made of them.

use ring::rand::{SecureRandom as _, SystemRandom};

/// A fresh UID (UUID version 4).
#[must_use]
pub(crate) fn new_uid() -> String {
    let bits = u128::from_be_bytes(random());
    let bits = bits & !(0xf << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{bits:032x}");
    format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}

/// Sixteen random bytes of the operating system, which cannot be guessed.
#[must_use]
pub fn random() -> [u8; 16] {
    let mut bytes = [0; 16];
    SystemRandom::new()
        .fill(&mut bytes)
        .expect("an operating system has randomness");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_bytes_differ() {
        let all: std::collections::BTreeSet<[u8; 16]> = (0..1000).map(|_| random()).collect();
        assert_eq!(all.len(), 1000);
    }
}

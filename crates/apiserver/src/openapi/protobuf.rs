//! The part of protocol buffers that is written here: length-delimited fields, varints.

use crate::status::Status;

/// The media type of Kubernetes' own protobuf.
pub(crate) const MEDIA: &str = "application/vnd.kubernetes.protobuf";

/// True if an Accept header names nothing but that media type.
pub(crate) fn only(accept: &str) -> bool {
    accept
        .split(',')
        .all(|part| part.split(';').next().unwrap_or_default().trim() == MEDIA)
}

/// A message under construction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    /// The bytes.
    #[must_use]
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            // The low seven bits.
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// A string or bytes field.
    pub(crate) fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
    }

    /// A string field that is left out when empty.
    pub(crate) fn text(&mut self, field: u32, text: &str) {
        if !text.is_empty() {
            self.bytes(field, text.as_bytes());
        }
    }

    /// A message field.
    pub(crate) fn message(&mut self, field: u32, message: &Self) {
        self.bytes(field, &message.0);
    }

    /// A whole number or boolean field.
    pub(crate) fn number(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field) << 3);
        self.varint(value);
    }

    /// A double field.
    pub(crate) fn double(&mut self, field: u32, value: f64) {
        self.varint(u64::from(field) << 3 | 1);
        self.0.extend(value.to_le_bytes());
    }
}

/// A Status in the envelope of Kubernetes' protobuf.
pub(crate) fn status(status: &Status) -> Vec<u8> {
    let mut metadata = Message::default();
    for field in 1..=3 {
        metadata.bytes(field, b"");
    }
    let mut body = Message::default();
    body.message(1, &metadata);
    body.bytes(2, b"Failure");
    body.bytes(3, status.message.as_bytes());
    body.bytes(4, status.reason.as_bytes());
    body.number(6, u64::from(status.code));
    let mut kind = Message::default();
    kind.bytes(1, b"v1");
    kind.bytes(2, b"Status");
    let mut envelope = Message::default();
    envelope.message(1, &kind);
    envelope.message(2, &body);
    envelope.bytes(3, b"");
    envelope.bytes(4, b"");
    let mut text = b"k8s\0".to_vec();
    text.extend(envelope.into_bytes());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_encoded_as_protocol_buffers_are() {
        let mut message = Message::default();
        message.number(1, 150);
        message.text(2, "testing");
        message.text(3, "");
        assert_eq!(
            message.into_bytes(),
            [&[0x08, 0x96, 0x01, 0x12, 0x07][..], b"testing"].concat()
        );
    }
}

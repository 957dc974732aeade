//! The messages of an estimator, in protocol buffers: the requests and responses of `MaxAvailableReplicas` and
//! `MaxAvailableComponentSets`.
//!
//! Source: Karmada's `pkg/estimator/pb/estimator.proto`, and the messages of Kubernetes that it uses (`NodeSelector`, `Toleration`,
//! `Quantity`). Each function names the message that it writes; the numbers are those of its fields.
//!
//! Resources, node affinity and tolerations are written twice: as the messages that Karmada reads up to 1.17, and as the bytes of the
//! same messages, which 1.18 prefers and 1.19 reads alone. Each version skips the fields that it does not know.

use bytes::{BufMut as _, Bytes, BytesMut};
use entourage_api::work::{
    Component, ComponentReplicaRequirements, NodeClaim, ReplicaRequirements, Resources,
};
use entourage_core::plan::ComponentSet;
use k8s_openapi::api::core::v1::{NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Toleration};

/// The wire types that occur.
const VARINT: u64 = 0;
const EIGHT_BYTES: u64 = 1;
const LENGTH: u64 = 2;
const FOUR_BYTES: u64 = 5;

/// The size of the prefix of a message in gRPC: whether it is compressed, and its length.
const PREFIX: usize = 5;

/// `MaxAvailableReplicasRequest`, with the prefix of gRPC.
pub(super) fn request(cluster: &str, requirements: Option<&ReplicaRequirements>) -> Bytes {
    let mut message = Message::default();
    message.text(1, cluster);
    message.nested(2, &requirements.map(replica_requirements).unwrap_or_default());
    framed(&message)
}

/// `MaxAvailableComponentSetsRequest`, with the prefix of gRPC. Components without replicas need nothing.
pub(super) fn request_of_sets(cluster: &str, set: &ComponentSet) -> Bytes {
    let mut message = Message::default();
    message.text(1, cluster);
    for each in set.components.iter().filter(|each| each.replicas > 0) {
        message.nested(2, &component(each));
    }
    message.text(3, &set.namespace);
    framed(&message)
}

fn framed(message: &Message) -> Bytes {
    let mut framed = BytesMut::with_capacity(PREFIX + message.0.len());
    framed.put_u8(0);
    framed.put_u32(u32::try_from(message.0.len()).unwrap_or(u32::MAX));
    framed.put_slice(&message.0);
    framed.freeze()
}

/// The field `maxReplicas` of a `MaxAvailableReplicasResponse`, or `maxSets` of a `MaxAvailableComponentSetsResponse`, with the prefix of
/// gRPC.
///
/// # Errors
/// The reason why it is no such response.
pub(super) fn response(framed: &[u8]) -> Result<i32, &'static str> {
    let Some((prefix, message)) = framed.split_at_checked(PREFIX) else {
        return Err("it is empty");
    };
    if prefix[0] != 0 {
        return Err("it is compressed, which was not asked for");
    }
    let length = prefix[1..]
        .iter()
        .fold(0_usize, |sum, byte| (sum << 8) | usize::from(*byte));
    if message.len() != length {
        return Err("its length is not as announced");
    }
    let wrong = "it is no message of an estimator";
    let mut rest = message;
    let mut replicas = 0;
    while !rest.is_empty() {
        let tag = varint(&mut rest).ok_or(wrong)?;
        match (tag >> 3, tag & 7) {
            // An int32 is sent as the int64 of its value.
            (1, VARINT) => replicas = varint(&mut rest).ok_or(wrong)?.cast_signed(),
            (0 | 1, _) => return Err(wrong),
            (_, kind) => skip(&mut rest, kind).ok_or(wrong)?,
        }
    }
    match i32::try_from(replicas) {
        Ok(replicas) if replicas >= 0 => Ok(replicas),
        _ => Err("it has a number of replicas that cannot be"),
    }
}

fn replica_requirements(requirements: &ReplicaRequirements) -> Message {
    let mut message = Message::default();
    if let Some(claim) = &requirements.node_claim {
        message.nested(1, &node_claim(claim));
    }
    message.append(&resources(2, &requirements.resource_request));
    message.text(3, &requirements.namespace);
    message.text(4, &requirements.priority_class_name);
    message.append(&resources(5, &requirements.resource_request));
    message
}

fn component(component: &Component) -> Message {
    let mut message = Message::default();
    message.text(1, &component.name);
    let requirements = component.replica_requirements.as_ref();
    message.nested(
        2,
        &requirements
            .map(component_replica_requirements)
            .unwrap_or_default(),
    );
    message.tag(3, VARINT);
    message.varint(component.replicas.max(0).unsigned_abs().into());
    message
}

fn component_replica_requirements(requirements: &ComponentReplicaRequirements) -> Message {
    let mut message = Message::default();
    if let Some(claim) = &requirements.node_claim {
        message.nested(1, &node_claim(claim));
    }
    message.append(&resources(2, &requirements.resource_request));
    message.text(3, &requirements.priority_class_name);
    message.append(&resources(4, &requirements.resource_request));
    message
}

/// The entries of a field with quantities.
fn resources(field: u64, all: &Resources) -> Message {
    let mut message = Message::default();
    for (name, amount) in all {
        let mut quantity = Message::default();
        quantity.text(1, &amount.0);
        message.nested(field, &entry(name, &quantity));
    }
    message
}

fn node_claim(claim: &NodeClaim) -> Message {
    let (mut message, mut in_bytes) = (Message::default(), Message::default());
    if let Some(affinity) = &claim.hard_node_affinity {
        let affinity = node_selector(affinity);
        message.nested(1, &affinity);
        in_bytes.nested(4, &affinity);
    }
    for (key, value) in &claim.node_selector {
        let mut entry = Message::default();
        entry.text(1, key);
        entry.text(2, value);
        message.nested(2, &entry);
    }
    for each in &claim.tolerations {
        let toleration = toleration(each);
        message.nested(3, &toleration);
        in_bytes.nested(5, &toleration);
    }
    message.append(&in_bytes);
    message
}

fn node_selector(selector: &NodeSelector) -> Message {
    let mut message = Message::default();
    for term in &selector.node_selector_terms {
        message.nested(1, &node_selector_term(term));
    }
    message
}

fn node_selector_term(term: &NodeSelectorTerm) -> Message {
    let mut message = Message::default();
    for (field, all) in [(1, &term.match_expressions), (2, &term.match_fields)] {
        for each in all.iter().flatten() {
            message.nested(field, &node_selector_requirement(each));
        }
    }
    message
}

fn node_selector_requirement(requirement: &NodeSelectorRequirement) -> Message {
    let mut message = Message::default();
    message.text(1, &requirement.key);
    message.text(2, &requirement.operator);
    for value in requirement.values.iter().flatten() {
        message.bytes(3, value.as_bytes());
    }
    message
}

fn toleration(toleration: &Toleration) -> Message {
    let mut message = Message::default();
    let texts = [
        &toleration.key,
        &toleration.operator,
        &toleration.value,
        &toleration.effect,
    ];
    for (field, text) in (1..).zip(texts) {
        message.text(field, text.as_deref().unwrap_or_default());
    }
    if let Some(seconds) = toleration.toleration_seconds {
        message.tag(5, VARINT);
        message.varint(seconds.cast_unsigned());
    }
    message
}

/// An entry of a map from names to messages.
fn entry(name: &str, value: &Message) -> Message {
    let mut message = Message::default();
    message.text(1, name);
    message.nested(2, value);
    message
}

/// A message as it is written.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    /// A string; an empty one is left out, and read as empty.
    fn text(&mut self, field: u64, text: &str) {
        if !text.is_empty() {
            self.bytes(field, text.as_bytes());
        }
    }

    fn nested(&mut self, field: u64, message: &Self) {
        self.bytes(field, &message.0);
    }

    /// The fields of another part of the same message.
    fn append(&mut self, part: &Self) {
        self.0.extend_from_slice(&part.0);
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.tag(field, LENGTH);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn tag(&mut self, field: u64, kind: u64) {
        self.varint((field << 3) | kind);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

/// Reads a number, and leaves what follows.
fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for place in 0..10 {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Leaves out the value of a field.
fn skip(rest: &mut &[u8], kind: u64) -> Option<()> {
    let length = match kind {
        VARINT => {
            varint(rest)?;
            0
        }
        EIGHT_BYTES => 8,
        LENGTH => usize::try_from(varint(rest)?).ok()?,
        FOUR_BYTES => 4,
        _ => return None,
    };
    *rest = rest.get(length..)?;
    Some(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The bytes of hexadecimal digits and of texts between quotes.
    fn bytes(written: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in written.split_whitespace() {
            match word.strip_prefix('"') {
                Some(text) => bytes.extend_from_slice(text.strip_suffix('"').unwrap().as_bytes()),
                None => bytes.push(u8::from_str_radix(word, 16).unwrap()),
            }
        }
        bytes
    }

    /// Each kind of requirement.
    fn requirements() -> ReplicaRequirements {
        serde_json::from_value(json!({
            "nodeClaim": {
                "hardNodeAffinity": {"nodeSelectorTerms": [{
                    "matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", ""]}],
                    "matchFields": [{"key": "metadata.name", "operator": "Exists"}],
                }]},
                "nodeSelector": {"disk": "ssd"},
                "tolerations": [
                    {"key": "gpu", "operator": "Equal", "value": "x", "effect": "NoExecute", "tolerationSeconds": 300},
                    {"operator": "Exists", "tolerationSeconds": -1},
                ],
            },
            "resourceRequest": {"cpu": "500m", "memory": "1Gi"},
            "namespace": "shop",
            "priorityClassName": "high",
        }))
        .unwrap()
    }

    const AFFINITY: &str = "0a 2a 0a 0f 0a 04 \"zone\" 12 02 \"In\" 1a 01 \"a\" 1a 00 12 17 0a 0d \"metadata.name\" 12 06 \"Exists\"";
    const GPU: &str = "0a 03 \"gpu\" 12 05 \"Equal\" 1a 01 \"x\" 22 09 \"NoExecute\" 28 ac 02";
    const ANY: &str = "12 06 \"Exists\" 28 ff ff ff ff ff ff ff ff ff 01";
    const CPU: &str = "0a 03 \"cpu\" 12 06 0a 04 \"500m\"";
    const MEMORY: &str = "0a 06 \"memory\" 12 05 0a 03 \"1Gi\"";

    /// Written from the definitions of 1.18, which have both forms: a tag is the number of the field times eight, and 2 for what has a
    /// length.
    #[test]
    fn a_request_has_the_bytes_of_its_definition() {
        let want = [
            // Not compressed, 295 bytes.
            "00 00 00 01 27",
            "0a 02 \"m1\"",
            "12 a0 02",
            // The claim: affinity, selector, tolerations, and the first and the last in bytes.
            "0a d1 01",
            "0a 2c",
            AFFINITY,
            "12 0b 0a 04 \"disk\" 12 03 \"ssd\"",
            "1a 1d",
            GPU,
            "1a 13",
            ANY,
            "22 2c",
            AFFINITY,
            "2a 1d",
            GPU,
            "2a 13",
            ANY,
            // The resources, the namespace and the class, and the resources in bytes.
            "12 0d",
            CPU,
            "12 0f",
            MEMORY,
            "1a 04 \"shop\"",
            "22 04 \"high\"",
            "2a 0d",
            CPU,
            "2a 0f",
            MEMORY,
        ];
        let want = bytes(&want.join(" "));
        assert_eq!(request("m1", Some(&requirements())), want);
        assert_eq!(request("m1", None), bytes("00 00 00 00 06 0a 02 \"m1\" 12 00"));
    }

    #[test]
    fn a_request_of_sets_has_the_bytes_of_its_definition() {
        let components: Vec<Component> = serde_json::from_value(json!([
            {"name": "head", "replicas": 1, "replicaRequirements": {
                "resourceRequest": {"cpu": "1"}, "priorityClassName": "high",
            }},
            {"name": "idle", "replicas": 0},
            {"name": "worker", "replicas": 300},
        ]))
        .unwrap();
        let set = ComponentSet {
            components: components.into(),
            namespace: "shop".into(),
        };
        let want = [
            // Not compressed, 67 bytes.
            "00 00 00 00 43",
            "0a 02 \"m1\"",
            // The head: its name, its requirements with the resources in both forms, and one of it.
            "12 28 0a 04 \"head\" 12 1e",
            "12 0a 0a 03 \"cpu\" 12 03 0a 01 \"1\"",
            "1a 04 \"high\"",
            "22 0a 0a 03 \"cpu\" 12 03 0a 01 \"1\"",
            "18 01",
            "12 0d 0a 06 \"worker\" 12 00 18 ac 02",
            "1a 04 \"shop\"",
        ];
        assert_eq!(request_of_sets("m1", &set), bytes(&want.join(" ")));
    }

    /// The values of the fields with these numbers and a length, in their order; others are skipped, as by a reader that does not know
    /// them.
    fn fields(mut message: &[u8], known: &[u64]) -> Vec<(u64, Vec<u8>)> {
        let mut found = Vec::new();
        while !message.is_empty() {
            let tag = varint(&mut message).unwrap();
            if tag & 7 != LENGTH || !known.contains(&(tag >> 3)) {
                skip(&mut message, tag & 7).unwrap();
                continue;
            }
            let length = usize::try_from(varint(&mut message).unwrap()).unwrap();
            let (value, rest) = message.split_at(length);
            found.push((tag >> 3, value.to_vec()));
            message = rest;
        }
        found
    }

    /// The requirements as an estimator reads them: by the numbers of the fields of affinity, tolerations and resources that it knows.
    #[test]
    fn an_estimator_that_knows_one_form_alone_reads_every_requirement() {
        for (version, [affinity, tolerations, resources]) in [("1.17", [1, 3, 2]), ("1.19", [4, 5, 5])] {
            let framed = request("m1", Some(&requirements()));
            let outer = fields(&framed[PREFIX..], &[1, 2]);
            assert_eq!(outer[0], (1, b"m1".to_vec()), "{version}");
            let read = fields(&outer[1].1, &[1, resources, 3, 4]);
            let of = |all: &[(u64, Vec<u8>)], number: u64| -> Vec<Vec<u8>> {
                let values = all.iter().filter(|(each, _)| *each == number);
                values.map(|(_, value)| value.clone()).collect()
            };
            assert_eq!(of(&read, resources), [bytes(CPU), bytes(MEMORY)], "{version}");
            assert_eq!(of(&read, 3), [b"shop".to_vec()], "{version}");
            assert_eq!(of(&read, 4), [b"high".to_vec()], "{version}");
            let claim = fields(&of(&read, 1)[0], &[affinity, 2, tolerations]);
            assert_eq!(of(&claim, affinity), [bytes(AFFINITY)], "{version}");
            assert_eq!(of(&claim, tolerations), [bytes(GPU), bytes(ANY)], "{version}");
        }
    }

    #[test]
    fn a_response_is_read_whatever_follows_its_number_and_nothing_else_is_one() {
        let no_message = Err("it is no message of an estimator");
        for (written, want) in [
            ("00 00 00 00 02 08 07", Ok(7)),
            ("00 00 00 00 00", Ok(0)),
            ("00 00 00 00 06 08 ff ff ff ff 07", Ok(i32::MAX)),
            // Fields of a later version: a text, eight bytes, four bytes, a number.
            (
                "00 00 00 00 13 12 01 \"x\" 19 01 02 03 04 05 06 07 08 25 01 02 03 04 08 03",
                Ok(3),
            ),
            ("", Err("it is empty")),
            ("00 00 00 00", Err("it is empty")),
            (
                "01 00 00 00 02 08 07",
                Err("it is compressed, which was not asked for"),
            ),
            ("00 00 00 00 03 08 07", Err("its length is not as announced")),
            ("00 00 00 00 01 08 07", Err("its length is not as announced")),
            (
                "00 00 00 00 0b 08 ff ff ff ff ff ff ff ff ff 01",
                Err("it has a number of replicas that cannot be"),
            ),
            (
                "00 00 00 00 06 08 80 80 80 80 10",
                Err("it has a number of replicas that cannot be"),
            ),
            ("00 00 00 00 02 0a 00", no_message),
            ("00 00 00 00 02 08 80", no_message),
            ("00 00 00 00 02 12 05", no_message),
            ("00 00 00 00 02 13 00", no_message),
            ("00 00 00 00 0b ff ff ff ff ff ff ff ff ff ff ff", no_message),
        ] {
            assert_eq!(response(&bytes(written)), want, "{written}");
        }
    }
}

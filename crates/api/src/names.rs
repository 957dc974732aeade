//! Names that are computed: bindings, Works, execution namespaces, label keys and permanent ids.
//!
//! Clients find objects by these rules, so they are a wire contract. Source: Karmada reference 0.1.
//! Identity is never read back from such a name (architecture 4).

use sha2::{Digest, Sha256};

use crate::keys::label;

/// The prefix that [`execution_namespace`] adds to a cluster's name.
pub const EXECUTION_NAMESPACE_PREFIX: &str = "karmada-es-";

/// The group of the agents of clusters in Pull mode, as their client certificates name it.
pub const AGENTS: &str = "system:karmada:agents";

/// The prefix that [`agent_user`] adds to a cluster's name.
const AGENT_PREFIX: &str = "system:karmada:agent:";

/// The longest name of a cluster: its execution namespace has at most 63 characters.
pub const LONGEST_CLUSTER_NAME: usize = 48;

/// The alphabet of [`safe_encode`]: no vowels, no digits that look like letters.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// The name of the binding of an object: its name and kind in lower case, `:` replaced by `.`.
///
/// The API group is not part of it, so if two groups serve the same kind and name, the second binding needs another name
/// (architecture 6): see [`binding_name_of_group`].
pub fn binding_name(kind: &str, name: &str) -> String {
    format!("{}-{}", name.replace(':', "."), kind).to_lowercase()
}

/// The name of a binding when [`binding_name`] is already taken by the same kind and name of another group.
pub fn binding_name_of_group(group: &str, kind: &str, name: &str) -> String {
    format!(
        "{}-{}",
        binding_name(kind, name),
        safe_encode(fnv1a_32(group.as_bytes()))
    )
}

/// The names that the binding of an object may have, in the order in which they are tried: [`binding_name`],
/// [`binding_name_of_group`], and one with a hash of group, kind and name, for the third object of one name: `a:b:c`, `a.b:c`
/// and `A.b.c` have the same first two names.
pub fn binding_names(group: &str, kind: &str, name: &str) -> [String; 3] {
    let plain = binding_name(kind, name);
    let identity = fnv1a_32(format!("{group}/{kind}/{name}").as_bytes());
    let last = format!("{plain}-{}", safe_encode(identity));
    [plain, binding_name_of_group(group, kind, name), last]
}

/// The name of the Work of an object. `namespace` is empty for a cluster-scoped object. A `:` in the name
/// is replaced before anything is hashed.
pub fn work_name(namespace: &str, name: &str, kind: &str) -> String {
    let name = name.replace(':', ".").to_lowercase();
    let hashed = match namespace {
        "" => format!("{name}-{kind}"),
        _ => format!("{namespace}-{name}-{kind}"),
    };
    let hash = fnv1a_32(hashed.to_lowercase().as_bytes());
    format!("{name}-{}", safe_encode(hash))
}

/// The prefix that [`derived_service`] adds to a name.
pub const DERIVED_PREFIX: &str = "derived-";

/// The prefix of [`imported_slices`].
pub const IMPORTED_PREFIX: &str = "imported-";

/// The longest name of an object.
const LONGEST_NAME: usize = 253;

/// The name of the Service that stands for a ServiceImport.
pub fn derived_service(import: &str) -> String {
    format!("{DERIVED_PREFIX}{import}")
}

/// The names that the EndpointSlice of the hub for one of a member may have, in the order in which they are tried: Karmada's, and
/// one with a hash of both parts, because `a-b` with `c` and `a` with `b-c` have the same first name.
pub fn imported_slices(cluster: &str, slice: &str) -> [String; 2] {
    let plain = format!("{IMPORTED_PREFIX}{cluster}-{slice}");
    let hash = safe_encode(fnv1a_32(format!("{cluster}/{slice}").as_bytes()));
    let mut end = plain.len().min(LONGEST_NAME - 1 - hash.len());
    while !plain.is_char_boundary(end) {
        end -= 1;
    }
    let hashed = format!("{}-{hash}", plain[..end].trim_end_matches(['-', '.']));
    let first = if plain.len() > LONGEST_NAME {
        hashed.clone()
    } else {
        plain
    };
    [first, hashed]
}

/// The namespace on the hub that holds the Works of a cluster.
pub fn execution_namespace(cluster: &str) -> String {
    format!("{EXECUTION_NAMESPACE_PREFIX}{cluster}")
}

/// The cluster whose Works a namespace holds, or `None` if it is not an execution namespace.
pub fn cluster_of_execution_namespace(namespace: &str) -> Option<&str> {
    namespace
        .strip_prefix(EXECUTION_NAMESPACE_PREFIX)
        .filter(|cluster| !cluster.is_empty())
}

/// The user on the hub that is the agent of a cluster.
pub fn agent_user(cluster: &str) -> String {
    format!("{AGENT_PREFIX}{cluster}")
}

/// The cluster whose agent a user is, or `None` if no cluster can have that name: a DNS label of at most
/// [`LONGEST_CLUSTER_NAME`] characters.
pub fn cluster_of_agent(user: &str) -> Option<&str> {
    let cluster = user.strip_prefix(AGENT_PREFIX)?;
    let is_inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    let is_name = (1..=LONGEST_CLUSTER_NAME).contains(&cluster.len())
        && cluster.bytes().all(is_inner)
        && !cluster.starts_with('-')
        && !cluster.ends_with('-');
    is_name.then_some(cluster)
}

/// The label key on an attached binding that names one referrer, the independent binding
/// `namespace`/`name`. `namespace` is empty for a cluster-scoped binding.
pub fn depended_by_key(namespace: &str, name: &str) -> String {
    let hash = match namespace {
        "" => fnv1a_32(name.as_bytes()),
        _ => fnv1a_32(format!("{namespace}/{name}").as_bytes()),
    };
    format!("{}{}", label::DEPENDED_BY_PREFIX, safe_encode(hash))
}

/// The decimal digits of a hash in letters and digits that form no words.
pub fn safe_encode(hash: u32) -> String {
    hash.to_string()
        .bytes()
        .map(|digit| char::from(ALPHABET[usize::from(digit) % ALPHABET.len()]))
        .collect()
}

/// A permanent id: a UUID (RFC 9562, version 8) that is a function of `parts` alone, so that an object that is created again
/// gets the id of its predecessor. The length of each part is hashed too: `["ab", "c"]` and `["a", "bc"]` differ.
pub fn permanent_id(parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    let digest = hasher.finalize();
    let mut id: [u8; 16] = std::array::from_fn(|at| digest[at]);
    id[6] = 0x80 | (id[6] & 0x0f);
    id[8] = 0x80 | (id[8] & 0x3f);
    let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}

/// FNV-1a in 32 bits.
pub fn fnv1a_32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests;

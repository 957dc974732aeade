//! Image references: `[registry/]repository[:tag][@digest]`, and the change of one part.
//!
//! Source: the grammar of the distribution project; the split of registry and repository is Docker's rule.

use entourage_api::policy::{ImageComponent, ImageOverrider, OverriderOperator};

/// The longest tag.
const LONGEST_TAG: usize = 128;

/// The fewest hexadecimal digits of a digest.
const SHORTEST_HASH: usize = 32;

/// The image with one part changed.
///
/// - `Registry` and `Repository`: `add` appends to the part, `replace` sets it, `remove` removes it. A digest is kept: it
///   identifies the content, whatever registry serves it.
/// - `Tag`: the tag, or the digest if there is no tag. A new tag or digest replaces both; `add` does not change an image that
///   has only a digest, since nothing can be appended to one.
///
/// # Errors
/// The cause: the image is invalid, or the result would be. The error does not contain the image.
pub(super) fn revise(image: &str, change: &ImageOverrider) -> Result<String, String> {
    let mut parts = Image::read(image).map_err(|why| format!("the present image is not valid: {why}"))?;
    let value = &change.value;
    let alter = |part: &mut String| match change.operator {
        OverriderOperator::Add => part.push_str(value),
        OverriderOperator::Replace => part.clone_from(value),
        OverriderOperator::Remove => part.clear(),
    };
    match change.component {
        ImageComponent::Registry => alter(&mut parts.registry),
        ImageComponent::Repository => alter(&mut parts.repository),
        ImageComponent::Tag => parts.retag(change.operator, value)?,
    }
    let revised = parts.written();
    Image::read(&revised).map_err(|why| format!("the result is not an image: {why}"))?;
    Ok(revised)
}

#[derive(Debug, PartialEq, Eq)]
struct Image {
    registry: String,
    repository: String,
    tag: String,
    digest: String,
}

impl Image {
    fn read(image: &str) -> Result<Self, &'static str> {
        let (rest, digest) = image
            .split_once('@')
            .map_or((image, None), |(rest, digest)| (rest, Some(digest)));
        if digest.is_some_and(|digest| !is_digest(digest)) {
            return Err("the part after the @ is not a digest such as sha256:…");
        }
        let name_at = rest.rfind('/').map_or(0, |slash| slash + 1);
        let (name, tag) = match rest[name_at..].split_once(':') {
            Some((name, tag)) => (&rest[..name_at + name.len()], Some(tag)),
            None => (rest, None),
        };
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return Err("the tag is at most 128 letters, digits, '_', '.' and '-'");
        }
        let (registry, repository) = match name.split_once('/') {
            Some((first, rest)) if names_a_server(first) => (first, rest),
            _ => ("", name),
        };
        if !registry.is_empty() && !is_registry(registry) {
            return Err("the registry is a host name, with a port or without");
        }
        if repository.is_empty() {
            return Err("there is no repository");
        }
        if !repository.split('/').all(is_path_part) {
            return Err("the repository is lower-case letters and digits, parted by '.', '_', '-' and '/'");
        }
        Ok(Self {
            registry: registry.into(),
            repository: repository.into(),
            tag: tag.unwrap_or_default().into(),
            digest: digest.unwrap_or_default().into(),
        })
    }

    fn written(&self) -> String {
        let mut text = String::new();
        if !self.registry.is_empty() {
            text.push_str(&self.registry);
            text.push('/');
        }
        text.push_str(&self.repository);
        for (mark, part) in [(':', &self.tag), ('@', &self.digest)] {
            if !part.is_empty() {
                text.push(mark);
                text.push_str(part);
            }
        }
        text
    }

    fn retag(&mut self, operator: OverriderOperator, value: &str) -> Result<(), String> {
        let value = value.strip_prefix('@').unwrap_or(value);
        match operator {
            OverriderOperator::Remove => {
                self.tag.clear();
                self.digest.clear();
            }
            OverriderOperator::Add if self.tag.is_empty() && !self.digest.is_empty() => {}
            OverriderOperator::Add if !self.tag.is_empty() => {
                self.tag.push_str(value);
                self.digest.clear();
            }
            _ if is_digest(value) => {
                self.digest = value.into();
                self.tag.clear();
            }
            _ if is_tag(value) => {
                self.tag = value.into();
                self.digest.clear();
            }
            _ => return Err("the value is neither a tag such as v1.2 nor a digest such as sha256:…".into()),
        }
        Ok(())
    }
}

/// True by Docker's rule if the first part is a server: `library/nginx` is all repository, `registry.example/nginx` is not.
fn names_a_server(first: &str) -> bool {
    first.contains(['.', ':']) || first == "localhost" || first.contains(|c: char| c.is_ascii_uppercase())
}

fn is_registry(text: &str) -> bool {
    let (host, port) = match text.rfind(':') {
        Some(colon) if !text.ends_with(']') => (&text[..colon], Some(&text[colon + 1..])),
        _ => (text, None),
    };
    let is_label = |label: &str| {
        let bytes = label.as_bytes();
        bytes.first().is_some_and(u8::is_ascii_alphanumeric)
            && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
            && bytes
                .iter()
                .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
    };
    let is_host = match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(address) => {
            !address.is_empty()
                && address
                    .bytes()
                    .all(|byte| byte.is_ascii_hexdigit() || byte == b':')
        }
        None => host.split('.').all(is_label),
    };
    // With underscores it is not a host name, but the part of a path that the grammar accepts.
    (is_host || (port.is_none() && is_path_part(host)))
        && port.is_none_or(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// True if a text consists of letters and digits, separated by one dot, one or two underscores, or any number of dashes.
fn is_path_part(part: &str) -> bool {
    let mut separator = String::new();
    let mut letters = 0;
    for c in part.chars() {
        if c.is_ascii_lowercase() || c.is_ascii_digit() {
            let parted =
                matches!(&*separator, "" | "." | "_" | "__") || separator.bytes().all(|byte| byte == b'-');
            if !parted || (letters == 0 && !separator.is_empty()) {
                return false;
            }
            separator.clear();
            letters += 1;
        } else {
            separator.push(c);
        }
    }
    letters > 0 && separator.is_empty()
}

fn is_tag(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    bytes.len() <= LONGEST_TAG
        && bytes.first().is_some_and(is_word)
        && bytes.iter().all(|byte| is_word(byte) || b".-".contains(byte))
}

fn is_digest(text: &str) -> bool {
    let Some((algorithm, hash)) = text.split_once(':') else {
        return false;
    };
    algorithm
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphabetic())
        && algorithm
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+._-".contains(&byte))
        && hash.len() >= SHORTEST_HASH
        && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "sha256:50d858e0985ecc7f60418aaf0cc5ab587f42c2570a884095a9e8ccacd0f6545c";

    #[test]
    fn a_reference_falls_into_its_parts_and_back() {
        let cases = [
            ("nginx", ["", "nginx", "", ""]),
            ("nginx:1.2", ["", "nginx", "1.2", ""]),
            ("library/nginx:1.2", ["", "library/nginx", "1.2", ""]),
            ("localhost/nginx", ["localhost", "nginx", "", ""]),
            ("reg_a.example/nginx:1", ["reg_a.example", "nginx", "1", ""]),
            ("registry.k8s.io/pause", ["registry.k8s.io", "pause", "", ""]),
            ("reg:5000/a/b", ["reg:5000", "a/b", "", ""]),
            (
                "reg.example:10443/a/b-c__d:v1",
                ["reg.example:10443", "a/b-c__d", "v1", ""],
            ),
            ("[fe80::1]:5000/a", ["[fe80::1]:5000", "a", "", ""]),
            (&format!("a@{HASH}"), ["", "a", "", HASH]),
            (&format!("reg:5000/a:v1@{HASH}"), ["reg:5000", "a", "v1", HASH]),
        ];
        for (text, [registry, repository, tag, digest]) in cases {
            let image = Image::read(text).unwrap_or_else(|why| panic!("{text}: {why}"));
            let parts = [&image.registry, &image.repository, &image.tag, &image.digest];
            assert_eq!(parts, [registry, repository, tag, digest], "{text}");
            assert_eq!(image.written(), text);
        }
    }

    #[test]
    fn what_is_no_reference_is_refused() {
        let bad = [
            "",
            ":v1",
            "@sha256:00",
            "a b",
            "a:",
            "a@",
            "A",
            "a//b",
            "a/",
            "/a",
            "-a",
            "a-",
            "a..b",
            "a___b",
            "reg.:5000/a",
            "reg:port/a",
            "my_reg:5000/a",
            "a:v1:v2",
            "a@sha256:zz",
            "http://reg.example/a",
        ];
        for text in bad {
            assert!(Image::read(text).is_err(), "{text}");
        }
    }
}

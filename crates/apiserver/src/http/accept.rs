//! The form of the response that a request accepts.

use crate::status::Status;

/// The format of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Format {
    /// JSON.
    #[default]
    Json,
    /// YAML.
    Yaml,
    /// Kubernetes' own protobuf: of built-in kinds, and of the metadata of all.
    Protobuf,
}

/// The transformation of the response before it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transform {
    /// `Table`.
    Table,
    /// `PartialObjectMetadata`.
    Partial,
    /// `PartialObjectMetadataList`.
    PartialList,
    /// `APIGroupDiscoveryList` of `apidiscovery.k8s.io/v2`.
    Discovery,
}

/// The outcome of a negotiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Accepted {
    /// The format.
    pub format: Format,
    /// Indented, because the media type requests it.
    pub pretty: bool,
    /// The transformation; true if as `v1beta1`.
    pub transform: Option<(Transform, bool)>,
}

/// The responding part of the server: each offers different forms and refuses in different words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    /// Built-in kinds: one object.
    Object,
    /// Built-in kinds: a collection or a watch.
    Collection,
    /// Custom resources.
    Custom,
    /// Reviews, which have no table.
    Review,
    /// `/api` and `/apis`.
    Aggregated,
    /// Discovery of groups and versions.
    Discovery,
    /// `/version`.
    JsonOnly,
}

/// The formats that the real server also has; clients match on the texts.
const ALL: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
const STREAMS: &str = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";

/// The form of an answer. Source: k8s.io/apiserver negotiation, behind the routes' own check.
pub(crate) fn negotiate(header: &str, offer: Offer) -> Result<Accepted, Box<Status>> {
    if !routed(header, offer) {
        let list = match offer {
            Offer::JsonOnly => "application/json".to_owned(),
            Offer::Collection => format!("{ALL}, {STREAMS}"),
            _ => ALL.to_owned(),
        };
        return Err(unavailable(&list));
    }
    if header.trim().is_empty() {
        return Ok(Accepted::default());
    }
    clauses(header)
        .iter()
        .find_map(|clause| matched(clause, offer))
        .ok_or_else(|| refused(ALL))
}

/// The form of a watch: YAML cannot be streamed.
pub(crate) fn negotiate_watch(header: &str, offer: Offer) -> Result<Accepted, Box<Status>> {
    let accepted = negotiate(header, offer)?;
    if accepted.format == Format::Yaml {
        Err(refused(STREAMS))
    } else {
        Ok(accepted)
    }
}

/// The form of an error: the requested one, or JSON, which every client reads.
#[must_use]
pub(crate) fn of_error(header: &str) -> Accepted {
    clauses(header)
        .iter()
        .find_map(|clause| matched(clause, Offer::Object))
        .map(|accepted| Accepted {
            transform: None,
            ..accepted
        })
        .unwrap_or_default()
}

/// Refuses a request for a document that does not accept its only media type.
pub(crate) fn only(header: &str, media: &str) -> Result<(), Box<Status>> {
    let mut types = header
        .split(',')
        .map(|clause| clause.split(';').next().unwrap_or_default().trim());
    let any = ["", "*/*", "application/*", media];
    if types.any(|accepted| any.contains(&accepted)) {
        Ok(())
    } else {
        Err(unavailable(media))
    }
}

fn unavailable(list: &str) -> Box<Status> {
    let message = format!("406: Not Acceptable\n\nAvailable representations: {list}");
    Status::new(406, "NotAcceptable", message).with_details(serde_json::Map::new())
}

fn refused(list: &str) -> Box<Status> {
    Status::new(
        406,
        "NotAcceptable",
        format!("only the following media types are accepted: {list}"),
    )
}

/// The check of the routes of built-in kinds: a media type of theirs, or `*/*`, must be named literally.
fn routed(header: &str, offer: Offer) -> bool {
    if offer == Offer::Custom || header.is_empty() {
        return true;
    }
    let yaml = offer != Offer::JsonOnly;
    header
        .split(',')
        .any(|part| match part.split(';').next().unwrap_or_default().trim() {
            "*/*" | "application/json" => true,
            "application/yaml" | "application/vnd.kubernetes.protobuf" => yaml,
            _ => false,
        })
}

/// One entry of an Accept header.
#[derive(Debug, PartialEq)]
struct Clause<'a> {
    kind: &'a str,
    sub: &'a str,
    q: f32,
    params: Vec<(&'a str, &'a str)>,
}

/// The entries, best first; equal ones in their order.
fn clauses(header: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<Clause<'_>> = header
        .split(',')
        .filter_map(|part| {
            let mut words = part.split(';');
            let (kind, sub) = words.next()?.trim().split_once('/').or(Some(("", "")))?;
            let mut clause = Clause {
                kind,
                sub,
                q: 1.0,
                params: Vec::new(),
            };
            for word in words {
                let (key, value) = word.split_once('=')?;
                match key.trim() {
                    "q" => clause.q = value.trim().parse().unwrap_or(1.0),
                    key => clause.params.push((key, value.trim())),
                }
            }
            (!kind.is_empty()).then_some(clause)
        })
        .collect();
    clauses.sort_by(|a, b| b.q.total_cmp(&a.q));
    clauses
}

fn matched(clause: &Clause<'_>, offer: Offer) -> Option<Accepted> {
    let offered = [
        ("json", Format::Json),
        ("yaml", Format::Yaml),
        ("vnd.kubernetes.protobuf", Format::Protobuf),
    ];
    let has_protobuf = offer != Offer::JsonOnly;
    let any = clause.kind == "*" && clause.sub == "*";
    offered
        .into_iter()
        .filter(|(_, format)| has_protobuf || *format != Format::Protobuf)
        .find(|(sub, _)| any || (clause.kind == "application" && (clause.sub == *sub || clause.sub == "*")))
        .and_then(|(_, format)| options(clause, format, offer))
}

fn options(clause: &Clause<'_>, format: Format, offer: Offer) -> Option<Accepted> {
    let mut accepted = Accepted {
        format,
        ..Accepted::default()
    };
    let (mut kind, mut group, mut version) = (None, "", "");
    for (key, value) in &clause.params {
        match *key {
            "as" => kind = Some(*value),
            "g" => group = value,
            "v" => version = value,
            "pretty" => accepted.pretty = *value == "1",
            "stream" if !value.is_empty() && (*value != "watch" || format == Format::Yaml) => return None,
            _ => {}
        }
    }
    let Some(kind) = kind else {
        // Of a custom resource only the metadata have numbers.
        if offer == Offer::Custom && format == Format::Protobuf {
            return None;
        }
        return (group.is_empty() && version.is_empty()).then_some(accepted);
    };
    let beta = version == "v1beta1";
    let transform = match (offer, group, version, kind) {
        (Offer::Aggregated, "apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList")
            if format == Format::Json =>
        {
            Transform::Discovery
        }
        (Offer::Object | Offer::Collection | Offer::Custom, "meta.k8s.io", "v1" | "v1beta1", kind) => {
            match kind {
                "Table" if format != Format::Protobuf => Transform::Table,
                "PartialObjectMetadata" => Transform::Partial,
                "PartialObjectMetadataList" => Transform::PartialList,
                _ => return None,
            }
        }
        _ => return None,
    };
    accepted.transform = Some((transform, beta));
    Some(accepted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain(format: Format) -> Accepted {
        Accepted {
            format,
            ..Accepted::default()
        }
    }

    #[test]
    fn the_best_clause_wins() {
        let table = Accepted {
            transform: Some((Transform::Table, false)),
            ..Accepted::default()
        };
        let cases = [
            ("", plain(Format::Json)),
            ("*/*", plain(Format::Json)),
            ("application/yaml", plain(Format::Yaml)),
            (
                "application/yaml;q=0.1,application/json;q=0.9",
                plain(Format::Json),
            ),
            (
                "application/vnd.kubernetes.protobuf,application/json",
                plain(Format::Protobuf),
            ),
            (
                "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1,application/json",
                plain(Format::Json),
            ),
            ("text/html,application/xml;q=0.9,*/*;q=0.8", plain(Format::Json)),
            (
                "application/json;as=Table;g=meta.k8s.io;v=v1,application/json",
                table,
            ),
            (
                "application/json;as=Chair;g=meta.k8s.io;v=v1,application/json",
                plain(Format::Json),
            ),
            ("application/json;stream=watch", plain(Format::Json)),
        ];
        for (header, expected) in cases {
            assert_eq!(
                negotiate(header, Offer::Object).expect(header),
                expected,
                "{header}"
            );
        }
    }

    #[test]
    fn what_is_not_offered_is_refused_in_the_words_of_the_one_who_answers() {
        let message = |header, offer| {
            negotiate(header, offer)
                .map(|_| ())
                .expect_err(header)
                .message
                .clone()
        };
        assert!(message("text/html", Offer::Object).starts_with("406: Not Acceptable"));
        assert!(message("text/html", Offer::Collection).ends_with("protobuf;stream=watch"));
        assert!(message("application/*", Offer::Object).starts_with("406: Not Acceptable"));
        assert!(message("text/html", Offer::Custom).starts_with("only the following"));
        assert!(
            message("application/json;as=Chair;g=meta.k8s.io;v=v1", Offer::Object)
                .starts_with("only the following")
        );
        assert_eq!(
            message("application/yaml", Offer::JsonOnly),
            "406: Not Acceptable\n\nAvailable representations: application/json"
        );
        assert!(negotiate_watch("application/yaml", Offer::Collection).is_err());
        let protobuf = "application/vnd.kubernetes.protobuf";
        assert!(negotiate(protobuf, Offer::Custom).is_err());
        let metadata = format!("{protobuf};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
        let accepted = negotiate(&metadata, Offer::Custom).expect("metadata");
        assert_eq!(
            (accepted.format, accepted.transform),
            (Format::Protobuf, Some((Transform::PartialList, false)))
        );
        assert_eq!(of_error(protobuf), plain(Format::Protobuf));
        assert_eq!(of_error("text/html"), plain(Format::Json));
    }

    proptest! {
        #[test]
        fn no_header_makes_it_panic(header in "[a-z*/;=,q0-9. ]{0,60}") {
            for offer in [Offer::Object, Offer::Collection, Offer::Custom, Offer::Aggregated, Offer::JsonOnly] {
                let _ = negotiate(&header, offer);
            }
            let _ = of_error(&header);
        }
    }
}

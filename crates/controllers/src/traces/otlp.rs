//! Spans as the JSON of OTLP.
//!
//! Source: OpenTelemetry Protocol 1.x, "OTLP/HTTP", "JSON Protobuf Encoding": ids are hexadecimal, 64-bit numbers are strings, enums are
//! numbers, names are in lowerCamelCase.

use serde_json::{Value, json};

use super::{Attribute, Kind, Span};

/// `STATUS_CODE_ERROR`. A span without a status has none set.
const ERROR: u8 = 2;

/// The prefix of attributes of ours; those with a dot are OpenTelemetry's.
const PREFIX: &str = "entourage";

/// The body of an export request.
pub(super) fn body(service: &str, instance: &str, spans: &[Span]) -> Value {
    let resource = [
        ("service.name", service),
        ("service.version", env!("CARGO_PKG_VERSION")),
        ("service.instance.id", instance),
    ];
    let resource: Vec<Value> = resource
        .iter()
        .map(|(key, value)| json!({"key": key, "value": {"stringValue": value}}))
        .collect();
    json!({"resourceSpans": [{
        "resource": {"attributes": resource},
        "scopeSpans": [{
            "scope": {"name": PREFIX, "version": env!("CARGO_PKG_VERSION")},
            "spans": spans.iter().map(span).collect::<Vec<_>>(),
        }],
    }]})
}

fn span(span: &Span) -> Value {
    let mut out = json!({
        "traceId": format!("{:032x}", span.begun.context.trace),
        "spanId": format!("{:016x}", span.begun.context.span),
        "name": span.name,
        "kind": match span.kind {
            Kind::Internal => 1,
            Kind::Server => 2,
            Kind::Client => 3,
        },
        "startTimeUnixNano": span.begun.began.to_string(),
        "endTimeUnixNano": span.ended.max(span.begun.began).to_string(),
        "attributes": span.attributes.iter().map(attribute).collect::<Vec<_>>(),
    });
    if let Some(parent) = span.begun.parent {
        out["parentSpanId"] = json!(format!("{parent:016x}"));
    }
    if span.is_failed {
        out["status"] = json!({"code": ERROR});
    }
    out
}

fn attribute((key, value): &(&'static str, Attribute)) -> Value {
    let key = if key.contains('.') {
        (*key).to_owned()
    } else {
        format!("{PREFIX}.{key}")
    };
    let value = match value {
        Attribute::Text(text) => json!({"stringValue": text}),
        Attribute::Number(number) => json!({"intValue": number.to_string()}),
    };
    json!({"key": key, "value": value})
}

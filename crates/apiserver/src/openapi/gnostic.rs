//! A Swagger 2.0 document in protocol buffers, for older clients. Source: the messages of gnostic's OpenAPIv2.

use serde_json::{Map, Value};

use super::protobuf::Message;

/// The document as bytes. Keys that the messages do not know become vendor extensions when they begin with `x-`.
#[must_use]
pub(super) fn document(value: &Value) -> Vec<u8> {
    let mut document = Message::default();
    document.text(1, text(&value["swagger"]));
    let mut info = Message::default();
    info.text(1, text(&value["info"]["title"]));
    info.text(2, text(&value["info"]["version"]));
    document.message(2, &info);
    let mut paths = Message::default();
    for (name, item) in entries(&value["paths"]) {
        paths.message(2, &named(name, &path_item(item)));
    }
    document.message(8, &paths);
    let mut definitions = Message::default();
    for (name, one) in entries(&value["definitions"]) {
        definitions.message(1, &named(name, &schema(one)));
    }
    document.message(9, &definitions);
    let mut shared = Message::default();
    for (name, one) in entries(&value["parameters"]) {
        shared.message(1, &named(name, &parameter(one)));
    }
    document.message(10, &shared);
    document.into_bytes()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn named(name: &str, value: &Message) -> Message {
    let mut message = Message::default();
    message.text(1, name);
    message.message(2, value);
    message
}

/// A value as YAML, which JSON is.
fn any(value: &Value) -> Message {
    let mut message = Message::default();
    message.text(2, &value.to_string());
    message
}

fn vendor(message: &mut Message, field: u32, value: &Value) {
    for (key, value) in entries(value).filter(|(key, _)| key.starts_with("x-")) {
        message.message(field, &named(key, &any(value)));
    }
}

fn path_item(value: &Value) -> Message {
    const METHODS: [(&str, u32); 5] = [("get", 2), ("put", 3), ("post", 4), ("delete", 5), ("patch", 8)];
    let mut item = Message::default();
    for (method, field) in METHODS {
        if value[method].is_object() {
            item.message(field, &operation(&value[method]));
        }
    }
    parameters(&mut item, 9, &value["parameters"]);
    item
}

fn operation(value: &Value) -> Message {
    let mut operation = Message::default();
    operation.text(3, text(&value["description"]));
    operation.text(5, text(&value["operationId"]));
    for (field, key) in [(1, "tags"), (6, "produces"), (7, "consumes"), (10, "schemes")] {
        for one in value[key].as_array().into_iter().flatten() {
            operation.text(field, text(one));
        }
    }
    parameters(&mut operation, 8, &value["parameters"]);
    let mut responses = Message::default();
    for (code, answer) in entries(&value["responses"]) {
        let mut response = Message::default();
        response.text(1, text(&answer["description"]));
        if answer["schema"].is_object() {
            let mut item = Message::default();
            item.message(1, &schema(&answer["schema"]));
            response.message(2, &item);
        }
        let mut one = Message::default();
        one.message(1, &response);
        responses.message(1, &named(code, &one));
    }
    operation.message(9, &responses);
    vendor(&mut operation, 13, value);
    operation
}

fn parameters(into: &mut Message, field: u32, value: &Value) {
    for one in value.as_array().into_iter().flatten() {
        let mut item = Message::default();
        if one["$ref"].is_string() {
            let mut reference = Message::default();
            reference.text(1, text(&one["$ref"]));
            item.message(2, &reference);
        } else {
            item.message(1, &parameter(one));
        }
        into.message(field, &item);
    }
}

fn parameter(value: &Value) -> Message {
    let mut parameter = Message::default();
    let mut one = Message::default();
    let is_required = value["required"] == true;
    if value["in"] == "body" {
        one.text(2, "body");
        one.text(3, "body");
        if is_required {
            one.number(4, 1);
        }
        one.message(5, &schema(&value["schema"]));
        parameter.message(1, &one);
        return parameter;
    }
    let in_path = value["in"] == "path";
    if is_required {
        one.number(1, 1);
    }
    one.text(2, text(&value["in"]));
    one.text(3, text(&value["description"]));
    one.text(4, text(&value["name"]));
    // Path parameters have no `allow_empty_value`: their fields are numbered one lower from there on.
    one.text(if in_path { 5 } else { 6 }, text(&value["type"]));
    let mut bodyless = Message::default();
    bodyless.message(if in_path { 4 } else { 3 }, &one);
    parameter.message(2, &bodyless);
    parameter
}

fn schema(value: &Value) -> Message {
    let mut schema = Message::default();
    schema.text(1, text(&value["$ref"]));
    schema.text(2, text(&value["format"]));
    schema.text(3, text(&value["title"]));
    schema.text(4, text(&value["description"]));
    if let Some(default) = value.get("default") {
        schema.message(5, &any(default));
    }
    for (field, key) in [(6, "multipleOf"), (7, "maximum"), (9, "minimum")] {
        if let Some(number) = value[key].as_f64() {
            schema.double(field, number);
        }
    }
    for (field, key) in [
        (8, "exclusiveMaximum"),
        (10, "exclusiveMinimum"),
        (16, "uniqueItems"),
    ] {
        if value[key] == true {
            schema.number(field, 1);
        }
    }
    const COUNTS: [(u32, &str); 6] = [
        (11, "maxLength"),
        (12, "minLength"),
        (14, "maxItems"),
        (15, "minItems"),
        (17, "maxProperties"),
        (18, "minProperties"),
    ];
    for (field, key) in COUNTS {
        if let Some(number) = value[key].as_u64() {
            schema.number(field, number);
        }
    }
    schema.text(13, text(&value["pattern"]));
    for required in value["required"].as_array().into_iter().flatten() {
        schema.text(19, text(required));
    }
    for one in value["enum"].as_array().into_iter().flatten() {
        schema.message(20, &any(one));
    }
    if value["additionalProperties"].is_object() {
        let mut item = Message::default();
        item.message(1, &self::schema(&value["additionalProperties"]));
        schema.message(21, &item);
    }
    if let Some(kind) = value["type"].as_str() {
        let mut item = Message::default();
        item.text(1, kind);
        schema.message(22, &item);
    }
    if value["items"].is_object() {
        let mut item = Message::default();
        item.message(1, &self::schema(&value["items"]));
        schema.message(23, &item);
    }
    if let Some(properties) = value["properties"].as_object() {
        schema.message(25, &all(properties));
    }
    vendor(&mut schema, 31, value);
    schema
}

fn all(properties: &Map<String, Value>) -> Message {
    let mut message = Message::default();
    for (name, one) in properties {
        message.message(1, &named(name, &schema(one)));
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_is_encoded_by_the_numbers_of_its_fields() {
        let message = schema(&json!({"type": "string", "x-a": 1})).into_bytes();
        // type = 22: a message with one string; vendor_extension = 31: name and yaml.
        let expected = [
            &[0xb2, 0x01, 0x08, 0x0a, 0x06][..],
            b"string",
            &[0xfa, 0x01, 0x0a, 0x0a, 0x03],
            b"x-a",
            &[0x12, 0x03, 0x12, 0x01],
            b"1",
        ]
        .concat();
        assert_eq!(message, expected);
    }
}

//! JSON as the server reads it.

use proptest::prelude::*;

use super::*;

#[test]
fn errors_read_as_those_of_go() {
    for (text, error) in [
        ("", "unexpected end of JSON input"),
        ("{\"a\"", "unexpected end of JSON input"),
        (
            "{\"a\":1,}",
            "invalid character '}' looking for beginning of object key string",
        ),
        ("[1 2]", "invalid character '2' after array element"),
        ("{\"a\" 1}", "invalid character '1' after object key"),
        (
            "{\"a\":1 \"b\"}",
            "invalid character '\"' after object key:value pair",
        ),
        ("01", "invalid character '1' after top-level value"),
        (
            "1.x",
            "invalid character 'x' after decimal point in numeric literal",
        ),
        ("-a", "invalid character 'a' in numeric literal"),
        ("1e-", "unexpected end of JSON input"),
        ("trve", "invalid character 'v' in literal true (expecting 'u')"),
        ("\"a\nb\"", "invalid character '\\n' in string literal"),
        ("\"\u{1}\"", "invalid character '\\x01' in string literal"),
        ("\"\\q\"", "invalid character 'q' in string escape code"),
        (
            "\"\\u12x4\"",
            "invalid character 'x' in \\u hexadecimal character escape",
        ),
        (
            "\u{feff}{}",
            "invalid character '\\ufeff' looking for beginning of value",
        ),
        ("'a'", "invalid character '\\'' looking for beginning of value"),
    ] {
        assert_eq!(Node::parse(text.as_bytes()), Err(error.to_owned()), "{text}");
    }
    assert_eq!(
        Node::parse(b"\xff"),
        Err("invalid character '\\xff' looking for beginning of value".to_owned())
    );
}

#[test]
fn duplicates_are_reported_with_their_paths_and_the_last_one_wins() {
    let node = Node::parse(br#"{"a":[{"b":1,"b":2}],"c":1,"c":{"d":3,"d":4}}"#).unwrap();
    assert_eq!(node.duplicates(), ["a[0].b", "c", "c.d"]);
    assert_eq!(
        node.into_value(),
        serde_json::json!({"a": [{"b": 2}], "c": {"d": 4}})
    );
}

#[test]
fn what_is_no_utf8_or_half_a_pair_becomes_a_replacement_character() {
    let text = |bytes: &[u8]| Node::parse(bytes).unwrap().into_value();
    assert_eq!(text(b"\"\xff\xfe\""), "\u{fffd}\u{fffd}");
    assert_eq!(text(br#""\ud800x""#), "\u{fffd}x");
    assert_eq!(text(br#""\ud83d\ude00""#), "\u{1f600}");
}

#[test]
fn nesting_is_bounded() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(Node::parse(nested(MAX_DEPTH).as_bytes()).is_ok());
    assert_eq!(
        Node::parse(nested(1_000_000).as_bytes()),
        Err("exceeded max depth".to_owned())
    );
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let _ = Node::parse(&bytes);
    }

    #[test]
    fn it_reads_what_serde_json_reads(text in "[\\[\\]{}:,\"a0-9.eE\\-\\\\ntrufals ]{0,24}") {
        let ours = Node::parse(text.as_bytes());
        let theirs: Result<Value, _> = serde_json::from_str(&text);
        if let (Ok(ours), Ok(theirs)) = (&ours, &theirs) {
            prop_assert_eq!(&ours.clone().into_value(), theirs);
        }
        // Only numbers beyond f64 are read by one and not by the other.
        prop_assert!(ours.is_ok() == theirs.is_ok() || text.contains(['e', 'E', '\\']));
    }
}

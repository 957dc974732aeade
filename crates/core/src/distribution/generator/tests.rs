//! Properties of the generator; single configurations are in the golden cases of the command.

use proptest::prelude::*;

use super::*;

/// A configuration with these entries that is valid otherwise.
fn config(kind: &str, sources: &Value) -> Value {
    let mut resource = sources.clone();
    resource["resourceKind"] = kind.into();
    resource["resourceName"] = "settings".into();
    json!({
        "apiVersion": API_VERSIONS[0],
        "kind": KIND,
        "metadata": {"name": "rd"},
        "resource": resource,
        "targets": {"allNamespaces": true},
    })
}

fn resource(kind: &str, sources: &Value, loaded: &Loaded) -> Result<Value, Vec<Wrong>> {
    let object = generate(&read(&config(kind, sources))?, loaded)?;
    Ok(object["spec"]["resource"].clone())
}

fn files(files: &[(&str, &[u8])]) -> Loaded {
    Loaded {
        files: files
            .iter()
            .map(|(path, content)| ((*path).to_owned(), Ok(content.to_vec())))
            .collect(),
        environment: BTreeMap::new(),
    }
}

#[test]
fn bytes_of_a_config_map_that_are_no_text_are_binary_data() {
    let loaded = files(&[("a", b"text"), ("b", b"\xff\x00")]);
    let sources = json!({"files": ["a", "b"]});
    let config_map = resource("ConfigMap", &sources, &loaded).unwrap();
    assert_eq!(config_map["data"], json!({"a": "text"}));
    assert_eq!(config_map["binaryData"], json!({"b": "/wA="}));
    let secret = resource("Secret", &sources, &loaded).unwrap();
    assert_eq!(secret["data"], json!({"a": "dGV4dA==", "b": "/wA="}));
    assert!(secret["binaryData"].is_null());
}

#[test]
fn base64_has_no_line_breaks() {
    let loaded = files(&[("a", &[b'x'; 300])]);
    let secret = resource("Secret", &json!({"files": ["a"]}), &loaded).unwrap();
    let text = secret["data"]["a"].as_str().unwrap();
    assert_eq!(text.len(), 400);
    assert!(!text.contains('\n'));
}

#[test]
fn a_file_that_was_not_loaded_is_an_error() {
    let wrong = resource("Secret", &json!({"files": ["a"]}), &Loaded::default()).unwrap_err();
    assert_eq!(wrong[0].to_string(), "resource.files[0]: the file was not loaded");
}

#[test]
fn both_versions_of_the_configuration_make_the_same_object() {
    let one = config("ConfigMap", &json!({"literals": ["a=b"]}));
    let mut other = one.clone();
    other["apiVersion"] = API_VERSIONS[1].into();
    let made = [one, other].map(|config| generate(&read(&config).unwrap(), &Loaded::default()).unwrap());
    assert_eq!(made[0], made[1]);
    assert_eq!(made[0]["apiVersion"], "apps.kruise.io/v1alpha1");
}

#[test]
fn the_debug_text_of_a_generator_shows_no_content() {
    let generator = read(&config("Secret", &json!({"literals": ["a=canary"]}))).unwrap();
    assert_eq!(
        format!("{generator:?}"),
        "ResourceDistributionGenerator rd (content not shown)"
    );
}

#[test]
fn a_type_that_is_not_the_expected_one_is_reported_without_its_content() {
    for value in [
        json!(["canary"]),
        json!({"canary": "canary"}),
        json!("canary"),
        json!(1),
        json!(true),
    ] {
        for field in [
            "literals",
            "files",
            "envs",
            "env",
            "type",
            "resourceOptions",
            "resourceName",
            "resourceKind",
        ] {
            let mut config = config("Secret", &json!({}));
            config["resource"][field] = value.clone();
            let Err(wrong) = read(&config) else { continue };
            // A key of a map is quoted, its value is not.
            let text: String = wrong.iter().map(ToString::to_string).collect();
            assert!(!text.contains("canary") || value.is_object(), "{field}: {text}");
            assert!(
                wrong.iter().all(|wrong| wrong.field.starts_with("resource.")),
                "{text}"
            );
        }
    }
}

/// Texts with characters that have a meaning in the parsers.
fn source() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("="),
        Just("\""),
        Just("'"),
        Just("#"),
        Just(" "),
        Just("\n"),
        Just("\r\n"),
        Just("a"),
        Just("ä"),
        Just("\u{feff}"),
        Just("canary"),
    ];
    proptest::collection::vec(part, 0..8).prop_map(|parts| parts.concat())
}

proptest! {
    /// Neither a literal nor a line of an env file is ever quoted in an error.
    #[test]
    fn errors_show_nothing_of_literals_and_env_files(
        literals in proptest::collection::vec(source(), 0..3),
        env in source(),
    ) {
        let sources = json!({"literals": literals, "envs": ["e"]});
        if let Err(wrong) = resource("Secret", &sources, &files(&[("e", env.as_bytes())])) {
            let text: String = wrong.iter().map(ToString::to_string).collect();
            prop_assert!(!text.contains("canary"), "{}", text);
        }
    }

    /// A Secret's bytes are those of the file, whatever they are.
    #[test]
    fn the_bytes_of_a_file_come_out_as_they_are(content in proptest::collection::vec(any::<u8>(), 0..200)) {
        let secret = resource("Secret", &json!({"files": ["f"]}), &files(&[("f", &content)])).unwrap();
        let text = secret["data"]["f"].as_str().unwrap();
        prop_assert_eq!(STANDARD.decode(text).unwrap(), content);
    }

    /// No bytes of an env file make the parser panic, and every pair of it has a valid key.
    #[test]
    fn any_bytes_are_an_env_file_or_an_error(content in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(secret) = resource("Secret", &json!({"env": "e"}), &files(&[("e", &content)])) {
            for key in secret["data"].as_object().into_iter().flat_map(|data| data.keys()) {
                prop_assert!(!key.is_empty() && key.is_ascii());
            }
        }
    }
}

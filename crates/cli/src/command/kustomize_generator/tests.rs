//! Cases beyond the golden ones: flags, invalid lists, and YAML for other readers.

use clap::Parser as _;

use super::*;
use crate::command::{Cli, Command};

fn around(here: &Path) -> Surroundings<'_> {
    Surroundings {
        here,
        environment: BTreeMap::new(),
    }
}

fn flags(line: &[&str]) -> KustomizeGeneratorArgs {
    let line = ["entourage", "kustomize-generator"].iter().chain(line);
    let Command::KustomizeGenerator(args) = Cli::try_parse_from(line).unwrap().command else {
        panic!("not a kustomize-generator");
    };
    *args
}

/// The output of the flags, parsed again, or the error.
fn of(here: &Path, line: &[&str]) -> Result<Value, String> {
    let args = flags(line);
    let mut out = Vec::new();
    match of_flags(&args, args.name.as_ref().unwrap(), &around(here), &mut out) {
        Ok(()) => Ok(serde_saphyr::from_slice(&out).unwrap()),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn flags_say_what_a_file_would() {
    let above = tempfile::tempdir().unwrap();
    let here = above.path().join("here");
    std::fs::create_dir(&here).unwrap();
    std::fs::write(here.join("e"), "A=1\n").unwrap();
    // Flags may read all files of the user.
    std::fs::write(above.path().join("config.json"), "{}").unwrap();
    let line = "--name rd --kind Secret --resource-name pull --type example.com/t --from-literal b=2 \
                --from-file .json=../config.json --from-env-file e --all-namespaces --namespace a b --namespace c \
                --exclude-namespace d";
    let line: Vec<&str> = line.split_whitespace().collect();
    let want = json!({
        "apiVersion": "apps.kruise.io/v1alpha1",
        "kind": "ResourceDistribution",
        "metadata": {"name": "rd"},
        "spec": {
            "resource": {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "pull"},
                "type": "example.com/t",
                "data": {"A": "MQ==", "b": "Mg==", ".json": "e30="},
            },
            "targets": {
                "allNamespaces": true,
                "includedNamespaces": {"list": [{"name": "a"}, {"name": "b"}, {"name": "c"}]},
                "excludedNamespaces": {"list": [{"name": "d"}]},
            },
        },
    });
    assert_eq!(of(&here, &line), Ok(want));
}

#[test]
fn errors_of_flags_name_flags() {
    let here = tempfile::tempdir().unwrap();
    let base = [
        "--name",
        "rd",
        "--kind",
        "Secret",
        "--resource-name",
        "x",
        "--all-namespaces",
    ];
    let with = |more: &[&str]| of(here.path(), &[&base, more].concat()).unwrap_err();
    for (more, want) in [
        (
            ["--from-literal", "canary"].as_slice(),
            "--from-literal[0]: is not KEY=VALUE",
        ),
        (&["--from-file", "a=canary"], "--from-file[0]: not found"),
        (
            &["--namespace", "a", "B"],
            "--namespace[1]: is not a namespace name",
        ),
        (
            &["--from-literal", "--canary"],
            "--from-literal[0]: is not KEY=VALUE",
        ),
        (
            &["--from-literal", "a=canary", "--from-literal", "a=canary"],
            "--from-literal[1]: repeats the key of --from-literal[0]",
        ),
    ] {
        let error = with(more);
        assert!(error.contains(want), "{error}");
        assert!(!error.contains("canary"), "{error}");
    }
}

#[test]
fn literals_are_not_in_the_debug_text_of_the_command_line() {
    let line = [
        "--name",
        "rd",
        "--kind",
        "Secret",
        "--resource-name",
        "x",
        "--all-namespaces",
    ];
    let args = flags(&[&line, ["--from-literal", "a=canary"].as_slice()].concat());
    assert!(!format!("{args:?}").contains("canary"));
}

#[test]
fn what_is_no_resource_list_is_answered_with_the_reason() {
    let here = tempfile::tempdir().unwrap();
    for (text, why) in [
        ("", "there is nothing in it"),
        ("a: b\n---\nc: d\n", "more than one"),
        ("a: 'canary", "invalid YAML"),
        ("- canary", "not a ResourceList"),
        ("{apiVersion: v1, kind: ResourceList}", "not a ResourceList"),
        (
            "{apiVersion: config.kubernetes.io/v1, kind: List}",
            "not a ResourceList",
        ),
        (
            "{apiVersion: config.kubernetes.io/v1, kind: ResourceList}",
            "no functionConfig",
        ),
    ] {
        let mut out = Vec::new();
        let error = of_list(text, &around(here.path()), &mut out)
            .unwrap_err()
            .to_string();
        let answer: Value = serde_saphyr::from_slice(&out).unwrap();
        assert_eq!(answer["kind"], "ResourceList", "{text}");
        assert_eq!(answer["apiVersion"], "config.kubernetes.io/v1", "{text}");
        let message = answer["results"][0]["message"].as_str().unwrap();
        assert!(message.contains(why) && error.contains(why), "{text}: {error}");
        assert!(!format!("{answer}{error}").contains("canary"), "{error}");
    }
}

#[test]
fn an_answer_has_the_version_of_its_question() {
    let here = tempfile::tempdir().unwrap();
    let mut out = Vec::new();
    let text = "{apiVersion: config.kubernetes.io/v1alpha1, kind: ResourceList, functionConfig: {}}";
    assert!(of_list(text, &around(here.path()), &mut out).is_err());
    let answer: Value = serde_saphyr::from_slice(&out).unwrap();
    assert_eq!(answer["apiVersion"], "config.kubernetes.io/v1alpha1");
}

/// Values that a YAML 1.1 parser could misread, and values with several lines, are unchanged after a round trip.
#[test]
fn values_and_keys_survive_the_way_through_yaml() {
    let here = tempfile::tempdir().unwrap();
    let long = format!("{} {}", "word ".repeat(40), "x".repeat(100));
    let values = [
        "yes",
        "1",
        "1e3",
        "0x1F",
        "1:20",
        "2026-01-01",
        "~",
        "",
        " a",
        "a ",
        "a: b",
        "#a",
        "a\nb",
        "a\n\n",
        "\n a\n",
        "a\r\nb",
        "\t",
        "{",
        "<<",
        "\u{feff}",
        "é\u{85}",
        &long,
    ];
    let literals: Vec<String> = values
        .iter()
        .enumerate()
        .map(|(n, v)| format!("k{n}={v}"))
        .collect();
    let keys = ["on", "no", "null", "1_0", "0b1", "-", "true", "1"];
    let literals: Vec<String> = keys
        .iter()
        .map(|key| format!("{key}=v"))
        .chain(literals)
        .collect();
    let mut line = vec![
        "--name",
        "rd",
        "--kind",
        "ConfigMap",
        "--resource-name",
        "x",
        "--all-namespaces",
    ];
    for literal in &literals {
        line.extend(["--from-literal", literal]);
    }
    let read = of(here.path(), &line).unwrap();
    let data = &read["spec"]["resource"]["data"];
    for (number, value) in values.iter().enumerate() {
        assert_eq!(data[format!("k{number}")], *value);
    }
    for key in keys {
        assert_eq!(data[key], "v", "{key}");
    }
}

#[test]
fn the_page_of_commands_shows_what_comes_of_the_sample() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let here = format!("{root}/config/samples/distribution");
    let config = std::fs::read_to_string(format!("{here}/generator.yaml")).unwrap();
    let page = std::fs::read_to_string(format!("{root}/docs/commands.md")).unwrap();
    let mut out = Vec::new();
    of_config(&config, "generator.yaml", &around(here.as_ref()), &mut out).unwrap();
    let out = String::from_utf8(out).unwrap();
    assert!(
        page.contains(&format!("$ entourage kustomize-generator generator.yaml\n{out}")),
        "{out}"
    );
}

//! The golden cases of `entourage kustomize-generator`: folders in `testdata/kustomize-generator`, each with a `config.yaml`
//! and the files that it names, and the resulting ResourceList in `want.yaml`. `UPDATE_GOLDEN=1` rewrites `want.yaml`.

use std::{collections::BTreeMap, fs, path::Path};

use entourage_api::kruise::ResourceDistribution;
use serde_json::Value;

use super::{Surroundings, of_config, of_list};
use crate::golden;

#[test]
fn every_case_comes_out_as_its_folder_says() {
    golden::folders("kustomize-generator", "want.yaml", 40, |case| {
        let config = fs::read_to_string(case.join("config.yaml")).unwrap();
        answered(case, &config)
    });
}

/// The response to kustomize. A file with the configuration has the same result, and no error contains a canary.
fn answered(case: &Path, config: &str) -> String {
    let around = Surroundings {
        here: case,
        environment: BTreeMap::from([("REGION".to_owned(), b"eu".to_vec())]),
    };
    let indented: String = config.lines().map(|line| format!("  {line}\n")).collect();
    let list = format!(
        "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  \
         metadata: {{name: other}}\nfunctionConfig:\n{indented}"
    );
    let (mut answer, mut alone) = (Vec::new(), Vec::new());
    let ended = of_list(&list, &around, &mut answer);
    let ended_alone = of_config(config, "config.yaml", &around, &mut alone);
    let answer = String::from_utf8(answer).unwrap();
    let alone = String::from_utf8(alone).unwrap();
    let read: Value = serde_saphyr::from_str(&answer).unwrap();
    match ended {
        Ok(()) => {
            let alone: Value = serde_saphyr::from_str(&alone).unwrap();
            assert_eq!(read["items"], serde_json::json!([alone]), "{}", case.display());
            assert!(read["results"].is_null(), "{}", case.display());
            let object = serde_json::from_value::<ResourceDistribution>(read["items"][0].clone());
            assert!(object.is_ok(), "{}: {:?}", case.display(), object.err());
        }
        Err(error) => {
            let (reported, reported_alone) = (error.to_string(), format!("{:#}", ended_alone.unwrap_err()));
            assert!(reported_alone.ends_with(&reported), "{reported_alone}");
            assert_eq!(alone, "", "{}", case.display());
            assert_eq!(read["items"], serde_json::json!([]), "{}", case.display());
            for result in read["results"].as_array().unwrap() {
                assert!(
                    reported.contains(result["message"].as_str().unwrap()),
                    "{reported}"
                );
            }
            assert!(
                !format!("{answer}{reported}").contains("canary"),
                "{answer}{reported}"
            );
        }
    }
    answer
}

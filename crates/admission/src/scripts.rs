//! Scripts of customizations compile. Their results show when they run: `entourage interpret` tries them.

use entourage_interpreter::operations::Operation;
use entourage_model::problem::Problem;
use serde_json::Value;

use crate::request::Request;

/// The operations that can have a script, by their field in `spec.customizations`.
const FIELDS: &[(&str, Operation)] = &[
    ("retention", Operation::Retain),
    ("replicaResource", Operation::Replicas),
    ("componentResource", Operation::Components),
    ("replicaRevision", Operation::Revise),
    ("statusReflection", Operation::Reflect),
    ("statusAggregation", Operation::Aggregate),
    ("healthInterpretation", Operation::Health),
    ("dependencyInterpretation", Operation::References),
];

/// Each script compiles, if the webhook has an engine. Source: Karmada reference 6.1.
///
/// Cost: O(length of the scripts).
pub(super) fn compile(object: &Value, request: &Request<'_>, problems: &mut Vec<Problem>) {
    let Some(engine) = request.settings.scripts else {
        return;
    };
    for (field, operation) in FIELDS {
        let script = &object["spec"]["customizations"][*field]["luaScript"];
        if let Some(source) = script.as_str()
            && let Err(why) = engine.compile(request.name, *operation, source)
        {
            problems.push(Problem::new(
                format!("spec.customizations.{field}.luaScript"),
                why,
                "entourage interpret -f FILE --check tries it out",
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, sync::Arc};

    use entourage_api::config::ResourceInterpreterCustomization;
    use entourage_interpreter::{
        customized::{Engine, check},
        question::Rule,
    };
    use serde_json::{Map, json};

    use super::*;

    #[derive(Debug)]
    struct Refusing;

    impl Engine for Refusing {
        fn compile(&self, _: &str, _: Operation, source: &str) -> Result<Arc<dyn Rule>, String> {
            Err(source.to_owned())
        }
    }

    #[test]
    fn the_fields_are_those_of_the_type_each_with_its_operation() {
        let operations: BTreeSet<_> = FIELDS.iter().map(|(_, operation)| *operation).collect();
        assert_eq!(operations.len(), FIELDS.len());
        for (field, operation) in FIELDS {
            let given = Map::from_iter([((*field).to_owned(), json!({"luaScript": field}))]);
            let customization: ResourceInterpreterCustomization = serde_json::from_value(json!({
                "apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterCustomization",
                "metadata": {"name": "a"},
                "spec": {"target": {"apiVersion": "v1", "kind": "Pod"}, "customizations": given}}))
            .unwrap();
            let checked = check(&customization, &Refusing);
            let wanted = [(*operation, Err((*field).to_owned()))];
            assert_eq!(checked, wanted.into(), "{field}");
        }
    }
}

//! Converts the JSON of a message, of either contract, to the JSON of its response. No content is logged.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use entourage_admission::patch;
use entourage_api::work::AggregatedStatusItem;
use entourage_core::interpreter::{
    hook::{Contract, VERSIONS},
    operations::Operation,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Answered, Interpret, Refusal};

/// A valid message.
pub(super) struct Message {
    contract: Contract,
    api_version: String,
    operation: Operation,
    request: Request,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    uid: String,
    operation: String,
    object: Value,
    #[serde(default)]
    observed_object: Value,
    replicas: Option<i64>,
    #[serde(default)]
    aggregated_status: Option<Vec<AggregatedStatusItem>>,
}

/// The response.
pub(super) enum Reply {
    /// Success.
    Message(Value),
    /// The older contract has no field for it: the HTTP status reports it.
    Refusal(Refusal),
}

impl Message {
    /// # Errors
    /// The error in the body, for the sender, without any of its content.
    pub(super) fn read(body: &[u8]) -> Result<Self, String> {
        // The parser's own message may quote the body.
        let mut message: Value = serde_json::from_slice(body).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            format!(
                "the body is not JSON: {:?} error at line {line} column {column}",
                error.classify()
            )
        })?;
        let contracts = [Contract::Interpreter, Contract::Explorer];
        let contract = contracts
            .into_iter()
            .find(|each| message["kind"] == each.message());
        let api_version = message["apiVersion"].as_str().unwrap_or_default().to_owned();
        let is_spoken = VERSIONS
            .iter()
            .any(|version| api_version == format!("config.karmada.io/{version}"));
        let Some(contract) = contract.filter(|_| is_spoken) else {
            let kinds = contracts.map(Contract::message).join(" or ");
            let versions = VERSIONS.join(" or ");
            return Err(format!(
                "send a message of config.karmada.io in {versions}, of kind {kinds}"
            ));
        };
        let request = message["request"].take();
        let request: Request = serde_json::from_value(request)
            .map_err(|_| "the request lacks a uid, an operation or an object, or has one of another form")?;
        let operation = contract
            .operation(&request.operation)
            .ok_or_else(|| format!("the operation is none of {}", contract.message()))?;
        Ok(Self {
            contract,
            api_version,
            operation,
            request,
        })
    }

    /// Calls the interpreter and returns its response.
    pub(super) fn replied(self, interpret: &dyn Interpret) -> Reply {
        let (contract, uid) = (self.contract, self.request.uid.clone());
        let api_version = self.api_version.clone();
        let mut response = match (self.answered(interpret), contract) {
            (Ok(response), _) => response,
            (Err(refusal), Contract::Explorer) => return Reply::Refusal(refusal),
            (Err(refusal), Contract::Interpreter) => {
                json!({"successful": false, "status": {"code": refusal.code, "message": refusal.message}})
            }
        };
        response["uid"] = uid.into();
        if contract == Contract::Interpreter && response["successful"].is_null() {
            response["successful"] = true.into();
        }
        Reply::Message(json!({"apiVersion": api_version, "kind": contract.message(), "response": response}))
    }

    fn answered(self, interpret: &dyn Interpret) -> Answered<Value> {
        let Request {
            object,
            observed_object: live,
            replicas,
            aggregated_status: items,
            ..
        } = self.request;
        Ok(match self.operation {
            Operation::Replicas => {
                let (replicas, requirements) = interpret.replicas(&object)?;
                let mut response = json!({ "replicas": replicas });
                if let Some(requirements) = requirements {
                    response["replicaRequirements"] = json!(requirements);
                }
                response
            }
            Operation::Components => json!({"components": interpret.components(&object)?}),
            Operation::Revise => {
                let replicas = replicas.ok_or_else(|| Refusal::bad("the request has no replicas"))?;
                changed(&object, &interpret.revise_replicas(object.clone(), replicas)?)
            }
            Operation::Retain if live.is_null() => {
                return Err(Refusal::bad("the request has no observedObject"));
            }
            Operation::Retain => changed(&object, &interpret.retain(object.clone(), &live)?),
            Operation::Reflect => {
                let field = match self.contract {
                    Contract::Interpreter => "rawStatus",
                    Contract::Explorer => "status",
                };
                match interpret.status(&object)? {
                    Some(status) => json!({ field: status }),
                    None => json!({}),
                }
            }
            Operation::Aggregate => {
                let items = items.unwrap_or_default();
                changed(&object, &interpret.aggregate_status(object.clone(), &items)?)
            }
            Operation::Health => json!({"healthy": interpret.is_healthy(&object)?}),
            Operation::References => json!({"dependencies": interpret.dependencies(&object)?}),
            Operation::Prune => changed(&object, &interpret.prune(object.clone())?),
        })
    }
}

/// The patch from one object to the other, if they differ.
fn changed(before: &Value, after: &Value) -> Value {
    let patch = patch::between(before, after);
    if patch.is_empty() {
        return json!({});
    }
    json!({"patchType": "JSONPatch", "patch": STANDARD.encode(Value::Array(patch).to_string())})
}

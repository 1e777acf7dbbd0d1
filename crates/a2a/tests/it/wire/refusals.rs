//! Refusals in A2A's own words.

use serde_json::json;
use toolpost_a2a::wire::{
    A2aDialect, A2aRefusal, A2aRequest, ErrorCode, RequestId, answer, refused,
};

#[test]
fn every_code_has_its_number_status_and_reason() {
    let table: Vec<String> = ErrorCode::ALL
        .iter()
        .map(|code| {
            format!(
                "{} {} {} {}",
                code.number(),
                code.http_status(),
                code.grpc_status(),
                code.reason()
            )
        })
        .collect();
    insta::assert_snapshot!("codes", table.join("\n"));
}

#[test]
fn a_refusal_in_each_dialect() {
    let refusal =
        A2aRefusal::new(ErrorCode::TaskNotFound, "there is no task `t1`").fact("taskId", "t1");
    let id = A2aRequest::read(&json!({ "jsonrpc": "2.0", "id": "q1", "method": "tasks/get" }))
        .unwrap()
        .id;
    assert_eq!(
        refused(&id, &refusal, A2aDialect::V0_3),
        json!({ "jsonrpc": "2.0", "id": "q1", "error": {
            "code": -32001, "message": "there is no task `t1`", "data": { "taskId": "t1" } } })
    );
    let details = json!([{
        "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "TASK_NOT_FOUND", "domain": "a2a-protocol.org",
        "metadata": { "taskId": "t1" },
    }]);
    assert_eq!(
        refused(&id, &refusal, A2aDialect::V1_0),
        json!({ "jsonrpc": "2.0", "id": "q1", "error": {
            "code": -32001, "message": "there is no task `t1`", "data": details } })
    );
    assert_eq!(
        refusal.to_rest(),
        json!({ "error": {
            "code": 404, "status": "NOT_FOUND", "message": "there is no task `t1`", "details": details } })
    );
}

#[test]
fn a_refusal_without_facts_has_no_data_in_the_older_dialect() {
    let refusal = A2aRefusal::new(ErrorCode::Internal, "broken");
    assert_eq!(
        refusal.to_value(A2aDialect::V0_3),
        json!({ "code": -32603, "message": "broken" })
    );
}

#[test]
fn an_id_comes_back_as_it_came() {
    for id in [json!(1), json!(1.5), json!("q"), json!(null)] {
        let request =
            A2aRequest::read(&json!({ "jsonrpc": "2.0", "id": id, "method": "m" })).unwrap();
        assert_eq!(answer(&request.id, json!({}))["id"], id);
    }
    assert_eq!(
        answer(&RequestId::NONE, json!({})),
        json!({ "jsonrpc": "2.0", "id": null, "result": {} })
    );
}

#[test]
fn what_is_no_request_is_refused_under_its_id() {
    let check = |value: serde_json::Value, id: serde_json::Value, code: ErrorCode| {
        let (refused_id, refusal) = A2aRequest::read(&value).unwrap_err();
        assert_eq!(
            (answer(&refused_id, json!(0))["id"].clone(), refusal.code),
            (id, code),
            "{value}"
        );
    };
    check(json!([]), json!(null), ErrorCode::InvalidRequest);
    check(json!("x"), json!(null), ErrorCode::InvalidRequest);
    check(
        json!({ "id": 4, "method": "m" }),
        json!(4),
        ErrorCode::InvalidRequest,
    );
    check(
        json!({ "jsonrpc": "2.0", "id": 4 }),
        json!(4),
        ErrorCode::InvalidRequest,
    );
    check(
        json!({ "jsonrpc": "2.0", "id": {}, "method": "m" }),
        json!(null),
        ErrorCode::InvalidRequest,
    );
    check(
        json!({ "jsonrpc": "2.0", "id": "x".repeat(257), "method": "m" }),
        json!(null),
        ErrorCode::InvalidRequest,
    );
    check(
        json!({ "jsonrpc": "2.0", "id": 4, "method": "m", "params": [1] }),
        json!(4),
        ErrorCode::InvalidParams,
    );
}

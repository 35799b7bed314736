//! Credits: each verification costs one, none is lost or created, and the statement shows every entry.

use futures_util::future::join_all;
use serde_json::{Value, json};

use sakshi_kit::node::TestNode;

/// Checks that a statement adds up, entry by entry, and returns its final balance.
fn checked_balance(statement: &[Value]) -> i64 {
    let mut balance = 0;
    for (index, entry) in statement.iter().enumerate() {
        let amount = entry["amount"].as_i64().expect("an amount");
        balance += match entry["kind"].as_str() {
            Some("grant") => amount,
            Some("debit") => -amount,
            Some("adjust") => amount,
            other => panic!("{other:?} is not a kind of entry"),
        };
        assert_eq!(entry["balance_after"], balance, "{entry}");
        assert!(balance >= 0, "{entry}");
        if index > 0 {
            assert!(entry["seq"].as_u64() > statement[index - 1]["seq"].as_u64(), "{entry}");
        }
    }
    balance
}

#[tokio::test]
async fn twenty_five_credits_pay_for_exactly_twenty_five_of_eighty_inits() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(25).await;
    let body = json!({"claims": ["name"], "channel": "qr"});
    let answers = join_all((0..80).map(|_| backend.init(&body))).await;
    let opened_txns: Vec<String> = answers
        .iter()
        .filter(|answer| answer.status == 200)
        .map(|answer| answer.json()["txnId"].as_str().unwrap().to_owned())
        .collect();
    let refused = answers.iter().filter(|answer| answer.status == 402).count();
    assert_eq!((opened_txns.len(), refused), (25, 55));

    let operator = node.operator();
    let statement = operator.statement(&backend.client).await;
    assert_eq!((checked_balance(&statement), operator.balance(&backend.client).await), (0, 0));
    assert_eq!(statement.len(), 26, "one grant and 25 debits");
    for txn in &opened_txns {
        let debits =
            statement.iter().filter(|entry| entry["reference"].as_str().unwrap().contains(txn.as_str())).count();
        assert_eq!(debits, 1, "{txn}");
        assert!(backend.is_pending(txn).await);
    }
}

#[tokio::test]
async fn a_grant_counts_once_per_reference() {
    let node = TestNode::start().await;
    let (backend, operator) = (node.backend_with_credits(0).await, node.operator());
    let path = format!("/admin/v1/clients/{}/credits", backend.client);
    let grant = json!({"amount": 10, "reference": "invoice-1"});
    let answers = join_all((0..8).map(|_| operator.post(&path, &grant))).await;
    assert!(answers.iter().all(|answer| answer.ok()["balance"] == 10));
    assert_eq!(
        operator.post(&path, &json!({"amount": 11, "reference": "invoice-1"})).await.refusal(409),
        "reference_reused"
    );
    assert_eq!(operator.post(&path, &json!({"amount": 5, "reference": "invoice-2"})).await.ok()["balance"], 15);
    assert_eq!(checked_balance(&operator.statement(&backend.client).await), 15);
}

#[tokio::test]
async fn an_adjustment_never_takes_a_balance_below_zero() {
    let node = TestNode::start().await;
    let (backend, operator) = (node.backend_with_credits(3).await, node.operator());
    let path = format!("/admin/v1/clients/{}/credits", backend.client);
    let adjust = |amount: i64, reference: &str| json!({"kind": "adjust", "amount": amount, "reference": reference});
    assert_eq!(operator.post(&path, &adjust(-2, "a")).await.ok()["balance"], 1);
    let refused = operator.post(&path, &adjust(-2, "b")).await;
    assert!(matches!(refused.status, 402 | 409), "{}", refused.text);
    refused.refusal(refused.status);
    assert_eq!(operator.post(&path, &adjust(-1, "c")).await.ok()["balance"], 0);
    for bad in [
        json!({"amount": 0, "reference": "x"}),
        json!({"amount": -5, "reference": "x"}),
        json!({"amount": 1.5, "reference": "x"}),
    ] {
        assert_eq!(operator.post(&path, &bad).await.refused_fields(), ["amount"], "{bad}");
    }
    assert_eq!(operator.post(&path, &json!({"amount": 1})).await.refused_fields(), ["reference"]);
    assert_eq!(checked_balance(&operator.statement(&backend.client).await), 0);
}

#[tokio::test]
async fn clients_do_not_spend_each_others_credits() {
    let node = TestNode::start().await;
    let (poor, rich) = (node.backend_with_credits(1).await, node.backend_with_credits(100).await);
    let body = json!({"claims": ["name"], "channel": "qr"});
    let (poor_answers, rich_answers) =
        tokio::join!(join_all((0..20).map(|_| poor.init(&body))), join_all((0..20).map(|_| rich.init(&body))));
    assert_eq!(poor_answers.iter().filter(|answer| answer.status == 200).count(), 1);
    assert!(rich_answers.iter().all(|answer| answer.status == 200));
    let operator = node.operator();
    assert_eq!((operator.balance(&poor.client).await, operator.balance(&rich.client).await), (0, 80));
}

#[tokio::test]
async fn a_statement_is_paged_in_order() {
    let node = TestNode::start().await;
    let (backend, operator) = (node.backend_with_credits(10).await, node.operator());
    for _ in 0..10 {
        backend.open(&["name"]).await;
    }
    let page = |query: &str| format!("/admin/v1/clients/{}/statement?{query}", backend.client);
    let first = operator.get(&page("page=1&page_size=4")).await.ok();
    assert_eq!((&first["page"], &first["page_size"], &first["total"]), (&json!(1), &json!(4), &json!(11)));
    let third = operator.get(&page("page=3&page_size=4")).await.ok();
    assert_eq!(third["entries"].as_array().unwrap().len(), 3);
    assert_eq!(operator.get(&page("page=9&page_size=4")).await.ok()["entries"], json!([]));
    for (query, field) in [("page=0", "page"), ("page_size=101", "page_size"), ("colour=red", "colour")] {
        assert_eq!(operator.get(&page(query)).await.refused_fields(), [field], "{query}");
    }
    assert_eq!(checked_balance(&operator.statement(&backend.client).await), 0);
}

//! Credits: balance and statement, for clients and the operator.

use crate::in_process::InProcessNode;
use serde_json::json;

#[actix_rt::test]
async fn client_and_operator_read_the_same_balance_and_statement() {
    let node = InProcessNode::start().await;
    assert_eq!(node.get("/api/v1/credits").await, (200, json!({ "balance": 1_000 })));
    let init = json!({ "claims": ["name"], "channel": "qr" });
    let (_, opened) = node.post("/api/v1/nationalid-ovse/init", &init).await;
    assert_eq!(node.get("/api/v1/credits").await.1, json!({ "balance": 999 }));

    let (status, page) = node.get("/api/v1/credits/statement?page=2&page_size=1").await;
    let mut entry = page["entries"][0].clone();
    assert!(entry["at"].take().is_string());
    let debit = json!({ "seq": 2, "kind": "debit", "amount": 1, "balance_after": 999, "reference": opened["txnId"],
        "at": null });
    assert_eq!((status, &page["page"], &page["page_size"], &page["total"]), (200, &json!(2), &json!(1), &json!(2)));
    assert_eq!((entry, page["entries"].as_array().map(Vec::len)), (debit, Some(1)));

    let statement = node.get("/api/v1/credits/statement").await.1;
    let client = node.first.client.clone();
    assert_eq!(node.get_as_operator(&format!("/admin/v1/clients/{client}/statement")).await, (200, statement));
    assert_eq!(
        node.get_as_operator(&format!("/admin/v1/clients/{client}/credits")).await,
        (200, json!({ "balance": 999 }))
    );
    node.stop().await;
}

#[actix_rt::test]
async fn credits_are_private_and_an_invalid_page_gets_400() {
    let node = InProcessNode::start().await;
    for path in ["/api/v1/credits", "/api/v1/credits/statement"] {
        let (status, response) = node.get_unsigned(path).await;
        assert_eq!((status, &response["code"]), (401, &json!("unauthorized")), "{path}");
    }
    for (path, field) in [("/api/v1/credits?page=1", "page"), ("/api/v1/credits/statement?page_size=101", "page_size")]
    {
        let (status, response) = node.get(path).await;
        assert_eq!((status, &response["errors"][0]["field"]), (400, &json!(field)), "{path}");
    }
    node.stop().await;
}

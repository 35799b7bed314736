//! Orders whose files are announced, or sent without the last byte, by one tenant beside another.

use sakshi_kit::backend::Backend;
use sakshi_kit::flow::Flow;
use sakshi_kit::flow_fixture::FlowFixture;
use sakshi_kit::node::TestNode;

use sakshi_kit::raw::Raw;

/// Bytes of an order with the largest file.
pub(crate) const ORDER_BYTES_MAX: usize = 14_000_000;
/// Withheld orders of each kind, and orders of the neighbour beside them.
const WITHHELD: usize = 6;
const ORDERS: usize = 4;

/// Sends the head of an order on behalf of a tenant, and a part of its body.
pub(crate) async fn announce_order(node: &TestNode, backend: &Backend, body: &[u8]) -> Raw {
    let (key, app) = (&backend.key, &backend.app);
    let headers = format!(
        "x-api-key: {key}\r\nx-api-app-id: {app}\r\ncontent-type: application/json\r\ncontent-length: {ORDER_BYTES_MAX}"
    );
    Raw::post(node, "/api/v1/esign/request", &headers, body).await
}

#[tokio::test]
async fn files_withheld_by_one_tenant_block_no_order_of_another() {
    let fixture = FlowFixture::with_webhooks().await;
    let neighbour = fixture.node.backend_with_credits(0).await;
    let (incomplete, mut connections) = (vec![b' '; ORDER_BYTES_MAX - 1], Vec::new());
    for body in [&b"{"[..], &incomplete] {
        for _ in 0..WITHHELD {
            connections.push(announce_order(&fixture.node, &fixture.backend, body).await);
        }
        for _ in 0..ORDERS {
            neighbour.open_flow(Flow::Esign).await;
        }
    }
}

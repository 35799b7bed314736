//! Orders whose files are announced, or sent without the last byte, by one tenant beside another.

use sakshi_kit::backend::Backend;
use sakshi_kit::flow::Flow;
use sakshi_kit::flow_fixture::FlowFixture;
use sakshi_kit::node::TestNode;

use sakshi_kit::raw::Raw;

/// Bytes of the largest order, including everything besides its file.
pub(crate) const LARGEST: usize = 14_000_000;
const ORDERS: usize = 4;

/// Sends the head of an order in the tenant's name, and the given part of its body.
pub(crate) async fn begin(node: &TestNode, backend: &Backend, body: &[u8]) -> Raw {
    let (key, app) = (&backend.key, &backend.app);
    let headers = format!(
        "x-api-key: {key}\r\nx-api-app-id: {app}\r\ncontent-type: application/json\r\ncontent-length: {LARGEST}"
    );
    Raw::post(node, "/api/v1/esign/request", &headers, body).await
}

#[tokio::test]
async fn files_that_one_tenant_withholds_refuse_no_order_of_another() {
    let fixture = FlowFixture::with_webhooks().await;
    let neighbour = fixture.node.backend(0).await;
    let (most, mut held) = (vec![b' '; LARGEST - 1], Vec::new());
    for body in [&b"{"[..], &most] {
        for _ in 0..6 {
            held.push(begin(&fixture.node, &fixture.backend, body).await);
        }
        for _ in 0..ORDERS {
            neighbour.open_flow(Flow::Esign).await;
        }
    }
}

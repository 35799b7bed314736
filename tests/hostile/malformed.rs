//! Malformed chunks of request bodies: each is refused.

use sakshi_kit::node::TestNode;

use sakshi_kit::raw::Raw;

/// Headers of a body in chunks.
pub(crate) const CHUNKED: &str = "content-type: application/json\r\ntransfer-encoding: chunked";

/// Chunks with a wrong size, a wrong line end or a wrong length.
pub(crate) const CHUNKS: [&str; 6] =
    ["zz\r\n{}\r\n0\r\n\r\n", "-1\r\n{}\r\n", "2;\n{}\r\n", "2\r\n{}x\r\n0\r\n\r\n", "fffffffffffffffff\r\n", "\r\n"];

#[tokio::test]
async fn a_malformed_chunk_is_refused_as_a_client_error() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(1).await;
    let opened = backend.open(&["name"]).await;
    let (key, app) = (&backend.key, &backend.app);
    let headers_with_key = format!("x-api-key: {key}\r\nx-api-app-id: {app}\r\n{CHUNKED}");
    let requests = [
        (opened.callback_path(), CHUNKED.to_owned()),
        ("/api/v1/nationalid-ovse/init".to_owned(), headers_with_key),
        ("/api/ping".to_owned(), CHUNKED.to_owned()),
        ("/nowhere".to_owned(), CHUNKED.to_owned()),
    ];
    let mut wrong_statuses = Vec::new();
    for (path, headers) in requests {
        for chunk in CHUNKS {
            let mut raw = Raw::post(&node, &path, &headers, chunk.as_bytes()).await;
            let status = raw.status().await;
            if !(400..=405).contains(&status) {
                wrong_statuses.push((path.clone(), chunk, status));
            }
        }
    }
    assert!(wrong_statuses.is_empty(), "{wrong_statuses:?}");
}

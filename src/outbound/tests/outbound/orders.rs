//! Orders to upstreams: the requests, valid answers, and failures.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::parsed::parse_request;
use crate::receiver::{LONG_TIMEOUT, read_request, start_receiver};
use sakshi_domain::checks::{Check, CheckQuery};
use sakshi_domain::flow::header::FlowHeader;
use sakshi_domain::request_id::RequestId;
use sakshi_domain::time::Timestamp;
use sakshi_outbound::Egress;
use sakshi_outbound::upstream::{
    Upstream, UpstreamClient, UpstreamError, UpstreamOptions, check, doclocker, esign, estamp, wealth,
};
use sakshi_wire::doclocker::DocLockerInitRequest;
use sakshi_wire::esign::{EsignRequest, OpenedEsign};
use sakshi_wire::estamp::EStampInitRequest;
use sakshi_wire::wealth::WealthConsentRequest;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use url::Url;

const FLOW: &str = "3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f11";
const TOKEN: &str = "a-token-of-the-upstreams-own";

fn locker_request(kind: &str) -> DocLockerInitRequest {
    parse_request(&json!({ "docs": [kind], "consent": "Y", "consent_text": "I agree." }))
}

fn e_stamp_request() -> EStampInitRequest {
    parse_request(
        &json!({ "apiType": "PhysicalEStamp", "document": { "documentName": "lease.pdf", "base64FileData": "QUJD" },
        "signatoriesInfo": [{ "name": "Asha", "emailID": "a@example.com", "signType": "wet" }] }),
    )
}

fn consent_request() -> WealthConsentRequest {
    parse_request(&json!({ "consent": "Y", "consent_text": "I agree." }))
}

fn header() -> FlowHeader {
    FlowHeader {
        id: FLOW.parse().unwrap(),
        client: "cl_1".parse().unwrap(),
        app: "app_1".parse().unwrap(),
        opened_at: Timestamp::from_millis(0),
        request_id: RequestId::parse("req-1").unwrap(),
        retention: sakshi_domain::retention::ClientRetention::default(),
    }
}

/// Builds a document with this number of signers, and opens its flow.
fn esign_document(signers: usize) -> OpenedEsign {
    let signer = |index: usize| {
        json!({ "signerName": format!("Signer {index}"), "signerRefId": (index == 0).then_some("borrower"),
            "invitationExpireTimeStamp": "1970-01-02T00:00:00Z" })
    };
    let signers: Vec<Value> = (0..signers).map(signer).collect();
    let document = json!({ "name": "Loan", "content": "QUJD" });
    let body = json!({ "documentInfo": document, "signerInfo": signers, "documentReferenceId": "loan-7" });
    parse_request::<EsignRequest>(&body).open(header())
}

fn upstream(url: &str, total_timeout: Duration, in_flight_max: usize) -> Upstream {
    let options = UpstreamOptions {
        token: TOKEN.to_owned(),
        connect_timeout: LONG_TIMEOUT,
        total_timeout,
        tls: false,
        egress: Egress::default(),
    };
    UpstreamClient::new(&options).unwrap().upstream_at(Url::parse(url).unwrap(), in_flight_max)
}

/// Starts an upstream that records what it receives and answers with `answer`.
async fn start_upstream_answering(answer: Vec<u8>) -> (Upstream, Arc<Mutex<Vec<String>>>) {
    let (received, answer) = (Arc::new(Mutex::new(Vec::new())), Arc::new(answer));
    let record = Arc::clone(&received);
    let address = start_receiver(move |mut stream| {
        let (record, answer) = (Arc::clone(&record), Arc::clone(&answer));
        async move {
            if let Some(request) = read_request(&mut stream).await {
                record.lock().unwrap().push(request);
                let _ = stream.write_all(&answer).await;
            }
        }
    });
    (upstream(&format!("http://{}/orders?of=flows", address.await), LONG_TIMEOUT, 1), received)
}

fn ok_response(body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    [format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len()).as_bytes(), body].concat()
}

/// Checks that one request was received, and its head. Returns its body.
fn read_only_order(received: &Mutex<Vec<String>>) -> Value {
    let requests = received.lock().unwrap();
    assert_eq!(requests.len(), 1, "an order is sent once");
    let (head, body) = requests[0].split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /orders?of=flows HTTP/1.1\r\n"), "{head}");
    for header in [&format!("authorization: Bearer {TOKEN}"), "content-type: application/json"] {
        assert!(head.lines().any(|line| line == header), "{header} in {head}");
    }
    serde_json::from_str(body).unwrap()
}

/// Orders signatures from an upstream whose answer has one entry, made by `entry`, for each signer.
async fn order_pages(
    document: OpenedEsign,
    entry: impl Fn(&str, usize) -> Value,
) -> Result<Vec<String>, UpstreamError> {
    let ids: Vec<String> = document.latest.signer_info.iter().map(|signer| signer.signer_id.to_string()).collect();
    let entries: Vec<Value> = ids.iter().enumerate().map(|(index, id)| entry(id, index)).collect();
    let (upstream, _) = start_upstream_answering(ok_response(json!({ "signerInfo": entries }).to_string())).await;
    let pages = esign::order(&upstream, &header(), document.document, &document.latest).await?;
    Ok(pages.iter().map(|page| page.as_str().to_owned()).collect())
}

#[tokio::test]
async fn an_order_for_signatures_has_the_document_and_its_signers() {
    let document = esign_document(2);
    let ids: Vec<String> = document.latest.signer_info.iter().map(|signer| signer.signer_id.to_string()).collect();
    let answer = json!({ "signerInfo": [{ "signerId": ids[1], "signingUrl": "https://sign.example/b", "more": [] },
        { "signerId": ids[0], "signingUrl": "https://sign.example/a" }], "more": {} });
    let (upstream, received) = start_upstream_answering(ok_response(answer.to_string())).await;
    let pages = esign::order(&upstream, &header(), document.document, &document.latest).await.unwrap();
    assert_eq!(
        pages.iter().map(|page| page.as_str()).collect::<Vec<_>>(),
        ["https://sign.example/a", "https://sign.example/b"]
    );
    let until = "1970-01-02T00:00:00.000Z";
    assert_eq!(
        read_only_order(&received),
        json!({ "documentId": FLOW, "app_id": "app_1", "request_id": "req-1", "documentReferenceId": "loan-7",
            "document": { "name": "Loan", "content": "QUJD" },
            "signerInfo": [
                { "signerId": ids[0], "signerRefId": "borrower", "signerName": "Signer 0",
                    "invitationExpireTimeStamp": until },
                { "signerId": ids[1], "signerName": "Signer 1", "invitationExpireTimeStamp": until },
            ] })
    );
}

#[tokio::test]
async fn an_answer_must_name_one_page_for_every_signer() {
    let page = |id: &str| json!({ "signerId": id, "signingUrl": "https://sign.example/x" });
    assert_eq!(order_pages(esign_document(3), |id, _| page(id)).await.unwrap().len(), 3);
    let unknown_signer =
        order_pages(esign_document(2), |id, index| page(if index == 0 { id } else { "somebody" })).await;
    let script =
        order_pages(esign_document(1), |id, _| json!({ "signerId": id, "signingUrl": "javascript:alert(1)" })).await;
    for result in [unknown_signer, script] {
        assert!(matches!(result, Err(UpstreamError::Unreadable(_))), "{result:?}");
    }
    let OpenedEsign { document, latest, .. } = esign_document(2);
    let first = latest.signer_info[0].signer_id.to_string();
    let (upstream, _) =
        start_upstream_answering(ok_response(json!({ "signerInfo": [page(&first), page(&first)] }).to_string())).await;
    let repeated_signer = esign::order(&upstream, &header(), document, &latest).await;
    assert_eq!(repeated_signer.unwrap_err().to_string(), "the upstream's answer does not name every signer once");
}

#[tokio::test]
async fn an_order_for_locker_documents_has_the_documents_and_the_consent() {
    let (upstream, received) =
        start_upstream_answering(ok_response(r#"{"requestUrl": "https://locker.example/c"}"#)).await;
    let page = doclocker::order(&upstream, &header(), &locker_request("driving_licence")).await.unwrap();
    assert_eq!(page.as_str(), "https://locker.example/c");
    let expected = json!({ "transactionId": FLOW, "app_id": "app_1", "request_id": "req-1", "docs": ["driving_licence"],
        "consent_text": "I agree." });
    assert_eq!(read_only_order(&received), expected);
}

#[tokio::test]
async fn an_order_for_an_e_stamp_has_its_kind_document_and_signatories() {
    let (upstream, received) = start_upstream_answering(ok_response("{}")).await;
    estamp::order(&upstream, &header(), e_stamp_request()).await.unwrap();
    let expected = json!({ "eStampId": FLOW, "app_id": "app_1", "request_id": "req-1", "apiType": "PhysicalEStamp",
        "document": { "documentName": "lease.pdf", "base64FileData": "QUJD" },
        "signatoriesInfo": [{ "name": "Asha", "emailID": "a@example.com", "signType": "wet" }] });
    assert_eq!(read_only_order(&received), expected);
}

#[tokio::test]
async fn the_answer_to_an_order_for_a_consent_has_a_handle_and_maybe_a_page() {
    let (upstream, received) =
        start_upstream_answering(ok_response(r#"{"consentHandle": "h-1", "requestUrl": "https://wealth.example/c"}"#))
            .await;
    let ordered = wealth::order(&upstream, &header(), &consent_request().consent.0).await.unwrap();
    assert_eq!((ordered.handle.as_str(), ordered.page.unwrap().as_str()), ("h-1", "https://wealth.example/c"));
    assert_eq!(
        read_only_order(&received),
        json!({ "uniqueIdentifier": FLOW, "app_id": "app_1", "request_id": "req-1", "consent_text": "I agree." })
    );
    let (upstream, _) = start_upstream_answering(ok_response(r#"{"consentHandle": "h-1"}"#)).await;
    assert_eq!(wealth::order(&upstream, &header(), &consent_request().consent.0).await.unwrap().page, None);
    for handle in ["", "two words", &"h".repeat(129)] {
        let (upstream, _) = start_upstream_answering(ok_response(json!({ "consentHandle": handle }).to_string())).await;
        assert!(
            matches!(
                wealth::order(&upstream, &header(), &consent_request().consent.0).await,
                Err(UpstreamError::Unreadable(_))
            ),
            "{handle}"
        );
    }
}

#[tokio::test]
async fn an_answer_without_a_readable_200_is_an_error_and_not_repeated() {
    let redirect =
        "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:1/elsewhere\r\ncontent-length: 0\r\n\r\n";
    let spaces = " ".repeat(64 * 1_024);
    let chunked = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n10001\r\n{{{spaces}}}\r\n0\r\n\r\n");
    let not_json = UpstreamError::Unreadable("is not the expected JSON");
    for (answer, expected) in [
        (redirect.into(), UpstreamError::Refused(307)),
        ("HTTP/1.1 202 Accepted\r\ncontent-length: 2\r\n\r\n{}".into(), UpstreamError::Refused(202)),
        ("HTTP/1.1 204 No Content\r\n\r\n".into(), UpstreamError::Refused(204)),
        ("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n".into(), UpstreamError::Refused(503)),
        (ok_response(""), not_json),
        (ok_response("[]"), not_json),
        (ok_response("{\"requestUrl\": 7}"), not_json),
        (ok_response(format!("{{{spaces}}}")), UpstreamError::Unreadable("is too long")),
        (chunked.into_bytes(), UpstreamError::Unreadable("is too long")),
        ("HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{".into(), UpstreamError::Unreachable),
        (Vec::new(), UpstreamError::Unreachable),
    ] {
        let (upstream, received) = start_upstream_answering(answer).await;
        let error = doclocker::order(&upstream, &header(), &locker_request("x")).await.unwrap_err();
        assert_eq!((error, received.lock().unwrap().len()), (expected, 1));
    }
}

/// Makes orders of all five kinds that get this answer. In the answer to the order for signatures, the signer's id
/// replaces `ID`.
async fn order_all_kinds(answer: &[u8]) -> [Result<(), UpstreamError>; 5] {
    const PLACEHOLDER: &[u8] = b"ID";
    let document = esign_document(1);
    let id = document.latest.signer_info[0].signer_id.to_string();
    let position = answer.windows(PLACEHOLDER.len()).position(|window| window == PLACEHOLDER);
    let answer_with_id = match position {
        Some(start) => [&answer[..start], id.as_bytes(), &answer[start + PLACEHOLDER.len()..]].concat(),
        None => answer.to_vec(),
    };
    let (esign_upstream, _) = start_upstream_answering(ok_response(&answer_with_id)).await;
    let (other, received) = start_upstream_answering(ok_response(answer)).await;
    let ifsc = Check::named("ifsc").unwrap();
    let branch = CheckQuery {
        check: ifsc,
        numbers: vec![ifsc.numbers[0].parse("EXMP0001234").unwrap()],
        consent: None,
        compared: vec![],
    };
    let results = [
        esign::order(&esign_upstream, &header(), document.document, &document.latest).await.map(drop),
        doclocker::order(&other, &header(), &locker_request("x")).await.map(drop),
        estamp::order(&other, &header(), e_stamp_request()).await,
        wealth::order(&other, &header(), &consent_request().consent.0).await.map(drop),
        check::verify(&other, &header().client, &branch).await.map(drop),
    ];
    assert_eq!(received.lock().unwrap().len(), 4, "each order is sent once");
    results
}

#[tokio::test]
async fn an_answer_must_be_an_object_and_so_must_each_of_its_signers() {
    let entry = r#"{"signerId": "ID", "signingUrl": "https://a/"}"#;
    let answer_with_signer = |signer: &str| {
        format!(
            r#"{{"signerInfo": [{signer}], "requestUrl": "https://a/",
            "consentHandle": "h", "status": "valid", "more": ["x"]}}"#
        )
    };
    assert_eq!(order_all_kinds(answer_with_signer(entry).as_bytes()).await, [Ok(()); 5]);
    let not_json = UpstreamError::Unreadable("is not the expected JSON");
    let signers = format!("[[{entry}]]");
    for answer in [
        "[]",
        r#"["https://a/"]"#,
        r#"["handle", "https://a/"]"#,
        r#"["valid", "individual", true, true, "y"]"#,
        &signers,
        "null",
        "\"x\"",
        "7",
    ] {
        assert_eq!(order_all_kinds(answer.as_bytes()).await, [Err(not_json); 5], "{answer}");
    }
    let signer_as_array = order_all_kinds(answer_with_signer(r#"["ID", "https://a/"]"#).as_bytes()).await;
    assert_eq!(signer_as_array, [Err(not_json), Ok(()), Ok(()), Ok(()), Ok(())]);
    let repeated_members = answer_with_signer(entry).replace(
        r#""more""#,
        r#""signerInfo": [], "requestUrl": "https://b/", "consentHandle": "i", "status": "invalid", "more""#,
    );
    assert_eq!(
        order_all_kinds(repeated_members.as_bytes()).await,
        [Err(not_json), Err(not_json), Ok(()), Err(not_json), Err(not_json)]
    );
}

#[tokio::test]
async fn an_answer_that_is_not_utf_8_is_unreadable_even_if_it_has_no_members() {
    let readable = r#"{"signerInfo": [{"signerId": "ID", "signingUrl": "https://a/"}], "requestUrl": "https://a/",
        "consentHandle": "h", "status": "valid", "more": "~"}"#;
    assert_eq!(order_all_kinds(readable.as_bytes()).await, [Ok(()); 5]);
    let broken: Vec<u8> = readable.bytes().map(|byte| if byte == b'~' { 0xff } else { byte }).collect();
    assert_eq!(order_all_kinds(&broken).await, [Err(UpstreamError::Unreadable("is not in UTF-8")); 5]);
}

#[tokio::test]
async fn a_slow_upstream_times_out_and_a_missing_one_is_unreachable() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let dripping = start_receiver(|mut stream| async move {
        read_request(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n").await;
        while stream.write_all(b" ").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let (silent, dripping) = (silent.local_addr().unwrap(), dripping.await);
    for address in [silent, dripping] {
        let began = Instant::now();
        let slow = upstream(&format!("http://{address}/"), Duration::from_millis(200), 1);
        assert_eq!(estamp::order(&slow, &header(), e_stamp_request()).await, Err(UpstreamError::TimedOut));
        assert!(began.elapsed() < Duration::from_secs(2));
    }
    let unbound = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let missing = upstream(&format!("http://{unbound}/"), LONG_TIMEOUT, 1);
    assert_eq!(estamp::order(&missing, &header(), e_stamp_request()).await, Err(UpstreamError::Unreachable));
}

/// Starts an upstream that answers all orders that it has, on a signal. Also returns the sender of the signal, and the
/// number of orders that have arrived.
async fn start_hanging_upstream(in_flight_max: usize) -> (Upstream, tokio::sync::watch::Sender<()>, Arc<AtomicUsize>) {
    let (release, signal) = tokio::sync::watch::channel(());
    let received = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&received);
    let address = start_receiver(move |mut stream| {
        let (mut signal, counter) = (signal.clone(), Arc::clone(&counter));
        async move {
            if read_request(&mut stream).await.is_some() {
                counter.fetch_add(1, Ordering::SeqCst);
                let _ = signal.changed().await;
                let _ = stream.write_all(&ok_response("{}")).await;
            }
        }
    });
    (upstream(&format!("http://{}/", address.await), LONG_TIMEOUT, in_flight_max), release, received)
}

#[tokio::test]
async fn hanging_orders_of_a_client_leave_slots_to_others() {
    let (upstream, release, received) = start_hanging_upstream(4).await;
    let other_client = FlowHeader { client: "cl_2".parse().unwrap(), ..header() };
    let order = |header: FlowHeader| {
        let upstream = upstream.clone();
        tokio::spawn(async move { estamp::order(&upstream, &header, e_stamp_request()).await })
    };
    let hanging: Vec<_> = (0..3).map(|_| order(header())).collect();
    while received.load(Ordering::SeqCst) < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let other = order(other_client);
    while received.load(Ordering::SeqCst) < 3 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    release.send(()).unwrap();
    assert_eq!(other.await.unwrap(), Ok(()));
    for order in hanging {
        // The third order was sent when a slot became free, and hangs until this signal.
        let _ = release.send(());
        assert_eq!(order.await.unwrap(), Ok(()));
    }
}

#[tokio::test]
async fn an_order_beyond_the_concurrency_limit_is_not_sent() {
    let (upstream, release, received) = start_hanging_upstream(1).await;
    let first = tokio::spawn({
        let upstream = upstream.clone();
        async move { estamp::order(&upstream, &header(), e_stamp_request()).await }
    });
    tokio::task::yield_now().await;
    assert_eq!(estamp::order(&upstream, &header(), e_stamp_request()).await, Err(UpstreamError::Busy));
    assert_eq!((received.load(Ordering::SeqCst), upstream.recent()), (1, [0, 0]), "it failed at this node");
    release.send(()).unwrap();
    assert_eq!(first.await.unwrap(), Ok(()));
    drop(release);
    assert_eq!(estamp::order(&upstream, &header(), e_stamp_request()).await, Ok(()));
}

#[test]
fn debug_output_has_neither_the_token_nor_the_path_of_an_upstream() {
    let upstream = upstream("https://u.example/secret-path?key=secret-key", LONG_TIMEOUT, 1);
    let options = UpstreamOptions {
        token: TOKEN.to_owned(),
        connect_timeout: LONG_TIMEOUT,
        total_timeout: LONG_TIMEOUT,
        tls: false,
        egress: Egress::default(),
    };
    let debug_output = format!("{upstream:?} {options:?} {:?}", UpstreamClient::new(&options).unwrap());
    assert!(
        !debug_output.contains("secret") && !debug_output.contains(TOKEN) && debug_output.contains("https://u.example"),
        "{debug_output}"
    );
    assert!(UpstreamClient::new(&UpstreamOptions { token: "two\nlines".to_owned(), ..options }).is_err());
}

//! The upstreams, and a service that sends orders and receives reports.

use std::sync::Arc;
use std::time::Duration;

use actix_web::App;
use actix_web::body::to_bytes;
use actix_web::dev::ServiceResponse;
use actix_web::http::header::AUTHORIZATION;
use actix_web::test::{TestRequest, call_service, init_service};
use actix_web::web::{Data, PayloadConfig};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sakshi_domain::clock::{Clock as _, ManualClock};
use sakshi_domain::flow::doclocker::DocLockerFlow;
use sakshi_domain::flow::esign::{EsignFlow, EsignPending, EsignTerms, SignerState};
use sakshi_domain::flow::estamp::{EStampFlow, EStampKind, EStampTerms};
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::flow_state::FlowState;
use sakshi_domain::flow::header::FlowHeader;
use sakshi_domain::flow::report_kind::ReportKind;
use sakshi_domain::flow::statuses::SigningStatus;
use sakshi_domain::flow::text::{ForeignId, Text};
use sakshi_domain::flow::wealth_consent::{WealthConsent, WealthTerms};
use sakshi_domain::ids::{AppId, ClientId};
use sakshi_domain::limits::INVITATION_DEFAULT;
use sakshi_domain::request_id::RequestId;
use sakshi_domain::time::Timestamp;
use sakshi_sandbox::upstreams::{SandboxUpstreams, SandboxUpstreamsOptions, configure_orders, configure_pages};
use serde_json::{Value, json};

use super::service::Service;

pub(crate) const TOKEN: &str = "sandbox-upstream-token-never-in-production";
pub(crate) const CONNECTOR_TOKEN: &str = "sandbox-connector-token-never-in-production";
const PUBLIC_BASE: &str = "https://svc.example/under";

/// The sandbox upstreams, and a service that has flows at them.
pub(crate) struct Scene {
    pub(crate) service: Service,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) state: Data<SandboxUpstreams>,
    pub(crate) app: AppId,
    client: ClientId,
}

impl Scene {
    pub(crate) async fn new() -> Self {
        let service = Service::start().await;
        let clock = Arc::new(ManualClock::starting_at(Timestamp::parse_iso8601("2026-01-31T09:30:00Z").unwrap()));
        let state = Data::new(SandboxUpstreams::new(options(&service.base, &clock)).unwrap());
        Self { service, clock, state, app: AppId::generate(), client: ClientId::generate() }
    }

    /// Returns the header of a new flow, which neither side knows yet.
    pub(crate) fn new_flow_header(&self) -> FlowHeader {
        FlowHeader {
            id: FlowId::generate(self.client.partition(), 7),
            client: self.client.clone(),
            app: self.app.clone(),
            opened_at: self.clock.now(),
            request_id: RequestId::mint(),
            retention: sakshi_domain::retention::ClientRetention::default(),
        }
    }

    pub(crate) async fn call(&self, request: TestRequest) -> ServiceResponse {
        let state = self.state.clone();
        // The pages are mounted first here and last in the service; their paths must not overlap.
        let app = App::new().app_data(PayloadConfig::new(1_024)).configure(|cfg| {
            configure_pages(cfg, state.clone());
            configure_orders(cfg, state);
        });
        call_service(&init_service(app).await, request.to_request()).await
    }

    /// Sends an order to an upstream. Returns the status and the JSON of the answer.
    pub(crate) async fn order(&self, upstream: &str, order: &Value) -> (u16, Value) {
        let request = TestRequest::post().uri(&format!("/sandbox/upstreams/{upstream}"));
        let response =
            self.call(request.insert_header((AUTHORIZATION, format!("Bearer {TOKEN}"))).set_json(order)).await;
        read_json(response).await
    }

    /// Calls the script API for an outcome of an order. Returns the status and the JSON of the answer.
    pub(crate) async fn play(&self, upstream: &str, id: FlowId, outcome: &str) -> (u16, Value) {
        let request = TestRequest::post().uri(&format!("/sandbox/flows/{upstream}/{id}"));
        read_json(self.call(request.set_json(json!({"outcome": outcome}))).await).await
    }

    /// Gets a page. Returns the status and the HTML.
    pub(crate) async fn page(&self, path: &str) -> (u16, String) {
        let response = self.call(TestRequest::get().uri(path)).await;
        (response.status().as_u16(), read_text(response).await)
    }

    /// Posts a form and follows a redirect, like a browser.
    pub(crate) async fn submit(&self, path: &str, fields: &[(&str, &str)]) -> (u16, String) {
        let response = self.call(TestRequest::post().uri(path).set_form(fields)).await;
        if response.status() != 303 {
            return (response.status().as_u16(), read_text(response).await);
        }
        let location = response.headers().get("location").unwrap().to_str().unwrap().to_owned();
        let base = url::Url::parse(&format!("https://svc.example{path}")).unwrap();
        self.page(base.join(&location).unwrap().path()).await
    }

    /// Opens a document for these signers at the service, and orders it. Returns its id and the ids of the signers.
    pub(crate) async fn order_esign(&self, signers: &[&str], document: &[u8]) -> (FlowId, Vec<String>) {
        let invite = |_: &&str| SignerState {
            signer: ForeignId::mint(),
            status: SigningStatus::Pending,
            invited_until: self.clock.now() + INVITATION_DEFAULT,
        };
        let invited: Vec<SignerState> = signers.iter().map(invite).collect();
        let document = json!({"name": "loan <agreement>.pdf", "content": STANDARD.encode(document)});
        let header = self.new_flow_header();
        let (id, request_id) = (header.id, header.request_id.clone());
        let reference = Some(Text::parse("loan-7").unwrap());
        let terms = EsignTerms { header, reference, response_url: None, signer_references: Vec::new() };
        let flow = EsignFlow::Pending(EsignPending::new(terms, invited.clone()));
        let signer_info: Vec<Value> = invited
            .iter()
            .zip(signers)
            .map(|(signer, name)| {
                json!({"signerId": signer.signer, "signerRefId": "ref", "signerName": name,
                    "invitationExpireTimeStamp": signer.invited_until})
            })
            .collect();
        let order = json!({"documentId": id, "app_id": self.app, "request_id": request_id,
            "documentReferenceId": "loan-7",
            "document": document, "signerInfo": signer_info});
        let ids: Vec<String> = invited.iter().map(|signer| signer.signer.to_string()).collect();
        self.service.add_flow(FlowState::ESign(flow));
        let (status, answer) = self.order("esign", &order).await;
        let url = |id: &str| {
            json!({"signerId": id, "signingUrl": format!("{PUBLIC_BASE}/sandbox/esign/{}/{id}",
            order["documentId"].as_str().unwrap())})
        };
        let urls: Vec<Value> = ids.iter().map(|id| url(id)).collect();
        assert_eq!((status, answer), (200, json!({"signerInfo": urls})));
        (id, ids)
    }

    /// Opens a flow for documents at the service, and orders them.
    pub(crate) async fn order_doclocker(&self, docs: &[&str]) -> FlowId {
        let header = self.new_flow_header();
        let (id, order) = (header.id, self.common_members("transactionId", &header));
        self.service.add_flow(FlowState::DocLocker(DocLockerFlow::new(header)));
        let (status, answer) =
            self.order("doclocker", &with_members(order, &json!({"docs": docs, "consent_text": "I <agree>."}))).await;
        assert_eq!((status, answer), (200, json!({"requestUrl": format!("{PUBLIC_BASE}/sandbox/doclocker/{id}")})));
        id
    }

    /// Opens a flow for an e-stamp at the service, and orders it.
    pub(crate) async fn order_estamp(&self, document: &[u8]) -> FlowId {
        let members = json!({
            "apiType": "PhysicalEStamp",
            "document": {"documentName": "lease.pdf", "base64FileData": STANDARD.encode(document)},
            "signatoriesInfo": [{"name": "Asha <Rao>", "emailID": "asha@mail.example", "signType": "electronic"},
                {"name": "Vikram", "emailID": "vikram@mail.example", "signType": "electronic"}],
        });
        let header = self.new_flow_header();
        let (id, order) = (header.id, self.common_members("eStampId", &header));
        self.service.add_flow(FlowState::EStamp(EStampFlow::new(EStampTerms { header, kind: EStampKind::Physical })));
        assert_eq!(self.order("estamp", &with_members(order, &members)).await, (200, json!({})));
        id
    }

    /// Opens a flow for wealth data at the service, and orders its consent.
    pub(crate) async fn order_wealth(&self) -> FlowId {
        let header = self.new_flow_header();
        let (id, order) = (header.id, self.common_members("uniqueIdentifier", &header));
        let (status, answer) = self.order("wealth", &with_members(order, &json!({"consent_text": "I <agree>."}))).await;
        assert_eq!((status, answer["requestUrl"].clone()), (200, json!(format!("{PUBLIC_BASE}/sandbox/wealth/{id}"))));
        let consent_handle = answer["consentHandle"].as_str().unwrap().parse().unwrap();
        self.service.add_flow(FlowState::Wealth(WealthConsent::Requested(WealthTerms { header, consent_handle })));
        id
    }

    /// Returns the members that all orders have. The name of the id depends on the upstream.
    fn common_members(&self, id_field: &str, header: &FlowHeader) -> Value {
        json!({id_field: header.id, "app_id": self.app, "request_id": header.request_id})
    }

    pub(crate) fn advance_days(&self, days: u64) {
        self.clock.advance(Duration::from_secs(days * 24 * 3_600));
    }
}

pub(crate) fn options(internal_base: &str, clock: &Arc<ManualClock>) -> SandboxUpstreamsOptions {
    SandboxUpstreamsOptions {
        public_base: PUBLIC_BASE.to_owned(),
        internal_base: internal_base.to_owned(),
        connector_tokens: ReportKind::ALL.iter().map(|kind| (*kind, CONNECTOR_TOKEN.into())).collect(),
        upstream_token: TOKEN.into(),
        clock: Arc::clone(clock) as _,
    }
}

/// Adds the members of `more` to an object.
pub(crate) fn with_members(mut object: Value, more: &Value) -> Value {
    object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    object
}

pub(crate) async fn read_text(response: ServiceResponse) -> String {
    String::from_utf8(to_bytes(response.into_body()).await.unwrap_or_default().to_vec()).unwrap()
}

pub(crate) async fn read_json(response: ServiceResponse) -> (u16, Value) {
    let status = response.status().as_u16();
    let text = read_text(response).await;
    (status, serde_json::from_str(&text).unwrap_or_else(|_| panic!("{status}: {text}")))
}

/// A file that begins and ends like a PDF.
pub(crate) const PDF: &[u8] = b"%PDF-1.4\n1 0 obj\n<< >>\nendobj\nxref\n0 0\ntrailer\n<< >>\nstartxref\n30\n%%EOF\n";

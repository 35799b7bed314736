//! The handle through which the use cases reach flows. A flow has no actor: the store orders its reports, and the
//! sweeper ends documents.

use std::sync::Arc;
use std::time::Duration;

use actix::Addr;
use sakshi_domain::delivery::QueuedDelivery;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::ids::{AppId, ClientId, coarse_time};
use sakshi_store::{
    CreateOutcome, FlowRecord, LapseFlowOutcome, OpenFlow, ReportFlow, ReportFlowOutcome, Store, StoreError,
    StoreFuture,
};
use sakshi_supervision::Gate;
use sakshi_wire::reports::FlowReport;

use crate::dispatcher::{DeliveryQueued, WebhookDispatcher};
use crate::router::AskError;

/// Opens, reports, reads and ends flows.
#[derive(Clone, Debug)]
pub struct Flows {
    pub(crate) store: Store,
    pub(crate) dispatcher: Addr<WebhookDispatcher>,
    pub(crate) admission: Arc<Gate>,
    pub(crate) ask_timeout: Duration,
    /// Time for which a result can be fetched.
    pub(crate) result_ttl: Duration,
    /// Time for which a flow waits for its upstream.
    pub(crate) pending_ttl: Duration,
}

impl Flows {
    /// Returns a new id. Ids made within 64 ms are neighbours in the store.
    #[must_use]
    pub fn new_id(&self, client: &ClientId) -> FlowId {
        FlowId::generate(client.partition(), coarse_time().to_le_bytes()[0])
    }

    /// Opens a flow: from now on its upstream may report.
    ///
    /// # Errors
    /// [`AskError`] when there is no answer; the flow may or may not have been opened, and the call may be repeated.
    pub async fn open(&self, open: OpenFlow) -> Result<CreateOutcome, AskError> {
        let (id, kind) = (open.flow.header().id, open.flow.kind());
        let outcome = self.call_store(|store| store.open_flow(open)).await?;
        if outcome == CreateOutcome::Created {
            metrics::counter!("sakshi_flows_opened_total", "flow" => kind).increment(1);
            tracing::info!(flow.id = %id, flow.kind = kind, "flow opened");
        }
        Ok(outcome)
    }

    /// Records an upstream's report.
    ///
    /// # Errors
    /// [`AskError`] when there is no answer; the report may or may not have been recorded, and may be sent again.
    pub async fn report(&self, report: FlowReport) -> Result<ReportFlowOutcome, AskError> {
        let (id, kind) = (report.flow(), report.kind());
        let report = ReportFlow { report, result_ttl: self.result_ttl, pending_ttl: self.pending_ttl };
        let outcome = self.call_store(|store| store.report_flow(report)).await;
        let result = match &outcome {
            Ok(ReportFlowOutcome::Accepted { queued, .. }) => {
                self.notify_dispatcher(queued.clone());
                "accepted"
            }
            Ok(ReportFlowOutcome::Repeated) => "repeated",
            Ok(ReportFlowOutcome::Refused(_)) => "refused",
            Ok(ReportFlowOutcome::NotFound) => "not_found",
            Err(_) => "failed",
        };
        metrics::counter!("sakshi_flow_reports_total", "kind" => kind.as_str(), "result" => result).increment(1);
        tracing::info!(flow.id = %id, report.kind = kind.as_str(), result, "flow reported");
        outcome
    }

    /// Returns the current flow of this app, and the last report about it.
    ///
    /// # Errors
    /// [`AskError`] when there is no answer; asking again is safe.
    pub async fn get(&self, id: FlowId, app: AppId) -> Result<Option<FlowRecord>, AskError> {
        self.call_store(|store| store.load_flow(id, app)).await
    }

    /// Ends a document if its invitation has ended by the store's clock.
    ///
    /// # Errors
    /// Any error of the store; the document may or may not have been ended, and the call may be repeated.
    pub(crate) async fn lapse(&self, id: FlowId) -> Result<LapseFlowOutcome, StoreError> {
        let outcome = self.store.lapse_flow(id, self.result_ttl).await?;
        if let LapseFlowOutcome::Lapsed { queued, .. } = &outcome {
            metrics::counter!("sakshi_flows_lapsed_total").increment(1);
            tracing::info!(flow.id = %id, "document lapsed");
            self.notify_dispatcher(queued.clone());
        }
        Ok(outcome)
    }

    /// Notifies the dispatcher of a queued webhook.
    fn notify_dispatcher(&self, delivery: Option<QueuedDelivery>) {
        if let Some(delivery) = delivery {
            self.dispatcher.do_send(DeliveryQueued(delivery, None));
        }
    }

    /// Calls the store within the limits on calls in flight and on time.
    async fn call_store<T>(&self, call: impl FnOnce(&Store) -> StoreFuture<T>) -> Result<T, AskError> {
        let _permit = self.admission.enter().ok_or(AskError::Overloaded)?;
        match tokio::time::timeout(self.ask_timeout, call(&self.store)).await {
            Ok(outcome) => Ok(outcome?),
            Err(_) => Err(AskError::NoAnswer),
        }
    }
}

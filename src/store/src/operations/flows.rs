//! Stub.
#![allow(unused_imports)]

use super::{RecordStore, unbuilt};
use crate::flows::*;
use std::time::Duration;
use sakshi_domain::delivery::QueuedDelivery;
use sakshi_domain::flow::dedup::DedupDigest;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::flow_state::FlowState;
use sakshi_domain::flow::transition::ReportRefusal;
use sakshi_domain::ids::AppId;
use sakshi_domain::time::Timestamp;
use sakshi_wire::esign::EsignOutcome;
use sakshi_wire::reports::FlowReport;
use crate::error::StoreFuture;
use crate::idempotency::{CreateOutcome, IdempotentAnswer};

impl Flows for RecordStore {
    fn open_flow(&self, _: OpenFlow) -> StoreFuture<CreateOutcome> {
        unbuilt()
    }

    fn report_flow(&self, _: ReportFlow) -> StoreFuture<ReportFlowOutcome> {
        unbuilt()
    }

    fn lapse_flow(&self, _: FlowId, _: Duration) -> StoreFuture<LapseFlowOutcome> {
        unbuilt()
    }

    fn lapsed_flows(&self, _: usize) -> StoreFuture<Vec<FlowId>> {
        unbuilt()
    }

    fn load_flow(&self, _: FlowId, _: AppId) -> StoreFuture<Option<FlowRecord>> {
        unbuilt()
    }

    fn flow_deliveries(&self, _: FlowId) -> StoreFuture<Option<FlowDeliveries>> {
        unbuilt()
    }

    fn load_webhook(&self, _: FlowId, _: DedupDigest) -> StoreFuture<Option<SealedPayload>> {
        unbuilt()
    }
}

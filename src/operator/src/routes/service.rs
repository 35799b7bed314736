//! Operations on the service itself: operators, encryption, erasure, logs, look-ups, reports and the node.

use actix_web::http::Method;
use sakshi_domain::flow::transition::ReportRefusal;
use sakshi_service::ServiceError;
use sakshi_web::error::ApiError;
use sakshi_wire::reports::FlowReport;

use super::DOCUMENT;
use crate::operation::Operation;
use crate::{
    audit_log, clock, consents, data_loss, erasure, intent_keys, log_level, openapi, operators, probes, reports,
    reseal, upgrade, views,
};

const OPERATORS: &str = "/admin/v1/operators";
const INTENT_KEYS: &str = "/admin/v1/intent-keys";
const LOG_LEVEL: &str = "/admin/v1/log-level";

pub(super) fn operators() -> Vec<Operation> {
    vec![
        Operation::new(
            Method::GET,
            OPERATORS,
            "listOperators",
            "Lists the operators, including revoked operators.",
            operators::list,
        ),
        Operation::new(
            Method::POST,
            OPERATORS,
            "addOperator",
            "Adds an operator. Only this response contains the token.",
            operators::add,
        ),
        Operation::new(
            Method::DELETE,
            "/admin/v1/operators/{operator_id}",
            "revokeOperator",
            "Revokes an operator, at once on every node. Repeating the request changes nothing.",
            operators::revoke,
        ),
    ]
}

pub(super) fn encryption() -> Vec<Operation> {
    vec![
        Operation::new(
            Method::POST,
            "/admin/v1/reseal",
            "reseal",
            "Re-encrypts values under an old key with the current key, for about two seconds. Repeat the request with \
            the `next` of the response until it is null; that is a pass. An interrupted pass can be continued or \
            started again.",
            reseal::step,
        ),
        Operation::new(
            Method::GET,
            INTENT_KEYS,
            "listIntentKeys",
            "Lists the published intent keys, and marks the key that signs.",
            intent_keys::list,
        ),
        Operation::new(
            Method::POST,
            INTENT_KEYS,
            "useIntentKey",
            "Chooses the intent key that signs from now on, within a second on every node. A node without this key \
            follows its settings.",
            intent_keys::choose,
        ),
    ]
}

pub(super) fn erasure() -> Vec<Operation> {
    vec![Operation::new(
        Method::POST,
        "/admin/v1/erasures",
        "erase",
        "Erases a transaction, a flow, an event, or the data of an app or a client. This includes shared data, \
        requested claims, references, stored responses, and webhooks that are not in flight. The ledger keeps its \
        entries. A guest keeps the registration, without claims. Suspend a client first: data that is created during \
        the erasure may remain. The response is sent when the erasure is complete; repeating the request erases what \
        remains.",
        erasure::erase,
    )]
}

pub(super) fn audit() -> Vec<Operation> {
    vec![Operation::new(
        Method::GET,
        "/admin/v1/audit-log",
        "getAuditLog",
        "Lists changes by operators, oldest first. Each change has an entry before it and another with its outcome. \
        If the second is missing, the node stopped in between. Each entry contains the hash of the previous entry.",
        audit_log::read,
    )]
}

pub(super) fn consents() -> Vec<Operation> {
    vec![Operation::new(
        Method::GET,
        "/admin/v1/clients/{client_id}/consents",
        "listConsents",
        "Lists what people were asked on behalf of a client, and whether they agreed. There is an entry for each \
        answered verification, and for each check, document fetch and wealth consent whose request declares a \
        consent. An erasure does not change the register.",
        consents::list,
    )]
}

pub(super) fn support() -> Vec<Operation> {
    vec![
        Operation::new(
            Method::GET,
            "/admin/v1/transactions/{txn_id}",
            "getTransaction",
            "Returns the state of a transaction and its webhook. Shared data is not shown.",
            views::transaction,
        ),
        Operation::new(
            Method::GET,
            "/admin/v1/requests/{request_id}",
            "findRefusedRequest",
            "Finds the refused requests with this `errorId`. The newest 200 of each app are stored for a day. \
            Unauthenticated requests are only in the log.",
            views::request,
        ),
    ]
}

pub(super) fn webhooks() -> Vec<Operation> {
    vec![
        Operation::new(
            Method::GET,
            "/admin/v1/transactions/{txn_id}/delivery",
            "getTransactionDelivery",
            "Returns the delivery of a transaction's webhook. There is none before the transaction is completed, or \
            without a URL.",
            views::delivery,
        )
        .with_refusal(ServiceError::NotFound("delivery"), "There is no such transaction, or it has no webhook."),
        Operation::new(
            Method::GET,
            "/admin/v1/flows/{flow_id}/deliveries",
            "listFlowDeliveries",
            "Returns the state of a flow and the deliveries of its webhooks. Reported data is not shown.",
            views::deliveries,
        ),
    ]
}

pub(super) fn connectors() -> Vec<Operation> {
    vec![
        Operation::new(
            Method::POST,
            "/internal/v1/flows/{kind}",
            "reportFlow",
            "Accepts an upstream's report about a flow. The body is that of the client's webhook, with `app_id`; \
            nullable fields may be missing. Repeating a report changes nothing, so repeat it if there was no response.",
            reports::receive,
        )
        .with_body::<FlowReport>()
        .with_refusal(
            ServiceError::NotFound("flow of this app"),
            "The app has no such flow, or there is no such kind of report.",
        )
        .with_refusal(
            ServiceError::ReportRefused(ReportRefusal::Contradicts("documentStatus")),
            "The report contradicts the stored state of the flow.",
        ),
    ]
}

pub(super) fn node() -> Vec<Operation> {
    let mut operations = vec![
        Operation::new(
            Method::GET,
            "/admin/v1/tree",
            "getSupervisionTree",
            "Returns the live supervision tree. A registry shows the number of its actors, not a list.",
            views::tree,
        ),
        Operation::new(
            Method::GET,
            "/admin/v1/nodes",
            "listNodes",
            "Returns all nodes of the installation: their trees, the receivers for which webhooks wait, and the \
            figures of the last two minutes. Nodes publish this only while it is requested.",
            views::nodes,
        ),
    ];
    operations.extend(maintenance());
    operations.extend(log_level());
    operations.extend(probes());
    operations
}

fn maintenance() -> Vec<Operation> {
    vec![
        Operation::new(
            Method::POST,
            "/admin/v1/store/accept-loss",
            "acceptLoss",
            "Accepts that the store has lost data, so that all nodes use it again. Until then they answer 503 and \
            write nothing. Restore the data instead if you can: nodes notice the restored data. Without a loss \
            nothing changes.",
            data_loss::accept,
        )
        .log_after(),
        Operation::new(
            Method::POST,
            "/admin/v1/store/finish-upgrade",
            "finishUpgrade",
            "Finishes the upgrade of a store in Redis, once every node runs this release. Records are rewritten in \
            the form of this release, and earlier releases then refuse the store. Repeat the request while `state` is \
            `walking`. Nothing changes while `state` is `behind`.",
            upgrade::finish,
        ),
        Operation::new(
            Method::POST,
            "/admin/v1/clock/accept",
            "acceptClock",
            "Trusts the clock of the answering node after a jump, during which the node deletes nothing. It deletes \
            expired records again within ten seconds. Correct the clock first: deletions cannot be undone. Each node \
            has its own clock.",
            clock::accept,
        ),
    ]
}

fn log_level() -> Vec<Operation> {
    vec![
        Operation::new(
            Method::GET,
            LOG_LEVEL,
            "getLogLevel",
            "Returns the log level of the answering node.",
            log_level::show,
        ),
        Operation::new(
            Method::PUT,
            LOG_LEVEL,
            "changeLogLevel",
            "Changes the log level of the answering node, for a time. Afterwards the node returns to its default \
            level. Each node has its own level.",
            log_level::change,
        ),
        Operation::new(
            Method::DELETE,
            LOG_LEVEL,
            "resetLogLevel",
            "Returns to the default log level. Without a temporary level nothing changes.",
            log_level::reset,
        ),
    ]
}

fn probes() -> Vec<Operation> {
    vec![
        Operation::new(
            Method::GET,
            "/livez",
            "getLiveness",
            "Reports whether the process makes progress. If it does not, restart it.",
            probes::livez,
        )
        .with_refusal(ApiError::Unhealthy("arbiter 1 hangs".to_owned()), "A thread hangs."),
        Operation::new(
            Method::GET,
            "/readyz",
            "getReadiness",
            "Reports whether to send requests to this process.",
            probes::readyz,
        )
        .with_refusal(
            ApiError::Unhealthy("it is draining".to_owned()),
            "The process is draining, or the store accepts no writes.",
        ),
        Operation::new(Method::GET, "/metrics", "getMetrics", "Returns the metrics of this process.", probes::metrics),
        Operation::new(Method::GET, DOCUMENT, "getOpenApiDocument", "Returns this document.", openapi::document),
    ]
}

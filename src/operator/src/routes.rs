//! Every operation of the internal listener: the one table that defines routes and document.

use actix_web::http::Method;
use sakshi_domain::flow::transition::ReportRefusal;
use sakshi_domain::ids::{ClientId, EventId};
use sakshi_domain::limits::TRANSFER_BYTES_MAX;
use sakshi_service::ServiceError;
use sakshi_web::error::ApiError;
use sakshi_wire::reports::FlowReport;

use super::operation::Operation;
use super::{
    apps, audit_log, brand, clients, clock, consents, credits, data_loss, erasure, grants, intent_keys, keys,
    log_level, openapi, operators, probes, reports, reseal, transfers, upgrade, users, views,
};

const CONNECTORS: &str = "Connectors";
const DOCUMENT: &str = "/openapi.json";
const CLIENTS: &str = "/admin/v1/clients";
const CLIENT: &str = "/admin/v1/clients/{client_id}";
const APPS: &str = "/admin/v1/clients/{client_id}/apps";
const APP: &str = "/admin/v1/apps/{app_id}";
const KEYS: &str = "/admin/v1/clients/{client_id}/keys";
const USERS: &str = "/admin/v1/clients/{client_id}/users";
const USER: &str = "/admin/v1/users/{user_id}";
const OPERATORS: &str = "/admin/v1/operators";
const INTENT_KEYS: &str = "/admin/v1/intent-keys";
const CLIENT_BRAND: &str = "/admin/v1/clients/{client_id}/brand";
const EVENT_BRAND: &str = "/admin/v1/events/{event_id}/brand";
const LOG_LEVEL: &str = "/admin/v1/log-level";
const CREDITS: &str = "/admin/v1/clients/{client_id}/credits";

/// Operations of one subject.
pub(super) struct Group {
    /// Tag in the document.
    pub(super) tag: &'static str,
    /// Description in the document.
    pub(super) about: &'static str,
    /// Operations; those of one path stand next to each other.
    pub(super) operations: fn() -> Vec<Operation>,
}

/// Every group, in the order of the document.
pub(super) const GROUPS: [Group; 15] = [
    Group {
        tag: "Clients",
        about: "Who pays for verifications; a client has apps, keys and credits.",
        operations: of_clients,
    },
    Group {
        tag: "Brands",
        about: "What pages show of a client: name, logo, colour, help and privacy notice.",
        operations: of_brands,
    },
    Group {
        tag: "Apps",
        about: "The applications of a client, which it names as `X-API-APP-ID`.",
        operations: of_apps,
    },
    Group { tag: "Keys", about: "The API keys of a client. The text of a key is shown once.", operations: of_keys },
    Group { tag: "Users", about: "The people of a client who use the portal, and their roles.", operations: of_users },
    Group { tag: "Credits", about: "What a client has paid for, and what it has used.", operations: of_credits },
    Group { tag: "Operators", about: "The people who operate the service, and their roles.", operations: of_operators },
    Group {
        tag: "Encryption",
        about: "The keys with which the service encrypts and signs.",
        operations: of_encryption,
    },
    Group { tag: "Erasure", about: "Removing what is known of people before its time.", operations: of_erasure },
    Group { tag: "Audit", about: "What operators have changed.", operations: of_audit },
    Group { tag: "Consents", about: "What people were asked, and whether they agreed.", operations: of_consents },
    Group { tag: "Support", about: "What is known of one transaction or one refused request.", operations: of_support },
    Group {
        tag: "Webhooks",
        about: "What became of the webhooks of a transaction or a flow.",
        operations: of_webhooks,
    },
    Group {
        tag: CONNECTORS,
        about: "What upstreams report of the flows that they carry out.",
        operations: of_connectors,
    },
    Group {
        tag: "Node",
        about: "The process that answers: its health, its metrics and its actors.",
        operations: of_node,
    },
];

/// Returns every operation.
#[must_use]
pub fn operations() -> Vec<Operation> {
    Part::Whole.operations().map(|(_, operation)| operation).collect()
}

/// The part of the table that a listener serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Whole,
    /// All but the connectors' reports, which another listener takes.
    WithoutReports,
    /// The connectors' reports and their document only.
    Reports,
}

impl Part {
    /// Returns the operations with the tags of their groups.
    pub(super) fn operations(self) -> impl Iterator<Item = (&'static str, Operation)> {
        let all =
            GROUPS.iter().flat_map(|group| (group.operations)().into_iter().map(|operation| (group.tag, operation)));
        all.filter(move |(tag, operation)| match self {
            Self::Whole => true,
            Self::WithoutReports => *tag != CONNECTORS,
            Self::Reports => *tag == CONNECTORS || operation.path == DOCUMENT,
        })
    }
}

fn of_clients() -> Vec<Operation> {
    vec![
        Operation::new(Method::GET, CLIENTS, "listClients", "Lists the clients, oldest first.", clients::list),
        Operation::new(
            Method::POST,
            CLIENTS,
            "createClient",
            "Creates a client. It has no credits, apps and keys \
            yet.",
            clients::create,
        )
        .by_support(),
        Operation::new(
            Method::POST,
            "/admin/v1/clients/import",
            "importClient",
            "Makes a client, its apps and its keys what they are at another installation. The body is what \
            `exportClient` answered there. The same import again changes nothing, and what is not in it stays as it \
            is.",
            transfers::import,
        )
        .up_to(TRANSFER_BYTES_MAX),
        Operation::new(Method::GET, CLIENT, "getClient", "Shows a client.", clients::show),
        Operation::new(
            Method::PATCH,
            CLIENT,
            "updateClient",
            "Changes a client. What the body leaves out stays as it is; null removes a limit. Within a second every \
            node refuses the keys of a suspended client with 401; what its residents have begun is carried to its \
            end, and its events take no further guests.",
            clients::patch,
        )
        .by_support(),
        Operation::new(
            Method::GET,
            "/admin/v1/clients/{client_id}/export",
            "exportClient",
            "Shows a client as another installation imports it. It holds neither the text of a key nor credits.",
            transfers::export,
        )
        .by_owners()
        .refuses(transfers::TOO_LARGE, "The client has more apps or keys than an import takes."),
    ]
}

fn of_brands() -> Vec<Operation> {
    vec![
        Operation::new(
            Method::GET,
            CLIENT_BRAND,
            "getClientBrand",
            "Shows the brand of a client.",
            brand::show::<ClientId>,
        ),
        Operation::new(
            Method::PATCH,
            CLIENT_BRAND,
            "changeClientBrand",
            "Changes the brand of a client. What the body leaves out stays as it is; null removes a part. Pages show \
                it within five seconds.",
            brand::patch::<ClientId>,
        ),
        Operation::new(
            Method::GET,
            EVENT_BRAND,
            "getEventBrand",
            "Shows the brand of an event.",
            brand::show::<EventId>,
        ),
        Operation::new(
            Method::PATCH,
            EVENT_BRAND,
            "changeEventBrand",
            "Changes the brand of an event. Its parts stand before those of its client.",
            brand::patch::<EventId>,
        ),
    ]
}

fn of_apps() -> Vec<Operation> {
    vec![
        Operation::new(
            Method::GET,
            APPS,
            "listApps",
            "Lists the apps of a client. Who is no owner sees their URLs without their paths.",
            apps::list,
        ),
        Operation::new(Method::POST, APPS, "createApp", "Creates an app of a client.", apps::create).by_support(),
        Operation::new(
            Method::GET,
            APP,
            "getApp",
            "Shows an app. Who is no owner sees its URLs without their paths.",
            apps::show,
        ),
        Operation::new(
            Method::PATCH,
            APP,
            "updateApp",
            "Changes an app. What the body leaves out stays as it is; null removes a URL.",
            apps::patch,
        ),
        Operation::new(
            Method::GET,
            "/admin/v1/apps/{app_id}/events",
            "listAppEvents",
            "Lists the events of an app with their guests, oldest first.",
            views::events,
        ),
        Operation::new(
            Method::GET,
            "/admin/v1/apps/{app_id}/webhook-urls",
            "listAppWebhookOrigins",
            "Lists where the webhooks of an app's flows go. The client registers the URLs; only their origins are \
                shown.",
            views::webhook_urls,
        ),
    ]
}

fn of_keys() -> Vec<Operation> {
    vec![
        Operation::new(Method::GET, KEYS, "listKeys", "Lists the keys of a client, revoked ones included.", keys::list),
        Operation::new(Method::POST, KEYS, "issueKey", "Issues a key. This answer alone shows its text.", keys::issue),
        Operation::new(
            Method::DELETE,
            "/admin/v1/keys/{key_id}",
            "revokeKey",
            "Revokes a key, within a second on every node. Revoking it again changes nothing.",
            keys::revoke,
        )
        .by_support(),
        Operation::new(
            Method::POST,
            "/admin/v1/keys/{key_id}/rotate",
            "rotateKey",
            "Issues a successor of a key. It has the same label, environments and networks, and the old key works on \
                for the overlap.",
            keys::rotate,
        )
        .refuses(sakshi_service::keys::NOT_ACTIVE, "The key is revoked or expired."),
    ]
}

fn of_users() -> Vec<Operation> {
    vec![
        Operation::new(
            Method::GET,
            USERS,
            "listUsers",
            "Lists the users of a client, disabled ones \
            included.",
            users::list,
        )
        .by_support(),
        Operation::new(
            Method::POST,
            USERS,
            "inviteUser",
            "Invites a user. This answer alone shows the link, which works once within 72 hours; the service sends no \
                e-mail.",
            users::invite,
        )
        .refuses(sakshi_service::users::EMAIL_TAKEN, "Another user has the address, or the client has too many users."),
        Operation::new(
            Method::PATCH,
            USER,
            "updateUser",
            "Changes the role of a user, or disables or enables the user. Every node follows within a second.",
            users::patch,
        ),
        Operation::new(
            Method::DELETE,
            USER,
            "removeUser",
            "Removes a user with name, address and sessions. The log of the client keeps the name for its own time.",
            users::remove,
        ),
        Operation::new(
            Method::POST,
            "/admin/v1/users/{user_id}/invite",
            "resetUser",
            "Makes a new link for a user. The password, the codes and the sessions of the user end at once.",
            users::reset,
        ),
    ]
}

fn of_credits() -> Vec<Operation> {
    vec![
        Operation::new(
            Method::GET,
            CREDITS,
            "getClientCredits",
            "Tells how many credits a client has left.",
            credits::balance,
        ),
        Operation::new(
            Method::POST,
            CREDITS,
            "grantCredits",
            "Grants credits to a client, or corrects its balance. The same movement under the same reference changes \
            nothing. One above `admin.second_person_above` of the settings waits as a request until another operator \
            confirms it, for a day at most.",
            credits::change,
        )
        .refuses(
            credits::REFERENCE_REUSED,
            "The reference came before with another amount, or the balance would be negative or too large to count.",
        ),
        Operation::new(
            Method::GET,
            "/admin/v1/clients/{client_id}/statement",
            "getClientStatement",
            "Lists every movement of a client's credits, oldest first.",
            credits::statement,
        ),
        Operation::new(
            Method::GET,
            "/admin/v1/credits/audit",
            "auditCredits",
            "Adds every ledger up again. It reads every entry of every client.",
            credits::audit,
        ),
        Operation::new(
            Method::GET,
            "/admin/v1/credits/requests",
            "listGrantRequests",
            "Lists the movements of credits that wait for a second operator, and those that were decided within their \
                day.",
            grants::list,
        ),
        Operation::new(
            Method::POST,
            "/admin/v1/credits/requests/{grant_id}/confirm",
            "confirmGrant",
            "Confirms a movement of credits that another operator has asked for, and makes it. Confirming it again \
                changes nothing.",
            grants::confirm,
        )
        .refuses(grants::SECOND_PERSON, "The same operator has asked for it, or it was refused."),
        Operation::new(
            Method::POST,
            "/admin/v1/credits/requests/{grant_id}/refuse",
            "refuseGrant",
            "Refuses a movement of credits that waits for a second operator. The operator who asked may withdraw it \
                in the same way.",
            grants::refuse,
        )
        .refuses(grants::DECIDED, "It was confirmed before."),
    ]
}

fn of_operators() -> Vec<Operation> {
    vec![
        Operation::new(
            Method::GET,
            OPERATORS,
            "listOperators",
            "Lists the operators, revoked ones included.",
            operators::list,
        ),
        Operation::new(
            Method::POST,
            OPERATORS,
            "addOperator",
            "Adds an operator. This answer alone shows the token.",
            operators::add,
        ),
        Operation::new(
            Method::DELETE,
            "/admin/v1/operators/{operator_id}",
            "revokeOperator",
            "Revokes an operator, at once on every node. Revoking it again changes nothing.",
            operators::revoke,
        ),
    ]
}

fn of_encryption() -> Vec<Operation> {
    vec![
        Operation::new(
            Method::POST,
            "/admin/v1/reseal",
            "reseal",
            "Seals what is sealed under an old encryption key with the new one, for about two seconds. Repeat it with \
            the `next` of the answer until there is none; that is a pass. An interrupted pass can go on or begin \
            again.",
            reseal::step,
        ),
        Operation::new(
            Method::GET,
            INTENT_KEYS,
            "listIntentKeys",
            "Lists the keys that sign intents or are published for it, and says which one signs.",
            intent_keys::list,
        ),
        Operation::new(
            Method::POST,
            INTENT_KEYS,
            "useIntentKey",
            "Lets an intent key sign from now on, within a second on every node. A node that does not have it goes on \
                as its settings say.",
            intent_keys::choose,
        ),
    ]
}

fn of_erasure() -> Vec<Operation> {
    vec![Operation::new(
        Method::POST,
        "/admin/v1/erasures",
        "erase",
        "Erases a transaction, a flow, an event, or what is kept for an app or a client: what was shared and asked, \
        references, kept answers, and webhooks that are not under way. The ledger keeps its entries. A guest keeps \
        the place among the registered, without claims. Suspend a client first, for what arises meanwhile may stay. \
        The answer comes when all is done; the same again erases what is left.",
        erasure::erase,
    )]
}

fn of_audit() -> Vec<Operation> {
    vec![Operation::new(
        Method::GET,
        "/admin/v1/audit-log",
        "getAuditLog",
        "Lists what operators have changed, oldest first. Each change has an entry before it and one with what came \
        of it; where the second is missing, the node ended in between. Each entry is chained to the one before by its \
        hash.",
        audit_log::read,
    )]
}

fn of_consents() -> Vec<Operation> {
    vec![Operation::new(
        Method::GET,
        "/admin/v1/clients/{client_id}/consents",
        "listConsents",
        "Lists what people were asked for a client, and whether they agreed. It has an entry for each verification \
        that was answered, and for each check, document fetch and wealth consent whose request must declare a \
        consent. An erasure leaves it as it is.",
        consents::list,
    )]
}

fn of_support() -> Vec<Operation> {
    vec![
        Operation::new(
            Method::GET,
            "/admin/v1/transactions/{txn_id}",
            "getTransaction",
            "Shows how a transaction stands and what became of its webhook. Nothing of what was shared is shown.",
            views::transaction,
        ),
        Operation::new(
            Method::GET,
            "/admin/v1/requests/{request_id}",
            "findRefusedRequest",
            "Finds the refused requests that were answered with this `errorId`. Of each app the newest 200 of a day \
            are kept; what nobody was authenticated for is in the log alone.",
            views::request,
        ),
    ]
}

fn of_webhooks() -> Vec<Operation> {
    vec![
        Operation::new(
            Method::GET,
            "/admin/v1/transactions/{txn_id}/delivery",
            "getTransactionDelivery",
            "Shows what became of a transaction's webhook. There is none before the transaction is completed, or \
                without a URL.",
            views::delivery,
        )
        .refuses(ServiceError::NotFound("delivery"), "There is no such transaction, or it has no webhook."),
        Operation::new(
            Method::GET,
            "/admin/v1/flows/{flow_id}/deliveries",
            "listFlowDeliveries",
            "Shows how a flow stands and what became of its webhooks. Nothing of what was reported is shown.",
            views::deliveries,
        ),
    ]
}

fn of_connectors() -> Vec<Operation> {
    vec![
        Operation::new(
            Method::POST,
            "/internal/v1/flows/{kind}",
            "reportFlow",
            "Takes in what an upstream reports of a flow. The body is that of the webhook which the client gets, with \
            `app_id`; what may be null may be left out. The same report again changes nothing, so repeat it when no \
            answer came.",
            reports::receive,
        )
        .takes::<FlowReport>()
        .refuses(
            ServiceError::NotFound("flow of this app"),
            "The app has no such flow, or there is no such kind of \
            report.",
        )
        .refuses(
            ServiceError::ReportRefused(ReportRefusal::Contradicts("documentStatus")),
            "The report contradicts what is stored of the flow.",
        ),
    ]
}

fn of_node() -> Vec<Operation> {
    vec![
        Operation::new(
            Method::GET,
            "/admin/v1/tree",
            "getSupervisionTree",
            "Shows the live supervision tree. A registry tells how many actors it has, and does not list them.",
            views::tree,
        ),
        Operation::new(
            Method::GET,
            "/admin/v1/nodes",
            "listNodes",
            "Shows all nodes of the installation side by side: their trees, the receivers for which webhooks wait, \
            and the figures of the last two minutes. Nodes tell each other about themselves only while this is asked.",
            views::nodes,
        ),
        Operation::new(
            Method::POST,
            "/admin/v1/store/accept-loss",
            "acceptLoss",
            "Accepts that the store has lost data, so that all nodes use it again. Until then they answer 503 and \
            write nothing. Restore the data instead if you can: nodes notice when it is back. Without a loss nothing \
            changes.",
            data_loss::accept,
        )
        .logged_afterwards(),
        Operation::new(
            Method::POST,
            "/admin/v1/store/finish-upgrade",
            "finishUpgrade",
            "Finishes the upgrade of a store in Redis, once every node runs this release: records are changed to what \
            it writes, and the release before refuses the store from then on. Ask again while `state` is `walking`. \
            Nothing changes while `state` is `behind`.",
            upgrade::finish,
        ),
        Operation::new(
            Method::POST,
            "/admin/v1/clock/accept",
            "acceptClock",
            "Trusts the clock of the node that answers, after a jump because of which it deleted nothing. It deletes \
            expired records again within ten seconds. Correct the clock first: what has expired by it is lost for \
            good. Each node has a clock of its own.",
            clock::accept,
        ),
        Operation::new(
            Method::GET,
            LOG_LEVEL,
            "getLogLevel",
            "Shows the level of the log of the node that \
            answers.",
            log_level::show,
        ),
        Operation::new(
            Method::PUT,
            LOG_LEVEL,
            "changeLogLevel",
            "Changes the level of the log of the node that answers, for a time. Then the node returns to its usual \
            level by itself. Each node has a level of its own.",
            log_level::change,
        ),
        Operation::new(
            Method::DELETE,
            LOG_LEVEL,
            "resetLogLevel",
            "Returns to the usual level of the log. Without a change nothing changes.",
            log_level::reset,
        ),
        Operation::new(
            Method::GET,
            "/livez",
            "getLiveness",
            "Tells whether the process works. If not, restart \
            it.",
            probes::livez,
        )
        .refuses(ApiError::Unhealthy("arbiter 1 hangs".to_owned()), "A thread hangs."),
        Operation::new(
            Method::GET,
            "/readyz",
            "getReadiness",
            "Tells whether to send requests to this process.",
            probes::readyz,
        )
        .refuses(
            ApiError::Unhealthy("it is draining".to_owned()),
            "The process is draining, or the store takes \
                no writes.",
        ),
        Operation::new(Method::GET, "/metrics", "getMetrics", "Shows the metrics of this process.", probes::metrics),
        Operation::new(Method::GET, DOCUMENT, "getOpenApiDocument", "Answers with this document.", openapi::document),
    ]
}

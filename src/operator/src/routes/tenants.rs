//! Operations on clients and what belongs to them: brands, apps, keys, users and credits.

use actix_web::http::Method;
use sakshi_domain::ids::{ClientId, EventId};
use sakshi_domain::limits::TRANSFER_BYTES_MAX;

use crate::operation::Operation;
use crate::{apps, brand, clients, credits, grants, keys, transfers, users, views};

const CLIENTS: &str = "/admin/v1/clients";
const CLIENT: &str = "/admin/v1/clients/{client_id}";
const APPS: &str = "/admin/v1/clients/{client_id}/apps";
const APP: &str = "/admin/v1/apps/{app_id}";
const KEYS: &str = "/admin/v1/clients/{client_id}/keys";
const USERS: &str = "/admin/v1/clients/{client_id}/users";
const USER: &str = "/admin/v1/users/{user_id}";
const CLIENT_BRAND: &str = "/admin/v1/clients/{client_id}/brand";
const EVENT_BRAND: &str = "/admin/v1/events/{event_id}/brand";
const CREDITS: &str = "/admin/v1/clients/{client_id}/credits";

pub(super) fn clients() -> Vec<Operation> {
    vec![
        Operation::new(Method::GET, CLIENTS, "listClients", "Lists the clients, oldest first.", clients::list),
        Operation::new(
            Method::POST,
            CLIENTS,
            "createClient",
            "Creates a client. It has no credits, apps or keys yet.",
            clients::create,
        )
        .allow_support(),
        Operation::new(
            Method::POST,
            "/admin/v1/clients/import",
            "importClient",
            "Imports a client with its apps and keys from another installation. The body is the response of \
            `exportClient` at that installation. Repeating the import changes nothing. Apps and keys that are not in \
            the body stay as they are.",
            transfers::import,
        )
        .with_body_limit(TRANSFER_BYTES_MAX),
        Operation::new(Method::GET, CLIENT, "getClient", "Returns a client.", clients::show),
        Operation::new(
            Method::PATCH,
            CLIENT,
            "updateClient",
            "Changes a client. Missing fields stay as they are; null removes a limit. The role `support` may change \
            `suspended` alone. Within a second every node refuses the keys of a suspended client with 401. Its \
            verifications in progress continue; its events accept no further guests.",
            clients::patch,
        )
        .allow_support(),
        Operation::new(
            Method::GET,
            "/admin/v1/clients/{client_id}/export",
            "exportClient",
            "Exports a client for import at another installation. The export contains neither credits nor the text of \
            a key.",
            transfers::export,
        )
        .owners_only()
        .with_refusal(transfers::TOO_LARGE, "The client has more apps or keys than an import accepts."),
    ]
}

pub(super) fn brands() -> Vec<Operation> {
    vec![
        Operation::new(
            Method::GET,
            CLIENT_BRAND,
            "getClientBrand",
            "Returns the brand of a client.",
            brand::show::<ClientId>,
        ),
        Operation::new(
            Method::PATCH,
            CLIENT_BRAND,
            "changeClientBrand",
            "Changes the brand of a client. Missing fields stay as they are; null removes a part. Pages show the \
            change within five seconds.",
            brand::patch::<ClientId>,
        ),
        Operation::new(
            Method::GET,
            EVENT_BRAND,
            "getEventBrand",
            "Returns the brand of an event.",
            brand::show::<EventId>,
        ),
        Operation::new(
            Method::PATCH,
            EVENT_BRAND,
            "changeEventBrand",
            "Changes the brand of an event. Its parts take precedence over those of the client.",
            brand::patch::<EventId>,
        ),
    ]
}

pub(super) fn apps() -> Vec<Operation> {
    vec![
        Operation::new(
            Method::GET,
            APPS,
            "listApps",
            "Lists the apps of a client. Only owners see the paths of their URLs.",
            apps::list,
        ),
        Operation::new(Method::POST, APPS, "createApp", "Creates an app of a client.", apps::create).allow_support(),
        Operation::new(
            Method::GET,
            APP,
            "getApp",
            "Returns an app. Only owners see the paths of its URLs.",
            apps::show,
        ),
        Operation::new(
            Method::PATCH,
            APP,
            "updateApp",
            "Changes an app. Missing fields stay as they are; null removes a URL.",
            apps::patch,
        ),
        Operation::new(
            Method::GET,
            "/admin/v1/apps/{app_id}/events",
            "listAppEvents",
            "Lists the events of an app with the number of guests, oldest first.",
            views::events,
        ),
        Operation::new(
            Method::GET,
            "/admin/v1/apps/{app_id}/webhook-urls",
            "listAppWebhookOrigins",
            "Lists the origins of the webhook URLs of an app's flows. The client registers the URLs; their paths are \
            not shown.",
            views::webhook_urls,
        ),
    ]
}

pub(super) fn keys() -> Vec<Operation> {
    vec![
        Operation::new(
            Method::GET,
            KEYS,
            "listKeys",
            "Lists the keys of a client, including revoked keys.",
            keys::list,
        ),
        Operation::new(
            Method::POST,
            KEYS,
            "issueKey",
            "Issues a key. Only this response contains the text of the key.",
            keys::issue,
        ),
        Operation::new(
            Method::DELETE,
            "/admin/v1/keys/{key_id}",
            "revokeKey",
            "Revokes a key, within a second on every node. Repeating the request changes nothing.",
            keys::revoke,
        )
        .allow_support(),
        Operation::new(
            Method::POST,
            "/admin/v1/keys/{key_id}/rotate",
            "rotateKey",
            "Issues a replacement for a key. It has the same label, environments and networks. The old key stays \
            valid for the overlap.",
            keys::rotate,
        )
        .with_refusal(sakshi_service::keys::NOT_ACTIVE, "The key is revoked or expired."),
    ]
}

pub(super) fn users() -> Vec<Operation> {
    vec![
        Operation::new(
            Method::GET,
            USERS,
            "listUsers",
            "Lists the users of a client, including disabled users.",
            users::list,
        )
        .allow_support(),
        Operation::new(
            Method::POST,
            USERS,
            "inviteUser",
            "Invites a user. Only this response contains the link, which works once within 72 hours. The service \
            sends no e-mail.",
            users::invite,
        )
        .with_refusal(
            sakshi_service::users::EMAIL_TAKEN,
            "Another user has the address, or the client has too many users.",
        ),
        Operation::new(
            Method::PATCH,
            USER,
            "updateUser",
            "Changes the role of a user, or disables or enables the user. The change is effective on every node \
            within a second.",
            users::patch,
        ),
        Operation::new(
            Method::DELETE,
            USER,
            "removeUser",
            "Removes a user with name, address and sessions. The log of the client keeps the name for its own \
            retention.",
            users::remove,
        ),
        Operation::new(
            Method::POST,
            "/admin/v1/users/{user_id}/invite",
            "resetUser",
            "Creates a new link for a user. The user's password, codes and sessions become invalid at once.",
            users::reset,
        ),
    ]
}

pub(super) fn credits() -> Vec<Operation> {
    let mut operations = vec![
        Operation::new(Method::GET, CREDITS, "getClientCredits", "Returns the balance of a client.", credits::balance),
        Operation::new(
            Method::POST,
            CREDITS,
            "grantCredits",
            "Grants credits to a client, or corrects its balance. Repeating a movement under the same reference \
            changes nothing. A movement above `admin.second_person_above` of the settings waits as a request until \
            another operator confirms it, for a day at most.",
            credits::change,
        )
        .with_refusal(
            credits::REFERENCE_REUSED,
            "The reference was used with another amount, or the balance would be negative or too large to count.",
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
            "Recomputes every ledger. It reads every entry of every client.",
            credits::audit,
        ),
    ];
    operations.extend(grant_requests());
    operations
}

fn grant_requests() -> Vec<Operation> {
    vec![
        Operation::new(
            Method::GET,
            "/admin/v1/credits/requests",
            "listGrantRequests",
            "Lists the movements of credits that wait for a second operator, and those decided within the last day.",
            grants::list,
        ),
        Operation::new(
            Method::POST,
            "/admin/v1/credits/requests/{grant_id}/confirm",
            "confirmGrant",
            "Confirms a movement of credits that another operator requested, and carries it out. Repeating the \
            request changes nothing.",
            grants::confirm,
        )
        .with_refusal(grants::SECOND_PERSON, "The same operator requested the movement, or it was refused."),
        Operation::new(
            Method::POST,
            "/admin/v1/credits/requests/{grant_id}/refuse",
            "refuseGrant",
            "Refuses a movement of credits that waits for a second operator. The operator who requested it can \
            withdraw it in the same way.",
            grants::refuse,
        )
        .with_refusal(grants::DECIDED, "The movement was confirmed before."),
    ]
}

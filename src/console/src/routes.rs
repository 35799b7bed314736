//! The routes of the console. Ids in paths have the same names as in the admin API, because its handlers and the audit
//! log read them.

use actix_web::web;
use sakshi_web::routing::{Audience, Row, row};

use super::layout::{OWN_ICON, SCRIPT, STYLE};
use super::{
    audit_log, brand, clients, consents, credits, encryption, erasure, find, flow, front, keys, operators,
    provider_sign_in, requests, sign_in, transaction, tree, webhooks,
};

/// Every route of the console.
pub const ROUTES: &[Row] = &[
    row("GET", "/console", Audience::Operators, || web::to(front::show)),
    row("GET", "/console/", Audience::Operators, || web::to(front::redirect_to_overview)),
    row("GET", "/console/sign-in", Audience::Operators, || web::to(sign_in::show)),
    row("POST", "/console/sign-in", Audience::Operators, || web::to(sign_in::submit)),
    row("POST", "/console/sign-out", Audience::Operators, || web::to(sign_in::sign_out)),
    row("GET", "/console/oidc/start", Audience::Operators, || web::to(provider_sign_in::start)),
    row("GET", "/console/oidc/back", Audience::Operators, || web::to(provider_sign_in::return_from_provider)),
    row("POST", "/console/oidc/logout", Audience::Operators, || web::to(provider_sign_in::logout)),
    row("GET", "/console/find", Audience::Operators, || web::to(find::find)),
    row("POST", "/console/grants/{grant_id}/confirm", Audience::Operators, || web::to(front::confirm)),
    row("POST", "/console/grants/{grant_id}/refuse", Audience::Operators, || web::to(front::refuse)),
    row("GET", "/console/clients", Audience::Operators, || web::to(clients::list)),
    row("GET", "/console/clients/{client_id}", Audience::Operators, || web::to(clients::show)),
    row("POST", "/console/clients/{client_id}/state", Audience::Operators, || web::to(clients::change_state)),
    row("GET", "/console/clients/{client_id}/credits", Audience::Operators, || web::to(credits::show)),
    row("POST", "/console/clients/{client_id}/credits", Audience::Operators, || web::to(credits::change)),
    row("GET", "/console/clients/{client_id}/keys", Audience::Operators, || web::to(keys::list)),
    row("POST", "/console/clients/{client_id}/keys", Audience::Operators, || web::to(keys::issue)),
    row("GET", "/console/clients/{client_id}/brand", Audience::Operators, || web::to(brand::show)),
    row("POST", "/console/clients/{client_id}/brand", Audience::Operators, || web::to(brand::change)),
    row("GET", "/console/clients/{client_id}/verifications", Audience::Operators, || web::to(webhooks::verifications)),
    row("GET", "/console/clients/{client_id}/webhooks", Audience::Operators, || web::to(webhooks::show)),
    row("GET", "/console/clients/{client_id}/consents", Audience::Operators, || web::to(consents::show)),
    row("GET", "/console/apps/{app_id}", Audience::Operators, || web::to(clients::app)),
    row("GET", "/console/events/{event_id}", Audience::Operators, || web::to(clients::event)),
    row("GET", "/console/keys/{key_id}", Audience::Operators, || web::to(keys::show)),
    row("POST", "/console/keys/{key_id}/rotate", Audience::Operators, || web::to(keys::rotate)),
    row("POST", "/console/keys/{key_id}/revoke", Audience::Operators, || web::to(keys::revoke)),
    row("GET", "/console/transactions/{txn_id}", Audience::Operators, || web::to(transaction::show)),
    row("GET", "/console/flows/{flow_id}", Audience::Operators, || web::to(flow::show)),
    row("GET", "/console/requests/{request_id}", Audience::Operators, || web::to(requests::show)),
    row("GET", "/console/tree", Audience::Operators, || web::to(tree::show)),
    row("GET", "/console/tree/live", Audience::Operators, || web::to(tree::live)),
    row("GET", "/console/operators", Audience::Operators, || web::to(operators::show)),
    row("GET", "/console/audit-log", Audience::Operators, || web::to(audit_log::show)),
    row("GET", "/console/audit-log/verify", Audience::Operators, || web::to(audit_log::verify)),
    row("GET", "/console/encryption", Audience::Operators, || web::to(encryption::show)),
    row("POST", "/console/encryption", Audience::Operators, || web::to(encryption::step)),
    row("GET", "/console/erasures", Audience::Operators, || web::to(erasure::show)),
    row("POST", "/console/erasures", Audience::Operators, || web::to(erasure::erase)),
    row("GET", "/console/assets/console.css", Audience::Operators, || STYLE.route()),
    row("GET", "/console/assets/tree.js", Audience::Operators, || SCRIPT.route()),
    row("GET", "/console/assets/icon.svg", Audience::Operators, || OWN_ICON.route()),
    row("GET", "/console/{page:.*}", Audience::Operators, || web::to(front::unknown_page)),
];

//! `/console/clients`: the list of clients, and a client with its apps, limits and events.

use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse};
use futures_util::future::try_join_all;
use sakshi_domain::http_url::HttpUrl;
use sakshi_domain::ids::{AppId, ClientId};
use sakshi_domain::tenancy::{App, Client};
use sakshi_service::ServiceError;
use sakshi_store::PageRequest;
use sakshi_web::form::Kind;
use sakshi_web::html::redirect;
use sakshi_web::paging::newest;
use sakshi_web::query::Query;
use sakshi_wire::operator::tenancy::AppResponse;

use crate::error::ConsoleError;
use crate::layout::Section;
use crate::records::{BATCH_SIZE, ClientBalance, app_cell, client_cell, find_client, load_balances};
use crate::staff::Staff;
use crate::submitted::{Form, SubmittedForm};
use crate::view::{Cell, FormView, Part, Table, View};
use crate::webhooks::webhooks_of_newest;

/// Number of newest verifications examined for lost webhooks, and of newest refused requests shown.
const NEWEST_MAX: usize = 20;
/// Number of events of an app on its client's page.
const EVENTS_MAX: u32 = 20;

/// Shows a page of all clients, newest first.
///
/// # Errors
/// [`ConsoleError::SignIn`] without a session; any error of the store.
pub(crate) async fn list(staff: Staff, request: HttpRequest) -> Result<HttpResponse, ConsoleError> {
    let mut query = Query::parse(request.query_string());
    let number = query.number(&["page"], 1..=u32::MAX, 1);
    query.finish()?;
    let list = newest(number, |page| staff.api.store.list_clients(page)).await?;
    let pages = list.pages;
    let balances = load_balances(&staff, list.items).await?;
    let mut webhooks = Vec::new();
    for batch in balances.chunks(BATCH_SIZE) {
        webhooks.extend(
            try_join_all(batch.iter().map(|balance| webhooks_of_newest(&staff, &balance.client.client_id, NEWEST_MAX)))
                .await?,
        );
    }
    let rows = balances.into_iter().zip(webhooks).map(|(balance, webhooks)| client_row(balance, webhooks.lost.len()));
    let table = Table {
        caption: "Clients, newest first",
        columns: &["Client", "Id", "State", "Credits", "Lost webhooks", "Limits"],
        rows: rows.collect(),
    };
    let words = format!("Lost webhooks are counted over the newest {NEWEST_MAX} verifications.");
    let page_path = |page: Option<u32>| page.map(|page| format!("/console/clients?page={page}"));
    let view = View::new(&staff, Some(Section::Clients), "Clients").lead("Clients pay for verifications.");
    let view = view.part(
        Part::new("list", "All clients")
            .words(words)
            .table(table, "There is no client yet. Create one with sakshi admin clients create."),
    );
    Ok(view.page(page_path(pages.newer_page()), "Newer").page(page_path(pages.older_page()), "Older").ok())
}

fn client_row(ClientBalance { client, balance, is_low }: ClientBalance, lost: usize) -> Vec<Cell> {
    let id = client.client_id.clone();
    let credits = Cell::number(balance);
    vec![
        Cell::Link { href: format!("/console/clients/{id}"), text: client.name.clone() },
        Cell::code(&id),
        state_tag(&client),
        if is_low { Cell::Many(vec![credits, Cell::tag("low", "low")]) } else { credits },
        match lost {
            0 => Cell::number(0),
            lost => {
                Cell::Link { href: format!("/console/clients/{id}/webhooks"), text: format!("{lost} of the newest") }
            }
        },
        limits(&client).map_or(Cell::None, Cell::Text),
    ]
}

fn state_tag(client: &Client) -> Cell {
    if client.suspended_at.is_some() { Cell::tag("suspended", "suspended") } else { Cell::tag("good", "active") }
}

/// Describes the limits that are set, in words.
fn limits(client: &Client) -> Option<String> {
    let limits = &client.limits;
    let words = [
        limits.requests_per_second.map(|max| format!("{max} requests a second")),
        limits.events_per_app.map(|max| format!("{max} events of an app")),
        limits.low_credits.map(|limit| format!("low below {limit} credits")),
        limits.retention.result_ttl_s.map(|seconds| format!("results for {seconds} s")),
        limits.retention.registration_ttl_days.map(|days| format!("events for {days} days")),
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// Shows a client.
///
/// # Errors
/// 404 for an unknown client.
pub(crate) async fn show(staff: Staff, path: Path<String>) -> Result<HttpResponse, ConsoleError> {
    let id = path.parse().map_err(|_| ServiceError::NotFound("client"))?;
    Ok(client_page(&staff, id, &Form::default()).await?.ok())
}

async fn client_page(staff: &Staff, id: ClientId, form: &Form) -> Result<View, ConsoleError> {
    let client = find_client(staff, &id).await?;
    let apps = staff.api.store.list_apps(id.clone()).await?;
    let imported_at = staff.api.store.imported_at(id.clone()).await?;
    let ClientBalance { balance, is_low, .. } =
        load_balances(staff, vec![client.clone()]).await?.pop().ok_or(ServiceError::NotFound("client"))?;
    let folder = format!("/console/clients/{id}");
    let credits = Cell::Link { href: format!("{folder}/credits"), text: balance.to_string() };
    let credits = if is_low { Cell::Many(vec![credits, Cell::tag("low", "low")]) } else { credits };
    let about = Part::new("about", "Client")
        .fact("Id", Cell::code(&id))
        .fact("Created", Cell::at(client.created_at))
        .fact("Imported", Cell::or_none(imported_at, Cell::at))
        .fact("Suspended", Cell::or_none(client.suspended_at, Cell::at))
        .fact("Credits", credits)
        .fact("Limits", limits(&client).map_or(Cell::text("the defaults"), Cell::Text))
        .link(format!("{folder}/credits"), "Credits: statement and grants")
        .link(format!("{folder}/keys"), "API keys")
        .link(format!("{folder}/verifications"), "Verifications, by the client’s own reference")
        .link(format!("{folder}/webhooks"), "Lost webhooks")
        .link(format!("{folder}/consents"), "Register of consents")
        .link(format!("{folder}/brand"), "Brand");
    let mut view = View::new(staff, Some(Section::Clients), client.name.clone())
        .back("/console/clients", "Clients")
        .tag(state_tag(&client))
        .problems_if(form.problems())
        .part(about)
        .part(events_part(staff, &apps).await?)
        .part(apps_part(apps));
    if staff.may("updateClient") {
        view = view.part(state_part(staff, &client));
    }
    Ok(view)
}

fn apps_part(apps: Vec<App>) -> Part {
    let row = |app: App| {
        let id = app.app_id.clone();
        vec![
            Cell::Link { href: format!("/console/apps/{id}"), text: app.name },
            Cell::code(id),
            Cell::text(if app.evidence { "stored" } else { "on request" }),
            Cell::at(app.created_at),
        ]
    };
    let rows = apps.into_iter().map(row).collect();
    let table = Table { caption: "Apps", columns: &["App", "Id", "Evidence", "Created"], rows };
    Part::new("apps", "Apps").table(table, "The client has no apps yet.")
}

async fn events_part(staff: &Staff, apps: &[App]) -> Result<Part, ConsoleError> {
    let (mut rows, now) = (Vec::new(), staff.api.clock.now());
    for app in apps {
        let page = PageRequest { page: 1, page_size: EVENTS_MAX };
        for event in staff.api.store.list_events(app.app_id.clone(), page).await?.items {
            rows.push(vec![
                Cell::Link {
                    href: format!("/console/events/{}", event.id),
                    text: event.terms.name.as_str().to_owned(),
                },
                Cell::code(event.id),
                Cell::tag("", event.status(now).as_str()),
                Cell::text(format!("{} of {}", event.counts.registrations, event.terms.max_guests.get())),
                Cell::at(event.terms.expires_at),
            ]);
        }
    }
    let table = Table { caption: "Events", columns: &["Event", "Id", "Status", "Guests", "Ends"], rows };
    Ok(Part::new("events", "Events")
        .words(format!("The first {EVENTS_MAX} events of each app."))
        .table(table, "There are no events."))
}

fn state_part(staff: &Staff, client: &Client) -> Part {
    let action = format!("/console/clients/{}/state", client.client_id);
    if client.suspended_at.is_some() {
        let form = FormView::new(staff, action, "Resume").hidden("suspended", "false");
        return Part::new("state", "Resume")
            .words("Its keys are valid again within a second, and its events accept guests.")
            .form(form);
    }
    let words = "Every node refuses its keys with 401 within a second, and its events accept no further guests. \
        Verifications in progress continue.";
    let form = FormView::new(staff, action, "Suspend").hidden("suspended", "true").dangerous();
    Part::new("state", "Suspend").words(words).form(form)
}

/// Suspends or resumes a client.
///
/// # Errors
/// Any error that the form cannot show.
pub(crate) async fn change_state(submitted: SubmittedForm, path: Path<String>) -> Result<HttpResponse, ConsoleError> {
    let id: ClientId = path.parse().map_err(|_| ServiceError::NotFound("client"))?;
    let done = if submitted.form.value("suspended") == "true" { "suspended" } else { "resumed" };
    match submitted.carry_out("updateClient", Some(submitted.form.request_body(&[("suspended", Kind::Flag)]))).await {
        Ok(_) => Ok(redirect(&format!("/console/clients/{id}?done={done}"))),
        Err(error) => {
            let SubmittedForm { staff, form } = submitted;
            let (status, form) = form.with_error(error)?;
            Ok(client_page(&staff, id, &form).await?.respond(status))
        }
    }
}

/// Shows an app.
///
/// # Errors
/// 404 for an unknown app.
pub(crate) async fn app(staff: Staff, path: Path<String>) -> Result<HttpResponse, ConsoleError> {
    let id: AppId = path.parse().map_err(|_| ServiceError::NotFound("app"))?;
    let app = staff.api.store.load_app(id.clone()).await?.ok_or(ServiceError::NotFound("app"))?;
    let client = client_cell(&staff, &app.client_id).await?;
    // Paths and queries of URLs often contain secrets.
    let visible_app = AppResponse::from(app.clone());
    let visible_app = if staff.is_owner() { visible_app } else { visible_app.without_paths() };
    let url = |url: Option<HttpUrl>| Cell::or_none(url, |url| Cell::code(url.as_str()));
    let spelling = serde_json::to_value(app.payload_spelling).ok().and_then(|word| word.as_str().map(str::to_owned));
    let about = Part::new("about", "App")
        .fact("Id", Cell::code(&id))
        .fact("Client", client)
        .fact("Created", Cell::at(app.created_at))
        .fact("Spelling of payloads", spelling.map_or(Cell::None, Cell::Code))
        .fact(
            "Evidence",
            Cell::text(if app.evidence {
                "stored, unless a request says otherwise"
            } else {
                "stored only if a request asks for it"
            }),
        )
        .fact("Wealth consents go to", url(visible_app.consent_webhook_url))
        .fact("Wealth data go to", url(visible_app.data_webhook_url))
        .fact("Historical wealth data go to", url(visible_app.historical_webhook_url));
    let urls = staff.api.store.webhook_urls(id.clone()).await?.ok_or(ServiceError::NotFound("app"))?;
    let rows =
        urls.iter().map(|(api_type, url)| vec![Cell::code(api_type.as_str()), Cell::code(url.origin())]).collect();
    let origins = Table { caption: "Receivers of webhooks", columns: &["Type", "Origin"], rows };
    let refusals = staff.api.store.refusals(id).await?;
    let refused_rows = refusals.into_iter().take(NEWEST_MAX).map(|refused| {
        vec![
            Cell::link("requests", refused.request_id.as_str()),
            Cell::at(refused.at),
            Cell::text(format!("{} {}", refused.method, refused.route)),
            Cell::number(refused.status),
            Cell::code(refused.code),
        ]
    });
    let refused_requests = Table {
        caption: "Refused requests",
        columns: &["errorId", "At", "Request", "Status", "Code"],
        rows: refused_rows.collect(),
    };
    let view = View::new(&staff, Some(Section::Clients), app.name.clone())
        .back(format!("/console/clients/{}", app.client_id), "Client")
        .part(about)
        .part(Part::new("receivers", "Receivers").table(origins, "The app has registered no URL."))
        .part(events_part(&staff, &[app]).await?)
        .part(
            Part::new("refused", "Refused requests")
                .words(format!("The newest {NEWEST_MAX} of the last day."))
                .table(refused_requests, "No request was refused."),
        );
    Ok(view.ok())
}

/// Shows an event with its counts.
///
/// # Errors
/// 404 for an unknown event.
pub(crate) async fn event(staff: Staff, path: Path<String>) -> Result<HttpResponse, ConsoleError> {
    let id = path.parse().map_err(|_| ServiceError::NotFound("event"))?;
    let event = staff.api.store.load_event(id).await?.ok_or(ServiceError::NotFound("event"))?;
    let (now, counts, terms) = (staff.api.clock.now(), event.counts, &event.terms);
    let about = Part::new("about", "Event")
        .fact("Id", Cell::code(id))
        .fact("Client", client_cell(&staff, &event.client).await?)
        .fact("App", app_cell(&staff, &event.app).await?)
        .fact("Created", Cell::at(event.created_at))
        .fact("Begins", Cell::or_none(terms.starts_at, Cell::at))
        .fact("Ends", Cell::at(terms.expires_at))
        .fact("Webhook goes to", Cell::or_none(terms.webhook_url.as_ref(), |url| Cell::code(url.origin())))
        .fact("Credits that guests may spend", Cell::or_none(terms.credit_budget, |budget| Cell::number(budget.get())));
    let guests = Part::new("guests", "Guests")
        .fact("Registered", Cell::text(format!("{} of {}", counts.registrations, terms.max_guests.get())))
        .fact("Scans, one credit each", Cell::number(counts.scans))
        .fact("Expired without an answer", Cell::number(counts.abandoned))
        .fact("Waiting for an answer", Cell::number(counts.pending))
        .fact("Checked in", Cell::number(counts.checked_in))
        .fact("Possible duplicates", Cell::number(counts.duplicates));
    let view = View::new(&staff, Some(Section::Clients), terms.name.as_str())
        .back(format!("/console/clients/{}", event.client), "Client")
        .tag(Cell::tag("", event.status(now).as_str()))
        .part(about)
        .part(guests);
    Ok(view.ok())
}

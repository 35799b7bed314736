//! `/console/operators`: the people who operate the service.

use actix_web::HttpResponse;
use sakshi_domain::operator::OperatorRecord;

use crate::error::ConsoleError;
use crate::layout::Section;
use crate::staff::Staff;
use crate::view::{Cell, Part, Table, View};

/// Shows the operators, newest first.
///
/// # Errors
/// [`ConsoleError::SignIn`] without a session; any error of the store.
pub(crate) async fn show(staff: Staff) -> Result<HttpResponse, ConsoleError> {
    let (operators, now) = (staff.api.store.operators().await?, staff.api.clock.now());
    let row = |operator: &OperatorRecord| {
        let state = match (operator.revoked_at, operator.is_valid(now)) {
            (Some(_), _) => Cell::tag("revoked", "revoked"),
            (None, true) => Cell::tag("good", "works"),
            (None, false) => Cell::tag("bad", "ended"),
        };
        let log = format!("/console/audit-log?operator={}", operator.operator_id);
        vec![
            Cell::text(operator.name.clone()),
            Cell::text(operator.role.as_str()),
            state,
            Cell::code(&operator.operator_id),
            Cell::at(operator.created_at),
            Cell::or_none(operator.revoked_at.or(operator.expires_at), Cell::at),
            Cell::Link { href: log, text: "changes".to_owned() },
        ]
    };
    let columns = &["Name", "Role", "Token", "Id", "Added", "Ends", "Audit log"];
    let table = Table { caption: "Operators, newest first", columns, rows: operators.iter().rev().map(row).collect() };
    let words = "An owner adds an operator with sakshi admin operators add, and revokes an operator with sakshi admin \
        operators revoke. The sessions of a revoked operator end at once.";
    let part = Part::new("operators", "Operators")
        .words(words)
        .table(table, "There are no operators yet: everybody uses the token of the settings.");
    Ok(View::new(&staff, Some(Section::Operators), "Operators").part(part).ok())
}

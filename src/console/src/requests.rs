//! `/console/requests/{request_id}`: the refused requests with an `errorId`.

use actix_web::HttpResponse;
use actix_web::web::Path;
use sakshi_domain::request_id::RequestId;
use sakshi_operator::console_api::carry_out;
use sakshi_service::ServiceError;
use sakshi_web::error::ApiError;
use sakshi_wire::operator::views::RefusedRequests;

use crate::error::ConsoleError;
use crate::layout::Section;
use crate::records::{app_cell, client_cell};
use crate::staff::Staff;
use crate::view::{Cell, Part, View};

/// Shows the refused requests with an id.
///
/// # Errors
/// The store is unavailable.
pub(crate) async fn show(staff: Staff, path: Path<String>) -> Result<HttpResponse, ConsoleError> {
    let id = RequestId::parse(&path).map_err(|_| ServiceError::NotFound("request"))?;
    let requests = match carry_out(&staff.request, "findRefusedRequest", None).await {
        Ok(requests) => serde_json::from_value::<RefusedRequests>(requests).map_err(ApiError::internal)?.requests,
        Err(ApiError::Service(ServiceError::NotFound(_))) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let mut view = View::new(&staff, Some(Section::Front), format!("Request {id}"));
    if requests.is_empty() {
        let words = "No refused request with this errorId is stored. The newest 200 of each app are stored for a day. \
            Accepted and unauthenticated requests are only in the log: search it for this id.";
        view = view.part(Part::new("none", "Nothing is stored").words(words));
    }
    for (number, refused) in requests.into_iter().enumerate() {
        let id = ["first", "second", "third"].get(number).copied().unwrap_or("further");
        let fields = if refused.fields.is_empty() { Cell::None } else { Cell::code(refused.fields.join(", ")) };
        let part = Part::new(id, format!("{} {}", refused.method, refused.route))
            .fact("At", Cell::at(refused.at))
            .fact("Status", Cell::number(refused.status))
            .fact("Code", Cell::code(&refused.code))
            .fact("Fields", fields)
            .fact("Client", client_cell(&staff, &refused.client_id).await?)
            .fact("App", app_cell(&staff, &refused.app_id).await?);
        view = view.part(part);
    }
    Ok(view.ok())
}

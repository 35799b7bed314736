//! `/console/clients/{client_id}/brand`: the name and look of a client on pages, with its logo.

use actix_web::HttpResponse;
use actix_web::web::Path;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sakshi_domain::brand::Brand;
use sakshi_domain::ids::ClientId;
use sakshi_service::ServiceError;
use sakshi_web::field::Field;
use sakshi_web::form::Kind;
use sakshi_web::html::redirect;
use sakshi_wire::ReceivedObject;
use sakshi_wire::json::Json;

use crate::error::ConsoleError;
use crate::layout::Section;
use crate::records::find_client;
use crate::staff::Staff;
use crate::submitted::{Form, SubmittedForm};
use crate::view::{Cell, Choices, FormView, Part, View};

/// The files of a brand, with their labels.
const FILES: [(&str, &str); 2] = [
    ("logo", "Logo: PNG or SVG, at most 16,384 bytes"),
    ("picture", "Picture of its events: JPEG, PNG or SVG, at most 24,576 bytes"),
];
/// Conversions of the text fields to the fields of the request.
const FIELD_KINDS: &[(&str, Kind)] = &[
    ("name", Kind::Removable),
    ("colour", Kind::Removable),
    ("support", Kind::Removable),
    ("privacy_url", Kind::Removable),
];

/// Shows the brand of a client.
///
/// # Errors
/// 404 for an unknown client.
pub(crate) async fn show(staff: Staff, path: Path<String>) -> Result<HttpResponse, ConsoleError> {
    let id = path.parse().map_err(|_| ServiceError::NotFound("client"))?;
    Ok(brand_page(&staff, id, None).await?.ok())
}

async fn brand_page(staff: &Staff, id: ClientId, form: Option<&Form>) -> Result<View, ConsoleError> {
    let client = find_client(staff, &id).await?;
    let brand = client.brand;
    let file = |is_set: bool| if is_set { Cell::tag("good", "set") } else { Cell::text("none") };
    let about = Part::new("about", "Brand")
        .words("Pages show this brand. The brand of an event takes precedence.")
        .fact("Logo", file(brand.logo.is_some()))
        .fact("Picture of its events", file(brand.picture.is_some()));
    let mut view = View::new(staff, Some(Section::Clients), format!("Brand of {}", client.name))
        .back(format!("/console/clients/{id}"), client.name)
        .problems_if(form.map_or(&[], Form::problems))
        .part(about);
    if staff.may("changeClientBrand") {
        view = view.part(
            Part::new("change", "Change")
                .words("An empty field removes that part of the brand.")
                .form(brand_form(staff, &id, &brand, form)),
        );
    }
    Ok(view)
}

fn brand_form(staff: &Staff, id: &ClientId, brand: &Brand, form: Option<&Form>) -> FormView {
    let stored = |name: &str| match name {
        "name" => brand.name.clone(),
        "colour" => brand.colour.map(String::from),
        "support" => brand.support.as_ref().map(|contact| contact.as_str().to_owned()),
        _ => brand.privacy_url.as_ref().map(|url| url.as_str().to_owned()),
    };
    let value = |name: &str| form.map_or_else(|| stored(name).unwrap_or_default(), |form| form.value(name).to_owned());
    let text = |name: &'static str, label: &'static str| Field::new(name, label, "text", value(name), None);
    let mut view = FormView::new(staff, format!("/console/clients/{id}/brand"), "Change the brand")
        .field(text("name", "Name on pages"))
        .field(text("colour", "Colour of buttons and links, such as #7a1f3d"))
        .field(text("support", "Contact: e-mail address, telephone number or https URL"))
        .field(text("privacy_url", "URL of the privacy notice"))
        .with_file();
    for (name, label) in FILES {
        view = view.field(Field::new(name, label, "file", "", None));
    }
    let file_choices = [
        ("", "Keep current files, except those replaced above"),
        ("logo", "Remove the logo"),
        ("picture", "Remove the picture"),
    ];
    let options = file_choices.map(|(value, label)| (value.to_owned(), label.to_owned())).into();
    view.choices(Choices { name: "remove", label: "Files", options, chosen: String::new() })
}

/// Builds the body of the request. A file that was not chosen stays, unless its removal was chosen.
fn request_body(form: &mut Form) -> ReceivedObject {
    let remove = form.take("remove");
    let mut body = form.request_body(FIELD_KINDS);
    for (name, _) in FILES {
        let file = form.files.iter().find(|(field, bytes)| field == name && !bytes.is_empty());
        match file {
            Some((_, bytes)) => body.0.push((name.to_owned(), Json::Text(STANDARD.encode(bytes)))),
            None if remove == name => body.0.push((name.to_owned(), Json::Null)),
            None => {}
        }
    }
    body
}

/// Changes the brand.
///
/// # Errors
/// Any error that the form cannot show.
pub(crate) async fn change(mut submitted: SubmittedForm, path: Path<String>) -> Result<HttpResponse, ConsoleError> {
    let id: ClientId = path.parse().map_err(|_| ServiceError::NotFound("client"))?;
    let request_body = request_body(&mut submitted.form);
    match submitted.carry_out("changeClientBrand", Some(request_body)).await {
        Ok(_) => Ok(redirect(&format!("/console/clients/{id}/brand?done=brand"))),
        Err(error) => {
            let SubmittedForm { staff, form } = submitted;
            let (status, form) = form.with_error(error)?;
            Ok(brand_page(&staff, id, Some(&form)).await?.respond(status))
        }
    }
}

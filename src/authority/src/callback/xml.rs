//! The XML format: `<Request>` with `TxnID` and either `Credential` or `ErrorCode` and `ErrorMsg`.
//!
//! The document has two levels. The reader refuses document types, entities other than the five predefined
//! ones, and comments or processing instructions inside a value, which would split its text.

use quick_xml::Reader;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesDecl, BytesRef, BytesStart, Event};
use sakshi_domain::limits::CALLBACK_ELEMENTS_MAX;

use super::message::{CallbackFault, Fields};

/// Reads the fields of an XML callback.
pub(super) fn read(body: &[u8]) -> Result<Fields, CallbackFault> {
    let text = std::str::from_utf8(body).map_err(|_| CallbackFault::Malformed)?;
    let mut reader = Reader::from_str(text.strip_prefix('\u{feff}').unwrap_or(text));
    open_root(&mut reader)?;
    let mut fields = Fields::default();
    let mut names = Vec::new();
    loop {
        match next_event(&mut reader)? {
            Event::Start(element) => {
                record_name(&element, &mut names)?;
                let value = read_text(&mut reader)?;
                set_field(&mut fields, &element, value);
            }
            Event::Empty(element) => record_name(&element, &mut names)?,
            Event::End(_) => break,
            Event::Comment(_) => {}
            Event::Text(text) if is_blank(&text) => {}
            _ => return Err(CallbackFault::Malformed),
        }
    }
    expect_end(&mut reader)?;
    Ok(fields)
}

/// Reads up to the start of the root element.
fn open_root(reader: &mut Reader<&[u8]>) -> Result<(), CallbackFault> {
    let mut is_first_event = true;
    loop {
        match next_event(reader)? {
            Event::Decl(declaration) if is_first_event => check_encoding(&declaration)?,
            Event::Comment(_) => {}
            Event::Text(text) if is_blank(&text) => {}
            Event::Start(root) if root.local_name().as_ref() == "Request" => return Ok(()),
            _ => return Err(CallbackFault::Malformed),
        }
        is_first_event = false;
    }
}

/// Checks that nothing but comments follows the root element.
fn expect_end(reader: &mut Reader<&[u8]>) -> Result<(), CallbackFault> {
    loop {
        match next_event(reader)? {
            Event::Eof => return Ok(()),
            Event::Comment(_) => {}
            Event::Text(text) if is_blank(&text) => {}
            _ => return Err(CallbackFault::Malformed),
        }
    }
}

/// Reads the text of an element that contains only text. Blank means absent.
fn read_text(reader: &mut Reader<&[u8]>) -> Result<Option<String>, CallbackFault> {
    let mut value = String::new();
    loop {
        match next_event(reader)? {
            Event::Text(text) => value.push_str(&text.xml10_content()),
            Event::CData(text) => value.push_str(&text.xml10_content()),
            Event::GeneralRef(reference) => push_reference(&reference, &mut value)?,
            Event::End(_) => break,
            Event::Start(_) | Event::Empty(_) => return Err(CallbackFault::Structure),
            _ => return Err(CallbackFault::Malformed),
        }
    }
    let trimmed = value.trim();
    match trimmed.len() {
        0 => Ok(None),
        // The value, which may be a large credential, is not copied.
        length if length == value.len() => Ok(Some(value)),
        _ => Ok(Some(trimmed.to_owned())),
    }
}

/// Returns the next event; a document type is an error.
fn next_event<'a>(reader: &mut Reader<&'a [u8]>) -> Result<Event<'a>, CallbackFault> {
    match reader.read_event() {
        Ok(Event::DocType(_)) => Err(CallbackFault::Entities),
        Ok(event) => Ok(event),
        Err(_) => Err(CallbackFault::Malformed),
    }
}

/// Adds the name of an element to `names`. Refuses a repeated name, and too many elements.
fn record_name(element: &BytesStart<'_>, names: &mut Vec<String>) -> Result<(), CallbackFault> {
    let name = element.local_name().as_ref().to_owned();
    if names.contains(&name) {
        return Err(CallbackFault::Repeated);
    }
    if names.len() == CALLBACK_ELEMENTS_MAX {
        return Err(CallbackFault::Structure);
    }
    names.push(name);
    Ok(())
}

/// Sets the field that has the name of the element. Unknown elements are ignored.
fn set_field(fields: &mut Fields, element: &BytesStart<'_>, value: Option<String>) {
    match element.local_name().as_ref() {
        "TxnID" => fields.txn = value,
        "Credential" => fields.credential = value,
        "ErrorCode" => fields.code = value,
        "ErrorMsg" => fields.message = value,
        _ => {}
    }
}

/// Appends the character of a reference, or the text of a predefined entity.
fn push_reference(reference: &BytesRef<'_>, value: &mut String) -> Result<(), CallbackFault> {
    if let Some(character) = reference.resolve_char_ref().map_err(|_| CallbackFault::Malformed)? {
        value.push(character);
        return Ok(());
    }
    value.push_str(resolve_xml_entity(reference).ok_or(CallbackFault::Entities)?);
    Ok(())
}

/// Refuses an XML declaration of any encoding but UTF-8.
fn check_encoding(declaration: &BytesDecl<'_>) -> Result<(), CallbackFault> {
    match declaration.encoding() {
        None => Ok(()),
        Some(Ok(name)) if ["utf-8", "utf8", "us-ascii"].iter().any(|known| name.eq_ignore_ascii_case(known)) => Ok(()),
        Some(_) => Err(CallbackFault::Malformed),
    }
}

fn is_blank(text: &str) -> bool {
    text.chars().all(|c| matches!(c, ' ' | '\t' | '\r' | '\n'))
}

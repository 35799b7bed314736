//! Fields of a request: spellings, paths, and every problem at once.

use crate::fields::*;

fn problems(body: &str, read: impl FnOnce(&mut Fields)) -> Vec<(String, String)> {
    let mut fields = Fields::of(body.as_bytes()).unwrap();
    read(&mut fields);
    match fields.finish(Some(())) {
        Ok(()) => Vec::new(),
        Err(ApiError::Service(ServiceError::Invalid(invalid))) => {
            invalid.fields().iter().map(|field| (field.field.clone(), field.message.clone())).collect()
        }
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn every_problem_is_told_under_the_name_that_was_sent() {
    let read = |fields: &mut Fields| {
        fields.required("face_auth", flag);
        fields.optional("max_guests", whole(1..=9));
        fields.changed("time_zone", words(3));
        fields.replaced("kind_word", one_of([("grant", 1), ("adjust", 2)]));
        fields.agreed::<()>(Err(Invalid::one("list_of[2].part", "is odd")));
    };
    let told = |field: &str, message: &str| (field.to_owned(), message.to_owned());
    for (body, expected) in [
        (
            r#"{"faceAuth": 1, "x": {}, "maxGuests": 0, "time_zone": "long", "kindWord": "take", "y": 1}"#,
            vec![
                told("faceAuth", "must be true or false"),
                told("maxGuests", "must be a whole number from 1 to 9"),
                told("time_zone", "must be 1 to 3 characters without control characters"),
                told("kindWord", "must be grant or adjust"),
                told("list_of[2].part", "is odd"),
                told("x", "is not a field of this request"),
                told("y", "is not a field of this request"),
            ],
        ),
        (
            r#"{"face_auth": null, "max_guests": 2.0, "timeZone": null, "kind_word": null}"#,
            vec![
                told("face_auth", "is required"),
                told("max_guests", "must be a whole number from 1 to 9"),
                told("timeZone", "must not be null; leave it out to keep what is set"),
                told("list_of[2].part", "is odd"),
            ],
        ),
        (
            r#"{"faceAuth": true, "face_auth": 7, "max_guests": 2, "max_guests": 3}"#,
            vec![
                told("faceAuth", "is given as face_auth too; give one of them"),
                told("max_guests", "is given more than once"),
                told("list_of[2].part", "is odd"),
            ],
        ),
    ] {
        assert_eq!(problems(body, read), expected, "{body}");
    }
}

#[test]
fn a_part_is_told_under_the_spelling_of_its_whole() {
    let found = problems(r#"{"listOf": []}"#, |fields| {
        fields.optional("list_of", |_| Err::<(), _>(Invalid::one("list_of[0]", "is missing").into()));
    });
    assert_eq!(found, [("listOf[0]".to_owned(), "is missing".to_owned())]);
}

#[test]
fn a_body_that_is_no_object_is_told_as_such() {
    for body in ["[]", "7", "null", "\"text\"", "[[1], 2]"] {
        let Err(ApiError::Service(ServiceError::Invalid(invalid))) = Fields::of(body.as_bytes()) else { panic!("{body}") };
        assert_eq!(invalid, Invalid::one("body", "must be a JSON object"));
    }
}

#[test]
fn what_was_read_is_not_shown() {
    let fields = Fields::of(br#"{"name_hint": "Asha"}"#).unwrap();
    assert!(!format!("{fields:?}").contains("Asha"));
}

/// Somebody invited, as a request with parts reads them.
#[derive(Debug, Default, PartialEq)]
struct Guest {
    name: Option<String>,
    ref_id: Option<String>,
}

fn guest(fields: &mut Fields) -> Guest {
    Guest { name: fields.text("guestName"), ref_id: fields.text("guestRefId") }
}

#[test]
fn objects_and_lists_are_read_in_either_spelling_on_every_level() {
    for body in [
        r#"{"hostInfo": {"guestName": "A"}, "guestInfo": [{"guestName": "B", "guestRefId": "7"}, {"guestRefId": null}], "docKinds": ["x", "y"]}"#,
        r#"{"host_info": {"guest_name": "A"}, "guest_info": [{"guest_name": "B", "guest_ref_id": "7"}, {}], "doc_kinds": ["x", "y"]}"#,
    ] {
        let mut fields = Fields::of(body.as_bytes()).unwrap();
        let host = fields.object("hostInfo", guest);
        let guests = fields.objects("guestInfo", guest).unwrap();
        assert_eq!(host.unwrap().name.as_deref(), Some("A"));
        assert_eq!((guests[0].name.as_deref(), guests[0].ref_id.as_deref(), &guests[1]), (Some("B"), Some("7"), &Guest::default()));
        assert_eq!(fields.texts("docKinds").unwrap(), ["x", "y"]);
        assert_eq!(fields.objects("others", guest), None);
        assert!(fields.finish(Some(())).is_ok());
    }
}

#[test]
fn what_is_wrong_in_a_part_is_told_by_its_path_as_it_was_sent() {
    let read = |fields: &mut Fields| {
        fields.object("hostInfo", guest);
        let guests = fields.objects("guestInfo", guest).unwrap_or_default();
        fields.texts("docKinds");
        let mut missing = Invalid::none();
        for (index, _) in guests.iter().enumerate().filter(|(_, guest)| guest.name.is_none()) {
            missing.add(format!("guestInfo[{index}].guestName"), "is required");
        }
        fields.agreed::<()>(Err(missing));
    };
    let told = |body: &str| problems(body, read).into_iter().map(|(field, message)| format!("{field} {message}")).collect::<Vec<_>>();
    assert_eq!(
        told(
            r#"{"host_info": {"guest_name": "A", "guestName": "A", "foo.bar": 1}, "guestInfo": [{"guestName": "B"}, {"guest_name": 7, "foo": {}}, 7, {}],
                "docKinds": [1, "x", null], "foo": []}"#
        ),
        [
            "host_info.guest_name is given as guestName too; give one of them",
            "host_info.foo.bar is not a field of this request",
            "guestInfo[1].guest_name must be a string",
            "guestInfo[1].foo is not a field of this request",
            "guestInfo[2] must be an object",
            "docKinds[0] must be a string",
            "docKinds[2] must be a string",
            "guestInfo[3].guestName is required",
            "foo is not a field of this request",
        ]
    );
    assert_eq!(
        told(r#"{"hostInfo": [], "guest_info": {}, "docKinds": "x"}"#),
        ["hostInfo must be an object", "guest_info must be an array", "docKinds must be an array",]
    );
    let long = "n".repeat(1_000);
    assert_eq!(told(&format!(r#"{{"{long}": 1}}"#)), [format!("{} is not a field of this request", "n".repeat(128))]);
}

#[test]
fn a_large_text_is_moved_out_of_the_body_and_not_copied() {
    let text = "A".repeat(1_000_000);
    let Json::Object(members) = Json::read(format!(r#"{{"file": {{"content": "{text}"}}}}"#).as_bytes()).unwrap() else { panic!() };
    let Json::Object(inner) = &members[0].1 else { panic!() };
    let Json::Text(content) = &inner[0].1 else { panic!() };
    let before = content.as_ptr();
    let mut fields = Fields { members, ..Fields::default() };
    let content = fields.object("file", |file| file.text("content")).unwrap().unwrap();
    assert_eq!(content.as_ptr(), before);
}

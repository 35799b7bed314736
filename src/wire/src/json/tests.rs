//! Texts that the strict reader accepts and refuses.

use super::*;

fn strict(text: &[u8], depth: usize) -> Result<Value, JsonRefusal> {
    read(text, depth, &ValuesLeft::new(1_000)).map_err(|error| error.refusal)
}

fn kept(text: &[u8], values: usize) -> Result<Json, JsonError> {
    read(text, usize::MAX, &ValuesLeft::new(values))
}

#[test]
fn a_document_is_read_as_it_was_sent() {
    let sent = br#" {"a": [1, -2, 1.0, 1e3, 18446744073709551615], "a": null, "b": {"c": "\u00e9", "d": true}} "#;
    let float = |number| Json::Number(Number::from_f64(number).unwrap());
    let numbers =
        [Json::Number(1.into()), Json::Number((-2).into()), float(1.0), float(1e3), Json::Number(u64::MAX.into())];
    let inner = vec![("c".to_owned(), Json::Text("é".to_owned())), ("d".to_owned(), Json::Flag(true))];
    let members = [("a", Json::List(numbers.to_vec())), ("a", Json::Null), ("b", Json::Object(inner))];
    assert_eq!(kept(sent, 100).unwrap(), Json::Object(members.map(|(name, value)| (name.to_owned(), value)).to_vec()));
}

#[test]
fn a_number_that_is_read_and_written_again_is_the_same_number() {
    for sent in [
        "18446744073709551615",
        "-9223372036854775808",
        "8.446744078446745e+40",
        "5e-324",
        "1.7976931348623157e308",
        "0.1",
    ] {
        let read: Value = read(sent.as_bytes(), 0, &ValuesLeft::new(1)).unwrap();
        assert_eq!(read.to_string(), sent.replace("308", "+308"), "{sent}");
    }
}

#[test]
fn what_is_not_json_is_malformed_wherever_it_breaks() {
    let deep = "[".repeat(100_000);
    let deep_object = "{\"a\":".repeat(100_000);
    for text in [
        "",
        " ",
        "{",
        "{\"guests\": [}",
        "{} {}",
        "\u{0}",
        "nul",
        "1x",
        "[{]",
        "[1,]",
        "{\"a\":1,}",
        "'a'",
        "NaN",
        "01",
        &deep,
        &deep_object,
    ] {
        assert_eq!(kept(text.as_bytes(), 1_000).unwrap_err().refusal, JsonRefusal::Malformed, "{text:.20}");
    }
    assert_eq!(kept(&[b'{', b'"', 0xff, b'"', b'}'], 9).unwrap_err().refusal, JsonRefusal::Malformed);
    assert_eq!(kept(b"{\n  1x", 9), Err(JsonError { refusal: JsonRefusal::Malformed, line: 2, column: 3 }));
}

#[test]
fn a_value_is_never_shown() {
    assert_eq!(format!("{:?}", kept(br#"{"name": "Asha"}"#, 9).unwrap()), "object");
}

#[test]
fn a_text_of_very_many_values_is_refused_before_it_fills_the_memory() {
    let list = |values: usize| format!("[0{}]", ",0".repeat(values - 2));
    assert!(kept(list(1_000).as_bytes(), 1_000).is_ok());
    assert_eq!(kept(list(1_001).as_bytes(), 1_000).unwrap_err().refusal, JsonRefusal::TooManyValues);
}

#[test]
fn a_repeated_name_is_refused_wherever_it_is_even_when_escaped() {
    for text in [r#"{"a":1,"a":1}"#, r#"[{"b":{"a":1,"\u0061":2}}]"#] {
        assert_eq!(strict(text.as_bytes(), 16), Err(JsonRefusal::RepeatedName), "{text}");
    }
    assert!(strict(br#"[{"a":1},{"a":1}]"#, 16).is_ok());
}

#[test]
fn nesting_is_accepted_up_to_the_bound_and_not_beyond() {
    assert!(strict(b"[[[1]]]", 3).is_ok());
    assert_eq!(strict(br#"[[{"a":[1]}]]"#, 3), Err(JsonRefusal::TooDeep));
    assert_eq!(strict("[".repeat(100_000).as_bytes(), 16), Err(JsonRefusal::TooDeep));
}

#[test]
fn what_is_not_one_json_text_is_refused() {
    for text in ["", "{", "{} {}", "nul", "{'a':1}", "\u{feff}{}", "1e999"] {
        assert_eq!(strict(text.as_bytes(), 16), Err(JsonRefusal::Malformed), "{text}");
    }
    assert_eq!(strict(b"\"\xff\"", 16), Err(JsonRefusal::Malformed));
    assert_eq!(read_object(b"[]", 16, &ValuesLeft::new(9)), Err(JsonRefusal::Malformed));
}

#[test]
fn more_values_than_are_left_are_refused_over_all_texts_that_belong_together() {
    let left = ValuesLeft::new(7);
    let read = |text: &[u8]| read::<Value>(text, 16, &left).map_err(|error| error.refusal);
    assert!(read(br#"{"a":[1,{}]}"#).is_ok(), "four of them");
    assert_eq!(read(br#"[1,2,3]"#), Err(JsonRefusal::TooManyValues));
    let many = format!("[{}]", r#"{"":0},"#.repeat(600_000));
    assert_eq!(strict(many.as_bytes(), 16), Err(JsonRefusal::TooManyValues));
}

#[test]
fn a_free_form_part_is_neither_deep_nor_ambiguous() {
    let value = |text: &str, depth| kept(text.as_bytes(), 99).unwrap().into_value(depth);
    assert_eq!(value(r#"{"a": [1, null, true, "x"]}"#, 2), Ok(serde_json::json!({"a": [1, null, true, "x"]})));
    assert_eq!(value(r#"{"a": [1]}"#, 1), Err("nests too deeply"));
    assert_eq!(value(r#"[{"a": 1, "a": 2}]"#, 9), Err("repeats a member"));
}

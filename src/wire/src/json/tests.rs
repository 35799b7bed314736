//! Texts that the strict reader accepts or refuses.

use super::*;

fn read_value(text: &[u8], depth_max: usize) -> Result<Value, JsonRefusal> {
    read(text, depth_max, &ValuesLeft::new(1_000)).map_err(|error| error.refusal)
}

fn read_json(text: &[u8], values_max: usize) -> Result<Json, JsonError> {
    read(text, usize::MAX, &ValuesLeft::new(values_max))
}

#[test]
fn a_document_is_read_exactly_as_sent() {
    let text = br#" {"a": [1, -2, 1.0, 1e3, 18446744073709551615], "a": null, "b": {"c": "\u00e9", "d": true}} "#;
    let float = |number| Json::Number(Number::from_f64(number).unwrap());
    let numbers =
        [Json::Number(1.into()), Json::Number((-2).into()), float(1.0), float(1e3), Json::Number(u64::MAX.into())];
    let inner = vec![("c".to_owned(), Json::Text("é".to_owned())), ("d".to_owned(), Json::Flag(true))];
    let members = [("a", Json::List(numbers.to_vec())), ("a", Json::Null), ("b", Json::Object(inner))];
    assert_eq!(
        read_json(text, 100).unwrap(),
        Json::Object(members.map(|(name, value)| (name.to_owned(), value)).to_vec())
    );
}

#[test]
fn a_number_survives_reading_and_writing() {
    for text in [
        "18446744073709551615",
        "-9223372036854775808",
        "8.446744078446745e+40",
        "5e-324",
        "1.7976931348623157e308",
        "0.1",
    ] {
        let number: Value = read(text.as_bytes(), 0, &ValuesLeft::new(1)).unwrap();
        // Writing adds a plus to a positive exponent.
        assert_eq!(number.to_string(), text.replace("308", "+308"), "{text}");
    }
}

#[test]
fn a_text_that_is_not_json_is_malformed() {
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
        assert_eq!(read_json(text.as_bytes(), 1_000).unwrap_err().refusal, JsonRefusal::Malformed, "{text:.20}");
    }
    assert_eq!(read_json(&[b'{', b'"', 0xff, b'"', b'}'], 9).unwrap_err().refusal, JsonRefusal::Malformed);
    assert_eq!(read_json(b"{\n  1x", 9), Err(JsonError { refusal: JsonRefusal::Malformed, line: 2, column: 3 }));
}

#[test]
fn debug_output_hides_the_value() {
    assert_eq!(format!("{:?}", read_json(br#"{"name": "Asha"}"#, 9).unwrap()), "object");
}

#[test]
fn a_text_with_too_many_values_is_refused() {
    // The list itself counts as a value, too.
    let list = |values: usize| format!("[0{}]", ",0".repeat(values - 2));
    assert!(read_json(list(1_000).as_bytes(), 1_000).is_ok());
    assert_eq!(read_json(list(1_001).as_bytes(), 1_000).unwrap_err().refusal, JsonRefusal::TooManyValues);
}

#[test]
fn a_repeated_name_is_refused_even_when_nested_or_escaped() {
    for text in [r#"{"a":1,"a":1}"#, r#"[{"b":{"a":1,"\u0061":2}}]"#] {
        assert_eq!(read_value(text.as_bytes(), 16), Err(JsonRefusal::RepeatedName), "{text}");
    }
    assert!(read_value(br#"[{"a":1},{"a":1}]"#, 16).is_ok());
}

#[test]
fn nesting_is_accepted_up_to_the_limit() {
    assert!(read_value(b"[[[1]]]", 3).is_ok());
    assert_eq!(read_value(br#"[[{"a":[1]}]]"#, 3), Err(JsonRefusal::TooDeep));
    assert_eq!(read_value("[".repeat(100_000).as_bytes(), 16), Err(JsonRefusal::TooDeep));
}

#[test]
fn anything_but_one_json_text_is_refused() {
    for text in ["", "{", "{} {}", "nul", "{'a':1}", "\u{feff}{}", "1e999"] {
        assert_eq!(read_value(text.as_bytes(), 16), Err(JsonRefusal::Malformed), "{text}");
    }
    assert_eq!(read_value(b"\"\xff\"", 16), Err(JsonRefusal::Malformed));
    assert_eq!(read_object(b"[]", 16, &ValuesLeft::new(9)), Err(JsonRefusal::Malformed));
}

#[test]
fn the_limit_on_values_is_shared_by_texts_that_belong_together() {
    // The first text has four values, so three are left for the second, which has four.
    let values_left = ValuesLeft::new(7);
    let read = |text: &[u8]| read::<Value>(text, 16, &values_left).map_err(|error| error.refusal);
    assert!(read(br#"{"a":[1,{}]}"#).is_ok());
    assert_eq!(read(br#"[1,2,3]"#), Err(JsonRefusal::TooManyValues));
    let many = format!("[{}]", r#"{"":0},"#.repeat(600_000));
    assert_eq!(read_value(many.as_bytes(), 16), Err(JsonRefusal::TooManyValues));
}

#[test]
fn a_free_form_part_is_neither_too_deep_nor_ambiguous() {
    let value = |text: &str, depth| read_json(text.as_bytes(), 99).unwrap().into_value(depth);
    assert_eq!(value(r#"{"a": [1, null, true, "x"]}"#, 2), Ok(serde_json::json!({"a": [1, null, true, "x"]})));
    assert_eq!(value(r#"{"a": [1]}"#, 1), Err("nests too deeply"));
    assert_eq!(value(r#"[{"a": 1, "a": 2}]"#, 9), Err("repeats a member"));
}

//! Formats log events as JSON lines: timestamp, level, the fields of the event, target.
//!
//! Every request logs a line. The JSON format of `tracing-subscriber` would take a fifth of a poll's instructions,
//! because it runs a serialiser for each field; this one writes fields straight into the line. The service has no
//! spans, so none are shown.

use std::fmt::{self, Write as _};
use std::time::SystemTime;

use sakshi_domain::time::Timestamp;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Formats an event as one JSON object.
pub(super) struct JsonLine;

impl<S, N> FormatEvent<S, N> for JsonLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, line: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        write_line(line, event)
    }
}

fn write_line(mut line: Writer<'_>, event: &Event<'_>) -> fmt::Result {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let now = Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
    write!(line, "{{\"timestamp\":\"{now}\",\"level\":\"")?;
    line.write_str(event.metadata().level().as_str())?;
    line.write_char('"')?;
    let mut members = Members { line: line.by_ref(), result: Ok(()) };
    event.record(&mut members);
    members.result?;
    line.write_str(",\"target\":\"")?;
    Escaped(line.by_ref()).write_str(event.metadata().target())?;
    line.write_str("\"}\n")
}

/// Appends the fields of an event to a JSON object.
struct Members<'a> {
    line: Writer<'a>,
    result: fmt::Result,
}

impl Members<'_> {
    /// Writes a member of the object. After an error it writes nothing.
    fn write_member(&mut self, field: &Field, value: impl FnOnce(&mut Writer<'_>) -> fmt::Result) {
        let line = &mut self.line;
        let name = [",\"", field.name(), "\":"];
        self.result =
            self.result.and_then(|()| name.iter().try_for_each(|part| line.write_str(part))).and_then(|()| value(line));
    }

    /// Writes a member whose value is a string.
    fn write_string(&mut self, field: &Field, value: impl FnOnce(&mut Escaped<'_>) -> fmt::Result) {
        self.write_member(field, |line| {
            line.write_char('"')?;
            value(&mut Escaped(line.by_ref()))?;
            line.write_char('"')
        });
    }
}

impl Visit for Members<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.write_string(field, |text| write!(text, "{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.write_string(field, |text| text.write_str(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        // JSON has neither NaN nor infinity.
        self.write_member(
            field,
            |line| if value.is_finite() { write!(line, "{value}") } else { line.write_str("null") },
        );
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.write_member(field, |line| write!(line, "{value}"));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.write_member(field, |line| write!(line, "{value}"));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.write_member(field, |line| line.write_str(if value { "true" } else { "false" }));
    }
}

/// Text within a JSON string (RFC 8259 §7).
struct Escaped<'a>(Writer<'a>);

impl fmt::Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut remaining = text;
        while let Some(at) = remaining.bytes().position(|byte| byte < b' ' || byte == b'"' || byte == b'\\') {
            let (plain, special) = remaining.split_at(at);
            self.0.write_str(plain)?;
            match special.as_bytes()[0] {
                b'"' => self.0.write_str("\\\"")?,
                b'\\' => self.0.write_str("\\\\")?,
                control => write!(self.0, "\\u{control:04x}")?,
            }
            remaining = &special[1..];
        }
        self.0.write_str(remaining)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::{Value, json};

    use super::*;

    #[derive(Clone, Default)]
    struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for SharedBuffer {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// Returns the line that `log` writes, as JSON.
    fn logged_line(log: impl FnOnce()) -> Value {
        let output = SharedBuffer::default();
        let writer = output.clone();
        let subscriber = tracing_subscriber::fmt().event_format(JsonLine).with_writer(move || writer.clone()).finish();
        tracing::subscriber::with_default(subscriber, log);
        let text = String::from_utf8(output.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text.find('\n'), Some(text.len() - 1), "{text}");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    #[test]
    fn a_line_is_an_object_with_typed_event_fields() {
        let id = "a\"b\\c\nd\u{1}é";
        let mut logged = logged_line(|| {
            tracing::warn!(whole = -3, count = 7_u64, part = 0.5, none = f64::NAN, flag = true, shown = %id, text = id,
                absent = None::<u64>, "said {}", 1);
        });
        let at = logged["timestamp"].take();
        assert!(Timestamp::parse_iso8601(at.as_str().unwrap()).is_some(), "{at}");
        let fields = json!({
            "timestamp": null, "level": "WARN", "whole": -3, "count": 7, "part": 0.5, "none": null, "flag": true,
            "shown": id, "text": id, "message": "said 1", "target": "sakshi::telemetry::json_line::tests",
        });
        assert_eq!(logged, fields);
    }
}

//! Parses `multipart/form-data` (RFC 7578), as browsers send forms with files. The whole body is in memory.

/// A field or a file of a form.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Field<'a> {
    pub(crate) name: String,
    pub(crate) is_file: bool,
    pub(crate) bytes: &'a [u8],
}

/// Returns the boundary if the media type is `multipart/form-data`.
pub(crate) fn boundary(media_type: &str) -> Option<&str> {
    let (essence, parameters) = media_type.split_once(';')?;
    if !essence.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let pairs = parameters.split(';').filter_map(|parameter| parameter.trim().split_once('='));
    let (_, value) = pairs.into_iter().find(|(name, _)| name.eq_ignore_ascii_case("boundary"))?;
    let value = value.trim_matches('"');
    (1..=70).contains(&value.len()).then_some(value)
}

/// Parses the fields of a body; `None` if it is malformed.
pub(crate) fn parse_fields<'a>(boundary: &str, body: &'a [u8]) -> Option<Vec<Field<'a>>> {
    let delimiter = [b"\r\n--", boundary.as_bytes()].concat();
    let mut remaining = body.strip_prefix(&delimiter[2..])?;
    let mut fields = Vec::new();
    loop {
        if remaining.starts_with(b"--") {
            return Some(fields);
        }
        remaining = remaining.strip_prefix(b"\r\n")?;
        let (head, after) = split_at_mark(remaining, b"\r\n\r\n")?;
        let (bytes, next) = split_at_mark(after, &delimiter)?;
        fields.push(parse_field(std::str::from_utf8(head).ok()?, bytes)?);
        remaining = next;
    }
}

/// Returns the bytes before the first mark and those after it.
fn split_at_mark<'a>(bytes: &'a [u8], mark: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let start = bytes.windows(mark.len()).position(|window| window == mark)?;
    Some((&bytes[..start], &bytes[start + mark.len()..]))
}

fn parse_field<'a>(head: &str, bytes: &'a [u8]) -> Option<Field<'a>> {
    let headers = head.split("\r\n").filter_map(|line| line.split_once(':'));
    let (_, disposition) = headers.into_iter().find(|(name, _)| name.eq_ignore_ascii_case("content-disposition"))?;
    // The names of our fields contain no semicolon or quote; the names of files do not matter.
    let parameter = |wanted: &str| {
        disposition.split(';').filter_map(|part| part.trim().split_once('=')).find(|(name, _)| *name == wanted)
    };
    let (_, name) = parameter("name")?;
    Some(Field { name: name.trim_matches('"').to_owned(), is_file: parameter("filename").is_some(), bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A form with the field `name` and the file `logo`; the boundary is `x`.
    const BODY: &[u8] = b"--x\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\nAcme\r\nBank\r\n--x\r\n\
        Content-Disposition: form-data; name=\"logo\"; filename=\"a.png\"\r\nContent-Type: \
        image/png\r\n\r\n\x89PNG\r\n\r\n--y\r\n--x--\r\n";

    #[test]
    fn fields_and_files_of_a_browsers_form_are_parsed() {
        assert_eq!(boundary("multipart/form-data; boundary=\"x\""), Some("x"));
        assert_eq!((boundary("multipart/form-data"), boundary("text/plain; boundary=x")), (None, None));
        let [name, logo] = <[Field<'_>; 2]>::try_from(parse_fields("x", BODY).unwrap()).unwrap();
        assert_eq!((&*name.name, name.is_file, name.bytes), ("name", false, &b"Acme\r\nBank"[..]));
        assert_eq!((&*logo.name, logo.is_file, logo.bytes), ("logo", true, &b"\x89PNG\r\n\r\n--y"[..]));
    }

    #[test]
    fn a_truncated_or_malformed_body_is_refused() {
        for end in 0..BODY.len() - 4 {
            assert_eq!(parse_fields("x", &BODY[..end]), None, "{end}");
        }
        assert_eq!(parse_fields("y", BODY), None);
        assert_eq!(parse_fields("x", b"--x--"), Some(vec![]));
    }
}

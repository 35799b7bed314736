//! `multipart/form-data` (RFC 7578), as a browser sends a form with files. The whole body is in memory, and small.

/// A field of a form: its name, its bytes, and true for a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Field<'a> {
    pub(crate) name: String,
    pub(crate) is_file: bool,
    pub(crate) bytes: &'a [u8],
}

/// Returns the boundary of a media type that is `multipart/form-data`.
pub(crate) fn boundary(media_type: &str) -> Option<&str> {
    let (essence, parameters) = media_type.split_once(';')?;
    if !essence.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let named = parameters.split(';').filter_map(|parameter| parameter.trim().split_once('='));
    let (_, value) = named.into_iter().find(|(name, _)| name.eq_ignore_ascii_case("boundary"))?;
    let value = value.trim_matches('"');
    (1..=70).contains(&value.len()).then_some(value)
}

/// Returns the fields of a body; `None` for one that no browser sends.
pub(crate) fn fields<'a>(boundary: &str, body: &'a [u8]) -> Option<Vec<Field<'a>>> {
    let between = [b"\r\n--", boundary.as_bytes()].concat();
    let mut rest = body.strip_prefix(&between[2..])?;
    let mut found = Vec::new();
    loop {
        if rest.starts_with(b"--") {
            return Some(found);
        }
        rest = rest.strip_prefix(b"\r\n")?;
        let (head, after) = cut(rest, b"\r\n\r\n")?;
        let (bytes, next) = cut(after, &between)?;
        found.push(field(std::str::from_utf8(head).ok()?, bytes)?);
        rest = next;
    }
}

fn cut<'a>(bytes: &'a [u8], mark: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = bytes.windows(mark.len()).position(|window| window == mark)?;
    Some((&bytes[..at], &bytes[at + mark.len()..]))
}

fn field<'a>(head: &str, bytes: &'a [u8]) -> Option<Field<'a>> {
    let headers = head.split("\r\n").filter_map(|line| line.split_once(':'));
    let (_, disposition) = headers.into_iter().find(|(name, _)| name.eq_ignore_ascii_case("content-disposition"))?;
    // The names of our fields have no semicolon or quote; those of files do not matter.
    let named = |wanted: &str| {
        disposition.split(';').filter_map(|part| part.trim().split_once('=')).find(|(name, _)| *name == wanted)
    };
    let (_, name) = named("name")?;
    Some(Field { name: name.trim_matches('"').to_owned(), is_file: named("filename").is_some(), bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = b"--x\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\nAcme\r\nBank\r\n--x\r\n\
        Content-Disposition: form-data; name=\"logo\"; filename=\"a.png\"\r\nContent-Type: \
        image/png\r\n\r\n\x89PNG\r\n\r\n--y\r\n--x--\r\n";

    #[test]
    fn fields_and_files_are_read_as_a_browser_sends_them() {
        assert_eq!(boundary("multipart/form-data; boundary=\"x\""), Some("x"));
        assert_eq!((boundary("multipart/form-data"), boundary("text/plain; boundary=x")), (None, None));
        let [name, logo] = <[Field<'_>; 2]>::try_from(fields("x", BODY).unwrap()).unwrap();
        assert_eq!((&*name.name, name.is_file, name.bytes), ("name", false, &b"Acme\r\nBank"[..]));
        assert_eq!((&*logo.name, logo.is_file, logo.bytes), ("logo", true, &b"\x89PNG\r\n\r\n--y"[..]));
    }

    #[test]
    fn what_is_cut_off_or_malformed_is_refused_whole() {
        for end in 0..BODY.len() - 4 {
            assert_eq!(fields("x", &BODY[..end]), None, "{end}");
        }
        assert_eq!(fields("y", BODY), None);
        assert_eq!(fields("x", b"--x--"), Some(vec![]));
    }
}

//! A public text, plain and compressed with gzip. It is compressed once, for the first client that accepts gzip.

use std::io::Write as _;
use std::sync::{Arc, OnceLock};

use actix_web::http::header::{
    AcceptEncoding, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, Encoding, EntityTag, Header as _, IfNoneMatch,
    VARY,
};
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse};
use flate2::Compression;
use flate2::write::GzEncoder;

/// A text, plain and compressed.
#[derive(Clone, Debug)]
pub struct Compressed {
    plain: Bytes,
    /// The compressed text; empty if it would not be shorter. Clones share it.
    gzip: Arc<OnceLock<Bytes>>,
    version: String,
}

impl Compressed {
    /// Wraps a text.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self { version: format!("{:016x}", fnv1a(text.as_bytes())), plain: text.into(), gzip: Arc::default() }
    }

    /// Returns the plain text.
    #[must_use]
    pub fn plain(&self) -> &Bytes {
        &self.plain
    }

    /// Returns a hash of the text as 16 hexadecimal digits.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Responds with the encoding that the request prefers (RFC 9110 §12.5.3), or with 304 if the browser has cached
    /// it. A request that accepts no offered encoding gets the plain text.
    #[must_use]
    pub fn respond(&self, request: &HttpRequest, content_type: &'static str, cache: &'static str) -> HttpResponse {
        let gzip = if prefers_gzip(request) { self.gzip() } else { None };
        let tag =
            EntityTag::new_strong(if gzip.is_some() { format!("{}-gzip", self.version) } else { self.version.clone() });
        let unchanged = match IfNoneMatch::parse(request) {
            Ok(IfNoneMatch::Items(tags)) => tags.iter().any(|cached| cached.weak_eq(&tag)),
            _ => false,
        };
        let mut response = if unchanged { HttpResponse::NotModified() } else { HttpResponse::Ok() };
        response.insert_header((ETAG, tag.to_string())).insert_header((CACHE_CONTROL, cache));
        response.insert_header((VARY, "accept-encoding"));
        if unchanged {
            return response.finish();
        }
        response.insert_header((CONTENT_TYPE, content_type));
        if gzip.is_some() {
            response.insert_header((CONTENT_ENCODING, "gzip"));
        }
        response.body(gzip.unwrap_or(&self.plain).clone())
    }

    /// Returns the compressed text, if it is shorter.
    fn gzip(&self) -> Option<&Bytes> {
        let compress = || {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
            // Writing to memory does not fail; if it did, the plain text would be served.
            encoder
                .write_all(&self.plain)
                .and_then(|()| encoder.finish())
                .ok()
                .filter(|gzip| gzip.len() < self.plain.len())
        };
        let gzip = self.gzip.get_or_init(|| compress().map(Bytes::from).unwrap_or_default());
        Some(gzip).filter(|gzip| !gzip.is_empty())
    }
}

/// Returns true if the request names gzip and prefers it to the plain text.
fn prefers_gzip(request: &HttpRequest) -> bool {
    let encodings = [Encoding::gzip(), Encoding::identity()];
    AcceptEncoding::parse(request).is_ok_and(|accepted| accepted.negotiate(encodings.iter()) == Some(Encoding::gzip()))
}

/// Returns the FNV-1a hash, which distinguishes versions of a text.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use actix_web::body::{MessageBody as _, to_bytes};
    use actix_web::http::header::{ACCEPT_ENCODING, HeaderName, IF_NONE_MATCH};
    use actix_web::test::TestRequest;
    use flate2::read::GzDecoder;

    use super::*;

    const TEXT: &str = "a text that repeats itself, ";

    fn header(response: &HttpResponse, name: &HeaderName) -> Option<String> {
        response.headers().get(name).map(|value| value.to_str().unwrap().to_owned())
    }

    fn send(text: &Compressed, accepted: Option<&str>, cached: Option<&str>) -> HttpResponse {
        let headers = [(ACCEPT_ENCODING, accepted), (IF_NONE_MATCH, cached)];
        let request = headers.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let request = request.fold(TestRequest::default(), |request, header| request.insert_header(header));
        text.respond(&request.to_http_request(), "text/plain", "no-cache")
    }

    #[actix_rt::test]
    async fn a_response_has_the_encoding_that_the_request_prefers() {
        let text = Compressed::new(TEXT.repeat(100));
        for (accepted, encoding) in [
            (Some("gzip"), Some("gzip")),
            (Some("br, gzip;q=0.8, *;q=0"), Some("gzip")),
            (Some("gzip, deflate, br, zstd"), Some("gzip")),
            (Some("identity;q=0.5, gzip;q=0.9"), Some("gzip")),
            (Some("identity;q=0, gzip"), Some("gzip")),
            (Some("identity, gzip;q=0.5"), None),
            (Some("gzip;q=0"), None),
            (Some("gzip;q=0, *"), None),
            (Some("*;q=0"), None),
            (Some("identity"), None),
            (Some("br"), None),
            (Some("gzip;q=many"), None),
            (Some(""), None),
            (None, None),
        ] {
            let response = send(&text, accepted, None);
            assert_eq!(header(&response, &CONTENT_ENCODING).as_deref(), encoding, "{accepted:?}");
            assert_eq!(header(&response, &VARY).as_deref(), Some("accept-encoding"), "{accepted:?}");
            let body = to_bytes(response.into_body()).await.unwrap();
            let mut decoded = String::new();
            match encoding {
                Some(_) => GzDecoder::new(&*body).read_to_string(&mut decoded).unwrap(),
                None => (&*body).read_to_string(&mut decoded).unwrap(),
            };
            assert_eq!(decoded, TEXT.repeat(100), "{accepted:?}");
        }
    }

    #[actix_rt::test]
    async fn each_encoding_has_its_own_tag_and_304_requires_the_tag_of_the_same_encoding() {
        let text = Compressed::new(TEXT.repeat(100));
        let tags = [None, Some("gzip")].map(|accepted| header(&send(&text, accepted, None), &ETAG).unwrap());
        assert!(tags[0] != tags[1] && tags.iter().all(|tag| tag.starts_with('"')), "{tags:?}");
        for (accepted, cached, status) in
            [(None, &tags[0], 304), (Some("gzip"), &tags[1], 304), (None, &tags[1], 200), (Some("gzip"), &tags[0], 200)]
        {
            let response = send(&text, accepted, Some(cached));
            assert_eq!(response.status(), status, "{accepted:?} {cached}");
            assert_eq!(header(&response, &VARY).as_deref(), Some("accept-encoding"));
        }
        let other = Compressed::new(TEXT.repeat(101));
        assert_eq!(send(&other, Some("gzip"), Some(&tags[1])).status(), 200);
    }

    #[actix_rt::test]
    async fn a_text_that_gzip_does_not_shorten_is_sent_plain() {
        for text in ["", "short"] {
            let response = send(&Compressed::new(text.to_owned()), Some("gzip"), None);
            assert_eq!((response.status().as_u16(), header(&response, &CONTENT_ENCODING)), (200, None));
            assert_eq!(response.into_body().try_into_bytes().unwrap(), text);
        }
    }
}

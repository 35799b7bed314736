//! Query strings. Unknown, repeated and malformed parameters are refused.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use sakshi_domain::invalid::Invalid;
use sakshi_domain::limits::{PAGE_MAX, PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX, REPORT_PROBLEMS_MAX, UNKNOWN_NAME_CHARS_MAX};
use sakshi_domain::time::Timestamp;
use sakshi_store::PageRequest;
use url::form_urlencoded;

use super::error::ApiError;
use sakshi_wire::ISO_8601;

/// The parameters of a query string that are not read yet, and the errors so far.
#[derive(Debug)]
pub struct Query {
    pairs: Vec<(String, String)>,
    /// Parameters of the operation.
    known: Vec<&'static str>,
    invalid: Invalid,
}

impl Query {
    /// Parses the part of the URL after `?`.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        Self {
            pairs: form_urlencoded::parse(text.as_bytes()).into_owned().collect(),
            known: Vec::new(),
            invalid: Invalid::none(),
        }
    }

    /// Reads a whole number within bounds, under any of the spellings. Returns the default if it is absent.
    pub fn number<T>(&mut self, spellings: &[&'static str], bounds: RangeInclusive<T>, default: T) -> T
    where
        T: FromStr + Copy + PartialOrd + Display,
    {
        let Some((name, text)) = self.take(spellings) else { return default };
        match text.parse::<T>() {
            Ok(number) if bounds.contains(&number) => number,
            _ => {
                self.invalid.add(name, format!("must be a whole number from {} to {}", bounds.start(), bounds.end()));
                default
            }
        }
    }

    /// Reads and trims a text. Returns `None` if it is absent or empty.
    pub fn text(&mut self, name: &'static str) -> Option<String> {
        let (_, text) = self.take(&[name])?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// Reads a time. Returns `None` if it is absent.
    pub fn time(&mut self, name: &'static str) -> Option<Timestamp> {
        self.parse_with(name, Timestamp::parse_iso8601, ISO_8601)
    }

    /// Reads a value with `parse`. Returns `None` if it is absent, or if `parse` fails, which adds an error with
    /// `refusal`.
    pub fn parse_with<T>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
        refusal: &str,
    ) -> Option<T> {
        let (name, text) = self.take(&[name])?;
        let parsed = parse(&text);
        if parsed.is_none() {
            self.invalid.add(name, refusal);
        }
        parsed
    }

    /// Reads one of two choices; the first is the default.
    pub fn one_of<T: Copy>(&mut self, name: &'static str, choices: [(&str, T); 2]) -> T {
        let Some((_, text)) = self.take(&[name]) else { return choices[0].1 };
        let chosen = choices.iter().find(|(word, _)| *word == text);
        if chosen.is_none() {
            self.invalid.add(name, format!("must be {} or {}", choices[0].0, choices[1].0));
        }
        chosen.unwrap_or(&choices[0]).1
    }

    /// Reads `page` and `page_size`.
    pub fn page(&mut self) -> PageRequest {
        PageRequest {
            page: self.number(&["page"], 1..=PAGE_MAX, 1),
            page_size: self.number(&["page_size", "pageSize"], 1..=PAGE_SIZE_MAX, PAGE_SIZE_DEFAULT),
        }
    }

    /// Ends the reading; parameters that are left are unknown.
    ///
    /// # Errors
    /// [`sakshi_service::ServiceError::Invalid`] with every unknown, repeated or malformed parameter, a hundred at
    /// most.
    pub fn finish(mut self) -> Result<(), ApiError> {
        if !self.pairs.is_empty() {
            let sentence = match self.known.join(", ") {
                known if known.is_empty() => "is not a parameter of this request, which has none".to_owned(),
                known => format!("is not a parameter of this request, which has: {known}"),
            };
            for (name, _) in &self.pairs {
                add_problem(&mut self.invalid, name, &sentence);
            }
        }
        self.invalid.or_ok().map_err(ApiError::from)
    }

    /// Removes a parameter from those not read yet, and returns it with the spelling that was used. A second value is
    /// an error.
    fn take(&mut self, spellings: &[&'static str]) -> Option<(&'static str, String)> {
        self.known.extend(spellings.first());
        let mut value = None;
        let spelling = |name: &str| spellings.iter().copied().find(|spelling| *spelling == name);
        for (name, text) in self.pairs.extract_if(.., |(name, _)| spelling(name).is_some()) {
            match spelling(&name) {
                Some(spelling) if value.is_none() => value = Some((spelling, text)),
                _ => add_problem(&mut self.invalid, &name, "must be given once"),
            }
        }
        value
    }
}

/// Adds a problem of a parameter. A query can have tens of thousands of parameters, or names of kilobytes, and anybody
/// can send one, so the error is bounded like that of a body.
fn add_problem(invalid: &mut Invalid, name: &str, sentence: &str) {
    if invalid.fields().len() < REPORT_PROBLEMS_MAX {
        invalid.add(name.chars().take(UNKNOWN_NAME_CHARS_MAX).collect::<String>(), sentence);
    }
}

/// Parses a query that has no parameters but those of a page.
///
/// # Errors
/// As [`Query::finish`].
pub fn parse_page(text: &str) -> Result<PageRequest, ApiError> {
    let mut query = Query::parse(text);
    let page = query.page();
    query.finish().map(|()| page)
}

/// Returns path and query of the next page of a list of `total` rows; `None` if there is no next page.
#[must_use]
pub fn next_page(path: &str, PageRequest { page, page_size }: PageRequest, total: u64) -> Option<String> {
    let is_last = page >= PAGE_MAX || u64::from(page) * u64::from(page_size) >= total;
    (!is_last).then(|| format!("{path}?page={}&page_size={page_size}", page + 1))
}

#[cfg(test)]
mod tests {
    use sakshi_domain::invalid::FieldError;
    use sakshi_service::ServiceError;

    use super::*;

    #[test]
    fn a_page_has_defaults_and_both_spellings() {
        assert_eq!(parse_page("").unwrap(), PageRequest { page: 1, page_size: 20 });
        assert_eq!(parse_page("page=2147483647").unwrap().page, PAGE_MAX);
        assert_eq!(parse_page("page=3&pageSize=100").unwrap(), PageRequest { page: 3, page_size: 100 });
    }

    #[test]
    fn the_last_page_has_no_next() {
        let next = |page, page_size, total| next_page("/list", PageRequest { page, page_size }, total);
        assert_eq!(next(1, 20, 21).as_deref(), Some("/list?page=2&page_size=20"));
        assert_eq!(
            [next(1, 20, 20), next(2, 20, 21), next(9, 20, 21), next(1, 1, 0), next(PAGE_MAX, 1, u64::MAX)],
            [const { None }; 5]
        );
    }

    fn problems(text: &str) -> Vec<FieldError> {
        let Err(ApiError::Service(ServiceError::Invalid(invalid))) = parse_page(text) else { panic!("{text}") };
        invalid.fields().to_vec()
    }

    #[test]
    fn an_error_is_short_however_long_the_query_is() {
        for text in ["a&", "page=1&"] {
            assert_eq!(problems(&text.repeat(20_000)).len(), REPORT_PROBLEMS_MAX, "{text}");
        }
        assert_eq!(problems(&"%00".repeat(20_000))[0].field.len(), UNKNOWN_NAME_CHARS_MAX);
    }

    #[test]
    fn all_bad_parameters_are_reported_together() {
        let problems = problems("page=0&page_size=5&pageSize=5&colour=red");
        let fields: Vec<&str> = problems.iter().map(|problem| problem.field.as_str()).collect();
        assert_eq!(fields, ["page", "pageSize", "colour"]);
        for text in ["page=-1", "page=x", "page=", "page_size=101", "page=2147483648", "page=99999999999"] {
            assert!(parse_page(text).is_err(), "{text}");
        }
    }
}

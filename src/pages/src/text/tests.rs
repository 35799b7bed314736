//! Checks that every language is complete and free of other languages.

use actix_web::test::TestRequest;
use sakshi_domain::claims::Claim;
use sakshi_domain::event::EventRefusal;
use sakshi_domain::language::Language;
use sakshi_domain::transaction::Failure;

use super::{ALL_TEXTS, Around, EventTexts, Reasons, Texts, Tips, UnwrittenLanguage};

/// Names that stay in Latin letters in every language.
const NAMES: [&str; 6] = ["Android", "iPhone", "iPad", "QR", "PIN", "C/O"];

/// A table of texts, or a field of a table.
trait AllTexts {
    /// Lists every text.
    fn all_texts(&self) -> Vec<&'static str>;
}

impl AllTexts for &'static str {
    fn all_texts(&self) -> Vec<&'static str> {
        vec![*self]
    }
}

impl<const N: usize> AllTexts for [&'static str; N] {
    fn all_texts(&self) -> Vec<&'static str> {
        self.to_vec()
    }
}

/// Lists the text before the insertion, or the text after it if there is none before.
impl AllTexts for Around {
    fn all_texts(&self) -> Vec<&'static str> {
        vec![if self.before.is_empty() { self.after } else { self.before }]
    }
}

/// Implements [`AllTexts`] for a table. The pattern has no `..`, so a new field must be listed or left out by name.
macro_rules! list_texts {
    ($table:ty { $($field:ident)* } without { $($omitted:ident)* }) => {
        impl AllTexts for $table {
            fn all_texts(&self) -> Vec<&'static str> {
                let Self { $($field,)* $($omitted: _,)* } = self;
                [$($field.all_texts()),*].concat()
            }
        }
    };
}

list_texts! {
    Texts {
        endonym months brand sandbox_badge reference language checked_by results_kept guests_kept privacy units
        waiting_heading requested_by lead_phone lead_scan face_scan open_app stuck help_heading help
        other_phone_heading other_phone refuses_heading refuses qr_label app_code app_code_words app_code_label
        same_device open_on_android open_on_ios sandbox_words open_sandbox opened_heading opened waiting time_left
        reconnecting claims_heading promise groups identity_app not_opened install verified_heading verified
        declined_heading not_verified_heading nothing_shared start_again new_link expired_heading expired
        unknown_heading unknown busy_heading busy busy_again too_many_heading too_many try_again close_page
        continue_to taken_there stay back_to not_now shared_heading tips event reasons
    } without { tag direction fonts date_time app_names claim }
}

list_texts! {
    EventTexts {
        lead start resume resume_words open_until registered registered_at show_at_entrance calendar guest another
        guest_registered full_heading full more_places closed_heading closed ended_heading ended unknown_heading
        unknown unavailable_heading unavailable ask_at_entrance elsewhere_heading elsewhere to_event too_late scan
        code_expired scan_again offline_since steps qr_label open places_left offline door_code no_network twice
    } without {}
}

list_texts! {
    Tips { declined face aborted later app claims ready } without {}
}

list_texts! {
    Reasons {
        declined not_live aborted face_mismatch biometric_lock face_service_down connection claims_missing other
    } without {}
}

/// Lists every text of a language, also those that [`AllTexts`] leaves out.
fn list_all(texts: &Texts) -> Vec<&'static str> {
    let claims = Claim::ALL.map(texts.claim);
    [texts.all_texts(), vec![texts.app_names.before, texts.app_names.after], claims.to_vec()].concat()
}

/// Returns true for letters of a language's Unicode block, and for marks that scripts share.
fn is_of_script(tag: &str, letter: char) -> bool {
    let block = match tag {
        "hi" | "kok" | "mai" | "mr" | "ne" | "sa" => '\u{900}'..='\u{97f}',
        "as" | "bn" => '\u{980}'..='\u{9ff}',
        "pa" => '\u{a00}'..='\u{a7f}',
        "gu" => '\u{a80}'..='\u{aff}',
        "or" => '\u{b00}'..='\u{b7f}',
        "ta" => '\u{b80}'..='\u{bff}',
        "te" => '\u{c00}'..='\u{c7f}',
        "kn" => '\u{c80}'..='\u{cff}',
        "ml" => '\u{d00}'..='\u{d7f}',
        "ur" => '\u{600}'..='\u{6ff}',
        _ => 'A'..='z',
    };
    // The danda ends sentences in several scripts; joiners have no script.
    block.contains(&letter) || matches!(letter, '\u{964}' | '\u{200c}' | '\u{200d}')
}

#[test]
fn every_language_has_texts_or_is_listed_as_unwritten() {
    for language in Language::all() {
        let has_texts = Texts::with_tag(language.tag()).is_some();
        assert!(has_texts || language.accepted_name().is_none(), "{}", language.name());
        let unwritten = UnwrittenLanguage::with_tag(language.tag());
        assert_eq!(unwritten.is_none(), has_texts, "{}", language.name());
        assert_eq!(Texts::for_language(language).tag, if has_texts { language.tag() } else { "en" });
        if let Some(unwritten) = unwritten {
            assert_eq!(unwritten.name.to_lowercase(), language.name());
        }
    }
}

#[test]
fn every_text_is_present_and_in_the_script_of_its_language() {
    for texts in ALL_TEXTS {
        for text in list_all(texts) {
            assert!(!text.trim().is_empty(), "{}: an empty text", texts.tag);
            let plain = NAMES.iter().fold(text.to_owned(), |text, name| text.replace(name, ""));
            for letter in plain.chars().filter(|letter| !letter.is_ascii() || letter.is_ascii_alphabetic()) {
                assert!(
                    is_of_script(texts.tag, letter) || matches!(letter, '…' | '’' | '–'),
                    "{}: {letter:?} in {text:?}",
                    texts.tag
                );
            }
        }
        assert_eq!(texts.is_right_to_left(), texts.tag == "ur");
        for part in ["{day}", "{month}", "{year}", "{time}"] {
            assert_eq!(texts.date_time.matches(part).count(), 1, "{}: {part}", texts.tag);
        }
    }
}

/// The words for "living" mean "not dead" instead of "in front of the camera". "Over 18" excludes people who are 18.
/// The other words read as "applicant", "safe", a telephone on a table, admission to a school, or a location instead
/// of a seat; or they address the reader as a man.
#[test]
fn no_text_contains_a_misleading_word() {
    let words = [
        ("as", "জীৱিত"),
        ("as", "নামভৰ্তি"),
        ("bn", "জীবন্ত"),
        ("bn", "মুখের"),
        ("en", "over 18"),
        ("gu", "જીવંત"),
        ("hi", "जीवित"),
        ("hi", "चुके हैं"),
        ("hi", "सकते हैं"),
        ("kn", "ಜೀವಂತ"),
        ("kn", "ಸ್ಥಳ"),
        ("ml", "ജീവനുള്ള"),
        ("ml", "താമസക്കാരനായി"),
        ("mr", "जिवंत"),
        ("ne", "जीवित"),
        ("or", "ଜୀବନ୍ତ"),
        ("pa", "ਜਿਉਂਦਾ"),
        ("pa", "ਚੁੱਕੇ ਹੋ"),
        ("ta", "தொலைபேசி"),
        ("ta", "அடையாள இடம்"),
        ("te", "సజీవ"),
        ("ur", "زندہ"),
        ("ur", "محفوظ"),
        ("ur", "سکتے ہیں"),
        ("ur", "درخواست گزار"),
    ];
    for (tag, word) in words {
        let texts = Texts::with_tag(tag).unwrap();
        for text in list_all(texts) {
            assert!(!text.contains(word), "{tag}: {word} in {text}");
        }
    }
}

/// A ticket shows codes, too, so "the same code" would mean one of them, which opens nothing for a guest.
#[test]
fn a_ticket_says_that_the_code_that_opens_it_is_at_the_entrance() {
    let words_for_entrance = [
        ("as", "প্ৰৱেশদ্বাৰ"),
        ("bn", "প্রবেশপথ"),
        ("en", "entrance"),
        ("gu", "પ્રવેશદ્વાર"),
        ("hi", "प्रवेश द्वार"),
        ("kn", "ಪ್ರವೇಶದ್ವಾರ"),
        ("kok", "प्रवेशद्वार"),
        ("mai", "प्रवेश द्वार"),
        ("ml", "പ്രവേശന കവാട"),
        ("mr", "प्रवेशद्वार"),
        ("ne", "प्रवेशद्वार"),
        ("or", "ପ୍ରବେଶ ଦ୍ୱାର"),
        ("pa", "ਦਾਖ਼ਲੇ"),
        ("sa", "प्रवेशद्वार"),
        ("ta", "நுழைவாயில"),
        ("te", "ప్రవేశద్వార"),
        ("ur", "داخلے"),
    ];
    assert_eq!(words_for_entrance.len(), ALL_TEXTS.len());
    for (tag, word) in words_for_entrance {
        let text = Texts::with_tag(tag).unwrap().event.show_at_entrance;
        assert_eq!(text.matches(word).count(), 2, "{tag}: {text}");
    }
}

#[test]
fn sentences_end_as_their_script_ends_them() {
    for texts in ALL_TEXTS {
        let marks_of_other_scripts: &[char] = match texts.tag {
            "as" | "bn" | "hi" | "mai" | "ne" | "or" | "pa" | "sa" => &['.', '\''],
            "ur" => &['.', ',', ';', '?', '।', '\''],
            _ => &['।', '\''],
        };
        for text in list_all(texts) {
            assert!(!text.contains(marks_of_other_scripts), "{}: {text}", texts.tag);
        }
    }
}

#[test]
fn no_text_is_copied_from_another_language() {
    for texts in ALL_TEXTS {
        for other in ALL_TEXTS.iter().filter(|other| other.tag != texts.tag) {
            // Short texts, such as names of months, may be equal in related languages.
            let copied = list_all(texts)
                .into_iter()
                .zip(list_all(other))
                .filter(|(text, other)| text == other && text.len() > 60)
                .count();
            assert_eq!(copied, 0, "{} and {}", texts.tag, other.tag);
        }
    }
}

#[test]
fn a_refused_guest_reads_the_reason_and_no_tip_about_the_app() {
    for texts in ALL_TEXTS {
        for (refusal, reason) in [
            (EventRefusal::Full, texts.event.full),
            (EventRefusal::Disabled, texts.event.closed),
            (EventRefusal::Expired, texts.event.ended),
            (EventRefusal::Duplicate, texts.event.twice),
        ] {
            let failure = Failure::event_refused(refusal);
            assert_eq!((texts.reason(&failure), texts.tip(&failure)), (reason, None), "{}: {refusal:?}", texts.tag);
        }
    }
}

#[test]
fn a_browser_gets_its_preferred_language_among_those_with_texts() {
    for (header, tag) in [
        ("hi", "hi"),
        ("ur-PK, en;q=0.8", "ur"),
        ("en;q=0.3, UR-in;q=0.9, hi;q=0.5", "ur"),
        ("de-DE, fr;q=0.9, hi-IN;q=0.2", "hi"),
        ("hi;q=0, *", "en"),
        ("de", "en"),
        (";;,q=x", "en"),
        ("", "en"),
    ] {
        let request = TestRequest::get().insert_header(("accept-language", header)).to_http_request();
        let (texts, unwritten) = Texts::for_browser(&request);
        assert_eq!((texts.tag, unwritten.map(|language| language.tag)), (tag, None), "{header}");
    }
    assert_eq!(Texts::for_browser(&TestRequest::get().to_http_request()).0.tag, "en");
}

#[test]
fn a_language_without_texts_is_named_if_preferred_to_english() {
    for (header, tag, unwritten) in [
        ("sat", "en", Some("sat")),
        ("sat-Olck-IN, en;q=0.8", "en", Some("sat")),
        ("en, sat;q=0.8", "en", None),
        ("sat, hi;q=0.8, en;q=0.5", "hi", None),
        ("de, KS;q=0.5", "en", Some("ks")),
    ] {
        let request = TestRequest::get().insert_header(("accept-language", header)).to_http_request();
        let (texts, named) = Texts::for_browser(&request);
        assert_eq!((texts.tag, named.map(|language| language.tag)), (tag, unwritten), "{header}");
    }
}

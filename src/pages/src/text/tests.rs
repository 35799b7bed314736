//! Checks that every language is complete and free of others.

use actix_web::test::TestRequest;
use sakshi_domain::claims::Claim;
use sakshi_domain::language::Language;

use super::{Around, EventTexts, Reasons, TABLES, Texts, Tips, Unwritten};

/// Names that stay in Latin letters in every language.
const NAMES: [&str; 6] = ["Android", "iPhone", "iPad", "QR", "PIN", "C/O"];

/// Returns every text of a table. Fields are named one by one, so that none is forgotten.
fn all(texts: &'static Texts) -> Vec<&'static str> {
    let Texts {
        tag: _,
        endonym,
        direction: _,
        fonts: _,
        months,
        moment: _,
        brand,
        sandbox_badge,
        reference,
        language,
        checked_by,
        results_kept,
        guests_kept,
        privacy,
        units,
        waiting_heading,
        requested_by,
        lead_phone,
        lead_scan,
        face_scan,
        open_app,
        stuck,
        help_heading,
        help,
        other_phone_heading,
        other_phone,
        refuses_heading,
        refuses,
        qr_label,
        app_code,
        app_code_words,
        app_code_label,
        same_device,
        open_on_android,
        open_on_ios,
        sandbox_words,
        open_sandbox,
        opened_heading,
        opened,
        waiting,
        time_left,
        reconnecting,
        claims_heading,
        promise,
        groups,
        identity_app,
        not_opened,
        install,
        verified_heading,
        verified,
        declined_heading,
        not_verified_heading,
        nothing_shared,
        start_again,
        new_link,
        expired_heading,
        expired,
        unknown_heading,
        unknown,
        busy_heading,
        busy,
        busy_again,
        too_many_heading,
        too_many,
        try_again,
        close_page,
        continue_to,
        taken_there,
        stay,
        back_to,
        app_names,
        not_now,
        shared_heading,
        tips,
        event,
        reasons,
        claim,
    } = texts;
    let mut found = vec![
        *brand,
        sandbox_badge,
        reference,
        waiting_heading,
        lead_phone,
        lead_scan,
        face_scan,
        open_app,
        stuck,
        endonym,
        language,
    ];
    found.extend([
        other_phone_heading,
        other_phone,
        refuses_heading,
        refuses,
        opened_heading,
        opened,
        declined_heading,
    ]);
    found.extend([
        help_heading,
        help,
        qr_label,
        app_code,
        app_code_words,
        app_code_label,
        same_device,
        open_on_android,
        open_on_ios,
    ]);
    found.extend([
        sandbox_words,
        open_sandbox,
        waiting,
        reconnecting,
        nothing_shared,
        new_link,
        claims_heading,
        promise,
        verified_heading,
        verified,
    ]);
    found.extend([
        not_verified_heading,
        start_again,
        expired_heading,
        expired,
        unknown_heading,
        unknown,
        busy_heading,
        busy,
        busy_again,
    ]);
    found.extend([*too_many_heading, too_many, try_again, close_page, taken_there, stay]);
    found.extend([*privacy, identity_app, not_opened, install, not_now, shared_heading]);
    found.extend([app_names.before, app_names.after]);
    found.extend([requested_by, time_left, continue_to, back_to, checked_by, results_kept, guests_kept].map(whole));
    found.extend(units.iter().chain(groups));
    found.extend(months);
    found.extend(of_event(event));
    found.extend(of_tips(tips));
    found.extend(of_reasons(reasons));
    found.extend(Claim::ALL.map(claim));
    found
}

fn of_event(texts: &'static EventTexts) -> Vec<&'static str> {
    let EventTexts {
        lead,
        start,
        resume,
        resume_words,
        open_until,
        registered,
        registered_at,
        show_at_entrance,
        calendar,
        guest,
        another,
        guest_registered,
        full_heading,
        full,
        more_places,
        closed_heading,
        closed,
        ended_heading,
        ended,
        unknown_heading,
        unknown,
        unavailable_heading,
        unavailable,
        ask_at_entrance,
        elsewhere_heading,
        elsewhere,
        to_event,
        too_late,
        scan,
        code_expired,
        scan_again,
        offline_since,
        steps,
        qr_label,
        open,
        places_left,
        offline,
        door_code,
        no_network,
        twice,
    } = texts;
    let mut found = vec![*lead, start, resume, resume_words, whole(open_until), full_heading, full, more_places];
    found.extend([
        closed_heading,
        closed,
        ended_heading,
        ended,
        unknown_heading,
        unknown,
        unavailable_heading,
        unavailable,
        ask_at_entrance,
        elsewhere_heading,
        elsewhere,
    ]);
    found.extend([whole(offline_since), code_expired]);
    found.extend([
        *to_event,
        too_late,
        scan,
        scan_again,
        qr_label,
        open,
        places_left,
        offline,
        door_code,
        no_network,
        twice,
    ]);
    found.extend([*registered, registered_at, show_at_entrance, calendar, guest, another, guest_registered]);
    found.extend(steps);
    found
}

fn of_tips(texts: &'static Tips) -> [&'static str; 7] {
    let Tips { declined, face, aborted, later, app, claims, ready } = texts;
    [declined, face, aborted, later, app, claims, ready]
}

fn of_reasons(texts: &'static Reasons) -> [&'static str; 9] {
    let Reasons {
        declined,
        not_live,
        aborted,
        face_mismatch,
        biometric_lock,
        face_service_down,
        connection,
        claims_missing,
        other,
    } = texts;
    [declined, not_live, aborted, face_mismatch, biometric_lock, face_service_down, connection, claims_missing, other]
}

/// Returns the text before, or the one after if that is empty.
const fn whole(around: &'static Around) -> &'static str {
    if around.before.is_empty() { around.after } else { around.before }
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
fn every_language_with_a_name_is_written_and_every_other_one_is_or_says_that_it_is_not() {
    for language in Language::all() {
        let written = Texts::tagged(language.tag()).is_some();
        assert!(written || language.accepted_name().is_none(), "{}", language.name());
        let unwritten = Unwritten::tagged(language.tag());
        assert_eq!(unwritten.is_none(), written, "{}", language.name());
        assert_eq!(Texts::of(language).tag, if written { language.tag() } else { "en" });
        if let Some(unwritten) = unwritten {
            assert_eq!(unwritten.name.to_lowercase(), language.name());
        }
    }
}

#[test]
fn every_text_is_there_and_in_the_script_of_its_language() {
    for texts in TABLES {
        for text in all(texts) {
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
            assert_eq!(texts.moment.matches(part).count(), 1, "{}: {part}", texts.tag);
        }
    }
}

/// "Living", as opposed to dead, is no word for a person in front of a camera. "Over 18" leaves out those who are 18.
/// The other words read as "applicant", "safe", a telephone on a table, admission to a school, and a location where a
/// seat is meant; or they take the reader for a man.
#[test]
fn no_text_has_a_word_that_misleads() {
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
        let texts = Texts::tagged(tag).unwrap();
        for text in all(texts) {
            assert!(!text.contains(word), "{tag}: {word} in {text}");
        }
    }
}

#[test]
fn sentences_end_as_their_script_ends_them() {
    for texts in TABLES {
        let foreign: &[char] = match texts.tag {
            "as" | "bn" | "hi" | "mai" | "ne" | "or" | "pa" | "sa" => &['.', '\''],
            "ur" => &['.', ',', ';', '?', '।', '\''],
            _ => &['।', '\''],
        };
        for text in all(texts) {
            assert!(!text.contains(foreign), "{}: {text}", texts.tag);
        }
    }
}

#[test]
fn no_text_is_another_languages() {
    for texts in TABLES {
        for other in TABLES.iter().filter(|other| other.tag != texts.tag) {
            let same =
                all(texts).into_iter().zip(all(other)).filter(|(text, other)| text == other && text.len() > 60).count();
            assert_eq!(same, 0, "{} and {}", texts.tag, other.tag);
        }
    }
}

#[test]
fn a_browser_gets_the_language_it_likes_best_of_those_that_are_spoken() {
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
        let (texts, unwritten) = Texts::asked_for(&request);
        assert_eq!((texts.tag, unwritten.map(|it| it.tag)), (tag, None), "{header}");
    }
    assert_eq!(Texts::asked_for(&TestRequest::get().to_http_request()).0.tag, "en");
}

#[test]
fn a_browser_that_would_rather_have_an_unwritten_language_than_english_is_told() {
    for (header, tag, unwritten) in [
        ("sat", "en", Some("sat")),
        ("sat-Olck-IN, en;q=0.8", "en", Some("sat")),
        ("en, sat;q=0.8", "en", None),
        ("sat, hi;q=0.8, en;q=0.5", "hi", None),
        ("de, KS;q=0.5", "en", Some("ks")),
    ] {
        let request = TestRequest::get().insert_header(("accept-language", header)).to_http_request();
        let (texts, told) = Texts::asked_for(&request);
        assert_eq!((texts.tag, told.map(|it| it.tag)), (tag, unwritten), "{header}");
    }
}

//! The authority's error codes in the guide for client developers.

use sakshi_authority::callback::{CODE_MEANINGS, Verdict, judge_failure};

use super::{document, rows};

#[test]
fn the_guide_about_errors_explains_every_code_of_the_authority() {
    let text = document("docs/guides/errors.md");
    let codes = rows(&text).skip_while(|[code, _, _]| *code != "error_code");
    let codes = codes.filter(|[code, _, _]| code.bytes().all(|digit| digit.is_ascii_digit()));
    assert_eq!(codes.map(|[code, message, _]| (code, message)).collect::<Vec<_>>(), CODE_MEANINGS);
    for (code, meaning) in CODE_MEANINGS {
        let Verdict::Terminal(failure) = judge_failure(code, "") else { panic!("{code} must end a transaction") };
        assert_eq!(failure.message.as_str(), meaning);
    }
}

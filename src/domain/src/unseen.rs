//! Characters that are not seen, or that change how the text around them is seen. Texts of strangers and of clients are shown to people
//! who decide by them, so they have none.

/// Returns true for control characters (C0, C1), for what overrides or isolates the direction of text (UAX #9), and for what takes no
/// room. Marks of direction and joiners, without which some languages cannot be written, are none.
#[must_use]
pub fn is_unseen(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{200b}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_or_turns_text_is_found_and_what_languages_need_is_not() {
        for letter in "\u{0}\n\u{1b}\u{7f}\u{9b}\u{200b}\u{202a}\u{202e}\u{2060}\u{2066}\u{2069}\u{feff}\u{fff9}".chars() {
            assert!(is_unseen(letter), "{letter:?}");
        }
        assert!(!"Aé क्‍ष می‌خواهم \u{200e}\u{200f}\u{200c}\u{200d}\u{a0}!".chars().any(is_unseen));
    }
}

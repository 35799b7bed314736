//! Characters that are invisible or change how nearby text looks. Texts that people decide by must not contain them.

/// Returns true for control characters (C0, C1), overrides and isolates of text direction (UAX #9), and characters
/// without width. Direction marks and joiners are allowed, because some languages need them.
#[must_use]
pub fn is_unseen(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{200b}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
        || matches!(letter, '\u{fff9}'..='\u{fffb}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_detected_and_direction_marks_are_allowed() {
        for letter in
            "\u{0}\n\u{1b}\u{7f}\u{9b}\u{200b}\u{202a}\u{202e}\u{2060}\u{2066}\u{2069}\u{feff}\u{fff9}".chars()
        {
            assert!(is_unseen(letter), "{letter:?}");
        }
        assert!(!"Aé क्‍ष می‌خواهم \u{200e}\u{200f}\u{200c}\u{200d}\u{a0}!".chars().any(is_unseen));
    }
}

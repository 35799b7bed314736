//! Cells of a file for a spreadsheet (RFC 4180).

/// Stands before the first line: without it Excel does not read UTF-8.
pub const BYTE_ORDER_MARK: &str = "\u{feff}";
/// Characters that make a spreadsheet take a cell for a formula, in either width.
const FORMULA_SIGNS: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];
/// At these a spreadsheet may begin the next cell or line.
const SEPARATORS: [char; 5] = [';', '|', '\t', '\r', '\n'];

/// A value as a cell in quotes. An apostrophe stands before what a spreadsheet would calculate, also after a character at which one of
/// another country begins the next cell.
#[must_use]
pub fn cell(value: &str) -> String {
    let guarded = value.split_inclusive(SEPARATORS).map(|part| {
        let guard = if part.trim_start_matches([' ', '"']).starts_with(FORMULA_SIGNS) { "'" } else { "" };
        format!("{guard}{}", part.replace('"', "\"\""))
    });
    format!("\"{}\"", guarded.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::cell;

    #[test]
    fn no_cell_is_calculated_and_none_spills_into_the_next() {
        for (value, expected) in [
            ("Asha Rao", "\"Asha Rao\""),
            ("12, \"Rose\" Road\nPune", "\"12, \"\"Rose\"\" Road\nPune\""),
            ("=HYPERLINK(\"http://x\")", "\"'=HYPERLINK(\"\"http://x\"\")\""),
            ("+919876543210", "\"'+919876543210\""),
            ("-1", "\"'-1\""),
            ("@SUM(A1)", "\"'@SUM(A1)\""),
            ("\t=1", "\"'\t'=1\""),
            ("\r=1", "\"'\r'=1\""),
            (" =1", "\"' =1\""),
            ("＝1", "\"'＝1\""),
            ("a=1", "\"a=1\""),
            ("x;=1+1;-2", "\"x;'=1+1;'-2\""),
            ("x;\"=1\"", "\"x;'\"\"=1\"\"\""),
            ("x\t@y\n+z", "\"x\t'@y\n'+z\""),
            ("", "\"\""),
        ] {
            assert_eq!(cell(value), expected);
        }
    }
}

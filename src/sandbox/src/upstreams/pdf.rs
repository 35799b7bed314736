//! The PDFs that the sandbox writes: a page of text as a locker document, and comments as a signature or a stamp.
//! Neither has legal value.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sakshi_domain::limits::FILE_BYTES_MAX;

/// Builds a PDF of one page with `lines`, as Base64. No font is embedded, so all but printable ASCII becomes `?`.
pub(super) fn build_page(lines: &[String]) -> String {
    let mut text = String::from("BT /F1 14 Tf 18 TL 56 780 Td\n");
    for line in lines {
        // Writing to a string does not fail.
        let _ = writeln!(text, "({}) Tj T*", escape_literal(line));
    }
    text.push_str("ET");
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> \
            >>"
        .to_owned(),
        format!("<< /Length {} >>\nstream\n{text}\nendstream", text.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
    ];
    let mut pdf = String::from("%PDF-1.4\n");
    let mut table = String::from("0000000000 65535 f \n");
    for (index, object) in objects.iter().enumerate() {
        let _ = writeln!(table, "{:010} 00000 n ", pdf.len());
        let _ = write!(pdf, "{} 0 obj\n{object}\nendobj\n", index + 1);
    }
    let (table_offset, size) = (pdf.len(), objects.len() + 1);
    let _ = write!(pdf, "xref\n0 {size}\n{table}trailer\n<< /Size {size} /Root 1 0 R >>\n");
    let _ = write!(pdf, "startxref\n{table_offset}\n%%EOF\n");
    STANDARD.encode(pdf)
}

/// Escapes a text for a string literal (ISO 32000-1, 7.3.4.2).
fn escape_literal(text: &str) -> String {
    let escape = |c: char| match c {
        '(' | ')' | '\\' => format!("\\{c}"),
        ' '..='~' => c.to_string(),
        _ => "?".to_owned(),
    };
    text.chars().map(escape).collect()
}

/// Appends comments to a PDF, which do not change how it is displayed. Repeats the offset of the cross-reference table
/// at the end, where readers look for it. Returns `None` if the file is not a PDF, or would become too large
/// for a report.
pub(super) fn annotate(file: &str, lines: &[String]) -> Option<String> {
    let mut pdf = STANDARD.decode(file).ok().filter(|bytes| bytes.starts_with(b"%PDF-"))?;
    let table_offset = last_table_offset(&pdf);
    let mut block = String::from("\n");
    for line in lines {
        let line: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let _ = writeln!(block, "% {line}");
    }
    if let Some(table_offset) = table_offset {
        let _ = writeln!(block, "startxref\n{table_offset}");
    }
    block.push_str("%%EOF\n");
    pdf.extend_from_slice(block.as_bytes());
    (pdf.len() <= FILE_BYTES_MAX).then(|| STANDARD.encode(pdf))
}

/// Returns the offset of the last cross-reference table of a PDF.
fn last_table_offset(pdf: &[u8]) -> Option<u64> {
    let keyword = b"startxref";
    let start = pdf.windows(keyword.len()).rposition(|window| window == keyword)?;
    let digits = pdf.get(start + keyword.len()..)?.trim_ascii_start();
    let end = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
    std::str::from_utf8(digits.get(..end)?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(base64: &str) -> Vec<u8> {
        STANDARD.decode(base64).unwrap()
    }

    #[test]
    fn a_page_is_a_pdf_whose_table_points_at_its_objects() {
        let pdf = decode(&build_page(&["Driving (Licence) \\ é".to_owned(), "Asha Rao".to_owned()]));
        let text = String::from_utf8(pdf.clone()).unwrap();
        assert!(text.contains("(Driving \\(Licence\\) \\\\ ?) Tj") && text.ends_with("%%EOF\n"));
        let table = usize::try_from(last_table_offset(&pdf).unwrap()).unwrap();
        assert!(text[table..].starts_with("xref\n0 6\n"));
        for (number, entry) in text[table..].lines().skip(3).take(5).enumerate() {
            let at: usize = entry[..10].parse().unwrap();
            assert!(text[at..].starts_with(&format!("{} 0 obj\n", number + 1)), "{entry}");
            assert_eq!(entry.len() + 1, 20, "an entry has twenty bytes (ISO 32000-1, 7.5.4)");
        }
        let length: usize = text.split("/Length ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        let stream = text.split("stream\n").nth(1).unwrap().split("\nend").next().unwrap();
        assert_eq!(stream.len(), length);
    }

    #[test]
    fn an_annotated_pdf_begins_with_the_original_and_repeats_its_table_offset() {
        let original = build_page(&["Contract".to_owned()]);
        let annotated =
            decode(&annotate(&original, &["Asha\nRao signed".to_owned(), "मीना signed".to_owned()]).unwrap());
        let original = decode(&original);
        assert!(annotated.starts_with(&original));
        let added = String::from_utf8(annotated[original.len()..].to_vec()).unwrap();
        assert!(added.contains("\n% Asha Rao signed\n% मीना signed\n") && added.ends_with("%%EOF\n"));
        assert_eq!(last_table_offset(&annotated), last_table_offset(&original));
        assert!(last_table_offset(&original).is_some());
    }

    #[test]
    fn a_file_that_is_not_a_pdf_or_would_grow_too_large_is_not_annotated() {
        assert_eq!(annotate(&STANDARD.encode("plain text"), &[]), None);
        let mut large = b"%PDF-1.4\n".to_vec();
        large.resize(FILE_BYTES_MAX, b' ');
        assert_eq!(annotate(&STANDARD.encode(&large), &["signed".to_owned()]), None);
    }
}

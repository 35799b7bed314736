//! QR codes as inline SVG: one stroke per row, dark on white whatever the page's colours are.

use std::fmt::Write as _;

use qrcode::types::QrError;
use qrcode::{Color, EcLevel, QrCode};

/// Light modules around the code (ISO/IEC 18004 §5.3.8).
const QUIET_ZONE: usize = 4;

/// Draws a text at error correction level L for density. A long run of digits becomes a numeric
/// segment of its own, which is what makes QR payloads fit.
///
/// # Errors
/// A text that no QR code holds.
pub(super) fn svg(text: &str) -> Result<String, QrError> {
    let code = QrCode::with_error_correction_level(text, EcLevel::L)?;
    let width = code.width();
    let side = width + 2 * QUIET_ZONE;
    let mut path = String::with_capacity(width * width * 2);
    for (y, row) in code.to_colors().chunks(width).enumerate() {
        // Writing into a string cannot fail.
        let _ = write!(path, "M{QUIET_ZONE} {}.5", y + QUIET_ZONE);
        for run in row.chunk_by(|left, right| left == right) {
            let _ = match run.first() {
                Some(Color::Dark) => write!(path, "h{}", run.len()),
                _ => write!(path, "m{} 0", run.len()),
            };
        }
    }
    Ok(format!(
        r##"<svg viewBox="0 0 {side} {side}" shape-rendering="crispEdges" aria-hidden="true" focusable="false"><path fill="#fff" d="M0 0h{side}v{side}H0z"/><path stroke="#000" d="{path}"/></svg>"##
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_a_qr_payload_are_packed_as_numbers() {
        let digits = "1234567890".repeat(170);
        let code = QrCode::with_error_correction_level(format!("https://qr.example/getIntent?value={digits}"), EcLevel::L).unwrap();
        // 1,700 digits as bytes would need version 30; as numbers they fit into 19 (97 is 20).
        assert!(code.width() <= 97, "{}", code.width());
    }

    #[test]
    fn the_picture_has_a_quiet_zone_and_is_dark_on_white() {
        let picture = svg("https://v.example/v/3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f11").unwrap();
        assert!(picture.contains(r##"fill="#fff" d="M0 0h"##));
        assert!(picture.contains("M4 4.5h7m"), "the first finder pattern starts at 4, 4");
        assert!(!picture.contains("style="));
    }

    #[test]
    fn a_text_that_does_not_fit_is_an_error() {
        assert!(svg(&"x".repeat(4_000)).is_err());
    }
}

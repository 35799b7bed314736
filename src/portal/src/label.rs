//! The labels of the API's fields in the portal, so that an error names the label on the screen.

/// Fields of requests with their labels.
const LABELS: &[(&str, &str)] = &[
    ("account_number", "Account number"),
    ("apiType", "Type"),
    ("app_id", "Android package"),
    ("app_signature", "Certificate’s SHA-256"),
    ("channel", "Channel"),
    ("claims", "Choice of details"),
    ("client_reference_id", "Your own reference"),
    ("code", "Code"),
    ("consent", "Consent"),
    ("consent_text", "Wording of the consent"),
    ("credit_budget", "Credit budget"),
    ("date_of_birth", "Date of birth"),
    ("email", "E-mail"),
    ("environments", "Environments"),
    ("epic_number", "Voter ID number"),
    ("expires_at", "End"),
    ("face_auth", "Face scan"),
    ("gate", "Gate"),
    ("gstin", "GSTIN"),
    ("ifsc", "IFSC"),
    ("is_active", "State"),
    ("label", "Label"),
    ("language", "Language"),
    ("max_guests", "Places"),
    ("name", "Name"),
    ("name_as_per_pan", "Name on the PAN"),
    ("networks", "Networks"),
    ("on_duplicate", "A person who registers again"),
    ("organiser", "Organiser"),
    ("overlap_s", "Overlap"),
    ("pan", "PAN"),
    ("password", "Password"),
    ("place", "Place"),
    ("purpose", "Purpose"),
    ("redirect_url", "URL to return to"),
    ("role", "Role"),
    ("starts_at", "Beginning"),
    ("time_zone", "Time zone"),
    ("webhookUrl", "URL"),
    ("webhook_url", "Webhook URL"),
];

/// Returns the label of a field, or the field's name if no form has the field.
pub(super) fn label(field: &str) -> &str {
    LABELS.iter().find(|(known, _)| *known == field).map_or(field, |(_, label)| label)
}

/// Formats a validation error as a sentence. The API's message, such as `is required`, follows the label of the field.
pub(super) fn sentence(field: &str, message: &str) -> String {
    // The field, the beginning of the message, and the sentence instead.
    let special_cases =
        [("claims", "is required", "Choose at least one detail."), ("consent", "", "Tick that the person has agreed.")];
    if let Some((.., sentence)) =
        special_cases.iter().find(|(name, start, _)| *name == field && message.starts_with(start))
    {
        return (*sentence).to_owned();
    }
    let subject = label(field.split('[').next().unwrap_or(field));
    // Some messages name a second field.
    let message = match message.split_once(" together with ") {
        Some((problem, other)) => format!("{problem} together with {}", label(other)),
        None => message.to_owned(),
    };
    format!("{subject} {message}.")
}

#[cfg(test)]
mod tests {
    use sakshi_domain::checks::CHECKS;

    use super::*;

    #[test]
    fn every_number_of_a_check_has_a_label() {
        for check in CHECKS {
            let fields =
                check.numbers.iter().map(|form| form.field).chain(check.compared.iter().map(|known| known.field));
            fields.for_each(|field| assert_ne!(label(field), field, "{}", check.name));
        }
    }

    #[test]
    fn an_error_names_the_label_and_not_the_field() {
        assert_eq!(
            sentence("max_guests", "must be a whole number from 1 to 1000000"),
            "Places must be a whole number from 1 to 1000000."
        );
        assert_eq!(sentence("claims[2]", "is named twice"), "Choice of details is named twice.");
        assert_eq!(
            sentence("app_signature", "is required together with app_id"),
            "Certificate’s SHA-256 is required together with Android package."
        );
        assert_eq!(sentence("claims", "is required"), "Choose at least one detail.");
        assert_eq!(
            sentence("consent", "is required and must be Y, given by the end user"),
            "Tick that the person has agreed."
        );
        assert_eq!(sentence("colour", "is not a field of this request"), "colour is not a field of this request.");
    }
}

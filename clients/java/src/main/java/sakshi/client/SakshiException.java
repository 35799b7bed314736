package sakshi.client;

import com.fasterxml.jackson.databind.JsonNode;

/** The service refused a request, or (status 0) gave no answer. */
public final class SakshiException extends RuntimeException {
    private static final long serialVersionUID = 1;

    private final int status;
    private final String code;
    private final String errorId;

    SakshiException(int status, JsonNode body) {
        super(status + " " + code(status, body) + ": " + body.path("message").asText("status " + status) + fields(body));
        this.status = status;
        this.code = code(status, body);
        this.errorId = body.path("errorId").asText(null);
    }

    /** The HTTP status; 0 when no answer came. */
    public int status() {
        return status;
    }

    /** The stable code of the refusal; {@code no_answer} when there was none. */
    public String code() {
        return code;
    }

    /** By this the operator finds the request; null when there was no answer. */
    public String errorId() {
        return errorId;
    }

    private static String code(int status, JsonNode body) {
        return body.path("code").asText(status == 0 ? "no_answer" : "unknown");
    }

    private static String fields(JsonNode body) {
        var text = new StringBuilder();
        body.path("errors").forEach(wrong -> text.append("; ").append(wrong.path("field").asText()).append(' ').append(wrong.path("message").asText()));
        return text.toString();
    }
}

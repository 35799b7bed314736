package sakshi.client;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Map;
import java.util.Optional;

/**
 * How a verification ended, whatever spelling the app is set to.
 *
 * @param state how
 * @param txnId the transaction
 * @param claims what the person shared; empty unless the verification passed
 * @param errorCode why it failed: a code of the authority or of the service; null unless it failed
 * @param message the same in words, for developers
 */
public record Verdict(State state, String txnId, Map<String, JsonNode> claims, String errorCode, String message) {
    /** How a verification can end. */
    public enum State { PASSED, FAILED, EXPIRED }

    static Optional<Verdict> of(String txnId, JsonNode result) {
        var data = result.path("data");
        if (!data.path("pending").isBoolean() || data.path("pending").asBoolean()) return Optional.empty();
        var passed = either(data, "verification_passed", "verificationPassed").asBoolean(false);
        var claims = new java.util.TreeMap<String, JsonNode>();
        either(data, "verified_claims", "verifiedClaims").fields().forEachRemaining(claim -> claims.put(claim.getKey(), claim.getValue()));
        var message = data.path("message").asText(result.path("message").asText(""));
        var errorCode = either(data, "error_code", "errorCode").asText(null);
        var id = either(data, "txn_id", "txnId").asText(txnId);
        return Optional.of(new Verdict(passed ? State.PASSED : State.FAILED, id, Map.copyOf(claims), errorCode, message));
    }

    /** A setting of the app chooses between the two spellings. */
    static JsonNode either(JsonNode object, String name, String other) {
        return object.has(name) ? object.path(name) : object.path(other);
    }
}

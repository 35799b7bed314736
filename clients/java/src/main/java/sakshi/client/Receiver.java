package sakshi.client;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.Semaphore;
import java.util.regex.Pattern;

/**
 * What a receiver of webhooks must do. A webhook has no signature, and anybody can post to its address: so it is matched with what
 * is open, and the record is fetched with the key before anything is believed.
 */
public final class Receiver {
    /** The kinds of webhooks. */
    public enum Kind { OVSE, ESIGN, DOCLOCKER, ESTAMP, WEALTH_DATA, WEALTH_HISTORICAL, WEALTH_CONSENT }

    /**
     * An outcome. Those of OVSE, ESIGN and DOCLOCKER were fetched; the others have no poll, so keep the URL of their webhooks secret.
     *
     * @param kind the flow
     * @param id the id of what ended
     * @param key what tells two webhooks of one flow apart
     * @param verdict the outcome of a verification; null for the other flows
     * @param body the body of the poll, or of the webhook of flows without one; null for a verification
     */
    public record Arrival(Kind kind, String id, String key, Verdict verdict, JsonNode body) {}

    /** What the application does. */
    public interface Handlers {
        /** Whether you wait for this: an id of yours that has no outcome yet. */
        boolean isOpen(Kind kind, String id) throws Exception;

        /** Stores an outcome under its key. It may be called twice for one key: let the key be unique in your database. */
        void onOutcome(Arrival arrival) throws Exception;

        /** Hears of what could not be fetched or stored. A poll finds it later. */
        default void onError(Exception error) {}
    }

    /** Bytes of a webhook with documents or a photo. */
    public static final int BYTES_MAX = 24 * 1024 * 1024;

    /** Webhooks that wait for a thread or are taken. They keep their bodies, and strangers can post them too. */
    public static final int WAITING_MAX = 100;

    private final Sakshi sakshi;
    private final Handlers handlers;
    private final Set<String> underWay = ConcurrentHashMap.newKeySet();
    private final Semaphore places = new Semaphore(WAITING_MAX);

    /** A receiver that fetches with this client. */
    public Receiver(Sakshi sakshi, Handlers handlers) {
        this.sakshi = sakshi;
        this.handlers = handlers;
    }

    /**
     * Takes the body of a webhook on a thread of the executor. Returns false, and drops the body, while {@link #WAITING_MAX} others
     * wait or are taken, or when the executor rejects it: respond with 503 then.
     */
    public boolean takeLater(JsonNode body, Executor executor) {
        if (!places.tryAcquire()) return false;
        try {
            executor.execute(() -> {
                try {
                    take(body);
                } finally {
                    places.release();
                }
            });
            return true;
        } catch (RejectedExecutionException full) {
            places.release();
            return false;
        }
    }

    /** Takes the body of a webhook that was answered already. It never throws. */
    public void take(JsonNode body) {
        try {
            var found = recognised(body);
            if (found.isEmpty() || !handlers.isOpen(found.get().kind(), found.get().id())) return;
            var name = found.get().kind() + " " + found.get().key();
            if (!underWay.add(name)) return;
            try {
                var arrival = fetched(found.get(), body);
                if (arrival.isPresent()) handlers.onOutcome(arrival.get());
            } finally {
                underWay.remove(name);
            }
        } catch (Exception error) {
            handlers.onError(error);
        }
    }

    /** The record as the service has it; empty while it is pending there. */
    private Optional<Arrival> fetched(Found found, JsonNode body) {
        return switch (found.kind()) {
            case OVSE -> sakshi.verdict(found.id(), 0).filter(verdict -> verdict.txnId().toLowerCase(Locale.ROOT).equals(found.id()))
                .map(verdict -> new Arrival(found.kind(), verdict.txnId(), verdict.txnId(), verdict, null));
            case ESIGN -> of(found, sakshi.esignStatus(found.id())).filter(arrival -> !arrival.body().path("pending").asBoolean(false));
            case DOCLOCKER -> of(found, sakshi.documents(found.id())).filter(arrival -> !arrival.body().path("pending").asBoolean(false));
            default -> of(found, body);
        };
    }

    private static Optional<Arrival> of(Found found, JsonNode body) {
        return Optional.of(new Arrival(found.kind(), found.id(), found.key(), null, body));
    }

    /** What a body is about. */
    record Found(Kind kind, String id, String key) {}

    /** The kind, the member around the fields, and the fields of the key with their spellings; the first is the id. */
    private record Rule(Kind kind, String around, List<List<String>> fields) {}

    /** Kinds whose records are fetched. Their ids are UUIDs. */
    private static final Set<Kind> POLLED = EnumSet.of(Kind.OVSE, Kind.ESIGN, Kind.DOCLOCKER);

    private static final Pattern UUID = Pattern.compile("[0-9a-fA-F-]{36}");

    private static final List<Rule> RULES = List.of(
        new Rule(Kind.OVSE, "data", List.of(List.of("txn_id", "txnId"))),
        new Rule(Kind.ESIGN, null, List.of(List.of("documentId"))),
        new Rule(Kind.DOCLOCKER, "data", List.of(List.of("transactionId"))),
        new Rule(Kind.ESTAMP, "data", List.of(List.of("eStampId"))),
        new Rule(Kind.WEALTH_DATA, null, List.of(List.of("uniqueIdentifier"), List.of("txnId"), List.of("dataType"))),
        new Rule(Kind.WEALTH_HISTORICAL, null,
            List.of(List.of("uniqueIdentifier"), List.of("consentId"), List.of("accountId"), List.of("fromDate"), List.of("toDate"))),
        new Rule(Kind.WEALTH_CONSENT, null, List.of(List.of("uniqueIdentifier"), List.of("consentId"), List.of("status"))));

    static Optional<Found> recognised(JsonNode body) {
        for (var rule : RULES) {
            var inner = rule.around() == null ? body : body.path(rule.around());
            var parts = new ArrayList<String>();
            for (var names : rule.fields()) {
                names.stream().map(inner::path).filter(JsonNode::isTextual).map(JsonNode::asText).filter(text -> !text.isEmpty()).findFirst().ifPresent(parts::add);
            }
            if (parts.size() < rule.fields().size()) continue;
            if (!POLLED.contains(rule.kind())) return Optional.of(new Found(rule.kind(), parts.get(0), String.join(" ", parts)));
            // The sender chooses the spelling of an id: each record has one key.
            var id = parts.get(0).toLowerCase(Locale.ROOT);
            return UUID.matcher(parts.get(0)).matches() ? Optional.of(new Found(rule.kind(), id, id)) : Optional.empty();
        }
        return Optional.empty();
    }
}

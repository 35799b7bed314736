package sakshi.client;

import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializerProvider;
import com.fasterxml.jackson.databind.module.SimpleModule;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.MissingNode;
import com.fasterxml.jackson.databind.ser.std.StdSerializer;
import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Comparator;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import sakshi.client.model.*;

/** A sakshi service, for one app. Threads may share it. */
public final class Sakshi {
    private static final String OVSE = "/api/v1/nationalid-ovse";
    private static final Set<Integer> REPEATABLE = Set.of(0, 408, 429, 500, 502, 503, 504);
    private static final int POLL_S = 25;
    /** How often a request is sent at most, where repeating it is safe. */
    private static final int ATTEMPTS = 5;
    /** Retries that a client may save up, in tenths. Each request adds one tenth. They bound the load of an outage. */
    private static final int TENTHS_MAX = 500;
    /** What one attempt may take, beside what the service is asked to wait. */
    private static final Duration TIMEOUT = Duration.ofSeconds(30);

    /**
     * Reads and writes the bodies of the API: fields that are null are left out, and fields of later versions ignored. Sets are
     * written in order, because a repeated request must have the same bytes.
     */
    public static final ObjectMapper JSON = new ObjectMapper()
        .registerModule(new SimpleModule().addSerializer(new Sorted()))
        .setSerializationInclusion(JsonInclude.Include.NON_NULL)
        .configure(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES, false);

    @SuppressWarnings("rawtypes")
    private static final class Sorted extends StdSerializer<Set> {
        private static final long serialVersionUID = 1;

        Sorted() {
            super(Set.class);
        }

        @Override
        public void serialize(Set set, JsonGenerator json, SerializerProvider provider) throws IOException {
            var sorted = ((Set<?>) set).stream().sorted(Comparator.comparing(Object::toString)).toList();
            provider.defaultSerializeValue(sorted, json);
        }
    }

    private final String base;
    private final String key;
    private final String app;
    private int tenths = TENTHS_MAX;
    // It follows no redirect: the key goes nowhere else.
    private final HttpClient http = HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(10)).build();

    /** The service at {@code base}, such as {@code https://verify.example}. */
    public Sakshi(String base, String key, String app) {
        this.base = base.replaceAll("/+$", "");
        this.key = key;
        this.app = app;
    }

    /** Opens a verification. It costs one credit. Send the person to {@code requestUrl}. */
    public InitResponse openVerification(InitRequest terms, String idempotencyKey) {
        return call("POST", OVSE + "/init", terms, InitResponse.class, new Manner().once(idempotencyKey));
    }

    /** The value of a QR code for the identity app's scanner. */
    public QrIntentResponse qrIntent(String txnId) {
        return call("POST", OVSE + "/qr-intent", Map.of("txnId", txnId), QrIntentResponse.class, new Manner().safe());
    }

    /** The result as it is now, or within so many seconds, 30 at most. */
    public JsonNode result(String txnId, int waitS) {
        return call("GET", OVSE + "/result/" + escaped(txnId) + "?wait=" + waitS, null, JsonNode.class, new Manner().waiting(waitS));
    }

    /** How a verification ended; empty while it is pending. */
    public Optional<Verdict> verdict(String txnId, int waitS) {
        try {
            return Verdict.of(txnId, result(txnId, waitS));
        } catch (SakshiException refused) {
            if (refused.status() != 410) throw refused;
            return Optional.of(new Verdict(Verdict.State.EXPIRED, txnId, Map.of(), null, refused.getMessage()));
        }
    }

    /** Waits until a verification has ended. */
    public Verdict waitForResult(String txnId) {
        for (;;) {
            var verdict = verdict(txnId, POLL_S);
            if (verdict.isPresent()) return verdict.get();
        }
    }

    /** Creates an event, which costs nothing. */
    public CreateEventResponse createEvent(CreateEventRequest terms, String idempotencyKey) {
        return call("POST", OVSE + "/events", terms, CreateEventResponse.class, new Manner().once(idempotencyKey));
    }

    /** The event as it is now, with its counts. */
    public EventResponse event(String eventId) {
        return call("GET", OVSE + "/events/" + escaped(eventId), null, EventResponse.class, new Manner());
    }

    /** Changes an event: the members of {@code changes} and no others. */
    public EventResponse changeEvent(String eventId, Map<String, ?> changes) {
        return call("PATCH", OVSE + "/events/" + escaped(eventId), changes, EventResponse.class, new Manner());
    }

    /** All verified guests of an event, oldest first. */
    public void guests(String eventId, Consumer<JsonNode> guest) {
        var page = OVSE + "/events/" + escaped(eventId) + "/registrations?page_size=100";
        while (page != null) {
            var list = call("GET", page, null, JsonNode.class, new Manner());
            list.path("registrations").forEach(guest);
            page = list.path("next").asText(null);
        }
    }

    /** Verifies a number while you wait: {@code pan}, {@code gst}, {@code bank-account}, {@code ifsc} or {@code voter-id}. */
    public JsonNode check(String kind, Map<String, ?> request) {
        return call("POST", "/api/v1/" + escaped(kind) + "/verify", request, JsonNode.class, new Manner().safe());
    }

    /** Orders signatures under a document. */
    public EsignResponse orderEsign(EsignRequest order, String idempotencyKey) {
        return call("POST", "/api/v1/esign/request", order, EsignResponse.class, new Manner().once(idempotencyKey));
    }

    /** What became of such a document. */
    public JsonNode esignStatus(String documentId) {
        return call("POST", "/api/v1/esign/status", Map.of("documentId", documentId), JsonNode.class, new Manner().safe());
    }

    /** Asks for documents of a person's locker. */
    public DocLockerResponse requestDocuments(DocLockerInitRequest order, String idempotencyKey) {
        return call("POST", "/api/v1/doclocker/init", order, DocLockerResponse.class, new Manner().once(idempotencyKey));
    }

    /** The documents that have come. */
    public JsonNode documents(String transactionId) {
        return call("GET", "/api/v1/doclocker/details/" + escaped(transactionId), null, JsonNode.class, new Manner());
    }

    /** Orders an e-stamp. */
    public EStampResponse orderEStamp(EStampInitRequest order, String idempotencyKey) {
        return call("POST", "/api/v1/estamp/init", order, EStampResponse.class, new Manner().once(idempotencyKey));
    }

    /** Asks for a consent to read accounts. */
    public WealthConsentResponse requestWealthConsent(WealthConsentRequest order, String idempotencyKey) {
        return call("POST", "/api/v1/wealth/consents", order, WealthConsentResponse.class, new Manner().once(idempotencyKey));
    }

    /** The credits of the client. */
    public Balance credits() {
        return call("GET", "/api/v1/credits", null, Balance.class, new Manner());
    }

    /** Sets the webhook URL of a flow; null removes it. */
    public void setWebhookUrl(String apiType, String webhookUrl) {
        var body = JsonNodeFactory.instance.objectNode().put("apiType", apiType).put("webhookUrl", webhookUrl);
        call("PUT", "/api/v1/user/webhook", body, JsonNode.class, new Manner());
    }

    /** How a request is sent. */
    static final class Manner {
        private String idempotencyKey;
        private boolean isSafe;
        private int waitS;

        /** Carried out once under this key; null for a random one. */
        Manner once(String idempotencyKey) {
            this.idempotencyKey = idempotencyKey == null ? UUID.randomUUID().toString() : idempotencyKey;
            return this;
        }

        /** A POST that changes nothing. */
        Manner safe() {
            isSafe = true;
            return this;
        }

        Manner waiting(int seconds) {
            waitS = seconds;
            return this;
        }
    }

    /** Escapes an id for a path. */
    private static String escaped(String id) {
        return URLEncoder.encode(id, StandardCharsets.UTF_8).replace("+", "%20");
    }

    /** Changes the retries left. Returns false, and changes nothing, if there are too few. */
    private synchronized boolean addTenths(int number) {
        if (tenths + number < 0) return false;
        tenths = Math.min(tenths + number, TENTHS_MAX);
        return true;
    }

    /** One attempt. The timeout of a request alone ends with the headers of its response. */
    private HttpResponse<byte[]> attempted(HttpRequest request, Duration timeout) throws IOException, InterruptedException {
        var response = http.sendAsync(request, HttpResponse.BodyHandlers.ofByteArray());
        try {
            return response.get(timeout.toMillis(), TimeUnit.MILLISECONDS);
        } catch (TimeoutException late) {
            throw new HttpTimeoutException("no response within " + timeout.toSeconds() + " s");
        } catch (ExecutionException failed) {
            if (failed.getCause() instanceof IOException cause) throw cause;
            throw new IOException(failed.getCause());
        } finally {
            response.cancel(true);
        }
    }

    /** The JSON in a body; missing if there is none, as in a proxy's page. */
    private static JsonNode parsed(byte[] body) {
        try {
            return JSON.readTree(body);
        } catch (IOException page) {
            return MissingNode.getInstance();
        }
    }

    /** A POST without an idempotency key is sent once, unless it changes nothing. */
    private <T> T call(String method, String path, Object body, Class<T> answer, Manner manner) {
        var mayRepeat = !method.equals("POST") || manner.isSafe || manner.idempotencyKey != null;
        try {
            var sent = body == null ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofString(JSON.writeValueAsString(body));
            var request = HttpRequest.newBuilder(URI.create(base + path)).method(method, sent)
                .header("X-API-KEY", key).header("X-API-APP-ID", app);
            if (body != null) request.header("Content-Type", "application/json");
            if (manner.idempotencyKey != null) request.header("Idempotency-Key", manner.idempotencyKey);
            addTenths(1);
            for (int attempt = 1;; attempt++) {
                var status = 0;
                var retryAfter = "";
                JsonNode read;
                try {
                    var got = attempted(request.build(), TIMEOUT.plusSeconds(manner.waitS));
                    read = parsed(got.body());
                    if (got.statusCode() >= 200 && got.statusCode() < 300 && read.isMissingNode()) throw new IOException("the response is not JSON");
                    status = got.statusCode();
                    retryAfter = got.headers().firstValue("Retry-After").orElse("");
                } catch (IOException none) {
                    read = JSON.createObjectNode().put("message", none.toString());
                }
                if (status >= 200 && status < 300) return JSON.treeToValue(read, answer);
                if (!mayRepeat || attempt >= ATTEMPTS || !REPEATABLE.contains(status) || !addTenths(-10)) throw new SakshiException(status, read);
                // Clients that were refused at the same moment come back at different ones.
                var jitter = ThreadLocalRandom.current().nextDouble(1000, 1500);
                Thread.sleep((long) (jitter * (retryAfter.matches("\\d{1,5}") ? Integer.parseInt(retryAfter) : 1 << (attempt - 1))));
            }
        } catch (IOException unreadable) {
            throw new IllegalArgumentException(method + " " + path + ": " + unreadable.getMessage(), unreadable);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(method + " " + path + " was interrupted", interrupted);
        }
    }
}

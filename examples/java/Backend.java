import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.*;
import java.net.http.*;
import java.time.*;
import java.util.*;
import java.util.concurrent.*;

/** A client's backend: {@code verify} verifies a person by QR code, {@code event} registers guests. README.md says how to run it. */
final class Backend {
    static final Map<String, String> ENV = System.getenv();
    static final String OVSE = "/api/v1/nationalid-ovse";
    static final int ATTEMPTS = 5; // Of one request, where repeating it can help.
    static final Set<Integer> REPEATABLE = Set.of(0, 429, 500, 502, 503, 504); // 0: no answer.
    static final int QUIET_S = 10, WAIT_S = 20; // So long a webhook may take before the result is polled, and a poll.
    static final ObjectMapper JSON = new ObjectMapper();
    static final HttpClient HTTP = HttpClient.newHttpClient(); // It follows no redirect: the key goes nowhere else.

    /** The service refused a request, or (status 0) did not answer. */
    static final class Failure extends Exception {
        final int status;

        Failure(String request, int status, JsonNode body) {
            super(request + ": " + (status == 0 ? "no answer" : status) + " " + body.toPrettyString());
            this.status = status;
        }
    }

    /** Repeats what may succeed later. The idempotency key is for what costs a credit: however often it is sent, it is carried
     *  out and charged once. The other requests of this program do no harm when they are sent twice. */
    static JsonNode call(String method, String path, Map<String, ?> body, String idempotencyKey, int waitS) throws Exception {
        var text = body == null ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofString(JSON.writeValueAsString(body));
        var request = HttpRequest.newBuilder(URI.create(ENV.get("BASE") + path)).method(method, text)
            .header("X-API-KEY", ENV.get("KEY")).header("X-API-APP-ID", ENV.get("APP")).header("Content-Type", "application/json");
        if (idempotencyKey != null) request.header("Idempotency-Key", idempotencyKey);
        for (int attempt = 0;; attempt++) {
            int status = 0;
            String retryAfter = "";
            JsonNode answer;
            try {
                var got = HTTP.sendAsync(request.build(), HttpResponse.BodyHandlers.ofByteArray()).get(waitS + 10, TimeUnit.SECONDS);
                answer = JSON.readTree(got.body());
                status = got.statusCode();
                retryAfter = got.headers().firstValue("Retry-After").orElse("");
            } catch (ExecutionException | TimeoutException | IOException error) {
                answer = JSON.createObjectNode().put("message", error.toString());
            }
            if (status >= 200 && status < 300) return answer;
            if (!REPEATABLE.contains(status) || attempt + 1 == ATTEMPTS) throw new Failure(method + " " + path, status, answer);
            TimeUnit.SECONDS.sleep(retryAfter.matches("\\d{1,9}") ? Integer.parseInt(retryAfter) : 1 << attempt);
        }
    }

    /** Anybody can post here. So a webhook is only a hint that the result of its transaction is worth fetching. */
    static int receiver(int port, Map<String, Semaphore> hints) throws IOException {
        System.setProperty("sun.net.httpserver.maxReqTime", "10"); // Seconds for a request to arrive.
        var server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 0); // Behind a proxy with TLS.
        server.setExecutor(Executors.newCachedThreadPool());
        server.createContext("/hook", exchange -> {
            try (exchange) {
                byte[] body = exchange.getRequestBody().readNBytes(10_000_000); // A photo makes it large.
                exchange.sendResponseHeaders(200, -1);
                var data = JSON.readTree(body).path("data");
                var hint = hints.get(data.path(data.has("txn_id") ? "txn_id" : "txnId").asText());
                if (hint != null) hint.release();
            }
        });
        server.start();
        return server.getAddress().getPort();
    }

    /** What became of a transaction, as the service says when it is asked with our key. Empty: nothing yet. */
    static Optional<String> outcome(String txn, int waitS) throws Exception {
        try {
            var data = call("GET", OVSE + "/result/" + txn + "?wait=" + waitS, null, null, waitS).required("data");
            if (data.required("pending").booleanValue()) return Optional.empty();
            boolean snake = data.has("verification_passed"); // A setting of the app.
            boolean passed = data.required(snake ? "verification_passed" : "verificationPassed").booleanValue();
            var claims = new TreeSet<String>();
            data.required(snake ? "verified_claims" : "verifiedClaims").fieldNames().forEachRemaining(claims::add);
            return Optional.of(passed ? "passed: " + String.join(", ", claims) : "not passed: " + data.required("message").asText());
        } catch (Failure failure) {
            if (failure.status == 410) return Optional.of("expired");
            if (!REPEATABLE.contains(failure.status)) throw failure;
            System.err.println(failure.getMessage());
            return Optional.empty();
        }
    }

    static void verify(String reference, List<String> claims) throws Exception {
        var hints = new ConcurrentHashMap<String, Semaphore>(); // By transaction. In production a table, which takes one outcome for each.
        int port = receiver(Integer.parseInt(ENV.getOrDefault("PORT", "0")), hints);
        String webhook = ENV.getOrDefault("PUBLIC_URL", "http://127.0.0.1:" + port) + "/hook";
        var terms = Map.of("claims", claims, "channel", "qr", "client_reference_id", reference, "webhook_url", webhook);
        var opened = call("POST", OVSE + "/init", terms, UUID.randomUUID().toString(), 0);
        String txn = opened.required("txnId").asText();
        var hint = new Semaphore(0);
        hints.put(txn, hint);
        System.out.println("receiver http://127.0.0.1:" + port + "/hook\ntxn " + txn);
        System.out.println("qr " + call("POST", OVSE + "/qr-intent", Map.of("txnId", txn), null, 0).required("qrPayload").asText());
        var end = Instant.parse(opened.required("expiresAt").asText()).plusSeconds(60); // For the service to say how it ended.
        while (Instant.now().isBefore(end)) {
            boolean hinted = hint.tryAcquire(QUIET_S, TimeUnit.SECONDS);
            hint.drainPermits();
            var found = outcome(txn, hinted ? 0 : WAIT_S);
            found.ifPresent(what -> System.out.println("outcome " + reference + " " + what));
            if (found.isPresent()) return;
        }
        throw new TimeoutException(reference + ": no outcome yet; fetch the result of " + txn + " later");
    }

    static void event(String name, int places, int guests) throws Exception {
        String end = Instant.now().plus(Duration.ofHours(8)).toString();
        var terms = Map.of("name", name, "claims", List.of("name"), "max_guests", places, "expires_at", end);
        var created = call("POST", OVSE + "/events", terms, UUID.randomUUID().toString(), 0);
        String path = OVSE + "/events/" + created.required("event_id").asText();
        System.out.println("event " + created.get("event_id").asText() + "\nqr_url " + created.required("qr_url").asText());
        while (true) {
            var now = call("GET", path, null, null, 0);
            if (now.required("registration_count").intValue() >= guests || !now.required("status").asText().equals("active")) break;
            TimeUnit.SECONDS.sleep(2);
        }
        call("PATCH", path, Map.of("is_active", false), null, 0); // Before the list, so that it is complete.
        String page = path + "/registrations?page_size=100";
        while (page != null) {
            var listed = call("GET", page, null, null, 0);
            for (var guest : listed.required("registrations"))
                System.out.println("guest " + guest.path("verified_at").asText() + " " + guest.at("/verified_claims/residentName").asText());
            page = listed.path("next").textValue(); // Absent on the last page.
        }
    }

    public static void main(String[] args) throws Exception {
        try {
            if (!ENV.keySet().containsAll(Set.of("BASE", "KEY", "APP"))) throw new IllegalArgumentException("set BASE, KEY and APP");
            if (args.length > 2 && args[0].equals("verify")) verify(args[1], List.of(args).subList(2, args.length));
            else if (args.length == 4 && args[0].equals("event")) event(args[1], Integer.parseInt(args[2]), Integer.parseInt(args[3]));
            else throw new IllegalArgumentException("usage: Backend verify REFERENCE CLAIM... | event NAME PLACES GUESTS");
        } catch (Failure | IOException | TimeoutException | IllegalArgumentException failure) {
            System.err.println("stopped: " + failure.getMessage());
            System.exit(1);
        }
        System.exit(0); // The receiver's threads end with it.
    }
}

// What the shops of examples/ do not reach in the Java client: keys of consents, many webhooks, an address with a slash, a language.

import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import sakshi.client.Receiver;
import sakshi.client.Sakshi;
import sakshi.client.model.InitRequest;

final class Units {
    static void check(boolean holds, Object what) {
        if (!holds) throw new AssertionError(what);
    }

    /** A receiver that waits for every id, and the keys under which it stores. */
    static Receiver lenient(List<String> keys) {
        return new Receiver(new Sakshi("http://127.0.0.1:9", "key", "app"), new Receiver.Handlers() {
            @Override
            public boolean isOpen(Receiver.Kind kind, String id) {
                return true;
            }

            @Override
            public void onOutcome(Receiver.Arrival arrival) {
                keys.add(arrival.key());
            }
        });
    }

    /** One key for each change of each consent. */
    static void consents() throws Exception {
        var keys = new ArrayList<String>();
        var receiver = lenient(keys);
        for (var consent : List.of(",\"consentId\":\"c-1\"", ",\"consentId\":\"c-2\"", "", ",\"consentId\":\"\"")) {
            receiver.take(Sakshi.JSON.readTree("{\"uniqueIdentifier\":\"u-1\",\"status\":\"Expiring Soon\"" + consent + "}"));
        }
        check(keys.equals(List.of("u-1 c-1 Expiring Soon", "u-1 c-2 Expiring Soon")), keys);
    }

    /** Webhooks that wait are few. */
    static void many() throws Exception {
        var receiver = lenient(new ArrayList<>());
        var waiting = new ArrayDeque<Runnable>();
        var webhook = Sakshi.JSON.readTree("{}");
        for (int number = 0; number < Receiver.WAITING_MAX; number++) check(receiver.takeLater(webhook, waiting::add), number);
        check(!receiver.takeLater(webhook, waiting::add), "webhooks wait without a bound");
        waiting.remove().run();
        check(receiver.takeLater(webhook, waiting::add), "a webhook that was taken keeps its place");
    }

    static void address() throws Exception {
        var paths = new ArrayList<String>();
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.createContext("/", exchange -> {
            paths.add(exchange.getRequestURI().getPath());
            var body = "{\"balance\":7}".getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.start();
        try {
            var sakshi = new Sakshi("http://127.0.0.1:" + server.getAddress().getPort() + "/", "key", "app");
            check(sakshi.credits().getBalance() == 7, "the balance");
            check(paths.equals(List.of("/api/v1/credits")), paths);
        } finally {
            server.stop(0);
        }
    }

    /** A language is a name or a code. */
    static void language() throws Exception {
        var terms = Sakshi.JSON.writeValueAsString(new InitRequest().language("hindi"));
        check(terms.contains("\"language\":\"hindi\""), terms);
    }

    public static void main(String[] arguments) throws Exception {
        consents();
        many();
        address();
        language();
        System.out.println("ok       clients: units in Java");
    }
}

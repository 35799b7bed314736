import com.fasterxml.jackson.core.type.TypeReference;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.stream.Collectors;
import org.apache.catalina.Context;
import org.apache.catalina.startup.Tomcat;
import sakshi.client.*;
import sakshi.client.model.*;

/**
 * A shop that verifies its customers: an order page, a return page, a receiver of webhooks and a reconciler. README.md says how to
 * run it.
 */
final class Shop {
    static final Map<String, String> ENV = System.getenv();
    static final int QUIET_S = 10; // So long a webhook may take before the result is polled.
    static final int AGAIN_S = 2; // After a failure that may pass.
    static final String FORM = """
        <!doctype html><title>Shop</title><form method="post" action="/orders">
        <label>Order <input name="reference" required pattern="[\\w-]+"></label> <input type="hidden" name="claims" value="name age_above_18">
        <button>Verify my age</button></form>""";

    /** An order: reference, key, claims and url, then txn and page, then outcome. */
    static final class Order extends TreeMap<String, String> {
        private static final long serialVersionUID = 1;

        Order with(String name, String value) {
            var changed = new Order();
            changed.putAll(this);
            changed.put(name, value);
            return changed;
        }
    }

    /** The orders, in a file that is only appended to. In production a table, where the reference and the transaction are unique. */
    static final class Orders {
        private final Map<String, Order> all = new LinkedHashMap<>();
        private final Path file;

        Orders(Path file) throws IOException {
            this.file = file;
            for (var line : Files.exists(file) ? Files.readAllLines(file) : List.<String>of()) {
                var order = Sakshi.JSON.readValue(line, new TypeReference<Order>() {});
                apply(order);
            }
        }

        private void apply(Order order) {
            all.merge(order.get("reference"), order, (known, change) -> {
                var merged = new Order();
                merged.putAll(known);
                merged.putAll(change);
                return merged;
            });
        }

        /** Written before it counts: what was sent to the service is never forgotten. */
        synchronized void keep(Order order) throws IOException {
            var line = (Sakshi.JSON.writeValueAsString(order) + "\n").getBytes(StandardCharsets.UTF_8);
            Files.write(file, line, StandardOpenOption.CREATE, StandardOpenOption.APPEND, StandardOpenOption.DSYNC);
            apply(order);
        }

        /** Keeps an order unless its reference is known; returns the known one. So several presses of the button share one key. */
        synchronized Order keepNew(Order order) throws IOException {
            var known = all.get(order.get("reference"));
            if (known == null) keep(order);
            return known == null ? order : known;
        }

        /** The first outcome of an order stays. */
        synchronized void settle(String txn, String outcome) throws IOException {
            var order = of(txn);
            if (order == null || order.containsKey("outcome")) return;
            keep(order.with("outcome", outcome));
            System.out.println("outcome " + order.get("reference") + " " + outcome);
        }

        synchronized Order find(String reference) {
            return all.get(reference);
        }

        synchronized Order of(String txn) {
            return all.values().stream().filter(order -> txn.equals(order.get("txn"))).findFirst().orElse(null);
        }

        synchronized List<Order> open() {
            return all.values().stream().filter(order -> !order.containsKey("outcome")).toList();
        }
    }

    final Sakshi sakshi = new Sakshi(ENV.get("BASE"), ENV.get("KEY"), ENV.get("APP"));
    final ExecutorService threads = Executors.newCachedThreadPool(task -> {
        var thread = new Thread(task);
        thread.setDaemon(true);
        return thread;
    });
    final Orders orders = new Orders(Path.of(ENV.getOrDefault("ORDERS", "orders.jsonl")));
    final Receiver receiver = new Receiver(sakshi, new Receiver.Handlers() {
        @Override
        public boolean isOpen(Receiver.Kind kind, String id) {
            var order = orders.of(id);
            return kind == Receiver.Kind.OVSE && order != null && !order.containsKey("outcome");
        }

        @Override
        public void onOutcome(Receiver.Arrival arrival) throws IOException {
            orders.settle(arrival.id(), told(arrival.verdict()));
        }

        @Override
        public void onError(Exception error) {
            System.err.println("webhook: " + error);
        }
    });
    String url;

    Shop() throws IOException {}

    static String told(Verdict verdict) {
        return switch (verdict.state()) {
            case EXPIRED -> "expired";
            case PASSED -> "passed: " + String.join(", ", new TreeSet<>(verdict.claims().keySet()));
            case FAILED -> "not passed: " + verdict.message();
        };
    }

    /** Opens the verification of an order. However often this happens, it is opened and paid once: the key is kept with the order. */
    Order open(Order order) throws IOException {
        var claims = Arrays.stream(order.get("claims").split(" ")).map(Claim::fromValue).collect(Collectors.toSet());
        var opened = sakshi.openVerification(
            new InitRequest()
                .claims(claims)
                .channel(InitRequest.ChannelEnum.WEB)
                .clientReferenceId(order.get("reference"))
                .redirectUrl(order.get("url") + "/orders/" + order.get("reference"))
                .webhookUrl(order.get("url") + "/hooks/sakshi"),
            order.get("key"));
        var known = order.with("txn", opened.getTxnId()).with("page", opened.getRequestUrl());
        orders.keep(known);
        System.out.println("order " + order.get("reference") + " " + opened.getTxnId());
        return known;
    }

    /** Finds the outcome if no webhook does: a webhook may be lost, and one that came may have been for nothing. */
    void reconcile(Order order, int quietS) {
        threads.execute(() -> {
            try {
                TimeUnit.SECONDS.sleep(quietS);
                var known = order;
                while (!orders.find(order.get("reference")).containsKey("outcome")) {
                    try {
                        known = known.containsKey("txn") ? known : open(known);
                        orders.settle(known.get("txn"), told(sakshi.waitForResult(known.get("txn"))));
                    } catch (SakshiException error) {
                        System.err.println(order.get("reference") + ": " + error.getMessage());
                        if (error.status() >= 400 && error.status() < 429 && error.status() != 408) return;
                        TimeUnit.SECONDS.sleep(AGAIN_S);
                    }
                }
            } catch (InterruptedException | IOException end) {
                System.err.println(order.get("reference") + ": " + end);
            }
        });
    }

    /** What the pages do. */
    interface Page {
        void serve(HttpServletRequest request, HttpServletResponse response) throws IOException;
    }

    void place(HttpServletRequest request, HttpServletResponse response) throws IOException {
        var reference = Objects.requireNonNullElse(request.getParameter("reference"), "");
        if (!reference.matches("[\\w-]{1,64}")) {
            answer(response, 400, "an order has letters, digits and -");
            return;
        }
        try {
            var claims = Objects.requireNonNullElse(request.getParameter("claims"), "name");
            var order = orders.keepNew(
                new Order().with("reference", reference).with("key", UUID.randomUUID().toString()).with("claims", claims).with("url", url));
            if (!order.containsKey("page")) order = open(order);
            reconcile(order, QUIET_S);
            response.setStatus(HttpServletResponse.SC_SEE_OTHER);
            response.setHeader("Location", order.get("page"));
        } catch (SakshiException | IllegalArgumentException error) {
            System.err.println(error instanceof SakshiException refused ? refused.getMessage() + " " + refused.errorId() : error.getMessage());
            answer(response, 502, "This did not work. Please try again.");
        }
    }

    void returned(HttpServletRequest request, HttpServletResponse response) throws IOException {
        var order = orders.find(request.getPathInfo() == null ? "" : request.getPathInfo().substring(1));
        if (order == null) {
            answer(response, 404, "no such order");
            return;
        }
        var state = order.getOrDefault("outcome", "we are waiting for your answer").split(":")[0];
        answer(response, 200, "<!doctype html><title>Order " + order.get("reference") + "</title><p>Order " + order.get("reference") + ": " + state + "</p>");
    }

    /** The verified guests of an event. */
    void guests(HttpServletRequest request, HttpServletResponse response) throws IOException {
        var names = new ArrayList<String>();
        sakshi.guests(request.getPathInfo().split("/")[1], guest -> names.add(guest.path("verified_claims").path("residentName").asText()));
        response.setContentType("application/json");
        Sakshi.JSON.writeValue(response.getOutputStream(), names);
    }

    static void answer(HttpServletResponse response, int status, String html) throws IOException {
        response.setStatus(status);
        response.setContentType("text/html; charset=utf-8");
        response.getWriter().print(html);
    }

    static void add(Context context, String name, String pattern, HttpServlet servlet) {
        Tomcat.addServlet(context, name, servlet).addMapping(pattern);
    }

    static void add(Context context, String pattern, String method, Page page) {
        add(context, method + pattern, pattern, new HttpServlet() {
            private static final long serialVersionUID = 1;

            @Override
            protected void service(HttpServletRequest request, HttpServletResponse response) throws IOException {
                if (request.getMethod().equals(method)) page.serve(request, response);
                else answer(response, 405, "");
            }
        });
    }

    public static void main(String[] arguments) {
        try {
            serve();
        } catch (Exception error) {
            System.err.println(error);
            System.exit(1);
        }
    }

    static void serve() throws Exception {
        java.util.logging.Logger.getLogger("org.apache").setLevel(java.util.logging.Level.WARNING);
        var shop = new Shop();
        var tomcat = new Tomcat();
        tomcat.setBaseDir(Files.createTempDirectory("shop").toString());
        tomcat.setPort(Integer.parseInt(ENV.getOrDefault("PORT", "0")));
        tomcat.getConnector().setProperty("address", "127.0.0.1"); // In production behind a proxy with TLS.
        var context = tomcat.addContext("", null);
        add(context, "", "GET", (request, response) -> answer(response, 200, FORM));
        add(context, "/orders", "POST", shop::place);
        add(context, "/orders/*", "GET", shop::returned);
        add(context, "/events/*", "GET", shop::guests);
        add(context, "hooks", "/hooks/sakshi", new WebhookServlet(shop.receiver, shop.threads));
        tomcat.getConnector().setThrowOnFailure(true);
        tomcat.start();
        var here = "http://127.0.0.1:" + tomcat.getConnector().getLocalPort();
        shop.url = ENV.getOrDefault("PUBLIC_URL", here);
        System.out.println("listening " + here);
        System.out.println("receiver " + here + "/hooks/sakshi");
        shop.orders.open().forEach(order -> shop.reconcile(order, 0));
        tomcat.getServer().await();
    }
}

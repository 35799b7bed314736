// For Spring Boot.

import com.fasterxml.jackson.databind.JsonNode;
import java.util.concurrent.Executor;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RestController;
import sakshi.client.Receiver;

/** Answers 200 at once, and takes the body on a thread of the executor. */
@RestController
class WebhookController {
    private final Receiver receiver;
    private final Executor executor;

    WebhookController(Receiver receiver, Executor executor) {
        this.receiver = receiver;
        this.executor = executor;
    }

    @PostMapping("/hooks/sakshi")
    void receive(@RequestBody JsonNode body) {
        executor.execute(() -> receiver.take(body));
    }
}

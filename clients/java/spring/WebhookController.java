// For Spring Boot.

import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.concurrent.Executor;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;
import sakshi.client.Receiver;
import sakshi.client.WebhookServlet;

/** Answers as the servlet does. A {@code @RequestBody} would be read to its end, whatever its length. */
@RestController
class WebhookController {
    private final WebhookServlet servlet;

    WebhookController(Receiver receiver, Executor executor) {
        servlet = new WebhookServlet(receiver, executor);
    }

    @PostMapping("/hooks/sakshi")
    void receive(HttpServletRequest request, HttpServletResponse response) throws ServletException, IOException {
        servlet.service(request, response);
    }
}

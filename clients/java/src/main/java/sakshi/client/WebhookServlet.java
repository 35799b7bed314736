package sakshi.client;

import com.fasterxml.jackson.core.JacksonException;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.concurrent.Executor;

/** A receiver as a servlet: it answers 200 at once, and takes the body on a thread of the executor; 503 while too many wait. */
public final class WebhookServlet extends HttpServlet {
    private static final long serialVersionUID = 1;

    private final transient Receiver receiver;
    private final transient Executor executor;

    /** A servlet for this receiver. */
    public WebhookServlet(Receiver receiver, Executor executor) {
        this.receiver = receiver;
        this.executor = executor;
    }

    @Override
    protected void doPost(HttpServletRequest request, HttpServletResponse response) throws IOException {
        var bytes = request.getInputStream().readNBytes(Receiver.BYTES_MAX + 1);
        if (bytes.length > Receiver.BYTES_MAX) {
            response.setStatus(HttpServletResponse.SC_REQUEST_ENTITY_TOO_LARGE);
            return;
        }
        try {
            var body = Sakshi.JSON.readTree(bytes);
            if (!receiver.takeLater(body, executor)) response.setStatus(HttpServletResponse.SC_SERVICE_UNAVAILABLE);
        } catch (JacksonException unreadable) {
            response.setStatus(HttpServletResponse.SC_BAD_REQUEST);
        }
    }
}

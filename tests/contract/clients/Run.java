import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Map;
import java.util.Set;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.EventsApi;
import org.openapitools.client.api.OvseApi;
import org.openapitools.client.model.*;

/** One verification and one event through the client that openapi-generator makes of /openapi.json. Environment: BASE, KEY, APP. */
public class Run {
    static final String BASE = System.getenv("BASE");
    static final HttpClient HTTP = HttpClient.newHttpClient();

    /** The sandbox's identity app approves what an intent asks for. */
    static void approve(String intent) throws Exception {
        String body = new ObjectMapper().writeValueAsString(Map.of("intent", intent, "resident", "asha", "action", "approve"));
        var request = HttpRequest.newBuilder(URI.create(BASE + "/sandbox/app/answer")).header("Content-Type", "application/json")
            .POST(HttpRequest.BodyPublishers.ofString(body)).build();
        check(HTTP.send(request, BodyHandlers.ofString()).statusCode() == 200, "the identity app");
    }

    static void check(boolean holds, Object what) {
        if (!holds) throw new AssertionError(what);
    }

    public static void main(String[] args) throws Exception {
        var client = new ApiClient();
        client.updateBaseUri(BASE);
        client.setRequestInterceptor(request -> request.header("X-API-KEY", System.getenv("KEY")).header("X-API-APP-ID", System.getenv("APP")));

        var ovse = new OvseApi(client);
        var opened = ovse.openTransaction(
            new InitRequest().claims(Set.of(Claim.NAME, Claim.AGE_ABOVE_18)).channel(InitRequest.ChannelEnum.WEB), null, null, null);
        check(ovse.getResult(opened.getTxnId(), null, null, null).getData().getPending(), "pending");
        approve(opened.getIntentJwt());
        var ended = ovse.getResult(opened.getTxnId(), 10, null, null);
        check(ended.getSuccess() && !ended.getData().getPending(), ended);
        check(ended.getData().getVerifiedClaims().get("residentName").equals("Asha Rao"), ended);
        System.out.println("verification " + ended.getMessage());

        var events = new EventsApi(client);
        var created = events.createEvent(new CreateEventRequest().name("Open day").claims(Set.of(Claim.NAME)).maxGuests(2L)
            .expiresAt(OffsetDateTime.now().plusHours(1)), null, null, null);
        var scan = HttpRequest.newBuilder(URI.create(created.getQrUrl().toString())).header("Accept", "application/jwt").build();
        approve(HTTP.send(scan, BodyHandlers.ofString()).body());
        List<RegistrationRow> guests = events.listEventRegistrations(created.getEventId(), null, null, null, null).getRegistrations();
        check(guests.size() == 1, guests);
        try {
            events.getEvent("none", null, null);
            check(false, "an event that does not exist");
        } catch (ApiException refused) {
            check(refused.getResponseBody().contains("not_found"), refused);
        }
        System.out.println("event " + guests.get(0).getVerifiedAt());
    }
}

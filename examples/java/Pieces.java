// The pieces of code in the documentation, between their marks. tests/clients/run.sh runs all of them against a sandbox.

import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import sakshi.client.*;
import sakshi.client.model.*;

final class Pieces {
    static final String FILE = "JVBERi0xLjQKJSVFT0YK";
    static Sakshi sakshi;

    static void credits() {
        // code: credits
        var env = System.getenv();
        var sakshi = new Sakshi(env.get("BASE"), env.get("KEY"), env.get("APP"));
        System.out.println(sakshi.credits().getBalance());
        // end
        Pieces.sakshi = sakshi;
    }

    static String web() {
        // code: open-web
        var opened = sakshi.openVerification(
            new InitRequest()
                .claims(Set.of(Claim.NAME, Claim.AGE_ABOVE_18))
                .channel(InitRequest.ChannelEnum.WEB)
                .clientReferenceId("order-42")
                .redirectUrl("https://shop.example/return?order=42")
                .webhookUrl("https://shop.example/hooks/sakshi"),
            null);
        System.out.println(opened.getTxnId() + " " + opened.getRequestUrl());
        // end
        return opened.getTxnId();
    }

    static void result(String txnId) {
        // code: result
        var verdict = sakshi.waitForResult(txnId);
        if (verdict.state() == Verdict.State.PASSED) System.out.println("hello " + verdict.claims().get("residentName").asText());
        else System.out.println(verdict.state() + " " + verdict.errorCode() + " " + verdict.message());
        // end
    }

    static void qr() {
        // code: open-qr
        var opened = sakshi.openVerification(new InitRequest().claims(Set.of(Claim.NAME)).channel(InitRequest.ChannelEnum.QR), null);
        System.out.println(sakshi.qrIntent(opened.getTxnId()).getQrPayload());
        // end
    }

    static String event() {
        // code: create-event
        var end = Instant.now().plus(8, ChronoUnit.HOURS).toString();
        var event = sakshi.createEvent(
            new CreateEventRequest().name("Open day").claims(Set.of(Claim.NAME)).maxGuests(200L).expiresAt(end).webhookUrl("https://shop.example/hooks/sakshi"),
            "open-day-" + end);
        System.out.println(event.getQrUrl());
        // end
        return event.getEventId();
    }

    static void guests(String eventId) {
        // code: list-guests
        sakshi.guests(eventId, guest -> System.out.println(
            guest.path("verified_at").asText() + " " + guest.path("verified_claims").path("residentName").asText()));
        // end
    }

    static void check() {
        // code: check
        var answer = sakshi.check("bank-account", Map.of(
            "account_number", "123456789012", "ifsc", "EXMP0001234", "name", "Asha Rao", "consent", "Y", "consent_text", "I agree."));
        System.out.println(answer.path("data").path("status").asText() + " " + answer.path("data").path("name_match").asBoolean());
        // end
    }

    static void repeat() {
        // code: repeat
        var terms = new InitRequest().claims(Set.of(Claim.NAME)).channel(InitRequest.ChannelEnum.WEB);
        var first = sakshi.openVerification(terms, "order-79-1");
        var again = sakshi.openVerification(terms, "order-79-1");
        System.out.println(first.getTxnId().equals(again.getTxnId()));
        // end
    }

    static String esign() {
        // code: order-esign
        var ordered = sakshi.orderEsign(
            new EsignRequest()
                .documentInfo(new SourceDocument().name("Loan agreement").content(FILE))
                .signerInfo(List.of(new SignerToInvite().signerName("Asha Rao").signerRefId("borrower")))
                .documentReferenceId("loan-agreement-7")
                .responseUrl("https://shop.example/hooks/sakshi"),
            null);
        ordered.getSignerInfo().forEach(signer -> System.out.println(signer.getSignerRefId() + " " + signer.getSigningUrl()));
        // end
        return ordered.getDocumentId();
    }

    static void signed(String documentId) {
        // code: poll-esign
        var status = sakshi.esignStatus(documentId);
        System.out.println(status.path("pending").asBoolean() ? "waiting" : status.path("documentStatus").asText());
        // end
    }

    static void documents() {
        // code: order-documents
        var ordered = sakshi.requestDocuments(
            new DocLockerInitRequest()
                .docs(Set.of("driving_licence"))
                .consent(DocLockerInitRequest.ConsentEnum.Y)
                .consentText("I agree that Example Bank fetches this document from my locker."),
            null);
        System.out.println(ordered.getRequestUrl());
        // end
    }

    static void estamp() {
        // code: order-estamp
        var ordered = sakshi.orderEStamp(
            new EStampInitRequest()
                .apiType(EStampInitRequest.ApiTypeEnum.REGISTRY_E_STAMP)
                .document(new DocumentToStamp().documentName("lease.pdf").base64FileData(FILE))
                .signatoriesInfo(List.of(new NamedSignatory().name("Asha Rao").emailID("asha@example.com").signType("electronic"))),
            null);
        System.out.println(ordered.geteStampId());
        // end
    }

    static void wealth() {
        // code: ask-wealth
        var ordered = sakshi.requestWealthConsent(
            new WealthConsentRequest()
                .consent(WealthConsentRequest.ConsentEnum.Y)
                .consentText("I agree that Example Bank asks for my account statements."),
            null);
        System.out.println(ordered.getUniqueIdentifier() + " " + ordered.getRequestUrl());
        // end
    }

    static Object receive() {
        // code: receive
        var orders = new ConcurrentHashMap<String, Object>(); // By transaction, "open" while it is. In production a table.
        var receiver = new Receiver(sakshi, new Receiver.Handlers() {
            @Override
            public boolean isOpen(Receiver.Kind kind, String id) {
                return "open".equals(orders.get(id));
            }

            @Override
            public void onOutcome(Receiver.Arrival arrival) {
                orders.put(arrival.id(), arrival);
            }
        });
        var servlet = new WebhookServlet(receiver, Executors.newFixedThreadPool(4));
        // end
        return servlet;
    }

    public static void main(String[] arguments) {
        credits();
        System.out.println("txn " + web());
        qr();
        guests(event());
        check();
        repeat();
        signed(esign());
        documents();
        estamp();
        wealth();
        receive();
        var ended = System.getenv("ENDED");
        if (ended != null) result(ended);
        System.exit(0);
    }
}

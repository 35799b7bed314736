//! Daily figures of an app, from what is counted to the store.

use std::time::Duration;

use sakshi_domain::clock::Clock as _;
use sakshi_domain::day_figures::{Day, DayFigures};
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};

use super::{Fixture, declined, run, verified};

const TIMEOUT: Duration = Duration::from_secs(60);

#[test]
fn openings_answers_and_webhooks_of_a_day_reach_the_store_once() {
    run(async {
        let fixture = Fixture::new().await;
        let today = Day::containing(fixture.clock.now());
        let accepting = WebhookReceiver::start(Behaviour::Answer(200)).await.unwrap();
        let refusing = WebhookReceiver::start(Behaviour::Answer(500)).await.unwrap();
        for (receiver, answer) in [(&accepting, verified(1)), (&accepting, declined()), (&refusing, verified(2))] {
            let id = fixture.open_with_webhook(Some(&receiver.url("/hook"))).await.unwrap();
            fixture.clock.advance(Duration::from_secs(7));
            fixture.complete(id, answer).await;
        }
        fixture.open().await;
        let mut expected =
            DayFigures { opened: 4, verified: 2, declined: 1, delivered: 2, lost: 1, ..DayFigures::default() };
        // From five to ten seconds.
        expected.answer_times[2] = 3;
        let is_complete =
            |figures: &DayFigures| figures.opened == 4 && figures.total() == 3 && figures.delivered + figures.lost == 3;
        let counting = async {
            loop {
                match fixture.store.day_figures(fixture.app.clone(), today).await.unwrap().pop() {
                    Some((day, figures)) if is_complete(&figures) => break (day, figures),
                    _ => tokio::time::sleep(Duration::from_millis(50)).await,
                }
            }
        };
        let counted = tokio::time::timeout(TIMEOUT, counting).await.expect("figures in time");
        assert_eq!(counted, (today, expected));
        fixture.end().await;
    });
}

//! Daily figures of an app, from what is counted to the store.

use std::time::Duration;

use sakshi_domain::clock::Clock as _;
use sakshi_domain::day_figures::{Day, DayFigures};
use sakshi_kit::waiting::{TIMEOUT, eventually};
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};

use super::{Fixture, declined, run, verified};

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
        let counted = eventually("the figures are in the store", TIMEOUT, || async {
            let days = fixture.store.day_figures(fixture.app.clone(), today).await.unwrap();
            days.into_iter().next_back().filter(|(_, figures)| is_complete(figures))
        });
        assert_eq!(counted.await, (today, expected));
        fixture.end().await;
    });
}

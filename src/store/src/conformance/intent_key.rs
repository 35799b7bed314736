//! The intent key chosen by operators.
#![allow(missing_docs)] // The name of each function states the property that it checks.

use std::time::Duration;

use super::TestStore;
use crate::ChosenIntentKey;

pub(crate) async fn the_last_chosen_intent_key_stands_until_the_settings_decide_again(test: &impl TestStore) {
    let store = test.store();
    assert_eq!(store.chosen_intent_key().await, Ok(None));
    store.choose_intent_key(None).await.unwrap();
    assert_eq!(store.chosen_intent_key().await, Ok(None));
    for kid in ["next", "a key with blanks"] {
        let chosen = Some(ChosenIntentKey { kid: kid.to_owned(), since: test.now() });
        store.choose_intent_key(chosen.clone()).await.unwrap();
        assert_eq!(store.chosen_intent_key().await, Ok(chosen));
        test.advance(Duration::from_secs(1));
    }
    store.choose_intent_key(None).await.unwrap();
    assert_eq!(store.chosen_intent_key().await, Ok(None));
}

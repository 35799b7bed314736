//! The pages as residents, the identity app and the page's own script get them.

mod entrance;
mod files;
mod guest;
mod intent;
mod intents;
mod kiosk;
mod languages;
mod live;
mod notices;
mod poster;
mod settings;
mod turned_away;
mod waiting;

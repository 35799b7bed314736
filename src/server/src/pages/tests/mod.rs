//! The pages as residents, the identity app and the page's own script get them.

mod files;
mod intent;
mod live;
mod notices;
mod waiting;

//! Doors of the event. They check in the listed guests while others still come, one after the other, as a door's page
//! does. Scans made without a network are sent later, first in, first out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use sakshi_client::judge::doors::DoorView;
use sakshi_client::judge::journal::{CheckInAnswer, Scan};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Barrier, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};

use crate::door::{Door, DoorError};
use crate::record::Due;
use crate::visit::Site;
use crate::workload::Workload;

/// Interval at which a door's page reads the list.
const REFRESH: Duration = Duration::from_secs(10);
/// Maximum interval at which all doors together read it, so that no guest waits longer.
const REFRESH_OF_ALL: Duration = Duration::from_secs(1);
/// Attempts to send a kept scan, or to read the list.
const TRIES: u32 = 20;
/// Pause between two attempts.
const RETRY: Duration = Duration::from_millis(500);
/// Interval at which a door without a network checks that the run goes on.
const CHECK: Duration = Duration::from_millis(100);
/// Separates these choices from others made with the same seed.
const SALT: u64 = 0x0064_6f6f_7273;

/// The doors of a run.
#[derive(Debug)]
pub(crate) struct Doors {
    doors: Vec<Arc<Door>>,
    seed: u64,
    twice: f64,
    /// Times between which the first door has no network.
    offline: Option<(Instant, Instant)>,
    /// Mean time between two guests at a door.
    cadence: Option<Duration>,
}

/// A guest who comes to a door.
#[derive(Debug)]
struct Ticket {
    code: String,
    /// Barrier shared with the other door that scans the same guest.
    together: Option<Arc<Barrier>>,
}

/// A scan without an answer yet.
#[derive(Debug)]
struct UnansweredScan {
    code: String,
    at: i64,
}

/// The doors of a run while they check in guests.
#[derive(Debug)]
pub(crate) struct DoorsTask {
    task: JoinHandle<Result<Vec<DoorView>, DoorError>>,
    gone: watch::Sender<bool>,
}

impl Doors {
    /// Opens the doors of an event, and enters the PIN of each. Returns `None` if the run has none.
    ///
    /// # Errors
    /// A door does not open.
    pub(crate) async fn open(site: &Site, event: &str, workload: &Workload) -> Result<Option<Self>, DoorError> {
        let mut doors = Vec::new();
        for number in 1..=workload.doors {
            doors.push(Arc::new(Door::open(site, event, number.into()).await?));
        }
        let from = site.origin + workload.length / 4;
        let offline = (!workload.door_offline.is_zero()).then(|| (from, from + workload.door_offline));
        let cadence = workload.rate().map(|rate| Duration::from_secs_f64(f64::from(workload.doors) / rate));
        Ok((workload.doors > 0).then_some(Self { doors, seed: workload.seed, twice: workload.twice, offline, cadence }))
    }

    /// Begins to check in guests.
    pub(crate) fn work(self, site: &Arc<Site>) -> DoorsTask {
        let (gone, is_over) = watch::channel(false);
        DoorsTask { task: tokio::spawn(Arc::new(self).work_until(Arc::clone(site), is_over)), gone }
    }

    async fn work_until(
        self: Arc<Self>,
        site: Arc<Site>,
        is_over: watch::Receiver<bool>,
    ) -> Result<Vec<DoorView>, DoorError> {
        let (mut queues, mut phones) = (Vec::new(), JoinSet::new());
        for number in 0..self.doors.len() {
            let (queue, tickets) = unbounded_channel();
            queues.push(queue);
            phones.spawn(Arc::clone(&self).scan_all(number, Arc::clone(&site), tickets));
        }
        self.read_list(&site, queues, is_over).await?;
        while phones.join_next().await.is_some() {}
        let mut views = Vec::new();
        for door in &self.doors {
            views.push(door.view(&site).await?);
        }
        Ok(views)
    }

    /// Reads the list at one door after the other, and sends each new guest to a door, or to two. Ends with the last
    /// guest of the run.
    async fn read_list(
        &self,
        site: &Site,
        queues: Vec<UnboundedSender<Ticket>>,
        mut is_over: watch::Receiver<bool>,
    ) -> Result<(), DoorError> {
        let pause = (REFRESH / u32::try_from(self.doors.len()).unwrap_or(1)).min(REFRESH_OF_ALL);
        let (mut listed, mut missed) = (0, 0);
        for turn in 0.. {
            // Read before the list, so that the last list has every guest.
            let is_last = *is_over.borrow();
            match self.reader(site, turn).list(site, listed).await {
                Ok(list) => {
                    missed = 0;
                    let is_whole = list.is_whole();
                    for (code, _) in list.guests {
                        self.send(listed, &code, &queues);
                        listed += 1;
                    }
                    match (is_whole, is_last) {
                        (true, true) => return Ok(()),
                        (true, false) => {}
                        (false, _) => continue,
                    }
                }
                Err(error) if missed >= TRIES => return Err(error),
                Err(_) => missed += 1,
            }
            if is_last {
                sleep(RETRY).await;
            } else {
                // Whichever comes first: the next read, or the end of the run.
                let _ = timeout(pause, is_over.wait_for(|is_over| *is_over)).await;
            }
        }
        Ok(())
    }

    /// Returns a door with a network.
    fn reader(&self, site: &Site, turn: usize) -> &Door {
        let number = turn % self.doors.len();
        let is_away = number == 0 && self.is_offline(site);
        // With one door there is no other; the codes are on the guests' phones.
        let number = if is_away { (turn + 1) % self.doors.len() } else { number };
        &self.doors[number]
    }

    fn send(&self, guest: u64, code: &str, queues: &[UnboundedSender<Ticket>]) {
        let mut dice = SmallRng::seed_from_u64((self.seed ^ SALT).rotate_left(32) ^ guest);
        let first = dice.random_range(0..queues.len());
        let is_twice = queues.len() > 1 && dice.random::<f64>() < self.twice;
        let second = is_twice.then(|| (first + dice.random_range(1..queues.len())) % queues.len());
        let together = second.map(|_| Arc::new(Barrier::new(2)));
        for number in [Some(first), second].into_iter().flatten() {
            // A door takes guests until its queue is dropped.
            let _ = queues[number].send(Ticket { code: code.to_owned(), together: together.clone() });
        }
    }

    /// Scans one guest after the other, while kept scans are sent.
    async fn scan_all(self: Arc<Self>, number: usize, site: Arc<Site>, mut tickets: UnboundedReceiver<Ticket>) {
        let door = &self.doors[number];
        let is_offline = || number == 0 && self.is_offline(&site);
        let (keep, mut kept) = unbounded_channel::<UnansweredScan>();
        let scanning = async {
            while let Some(Ticket { code, together }) = tickets.recv().await {
                if let Some(together) = together {
                    together.wait().await;
                }
                let scan = UnansweredScan { code, at: door.now() };
                let answer = if is_offline() {
                    None
                } else {
                    door.check_in(&site, Due::Every(self.cadence), &scan.code, scan.at).await
                };
                match answer {
                    Some(answer) => record(&site, door, scan, false, answer),
                    None => drop(keep.send(scan)),
                }
            }
            drop(keep);
        };
        let sending = async {
            while let Some(scan) = kept.recv().await {
                while is_offline() {
                    sleep(CHECK).await;
                }
                let answer = send_again(&site, door, &scan).await;
                record(&site, door, scan, true, answer);
            }
        };
        tokio::join!(scanning, sending);
    }

    fn is_offline(&self, site: &Site) -> bool {
        let now = Instant::now();
        !site.progress.stopped.load(Ordering::Relaxed)
            && self.offline.is_some_and(|(from, until)| (from..until).contains(&now))
    }
}

/// Sends a kept scan until there is an answer.
async fn send_again(site: &Site, door: &Door, scan: &UnansweredScan) -> CheckInAnswer {
    for _ in 0..TRIES {
        if let Some(answer) = door.check_in(site, Due::Every(None), &scan.code, scan.at).await {
            return answer;
        }
        sleep(RETRY).await;
    }
    site.journal.problem(format!("{}: a check-in had no answer", door.gate));
    CheckInAnswer::Lost
}

fn record(site: &Site, door: &Door, scan: UnansweredScan, kept: bool, answer: CheckInAnswer) {
    site.journal.scanned(Scan { gate: door.gate.clone(), code: scan.code, at: scan.at, kept, answer });
}

impl DoorsTask {
    /// Checks in the remaining guests of the list. Returns the final view of each door.
    ///
    /// # Errors
    /// The list cannot be read.
    pub(crate) async fn end(mut self, site: &Site) -> Result<Vec<DoorView>, DoorError> {
        // The doors may have failed already.
        let _ = self.gone.send(true);
        let ended = tokio::select! {
            ended = &mut self.task => ended,
            _ = tokio::signal::ctrl_c() => {
                // A door without a network comes back at once.
                site.progress.stopped.store(true, Ordering::Relaxed);
                self.task.await
            }
        };
        ended.map_err(|_| DoorError("the doors of the tester have failed".to_owned()))?
    }
}

/// Counts guests checked in, guests at two doors, and scans sent later.
pub(crate) fn figures(scans: &[Scan]) -> (u64, u64, u64) {
    let mut by_code: BTreeMap<&str, u32> = BTreeMap::new();
    for scan in scans {
        *by_code.entry(&scan.code).or_default() += 1;
    }
    let inside = scans.iter().filter(|scan| matches!(scan.answer, CheckInAnswer::In { .. })).count() as u64;
    (
        inside,
        by_code.values().filter(|count| **count > 1).count() as u64,
        scans.iter().filter(|scan| scan.kept).count() as u64,
    )
}

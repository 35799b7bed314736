//! Doors of the event. They check in the listed guests one after the other, as a door's page does, while other guests
//! still arrive. Scans made without a network are sent later, in order.

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
const READ_INTERVAL: Duration = Duration::from_secs(10);
/// Maximum interval between reads of the list by any door, so that no guest waits longer.
const SHARED_READ_INTERVAL_MAX: Duration = Duration::from_secs(1);
/// Maximum number of attempts to send a queued scan, or to read the list.
const ATTEMPTS_MAX: u32 = 20;
/// Pause between two attempts.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// Interval at which a door without a network checks for the network.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Mixed into the seed, so that these random choices are independent of others with the same seed.
const SALT: u64 = 0x0064_6f6f_7273;

/// The doors of a run.
#[derive(Debug)]
pub(crate) struct Doors {
    doors: Vec<Arc<Door>>,
    seed: u64,
    /// Share of guests whose tickets are scanned at two doors.
    twice_share: f64,
    /// Start and end of the time without a network at the first door.
    offline: Option<(Instant, Instant)>,
    /// Mean time between two guests at a door.
    cadence: Option<Duration>,
}

/// A guest at a door.
#[derive(Debug)]
struct Ticket {
    code: String,
    /// Barrier shared with the other door that scans the same guest.
    barrier: Option<Arc<Barrier>>,
}

/// A scan that waits for an answer.
#[derive(Debug)]
struct UnansweredScan {
    code: String,
    at: i64,
}

/// The doors of a run while they check in guests.
#[derive(Debug)]
pub(crate) struct DoorsTask {
    task: JoinHandle<Result<Vec<DoorView>, DoorError>>,
    /// Sends true when the last guest of the run has finished.
    end: watch::Sender<bool>,
}

impl Doors {
    /// Opens the doors of an event, and enters the PIN of each door. Returns `None` if the run has no doors.
    ///
    /// # Errors
    /// [`DoorError`] if a door cannot be opened.
    pub(crate) async fn open(site: &Site, event: &str, workload: &Workload) -> Result<Option<Self>, DoorError> {
        let mut doors = Vec::new();
        for number in 1..=workload.doors {
            doors.push(Arc::new(Door::open(site, event, number.into()).await?));
        }
        let from = site.run_start + workload.length / 4;
        let offline = (!workload.door_offline.is_zero()).then(|| (from, from + workload.door_offline));
        let cadence = workload.rate().map(|rate| Duration::from_secs_f64(f64::from(workload.doors) / rate));
        Ok((workload.doors > 0).then_some(Self {
            doors,
            seed: workload.seed,
            twice_share: workload.twice_share,
            offline,
            cadence,
        }))
    }

    /// Starts to check in guests.
    pub(crate) fn start(self, site: &Arc<Site>) -> DoorsTask {
        let (end, is_over) = watch::channel(false);
        DoorsTask { task: tokio::spawn(Arc::new(self).check_in_until(Arc::clone(site), is_over)), end }
    }

    /// Checks in guests until the end of the run, and returns the final view of each door.
    async fn check_in_until(
        self: Arc<Self>,
        site: Arc<Site>,
        is_over: watch::Receiver<bool>,
    ) -> Result<Vec<DoorView>, DoorError> {
        let (mut queues, mut scanners) = (Vec::new(), JoinSet::new());
        for number in 0..self.doors.len() {
            let (queue, tickets) = unbounded_channel();
            queues.push(queue);
            scanners.spawn(Arc::clone(&self).scan_all(number, Arc::clone(&site), tickets));
        }
        self.distribute_guests(&site, queues, is_over).await?;
        while scanners.join_next().await.is_some() {}
        let mut views = Vec::new();
        for door in &self.doors {
            views.push(door.read_view(&site).await?);
        }
        Ok(views)
    }

    /// Reads the list at one door after the other, and sends each new guest to one or two doors. Ends with the last
    /// guest of the run.
    async fn distribute_guests(
        &self,
        site: &Site,
        queues: Vec<UnboundedSender<Ticket>>,
        mut is_over: watch::Receiver<bool>,
    ) -> Result<(), DoorError> {
        let pause = (READ_INTERVAL / u32::try_from(self.doors.len()).unwrap_or(1)).min(SHARED_READ_INTERVAL_MAX);
        let (mut listed, mut failures) = (0, 0);
        for turn in 0.. {
            // Read before the list, so that the last list has every guest.
            let is_last = *is_over.borrow();
            match self.online_door(site, turn).list(site, listed).await {
                Ok(list) => {
                    failures = 0;
                    let is_complete = list.is_complete();
                    for (code, _) in list.guests {
                        self.send_to_doors(listed, &code, &queues);
                        listed += 1;
                    }
                    match (is_complete, is_last) {
                        (true, true) => return Ok(()),
                        (true, false) => {}
                        (false, _) => continue,
                    }
                }
                Err(error) if failures >= ATTEMPTS_MAX => return Err(error),
                Err(_) => failures += 1,
            }
            if is_last {
                sleep(RETRY_PAUSE).await;
            } else {
                // Whichever comes first: the next read, or the end of the run.
                let _ = timeout(pause, is_over.wait_for(|is_over| *is_over)).await;
            }
        }
        Ok(())
    }

    /// Returns a door with a network, in turn.
    fn online_door(&self, site: &Site, turn: usize) -> &Door {
        let number = turn % self.doors.len();
        let is_offline = number == 0 && self.is_offline(site);
        // A single door without a network reads the list anyway: its guests show their codes on their phones.
        let number = if is_offline { (turn + 1) % self.doors.len() } else { number };
        &self.doors[number]
    }

    /// Sends a guest to a random door, and some guests to a second door at the same time.
    fn send_to_doors(&self, guest: u64, code: &str, queues: &[UnboundedSender<Ticket>]) {
        let mut dice = SmallRng::seed_from_u64((self.seed ^ SALT).rotate_left(32) ^ guest);
        let first = dice.random_range(0..queues.len());
        let is_twice = queues.len() > 1 && dice.random::<f64>() < self.twice_share;
        let second = is_twice.then(|| (first + dice.random_range(1..queues.len())) % queues.len());
        let barrier = second.map(|_| Arc::new(Barrier::new(2)));
        for number in [Some(first), second].into_iter().flatten() {
            // Sending fails only if the door has ended.
            let _ = queues[number].send(Ticket { code: code.to_owned(), barrier: barrier.clone() });
        }
    }

    /// Scans one guest after the other, and sends queued scans at the same time.
    async fn scan_all(self: Arc<Self>, number: usize, site: Arc<Site>, mut tickets: UnboundedReceiver<Ticket>) {
        let door = &self.doors[number];
        let is_offline = || number == 0 && self.is_offline(&site);
        let (queue, mut queued) = unbounded_channel::<UnansweredScan>();
        let scanning = async {
            while let Some(Ticket { code, barrier }) = tickets.recv().await {
                if let Some(barrier) = barrier {
                    barrier.wait().await;
                }
                let scan = UnansweredScan { code, at: door.now() };
                let answer = if is_offline() {
                    None
                } else {
                    door.check_in(&site, Due::Every(self.cadence), &scan.code, scan.at).await
                };
                match answer {
                    Some(answer) => {
                        let was_sent_later = false;
                        record_scan(&site, door, scan, was_sent_later, answer);
                    }
                    None => drop(queue.send(scan)),
                }
            }
            drop(queue);
        };
        let sending = async {
            while let Some(scan) = queued.recv().await {
                while is_offline() {
                    sleep(CHECK_INTERVAL).await;
                }
                let answer = send_until_answered(&site, door, &scan).await;
                let was_sent_later = true;
                record_scan(&site, door, scan, was_sent_later, answer);
            }
        };
        tokio::join!(scanning, sending);
    }

    /// Returns true while the first door has no network.
    fn is_offline(&self, site: &Site) -> bool {
        let now = Instant::now();
        !site.progress.stopped.load(Ordering::Relaxed)
            && self.offline.is_some_and(|(from, until)| (from..until).contains(&now))
    }
}

/// Sends a queued scan until there is an answer.
async fn send_until_answered(site: &Site, door: &Door, scan: &UnansweredScan) -> CheckInAnswer {
    for _ in 0..ATTEMPTS_MAX {
        if let Some(answer) = door.check_in(site, Due::SENDING, &scan.code, scan.at).await {
            return answer;
        }
        sleep(RETRY_PAUSE).await;
    }
    site.journal.problem(format!("{}: a check-in had no answer", door.gate));
    CheckInAnswer::Lost
}

fn record_scan(site: &Site, door: &Door, scan: UnansweredScan, was_sent_later: bool, answer: CheckInAnswer) {
    site.journal.scanned(Scan { gate: door.gate.clone(), code: scan.code, at: scan.at, was_sent_later, answer });
}

impl DoorsTask {
    /// Checks in the remaining guests of the list. Returns the final view of each door.
    ///
    /// # Errors
    /// [`DoorError`] if the list cannot be read.
    pub(crate) async fn end(mut self, site: &Site) -> Result<Vec<DoorView>, DoorError> {
        // Sending fails if the doors have ended already.
        let _ = self.end.send(true);
        let result = tokio::select! {
            result = &mut self.task => result,
            _ = tokio::signal::ctrl_c() => {
                // A door without a network gets the network back at once.
                site.progress.stopped.store(true, Ordering::Relaxed);
                self.task.await
            }
        };
        result.map_err(|_| DoorError("the doors of the tester have failed".to_owned()))?
    }
}

/// Numbers of scans at the doors of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScanCounts {
    /// Guests who were checked in.
    pub(crate) checked_in: u64,
    /// Guests whose tickets were scanned at two doors.
    pub(crate) at_two_doors: u64,
    /// Scans that were queued without a network.
    pub(crate) sent_later: u64,
}

/// Counts the scans of a run.
pub(crate) fn count_scans(scans: &[Scan]) -> ScanCounts {
    let mut by_code: BTreeMap<&str, u32> = BTreeMap::new();
    for scan in scans {
        *by_code.entry(&scan.code).or_default() += 1;
    }
    ScanCounts {
        checked_in: scans.iter().filter(|scan| matches!(scan.answer, CheckInAnswer::In { .. })).count() as u64,
        at_two_doors: by_code.values().filter(|count| **count > 1).count() as u64,
        sent_later: scans.iter().filter(|scan| scan.was_sent_later).count() as u64,
    }
}

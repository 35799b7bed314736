// Keeps a waiting page up to date, and takes the person onwards when it is over. The page says
// everything without this; what is shown always comes from the server.
(() => {
  "use strict";
  const main = document.querySelector("main");
  const { live, page, remaining, stale, retry } = main.dataset;
  const onward = document.querySelector("a[data-follow]");
  const POLL_MS = 3000, PATIENCE_MS = 6000, FOLLOW_MS = 4000, OPENING_MS = 2500;

  if (live) wait();
  for (const link of document.querySelectorAll("a[data-opens]")) link.addEventListener("click", opened);
  // A guest who starts without a network would lose the page to the browser's own words.
  const trouble = document.getElementById("trouble");
  const tell = () => { trouble.textContent = navigator.onLine ? "" : trouble.dataset.words; };
  if (trouble && !live) for (const change of ["online", "offline"]) addEventListener(change, tell);
  const tongues = document.querySelector(".tongues");
  addEventListener("click", ({ target }) => tongues.contains(target) || tongues.removeAttribute("open"));
  addEventListener("keydown", ({ key }) => key === "Escape" && tongues.removeAttribute("open"));
  // Two taps on a slow line are one start.
  const once = document.querySelector("form[data-once]");
  once?.addEventListener("submit", () => setTimeout(() => once.querySelector("button").disabled = true));
  addEventListener("pageshow", (event) => event.persisted && once && location.reload());
  for (const time of document.querySelectorAll("time[data-local]")) {
    const at = new Date(time.dateTime);
    const parts = { day: at.getDate(), month: time.dataset.months.split("|")[at.getMonth()], year: at.getFullYear(), time: clockFace(at) };
    time.textContent = time.dataset.local.replace(/{(\w+)}/g, (_, part) => parts[part]);
  }
  if (retry) setTimeout(() => location.reload(), Math.max(1, Number(retry)) * 1000);
  if (onward) whenSeen(() => {
    document.getElementById("taken").hidden = false;
    setTimeout(() => location.replace(onward.href), FOLLOW_MS);
  });

  // What comes next happens in the app. A page that is still in view a while later has not been left for it.
  function opened() {
    for (const told of document.querySelectorAll("[data-opened]")) told.textContent = told.dataset.opened;
    const stayed = setTimeout(() => { document.getElementById("help").open = true; }, OPENING_MS);
    const left = () => clearTimeout(stayed);
    for (const going of ["visibilitychange", "blur", "pagehide"]) addEventListener(going, left, { once: true });
  }

  // On this device's clock, in the digits of the page.
  function clockFace(at) {
    return [at.getHours(), at.getMinutes()].map((part) => String(part).padStart(2, "0")).join(":");
  }

  function whenSeen(then) {
    if (document.visibilityState === "visible") return then();
    document.addEventListener("visibilitychange", () => whenSeen(then), { once: true });
  }

  function wait() {
    const left = document.getElementById("left");
    const until = document.getElementById("until");
    const trouble = document.getElementById("trouble");
    let deadline = Date.now() + Number(remaining) * 1000;
    let asking = false, polling = 0, suspicion = 0;

    until.textContent = clockFace(new Date(until.dateTime));
    if (stale) setTimeout(() => location.reload(), Number(stale) * 1000);

    function hear(status) {
      suspicion = clearTimeout(suspicion);
      trouble.textContent = "";
      if (status.state !== "waiting") return location.replace(page);
      deadline = Date.now() + status.remaining_s * 1000;
    }

    async function ask() {
      if (asking) return;
      asking = true;
      try {
        const answer = await fetch(`${live}/status`, { cache: "no-store" });
        if (answer.status === 404) return location.replace(page);
        if (!answer.ok) throw new Error(answer.status);
        hear(await answer.json());
      } catch {
        trouble.textContent = trouble.dataset.words;
        setTimeout(ask, POLL_MS);
      } finally {
        asking = false;
      }
    }

    function poll() {
      polling ||= setInterval(ask, POLL_MS);
      ask();
    }

    function tick() {
      const seconds = Math.max(0, Math.ceil((deadline - Date.now()) / 1000));
      left.textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
      main.classList.toggle("ending", seconds <= 60);
      if (seconds === 0) ask();
    }

    function listen() {
      const stream = new EventSource(`${live}/events`);
      const giveUp = () => { stream.close(); poll(); };
      // A proxy that holds the stream back looks like silence; so does a service that is away.
      const doubt = () => { suspicion ||= setTimeout(giveUp, PATIENCE_MS); };
      doubt();
      stream.addEventListener("state", (event) => hear(JSON.parse(event.data)));
      // Streams end every minute in good order, and the browser opens the next one by itself.
      stream.addEventListener("error", () => stream.readyState === EventSource.CLOSED ? poll() : doubt());
    }

    setInterval(tick, 1000);
    if (window.EventSource) listen(); else poll();
    // Back from the identity app, where timers and streams may have slept.
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && ask());
    addEventListener("online", ask);
    addEventListener("pageshow", (event) => event.persisted && ask());
  }
})();

// Keeps a waiting page up to date, and takes the person onwards when it is over. The page says
// everything without this; what is shown always comes from the server.
(() => {
  "use strict";
  const main = document.querySelector("main");
  const { live, remaining, stale, retry } = main.dataset;
  const onward = document.querySelector("a[data-follow]");
  const POLL_MS = 3000, PATIENCE_MS = 6000, FOLLOW_MS = 4000;

  if (live) wait();
  if (retry) setTimeout(() => location.reload(), Math.max(1, Number(retry)) * 1000);
  if (onward) whenSeen(() => {
    document.getElementById("taken").hidden = false;
    setTimeout(() => location.replace(onward.href), FOLLOW_MS);
  });

  function whenSeen(then) {
    if (document.visibilityState === "visible") return then();
    document.addEventListener("visibilitychange", () => whenSeen(then), { once: true });
  }

  function wait() {
    const left = document.getElementById("left");
    const until = document.getElementById("until");
    const trouble = document.getElementById("trouble");
    let deadline = Date.now() + Number(remaining) * 1000;
    let lastAsked = 0, polling = 0, suspicion = 0;

    until.textContent = new Date(until.dateTime).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
    // Tablets that present themselves as a Mac can have the identity app themselves.
    if (navigator.maxTouchPoints > 1) document.getElementById("same-device")?.setAttribute("open", "");
    if (stale) setTimeout(() => location.reload(), Number(stale) * 1000);

    function hear(status) {
      clearTimeout(suspicion);
      trouble.textContent = "";
      if (status.state !== "waiting") return location.replace(live);
      deadline = Date.now() + status.remaining_s * 1000;
    }

    function lost() {
      trouble.textContent = trouble.dataset.words;
    }

    async function ask() {
      if (Date.now() - lastAsked < 1000) return;
      lastAsked = Date.now();
      try {
        const answer = await fetch(`${live}/status`, { cache: "no-store" });
        if (answer.status === 404) return location.replace(live);
        if (answer.ok) hear(await answer.json());
      } catch {
        lost();
      }
    }

    function poll() {
      polling ||= setInterval(ask, POLL_MS);
    }

    function tick() {
      const seconds = Math.max(0, Math.ceil((deadline - Date.now()) / 1000));
      left.textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
      main.classList.toggle("ending", seconds <= 60);
      if (seconds === 0) ask();
    }

    function listen() {
      const stream = new EventSource(`${live}/events`);
      // A proxy that holds the stream back looks like silence: then ask instead.
      suspicion = setTimeout(() => { stream.close(); poll(); }, PATIENCE_MS);
      stream.addEventListener("state", (event) => hear(JSON.parse(event.data)));
      stream.addEventListener("error", () => {
        if (stream.readyState === EventSource.CLOSED) return poll();
        // Streams end every minute in good order; only a longer silence is worth a word.
        clearTimeout(suspicion);
        suspicion = setTimeout(() => { lost(); poll(); stream.close(); }, PATIENCE_MS);
      });
    }

    setInterval(tick, 1000);
    if (window.EventSource) listen(); else poll();
    // Back from the identity app, where timers and streams may have slept.
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && ask());
    addEventListener("pageshow", (event) => event.persisted && ask());
  }
})();

// Keeps a waiting page up to date, and leads the person to the next one at the end. The page is complete
// without this script; all content comes from the server.
(() => {
  "use strict";
  const main = document.querySelector("main");
  const { live, page, remaining, stale, retry } = main.dataset;
  const find = (selector) => document.querySelector(selector);
  const next = find("a[data-follow]");
  const app = find("a.main[data-opens]");
  const POLL_MS = 3000, PATIENCE_MS = 6000, SILENCE_MS = 25000, FOLLOW_S = 4, OPENING_MS = 2500;

  // An iPad claims to be a Mac with a touch screen. Its page has the button that opens the app.
  if (live && main.matches(".wide") && /Macintosh/.test(navigator.userAgent) && navigator.maxTouchPoints > 0) {
    const url = new URL(location);
    url.searchParams.set("on", "ios");
    return location.replace(url);
  }
  if (live) follow();
  // A page that is left before it has loaded would stop loading.
  if (app && firstTime()) addEventListener("load", () => whenVisible(() => { offerInstall(); location = app.href; }));
  for (const link of document.querySelectorAll("a[data-opens]")) link.addEventListener("click", opened);
  // Without a network, a start would replace the page by the browser's error.
  const trouble = find("#trouble");
  const showTrouble = () => { trouble.textContent = navigator.onLine ? "" : trouble.dataset.words; };
  if (trouble) addEventListener("offline", showTrouble);
  if (trouble && !live) addEventListener("online", showTrouble);
  const languages = find(".languages");
  addEventListener("click", ({ target }) => languages.contains(target) || languages.removeAttribute("open"));
  addEventListener("keydown", ({ key }) => {
    if (key !== "Escape" || !languages.open) return;
    languages.open = false;
    languages.querySelector("summary").focus();
  });
  // Two taps on a slow line are one start.
  const once = find("form[data-once]");
  once?.addEventListener("submit", () => setTimeout(() => once.querySelector("button").disabled = true));
  addEventListener("pageshow", (event) => event.persisted && once && location.reload());
  if (retry) setTimeout(() => location.reload(), Math.max(1, Number(retry)) * 1000);
  if (next) whenVisible(() => {
    let seconds = FOLLOW_S, counting;
    const count = () => {
      find("#seconds").textContent = seconds;
      if (seconds-- === 0) return location.replace(next.href);
      counting = setTimeout(count, 1000);
    };
    count();
    find("#taken").hidden = false;
    find("#taking").textContent = find("#taking").dataset.words;
    find("#stay").addEventListener("click", () => { clearTimeout(counting); find("#taken").remove(); });
  });

  // A phone opens the app by itself, once in a tab for each transaction (specification, OVSE rule 1). A page that is come back to,
  // loaded again or shown because the app did not open leaves it to the button, as does a browser that keeps nothing.
  function firstTime() {
    try {
      if (sessionStorage[live]) return wait();
      if (main.matches(".helped")) return;
      sessionStorage[live] = 1;
      return performance.getEntriesByType("navigation")[0].type === "navigate";
    } catch { /* The button is there. */ }
  }

  // On return, the app may not have opened.
  function offerInstall() {
    find("#install")?.removeAttribute("hidden");
    wait();
  }

  // Once the app was opened, an answer may follow.
  function wait() { find("#waits").hidden = false; }

  // The next step is in the app. A page still in view after a while means that the app did not open.
  function opened() {
    offerInstall();
    for (const text of document.querySelectorAll("[data-opened]")) text.textContent = text.dataset.opened;
    const stayed = setTimeout(() => { find("#help").open = true; }, OPENING_MS);
    const left = () => clearTimeout(stayed);
    for (const leaving of ["visibilitychange", "blur", "pagehide"]) addEventListener(leaving, left, { once: true });
  }

  function whenVisible(then) {
    if (document.visibilityState === "visible") return then();
    document.addEventListener("visibilitychange", () => whenVisible(then), { once: true });
  }

  function follow() {
    const left = find("#left");
    let deadline = Date.now() + Number(remaining) * 1000;
    let asking = false, polling = false, isStale = false, again = 0, patience = 0, silence = 0;

    // Without a network, a reload would replace the page by the browser's error: an answer comes first.
    if (stale) setTimeout(() => { isStale = true; ask(); }, Number(stale) * 1000);

    function show(status) {
      patience = clearTimeout(patience);
      trouble.textContent = "";
      if (status.state !== "waiting") return location.replace(page);
      if (isStale) return location.reload();
      deadline = Date.now() + status.remaining_s * 1000;
    }

    async function ask() {
      if (asking) return;
      asking = true;
      again = clearTimeout(again);
      let wait = 0;
      try {
        const answer = await fetch(`${live}/status`, { signal: AbortSignal.timeout(PATIENCE_MS) });
        if (answer.status === 404) return location.replace(page);
        if (!answer.ok) {
          wait = Number(answer.headers.get("retry-after")) * 1000;
          throw new Error(answer.status);
        }
        show(await answer.json());
      } catch {
        trouble.textContent = trouble.dataset.words;
        wait ||= POLL_MS;
      } finally {
        asking = false;
        // One timer at most, however many requests fail.
        if (polling || wait) again = setTimeout(ask, Math.max(POLL_MS, wait));
      }
    }

    function poll() {
      polling = true;
      ask();
    }

    function tick() {
      const seconds = Math.max(0, Math.ceil((deadline - Date.now()) / 1000));
      left.textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
      main.classList.toggle("ending", seconds <= 60);
      // Once, for those who listen: a clock that is read out each second is noise.
      if (seconds === 60) find("#ending").textContent = find(".left").textContent;
      if (seconds === 0 && !again) ask();
    }

    function listen() {
      const stream = new EventSource(`${live}/events`);
      const giveUp = () => { stream.close(); poll(); };
      // The server sends the state every ten seconds; longer silence means a lost network, even if the browser reports none.
      const watch = () => { clearTimeout(silence); silence = setTimeout(giveUp, SILENCE_MS); };
      // A proxy that buffers the stream looks like silence; so does an unavailable service.
      const suspect = () => { patience ||= setTimeout(giveUp, PATIENCE_MS); };
      suspect();
      watch();
      stream.addEventListener("state", (event) => { watch(); show(JSON.parse(event.data)); });
      // Streams end every minute, and the browser opens the next one by itself.
      stream.addEventListener("error", () => stream.readyState === EventSource.CLOSED ? poll() : suspect());
    }

    setInterval(tick, 1000);
    listen();
    // Back from the identity app, where timers and streams may have slept.
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && ask());
    addEventListener("online", ask);
    addEventListener("pageshow", (event) => event.persisted && ask());
  }
})();

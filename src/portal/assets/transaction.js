// Follows a pending transaction, and reloads the page at its end.
(() => {
  "use strict";
  const main = document.querySelector("main");
  const element = (id) => document.getElementById(id);
  const { transaction, remaining } = main.dataset;
  const POLL_MS = 3000, PATIENCE_MS = 6000, SILENCE_MS = 25000;
  const trouble = element("trouble");
  let deadline = Date.now() + Number(remaining) * 1000;
  let asking = false, polling = false, over = false, again = 0, silence = 0;

  function show(status) {
    trouble.textContent = "";
    if (status.state === "waiting") deadline = Date.now() + status.remaining_s * 1000;
    else end();
  }

  function end() {
    if (!over) location.reload();
    over = true;
  }

  async function ask() {
    if (asking) return;
    asking = true;
    again = clearTimeout(again);
    let wait = 0;
    try {
      const answer = await fetch(`${transaction}/status`, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) });
      // An operator has erased the transaction, which the page says.
      if (answer.status === 404) return end();
      if (!answer.ok) {
        wait = Number(answer.headers.get("retry-after")) * 1000;
        throw new Error(answer.status);
      }
      show(await answer.json());
    } catch {
      showTrouble();
      wait ||= POLL_MS;
    } finally {
      asking = false;
      // One timer at most, however many requests fail.
      if (polling || wait) again = setTimeout(ask, Math.max(POLL_MS, wait));
    }
  }

  function showTrouble() {
    trouble.textContent = trouble.dataset.words;
  }

  function poll() {
    clearTimeout(silence);
    // A timer that is set keeps to the time that the service said.
    if (!polling && !again) ask();
    polling = true;
  }

  const stream = new EventSource(`${transaction}/events`);
  // The state comes every ten seconds; longer silence means a lost network.
  const within = (millis) => { clearTimeout(silence); silence = setTimeout(() => { stream.close(); poll(); }, millis); };
  within(PATIENCE_MS);
  stream.addEventListener("state", ({ data }) => { within(SILENCE_MS); show(JSON.parse(data)); });
  stream.addEventListener("error", () => stream.readyState === EventSource.CLOSED && poll());
  setInterval(() => {
    const seconds = Math.max(0, Math.ceil((deadline - Date.now()) / 1000));
    element("left").textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
    main.classList.toggle("ending", seconds <= 60);
    if (seconds === 0 && !again) ask();
  }, 1000);
  document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && ask());
  addEventListener("offline", showTrouble);
  addEventListener("online", ask);
})();

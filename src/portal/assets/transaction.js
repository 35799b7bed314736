// Follows a pending transaction, and reloads the page at its end.
(() => {
  "use strict";
  const main = document.querySelector("main");
  const element = (id) => document.getElementById(id);
  const { transaction, remaining } = main.dataset;
  const POLL_MS = 3000, PATIENCE_MS = 6000, SILENCE_MS = 25000;
  const trouble = element("trouble");
  let deadline = Date.now() + Number(remaining) * 1000;
  let polling = 0, timer = 0, over = false;

  function show(status) {
    trouble.textContent = "";
    if (status.state === "waiting") deadline = Date.now() + status.remaining_s * 1000;
    else if (!over) { over = true; location.reload(); }
  }

  async function ask() {
    try {
      const answer = await fetch(`${transaction}/status`, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) });
      if (!answer.ok) throw new Error(answer.status);
      show(await answer.json());
    } catch {
      showTrouble();
    }
  }

  function showTrouble() {
    trouble.textContent = trouble.dataset.words;
  }

  function poll() {
    polling ||= setInterval(ask, POLL_MS);
    ask();
  }

  const stream = new EventSource(`${transaction}/events`);
  // The state comes every ten seconds; longer silence means a lost network.
  const within = (millis) => { clearTimeout(timer); timer = setTimeout(() => { stream.close(); poll(); }, millis); };
  within(PATIENCE_MS);
  stream.addEventListener("state", ({ data }) => { within(SILENCE_MS); show(JSON.parse(data)); });
  stream.addEventListener("error", () => stream.readyState === EventSource.CLOSED && poll());
  setInterval(() => {
    const seconds = Math.max(0, Math.ceil((deadline - Date.now()) / 1000));
    element("left").textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
    main.classList.toggle("ending", seconds <= 60);
    if (seconds === 0) ask();
  }, 1000);
  document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && ask());
  addEventListener("offline", showTrouble);
  addEventListener("online", ask);
})();

// Renews the nodes as the server draws them. The page says everything without this.
(() => {
  "use strict";
  const trouble = document.getElementById("trouble");
  const SILENCE_MS = 25000, AGAIN_MS = 2000;
  let stream, timer = 0, known = "";

  function show({ html }) {
    trouble.textContent = "";
    const old = document.getElementById("nodes");
    // Who reads along by the keyboard keeps the place.
    if (html === known || old.contains(document.activeElement)) return;
    known = html;
    const made = new DOMParser().parseFromString(html, "text/html").getElementById("nodes");
    if (made) old.replaceWith(made);
  }

  function start() {
    stream = new EventSource("/console/tree/live");
    within(SILENCE_MS);
    stream.addEventListener("state", ({ data }) => { within(SILENCE_MS); show(JSON.parse(data)); });
    // It is refused when the session has ended, or when there are too many readers; the page says so.
    stream.addEventListener("error", () => {
      trouble.textContent = trouble.dataset.words;
      if (stream.readyState === EventSource.CLOSED) again();
    });
  }

  function within(millis) {
    clearTimeout(timer);
    timer = setTimeout(() => { trouble.textContent = trouble.dataset.words; again(); }, millis);
  }

  function again() {
    clearTimeout(timer);
    stream.close();
    setTimeout(async () => {
      const answer = await fetch("/console/tree", { method: "HEAD" }).catch(() => null);
      if (answer?.redirected) location.reload(); else start();
    }, AGAIN_MS);
  }

  start();
})();

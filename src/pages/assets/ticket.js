// Keeps the codes of a guest's tickets current, and a clock running. Without this script the page reloads from time to time.
(() => {
  "use strict";
  const AGAIN_MS = 15000, PATIENCE_MS = 6000, GOOD_MS = 30000;
  const passes = [...document.querySelectorAll(".pass")].map((element) => ({ element, at: Date.now() }));

  async function renew(pass) {
    const stale = pass.element.querySelector(".stale");
    try {
      const answer = await fetch(pass.element.dataset.later, { signal: AbortSignal.timeout(PATIENCE_MS) });
      if (!answer.ok) throw new Error(answer.status);
      pass.element.querySelector(".code path[stroke]").setAttribute("d", (await answer.json()).path);
      pass.at = Date.now();
      stale.textContent = "";
    } catch {
      stale.textContent = stale.dataset.words;
    }
  }

  const renewAll = () => { if (document.visibilityState === "visible") passes.forEach(renew); };
  const tick = () => {
    const now = new Date().toTimeString().slice(0, 8);
    for (const { element, at } of passes) {
      element.querySelector(".live span").textContent = now;
      // A door accepts a code for at least this time after it was sent.
      element.classList.toggle("old", Date.now() - at > GOOD_MS);
    }
  };
  tick();
  setInterval(tick, 1000);
  setInterval(renewAll, AGAIN_MS);
  // A phone from a pocket shows an old code.
  document.addEventListener("visibilitychange", renewAll);
  addEventListener("pageshow", (event) => event.persisted && renewAll());
  addEventListener("online", renewAll);
})();

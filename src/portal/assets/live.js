// Keeps the page of an event up to date: its counts as they change, and its lists. The page is complete without this
// script; all content comes from the server.
(() => {
  "use strict";
  const element = (id) => document.getElementById(id);
  const { event } = document.querySelector("main").dataset;
  if (!event) return;
  const PATIENCE_MS = 6000, AGAIN_MS = 2000, RENEW_MS = 3000, SILENCE_MS = 25000, MINUTE_MS = 60000;
  const fresh = element("fresh"), isFirst = !/[?&](q|page)=/.test(location.search);
  const guestsIn = (count) => `${count("registrations")} ${count("checked_in")}`;
  // What the page shows: guests who come before the stream begins are new to it.
  let known = guestsIn((name) => element(name).textContent), isDue = false, busy = false, stream, silence;

  // Shows the current page. During a search, or on an older page, shows a notice instead.
  async function renew() {
    if (!isDue || busy || document.visibilityState !== "visible" || element("words").value) return;
    [isDue, busy] = [false, true];
    try {
      const answer = await fetch(location.pathname, { signal: AbortSignal.timeout(PATIENCE_MS) });
      if (!answer.ok) throw new Error(answer.status);
      const now = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const id of ["arrivals", "list", "recent"]) {
        const [old, made] = [element(id), now.getElementById(id)];
        if (!old || !made || old.contains(document.activeElement)) continue;
        old.replaceWith(made);
        made.dispatchEvent(new Event("renewed", { bubbles: true }));
      }
    } catch { isDue = true; } finally { busy = false; }
  }

  function listen() {
    stream = new EventSource(event);
    watch();
    stream.addEventListener("state", ({ data }) => { watch(); show(JSON.parse(data)); });
    stream.addEventListener("error", () => stream.readyState === EventSource.CLOSED && again());
  }

  // The counts come every ten seconds; longer silence means a lost network.
  function watch() {
    clearTimeout(silence);
    silence = setTimeout(again, SILENCE_MS);
  }

  // The stream is refused when the session has ended or the event is gone, which the page says, and while the service is overloaded.
  function again() {
    clearTimeout(silence);
    stream.close();
    silence = setTimeout(async () => {
      const answer = await fetch(location.pathname, { method: "HEAD", signal: AbortSignal.timeout(PATIENCE_MS) }).catch(() => null);
      if (answer?.redirected || answer?.status === 404) location.reload();
      else if (answer?.ok) listen();
      else again();
    }, AGAIN_MS);
  }

  function show(counts) {
    for (const name of ["registrations", "checked_in", "duplicates", "credits", "scans", "pending", "others", "abandoned"]) element(name).textContent = counts[name];
    element("status").textContent = counts.label;
    element("status").className = `tag ${counts.status}`;
    element("unfunded").hidden = counts.status !== "out_of_credits";
    element("spent").hidden = counts.status !== "budget_spent";
    element("abused").hidden = !counts.is_abused;
    const guests = guestsIn((name) => counts[name]);
    if (guests !== known) {
      if (isFirst) isDue = true;
      else if (!fresh.childElementCount) fresh.replaceChildren(`${fresh.dataset.words} `, Object.assign(document.createElement("a"), { href: location.pathname, textContent: "Show them" }));
    }
    known = guests;
  }

  listen();
  setInterval(renew, RENEW_MS);
  // Arrivals get older.
  setInterval(() => { isDue ||= isFirst; }, MINUTE_MS);
})();

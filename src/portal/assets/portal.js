// Keeps pages of the portal up to date, and copies texts. The pages are complete without this script;
// all content comes from the server.
(() => {
  "use strict";
  const main = document.querySelector("main");
  const element = (id) => document.getElementById(id);
  const { event } = main.dataset;
  const PATIENCE_MS = 6000, AGAIN_MS = 2000, RENEW_MS = 3000, SILENCE_MS = 25000, MINUTE_MS = 60000;
  const STYLES = { minute: { dateStyle: "medium", timeStyle: "short" }, second: { dateStyle: "medium", timeStyle: "medium" }, time: { timeStyle: "short" } };

  for (const button of document.querySelectorAll("button.copy")) {
    button.hidden = false;
    button.addEventListener("click", () => copy(button, button.previousElementSibling));
  }
  document.querySelectorAll("time").forEach(showOwnTime);
  document.querySelectorAll("input[type=datetime-local]").forEach(takeOwnTime);
  // Two clicks on a slow line are one request.
  for (const form of document.querySelectorAll("form[data-once]")) {
    form.addEventListener("submit", () => setTimeout(() => form.querySelectorAll("button").forEach((button) => { button.disabled = true; })));
  }
  // A filter applies when it is changed; the button is for browsers without a script.
  for (const form of document.querySelectorAll("form[data-auto]")) {
    form.addEventListener("change", ({ target }) => target.type !== "datetime-local" && form.requestSubmit());
    form.addEventListener("formdata", ({ formData }) => [...formData].forEach(([name, value]) => value || formData.delete(name)));
  }
  addEventListener("pageshow", (shown) => shown.persisted && location.reload());
  document.querySelector(".chart[data-used]")?.addEventListener("pointermove", ({ offsetX, currentTarget: { clientWidth, dataset } }) => {
    const used = dataset.used.trim().split(" "), day = Math.min(used.length - 1, Math.max(0, Math.floor(offsetX / clientWidth * used.length)));
    element("reading").textContent = `${new Date(Date.parse(dataset.from) + day * 864e5).toISOString().slice(0, 10)}: ${used[day]}`;
  });
  if (event) followCounts();

  // The reader's own time replaces UTC, which stays as the title. Beside a time by the clock of an event it is the title.
  function showOwnTime(time) {
    const at = new Date(time.dateTime);
    const { event, exactly = "minute" } = time.dataset;
    const own = new Intl.DateTimeFormat(navigator.languages, STYLES[exactly]);
    if (event !== undefined) {
      time.title = `${own.format(at)}, your time`;
      return;
    }
    Object.assign(time, { title: time.textContent, textContent: own.format(at), lang: own.resolvedOptions().locale, dir: "auto" });
  }

  // Shows and takes the reader's own time, and sends UTC.
  function takeOwnTime(input) {
    const at = new Date(`${input.defaultValue}Z`);
    if (!isNaN(at)) input.value = new Date(at - at.getTimezoneOffset() * 60000).toISOString().slice(0, 16);
    const [label] = input.labels;
    label.textContent = label.textContent.replace("in UTC", "your time");
    input.form.addEventListener("formdata", ({ formData }) => input.value && formData.set(input.name, new Date(input.value).toISOString()));
  }

  async function copy(button, source) {
    const words = button.textContent;
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = "Copied";
    } catch {
      source.closest(".json")?.querySelector("[value=raw]").click();
      getSelection().selectAllChildren(source);
      button.textContent = "Selected";
    }
    element("copied").textContent = button.textContent;
    setTimeout(() => { button.textContent = words; element("copied").textContent = ""; }, AGAIN_MS);
  }

  function followCounts() {
    const fresh = element("fresh"), isFirst = !/[?&](q|page)=/.test(location.search);
    let known = "", isDue = false, busy = false, stream, silence;

    // Shows the current page. During a search, or on an older page, shows a notice instead.
    async function renew() {
      if (!isDue || busy || document.visibilityState !== "visible" || element("words").value) return;
      [isDue, busy] = [false, true];
      try {
        const now = new DOMParser().parseFromString(await (await fetch(location.pathname, { signal: AbortSignal.timeout(PATIENCE_MS) })).text(), "text/html");
        for (const id of ["arrivals", "list", "recent"]) {
          const [old, made] = [element(id), now.getElementById(id)];
          if (!old || !made || old.contains(document.activeElement)) continue;
          old.replaceWith(made);
          made.querySelectorAll("time").forEach(showOwnTime);
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
      const guests = `${counts.registrations} ${counts.checked_in}`;
      if (known && guests !== known) {
        if (isFirst) isDue = true;
        else if (!fresh.childElementCount) fresh.replaceChildren(`${fresh.dataset.words} `, Object.assign(document.createElement("a"), { href: location.pathname, textContent: "Show them" }));
      }
      known = guests;
    }

    listen();
    setInterval(renew, RENEW_MS);
    // Arrivals get older.
    setInterval(() => { isDue ||= isFirst; }, MINUTE_MS);
  }
})();

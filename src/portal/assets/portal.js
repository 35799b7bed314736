// Shows times in the reader's own zone, sends forms once, and copies texts. The pages are complete without this script;
// all content comes from the server.
(() => {
  "use strict";
  const element = (id) => document.getElementById(id);
  const SHOWN_MS = 2000;
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
  // Of a part of the page that another script has renewed.
  addEventListener("renewed", ({ target }) => target.querySelectorAll("time").forEach(showOwnTime));

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
    setTimeout(() => { button.textContent = words; element("copied").textContent = ""; }, SHOWN_MS);
  }
})();

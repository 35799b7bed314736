// The documentation: searches as one types, remembers the language of the tabs, fills credentials into the commands, and opens what
// a link leads to. The pages are complete without this script.
(() => {
  "use strict";
  const LANGUAGE = "docs-language", APP = "docs-app", KEY = "docs-key", HITS_MAX = 12;
  const field = document.getElementById("q"), hits = document.getElementById("hits");
  let index;

  // A browser without storage loses only the remembered values.
  const kept = (store, name) => { try { return store.getItem(name) ?? ""; } catch { return ""; } };
  const keep = (store, name, value) => { try { store.setItem(name, value); } catch { /* nothing is kept */ } };

  // Search as one types.
  async function find() {
    if (!index) {
      const answer = await fetch("/docs/search.json").catch(() => null);
      const read = answer?.ok ? await answer.json().catch(() => null) : null;
      if (!read) return;
      index = read;
    }
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = words.length ? index.filter((hit) => words.every((word) => `${hit.page} ${hit.words}`.toLowerCase().includes(word))) : [];
    found.sort((one, other) => one.to.includes("#") - other.to.includes("#"));
    hits.replaceChildren(...found.slice(0, HITS_MAX).map((hit) => {
      const link = Object.assign(document.createElement("a"), { href: hit.to, textContent: hit.words });
      link.append(Object.assign(document.createElement("small"), { textContent: hit.page }));
      const item = document.createElement("li");
      item.append(link);
      return item;
    }));
    hits.hidden = !found.length;
  }
  field.addEventListener("input", find);
  addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.target.closest("input, select, textarea") && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      field.focus();
    }
  });

  // One language for all tabs, on this page and the next.
  const tabs = document.querySelectorAll(".tabs > input");
  const choose = (language) => tabs.forEach((tab) => { if (tab.value === language) tab.checked = true; });
  choose(kept(localStorage, LANGUAGE));
  tabs.forEach((tab) => tab.addEventListener("change", () => { keep(localStorage, LANGUAGE, tab.value); choose(tab.value); }));

  // The portal's link has the app id; the key is kept in this tab alone, and only in a sandbox.
  const linked = new URLSearchParams(location.search).get("app");
  if (linked) keep(localStorage, APP, linked);
  function fill() {
    const values = { app: kept(localStorage, APP), key: kept(sessionStorage, KEY) };
    for (const place of document.querySelectorAll("[data-fill]")) {
      place.dataset.words ??= place.textContent;
      place.textContent = values[place.dataset.fill].replace(/[^\w.-]/g, "") || place.dataset.words;
    }
  }
  function fields(before) {
    const box = Object.assign(document.createElement("div"), { className: "fill" });
    const ask = [[localStorage, APP, "App id", "text"]];
    if (document.querySelector("header .badge:not(.plain-badge)")) ask.unshift([sessionStorage, KEY, "API key of the sandbox, for this tab alone", "password"]);
    for (const [store, name, label, type] of ask) {
      const row = Object.assign(document.createElement("p"), { className: "field" });
      const words = Object.assign(document.createElement("label"), { htmlFor: name, textContent: label });
      const input = Object.assign(document.createElement("input"), { id: name, type, value: kept(store, name), autocomplete: "off", spellcheck: false });
      input.addEventListener("input", () => { keep(store, name, input.value.trim()); fill(); });
      row.append(words, input);
      box.append(row);
    }
    before.before(box);
  }
  const first = document.querySelector("[data-fill]")?.closest(".copyable");
  if (first) fields(first);
  fill();

  // Opens the target of a link and scrolls to it; old links lead to the page that has the target now.
  async function open() {
    const to = decodeURIComponent(location.hash.slice(1));
    if (!to) return;
    const place = document.getElementById(to);
    if (place) {
      place.closest(".operation")?.querySelectorAll("details").forEach((part) => { part.open = true; });
      place.scrollIntoView();
    } else if (location.pathname === "/docs") {
      await find();
      const now = index?.find((hit) => hit.to.endsWith(`#${to}`));
      if (now) location.replace(now.to);
    }
  }
  addEventListener("hashchange", open);
  open();
})();

// A door's page: scans tickets, searches guests as one types, and works offline. Offline check-ins are stored on this phone until the
// server has them; codes only, no names. The server decides, and no guest is checked in twice.
(() => {
  "use strict";
  const main = document.querySelector("main[data-door]");
  const { door, zone } = main.dataset;
  const element = (id) => document.getElementById(id);
  const REFRESH_MS = 10000, RETRY_MS = 3000, PATIENCE_MS = 6000, FOUND_MAX = 20, PAUSE_MS = 2500, KEPT_MS = 2 * 86400000;
  const TICKET = /\/d\/t\/([2-9A-HJ-NP-Z]{6})\.([\w-]{24})$/;

  // Times are the server's, not this phone's, and shown in the event's time zone.
  let ahead = Number(main.dataset.now) - Date.now();
  const now = () => Math.round(Date.now() + ahead);
  // A stored check-in without a valid time counts as made now.
  const timeOf = ({ at }) => at > 0 ? Number(at) : now();
  const clock = (at) => new Date(at).toLocaleTimeString("en-GB", { timeZone: zone, hour: "2-digit", minute: "2-digit" });

  // Guests in the order of their numbers, with check-ins; empty for an event with too many.
  let guests = [], inside = new Set(), many = false, trouble = "", isCurrent = false;

  // A list that all windows of this door share. Without storage it lasts as long as the page.
  function kept(what) {
    const place = `${what} ${door}`;
    let items = [], isStored = true;
    const load = () => {
      try { return isStored ? JSON.parse(localStorage[place] ?? "[]") : items; } catch { return items; }
    };
    const save = (all) => {
      items = all;
      try {
        if (all.length > 0) localStorage[place] = JSON.stringify(all);
        else delete localStorage[place];
      } catch { isStored = false; }
      tell();
    };
    return {
      load,
      add: (item) => save([...load(), item]),
      remove: ({ id }) => save(load().filter((one) => one.id !== id)),
    };
  }

  // Check-ins to send, and unread responses.
  const waiting = kept("waiting"), notes = kept("notes");

  // Deletes check-ins of other doors on this phone that are too old for the server.
  function tidy() {
    try {
      for (const place of Object.keys(localStorage).filter((place) => /^(waiting|notes) \/d\//.test(place))) {
        if (JSON.parse(localStorage[place]).every((item) => timeOf(item) < now() - KEPT_MS)) delete localStorage[place];
      }
    } catch { /* Nothing is stored here. */ }
  }

  const node = (tag, words, look) => {
    const made = document.createElement(tag);
    if (words) made.textContent = words;
    if (look) made.className = look;
    return made;
  };

  const nameOf = (code) => guests.find(([known]) => known === code)?.[1] ?? "";

  function tell() {
    const count = waiting.load().length;
    const behind = count === 0 ? "" : `${count} check-in${count === 1 ? "" : "s"} will be sent when the network is back.`;
    element("trouble").textContent = [trouble, behind].join(" ").trim();
    element("notes").replaceChildren(...notes.load().map((note) => {
      const item = node("li"), button = node("button", "Done", "button");
      item.append(node("span", `Scanned at ${clock(note.at)}: `), node("bdi", nameOf(note.code) || note.code), ` ${NOTES[note.state]?.(note) ?? ""}`, button);
      button.onclick = () => notes.remove(note);
      return item;
    }));
  }

  async function ask(path, options) {
    const answer = await fetch(door + path, { headers: { accept: "application/json" }, signal: AbortSignal.timeout(PATIENCE_MS), ...options });
    // A success whose body breaks off is a failure, and is retried.
    const told = await answer.json().catch((error) => {
      if (answer.ok) throw error;
      return {};
    });
    if (answer.ok) {
      trouble = "";
      return told;
    }
    // The PIN is needed again, or the link has ended: our server says so, not a network in between. Pending check-ins are sent first.
    if (told.code === "pin_required") location.reload();
    if (told.code === "not_found" && (path === "/check-ins" || waiting.load().length === 0)) end();
    throw Object.assign(new Error(answer.status), { status: answer.status, code: told.code });
  }

  // The server has refused this check-in for good. All other failures are retried.
  const isRefusal = (error) => error.status === 400 && error.code === "validation_failed";

  function lost(error) {
    trouble = error?.status ? "The service cannot answer now." : "No network.";
    tell();
  }

  // Names are deleted when the door ends. Unsent check-ins are reported, because they can no longer be sent.
  function end() {
    clearInterval(refreshing);
    clearInterval(retrying);
    const unsent = waiting.load();
    const list = node("ul");
    list.append(...unsent.map((item) => node("li", `${item.code} at ${clock(timeOf(item))}`)));
    main.replaceChildren(node("p", "This door is closed.", "heading"), ...(unsent.length ? [node("p", "These check-ins were not sent:"), list] : []));
    guests = [];
  }

  function count(told) {
    element("inside").textContent = told.inside;
    element("registered").textContent = told.registered;
  }

  let isRefreshing = false;

  async function refresh() {
    if (isRefreshing) return;
    isRefreshing = true;
    try {
      for (let more = true; more;) {
        const told = await ask(`/guests?after=${guests.length}${isCurrent ? `&inside=${inside.size}` : ""}`);
        ({ many } = told);
        if (Number.isFinite(told.now)) ahead = told.now - Date.now();
        guests.push(...told.guests);
        count(told);
        more = told.guests.length > 0 && told.checked_in === undefined;
        const behind = waiting.load();
        isCurrent = behind.length === 0;
        if (told.checked_in !== undefined) {
          const bytes = atob(told.checked_in);
          inside = new Set(guests.filter((_, place) => bytes.charCodeAt(place >> 3) & (0x80 >> (place & 7))).map(([code]) => code));
          for (const { code } of behind) inside.add(code);
        }
        // A search that came before these guests finds them now.
        if (told.guests.length > 0 && element("number").textContent) find();
      }
      tell();
      send();
    } catch (error) { lost(error); } finally { isRefreshing = false; }
  }

  // The pending check-in of the card on the screen.
  let isSending = false, shownId = "";

  // Sends pending check-ins one by one. A request without a response is retried: the same request is one check-in.
  async function send() {
    if (isSending) return;
    isSending = true;
    try {
      for (let items = waiting.load(); items.length > 0; items = waiting.load()) {
        const first = { ...items[0], at: timeOf(items[0]) };
        const told = await ask("/check-ins", { method: "POST", body: new URLSearchParams(first) }).catch((error) => {
          // A refused check-in does not block the others.
          if (isRefusal(error)) return { state: "refused" };
          throw error;
        });
        if (!told.state) throw new Error("no outcome");
        if (told.inside !== undefined) count(told);
        // The card on the screen gets its response.
        if (first.id === shownId) told.state === "in" ? show(told) : element("result").replaceChildren();
        // A guest who came in by another door meanwhile, or with an old code, is shown.
        if (told.state !== "in") notes.add({ id: first.id, code: first.code, at: first.at, state: told.state, when: told.when });
        waiting.remove(first);
      }
    } catch (error) { lost(error); } finally { isSending = false; }
  }

  async function checkIn(code, proof, id = String(crypto.getRandomValues(new Uint32Array(1))[0])) {
    const request = proof ? { code, proof, at: now(), id } : { code, at: now(), id };
    // A list that is read meanwhile may have this very check-in.
    const wasInside = inside.has(code);
    try {
      const told = await ask("/check-ins", { method: "POST", body: new URLSearchParams(request) });
      if (told.when) inside.add(code);
      count(told);
      show(told);
      tell();
    } catch (error) {
      const name = nameOf(code);
      if (isRefusal(error)) return show({ state: "refused", code, name });
      if (wasInside || waiting.load().some((item) => item.code === code)) show({ state: "already", code, name, when: "" });
      else {
        const isListed = many || guests.some(([known]) => known === code);
        inside.add(code);
        // The server may count others: equal numbers do not mean the same guests.
        isCurrent = false;
        waiting.add(request);
        show({ state: isListed ? "kept" : "unlisted", code, name, when: clock(request.at) });
        shownId = id;
      }
      lost(error);
    }
  }

  const NOTES = {
    already: ({ when }) => `was in already, at ${when}`,
    old: () => "is not checked in: the code was old",
    unknown: () => "is no guest of this event",
    refused: () => "is not checked in",
  };

  const LOOKS = {
    in: ["good", ({ when }) => `Checked in at ${when}`],
    already: ["warn", ({ when }) => when ? `Already in at ${when}` : "Already in"],
    old: ["warn", () => "This code is old. Ask to see the page itself, not a picture of it."],
    unknown: ["bad", () => "This is not a ticket of this event."],
    refused: ["bad", () => "Not checked in. Scan or find this guest again."],
    kept: ["good", ({ when }) => `Noted at ${when}. It is checked when the network is back.`],
    unlisted: ["warn", ({ when }) => `Noted at ${when}, but this phone does not know the code. Look at the ticket closely.`],
    shown: ["", () => "Not checked in yet"],
  };

  function show(told) {
    shownId = "";
    const [look, words] = LOOKS[told.state];
    const card = node("div", "", `card result ${look}`);
    if (told.photo && told.state !== "unknown") {
      const photo = node("img");
      Object.assign(photo, { src: told.photo, alt: "Photo of the guest", onerror: () => photo.remove() });
      card.append(photo);
    }
    card.append(node("p", words(told), "heading"));
    if (told.state !== "unknown") {
      const who = node("p", "", "who");
      who.append(node("bdi", told.name), " ", node("span", told.code, "letters"));
      card.append(who);
    }
    if (told.state === "old" || told.state === "shown") {
      const button = node("button", told.state === "old" ? "Check in anyway" : "Check in", "button main");
      button.onclick = () => { button.disabled = true; checkIn(told.code); };
      card.append(button);
    }
    element("result").replaceChildren(card);
    card.scrollIntoView({ block: "nearest" });
    navigator.vibrate?.(look === "good" ? 80 : [80, 80, 200]);
  }

  function find() {
    const words = element("words").value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const code = words.join("").replaceAll("-", "").toUpperCase();
    const has = ([known, name]) => {
      const parts = name.toLowerCase().split(/\s+/);
      return known.startsWith(code) || words.every((word) => parts.some((part) => part.startsWith(word)));
    };
    // The latest guests are the likeliest at the door.
    const found = words.length ? guests.filter(has).slice(-FOUND_MAX).reverse() : [];
    const row = ([code, name]) => {
      const item = node("li"), button = node("button"), who = node("span");
      who.append(node("bdi", name), " ", node("span", code, "letters"));
      button.append(who);
      if (inside.has(code)) button.append(node("span", "in", "when"));
      const photo = "photos" in main.dataset && !trouble ? `${door}/photo/${code}` : undefined;
      button.onclick = () => show({ state: inside.has(code) ? "already" : "shown", code, name, photo });
      item.append(button);
      return item;
    };
    element("found").replaceChildren(...found.map(row));
    const number = found.length === 1 ? "1 guest" : `${found.length} guests`;
    element("number").textContent = !words.length ? "" : found.length ? number : "No guest has this name or code.";
  }

  element("words").addEventListener("input", () => many || find());
  document.querySelector(".search").addEventListener("submit", (event) => {
    if (many) return;
    event.preventDefault();
    find();
  });
  // The server's own form is a check-in too: it must survive a lost network, and repeating it is harmless.
  element("result").addEventListener("submit", (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    event.target.querySelector("button").disabled = true;
    checkIn(form.get("code"), undefined, form.get("id"));
  });

  async function scan(detector) {
    const camera = element("camera");
    camera.srcObject = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } });
    camera.hidden = false;
    element("scan").hidden = true;
    await camera.play();
    let last = "", at = 0;
    const look = async () => {
      if (document.visibilityState === "visible") {
        const [seen] = await detector.detect(camera).catch(() => []);
        const [, code, proof] = TICKET.exec(seen?.rawValue ?? "") ?? [];
        // The same ticket stays in view for a while.
        if (code && (code !== last || Date.now() - at > 4 * PAUSE_MS)) {
          [last, at] = [code, Date.now()];
          await checkIn(code, proof);
        }
      }
      setTimeout(look, 150);
    };
    look();
  }

  async function offerScanner() {
    const formats = await globalThis.BarcodeDetector?.getSupportedFormats?.().catch(() => []);
    if (!formats?.includes("qr_code") || !navigator.mediaDevices) return;
    const detector = new BarcodeDetector({ formats: ["qr_code"] });
    element("scanner").hidden = false;
    element("by-camera").hidden = true;
    element("scan").addEventListener("click", () => scan(detector).catch(() => {
      element("by-camera").hidden = false;
      element("trouble").textContent = "The camera is not available. Allow it for this page, or point your phone’s own camera at the code.";
    }));
  }

  tidy();
  offerScanner();
  const refreshing = setInterval(refresh, REFRESH_MS);
  const retrying = setInterval(() => waiting.load().length && send(), RETRY_MS);
  refresh();
  addEventListener("online", refresh);
  addEventListener("offline", () => lost());
})();

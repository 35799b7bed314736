// A door's page at work: it scans tickets, finds guests while one types, and goes on without a network. What was done without one is kept
// on this phone until the server has it; codes only, no names. The server decides, and no guest is checked in twice.
(() => {
  "use strict";
  const main = document.querySelector("main[data-door]");
  const { door, gate } = main.dataset;
  const element = (id) => document.getElementById(id);
  const REFRESH_MS = 10000, RETRY_MS = 3000, PATIENCE_MS = 6000, FOUND_MAX = 20, PAUSE_MS = 2500;
  const TICKET = /\/d\/t\/([2-9A-HJ-NP-Z]{6})\.([\w-]{24})$/;
  const WAITING = `waiting ${door}`;

  // Times are the server's, whatever this phone's clock says.
  let ahead = Number(main.dataset.now) - Date.now();
  const now = () => Math.round(Date.now() + ahead);
  const clock = (at) => new Date(at).toTimeString().slice(0, 5);

  // Guests in the order of their numbers, and who is in; empty for an event with too many.
  let guests = [], inside = new Set(), many = false, isOffline = false, isCurrent = false;

  // What waits, for every window of this door. Where nothing can be stored it waits as long as the page is open.
  let waiting = [], isStored = true;
  waiting = load();

  function load() {
    try { return isStored ? JSON.parse(localStorage[WAITING] ?? "[]") : waiting; } catch { return waiting; }
  }

  function save(items) {
    waiting = items;
    try { localStorage[WAITING] = JSON.stringify(items); } catch { isStored = false; }
    tell();
  }

  function tell() {
    const count = waiting.length;
    const behind = count === 0 ? "" : `${count} check-in${count === 1 ? "" : "s"} will be sent when the network is back.`;
    element("trouble").textContent = [isOffline ? "No network." : "", behind].join(" ").trim();
  }

  async function ask(path, options) {
    const answer = await fetch(door + path, { headers: { accept: "application/json" }, signal: AbortSignal.timeout(PATIENCE_MS), ...options });
    isOffline = false;
    // The link has ended, or the PIN is asked for again. What waits is sent first.
    if ((answer.status === 401 || answer.status === 404) && (waiting.length === 0 || path === "/check-ins")) location.reload();
    if (!answer.ok) throw Object.assign(new Error(answer.status), { status: answer.status });
    return answer.json();
  }

  function lost() {
    isOffline = true;
    tell();
  }

  function count(told) {
    element("inside").textContent = told.inside;
    element("registered").textContent = told.registered;
  }

  async function refresh() {
    try {
      for (let more = true; more;) {
        const told = await ask(`/guests?after=${guests.length}${isCurrent ? `&inside=${inside.size}` : ""}`);
        ({ many } = told);
        ahead = told.now - Date.now();
        guests.push(...told.guests);
        count(told);
        more = told.guests.length > 0 && told.checked_in === undefined;
        isCurrent = waiting.length === 0;
        if (told.checked_in !== undefined) {
          const bytes = atob(told.checked_in);
          inside = new Set(guests.filter((_, place) => bytes.charCodeAt(place >> 3) & (0x80 >> (place & 7))).map(([code]) => code));
          for (const { code } of waiting) inside.add(code);
        }
      }
      tell();
      send();
    } catch { lost(); }
  }

  let sending = false;

  // Sends what waits, one after the other. An answer that was lost is asked for again: the same check-in is done once.
  async function send() {
    if (sending) return;
    sending = true;
    try {
      for (waiting = load(); waiting.length > 0;) {
        const [first] = waiting;
        const told = await ask("/check-ins", { method: "POST", body: new URLSearchParams(first) }).catch((error) => {
          // What the server does not take now it will not take later; the others do not wait behind it.
          if (!(error.status >= 400 && error.status < 429)) throw error;
          return { state: "refused", code: first.code, name: "" };
        });
        save(load().filter(({ code, at }) => code !== first.code || at !== first.at));
        if (told.state !== "refused") count(told);
        // Somebody who came in by another door meanwhile, or with an old code, is worth a look.
        if (told.state !== "in") show(told, `${told.name || first.code}, scanned at ${clock(Number(first.at))}: `);
      }
    } catch { lost(); } finally { sending = false; }
  }

  async function checkIn(code, proof) {
    const request = proof ? { code, proof, at: now() } : { code, at: now() };
    try {
      const told = await ask("/check-ins", { method: "POST", body: new URLSearchParams(request) });
      if (told.when) inside.add(code);
      count(told);
      show(told);
      tell();
    } catch (error) {
      // The server has looked at it and said no.
      if (error.status >= 400 && error.status < 429) return show({ state: "refused", code, name: "" });
      const [, name = ""] = guests.find(([known]) => known === code) ?? [];
      if (inside.has(code)) show({ state: "already", code, name, when: "" });
      else {
        inside.add(code);
        save([...load(), request]);
        show({ state: "kept", code, name, when: clock(request.at) });
      }
      lost();
    }
  }

  const node = (tag, words, look) => {
    const made = document.createElement(tag);
    if (words) made.textContent = words;
    if (look) made.className = look;
    return made;
  };

  const LOOKS = {
    in: ["good", ({ when }) => `Checked in at ${when}`],
    already: ["warn", ({ when }) => when ? `Already in at ${when}` : "Already in"],
    old: ["warn", () => "This code is old. Ask to see the page itself, not a picture of it."],
    unknown: ["bad", () => "This is not a ticket of this event."],
    refused: ["bad", () => "Not checked in. Scan or find this guest again."],
    kept: ["good", ({ when }) => `Noted at ${when}. It is checked when the network is back.`],
    shown: ["", () => "Not checked in yet"],
  };

  function show(told, before = "") {
    const [look, words] = LOOKS[told.state];
    const card = node("div", "", `card result ${look}`);
    if (told.photo && told.state !== "unknown") {
      const photo = node("img");
      Object.assign(photo, { src: told.photo, alt: "Photo of the guest", onerror: () => photo.remove() });
      card.append(photo);
    }
    card.append(node("p", before + words(told), "heading"));
    if (told.state !== "unknown") {
      const who = node("p", "", "who");
      who.append(node("bdi", told.name), " ", node("span", told.code, "letters"));
      card.append(who);
    }
    if (told.state === "old" || told.state === "shown") {
      const button = node("button", told.state === "old" ? "Check in all the same" : "Check in", "button main");
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
    // Those who came last are the likeliest at the door.
    const found = words.length ? guests.filter(has).slice(-FOUND_MAX).reverse() : [];
    const row = ([code, name]) => {
      const item = node("li"), button = node("button"), who = node("span");
      who.append(node("bdi", name), " ", node("span", code, "letters"));
      button.append(who);
      if (inside.has(code)) button.append(node("span", "in", "when"));
      const photo = "photos" in main.dataset && !isOffline ? `${door}/photo/${code}` : undefined;
      button.onclick = () => show({ state: inside.has(code) ? "already" : "shown", code, name, photo });
      item.append(button);
      return item;
    };
    element("found").replaceChildren(...(found.length || !words.length ? found.map(row) : [node("li", "No guest has this name or code.", "none")]));
  }

  element("words").addEventListener("input", () => many || find());
  document.querySelector(".search").addEventListener("submit", (event) => {
    if (many) return;
    event.preventDefault();
    find();
  });
  // The server's own form is one check-in as well, which must not be lost with the network.
  element("result").addEventListener("submit", (event) => {
    event.preventDefault();
    checkIn(new FormData(event.target).get("code"));
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
        // The same ticket is in view for a while.
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

  offerScanner();
  refresh();
  setInterval(refresh, REFRESH_MS);
  setInterval(() => waiting.length && send(), RETRY_MS);
  addEventListener("online", refresh);
  addEventListener("offline", lost);
})();

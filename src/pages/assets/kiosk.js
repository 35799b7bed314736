// Keeps a kiosk's screen up to date for days on end. The code works without this script; all content comes
// from the server.
(() => {
  "use strict";
  const main = document.querySelector("main");
  const element = (id) => document.getElementById(id);
  const trouble = element("trouble");
  // The server sends the state every ten seconds; longer silence means a lost network, even if the browser reports none.
  const SILENCE_MS = 25000, PATIENCE_MS = 6000, AGAIN_MS = 3000, GREETING_MS = 5000, TURN_MS = 8000;
  let stream, silence, patience, greeting, expiry, since;

  function show(state) {
    patience = clearTimeout(patience);
    trouble.textContent = "";
    remember(state.time, state.code_valid_ms);
    main.dataset.state = state.status;
    main.classList.toggle("closed", state.status !== "active");
    element("name").textContent = state.name;
    for (const [size, letters] of [["long", 60], ["longest", 120]]) element("name").parentElement.classList.toggle(size, [...state.name].length > letters);
    element("organiser").textContent = state.organiser ?? "";
    element("occasion").textContent = (state.occasion ?? []).join(" · ");
    element("purpose").textContent = state.purpose ?? "";
    element("until").textContent = state.until;
    [state.words, ...state.other_words ?? []].forEach((words, at) => { element("words").children[at].textContent = words; });
    if (state.code) document.querySelector(".code path[stroke]").setAttribute("d", state.code);
    if (state.registered) greet();
    const places = element("places");
    if (places) {
      places.parentElement.hidden = state.places_left === undefined;
      places.textContent = state.places_left ?? "";
    }
    watch();
  }

  function greet() {
    const registered = element("registered");
    registered.textContent = registered.dataset.words;
    clearTimeout(greeting);
    greeting = setTimeout(() => { registered.textContent = ""; }, GREETING_MS);
  }

  function watch() {
    clearTimeout(silence);
    silence = setTimeout(() => { showTrouble(); listen(); }, SILENCE_MS);
  }

  // A changing code expires some time after the last update.
  function remember(time, valid) {
    since = time;
    clearTimeout(expiry);
    main.classList.remove("expired");
    if (valid) expiry = setTimeout(() => { main.classList.add("expired"); showTrouble(); }, valid);
  }

  function showTrouble() {
    const { words, expired, before, after } = trouble.dataset;
    const heading = document.createElement("b");
    heading.textContent = before + since + after;
    const code = main.matches(".expired") ? expired : words;
    const parts = main.dataset.state === "active" ? [heading, " ", code] : [heading];
    // Screen readers announce a text only once.
    if (trouble.textContent !== parts.map((part) => part.textContent ?? part).join("")) trouble.replaceChildren(...parts);
  }

  function listen() {
    stream?.close();
    const mine = stream = new EventSource(main.dataset.stream);
    mine.addEventListener("state", (event) => show(JSON.parse(event.data)));
    mine.addEventListener("error", () => {
      // Streams end every minute, so a short break is not shown.
      patience ||= setTimeout(showTrouble, PATIENCE_MS);
      // The browser does not reconnect after an error response.
      if (mine === stream && mine.readyState === EventSource.CLOSED) setTimeout(() => mine === stream && listen(), AGAIN_MS);
    });
    watch();
  }

  // Languages alternate in the same place: nothing moves.
  function takeTurns() {
    const turns = [...document.querySelectorAll(".turn")].map(({ children }) => [...children]).filter((children) => children.length > 1);
    if (!turns.length) return;
    let turn = 0;
    const showOne = () => turns.forEach((children) => children.forEach((child, at) => {
      child.hidden = false;
      child.classList.toggle("away", at !== turn % children.length);
    }));
    showOne();
    setInterval(() => { turn += 1; showOne(); }, TURN_MS);
  }

  async function stayAwake() {
    try { await navigator.wakeLock?.request("screen"); } catch { /* The screen's own settings decide then. */ }
  }

  remember(main.dataset.time, Number(main.dataset.valid));
  takeTurns();
  listen();
  stayAwake();
  addEventListener("offline", showTrouble);
  addEventListener("online", listen);
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState !== "visible") return;
    listen();
    stayAwake();
  });
})();

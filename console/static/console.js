// What the console's pages do besides htmx: distances that stay true, the key for the search, pausing what is live, and
// marking rows. Every page can be read without it.
"use strict";

(() => {
  const root = document.documentElement;
  root.classList.add("has-script");

  // --- Distances from now, in the same words as the server's ---
  const units = [["s", 1, 120], ["min", 60, 120], ["h", 3600, 48], ["days", 86400, 730], ["years", 31556952, Infinity]];
  // By the clock of the machine, which goes on while it sleeps, and by how far it is from the server's.
  const behind = (Date.parse(root.dataset.now || "") || Date.now()) - Date.now();

  function describeDistance(instant) {
    const distance = Math.round((instant - Date.now() - behind) / 1000);
    const seconds = Math.abs(distance);
    if (seconds === 0) return "now";
    const [unit, size] = units.find(([, each, limit]) => seconds < limit * each);
    const words = `${Math.floor(seconds / size)} ${unit}`;
    return distance > 0 ? `in ${words}` : `${words} ago`;
  }

  function updateDistances() {
    for (const element of document.querySelectorAll("[data-distance]")) {
      const text = describeDistance(Date.parse(element.parentElement.dateTime));
      if (element.textContent !== text) element.textContent = text;
    }
  }
  setInterval(() => document.hidden || updateDistances(), 1000);

  // --- The reader's zone: the browser's, unless another was chosen ---
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  for (const field of document.querySelectorAll("[data-own-zone]")) if (own && !field.value) field.value = own;
  const asks = document.getElementById("own-zone");
  if (asks && own && own !== asks.zone.value) {
    asks.zone.value = own;
    asks.to.value = asks.dataset.here;
    asks.submit();
  }

  // The names of zones are offered where one is asked for.
  document.addEventListener("focusin", (event) => {
    const names = event.target.list;
    if (names?.id !== "zones" || names.childElementCount) return;
    names.append(...(Intl.supportedValuesOf?.("timeZone") ?? []).map((name) => new Option(name)));
  });

  // --- Live parts ---
  let paused = false;
  let heldBack = null; // the connection whose news was not shown
  let trouble = ""; // why nothing new comes
  const button = document.getElementById("pause");
  // Rows that are marked must not move away under the reader.
  const isMarked = () => document.querySelector("input[data-mark]:checked") !== null;
  const holdsStill = () => paused || isMarked();
  function showState() {
    if (!button) return;
    const state = paused ? "Paused" : trouble || (isMarked() ? "Paused while rows are chosen" : "Live");
    button.classList.toggle("is-still", state !== "Live");
    button.querySelector("[data-label]").textContent = state;
    button.setAttribute("aria-pressed", String(paused));
  }
  function tell(text) { trouble = text; showState(); }
  button?.addEventListener("click", () => { paused = !paused; showState(); catchUp(); });
  // A new connection begins with the part as it is now.
  function catchUp() {
    if (heldBack === null || holdsStill()) return;
    heldBack.reader?.cancel();
    heldBack = null;
  }
  document.addEventListener("htmx:sse:before:message", (event) => {
    if (!holdsStill()) return;
    event.detail.cancelled = true;
    heldBack = event.detail.connection;
  });
  document.addEventListener("htmx:sse:after:connection", () => tell(""));
  document.addEventListener("htmx:sse:error", (event) => {
    if (event.detail.status === 401) location.assign(location.href); // the session has ended
    tell("Reconnecting");
  });
  // A stream that did not begin is not asked for again.
  for (const name of ["htmx:response:error", "htmx:error"]) {
    document.getElementById("live")?.addEventListener(name, () => tell("Not live"));
  }
  document.addEventListener("htmx:after:swap", () => { updateDistances(); updateMarks(); });

  // On a phone the pages' names are wider than the screen.
  document.querySelector(".nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });

  // --- Keys ---
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
    if (event.key === "/" && !typing) {
      const box = document.getElementById("find");
      box?.focus();
      box?.select();
      event.preventDefault();
    } else if (event.key === "Escape" && typing?.id === "find") {
      typing.blur();
    } else if (event.key === "Escape") {
      const menu = document.querySelector("details.menu[open]");
      if (menu) menu.open = false;
      menu?.querySelector("summary").focus();
    }
  });

  // --- Rows that can be marked ---
  function updateMarks() {
    const bar = document.getElementById("marked");
    if (!bar) return;
    const boxes = [...document.querySelectorAll("input[data-mark]")];
    const count = boxes.filter((box) => box.checked).length;
    bar.querySelector("[data-count]").textContent = String(count);
    bar.classList.toggle("is-empty", count === 0);
    for (const one of bar.querySelectorAll("button")) one.disabled = count === 0;
    const all = document.getElementById("mark-all");
    if (all) {
      all.checked = count > 0 && count === boxes.length;
      all.indeterminate = count > 0 && count < boxes.length;
    }
  }
  document.addEventListener("change", (event) => {
    if (event.target.id === "mark-all") {
      for (const box of document.querySelectorAll("input[data-mark]")) box.checked = event.target.checked;
    }
    if (event.target.id === "mark-all" || event.target.matches("input[data-mark]")) {
      updateMarks();
      showState();
      catchUp();
    }
    if (event.target.matches("select[data-submits]")) event.target.form.requestSubmit();
  });
  updateMarks();

  // --- Buttons that copy, and that ask once more ---
  document.addEventListener("click", async (event) => {
    const copies = event.target.closest("[data-copies]");
    if (copies) {
      await navigator.clipboard.writeText(document.getElementById(copies.dataset.copies).textContent);
      const before = copies.textContent;
      copies.textContent = "Copied";
      setTimeout(() => { copies.textContent = before; }, 1500);
    }
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
  });
  document.addEventListener("submit", (event) => {
    const asks = event.submitter?.dataset.asks;
    if (asks && !window.confirm(asks)) event.preventDefault();
  });
})();

// Asks the server what is new and puts it into the page, part by part, without moving what the reader looks at.
"use strict";
(() => {
  const poll = document.body.dataset.poll;
  if (!poll) return;
  const link = document.getElementById("link"), say = document.getElementById("say"), main = document.getElementById("main");
  const ANSWER_MS = 10000, HIDDEN_MS = 15000, LONGEST_MS = 5000;
  let timer = 0, asking = null, failures = 0, spoken = null, heard = Date.now();

  // Turns `old` into `fresh` in place: elements stay, so focus, open folds, selection and scroll positions stay too.
  const keyed = (node) => (node.nodeType === 1 ? node.getAttribute("data-key") : null);
  function children(old, fresh) {
    const kept = new Map();
    for (const child of old.children) if (keyed(child) !== null) kept.set(keyed(child), child);
    let at = old.firstChild;
    for (const wanted of [...fresh.childNodes]) {
      const key = keyed(wanted);
      const mine = key !== null && kept.has(key) ? kept.get(key) : null;
      kept.delete(key);
      if (mine !== null && mine !== at) old.insertBefore(mine, at);
      const found = mine !== null ? mine : at;
      if (found && same(found, wanted) && (mine !== null || keyed(found) === key)) {
        morph(found, wanted);
        at = found.nextSibling;
      } else {
        old.insertBefore(wanted, at);
      }
    }
    while (at) { const next = at.nextSibling; at.remove(); at = next; }
  }
  const same = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName;
  function morph(old, fresh) {
    if (old.nodeType !== 1) {
      if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
      return;
    }
    for (const { name } of [...old.attributes]) {
      if (!fresh.hasAttribute(name) && !(old.nodeName === "DETAILS" && name === "open")) old.removeAttribute(name);
    }
    for (const { name, value } of [...fresh.attributes]) {
      if (old.nodeName === "DETAILS" && name === "open") continue;
      if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    children(old, fresh);
  }

  function parsed(html) {
    const found = document.createElement("template");
    found.innerHTML = html;
    return found.content;
  }

  function show(news) {
    if (news.go) { location.replace(news.go); return; }
    const have = new Map([...main.children].map((part) => [part.dataset.part, part]));
    for (const part of news.parts) {
      const mine = have.get(part.name);
      if (!mine || part.html === null || mine.dataset.hash === part.hash) continue;
      children(mine, parsed(part.html));
      mine.dataset.hash = part.hash;
    }
    if (news.title && document.title !== news.title) document.title = news.title;
    if (spoken !== null && news.say !== spoken) say.textContent = news.say;
    spoken = news.say;
  }

  const time = (when) => new Date(when).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  function tell(text, lost) {
    if (link.textContent !== text) link.textContent = text;
    link.classList.toggle("lost", lost);
    document.body.classList.toggle("stale", lost);
  }

  function later(ms) {
    clearTimeout(timer);
    timer = setTimeout(ask, document.hidden ? Math.max(ms, HIDDEN_MS) : ms);
  }

  async function ask() {
    clearTimeout(timer);
    if (asking) asking.abort();
    const mine = (asking = new AbortController());
    const limit = setTimeout(() => mine.abort(), ANSWER_MS);
    let next = 1000;
    try {
      const have = [...main.children].map((part) => part.dataset.hash).join(".");
      const url = new URL(poll, location.href);
      url.searchParams.set("have", have);
      const answer = await fetch(url, { signal: mine.signal, cache: "no-store", credentials: "same-origin" });
      const news = await answer.json();
      if (mine !== asking) return;
      if (!answer.ok) throw new Error(news.message || `the server says ${answer.status}`, { cause: "said" });
      failures = 0;
      heard = Date.now();
      show(news);
      tell(news.live ? "live" : "up to date", false);
      next = news.next_ms;
    } catch (error) {
      if (mine !== asking) return;
      failures += 1;
      next = Math.min(LONGEST_MS, 500 * 2 ** failures);
      // One missed answer is no news: a laptop that wakes up needs a moment.
      if (error.cause === "said") tell(`${error.message} (as of ${time(heard)})`, true);
      else if (failures > 1) tell(`no answer since ${time(heard)}; trying again`, true);
    } finally {
      clearTimeout(limit);
      if (mine === asking) { asking = null; later(next); }
    }
  }

  document.addEventListener("visibilitychange", () => { if (!document.hidden) ask(); });
  addEventListener("pageshow", (event) => { if (event.persisted) ask(); });
  addEventListener("online", ask);
  ask();
})();

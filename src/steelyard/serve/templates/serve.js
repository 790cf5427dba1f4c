// Asks the server what is new and puts it into the page, part by part, without moving what the reader looks at.
"use strict";
(() => {
  const { poll, key } = document.body.dataset;
  if (!poll) return;
  const link = document.getElementById("link"), say = document.getElementById("say"), main = document.getElementById("main"), again = document.getElementById("again");
  const ANSWER_MS = 10000, HIDDEN_MS = 15000, LONGEST_MS = 5000, MOST_TRIES = 20;
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

  // Nothing is asked any more, until the reader does something.
  function lost(foreign) {
    const what = foreign ? `another program answers here; no answer of the server since ${time(heard)}` : `no answer since ${time(heard)}`;
    tell(`${what}: open the address that steelyard serve prints`, true);
    again.hidden = false;
  }

  function later(ms) {
    clearTimeout(timer);
    timer = setTimeout(ask, document.hidden ? Math.max(ms, HIDDEN_MS) : ms);
  }

  // When the server has ended, any user of the machine can take its port. So news are asked for without the cookie,
  // and believed only with a proof: both sides know a key that nobody else has (RFC 2104).
  const bytes = (text) => new TextEncoder().encode(text);
  const hex = (buffer) => [...new Uint8Array(buffer)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const secret = crypto.subtle.importKey("raw", bytes(key), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const mac = async (content) => hex(await crypto.subtle.sign("HMAC", await secret, content));

  // The answer, with its text; throws "unproven" for an answer that is not of the process that made this page.
  async function proven(url, signal) {
    const nonce = hex(crypto.getRandomValues(new Uint8Array(16)));
    const proof = await mac(bytes(`ask\n${nonce}\n${url.pathname}${url.search}`));
    const headers = { "X-Steelyard-Nonce": nonce, "X-Steelyard-Proof": proof };
    const answer = await fetch(url, { signal, headers, cache: "no-store", credentials: "omit", redirect: "error" });
    const body = new Uint8Array(await answer.arrayBuffer()), head = bytes(`answer\n${nonce}\n`);
    const whole = new Uint8Array(head.length + body.length);
    whole.set(head);
    whole.set(body, head.length);
    if (answer.headers.get("X-Steelyard-Proof") !== (await mac(whole))) {
      throw new Error(answer.status === 503 ? "busy" : "unproven", { cause: answer.status === 503 ? "slow" : "unproven" });
    }
    return { ok: answer.ok, status: answer.status, news: JSON.parse(new TextDecoder().decode(body)) };
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
      const { ok, status, news } = await proven(url, mine.signal);
      if (mine !== asking) return;
      failures = 0;
      again.hidden = true;
      if (!ok) throw new Error(news.message || `the server says ${status}`, { cause: "said" });
      heard = Date.now();
      show(news);
      tell(news.live ? "live" : "up to date", false);
      next = news.next_ms;
    } catch (error) {
      if (mine !== asking) return;
      failures += 1;
      next = Math.min(LONGEST_MS, 500 * 2 ** failures);
      // A server that is slow still holds its port; one that refuses the connection has ended.
      const slow = error.cause === "slow" || error.name === "AbortError";
      if (error.cause === "said") tell(`${error.message} (as of ${time(heard)})`, true);
      else if (slow && failures < MOST_TRIES) tell(`no answer since ${time(heard)}; trying again`, true);
      else { next = null; lost(error.cause === "unproven"); }
    } finally {
      clearTimeout(limit);
      if (mine === asking) {
        asking = null;
        if (next !== null) later(next);
      }
    }
  }

  document.addEventListener("visibilitychange", () => { if (!document.hidden) ask(); });
  addEventListener("pageshow", (event) => { if (event.persisted) ask(); });
  addEventListener("online", ask);
  again.addEventListener("click", ask);
  ask();
})();

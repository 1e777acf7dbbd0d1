// Shows the tool calls of a session as they happen.
//
// EventSource cannot send a token, so this reads the stream with `fetch`. The token stays in this tab's sessionStorage
// and never in an address. Everything that came from a tool is put on the page as text, never as HTML.

const MOST_CARDS = 200;
const MOST_RUNNING = 1000;
const MOST_SHOWN = 4000;
const MOST_BUFFERED = 4 * 1024 * 1024;
// Ends that are on record come at once when a stream is opened; so long is waited for them, in milliseconds.
const ENDS_COME_WITHIN = 2000;
// A call that says it began longer ago than a week has another clock.
const BELIEVED = 7 * 24 * 3600 * 1000;

const page = (id) => document.getElementById(id);
const form = page("connect");
const list = page("calls");
const template = page("card");
const cards = new Map();
// Questions to operators that are open, by call. A question may be told before its call.
const asked = new Map();

let reading = null;

form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (reading) {
    stop("not connected");
    return;
  }
  remember();
  begin();
});

page("token").value = sessionStorage.getItem("toolpost-token") ?? "";
page("session").value = sessionStorage.getItem("toolpost-session") ?? "default";
if (sessionStorage.getItem("toolpost-token") !== null) {
  begin();
}
setInterval(tick, 100);

function remember() {
  sessionStorage.setItem("toolpost-token", page("token").value.trim());
  sessionStorage.setItem("toolpost-session", page("session").value.trim() || "default");
}

function begin() {
  list.replaceChildren();
  cards.clear();
  asked.clear();
  reading = new AbortController();
  page("go").textContent = "Disconnect";
  follow(reading.signal).catch((error) => stop(String(error), "refused"));
}

function stop(text, state = "off") {
  reading?.abort();
  reading = null;
  page("go").textContent = "Connect";
  say(text, state);
  for (const call of running()) {
    settle(call, "no end was seen");
  }
}

function say(text, state) {
  page("state").textContent = spelled(text);
  page("state").dataset.state = state;
}

// Reads the stream, and comes back after a break with the id of the last event.
async function follow(signal) {
  let lastId = null;
  let pause = 500;
  let wasLive = false;
  while (!signal.aborted) {
    let why = "connection lost, trying again";
    const answer = await open(lastId, signal);
    if (signal.aborted) {
      return;
    }
    if (answer?.ok) {
      pause = 500;
      wasLive = true;
      greet(answer);
      const stream = { lastId, ended: null, timer: null };
      await read(answer.body, stream, signal);
      clearTimeout(stream.timer);
      lastId = stream.lastId;
      if (signal.aborted) {
        return;
      }
      if (stream.ended === "session_closed") {
        stop("this session was closed");
        return;
      }
      if (stream.ended === "shutdown") {
        why = "the host stopped, waiting for the next one";
      }
    } else if (answer) {
      const problem = (await answer.json().catch(() => null))?.error;
      if (answer.status === 400 && lastId !== null) {
        lastId = null; // The host does not know that place any more.
      } else if (wasLive && (answer.status === 404 || answer.status === 410)) {
        stop("this session was closed");
        return;
      } else if (answer.status !== 429 && answer.status < 500) {
        stop(problem?.message ?? `refused: ${answer.status}`, "refused");
        return;
      }
    }
    if (!signal.aborted) {
      say(why, "waiting");
      await new Promise((resolve) => setTimeout(resolve, pause));
      pause = Math.min(pause * 2, 10_000);
    }
  }
}

async function open(lastId, signal) {
  const session = encodeURIComponent(page("session").value.trim() || "default");
  const address = new URL(`sessions/${session}/events`, new URL(document.body.dataset.host, document.baseURI));
  address.searchParams.set("from", page("history").checked ? "start" : "now");
  const headers = { Accept: "text/event-stream" };
  const token = page("token").value.trim();
  if (token) {
    headers.Authorization = `Bearer ${token}`;
  }
  if (lastId !== null) {
    headers["Last-Event-ID"] = lastId;
  }
  try {
    return await fetch(address, { headers, signal, cache: "no-store", credentials: "omit" });
  } catch {
    return null;
  }
}

function greet(answer) {
  say("live", "live");
  const session = answer.headers.get("toolpost-session");
  if (session) {
    const word = /^[\w:.-]+$/.test(session) ? session : `'${session.replaceAll("'", "'\\''")}'`;
    page("try").textContent = `toolpost call echo message=hello --session ${word}`;
    page("hint").hidden = cards.size > 0;
  }
}

// Server-sent events, from bytes to fields.
async function read(body, stream, signal) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let event = { name: "message", data: [], size: 0 };
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) {
        return;
      }
      const lines = (rest + value).split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop();
      for (const line of lines) {
        if (line === "") {
          if (event.data.length > 0) {
            hear(event.name, event.data.join("\n"), stream);
          }
          event = { name: "message", data: [], size: 0 };
          continue;
        }
        const colon = line.indexOf(":");
        const field = colon < 0 ? line : line.slice(0, colon);
        const text = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
        if (field === "event") event.name = text;
        else if (field === "data") {
          event.data.push(text);
          event.size += text.length;
        } else if (field === "id") stream.lastId = text;
      }
      if (rest.length + event.size > MOST_BUFFERED) {
        throw new Error("an event is too long");
      }
    }
  } catch (error) {
    if (!signal.aborted) {
      console.warn("the stream broke:", error.message);
    }
    reader.cancel().catch(() => {});
  }
}

// One frame of the stream. Those of another kind are for others.
function hear(name, data, stream) {
  let told;
  try {
    told = JSON.parse(data);
  } catch {
    return;
  }
  if (told === null || typeof told !== "object") return;
  if (name === "tool-event") show(told);
  else if (name === "approval") question(told);
  else if (name === "opening") opened(told, stream);
  else if (name === "closing") stream.ended = told.reason;
}

// The host says which calls are open there. Others that are open here were another host's: what is on record of their
// ends comes now, and where nothing comes there will be nothing.
function opened(told, stream) {
  if (!Array.isArray(told.open)) return;
  const open = new Set(told.open);
  const left = running().filter((call) => !open.has(call.id));
  left.forEach((call) => (call.isLeft = true));
  asked.clear();
  running().forEach(stand);
  clearTimeout(stream.timer);
  stream.timer = setTimeout(() => {
    for (const call of left) {
      if (call.since !== null && call.isLeft) settle(call, "no result: the host that ran it is gone");
    }
  }, ENDS_COME_WITHIN);
}

function question(told) {
  const { toolCallId, approvalId, state } = told;
  const open = asked.get(toolCallId) ?? new Set();
  if (state === "asked") open.add(approvalId);
  else open.delete(approvalId);
  if (open.size > 0) asked.set(toolCallId, open);
  else asked.delete(toolCallId);
  if (asked.size > MOST_RUNNING) {
    asked.delete(asked.keys().next().value);
  }
  const call = cards.get(toolCallId);
  if (call && call.since !== null) stand(call);
}

// One event: a call, or how one ended. Either may come twice or alone.
function show(told) {
  if (typeof told.toolCallId !== "string") return;
  const call = cards.get(told.toolCallId) ?? add(told.toolCallId);
  if (told.toolName) {
    call.part("name").textContent = spelledLine(told.toolName);
  }
  if (told.input !== undefined) {
    call.part("arguments").textContent = preview(told.input);
  }
  if (told.type === "tool-call") {
    call.isLeft = false; // This host knows it: it runs here, or its end follows.
    if (call.card.dataset.state === "lost") {
      call.since = performance.now();
      stand(call);
    }
  }
  if (call.since !== null && told.startedAt) {
    call.since = Math.min(call.since, began(told.startedAt));
  }
  if (told.type === "tool-result") {
    finish(call, "done", outcome(told.output), told.durationMs);
  } else if (told.type === "tool-error") {
    finish(call, "failed", preview(told.error?.message ?? told.error), told.durationMs);
  }
}

function add(id) {
  const card = template.content.firstElementChild.cloneNode(true);
  const call = { id, card, part: (name) => card.querySelector(`.${name}`), since: performance.now() };
  call.part("id").textContent = spelledLine(id);
  cards.set(id, call);
  stand(call);
  list.prepend(card);
  page("hint").hidden = true;
  trim();
  return call;
}

// The oldest that have ended go first. Those that run stay, as long as a page can hold them.
function trim() {
  for (const [id, call] of cards) {
    if (cards.size <= MOST_CARDS) return;
    if (call.since === null) drop(id, call);
  }
  for (const [id, call] of cards) {
    if (cards.size <= MOST_RUNNING) return;
    drop(id, call);
  }
}

function drop(id, call) {
  call.card.remove();
  cards.delete(id);
}

function running() {
  return [...cards.values()].filter((call) => call.since !== null);
}

// How a running call stands.
function stand(call) {
  const waits = asked.has(call.id);
  call.card.dataset.state = "running";
  call.card.classList.toggle("waits", waits);
  call.part("word").textContent = waits ? "waiting for approval" : "running";
}

// Nobody will tell how it ended; should somebody do so after all, that counts.
function settle(call, word) {
  call.since = null;
  call.card.classList.remove("waits");
  call.card.dataset.state = "lost";
  call.part("word").textContent = word;
  call.part("time").textContent = "";
}

function finish(call, state, text, duration) {
  call.since = null;
  asked.delete(call.id);
  call.card.classList.remove("waits");
  call.card.dataset.state = state;
  call.part("word").textContent = state;
  call.part("time").textContent = Number.isFinite(duration) ? took(duration) : "";
  call.part("outcome-name").textContent = state === "failed" ? "error" : "result";
  call.part("outcome").textContent = text;
  call.part("outcome-name").hidden = false;
  call.part("outcome-place").hidden = false;
  trim();
}

// When a call began, on this page's clock: as the host says, where that can be.
function began(startedAt) {
  const ago = Date.now() - Date.parse(startedAt);
  return performance.now() - (ago >= 0 && ago < BELIEVED ? ago : 0);
}

// What came of a call: what the tool said first, and then what is said about it.
function outcome(value) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    return preview(value);
  }
  if (value.truncated === true && typeof value.preview === "string") {
    const size = Number.isFinite(value.bytes) ? `, ${value.bytes} bytes in all` : "";
    return `${preview(value.preview)}\n(cut short${size})`;
  }
  const { text, ...rest } = value;
  if (typeof text !== "string" || text.trim() === "") {
    return preview(value);
  }
  return Object.keys(rest).length > 0 ? `${preview(text.trimEnd())}\n\n${preview(rest)}` : preview(text);
}

function preview(value) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 1) ?? "";
  const short = typeof value === "string" || text.length > 120 ? text : JSON.stringify(value) ?? "";
  const cut = short.length > MOST_SHOWN;
  return cut ? `${spelled(short.slice(0, MOST_SHOWN))} … (${short.length} characters)` : spelled(short);
}

// Characters that hide, or that turn the direction of what follows: controls, marks, joiners, fillers, selectors, tags
// and blanks of other widths. They are spelled out, so that nothing looks like something else.
const HIDES =
  /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\u00a0\u034f\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200a\u202f\u205f\u2060-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufffb\u{e0000}-\u{e0fff}]/gu;

function spelledLine(text) {
  const short = { "\n": "\\n", "\t": "\\t", "\r": "\\r" };
  return String(text).replace(HIDES, (c) => short[c] ?? `\\u{${c.codePointAt(0).toString(16)}}`);
}

// The same for a text of several lines.
function spelled(text) {
  return String(text).split(/\r?\n/).map((line) => line.split("\t").map(spelledLine).join("\t")).join("\n");
}

function took(milliseconds) {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 60_000) return `${(milliseconds / 1000).toFixed(1)} s`;
  const seconds = Math.floor(milliseconds / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

function tick() {
  for (const call of cards.values()) {
    if (call.since !== null) {
      call.part("time").textContent = took(performance.now() - call.since);
    }
  }
}

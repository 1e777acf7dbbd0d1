// Shows the tool calls of a session as they happen.
//
// EventSource cannot send a token, so this reads the stream with `fetch`. The token stays in this tab's sessionStorage
// and never in an address. Everything that came from a tool is put on the page as text, never as HTML.

const MOST_CARDS = 200;
const MOST_SHOWN = 4000;
const MOST_BUFFERED = 4 * 1024 * 1024;

const page = (id) => document.getElementById(id);
const form = page("connect");
const list = page("calls");
const template = page("card");
const cards = new Map();

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
  reading = new AbortController();
  page("go").textContent = "Disconnect";
  follow(reading.signal).catch((error) => stop(String(error), "refused"));
}

function stop(text, state = "off") {
  reading?.abort();
  reading = null;
  page("go").textContent = "Connect";
  say(text, state);
}

function say(text, state) {
  page("state").textContent = text;
  page("state").dataset.state = state;
}

// Reads the stream, and comes back after a break with the id of the last event.
async function follow(signal) {
  let lastId = null;
  let pause = 500;
  while (!signal.aborted) {
    const answer = await open(lastId, signal);
    if (signal.aborted) {
      return;
    }
    if (answer?.ok) {
      pause = 500;
      greet(answer);
      lastId = await read(answer.body, lastId, signal);
    } else if (answer) {
      const problem = (await answer.json().catch(() => null))?.error;
      if (answer.status === 400 && lastId !== null) {
        lastId = null; // The host does not know that place any more.
      } else if (answer.status !== 429 && answer.status < 500) {
        stop(problem?.message ?? `refused: ${answer.status}`, "refused");
        return;
      }
    }
    if (!signal.aborted) {
      say("connection lost, trying again", "waiting");
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
    page("try").textContent = `toolpost call echo text=hello --session ${session}`;
    page("hint").hidden = cards.size > 0;
  }
}

// Server-sent events, from bytes to fields. Gives back the last id.
async function read(body, lastId, signal) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let event = { name: "message", data: [] };
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) {
        return lastId;
      }
      const lines = (rest + value).split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop();
      if (rest.length > MOST_BUFFERED) {
        throw new Error("an event is too long");
      }
      for (const line of lines) {
        if (line === "") {
          if (event.name === "tool-event" && event.data.length > 0) {
            show(event.data.join("\n"));
          }
          event = { name: "message", data: [] };
          continue;
        }
        const colon = line.indexOf(":");
        const field = colon < 0 ? line : line.slice(0, colon);
        const text = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
        if (field === "event") event.name = text;
        else if (field === "data") event.data.push(text);
        else if (field === "id") lastId = text;
      }
    }
  } catch (error) {
    if (!signal.aborted) {
      console.warn("the stream broke:", error.message);
    }
    return lastId;
  }
}

// One event: a call, or how one ended. Either may come twice or alone.
function show(data) {
  let told;
  try {
    told = JSON.parse(data);
  } catch {
    return;
  }
  const call = cards.get(told.toolCallId) ?? add(told);
  if (told.toolName) {
    call.part("name").textContent = told.toolName;
  }
  if (told.input !== undefined) {
    call.part("arguments").textContent = preview(told.input);
  }
  if (told.type === "tool-result") {
    finish(call, "done", "done", preview(told.output), told.durationMs);
  } else if (told.type === "tool-error") {
    finish(call, "failed", "failed", preview(told.error?.message ?? told.error), told.durationMs);
  }
}

function add(told) {
  const card = template.content.firstElementChild.cloneNode(true);
  const call = { card, part: (name) => card.querySelector(`.${name}`), since: performance.now() };
  call.part("word").textContent = "running";
  call.part("id").textContent = told.toolCallId;
  cards.set(told.toolCallId, call);
  list.prepend(card);
  page("hint").hidden = true;
  if (cards.size > MOST_CARDS) {
    const [oldest, gone] = cards.entries().next().value;
    gone.card.remove();
    cards.delete(oldest);
  }
  return call;
}

function finish(call, state, word, text, duration) {
  call.since = null;
  call.card.dataset.state = state;
  call.part("word").textContent = word;
  call.part("time").textContent = Number.isFinite(duration) ? took(duration) : "";
  call.part("outcome-name").textContent = state === "failed" ? "error" : "result";
  call.part("outcome").textContent = text;
  call.part("outcome-name").hidden = false;
  call.part("outcome-place").hidden = false;
}

function preview(value) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 1) ?? "";
  const short = typeof value === "string" || text.length > 120 ? text : JSON.stringify(value) ?? "";
  return short.length > MOST_SHOWN ? `${short.slice(0, MOST_SHOWN)} … (${short.length} characters)` : short;
}

function took(milliseconds) {
  return milliseconds < 1000 ? `${Math.round(milliseconds)} ms` : `${(milliseconds / 1000).toFixed(1)} s`;
}

function tick() {
  for (const call of cards.values()) {
    if (call.since !== null) {
      call.part("time").textContent = took(performance.now() - call.since);
    }
  }
}

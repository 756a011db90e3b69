// The stream of events. It is read with fetch and not with an EventSource, which could not send the token.

const storage = "airlock-token";

export const token = () => sessionStorage.getItem(storage) || "";
export const setToken = (value) => sessionStorage.setItem(storage, value);

export const headers = () => (token() ? { "Airlock-Token": token() } : {});

let current = null; // the connection in use

// connect opens a stream, and again whenever it ends. handle gets each event by its name; status hears how the connection is:
// "open", "lost", "refused". A second call replaces the first.
export async function connect(query, handle, status) {
  current?.abort();
  const mine = (current = new AbortController());
  while (!mine.signal.aborted) {
    try {
      const answer = await fetch("events" + query, { headers: headers(), signal: mine.signal, cache: "no-store" });
      if (!answer.ok) {
        status(answer.status === 401 ? "refused" : "lost", await answer.text());
        if (answer.status === 401) return;
      } else {
        status("open");
        await read(answer.body, handle);
        status("lost", "The stream has ended.");
      }
    } catch (e) {
      if (mine.signal.aborted) return;
      status("lost", String(e.message || e));
    }
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

// read takes the events out of a body.
async function read(body, handle) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const events = text.split("\n\n");
    text = events.pop();
    for (const e of events) {
      const m = /^event: (.*)\ndata: (.*)$/s.exec(e);
      if (m) handle(m[1], JSON.parse(m[2]));
    }
  }
}

/** A server-sent event. */
interface ServerEvent {
  name: string;
  data: string;
  id: string;
}

/** Parses a stream of server-sent events, piece by piece. */
export class EventParser {
  private rest = "";
  private name = "";
  private id = "";
  private data: string[] = [];

  /** Returns the events that this piece completes. */
  push(piece: string): ServerEvent[] {
    const events: ServerEvent[] = [];
    const lines = (this.rest + piece).split("\n");
    this.rest = lines.pop() ?? "";
    for (const raw of lines) {
      const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
      if (line === "") {
        if (this.data.length > 0) events.push({ name: this.name || "message", data: this.data.join("\n"), id: this.id });
        this.name = "";
        this.data = [];
        continue;
      }
      const colon = line.indexOf(":");
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (field === "event") this.name = value;
      else if (field === "data") this.data.push(value);
      else if (field === "id") this.id = value;
    }
    return events;
  }
}

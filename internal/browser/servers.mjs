// What the page is opened against: programs of this repository, which end with the test, however that ends.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const running = new Set(), log = [];

// logged is what the programs have logged.
export const logged = () => log.join("");

// Server is a program that prints, in one of its first lines, where its page is.
export class Server {
  constructor(command, args) {
    this.lines = [];
    this.waiting = new Set();
    this.process = spawn(command, args, { stdio: ["pipe", "pipe", "pipe"] });
    this.process.stderr.on("data", (text) => log.push(text));
    running.add(this);
    this.process.stdin.on("error", () => {}); // it has ended: that is said by who waits for a line
    this.ended = new Promise((resolve) => this.process.once("close", (code, signal) => {
      running.delete(this);
      this.end = signal || code;
      for (const look of [...this.waiting]) look();
      resolve(this.end);
    }));
    this.process.once("error", (e) => this.lines.push(String(e)));
    createInterface({ input: this.process.stdout }).on("line", (line) => {
      this.lines.push(line);
      for (const look of [...this.waiting]) look();
    });
  }

  // line waits for a line that matches, from the line with a number on.
  line(pattern, from = 0) {
    return new Promise((resolve, reject) => {
      const over = setTimeout(() => done(reject, new Error(`no line ${pattern} within 30 s`)), 30_000);
      const done = (settle, value) => {
        clearTimeout(over);
        this.waiting.delete(look);
        settle(value);
      };
      const look = () => {
        for (const text of this.lines.slice(from)) {
          const m = pattern.exec(text);
          if (m) return done(resolve, m);
        }
        if (this.end !== undefined) done(reject, new Error(`it ended with ${this.end} before a line ${pattern}:\n${this.lines.join("\n")}`));
      };
      this.waiting.add(look);
      look();
    });
  }

  // do has the harbour do something, and waits until it has.
  async do(what) {
    const from = this.lines.length;
    this.process.stdin.write(what + "\n");
    await this.line(new RegExp(`^${what} done$`), from);
  }

  // stop has the program end in order, and gives its status.
  async stop() {
    this.process.stdin.end(); // the harbour's end
    if (this.interrupted) this.process.kill("SIGINT");
    return this.ended;
  }
}

// arena starts an arena.
export async function arena(...args) {
  const s = new Server("bin/airlock", ["arena", "--port", "0", ...args]);
  s.interrupted = true;
  s.url = (await s.line(/(http:\/\/127\.0\.0\.1:\d+\/)/))[1];
  return s;
}

export async function harbour(...args) {
  const s = new Server("bin/harbour", args);
  s.url = (await s.line(/^page (\S+)$/))[1];
  return s;
}

// endAll ends what still runs.
export async function endAll() {
  await Promise.all([...running].map((s) => s.stop()));
}

process.once("exit", () => running.forEach((s) => s.process.kill("SIGKILL")));

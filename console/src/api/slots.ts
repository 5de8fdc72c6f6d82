/**
 * The event streams that the windows of a browser may have open together.
 *
 * With HTTP/1.1, a browser opens six connections to a server; streams in all of them would leave none for requests. Four
 * locks of the browser are the slots, which all windows of a console share.
 */
const SLOTS = 4;

/** The place of a window's stream among those of the browser. `onLost` is called when another window takes it. */
export class Slot {
  private release: (() => void) | null = null;

  constructor(private readonly onLost: () => void) {}

  /** Takes a free slot, or with `mayRob` one of another window. Returns whether the window has one. */
  async take(mayRob: boolean): Promise<boolean> {
    if (!isLimited() || this.release !== null) return true;
    for (let number = 1; number <= SLOTS; number++) {
      if (await this.request(number, { ifAvailable: true })) return true;
    }
    return mayRob && this.request(1 + Math.floor(Math.random() * SLOTS), { steal: true });
  }

  free(): void {
    this.release?.();
    this.release = null;
  }

  private request(number: number, options: LockOptions): Promise<boolean> {
    return new Promise((resolve) => {
      const hold = (lock: Lock | null): Promise<void> | undefined => {
        resolve(lock !== null);
        return lock === null ? undefined : new Promise((done) => (this.release = done));
      };
      navigator.locks.request(`stoker-stream-${number}`, options, hold).catch(() => {
        this.release = null;
        this.onLost();
      });
    });
  }
}

/** Returns whether connections are few: not with HTTP/2. Without HTTPS, browsers lend no locks, except at localhost. */
function isLimited(): boolean {
  const [page] = performance.getEntriesByType("navigation") as PerformanceNavigationTiming[];
  return "locks" in navigator && !/^h[23]/.test(page?.nextHopProtocol ?? "");
}

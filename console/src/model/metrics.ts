/** A sample of Prometheus' text format. */
export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

/** Parses metrics in Prometheus' text format; lines that are no samples are left out. */
export function parseMetrics(text: string): Sample[] {
  const samples: Sample[] = [];
  for (const line of text.split("\n")) {
    const match = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (!match) continue;
    const labels = [...(match[2] ?? "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)];
    samples.push({ name: match[1]!, labels: Object.fromEntries(labels.map((label) => [label[1]!, label[2]!])), value: Number(match[3]) });
  }
  return samples;
}

/** Returns the sum of the samples of a name that have these labels. */
export function sumOf(samples: readonly Sample[], name: string, labels: Record<string, string> = {}): number {
  const wanted = Object.entries(labels);
  return samples
    .filter((sample) => sample.name === name && wanted.every(([label, value]) => sample.labels[label] === value))
    .reduce((sum, sample) => sum + sample.value, 0);
}

export interface Reading {
  /** When the metrics were read, in milliseconds. */
  at: number;
  samples: readonly Sample[];
}

/** Returns how much a counter grew per second between two readings; null if a process has started anew in between. */
export function rateOf(before: Reading, after: Reading, name: string, labels: Record<string, string> = {}): number | null {
  const growth = sumOf(after.samples, name, labels) - sumOf(before.samples, name, labels);
  return growth < 0 || after.at <= before.at ? null : (growth * 1000) / (after.at - before.at);
}

/** Returns the mean that a histogram recorded between two readings; null if it recorded nothing. */
export function meanOf(before: Reading, after: Reading, name: string): number | null {
  const count = sumOf(after.samples, `${name}_count`) - sumOf(before.samples, `${name}_count`);
  const sum = sumOf(after.samples, `${name}_sum`) - sumOf(before.samples, `${name}_sum`);
  return count <= 0 || sum < 0 ? null : sum / count;
}

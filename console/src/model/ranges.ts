/** Returns names as ranges, as `web[1-40,52]`, in the order of their first names. */
export function foldNames(names: readonly string[]): string {
  const groups = new Map<string, { numbers: string[]; prefix: string; suffix: string }>();
  const rest: string[] = [];
  for (const name of [...names].sort((one, other) => one.localeCompare(other, "en", { numeric: true }))) {
    const match = /^(.*?)(\d+)(\D*)$/.exec(name);
    if (!match) {
      rest.push(name);
      continue;
    }
    const [, prefix = "", number = "", suffix = ""] = match;
    const key = `${prefix}\0${suffix}\0${number.length > 1 && number.startsWith("0") ? number.length : 0}`;
    const group = groups.get(key) ?? { numbers: [], prefix, suffix };
    group.numbers.push(number);
    groups.set(key, group);
  }
  const folded = [...groups.values()].map(({ numbers, prefix, suffix }) =>
    numbers.length === 1 ? `${prefix}${numbers[0]}${suffix}` : `${prefix}[${rangesOf(numbers)}]${suffix}`,
  );
  return [...folded, ...rest].join(", ");
}

function rangesOf(numbers: readonly string[]): string {
  const parts: string[] = [];
  let first = 0;
  for (let index = 1; index <= numbers.length; index++) {
    if (index < numbers.length && Number(numbers[index]) === Number(numbers[index - 1]) + 1) continue;
    parts.push(index - first === 1 ? numbers[first]! : `${numbers[first]}-${numbers[index - 1]}`);
    first = index;
  }
  return parts.join(",");
}

/** Returns the selector of the servers with these names, as agents report them. */
export function selectorOf(names: readonly string[]): string {
  const quoted = names.map((name) => (/^[\w.-]+$/.test(name) ? name : JSON.stringify(name)));
  return `hostname in (${quoted.join(", ")})`;
}

import { groupBy } from "./groups";

/** Returns names as ranges, as `web[1-40,52]`, in the order of their first names. */
export function foldNames(names: readonly string[]): string {
  const sorted = [...names].sort((one, other) => one.localeCompare(other, "en", { numeric: true }));
  const parts = sorted.map((name) => /^(.*?)(\d+)(\D*)$/.exec(name) ?? [name]);
  // Numbers with zeros before them have one length in a range.
  const widthOf = (number: string) => (number.length > 1 && number.startsWith("0") ? number.length : 0);
  const numbered = groupBy(
    parts.filter((part) => part.length > 1),
    ([, prefix = "", number = "", suffix = ""]) => `${prefix}\0${suffix}\0${widthOf(number)}`,
  );
  const folded = [...numbered.values()].map((group) => {
    const [name = "", prefix = "", , suffix = ""] = group[0]!;
    return group.length === 1 ? name : `${prefix}[${rangesOf(group.map((part) => part[2]!))}]${suffix}`;
  });
  return [...folded, ...parts.filter((part) => part.length === 1)].join(", ");
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

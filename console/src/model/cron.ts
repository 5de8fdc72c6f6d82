const WORDS: Record<string, string> = {
  "@hourly": "0 * * * *",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@weekly": "0 0 * * 0",
  "@monthly": "0 0 1 * *",
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
};
const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const MONTHS = "January February March April May June July August September October November December".split(" ");

/** Returns a cron expression in words, such as "every day at 02:00"; null for one that words would not make clearer. */
export function cronInWords(expression: string): string | null {
  const fields = (WORDS[expression.trim()] ?? expression).trim().toLowerCase().split(/\s+/);
  if (fields.length !== 5) return null;
  const [minute, hour, day, month, weekday] = fields as [string, string, string, string, string];
  const time = timeInWords(minute, hour);
  const days = daysInWords(day, weekday);
  const months = month === "*" ? "" : named(month, MONTHS, 1);
  if (time === null || days === null || months === null) return null;
  const isOften = time.startsWith("every");
  const when = days === "" ? (isOften ? "" : "every day") : days;
  return [isOften ? time : when, isOften ? when : time, months && `in ${months}`].filter(Boolean).join(" ");
}

function timeInWords(minute: string, hour: string): string | null {
  const every = /^\*\/(\d+)$/;
  if (minute === "*" && hour === "*") return "every minute";
  if (every.test(minute) && hour === "*") return `every ${every.exec(minute)![1]} minutes`;
  if (!/^\d+$/.test(minute)) return null;
  const after = Number(minute) === 0 ? "" : ` at minute ${Number(minute)}`;
  if (hour === "*") return `every hour${after}`;
  if (every.test(hour)) return `every ${every.exec(hour)![1]} hours${after}`;
  if (!/^\d+(,\d+)*$/.test(hour)) return null;
  return `at ${list(hour.split(",").map((one) => `${one.padStart(2, "0")}:${minute.padStart(2, "0")}`))}`;
}

function daysInWords(day: string, weekday: string): string | null {
  const parts: string[] = [];
  if (day !== "*") {
    if (!/^\d+(,\d+)*$/.test(day)) return null;
    parts.push(`on the ${list(day.split(",").map(ordinal))}`);
  }
  if (weekday !== "*") {
    const names = named(weekday, DAYS, 0);
    if (names === null) return null;
    parts.push(names.includes(" to ") ? names : `on ${names}`);
  }
  return parts.join(" or ");
}

/** Returns numbers, ranges and names of three letters as the names in `names`, whose first one has the number `first`. */
function named(field: string, names: readonly string[], first: number): string | null {
  const nameOf = (text: string) =>
    /^\d+$/.test(text) ? names[Number(text) - first] : names.find((name) => name.slice(0, 3).toLowerCase() === text);
  const parts = field.split(",").map((part) => {
    const ends = part.split("-").map(nameOf);
    return ends.length > 2 || ends.includes(undefined) ? null : ends.join(" to ");
  });
  return parts.includes(null) ? null : list(parts as string[]);
}

function list(items: readonly string[]): string {
  return items.length < 2 ? items.join("") : `${items.slice(0, -1).join(", ")} and ${items[items.length - 1]}`;
}

function ordinal(number: string): string {
  const value = Number(number);
  const end = value > 10 && value < 14 ? "th" : (["th", "st", "nd", "rd"][value % 10] ?? "th");
  return `${value}${end}`;
}

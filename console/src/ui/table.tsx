import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Empty } from "./parts";
import { query, setQuery } from "./router";

export interface Column<T> {
  title: string;
  cell: (row: T) => ComponentChildren;
  /** The value by which the column sorts; without it, it does not. */
  sort?: (row: T) => string | number;
  /** Hidden where the page is narrow. */
  isWide?: boolean;
  /** Aligned at the right. */
  isNumber?: boolean;
}

/** Rows from which on only the visible ones are in the document, and their height in pixels. */
const WINDOWED = 200;
const HEIGHT = 37;

/** A table whose order is in the URL. With many rows, only those on the screen are in the document. */
export function Table<T>({
  label,
  rows,
  columns,
  keyOf,
  empty,
  isSorted = false,
}: {
  label: string;
  rows: readonly T[];
  columns: readonly Column<T>[];
  keyOf: (row: T) => string;
  /** Why there are no rows, and the next step; null: nothing. */
  empty: ComponentChildren;
  /** Whether the service has sorted the rows. */
  isSorted?: boolean;
}) {
  const sorted = useSorted(rows, isSorted ? [] : columns);
  const isWindowed = sorted.length > WINDOWED;
  const { box, first, last } = useWindow(sorted.length, isWindowed);
  if (rows.length === 0) return empty === null ? null : <Empty>{empty}</Empty>;
  const visible = isWindowed ? sorted.slice(first, last) : sorted;
  return (
    <div class={`table-box${isWindowed ? " windowed" : ""}`} ref={box} tabIndex={0} role="group" aria-label={label}>
      <table aria-rowcount={sorted.length + 1}>
        <thead>
          <tr>
            {columns.map((column) => (
              <Heading key={column.title} column={column} />
            ))}
          </tr>
        </thead>
        <tbody>
          {isWindowed && first > 0 && <Space rows={first} columns={columns.length} />}
          {visible.map((row, index) => (
            <Row key={keyOf(row)} row={row} columns={columns} index={(isWindowed ? first : 0) + index + 2} />
          ))}
          {isWindowed && last < sorted.length && <Space rows={sorted.length - last} columns={columns.length} />}
        </tbody>
      </table>
    </div>
  );
}

/** A row, which is made again only if it has changed: a live table has many rows that have not. */
function Row<T>({ row, columns, index }: { row: T; columns: readonly Column<T>[]; index: number }) {
  return useMemo(
    () => (
      <tr aria-rowindex={index}>
        {columns.map((column) => (
          <td key={column.title} class={classOf(column)}>
            {column.cell(row)}
          </td>
        ))}
      </tr>
    ),
    [row, columns, index],
  );
}

function classOf<T>(column: Column<T>): string {
  return [column.isWide && "wide", column.isNumber && "number"].filter(Boolean).join(" ");
}

function Heading<T>({ column }: { column: Column<T> }) {
  const [name, isDown] = readOrder();
  const isSorted = name === column.title;
  const change = () => setQuery({ sort: isSorted && !isDown ? `-${column.title}` : column.title });
  const order = isSorted ? (isDown ? "descending" : "ascending") : "none";
  return (
    <th scope="col" class={classOf(column)} {...(column.sort ? { "aria-sort": order as "none" } : {})}>
      {column.sort ? (
        <button class="sort" onClick={change}>
          {column.title}
          <span aria-hidden="true">{isSorted ? (isDown ? " ↓" : " ↑") : ""}</span>
        </button>
      ) : (
        column.title
      )}
    </th>
  );
}

/** Takes the place of rows that are not in the document. */
function Space({ rows, columns }: { rows: number; columns: number }) {
  return (
    <tr aria-hidden="true">
      <td class="space" colSpan={columns} style={{ height: `${rows * HEIGHT}px` }} />
    </tr>
  );
}

function readOrder(): [string, boolean] {
  const order = query.value.get("sort") ?? "";
  return order.startsWith("-") ? [order.slice(1), true] : [order, false];
}

function useSorted<T>(rows: readonly T[], columns: readonly Column<T>[]): readonly T[] {
  const [name, isDown] = readOrder();
  const sort = columns.find((column) => column.title === name)?.sort;
  if (!sort) return rows;
  const compare = new Intl.Collator("en", { numeric: true }).compare;
  const values = new Map(rows.map((row) => [row, sort(row)]));
  const sorted = [...rows].sort((one, other) => {
    const [first, second] = [values.get(one)!, values.get(other)!];
    return typeof first === "number" && typeof second === "number" ? first - second : compare(`${first}`, `${second}`);
  });
  return isDown ? sorted.reverse() : sorted;
}

/** Returns the range of the rows that are on the screen of a box that scrolls. */
function useWindow(count: number, isActive: boolean) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  useEffect(() => {
    const element = box.current;
    if (!isActive || !element) return;
    const onScroll = () => setTop(Math.floor(element.scrollTop / HEIGHT));
    element.addEventListener("scroll", onScroll, { passive: true });
    return () => element.removeEventListener("scroll", onScroll);
  }, [isActive]);
  const first = Math.max(0, Math.min(top, count) - 20);
  return { box, first, last: Math.min(count, first + 100) };
}

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

interface Series {
  label: string;
  /** The name of the color among the tokens. */
  color: string;
  values: readonly (number | null)[];
}

const HEIGHT = 200;
/** The shortest time in seconds that the axis shows. */
const SPAN = 60;

/** Lines over time, with the newest values in words for those who do not see them. */
export function Plot({ label, unit, times, series }: { label: string; unit: string; times: readonly number[]; series: readonly Series[] }) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const names = series.map((one) => one.label).join("\0");
  useEffect(() => {
    const element = box.current!;
    const style = getComputedStyle(element);
    const axis = { stroke: style.color, grid: { stroke: style.getPropertyValue("--grid"), width: 1 }, ticks: { show: false } };
    const options: uPlot.Options = {
      width: element.clientWidth,
      height: HEIGHT,
      legend: { show: series.length > 1 },
      cursor: { y: false },
      scales: {
        x: { range: (_, least, most) => [Math.min(least, most - SPAN), most] },
        y: { range: (_, __, most) => [0, Math.max(most * 1.1, 0.1)] },
      },
      axes: [axis, { ...axis, size: 62 }],
      series: [{}, ...series.map((one) => ({ label: one.label, stroke: style.getPropertyValue(`--${one.color}`), width: 2, points: { show: false } }))],
    };
    plot.current = new uPlot(options, dataOf(times, series), element);
    const observer = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: HEIGHT }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.current?.destroy();
    };
  }, [names]);
  useEffect(() => plot.current?.setData(dataOf(times, series)), [times, series]);
  const newest = series.map((one) => `${one.label} ${textOf(one.values[one.values.length - 1])} ${unit}`).join(", ");
  return <div class="plot" ref={box} role="img" aria-label={`${label}: ${newest}`} />;
}

function dataOf(times: readonly number[], series: readonly Series[]): uPlot.AlignedData {
  return [times.map((time) => time / 1000), ...series.map((one) => [...one.values])];
}

/** Returns a number in few digits; a dash for none. */
export function textOf(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  if (Number.isInteger(value)) return `${value}`;
  return value >= 100 ? value.toFixed(0) : value >= 1 ? value.toFixed(1) : value.toFixed(2);
}

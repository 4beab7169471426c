// SPDX-License-Identifier: Apache-2.0
// Calls per second over the last minutes.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { colors } from "../canvas";
import { useWidth } from "../parts";
import { useTheme } from "../theme";
import { useZone } from "../zone";

const kStepSeconds = 2; // seconds per value

export function Rate({ values, now }: { values: number[]; now: string }) {
  const [watch, width] = useWidth();
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | undefined>(undefined);
  const drawn = values.length > 1;
  const theme = useTheme();
  const zone = useZone();
  useEffect(() => {
    if (place.current === null || width === 0 || !drawn) return undefined;
    const color = colors();
    const axis = {
      stroke: color("--soft"),
      grid: { stroke: color("--line"), width: 1 },
      ticks: { show: false },
    };
    chart.current = new uPlot(
      {
        width,
        height: 120,
        tzDate: (at) =>
          zone === "utc" ? uPlot.tzDate(new Date(at * 1000), "UTC") : new Date(at * 1000),
        legend: { show: false },
        cursor: { show: false },
        series: [
          {},
          {
            stroke: color("--accent"),
            width: 2,
            fill: color("--accent-soft"),
            points: { show: false },
          },
        ],
        axes: [{ ...axis }, { ...axis, size: 48 }],
        scales: { y: { range: (_chart, _low, high) => [0, Math.max(high * 1.1, 1)] } },
      },
      [[], []],
      place.current,
    );
    return () => {
      chart.current?.destroy();
      chart.current = undefined;
    };
  }, [width, drawn, theme, zone]);
  useEffect(() => {
    const end = Date.parse(now) / 1000;
    chart.current?.setData([
      values.map((_, i) => end - (values.length - 1 - i) * kStepSeconds),
      values,
    ]);
  }, [values, now, width, drawn, theme, zone]);
  if (!drawn) return <p class="soft">Available in a few seconds</p>;
  const last = values[values.length - 1] ?? 0;
  return (
    <div
      ref={watch}
      role="img"
      aria-label={
        `Calls per second of an average rank: ${last.toFixed(1)} now, ` +
        `at most ${Math.max(...values).toFixed(1)} in the last minutes`
      }
    >
      <div ref={place} />
    </div>
  );
}

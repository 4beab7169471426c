// SPDX-License-Identifier: Apache-2.0
// A long list that shows its first rows at once, and more when the reader comes near its end. A
// thousand rows take a browser seconds.
import { useEffect, useRef, useState } from "preact/hooks";
import { count } from "./format";

const kAtFirst = 100;
const kMore = 200;
const kNear = "1500px"; // of the end of the shown rows

// How many of `total` rows to show, and what stands below them.
export function useGrowing(total: number) {
  const [most, setMost] = useState(kAtFirst);
  const end = useRef<HTMLParagraphElement>(null);
  const isWhole = most >= total;
  useEffect(() => {
    if (isWhole || end.current === null) return undefined;
    const observer = new IntersectionObserver(
      (entries) => {
        if (entries.some((entry) => entry.isIntersecting)) setMost((now) => now + kMore);
      },
      { rootMargin: kNear },
    );
    observer.observe(end.current);
    return () => observer.disconnect();
  }, [isWhole, most]);
  useEffect(() => {
    const showAll = () => setMost(Infinity);
    addEventListener("beforeprint", showAll);
    return () => removeEventListener("beforeprint", showAll);
  }, []);
  const below = isWhole ? null : (
    <p class="soft" ref={end}>
      {count(most)} of {count(total)}; more follow as you scroll.{" "}
      <button type="button" onClick={() => setMost(Infinity)}>
        Show all
      </button>
    </p>
  );
  return { most, below };
}

/** Percentiles in milliseconds. */
export interface Latencies {
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
}

const FIRST_CAPACITY = 1 << 17;

/** Collects latencies without leaving garbage that would have to be collected while it measures. */
export class LatencyRecorder {
  #values = new Float64Array(FIRST_CAPACITY);
  count = 0;

  add(milliseconds: number): void {
    if (this.count === this.#values.length) this.#grow();
    this.#values[this.count] = milliseconds;
    this.count += 1;
  }

  summarize(): Latencies {
    const sorted = this.#values.subarray(0, this.count).sort();
    const percentile = (share: number) => sorted[Math.floor(sorted.length * share)] ?? Number.NaN;
    return { p50: percentile(0.5), p99: percentile(0.99), p999: percentile(0.999) };
  }

  #grow(): void {
    const larger = new Float64Array(2 * this.#values.length);
    larger.set(this.#values);
    this.#values = larger;
  }
}

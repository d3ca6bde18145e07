import type { Worker } from 'node:cluster';
import { EventEmitter } from 'node:events';
import { Gauge, Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { connectToPrimary, WorkerProbes } from '../../src/monitoring/worker-probes.js';

/** The two ends of a channel between processes, which carries JSON. */
function createChannel() {
  const ends = [new EventEmitter(), new EventEmitter()] as const;
  const connect = (own: EventEmitter, other: EventEmitter) =>
    Object.assign(own, {
      send: (message: object) =>
        setImmediate(() => other.emit('message', JSON.parse(JSON.stringify(message)))),
    }) as unknown as Worker;
  return [connect(ends[0], ends[1]), connect(ends[1], ends[0])] as const;
}

/** Adds a worker with one gauge to the probes, as if it were a process. */
function addWorker(probes: WorkerProbes, index: number, read: () => number) {
  const registry = new Registry();
  new Gauge({
    name: 'level',
    help: 'x',
    registers: [registry],
    collect() {
      this.set(read());
    },
  });
  const [inPrimary, inWorker] = createChannel();
  probes.add(index, inPrimary);
  const primary = connectToPrimary(inWorker);
  primary.answerWith({
    collectMetrics: () => registry.getMetricsAsJSON(),
    isLive: async () => true,
    readReadiness: async () => ({ status: 'ok' }),
  });
  inPrimary.emit('listening', { address: '127.0.0.1', addressType: 4, fd: undefined, port: 1 });
  return primary;
}

test('the scrape of a worker shows the series of all workers', async () => {
  const probes = new WorkerProbes(3);
  const primary = addWorker(probes, 0, () => 5);
  addWorker(probes, 2, () => 7);
  const text = await primary.readMetrics();
  expect(text.match(/^(level|worker_up).*/gm)).toEqual([
    'worker_up{worker="1"} 1',
    'worker_up{worker="2"} 0',
    'worker_up{worker="3"} 1',
    'level{worker="1"} 5',
    'level{worker="3"} 7',
  ]);
});

test('a gauge without a sample is left out, because JSON would make it +Inf', async () => {
  const probes = new WorkerProbes(2);
  addWorker(probes, 0, () => Number.NaN);
  addWorker(probes, 1, () => 7);
  expect((await probes.readMetrics()).match(/^level.*/gm)).toEqual(['level{worker="2"} 7']);
});

test('any number of scrapes at once ask each worker once', async () => {
  const probes = new WorkerProbes(2);
  let asked = 0;
  const primary = addWorker(probes, 0, () => {
    asked += 1;
    return asked;
  });
  await Promise.all(Array.from({ length: 20 }, () => primary.readMetrics()));
  expect(asked).toBe(1);
  expect(await probes.readMetrics()).toContain('level{worker="1"} 2');
});

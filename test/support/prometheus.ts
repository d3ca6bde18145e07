import { execFileSync } from 'node:child_process';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runCommand } from './process.js';
import { createTemporaryFolder } from './temporary-folder.js';

/** A Prometheus that scrapes a service every two seconds. */
export interface Prometheus {
  /** The result of a PromQL query now: each series' value by its labels, such as `worker=1`. */
  query(promql: string): Promise<Record<string, number>>;
  close(): Promise<void>;
}

/** Whether `prometheus` is on PATH. Without it tests are skipped with a message; with CI=true that is an error. */
export function hasPrometheus(): boolean {
  try {
    execFileSync('prometheus', ['--version'], { stdio: 'ignore' });
    return true;
  } catch (error) {
    if (process.env.CI === 'true') throw new Error('CI needs prometheus on PATH', { cause: error });
    process.stderr.write('Skipped the tests with Prometheus: there is no prometheus on PATH\n');
    return false;
  }
}

/** @param target the address of /metrics, as HOST:PORT */
export async function startPrometheus(target: string): Promise<Prometheus> {
  const folder = await createTemporaryFolder();
  const config = join(folder, 'prometheus.json');
  const job = { job_name: 'animal-store', static_configs: [{ targets: [target] }] };
  // JSON is YAML.
  await writeFile(
    config,
    JSON.stringify({
      global: { scrape_interval: '2s', scrape_timeout: '2s' },
      scrape_configs: [job],
    }),
  );
  const program = runCommand(
    'prometheus',
    [
      `--config.file=${config}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      '--web.listen-address=127.0.0.1:0',
    ],
    {},
  );
  const [, address = ''] = await program.until(/"Listening on" address=(\S+)/);
  await program.until(/Server is ready/);
  return {
    async query(promql) {
      const response = await fetch(`http://${address}/api/v1/query?query=${encodeURIComponent(promql)}`);
      const { data } = (await response.json()) as {
        data: { result: { metric: Record<string, string>; value: [number, string] }[] };
      };
      return Object.fromEntries(
        data.result.map(({ metric, value }) => [
          Object.entries(metric)
            .map((label) => label.join('='))
            .join(),
          Number(value[1]),
        ]),
      );
    },
    async close() {
      program.child.kill('SIGTERM');
      await program.ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

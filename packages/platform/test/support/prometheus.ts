import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { hasProgram } from '@animal-store/limits/testing';
import { createTemporaryFolder, runCommand } from '@animal-store/platform/testing';
import { definition } from '#operations-under-test';

/** A Prometheus that scrapes a service every two seconds. */
export interface Prometheus {
  /** The result of a PromQL query now: each series' value by its labels, such as `instance=127.0.0.1:9464`. */
  query(promql: string): Promise<Record<string, number>>;
  /** The names of all metrics that were scraped. */
  listMetrics(): Promise<string[]>;
  close(): Promise<void>;
}

export const hasPrometheus = () => hasProgram('prometheus', '--version');
export const hasPromtool = () => hasProgram('promtool', '--version');

/** @param targets the addresses of /metrics, as HOST:PORT */
export async function startPrometheus(targets: readonly string[]): Promise<Prometheus> {
  const folder = await createTemporaryFolder();
  const config = join(folder, 'prometheus.json');
  const job = { job_name: definition.identity.name, static_configs: [{ targets }] };
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
  const [, address = ''] = await program.until(/"Listening on" .*?address=(\S+)/);
  await program.until(/Server is ready/);
  return {
    async listMetrics() {
      const response = await fetch(`http://${address}/api/v1/label/__name__/values`);
      return ((await response.json()) as { data: string[] }).data;
    },
    async query(promql) {
      const response = await fetch(`http://${address}/api/v1/query?query=${encodeURIComponent(promql)}`);
      const { data, error } = (await response.json()) as {
        data: { result: { metric: Record<string, string>; value: [number, string] }[] };
        error?: string;
      };
      if (error !== undefined) throw new Error(`${error}: ${promql}`);
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

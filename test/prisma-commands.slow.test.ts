import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createTemporaryFolder, runNode } from '@animal-store/platform/testing';
import { afterAll, describe, expect, test } from 'vitest';

const folder = await createTemporaryFolder();
afterAll(() => rm(folder, { recursive: true }));

/** Where Prisma's command line would download an engine from: it has none, and notes what it is asked for. */
const asked: string[] = [];
const mirror = createServer((request, response) => {
  asked.push(request.url ?? '');
  response.writeHead(404).end();
}).listen(0, '127.0.0.1');
await once(mirror, 'listening');
afterAll(() => mirror.close());
const MIRROR = `http://127.0.0.1:${(mirror.address() as AddressInfo).port}`;

/** Runs a command as `npx prisma …` does, on a machine that reaches no other host and has downloaded nothing. */
async function runPrisma(args: readonly string[], environment: Record<string, string> = {}) {
  const program = runNode(['node_modules/prisma/build/index.js', ...args], {
    DATABASE_URL: 'postgresql://127.0.0.1:1/none',
    PRISMA_ENGINES_MIRROR: MIRROR,
    CHECKPOINT_DISABLE: '1',
    HOME: folder,
    ...environment,
  });
  return { code: await program.ended, output: program.output() };
}

/** Prisma keeps what it has downloaded there. */
const isInstalled = readdirSync('node_modules/@prisma/engines').some((name) => /^schema-engine-/.test(name));

const SCHEMA = 'prisma';
const script = join(folder, 'script.sql');
await writeFile(script, 'SELECT 1');
/** Every command of `prisma migrate` and `prisma db`, with what it cannot do without */
const WITH_ENGINE = [
  ['migrate', 'dev', '--name', 'new'],
  ['migrate', 'status'],
  ['migrate', 'deploy'],
  ['migrate', 'reset', '--force'],
  ['migrate', 'resolve', '--applied', readdirSync('prisma/migrations')[0] ?? ''],
  ['migrate', 'diff', '--from-empty', '--to-schema', SCHEMA, '--script'],
  ['db', 'push'],
  ['db', 'pull', '--print'],
  ['db', 'execute', '--file', script],
];

describe.each(WITH_ENGINE.map((args) => ({ args, name: args.slice(0, 2).join(' ') })))(
  'prisma $name',
  ({ args }) => {
    test('uses an engine that is installed, or downloads one', async () => {
      asked.length = 0;
      const { output } = await runPrisma(args);
      if (!isInstalled) expect(asked, output).toContainEqual(expect.stringMatching(/\/schema-engine\.gz/));
      // That would be a message of ours.
      expect(output).not.toMatch(/npm run/);
    });

    test('uses the engine that PRISMA_SCHEMA_ENGINE_BINARY names', async () => {
      asked.length = 0;
      const [engine, record] = [join(folder, 'engine'), join(folder, 'arguments')];
      await writeFile(engine, `#!/bin/sh\necho "$@" >> '${record}'\n`, { mode: 0o755 });
      await rm(record, { force: true });
      const { output } = await runPrisma(args, { PRISMA_SCHEMA_ENGINE_BINARY: engine });
      expect(await readFile(record, 'utf8'), output).toMatch(/--datasource|--datamodels|cli/);
      expect(asked).toEqual([]);
    });
  },
);

test.each([['generate'], ['validate'], ['format', '--check']])(
  'prisma %s needs no engine, and neither downloads nor runs one',
  async (...args) => {
    asked.length = 0;
    const { code, output } = await runPrisma(args);
    expect(code, output).toBe(0);
    expect(asked).toEqual([]);
  },
);

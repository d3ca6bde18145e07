import { createCaller, toolCall } from '@animal-store/platform/testing';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { list } from '#operations-under-test';
import { createProcedure } from '../../src/operations/builder.js';
import { startService } from '../support/test-service.js';

const procedure = createProcedure();

/** Operations whose handlers throw a value; the second runs in tRPC's own runner. */
function createThrowers(thrown: unknown) {
  const describe = (path: `/${string}`) =>
    procedure
      .meta({ openapi: { method: 'GET', path, summary: 'Throw' }, stability: 'beta', scope: list.scope })
      .output(z.array(z.string()));
  const fail = (): never => {
    throw thrown;
  };
  const plain = describe('/plain').query(fail);
  const withUse = describe('/with-use')
    .use(({ next }) => next())
    .query(fail);
  return {
    name: 'throwers',
    description: 'They throw',
    createStore: () => ({}),
    procedures: { plain, withUse },
  };
}

test.each([
  [null, 'null'],
  [undefined, 'undefined'],
  ['a text', 'a text'],
  [{ member: 'of an object' }, 'of an object'],
])('%o that a handler throws is an internal error whose reason is in the log', async (thrown, reason) => {
  const lines: string[] = [];
  const log = pino({ level: 'error' }, { write: (line) => void lines.push(line) });
  const service = await startService({ log, resources: [createThrowers(thrown)] });
  onTestFinished(() => service.close());
  const call = createCaller(service);
  const requests = [
    ['/v1/plain'],
    ['/v1/with-use'],
    ['/trpc/plain'],
    ['/trpc/withUse'],
    ['/mcp', toolCall('plain')],
    ['/mcp', toolCall('withUse')],
  ] as const;
  for (const [index, [path, init]] of requests.entries()) {
    const { body } = await call(path, init);
    const error = body.result?.structuredContent ?? body.error?.data.error ?? body;
    expect([path, error.code]).toEqual([path, 'internal_error']);
    await expect.poll(() => lines).toHaveLength(index + 1);
    expect(JSON.stringify(JSON.parse(lines[index] ?? '').err)).toContain(reason);
  }
});

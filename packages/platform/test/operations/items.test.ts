import { createProtocols, PROTOCOLS, patient } from '@animal-store/platform/testing';
import { beforeAll, expect, test } from 'vitest';
import { INSERT_EXAMPLES, REUSE_EXAMPLES, resources } from '#operations-under-test';
import {
  bodyOf,
  existingPath,
  fillPath,
  ordinaryInit,
  readPathParameters,
} from '../support/document-requests.js';
import { createChecker, type ListedOperation } from '../support/openapi-checker.js';
import { useService } from '../support/test-service.js';

// What holds for every operation on a thing by its id, from the document alone.

const { operations } = createChecker(resources);
const pathParameters = ({ parameters = [] }: ListedOperation) =>
  parameters.filter((parameter) => parameter.in === 'path');
/** A list that is nested in nothing is an empty page. */
const isList = ({ parameters = [] }: ListedOperation) => parameters.some(({ name }) => name === 'cursor');
const BY_ID = operations
  .filter((operation) => pathParameters(operation).length === 1 && !isList(operation))
  .map((operation) => [operation.operationId, operation] as const);

const { call: send, service } = useService();
const call = patient(send);
const protocols = createProtocols(resources)(call);

beforeAll(() => service.database.pool.query(INSERT_EXAMPLES));

const inputOf = (operation: ListedOperation, id: unknown) => ({
  ...(bodyOf(operation) as object | undefined),
  ...Object.fromEntries(pathParameters(operation).map(({ name }) => [name, id])),
});

/** The path of a thing that there is, and its id. */
async function addExample(operation: ListedOperation) {
  await service.database.pool.query(REUSE_EXAMPLES);
  const path = await existingPath(operations, operation, call);
  const [id] = Object.values(readPathParameters(operation, path));
  return { path, id: Number(id) };
}

/** Texts in a path that are the id of nothing */
const NO_IDS = [
  ...['0', '-1', '999999999', '9007199254740993', '1'.repeat(400)],
  ...['abc', 'null', 'constructor', '1.0', '0x10', '1e1', '%201', '%31%20'],
  ...['%zz', '%FF', '%00', '%2e%2e', '🐈', '{petId}'],
];

test.each(BY_ID)(
  '%s over REST is a 404 for whatever is the id of nothing, and for another notation of one',
  async (_name, operation) => {
    const { id } = await addExample(operation);
    for (const text of [...NO_IDS, `${id}.0`, `${id}e0`, `+${id}`, `%20${id}`]) {
      const { status, body } = await call(`/v1${fillPath(operation, text)}`, ordinaryInit(operation));
      expect([text, status, body.code, body.status]).toEqual([text, 404, 'not_found', 404]);
    }
  },
);

test.each(BY_ID)('%s finds an id whose digits are percent-encoded', async (_name, operation) => {
  const { path, id } = await addExample(operation);
  const encoded = [...String(id)].map((digit) => `%3${digit}`).join('');
  const response = await call(`/v1${fillPath(operation, encoded)}`, ordinaryInit(operation));
  expect([path, response.status]).toEqual([path, 200]);
  expect(response.body.id).toBe(id);
});

test.each(BY_ID)(
  '%s names the id of nothing in its 404, the same over every protocol, and over tRPC and as a tool an id is a number',
  async (_name, operation) => {
    const [id = expect.unreachable()] = pathParameters(operation).map(({ name }) => name);
    const missing = await Promise.all(
      PROTOCOLS.map((protocol) => protocols[protocol](operation.operationId, inputOf(operation, 999_999))),
    );
    const message = /^There is no \w+ with the id 999999\./;
    for (const { status, result } of missing)
      expect([status, result]).toEqual([
        404,
        { code: 'not_found', status: 404, message: expect.stringMatching(message) },
      ]);
    for (const protocol of ['tRPC', 'MCP'] as const)
      for (const value of ['1', 'x', null, 1.5, true, [], {}, 2 ** 53]) {
        const { code, fields } = await protocols[protocol](operation.operationId, inputOf(operation, value));
        expect([protocol, value, code, Object.keys(fields ?? {})]).toEqual([
          protocol,
          value,
          'invalid_request',
          [id],
        ]);
      }
  },
);

test.each(BY_ID.filter(([, { method }]) => method === 'GET'))(
  '%s returns the same over every protocol',
  async (_name, operation) => {
    const { id } = await addExample(operation);
    const answers = await Promise.all(
      PROTOCOLS.map((protocol) => protocols[protocol](operation.operationId, inputOf(operation, id))),
    );
    for (const { status, result } of answers) expect([status, result]).toEqual([200, answers[0]?.result]);
  },
);

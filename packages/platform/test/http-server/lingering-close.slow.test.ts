import { execFile } from 'node:child_process';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { hasProgram } from '@animal-store/limits/testing';
import { createTemporaryFolder } from '@animal-store/platform/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { create } from '#operations-under-test';
import { useService } from '../support/test-service.js';

const run = promisify(execFile);
const BODY_BYTES = 20_000_000;
const ROUNDS = 5;

/** Each prints the status of a POST of the file, by the clients that come with the language. */
const PYTHON = `
import http.client, sys, urllib.error, urllib.request
host, key, path = sys.argv[1:]
body = open(path, 'rb').read()
headers = {'Authorization': 'Bearer ' + key, 'Content-Type': 'application/json'}
for _ in range(${ROUNDS}):
    try:
        urllib.request.urlopen(urllib.request.Request('http://' + host + '${create.path}', body, headers))
    except urllib.error.HTTPError as error:
        print(error.code, len(error.read()) > 0)
    connection = http.client.HTTPConnection(host)
    connection.request('POST', '${create.path}', body, headers)
    response = connection.getresponse()
    print(response.status, len(response.read()) > 0)
`;
const NODE = `
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
const [host, key, path] = process.argv.slice(1);
const body = readFileSync(path);
const url = 'http://' + host + '${create.path}';
const options = { method: 'POST', headers: { authorization: 'Bearer ' + key, 'content-type': 'application/json' } };
for (let round = 0; round < ${ROUNDS}; round += 1) {
  const response = await fetch(url, { ...options, body });
  console.log(response.status, (await response.text()).length > 0);
  for (const agent of [undefined, false])
    await new Promise((resolve, reject) =>
      request(url, { ...options, agent }, (message) => message.resume().on('end', () => resolve(console.log(message.statusCode, true))))
        .on('error', reject)
        .end(body));
}
`;

let folder: string;
let body: string;

const { service } = useService();

beforeAll(async () => {
  folder = await createTemporaryFolder();
  body = join(folder, 'body');
  await writeFile(body, 'x'.repeat(BODY_BYTES));
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

async function statusesOf(program: string, args: readonly string[]): Promise<string[]> {
  const { stdout } = await run(program, args);
  return stdout.trim().split('\n');
}

test.skipIf(!hasProgram('python3', '--version'))(
  'clients in Python get the 413 for 20 MB every time',
  async () => {
    const args = ['-c', PYTHON, `127.0.0.1:${service.port}`, service.key, body];
    expect(await statusesOf('python3', args)).toEqual(Array(2 * ROUNDS).fill('413 True'));
  },
);

test('clients in Node.js get the 413 for 20 MB every time', async () => {
  const args = ['--input-type=module', '-e', NODE, `127.0.0.1:${service.port}`, service.key, body];
  expect(await statusesOf(process.execPath, args)).toEqual(Array(3 * ROUNDS).fill('413 true'));
});

test.skipIf(!hasProgram('curl', '--version'))('curl gets the 413 for 20 MB every time', async () => {
  const common = ['-s', '-o', join(folder, 'out'), '-w', '%{http_code}\n', '--data-binary', `@${body}`];
  const headers = [`Authorization: Bearer ${service.key}`, 'Content-Type: application/json'];
  const fields = headers.flatMap((field) => ['-H', field]);
  for (const further of [
    [],
    ['-H', 'Expect:'],
    ['-H', 'Transfer-Encoding: chunked'],
    ['-H', 'Connection: close'],
  ]) {
    for (let round = 0; round < ROUNDS; round += 1) {
      const args = [...common, ...fields, ...further, `${service.url}${create.path}`];
      expect(await statusesOf('curl', args)).toEqual(['413']);
    }
  }
});

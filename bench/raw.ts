import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type Recording, toRequestKey } from './recorded-responses.js';

/*
 * What Node.js can do at most: node:http answers with the bytes that the service answered with, from memory. It looks
 * the response up by method, path and kind of key, and does nothing else.
 */

const { PORT, RESPONSES = '' } = process.env;
const recording: Recording = JSON.parse(readFileSync(RESPONSES, 'utf8'));
const responses = new Map(recording.responses);
const kinds = new Map(recording.kinds);

createServer((request, response) => {
  const { method = '', url = '', headers } = request;
  const recorded = responses.get(toRequestKey(method, url, kinds.get(headers.authorization ?? '')));
  const answer = () => {
    if (recorded === undefined) response.writeHead(404).end();
    else response.writeHead(recorded.status, recorded.headers).end(recorded.body);
  };
  if (method === 'GET') answer();
  else request.on('end', answer).resume();
}).listen(Number(PORT), '127.0.0.1');
process.on('SIGTERM', () => process.exit());

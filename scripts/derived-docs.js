import { readFileSync } from 'node:fs';

const README = 'README.md';
const RESULTS = 'bench/RESULTS.md';
const OPERATIONS = 'docs/operations.md';
const SPEED = 'docs/speed.svg';
const FAILURES = 'packages/platform/test/connections/failures.json';

/**
 * Every document that repeats facts of the code: its path, and its text with up-to-date facts.
 *
 * @param {object} document the OpenAPI document
 * @param {{ plans: object, scopes: readonly string[] }} definition what the store sells and allows
 * @param {string} planTable its plans as a table
 * @returns {Record<string, string>}
 */
export function deriveDocs(document, definition, planTable) {
  const operations = locateOperations(document);
  const scopes = toScopeTable(operations, definition.scopes);
  const tables = {
    [README]: [toOperationTable(operations)],
    'docs/guides/01-keys.md': [scopes],
    'docs/guides/04-rate-limits.md': [planTable],
    'docs/guides/compatibility.md': [toStabilityTable(operations)],
    [OPERATIONS]: [toFailureTable(JSON.parse(readFileSync(FAILURES, 'utf8')))],
  };
  const texts = Object.fromEntries(
    Object.entries(tables).map(([path, own]) => [path, own.reduce(replaceTable, readFileSync(path, 'utf8'))]),
  );
  const speed = readSpeed(readFileSync(RESULTS, 'utf8'));
  texts[README] = replaceSpeed(texts[README], speed);
  texts[OPERATIONS] = replaceSynopsis(texts[OPERATIONS], Object.keys(definition.plans));
  return { ...texts, [SPEED]: drawSpeed(speed) };
}

/** Finds a table by its headings, because a marker would show: guides are shown as they are, comments included. */
function replaceTable(text, table) {
  const headings = table.slice(0, table.indexOf('\n') + 1);
  const start = text.indexOf(headings);
  if (start < 0) throw new Error(`There is no table with ${headings}`);
  const rest = text.slice(start).replace(/^(?:\|.*\n)+/, '');
  return `${text.slice(0, start)}${table}\n${rest}`;
}

function replaceSynopsis(text, planNames) {
  const synopsis = /(?<=keys -- create --name NAME --plan )\S+/;
  if (!synopsis.test(text)) throw new Error(`${OPERATIONS} has no synopsis of keys create`);
  return text.replace(synopsis, planNames.join('|'));
}

function locateOperations({ paths }) {
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({
      ...operation,
      request: `${method.toUpperCase()} /v1${path}`,
      scopes: operation.security.flatMap(Object.values).flat(),
    })),
  );
}

function toOperationTable(operations) {
  const rows = operations.map((operation) => [
    describeName(operation),
    `\`${operation.request}${describeQuery(operation)}\``,
    operation.summary,
    operation.scopes.map((scope) => `\`${scope}\``).join(', ') || 'any',
    Object.keys(operation.responses).find((status) => status.startsWith('2')),
  ]);
  return toTable(['operation', 'request', 'what it does', 'scope', 'success'], rows);
}

function toFailureTable(failures) {
  const rows = Object.values(failures).map(({ failure, reads, writes, creates, ready, servedAgain }) => [
    failure,
    reads,
    creates === undefined ? writes : `${writes} for what writes there`,
    ready,
    servedAgain,
  ]);
  return toTable(['PostgreSQL', 'reads', 'writes', 'ready', 'served again'], rows);
}

function toScopeTable(operations, scopes) {
  const rows = scopes.map((scope) => {
    const allowed = operations.filter((operation) => operation.scopes.includes(scope));
    return [`\`${scope}\``, allowed.map(({ operationId }) => operationId).join(', ')];
  });
  return toTable(['scope', 'allows'], rows);
}

function toStabilityTable(operations) {
  const rows = operations.map((operation) => [
    ...[operation.operationId, operation['x-stability']],
    ...[operation['x-deprecated-since'] ?? '', operation['x-sunset'] ?? ''],
  ]);
  return toTable(['operation', 'stability', 'deprecated since', 'removed on'], rows);
}

/**
 * The bench's figures for lists of 20 at the first load with 32 connections: each server's, in per cent of the
 * hand-written server.
 */
function readSpeed(results) {
  const [, figures] = /^### 32 connections, .+\n\n((?:\|.*\n)+)/m.exec(results);
  const [headings, , ...rows] = figures
    .trim()
    .split('\n')
    .map((line) => line.slice(2, -2).split(' | '));
  const row = rows.find(([name]) => name === 'list of 20');
  const cpuOf = (server) => Number(row[headings.indexOf(`CPU µs ${server}`)].replaceAll(',', ''));
  const read = (server) => ({
    requests: Number.parseInt(row[headings.indexOf(server)], 10),
    cpu: Math.round((100 * cpuOf(server)) / cpuOf('baseline')),
  });
  return { service: read('service'), hono: read('hono'), baseline: { requests: 100, cpu: 100 } };
}

function replaceSpeed(text, { service }) {
  const numbers = /lists at \d+ % of its rate, with \d+ % of its CPU time/;
  if (!numbers.test(text)) throw new Error(`${README} does not say how fast lists are`);
  return text.replace(
    numbers,
    `lists at ${service.requests} % of its rate, with ${service.cpu} % of its CPU time`,
  );
}

const SPEED_NAMES = { service: 'this service', hono: 'Hono, Drizzle', baseline: 'by hand' };
const SPEED_MEASURES = { requests: 'lists of 20 a second', cpu: 'CPU time of a list' };

/** Two groups of bars, in colours that can be read on white and on black */
function drawSpeed(speed) {
  const lines = Object.entries(SPEED_MEASURES).flatMap(([measure, title], group) => {
    const top = 20 + group * 110;
    const bars = Object.entries(SPEED_NAMES).map(([server, name], index) => {
      const y = top + 12 + index * 26;
      const value = speed[server][measure];
      const colour = server === 'service' ? '#0a7d5a' : '#8a8f98';
      return `<text x="0" y="${y + 14}">${name}</text><rect x="110" y="${y}" width="${value * 1.6}" height="18" fill="${colour}"/><text x="${116 + value * 1.6}" y="${y + 14}">${value} %</text>`;
    });
    return [`<text x="0" y="${top}" font-weight="bold">${title}</text>`, ...bars];
  });
  const style = 'font-family="system-ui, sans-serif" font-size="13" fill="#6a7079"';
  return `<svg xmlns="http://www.w3.org/2000/svg" width="480" height="225" viewBox="0 -4 480 225" role="img" ${style}>\n<title>Lists a second and the CPU time of one, in per cent of a service written by hand</title>\n${lines.join('\n')}\n</svg>\n`;
}

function toTable(headings, rows) {
  return [headings, headings.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

function describeName({ operationId, deprecated, 'x-stability': stability }) {
  const remarks = [...(deprecated ? ['deprecated'] : []), ...(stability === 'stable' ? [] : [stability])];
  return remarks.length === 0 ? operationId : `${operationId} (${remarks.join(', ')})`;
}

function describeQuery({ parameters = [] }) {
  const names = parameters.filter((parameter) => parameter.in === 'query').map(({ name }) => `${name}=`);
  return names.length === 0 ? '' : `?${names.join('&')}`;
}
